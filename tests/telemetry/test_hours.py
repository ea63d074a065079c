"""What a profile keeps of the hours of the day and week."""

import numpy as np
import pandas as pd
import pytest

from telemetry.profiling.build import _growth
from telemetry.profiling.window import ActiveWindow, points_of, use_by_hour

FIRST = 1_763_942_400.0  # Monday 2025-11-24 00:00 UTC


def rows(busy: np.ndarray, slot: str = "util.kernel_time", step_s: float = 300.0) -> pd.DataFrame:
    """Readings of one GPU from that Monday on."""
    return pd.DataFrame({"t_s": FIRST + step_s * np.arange(len(busy)), slot: busy})


def test_a_day_is_told_by_the_hour() -> None:
    """Half busy from 8 to 9 h, in turns 0 and 1: the mean is 0.5, and so is the spread."""
    busy = np.zeros(288)
    busy[96:108] = [0.0, 1.0] * 6
    use = use_by_hour([points_of(rows(busy))])
    assert use is not None
    assert (len(use.mean), use.mean[8], use.spread[8]) == (24, 0.5, 0.5)
    assert sum(use.mean) == 0.5


@pytest.mark.parametrize(("idle_days", "hours"), [((), 24), ((5, 6), 168)])
def test_a_week_is_told_where_its_days_differ(idle_days: tuple[int, ...], hours: int) -> None:
    """Idle Saturdays and Sundays are no chance; a week of like days is told by the hour of day."""
    busy = np.random.default_rng(3).normal(0.5, 0.1, 2016)
    for day in idle_days:
        busy[288 * day : 288 * (day + 1)] = 0.0
    use = use_by_hour([points_of(rows(busy))])
    assert use is not None
    assert len(use.mean) == hours
    assert hours == 24 or (use.mean[24 * 5 + 9] == 0.0 < use.mean[24 * 4 + 9])


def test_less_than_a_day_tells_no_hours() -> None:
    """Of 22 hours the hours of the day are not known; nor of a recording without load."""
    assert use_by_hour([points_of(rows(np.full(264, 0.5)))]) is None
    assert use_by_hour([points_of(rows(np.full(400, 0.5), "power.board_w"))]) is None


def test_readings_each_second_are_told_as_five_minutes() -> None:
    """A GPU that works every other second is half busy, and steadily."""
    busy = np.tile([0.0, 1.0], 43_200)
    use = use_by_hour([points_of(rows(busy, "util.sm_active", 1.0))])
    assert use is not None
    assert set(use.mean) == {0.5}
    assert set(use.spread) == {0.0}


def test_memory_read_at_one_instant_does_not_grow() -> None:
    """A third of the readings at one time has no slope: unknown, never NaN; spread out it has."""
    window = ActiveWindow(start_s=0, end_s=9, last_s=9, begin_s=0, whole_s=9, interval_s=1)
    used = [1.0, 1.1, 1.2, 2.0, 2.1, 2.2, 3.0, 3.1, 3.2]
    times = np.arange(9.0)
    grown = _growth(pd.DataFrame({"t_s": times, "ram_used_gib": used}), window)
    assert grown is not None
    assert grown.mean == 360.0
    times[6:] = 6.0
    assert _growth(pd.DataFrame({"t_s": times, "ram_used_gib": used}), window) is None
