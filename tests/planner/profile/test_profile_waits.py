"""Where the probe saw a program becomes waits, ranks and the words of a verdict."""

from typing import Any

import pytest

from planner.diagnosis.diagnose import diagnose
from planner.profile.join import join
from planner.profile.model import (
    GpuReadings,
    Hardware,
    Job,
    Phase,
    Profile,
    Rank,
    Run,
    Stalls,
    Statistics,
    Step,
    Wait,
)
from planner.signals.finding import Finding
from telemetry.recording.events import together
from telemetry.recording.places import places


def _stacks(*seen: tuple[str, str, str, int]) -> dict[str, Any]:
    return {"event": "stacks", "process": "a", "t_s": 1.0, "seen": [list(one) for one in seen]}


def test_lines_of_a_function_are_one_place() -> None:
    """Samples are counted by function; the line is the one seen most, start-up is left out."""
    first = _stacks(
        ("start-up", "load (a.py:1)", "import", 50),
        ("steady", "get (a.py:8)", "input", 30),
        ("steady", "get (a.py:9)", "input", 10),
    )
    second = _stacks(("steady", "main (a.py:20)", "device", 40), ("teardown", "x (a.py:3)", "", 9))
    found = places([first, second], stepped=True)
    assert [(one.place, one.time_fraction) for one in found] == [
        ("get (a.py:8)", 0.5),
        ("main (a.py:20)", 0.5),
    ]


def test_a_few_samples_are_nobodys_share() -> None:
    """Below two seconds of samples no share is told."""
    assert places([_stacks(("steady", "get (a.py:8)", "input", 9))], stepped=True) == ()


def test_without_steps_the_whole_run_counts() -> None:
    """Where nothing steps, all but imports is the program's time, of no phase."""
    lines = [
        _stacks(("unstepped", "m (a.py:1)", "import", 90), ("unstepped", "f (a.py:2)", "", 30))
    ]
    (one,) = places(lines, stepped=False)
    assert (one.place, one.phase, one.time_fraction) == ("f (a.py:2)", None, 1.0)


def _profile(busy: float = 0.2, **more: Any) -> Profile:
    gpu = GpuReadings(index=0, metrics={"util.kernel_time": Statistics(mean=busy)})
    return Profile(
        job=Job(kind="training"),
        hardware=Hardware(gpu="A100-SXM4-80GB", gpu_count=len(more.get("ranks", ())) or 1),
        gpus=(gpu,),
        **more,
    )


def _first(profile: Profile) -> Finding:
    return diagnose(profile)[0]


def _wait(place: str, doing: str, share: float, phase: str | None = "steady") -> Wait:
    return Wait(place=place, doing=doing, phase=phase, time_fraction=share)


_STEADY, _STALL = Phase(kind="steady", total_s=40.0), Phase(kind="stall", total_s=60.0)
_STALLS = Step(mean_s=0.1, stalls=Stalls(count=4, total_s=60.0, longest_s=15.0, threshold_s=0.5))
_SHORT = Step(mean_s=0.1, stalls=Stalls(count=30, total_s=60.0, longest_s=2.0, threshold_s=0.5))

# what was seen: the verdict, what its cause names
SEEN: dict[str, tuple[Profile, str, str]] = {
    "input in the loop": (
        _profile(waits=(_wait("get_batch (train.py:8)", "input", 0.7),)),
        "data-loading",
        "get_batch (train.py:8) takes 70% of the time",
    ),
    "host code": (
        _profile(waits=(_wait("step (env.py:3)", "host", 0.7),)),
        "host-bound",
        "step (env.py:3) takes 70% of the time",
    ),
    "evaluation waits": (
        _profile(
            waits=(_wait("load (eval.py:3)", "input", 0.45, "evaluation"),),
            phases=(
                Phase(kind="steady", total_s=50.0),
                Phase(kind="evaluation", total_s=50.0, data_wait_s=45.0),
            ),
        ),
        "data-loading",
        "load (eval.py:3) takes 45% of the time",
    ),
    "bursts": (
        _profile(
            waits=(_wait("poll (q.py:5)", "sleep", 0.6, "stall"),),
            phases=(_STEADY, _STALL),
            step=_STALLS,
        ),
        "bursty-interactive",
        "poll (q.py:5)",
    ),
    "long work between the steps": (
        _profile(
            waits=(_wait("index (q.py:5)", "host", 0.6, "stall"),),
            phases=(_STEADY, _STALL),
            step=_STALLS,
        ),
        "host-bound",
        "index (q.py:5)",
    ),
    "short stalls": (
        _profile(
            waits=(_wait("log (q.py:5)", "sleep", 0.6, "stall"),),
            phases=(_STEADY, _STALL),
            step=_SHORT,
        ),
        "host-bound",
        "log (q.py:5)",
    ),
    "a slow rank": (
        _profile(
            0.9,
            ranks=(
                Rank(rank=0, own_fraction=0.05),
                Rank(rank=1, own_fraction=0.75, place="augment (d.py:4)"),
            ),
        ),
        "imbalanced-gpus",
        "Rank 1 spends 75% of its time in augment (d.py:4)",
    ),
}


@pytest.mark.parametrize("name", SEEN)
def test_the_verdict_names_the_line(name: str) -> None:
    """What was seen at the lines of the program makes the first finding, with its line."""
    profile, code, words = SEEN[name]
    first = _first(profile)
    assert (first.code, first.confidence) == (code, "measured")
    assert words in first.cause


@pytest.mark.parametrize("name", [name for name in SEEN if name != "a slow rank"])
def test_what_the_gpu_does_not_wait_for_is_no_waste(name: str) -> None:
    """The same places beside a GPU that is busy all the time are not a finding of waiting."""
    profile, code, _ = SEEN[name]
    busy = _profile(0.97, waits=profile.waits, phases=profile.phases, step=profile.step)
    assert code not in {finding.code for finding in diagnose(busy)}


def test_ranks_that_all_do_the_same_are_not_uneven() -> None:
    """A share of own work that all ranks have is nobody's fault."""
    ranks = tuple(Rank(rank=i, own_fraction=0.7) for i in range(4))
    assert "imbalanced-gpus" not in {f.code for f in diagnose(_profile(0.9, ranks=ranks))}


def _bye(**more: Any) -> dict[str, Any]:
    return {"event": "bye", "process": "a", "t_s": 9.0, **more}


HELLO = {"event": "hello", "process": "a", "t_s": 1.0, "framework": "pytorch"}
KILLED = {"event": "out-of-memory", "t_s": 9.0, "where": "host"}
ENDS: dict[str, tuple[list[dict[str, Any]], str | None]] = {
    "gpu": ([HELLO, _bye(error="OutOfMemoryError", out_of_memory="gpu")], "gpu-out-of-memory"),
    "killed": ([HELLO, KILLED], "host-out-of-memory"),
    "its worker was killed": ([HELLO, KILLED, _bye(error="RuntimeError")], "host-out-of-memory"),
    "another was killed, it came to its end": ([HELLO, KILLED, _bye()], None),
    "something was killed, nothing is known of the job": ([KILLED], None),
    "error": ([HELLO, _bye(error="ValueError")], "failed"),
    "well": ([HELLO, _bye()], None),
}


@pytest.mark.parametrize("name", ENDS)
def test_how_a_job_ended_is_known(name: str) -> None:
    """Memory that ran out is told from other errors; a kill counts where the job did not finish."""
    events, ended = ENDS[name]
    assert together(events).ended == ended


def test_a_job_that_memory_ended_is_told_so_first() -> None:
    """Running out of memory is the verdict, however busy the GPU was."""
    profile = _profile(0.95)
    ended = Profile(
        job=Job(kind="training", ended="gpu-out-of-memory"),
        hardware=profile.hardware,
        gpus=profile.gpus,
    )
    first = _first(ended)
    assert (first.code, first.severity) == ("memory-pressure", "high")


def test_the_better_rounds_count() -> None:
    """Backward passes count before batches, an optimizer's steps before both."""
    rounds = [
        {"event": "iteration", "by": by, "process": "a", "t_s": float(i), "step": i, "n": 1}
        | {"step_s": 0.1, "data_wait_s": 0.0, "items": 1, "loader": 1}
        for by in ("batch", "backward")
        for i in range(1, 4)
    ]
    assert together(rounds).counted_by == "backward"
    assert together(rounds[:3]).counted_by == "batch"
    assert together(rounds[:3]).kind == "inference_offline"
    stepped = {**rounds[0], "event": "step"}
    assert together([*rounds, stepped]).counted_by == "optimizer"


def test_steps_that_the_program_tells_are_no_proof_of_training() -> None:
    """`m.step()` counts what the program means by it; what kind of job it is stays unknown."""
    told = {"event": "by-hand", "process": "a", "t_s": 0.5}
    step = {"event": "step", "process": "a", "t_s": 1.0, "step": 1, "n": 1, "step_s": 0.1}
    found = together([told, step])
    assert found.counted_by == "program"
    assert found.kind is None


def test_ranks_are_told_one_by_one() -> None:
    """Each rank of a run has its own step time and waits."""
    events: list[dict[str, Any]] = []
    for rank, wait_s in enumerate((0.01, 0.08)):
        name = f"r{rank}"
        events.append({"event": "hello", "process": name, "ppid": 5, "t_s": 0.0})
        events.append({"event": "rank", "process": name, "t_s": 0.0, "rank": rank, "world": 2})
        events += [
            {"event": "step", "process": name, "t_s": i / 10, "step": i, "n": 1}
            | {"step_s": 0.1, "data_wait_s": wait_s, "items": 1, "loader": 1}
            for i in range(1, 5)
        ]
    ranks = together(events).ranks
    assert [(one.rank, one.steps) for one in ranks] == [(0, 4), (1, 4)]
    assert [one.data_wait_s for one in ranks] == pytest.approx([0.01, 0.08])


def test_the_ranks_of_all_parts_of_a_run_are_kept() -> None:
    """Profiles taken around each rank become one, in which the slow rank is found."""
    parts = [
        Profile(
            run=Run(id="r", node="n"),
            ranks=(Rank(rank=i, own_fraction=own, place="f (a.py:1)"),),
            gpus=(GpuReadings(index=i, metrics={"util.kernel_time": Statistics(mean=0.9)}),),
        )
        for i, own in enumerate((0.1, 0.8, 0.1))
    ]
    joined = join(parts)
    assert [one.rank for one in joined.ranks] == [0, 1, 2]
    assert "Rank 1 spends 80%" in _first(joined).cause


def test_few_looks_say_their_interval() -> None:
    """A share from ten looks is told with its ends; one that was told without has none."""
    wait = Wait(
        place="step (env.py:3)", doing="host", phase="steady", time_fraction=0.4, low=0.2, high=0.64
    )
    cause = _first(_profile(waits=(wait,))).cause
    assert "step (env.py:3) takes 40% (20% to 64%) of the time" in cause
