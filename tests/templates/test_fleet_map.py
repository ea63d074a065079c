"""The map of a fleet: every GPU of today and of the plan stands in a machine, with who is on it."""

from collections import Counter
from decimal import Decimal

import pytest

from planner.plan.making import to_plan
from planner.plan.plan import Plan
from templates.page.whole_page import Box, map_after, map_before
from tests.planner.factories import TODAY, plan
from tests.planner.packing.test_one_answer import EIGHT, cheap, four, job
from tests.templates.documents import CASES, planned


def _gpus(boxes: list[Box]) -> int:
    return sum(cell.gpus for box in boxes for cell in box.cells if cell.jobs)


@pytest.mark.parametrize("case", sorted(CASES))
def test_every_job_is_on_the_map_before_and_after(case: str) -> None:
    """No job is lost, whatever is known of it, and the fleet's counts are those of the map."""
    made = planned(*CASES[case])
    for boxes in (map_before(made), map_after(made)):
        shown = {name for box in boxes for cell in box.cells for name in cell.jobs}
        assert shown == {one.name for one in made.jobs}
    if made.fleet is not None:
        assert _gpus(map_before(made)) == made.fleet.gpus_before
        assert _gpus(map_after(made)) == made.fleet.gpus_after


def _moved(price: str = "0.50") -> Plan:
    asked = {"offers": (TODAY, cheap(price)), "engineer_usd_per_hour": Decimal(0)}
    return to_plan(plan(*four(busy=0.2), **asked))


def test_shared_gpus_carry_what_their_jobs_take_together() -> None:
    """Four jobs that keep a GPU busy for a fifth each keep one of them busy for four fifths."""
    made = _moved()
    assert [[cell.percent for cell in box.cells] for box in map_before(made)] == [[20]] * 4
    (box,) = map_after(made)
    (cell,) = box.cells
    assert (cell.jobs, cell.percent, cell.mode) == (("j0", "j1", "j2", "j3"), 80, "mps")
    assert cell.placement is not None


def test_jobs_of_one_machine_stand_in_one_box_with_what_nobody_holds() -> None:
    """Three jobs of one GPU each on a machine of eight leave five GPUs free."""
    jobs = [job(f"j{i}", on=EIGHT, machine="m1", busy=0.9, trust="isolated") for i in range(3)]
    (box,) = map_before(to_plan(plan(*jobs, offers=(EIGHT,))))
    assert Counter(cell.jobs for cell in box.cells) == {
        ("j0",): 1,
        ("j1",): 1,
        ("j2",): 1,
        (): 5,
    }
    assert "8x" in box.title


def test_use_is_not_predicted_for_a_job_that_moves_on_its_own() -> None:
    """What keeps its GPU keeps its number; what goes elsewhere alone has none."""
    made = planned(*CASES["visual-search"])
    assert made.jobs[0].choice is not None
    assert [cell.percent for box in map_after(made) for cell in box.cells] == [None]
    stays = planned(*CASES["leave-it"])
    assert [cell.percent for box in map_after(stays) for cell in box.cells] == [
        cell.percent for box in map_before(stays) for cell in box.cells
    ]
