"""Jobs that do nothing are stopped: they take no GPU, no dollar and no row where others go on."""

from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from planner.documents.selection import select
from planner.plan.making import to_plan
from planner.plan.plan import Plan
from planner.profile.model import Profile, Provenance, Source, Statistics
from templates.reports.first_screen import first_screen
from templates.reports.fleet_rows import group_alike
from tests.planner.factories import a_profile, running, sold
from tests.planner.factories import plan as a_plan

NODE = sold("node", "8.00", gpu_count=4)
NODE_USD = Decimal("800.00")  # 8 x 100 h


def pod(name: str, node: str, busy: float, **fields: Any) -> Profile:
    """A pod on a node of four GPUs that holds one of them for the month."""
    metrics = {
        "util.kernel_time": Statistics(mean=busy, p95=busy, max=busy),
        "mem.used_gib": Statistics(mean=8.0, max=8.0),
    }
    asked = {"kind": "unknown", "gpu_count": 1, "team": "a"} | fields
    profile = running(a_profile(metrics, name=name, **asked), NODE)
    return replace(profile, hardware=replace(profile.hardware, machine=node))


def planned(*pods: Profile, **asked: Any) -> Plan:
    """Their plan, where nothing but such nodes is sold."""
    return to_plan(a_plan(*pods, offers=(NODE,), **asked))


def fleet(idle: int) -> list[Profile]:
    """Two nodes, each with two jobs that cannot share; on the second some do nothing, too."""
    busy = [pod(f"w{n}", f"n{n // 2}", 0.8) for n in range(4)]
    return [*busy, *(pod(f"old{n}", "n1", 0.0) for n in range(idle))]


def test_the_node_that_stopping_empties_is_given_back() -> None:
    """Four jobs that go on need one of two nodes; those that do nothing are placed nowhere."""
    plan = planned(*fleet(2))
    assert plan.recommended is not None
    assert (plan.recommended.cost_before, plan.recommended.cost.mid) == (2 * NODE_USD, NODE_USD)
    assert plan.fleet is not None
    assert plan.fleet.gpus_after == 4
    placed = {name for place in plan.fleet.placements for name in place.jobs}
    assert placed == {"w0", "w1", "w2", "w3"}


def test_what_is_stopped_is_in_no_export() -> None:
    """The selections of a plan are those that go on, and sum to its total."""
    plan = planned(*fleet(2))
    chosen, _ = select(plan)
    assert plan.recommended is not None
    assert sum(one.mid for one in chosen) == plan.recommended.cost.mid
    assert not [one for one in chosen if "old" in one.job]


def rows_usd(plan: Plan) -> Decimal:
    """What the rows of the report and the table of GPUs sum to."""
    alone = [
        group.after(plan) for group in group_alike(plan) if plan.placement_of(group.first) is None
    ]
    groups = plan.fleet.recommended_groups if plan.fleet else ()
    packed = set(plan.recommended.packed) if plan.recommended else set()
    of_groups = [g for g in groups if packed.issuperset(g.jobs)]
    ids = {number for group in of_groups for number in group.placements}
    shared = [p.cost for p in plan.fleet.placements if p.id in ids] if plan.fleet else []
    free = [line.usd for group in of_groups for line in group.free]
    return sum([usd or Decimal(0) for usd in alone] + shared + free, Decimal(0))


@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize("idle", [1, 2])
def test_rows_sum_to_the_total(idle: int, *, owned: bool) -> None:
    """What is kept, shared, stopped and free is what is recommended in all, to the cent."""
    plan = planned(*fleet(idle), owned=owned)
    assert plan.recommended is not None
    assert rows_usd(plan) == pytest.approx(plan.recommended.cost.mid, abs=Decimal("0.02"))


def test_stopping_a_pod_of_a_node_that_stays_saves_nothing() -> None:
    """One idle pod beside three at work frees its GPU; the node is billed all the same."""
    plan = planned(*(pod(f"w{n}", "n", 0.8) for n in range(3)), pod("old", "n", 0.0))
    assert plan.recommended is not None
    assert plan.recommended.cost.mid == NODE_USD
    assert first_screen(plan).actions[0].figures == ("frees 1 GPU", "$0 while their machines stay")


def test_the_dollars_of_a_node_come_once_those_at_work_have_moved() -> None:
    """$8 an hour for a node with one idle pod and two that cost $1 each elsewhere: 2 move first."""
    small, at_work = sold("small", "1.00", gpu_count=1), [pod(f"w{n}", "n", 0.8) for n in range(2)]
    plan = to_plan(a_plan(*at_work, pod("old", "n", 0.0), offers=(NODE, small)))
    frees, dollars = first_screen(plan).actions[0].figures
    assert frees == "frees 1 GPU"
    assert dollars == "$267 a month once 2 others have moved, $67 of it held by no job"


def test_where_nothing_moves_the_cure_of_the_largest_waste_is_the_first_step() -> None:
    """A training whose GPUs hardly work, on a node of its own, its CPU not read: a question."""
    hung = pod("hung", "m", 0.02, kind="training", gpu_count=4)
    (step,) = first_screen(planned(hung, pod("w", "n", 0.95, gpu_count=4))).actions
    assert step.text.startswith("hung: see whether anything still runs on it")


def test_stopping_on_owned_machines_frees_gpus_and_no_dollar() -> None:
    """Screen and total agree: what is owned is paid whatever runs."""
    plan = planned(*fleet(2), owned=True)
    assert plan.recommended is not None
    assert plan.recommended.saves.usd == 0
    assert first_screen(plan).actions[0].figures == ("frees 2 GPUs", "$0 (owned)")


def test_a_node_of_idle_pods_alone_goes() -> None:
    """Where all pods of a node do nothing its bill goes by stopping them alone."""
    plan = planned(pod("w", "n0", 0.8), *(pod(f"old{n}", "n1", 0.0) for n in range(4)))
    assert plan.recommended is not None
    assert plan.recommended.saves.usd == NODE_USD
    assert first_screen(plan).actions[0].figures == ("frees 4 GPUs", "$800 a month")


def test_one_instant_stops_nothing() -> None:
    """Who is idle cannot be told from a single reading: the same pods, read once, all go on."""
    read_once = Provenance(sources=(Source(path="now.json", format="prometheus-json"),))
    plan = planned(*(replace(one, provenance=read_once) for one in fleet(2)))
    assert not [job.name for job in plan.jobs if job.ended]


def test_what_ending_gives_back_is_told_apart_as_the_rows_of_who_pays_are() -> None:
    """A node of 4 GPUs at $8, 1 and 2 of them held by jobs that do nothing: $800 for 100 h.

    $600 of it are theirs, $200 are held by no job; the other node goes on.
    """
    idle = [pod(f"i{n}", "m", 0.0, gpu_count=n) for n in (1, 2)]
    screen = first_screen(planned(*idle, pod("w", "n", 0.8, gpu_count=4), consolidate=False))
    assert screen.actions[0].figures == ("frees 3 GPUs", "$800 a month, $200 of it held by no job")


def test_a_budget_is_said_to_be_for_each_job() -> None:
    """$900 is kept by each of two jobs on nodes at $800; that both are $1,600 is another thing."""
    jobs = [pod(name, name, 0.8, gpu_count=4) for name in "ab"]
    screen = first_screen(planned(*jobs, budget_usd=Decimal(900), consolidate=False))
    texts = {note.label: note.text for note in screen.notes}
    assert texts["Budget"] == "$900 is for each of the 2 jobs, not for all of them together"
