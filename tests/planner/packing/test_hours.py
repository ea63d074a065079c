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
