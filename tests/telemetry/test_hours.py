"""What a profile keeps of the hours of the day and week."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from planner.diagnosis.diagnose import diagnose
from planner.prediction.slices import DAY_S, recorded_s
from planner.profile.model import Profile
from telemetry.profiling.build import _growth
from telemetry.profiling.window import ActiveWindow, points_of, use_by_hour
from telemetry.readers.hints import Hints
from tests.telemetry.reading import read_source

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


def _day(folder: Path, busy: list[float], used_mib: list[int]) -> Path:
    """Write a day of one GPU, a reading in five minutes, as a table of Parquet and as CSV."""
    times = [datetime(2026, 11, 10, tzinfo=UTC) + timedelta(minutes=5 * i) for i in range(288)]
    frame = pd.DataFrame(
        {
            "timestamp": [time.strftime("%Y/%m/%d %H:%M:%S.000") for time in times],
            "index": 0,
            "name": "NVIDIA L4",
            "utilization.gpu [%]": busy,
            "memory.used [MiB]": used_mib,
        }
    )
    frame.to_csv(folder / "day.csv", index=False)
    table = frame.assign(timestamp=[time.timestamp() for time in times])
    table.to_parquet(folder / "day.parquet", index=False)
    return folder


def _profiles(folder: Path) -> list[Profile]:
    return [read_source(str(folder / name), Hints())[0] for name in ("day.csv", "day.parquet")]


@pytest.mark.parametrize("night", [1, 4, 6])
@pytest.mark.parametrize("first_hour", range(0, 24, 5))
def test_a_service_that_answers_at_night_is_not_left_on(
    night: int, first_hour: int, tmp_path: Path
) -> None:
    """40 % by day, a few percent by night, the model held: whenever the recording begins.

    The mean is that of the whole day, and nothing tells that nobody asks: it is never shut down.
    """
    hours = [(first_hour + i // 12) % 24 for i in range(288)]
    busy = [40 if 8 <= hour < 20 else night for hour in hours]
    for profile in _profiles(_day(tmp_path, busy, [5000] * 288)):
        assert profile.window is not None
        assert profile.window.idle_around_s == 0.0
        assert profile.mean("util.kernel_time") == pytest.approx((0.4 + night / 100) / 2)
        assert not any(phase.kind == "idle" for phase in profile.phases)
        actions = {action for finding in diagnose(profile) for action in finding.actions}
        assert "idle-shutdown" not in actions


@pytest.mark.parametrize(("load", "held_mib"), [(0, 20000), (0, 400), (3, 400)])
def test_a_machine_left_on_after_its_job_is(load: int, held_mib: int, tmp_path: Path) -> None:
    """12 of 24 h without a kernel, or with a display's few percent beside next to no memory."""
    busy, used = [80] * 144 + [load] * 144, [20000] * 144 + [held_mib] * 144
    logged, of_table = _profiles(_day(tmp_path, busy, used))
    assert logged.mean("util.kernel_time") == pytest.approx(0.8)
    if load == 0:  # what memory was given back is not asked of a table
        assert of_table.mean("util.kernel_time") == pytest.approx(0.8)
    busy[-1] = 1  # as nvidia-smi itself reads now and then
    assert _profiles(_day(tmp_path, busy, used))[0].window == logged.window
    assert logged.window is not None
    assert logged.window.idle_after_s == pytest.approx(43_200.0)
    assert "left-on" in {finding.code for finding in diagnose(logged)}
    assert recorded_s(logged) == pytest.approx(DAY_S)
