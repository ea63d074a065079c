"""What is not steady state is found and told apart: slow first steps, memory that grows."""

import numpy as np
import pandas as pd
import pytest

from telemetry.profiling.build import _growth
from telemetry.profiling.steps import early_steps
from telemetry.profiling.window import ActiveWindow
from telemetry.recording.observed import STEP_COLUMNS, Observed


def _observed(*lengths_s: float) -> Observed:
    frame = pd.DataFrame(
        dict.fromkeys(STEP_COLUMNS, 0.0) | {"step_s": lengths_s, "n": 1.0},
        columns=list(STEP_COLUMNS),
    )
    frame["t_s"] = 1000.0 + np.cumsum(lengths_s)
    return Observed(steps=frame, step_count=len(lengths_s))


def test_a_first_epoch_that_fills_a_cache_is_told_apart() -> None:
    """100 steps of 26.5 ms, then 300 of 4 ms: the change is where it was made."""
    early = early_steps(_observed(0.5, *[0.0265] * 100, *[0.004] * 300))
    assert early is not None
    assert (early.count, round(early.mean_s, 4), round(early.later_s, 4)) == (100, 0.0265, 0.004)
    assert early.until_s == pytest.approx(1000.0 + 0.5 + 100 * 0.0265)


STEADY = {
    "even": [0.01] * 200,
    "noise": list(np.random.default_rng(1).lognormal(-4.6, 0.3, 300)),
    "stalls now and then": ([0.01] * 49 + [1.0]) * 4,
    "slower in the end": [0.004] * 200 + [0.03] * 200,
    "every tenth is long": ([0.01] * 9 + [0.05]) * 40,
}


@pytest.mark.parametrize("name", STEADY)
def test_a_steady_loop_has_no_early_steps(name: str) -> None:
    """Noise, stalls and a loop that becomes slower are not a slow start."""
    assert early_steps(_observed(0.5, *STEADY[name])) is None


RAM = {
    "leak": (lambda t: 4.0 + t / 600.0, 6.0),
    "level": (lambda t: 4.0 + 0.0 * t, None),
    "fills a cache": (lambda t: 4.0 + 4.0 * (1.0 - np.exp(-t / 60.0)), None),
    "saw": (lambda t: 4.0 + (t % 60.0) / 60.0, None),
}


@pytest.mark.parametrize("name", RAM)
def test_memory_that_does_not_level_off_is_a_leak(name: str) -> None:
    """10 minutes: 1 GiB in 600 s is 6 GiB an hour; what levels off or falls again is none."""
    t_s = np.arange(0.0, 600.0, 1.0)
    law, expected = RAM[name]
    noise = np.random.default_rng(2).normal(0.0, 0.003, len(t_s))
    host = pd.DataFrame({"t_s": t_s, "ram_used_gib": law(t_s) + noise})
    window = ActiveWindow(
        start_s=0.0, end_s=600.0, last_s=600.0, begin_s=0.0, whole_s=600.0, interval_s=1.0
    )
    grown = _growth(host, window)
    assert (grown and grown.mean) == (expected and pytest.approx(expected, rel=0.05))
