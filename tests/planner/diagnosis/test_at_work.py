"""What is busy under 5 % of the time is idle only where nothing else works; more such verdicts."""

from typing import Any

import pytest
from msgspec.structs import replace

from planner.diagnosis.diagnose import diagnose
from planner.plan.draft import JobDraft
from planner.plan.making import to_plan
from planner.profile.model import Phase, Profile, Statistics, Step, Window
from planner.signals.finding import Finding
from templates.language.translate import use_language
from templates.reports.first_screen import first_screen
from tests.planner.factories import a_profile, plan, running, sold

BUSY, HELD, WATTS, LIMIT = (
    "util.kernel_time",
    "mem.used_gib",
    "power.board_w",
    "power.limit_w",
)
RESTS = {"cpu_util": 0.01}
ENDS = {"idle-shutdown", "end-job"}
HOUR_S = 3600.0


def verdict(busy: float, gib: float, **fields: Any) -> Finding:
    """The first finding of a GPU that is so busy and holds so much."""
    job = {"kind": "unknown", "cpu_cores": 8} | fields
    metrics = job.pop("metrics", {})
    return diagnose(a_profile({BUSY: busy, HELD: gib} | metrics, **job))[0]


def planned(profile: Profile) -> JobDraft:
    """The plan of a running job."""
    return plan(running(profile)).jobs[0]


@pytest.mark.parametrize("gib", [0.3, 2.5])
@pytest.mark.parametrize("busy", [0.0, 0.04])
def test_no_kernel_ran_is_said_where_none_ran(busy: float, gib: float) -> None:
    """At 4 % some did; either way it is surely idle only where the CPU was seen to rest."""
    for host in (RESTS, {}):
        found = verdict(busy, gib, host=host)
        assert found.code == ("idle" if gib < 1 else "idle-held")
        assert ("no kernel ran" in found.cause.lower()) is (busy == 0.0)
        assert (found.confidence == "measured") is (busy == 0.0 and host == RESTS)
        assert ("CPU was not recorded" in found.cause) is (host != RESTS)


@pytest.mark.parametrize("busy", [0.0, 0.04])
@pytest.mark.parametrize(
    "works",
    [
        {"host": {"cpu_util": 0.13, "cpu_busiest_core": 1.0}},
        {"host": {"cpu_util": 0.3}},
        {"host": {"cpu_util": 0.98}},
        {"host": {"cpu_util": 0.05, "disk_read_mib_s": 60.0}},
        {"host": RESTS, "rate_per_s": 0.0001},
        {"host": {}, "rate_per_s": 0.0001, "kind": "training"},
    ],
    ids=["a core is full", "2.4 cores", "all cores", "a disk", "work is done", "CPU not read"],
)
@pytest.mark.parametrize("gib", [0.3, 2.5])
def test_a_machine_that_works_is_never_ended(gib: float, busy: float, works: Any) -> None:
    """A core, a disk, or work that gets done: no step ends the job or its machine."""
    profile = a_profile({BUSY: busy, HELD: gib}, **{"kind": "unknown", "cpu_cores": 8} | works)
    job = planned(profile)
    assert not ENDS & {code for finding in job.findings for code in finding.actions}
    assert job.now is None or (job.now.kind == "try" and not ENDS & set(job.now.actions))


@pytest.mark.parametrize("gib", [0.3, 2.5])
def test_a_question_comes_before_a_shutdown_where_the_cpu_is_not_known(gib: float) -> None:
    """The GPU was idle for 3 min, and nobody looked at the CPU."""
    window = Window(duration_s=180.0, interval_s=1.0)
    quiet = {BUSY: Statistics(mean=0.011, p95=0.02), HELD: gib}
    step = planned(a_profile(quiet, kind="unknown", window=window)).now
    assert step is not None
    assert step.what.startswith("see whether anything still runs")
    assert step.kind == "try"


def test_hours_before_the_gpu_works_may_be_those_of_the_cpu() -> None:
    """8 of 8.5 h before: left on, or a stage of the CPU; 95 % of 16 cores make it the stage."""
    window = Window(duration_s=1800.0, interval_s=60.0, idle_before_s=8 * HOUR_S)
    fields: dict[str, Any] = {"kind": "unknown", "window": window, "cpu_cores": 16}
    metrics = {BUSY: 0.93, HELD: 9.0}
    unread = planned(a_profile(metrics, **fields))
    assert (unread.findings[0].code, unread.findings[0].confidence) == ("left-on", "likely")
    assert unread.now is not None
    assert unread.now.what.startswith("see whether anything still runs")
    stage = planned(a_profile(metrics, **fields, host={"cpu_util": 0.95}))
    assert stage.findings[0].code == "start-up"
    assert "needs no GPU" in stage.findings[0].cause
    assert stage.findings[0].waste_fraction == pytest.approx(8 / 8.5, abs=1e-3)
    assert not ENDS & {code for finding in stage.findings for code in finding.actions}


@pytest.mark.parametrize(("seconds", "on_cpu"), [(0.4, False), (1.4, False), (10.0, True)])
def test_launches_take_no_ten_seconds_of_a_step(seconds: float, on_cpu: bool) -> None:  # noqa: FBT001
    """10,000 tensors x 15 launches x 10 us are 1.5 s; above, the CPU computes the update."""
    step = Step(mean_s=seconds * 1.6, data_wait_s=0.0, optimizer_s=seconds, count=60)
    found = diagnose(replace(a_profile({BUSY: 0.35, HELD: 55.0}), step=step))[0]
    assert found.waste_fraction == pytest.approx(0.625)
    assert ("fused-optimizer" in found.actions) is not on_cpu
    assert ("optimizer-on-gpu" in found.actions) is on_cpu
    assert found.confidence == ("likely" if on_cpu else "measured")


@pytest.mark.parametrize(
    ("gpu", "watts", "spills"),
    [("RTX 4090", 103.0, True), ("RTX 4090", 300.0, False), ("L40S", 80.0, False)],
)
def test_full_memory_at_a_quarter_of_the_power_spills(
    gpu: str,
    watts: float,
    spills: bool,  # noqa: FBT001
) -> None:
    """No training draws under 28 % of its limit; drivers of consumer boards move data out."""
    metrics = {BUSY: 1.0, HELD: 23.7, WATTS: watts, LIMIT: 450.0 if "4090" in gpu else 350.0}
    today = sold("today", "0.69", gpu.replace(" ", "-"))
    profile = a_profile(metrics, gpu=gpu, gpu_memory_gib=24.0, kind="unknown")
    (job,) = plan(running(profile, today), offers=(today,)).jobs
    full = next(f for f in job.findings if f.code == "memory-pressure")
    assert ("host memory" in full.cause) is spills
    if spills:
        assert job.findings[0] is full
        assert full.confidence == "likely"
        assert job.now is not None
        assert "gradient-checkpointing" in job.now.actions


def test_a_plan_says_that_busy_gpus_draw_little_power() -> None:
    """100 % busy at a third of the limit is the first thing that is said, with its percentage."""
    metrics = {BUSY: 1.0, HELD: 60.0, WATTS: 130.0, LIMIT: 400.0}
    made = to_plan(plan(running(a_profile(metrics, gpu_count=8))))
    with use_language("en"):
        (line,) = (line.text for line in first_screen(made).facts if line.label == "Diagnosis")
    assert "32%" in line
    assert "wait for each other" in line


def paused(busy_min: float, idle_min: float, times: int) -> Profile:
    """A profile of a log with so many pauses."""
    idle_s, busy_s = 60.0 * idle_min * times, 60.0 * busy_min * times
    share = idle_s / (idle_s + busy_s)
    phases = (
        Phase(
            kind="steady", total_s=busy_s, time_fraction=1 - share, count=times, kernel_time=0.98
        ),
        Phase(kind="idle", total_s=idle_s, time_fraction=share, count=times, kernel_time=0.0),
    )
    window = Window(duration_s=idle_s + busy_s, interval_s=10.0)
    metrics = {BUSY: 0.98 * (1 - share), HELD: 62.0}
    return replace(a_profile(metrics, kind="unknown", window=window), phases=phases)


def test_pauses_of_minutes_are_named_with_their_share_and_dollars() -> None:
    """12 min at 98 % and 6 min at 0, three times: a third is lost; of $200 that is $66.67."""
    found = planned(paused(12.0, 6.0, 3)).findings[0]
    assert (found.code, found.actions) == ("host-bound", ("shorten-pauses",))
    assert "3 times, for 6 min" in found.cause
    assert found.waste_fraction == pytest.approx(1 / 3, abs=1e-3)
    assert float(found.waste_usd or 0) == pytest.approx(66.67, abs=0.1)
    assert "shorten-pauses" not in diagnose(paused(12.0, 6.0, 1))[0].actions
    assert "shorten-pauses" not in diagnose(paused(1.0, 0.5, 30))[0].actions


def test_a_share_needs_no_price() -> None:
    """Of a GPU that nobody rents out and that is busy 36 % of the time, 64 % are wasted."""
    made = to_plan(plan(a_profile({BUSY: 0.36, HELD: 8.0}, gpu="RTX 3090")))
    with use_language("en"):
        (line,) = (line.text for line in first_screen(made).facts if line.label == "Wasted")
    assert line.startswith("64 %: ")


def test_one_line_says_what_would_settle_it() -> None:
    """The measurement and the kind of job, where both are open."""
    with use_language("en"):
        screen = first_screen(to_plan(plan(running(a_profile({BUSY: 0.5}, kind="unknown")))))
    (line,) = (line.text for line in screen.notes if line.label == "Settle it")
    assert [action.label for action in screen.actions] == ["Measure"]
    assert "gpucost profile" in screen.commands[0]
    assert "--kind training" in line


def test_that_a_run_came_to_its_end_tells_of_no_work() -> None:
    """Of 10 h that Slurm calls COMPLETED, 3 % busy: the GPU was held, and no rate is evidence."""
    ended = {"unit": "run", "done": 1.0, "total": 1.0, "rate_per_s": 1 / 36000}
    held = a_profile({BUSY: 0.03, HELD: 10.0}, host={"cpu_util": 0.1}, kind="unknown", **ended)
    first = diagnose(held)[0]
    assert first.code == "idle-held"
    assert "work.rate_per_s" not in {reading.name for reading in first.evidence}
    assert "Work is done" not in first.cause
