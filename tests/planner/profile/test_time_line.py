"""The time line of a recording: few points, time-weighted, in the phase that it was in."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.formats.samples import observed_steps, step_row
from telemetry.profiling.phases import TimeLine, time_line
from telemetry.profiling.window import durations
from telemetry.recording.observed import Observed

LOAD = "util.kernel_time"


def _samples(busy: list[float], gpu: str = "0", step_s: float = 1.0) -> pd.DataFrame:
    return pd.DataFrame({"t_s": [step_s * i for i in range(len(busy))], "gpu": gpu, LOAD: busy})


def _drawn(samples: pd.DataFrame, **more: object) -> TimeLine:
    line = time_line(samples, **more)  # type: ignore[arg-type]
    assert line is not None
    return line


def test_a_long_recording_keeps_its_mean_in_400_points() -> None:
    """100,000 readings are 400 points, each the mean of what was read in it."""
    busy = np.random.default_rng(3).random(100_000)
    line = _drawn(_samples(list(busy)))
    assert len(line.busy) == len(line.phases) == 400
    assert line.busy[7] == pytest.approx(busy[1750:2000].mean(), abs=0.001)
    assert line.point_s == 250.0


@given(st.lists(st.tuples(st.floats(0.01, 100.0), st.floats(0.0, 1.0)), min_size=2, max_size=60))
def test_points_hold_the_time_that_readings_stood(read: list[tuple[float, float]]) -> None:
    """However far apart readings lie: no point is outside what was read, none beyond the most."""
    t_s = np.cumsum([gap for gap, _ in read])
    samples = pd.DataFrame({"t_s": t_s, "gpu": "0", LOAD: [busy for _, busy in read]})
    line = _drawn(samples, points=7)
    known = [one for one in line.busy if one is not None]
    assert len(line.busy) <= 7
    assert min(samples[LOAD]) - 0.001 <= min(known) <= max(known) <= max(samples[LOAD]) + 0.001
    length = float(t_s[-1] - t_s[0] + durations(t_s)[-1])
    assert line.point_s * len(line.busy) == pytest.approx(length, rel=0.001, abs=0.001)


def test_a_gap_is_unknown_and_not_idle() -> None:
    """Nobody knows what a GPU did while nothing was read: the point is None, not 0."""
    early, late = _samples([0.9] * 50), _samples([0.9] * 50).assign(t_s=lambda f: f.t_s + 1000)
    line = _drawn(pd.concat([early, late]), points=20)
    assert line.busy[0] == line.busy[-1] == 0.9
    assert line.busy[10] is None
    assert line.phases[10] is None


def test_gpus_are_a_mean_and_its_ends() -> None:
    """Of two GPUs the mean, the less and the more busy one are drawn, whatever their order."""
    line = _drawn(pd.concat([_samples([0.8] * 20, "1"), _samples([0.2] * 20, "0")]))
    assert (line.gpus, line.busy[3], line.least[3], line.most[3]) == (2, 0.5, 0.2, 0.8)
    assert line.host == ()


def _observed(lines: list[dict[str, float]]) -> Observed:
    return observed_steps([row for line in lines if (row := step_row(json.dumps(line)))])


def test_phases_are_those_of_the_profile() -> None:
    """Quiet before the first step is start-up; an evaluation lies before the steps of its line."""
    lines = [{"t_s": float(t), "step": t, "n": 1, "step_s": 1.0} for t in range(21, 61)]
    lines.append({"t_s": 81.0, "step": 61, "n": 1, "step_s": 1.0, "evaluation_s": 20.0})
    host = pd.DataFrame({"t_s": [float(t) for t in range(82)], "cpu_util": 0.25})
    line = _drawn(_samples([0.0] * 20 + [0.9] * 62), host=host, observed=_observed(lines))
    assert [line.phases[t] for t in (5, 40, 70, 81)] == [
        "start-up",
        "steady",
        "evaluation",
        "steady",
    ]
    assert line.host[3] == 0.25


def test_a_line_of_several_steps_is_their_sum() -> None:
    """Means of 10 steps are taken 10 times, and a checkpoint lies where they begin."""
    seen = _observed([{"t_s": 100.0, "n": 10, "step_s": 2.0, "checkpoint_s": 0.5}])
    assert seen.steps is not None
    assert seen.steps["step_s"].tolist() == [20.0]
    assert [(p.kind, p.start_s, p.length_s) for p in seen.pauses] == [("checkpoint", 80.0, 5.0)]


@pytest.mark.parametrize(
    "samples",
    [_samples([]), _samples([0.5]), _samples([float("nan")] * 9)],
    ids=["none", "one", "nan"],
)
def test_without_load_over_time_there_is_no_line(samples: pd.DataFrame) -> None:
    """Nothing, one instant, or nothing but gaps is no line."""
    assert time_line(samples) is None
