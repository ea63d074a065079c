"""A verdict is as sure as what was read: the CPU beside pauses, SM activity, the GPU's maker."""

from typing import Any

import pytest

from planner.diagnosis.diagnose import diagnose
from planner.profile.kinds import JobKind
from planner.profile.model import Phase, Profile
from pricing.message import Message
from tests.planner.diagnosis.diagnosed import BUSY, SM, held
from tests.planner.factories import a_profile


def paused(**fields: Any) -> Profile:
    """A job that works for 600 s of 3,600 s, in three stretches; the others are pauses."""
    work = Phase(kind="steady", total_s=600.0, time_fraction=1 / 6, count=3, kernel_time=0.9)
    rest = Phase(kind="idle", total_s=3000.0, time_fraction=5 / 6, count=3, kernel_time=0.0)
    metrics = {BUSY: 0.15, "mem.used_gib": held(20.0)}
    return a_profile(metrics, kind=JobKind.UNKNOWN, phases=(work, rest), **fields)


@pytest.mark.parametrize(
    ("host", "confidence"),
    [(None, "likely"), ({"cpu_util": 0.05}, "measured"), ({"cpu_util": 0.7}, "likely")],
    ids=["unread", "at rest", "at work"],
)
def test_idle_pauses_are_measured_only_where_the_cpu_rests(host: Any, confidence: str) -> None:
    """A GPU at rest beside a CPU that nobody read, or that works, is not an idle machine."""
    verdict = diagnose(paused(host=host))[0]
    assert (verdict.code, verdict.confidence) == ("bursty-interactive", confidence)
    assert ("CPU was not recorded" in verdict.cause) == (host is None)


def test_a_served_model_at_rest_is_likely_idle_until_its_cpu_is_read() -> None:
    """Requests may be prepared on a CPU that nobody read."""
    readings = {BUSY: 0.01, "mem.used_gib": held(20.0), "power.board_w": 60.0}
    sure = {
        host: diagnose(
            a_profile(readings, kind="inference_online", host=host and {"cpu_util": host})
        )
        for host in (None, 0.02)
    }
    assert {host: found[0].confidence for host, found in sure.items()} == {
        None: "likely",
        0.02: "measured",
    }


@pytest.mark.parametrize(
    ("gpu", "busy", "board_w", "is_believed"),
    [
        ("T4", 0.03, 28.0, True),
        ("T4", 0.0, 28.0, True),
        ("L40S", 0.0, 102.0, True),
        ("H100-SXM-80GB", 0.0, 122.0, True),
        ("H100-SXM-80GB", 0.03, 300.0, True),
        ("H100-SXM-80GB", 0.03, 500.0, False),
        ("H100-SXM-80GB", 0.0, 200.0, False),
        ("T4", 0.0, 60.0, False),
    ],
)
def test_power_contradicts_a_reading_only_above_that_of_a_loaded_board_at_rest(
    gpu: str, busy: float, board_w: float, *, is_believed: bool
) -> None:
    """What was read as busy is believed below the power of work; 0, at the power of a context."""
    readings = {BUSY: busy, "mem.used_gib": held(2.0), "power.board_w": board_w}
    findings = diagnose(
        a_profile(readings, kind="inference_online", gpu=gpu, host={"cpu_util": 0.06})
    )
    assert (findings[0].code == "idle-held") is is_believed
    codes = {getattr(finding.cause, "code", "") for finding in findings}
    assert ("cause.reading-missing" in codes) is not is_believed


@pytest.mark.parametrize(
    ("metrics", "name"), [({SM: 0.2}, "SM active"), ({BUSY: 0.2, SM: 0.1}, "GPU busy")]
)
def test_sm_activity_is_called_so(metrics: dict[str, float], name: str) -> None:
    """A GPU whose utilization nobody read is not called 20 % busy."""
    verdict = diagnose(a_profile(metrics, kind="inference_online"))[0]
    assert verdict.code == "under-used-inference"
    assert next(reading.name for reading in verdict.evidence if reading.value == 0.2) == name


@pytest.mark.parametrize(
    ("gpu", "tool"),
    [("H100-SXM-80GB", "DCGM"), ("MI300X", "amd-smi"), ("Intel Max 1550", "xpu-smi")],
)
def test_what_tells_work_from_waiting_is_of_the_gpus_maker(gpu: str, tool: str) -> None:
    """DCGM reads NVIDIA's GPUs alone."""
    findings = diagnose(a_profile({BUSY: 0.95, "mem.used_gib": held(60.0)}, gpu=gpu))
    cause = next(f.cause for f in findings if f.code == "unmeasured")
    assert isinstance(cause, Message)
    named = [name for name in ("DCGM", "amd-smi", "xpu-smi") if name in cause]
    assert named == [tool]
