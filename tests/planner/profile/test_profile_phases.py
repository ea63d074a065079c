"""Phases: what the time of a recording went to."""

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from telemetry.profiling.phases import phases
from telemetry.recording.observed import Observed, Pause
from telemetry.recording.recording import GpuIdentity, Recording


def _merged(
    busy: list[float], cpu: float = 0.1, observed: Observed | None = None, interval_s: float = 1.0
) -> Recording:
    t_s = [interval_s * i for i in range(len(busy))]
    return Recording(
        samples=pd.DataFrame({"t_s": t_s, "gpu": "a", "util.kernel_time": busy}),
        host=pd.DataFrame({"t_s": t_s, "cpu_util": cpu}),
        gpus=(GpuIdentity(key="a"),),
        sources=(),
        absolute=True,
        timed=True,
        local_time=False,
        mig=False,
        work=None,
        host_ram_gib=None,
        observed=observed,
        notes=(),
    )


def _totals(merged: Recording) -> dict[str | None, float | None]:
    return {phase.kind: phase.total_s for phase in phases(merged)}


def _steps(first: int, last: int) -> pd.DataFrame:
    return pd.DataFrame({"t_s": [float(i) for i in range(first, last + 1)], "step_s": 1.0})


@pytest.mark.parametrize(
    ("name", "busy", "cpu", "expected"),
    [
        ("steady", [0.9] * 60, 0.1, {"steady": 60.0}),
        ("start-up", [0.0] * 20 + [0.9] * 40, 0.1, {"start-up": 20.0, "steady": 40.0}),
        ("imports", [0.0] * 20 + [0.9] * 40, 0.8, {"start-up": 20.0, "steady": 40.0}),
        ("preparation", [0.0] * 30 + [0.9] * 30, 0.8, {"data-preparation": 30.0, "steady": 30.0}),
        ("idle", [0.9] * 30 + [0.0] * 30, 0.1, {"steady": 30.0, "idle": 30.0}),
        ("short gaps", ([0.9] * 6 + [0.0] * 4) * 6, 0.1, {"steady": 60.0}),
    ],
)
def test_load_alone_tells_phases(
    name: str, busy: list[float], cpu: float, expected: dict[str, float]
) -> None:
    """Quiet stretches of ten seconds count; shorter ones belong to the work around them."""
    assert _totals(_merged(busy, cpu)) == expected, name


def test_timed_pauses_are_taken_from_the_probe_to_the_millisecond() -> None:
    """Evaluation and checkpoints have their own lengths, and steady is what is left."""
    observed = Observed(
        steps=_steps(5, 59),
        pauses=(
            Pause(kind="checkpoint", start_s=20.0, length_s=0.25),
            Pause(kind="checkpoint", start_s=40.0, length_s=0.25),
            Pause(kind="evaluation", start_s=50.0, length_s=4.5),
        ),
    )
    found = {phase.kind: phase for phase in phases(_merged([0.0] * 4 + [0.9] * 56, 0.1, observed))}
    assert found["checkpoint"].total_s == 0.5
    assert found["checkpoint"].count == 2
    assert found["evaluation"].total_s == 4.5
    assert found["start-up"].total_s == 4.0
    assert found["steady"].total_s == pytest.approx(56.0 - 5.0)


def test_steps_that_wait_for_data_are_steady_not_idle() -> None:
    """A GPU that starves inside a step is not an idle phase: the steps tell that the job works."""
    observed = Observed(steps=pd.DataFrame({"t_s": [30.0, 59.0], "step_s": [30.0, 29.0]}))
    assert _totals(_merged([0.01] * 60, 0.1, observed)) == {"steady": 60.0}


def test_after_the_last_step_work_is_teardown_and_quiet_is_idle() -> None:
    """What follows training is told by the load."""
    observed = Observed(steps=_steps(1, 19))
    found = _totals(_merged([0.9] * 40 + [0.0] * 20, 0.1, observed))
    assert found == {"steady": 20.0, "teardown": 20.0, "idle": 20.0}


def test_a_snapshot_has_no_phases() -> None:
    """One instant tells nothing about time."""
    assert phases(_merged([0.5])) == ()


def test_a_long_quiet_time_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work for a log that idles grows with its length, not with the square of it."""
    judged: list[int] = []
    real = np.nan_to_num

    def counted(values: NDArray[np.float64], nan: float = 0.0) -> NDArray[np.float64]:
        judged.append(len(values))
        return np.asarray(real(values, nan=nan), dtype=np.float64)

    monkeypatch.setattr("telemetry.profiling.phases.np.nan_to_num", counted)
    totals = _totals(_merged([0.9] * 100 + [0.0] * 3000 + [0.9] * 100))
    assert totals == {"steady": 200.0, "idle": 3000.0}
    assert len(judged) < 20  # 3,000 and more where each reading asks for itself
