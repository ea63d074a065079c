"""Jobs share a GPU by what they take in each hour, not by their means over the week."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace

from planner.fleet.tenant import POINTS_ABOVE, HourlyLoad, peak_at, room_for, together, too_busy
from planner.profile.model import Profile, UseByHour
from telemetry.profiling.window import points_of, use_by_hour
from tests.planner.packing.test_four_to_one import job, packed

DAY = np.arange(2016) // 12 % 24
WEEK_S = 300.0 * np.arange(2016) + 1_763_942_400.0  # from a Monday


def by_hour(name: str, mean: Sequence[float], spread: float = 0.0, **fields: Any) -> Profile:
    """A job whose use by the hour was recorded."""
    asked = {"kind": "unknown", "busy": sum(mean) / len(mean)} | fields
    hours = UseByHour(mean=tuple(mean), spread=(spread,) * len(mean))
    return replace(job(name, **asked), by_hour=hours)


BY_DAY, BY_NIGHT = [0.6] * 12 + [0.0] * 12, [0.0] * 12 + [0.6] * 12


@pytest.mark.parametrize("kind", ["unknown", "training", "inference_online"])
@pytest.mark.parametrize(("second", "after"), [(BY_NIGHT, 1), (BY_DAY, 2)])
def test_jobs_busy_at_the_same_hours_do_not_share(
    kind: str, second: list[float], after: int
) -> None:
    """Two that take 60 % for half of the day share where the halves differ, whatever their kind."""
    fleet = packed(by_hour("a", BY_DAY, kind=kind), by_hour("b", second, kind=kind))
    assert fleet.gpus_after == after
    assert all("in hour 0 they would want 120%" in one.detail for one in fleet.unmoved)


@pytest.mark.parametrize(("second", "after"), [(0.0, 1), (0.05, 2)])
def test_a_full_hour_of_one_job_does_not_keep_others_out(second: float, after: int) -> None:
    """A job that takes 95 % by night shares with one of the day; one of 5 % by night stays out."""
    night = by_hour("night", [0.0] * 16 + [0.95] * 8, kind="unknown", busy=0.32)
    day = by_hour("day", [0.3] * 16 + [second] * 8, kind="unknown")
    assert packed(night, day).gpus_after == after


def test_a_day_and_a_week_are_added_up() -> None:
    """Of a week that is busy on its last day only, that day decides beside a job of every day."""
    week = [0.0] * 144 + [0.6] * 24
    assert packed(by_hour("a", week), by_hour("b", BY_DAY)).gpus_after == 2
    assert packed(by_hour("a", [0.0] * 156 + [0.6] * 12), by_hour("b", BY_DAY)).gpus_after == 1


def test_a_job_without_hours_counts_at_any_hour() -> None:
    """Beside 60 % by day a job that is 20 % busy at some time fits; one of 40 % does not."""
    flat = {"kind": "unknown"}
    assert packed(by_hour("a", BY_DAY), job("b", busy=0.2, **flat)).gpus_after == 1
    assert packed(by_hour("a", BY_DAY), job("b", busy=0.4, **flat)).gpus_after == 2


def test_speed_is_that_of_the_busiest_hour() -> None:
    """The low end beside a job that takes 40 % by day is that of 40 %, not of 20 %."""
    halves = packed(by_hour("a", [0.4] * 12 + [0.0] * 12), by_hour("b", [0.4] * 12 + [0.0] * 12))
    whole = packed(by_hour("a", [0.4] * 24), by_hour("b", [0.4] * 24))
    lows = [fleet.placements[0].speed["a"].low for fleet in (halves, whole)]
    assert lows[0] == pytest.approx(lows[1])


def test_a_group_within_the_sum_is_within_the_limits() -> None:
    """The sum that jobs are packed by admits no group that is too busy, whatever its spread."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        jobs = [
            HourlyLoad((m,), (v,)) for m, v in rng.uniform(0, (0.4, 0.06), (rng.integers(1, 9), 2))
        ]
        everyone, weight = together(jobs), rng.uniform(0.5, 4.0)
        pool = HourlyLoad(*((weight * one,) for (one,) in everyone))
        room = room_for(pool)
        summed = everyone.mean[0] + room.weight * everyone.variance[0]
        assert summed > room.most or too_busy(jobs) is None
        assert peak_at(everyone, 0) >= everyone.mean[0]


@pytest.mark.parametrize("seed", range(3))
def test_no_shared_gpu_is_too_full_too_often(seed: int) -> None:
    """Of drawn weeks of 24 jobs no GPU wants more than it has in over 5 % of its points."""
    rng = np.random.default_rng(seed)
    points = {}
    for number in range(24):
        level, share = rng.uniform(0.05, 0.5), rng.uniform(0.2, 1.0)
        awake = (DAY + rng.integers(0, 3)) % 24 < 12
        busy = np.where(rng.random(2016) < share, rng.normal(level, 0.1, 2016), 0.0) * awake
        points[f"j{number:02}"] = busy.clip(0.0, 1.0)
    fleet = packed(*(seen(name, busy) for name, busy in points.items()))
    assert fleet.gpus_lower_bound <= fleet.gpus_after < 24
    for placement in fleet.placements:
        wanted = np.sum([points[name] for name in placement.jobs], axis=0)
        assert (wanted > 1.0).mean() <= POINTS_ABOVE


def seen(name: str, busy: np.ndarray) -> Profile:
    """A job of which a week was recorded."""
    rows = pd.DataFrame({"t_s": WEEK_S, "util.kernel_time": busy})
    hours = use_by_hour([points_of(rows)])
    one = job(name, busy=float(busy.mean()), gib=2.0, kind="unknown")
    return replace(one, by_hour=hours)


SESSION = {"kind": "interactive", "gib": 65.0, "busy": 0.05}


def session(name: str, begin: int, end: int, days: int = 5) -> Profile:
    """A session of 65 GiB that people use from one hour to another, Monday to Friday."""
    week = [0.5 if begin <= hour < end else 0.0 for hour in range(24)] * days
    return by_hour(name, week + [0.0] * (168 - len(week)), **SESSION)


def test_sessions_that_are_used_at_other_hours_hold_a_gpu_in_turns() -> None:
    """9-12, 11-14 and 14-18 o'clock need two GPUs by hand, though 65 GiB and 65 fill any."""
    fleet = packed(session("a", 9, 12), session("b", 11, 14), session("c", 14, 18))
    assert (fleet.gpus_before, fleet.gpus_after, fleet.gpus_lower_bound) == (3, 2, 2)
    shared = next(gpu for gpu in fleet.placements if len(gpu.jobs) > 1)
    assert shared.mode == "timetable"
    assert "c" in shared.jobs


def test_a_pause_shorter_than_a_night_is_part_of_a_turn() -> None:
    """Who works at 9 and at 16 o'clock holds the GPU at noon, too; by night another may."""
    ends = [0.5 if hour in {9, 16} else 0.0 for hour in range(24)] * 5 + [0.0] * 48
    day = by_hour("day", ends, **SESSION)
    assert packed(day, session("noon", 12, 13)).gpus_after == 2
    assert packed(day, session("night", 20, 23)).gpus_after == 1


@pytest.mark.parametrize("kind", ["training", "inference_online", "unknown"])
def test_only_sessions_give_a_gpu_back(kind: str) -> None:
    """What holds its memory at all hours gets no timetable: a service must answer at any time."""
    other = by_hour("other", [0.0] * 168, **SESSION | {"kind": kind})
    assert packed(session("a", 9, 12), other).gpus_after == 2


def test_sessions_that_fit_at_once_need_no_timetable() -> None:
    """Two of 20 GiB share 80 GiB at all hours."""
    small = [replace(job(name, **SESSION | {"gib": 20.0}), by_hour=None) for name in "ab"]
    assert [gpu.mode for gpu in packed(*small).placements] == ["mps"]
