"""What fails is mended before anything is tuned: by another host, or by the owner's hands."""

import pytest
from msgspec.structs import replace

from planner.plan.making import to_plan
from planner.profile.model import Health, Profile, Statistics, Step
from templates.language.translate import use_language
from templates.reports.first_screen import first_screen
from tests.planner.factories import a_profile, codes, plan, running

LOST = Health(gpu="GPU 2", code="xid", value=79.0)
ONE_LANE = Health(gpu="GPU 1", code="lanes", value=1.0, most=16.0)
HALF = Health(gpu="GPU 1", code="lanes", value=8.0, most=16.0)


def starved(*faults: Health) -> Profile:
    """Two GPUs that wait for data in six tenths of every step, and something that fails."""
    step = Step(count=9000, mean_s=0.2, data_wait_s=0.12, compute_s=0.08)
    metrics = {"util.kernel_time": 0.4, "mem.used_gib": 20.0}
    job = a_profile(metrics, step=step, host={"cpu_util": 0.3}, hours=400.0, unit="image")
    return replace(running(job), health=faults)


@pytest.mark.parametrize(
    ("fault", "evidence", "chinese"),
    [
        (LOST, "GPU 2: the card is failing (Xid 79", "Xid 79"),
        (ONE_LANE, "GPU 1: 1 of 16 PCIe lanes", "16 条"),
    ],
)
def test_a_failing_gpu_comes_before_a_large_waste(
    fault: Health, evidence: str, chinese: str
) -> None:
    """Sixty per cent of the bill wait for data: that is the second line, another host the step."""
    made = to_plan(plan(starved(fault)))
    (job,), screen = made.jobs, first_screen(made)
    assert codes(job.findings)[:2] == ["failing-gpu", "data-loading"]
    first, second = screen.facts[1:3]
    assert first.label == "Diagnosis"
    assert evidence in first.text
    assert second.label == "Wasted"
    assert "60 %" in second.text
    assert job.answer.now is not None
    assert job.answer.now.actions == ("replace-host",)
    assert screen.actions[0].text.startswith("ask for another host")
    with use_language("zh", made):
        assert chinese in first_screen(made).facts[1].text


def test_the_cure_of_the_program_stays_as_the_next_step() -> None:
    """What is recommended on today's machine is done once its host is another."""
    with_fault, without = (to_plan(plan(starved(*faults))) for faults in ((LOST,), ()))
    option = with_fault.jobs[0].choice
    assert option is not None
    assert without.jobs[0].choice == option
    assert without.jobs[0].answer.next is None
    assert [action.id for action in first_screen(with_fault).actions] == [None, option.id]


@pytest.mark.parametrize(
    ("fault", "code"), [(LOST, "reseat-gpu"), (ONE_LANE, "reseat-gpu"), (None, "cool-gpu")]
)
def test_the_owner_of_a_machine_mends_it(fault: Health | None, code: str) -> None:
    """Nobody gives him another host: he cools it, or puts the card in again."""
    hot = {"clock.sm_mhz": 900.0, "temp.core_c": 92.0, "throttle.fraction": 0.8}
    job = a_profile(({} if fault else hot) | {"util.kernel_time": 0.95}, owned=True)
    job = replace(job, health=(fault,) if fault else ())
    now = to_plan(plan(job)).jobs[0].answer.now
    assert now is not None
    assert now.actions == (code,)
    assert now.command == f"gpucost explain {code}"
    rented = replace(job, hardware=replace(job.hardware, owned=None))
    (asked,) = plan(rented, owned=True).jobs
    assert asked.now is not None
    assert asked.now.actions == (code,)


def test_half_of_the_lanes_does_not_come_first() -> None:
    """Boards share 16 lanes between two cards: the data that the job waits for come first."""
    (job,) = plan(starved(HALF)).jobs
    assert codes(job.findings)[:2] == ["data-loading", "failing-gpu"]
    assert "many boards give no more" in job.findings[1].cause


def test_a_machine_that_does_nothing_is_ended_though_it_fails() -> None:
    """Another host would idle, too."""
    silent = {"util.kernel_time": Statistics(mean=0.0, p95=0.0), "power.board_w": 60.0}
    held = {"mem.used_gib": Statistics(max=60.0)}
    asleep = a_profile(silent | held, hours=400.0, host={"cpu_util": 0.003})
    (job,) = plan(replace(running(asleep), health=(LOST,))).jobs
    assert codes(job.findings)[0] == "failing-gpu"
    assert job.now is not None
    assert job.now.kind == "end"
