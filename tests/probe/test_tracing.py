"""A trace of some steps: operators by their own time, idle gaps by what the host did."""

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from gpucost.profiling.profile_writer import _traced
from planner.profile.model import Profile
from planner.profile.trials import TracedSteps, TraceRow
from telemetry.probe.path.gpucost_probe.tracing import _Seen
from telemetry.recording.events import together


def _event(name: str, begin_us: float, end_us: float, own_us: float = 0.0, **more: Any) -> Any:
    return SimpleNamespace(
        name=name,
        device_type=more.get("device", "DeviceType.CPU"),
        time_range=SimpleNamespace(start=begin_us, end=end_us),
        self_cpu_time_total=own_us or end_us - begin_us,
        self_device_time_total=more.get("device_us", 0.0),
    )


def test_on_the_cpu_a_gap_lies_between_operators() -> None:
    """Two of 100 us, a gap of 300 in a loader and one of 100 before the next: worked out by hand.

    Gaps below 20 us are idle, too, but get no row; spans around operators are none themselves.
    """
    seen = _Seen([
        _event("aten::mm", 0, 100),
        _event("enumerate(DataLoader)#_SingleProcess.__next__", 90, 420),
        _event("aten::add", 400, 500),
        _event("aten::mm", 600, 700),
        _event("aten::mm", 710, 720),
    ])  # fmt: skip
    assert (seen.device, seen.idle_us) == ("cpu", 300 + 100 + 10)
    assert seen.rows == [
        ("operator", "aten::mm", 3, 210),
        ("operator", "aten::add", 1, 100),
        ("idle", "in enumerate(DataLoader)", 1, 300),
        ("idle", "before aten::mm", 1, 100),
    ]


def test_on_a_gpu_its_own_time_counts_and_the_host_names_the_gap() -> None:
    """Kernels make the time of operators; what the host ran around a gap names it."""
    gpu = "DeviceType.CUDA"
    seen = _Seen([
        _event("aten::mm", 0, 10, device_us=80.0),
        _event("gemm", 20, 100, device=gpu),
        _event("aten::item", 90, 400, device_us=5.0),
        _event("copy", 350, 355, device=gpu),
    ])  # fmt: skip
    assert (seen.device, seen.idle_us) == ("gpu", 250)
    assert seen.rows == [
        ("operator", "aten::mm", 1, 80.0),
        ("operator", "aten::item", 1, 5.0),
        ("idle", "in aten::item", 1, 250),
    ]


def test_the_event_becomes_a_table_of_shares() -> None:
    """2 steps of 50 ms, of which an operator took 60: 60 %, 30 ms a step, 2 calls a step."""
    rows = [["operator", "aten::mm", 4, 0.06], ["idle", "before aten::mm", 2, 0.01]]
    event = {"event": "trace", "t_s": 1.0, "process": "1-1", "rows": rows}
    told = together([{**event, "steps": 2, "s": 0.1, "device": "cpu", "idle_s": 0.02}])
    trace = told.trace
    assert isinstance(trace, TracedSteps)
    assert trace.rows[0] == TraceRow(kind="operator", name="aten::mm", count=4, seconds=0.06)
    head, _, operator, idle = trace.table
    assert head.endswith("50 ms each; the CPU ran no operator for 20% of it")
    assert operator.split() == ["operator", "60.0%", "30", "2", "aten::mm"]
    assert idle.split() == ["idle", "10.0%", "5", "1", "before", "aten::mm"]


@pytest.mark.parametrize(
    ("framework", "words"),
    [
        ("pytorch 2.13", "0 optimizer steps, and it begins at the 10th"),
        ("jax 0.7", "jax.profiler.trace"),
        ("keras 3.9", "profile_batch"),
        (None, "nsys profile"),
    ],
)
def test_what_was_not_traced_says_what_to_run(framework: str | None, words: str) -> None:
    """Without a step of PyTorch there is one sentence, with the way of that framework."""
    profile = Profile()
    (sentence,) = _traced(replace(profile, job=replace(profile.job, framework=framework)))
    assert words in sentence
