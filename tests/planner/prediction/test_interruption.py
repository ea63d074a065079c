"""Interruptions: the closed form, replay on traces, deadlines, and published buckets."""

import math
import random
from dataclasses import replace
from pathlib import Path
from statistics import mean, median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.choice.candidate import misses_deadline, rate
from planner.choice.requirements import Requirements
from planner.models.interruption import (
    Availability,
    Billed,
    CheckpointCosts,
    checkpoint_every_s,
    checkpoint_interval_s,
    expected_billed,
    mean_up_from_monthly_share,
    mean_up_s,
    miss_probability,
    parse_trace,
    replay,
    replay_starts,
)
from pricing.catalog.catalog import load_catalog
from pricing.catalog.offer import Offer
from pricing.catalog.sizes import interruptions
from pricing.errors import InputError

HOUR_S = 3600.0
COST = CheckpointCosts(write_s=120.0, restart_s=360.0)
work_s = st.floats(min_value=60.0, max_value=30 * 24 * HOUR_S)
up_s = st.floats(min_value=HOUR_S, max_value=10_000 * HOUR_S)


def _asked(trace: Availability | None = None, **limits: Any) -> Requirements:
    """Return what was asked for: a trace of spot capacity, and limits."""
    return Requirements(checkpoints=COST, spot_trace=trace, **limits)


def _trace(pattern: str, tick_s: float = 60.0) -> Availability:
    return Availability(tick_s=tick_s, up=tuple(c == "1" for c in pattern))


def _expected(work: float, mean_up: float) -> Billed:
    """The closed form at the best interval."""
    return expected_billed(work, mean_up, COST, checkpoint_interval_s(mean_up, COST))


@given(work=work_s, mean_up=up_s)
def test_interruptions_only_add(work: float, mean_up: float) -> None:
    """Billed time is the work, the checkpoints and what is lost; never less than the work."""
    billed = _expected(work, mean_up)
    assert billed.total_s >= work
    assert billed.lost_s >= 0.0
    assert billed.total_s == pytest.approx(billed.work_s + billed.checkpoint_s + billed.lost_s)


@given(work=work_s, mean_up=up_s)
def test_rarer_interruptions_cost_less(work: float, mean_up: float) -> None:
    """Twice the mean time between interruptions never bills more."""
    often = _expected(work, mean_up).total_s
    assert _expected(work, 2 * mean_up).total_s <= often * (1 + 1e-9)


@given(mean_up=up_s, factor=st.floats(min_value=0.2, max_value=5.0))
def test_the_interval_is_near_the_best(mean_up: float, factor: float) -> None:
    """No other interval bills over 1 % less than the first-order optimum on long work."""
    work = 100 * mean_up
    best = checkpoint_interval_s(mean_up, COST)
    chosen = expected_billed(work, mean_up, COST, best).total_s
    assert chosen <= expected_billed(work, mean_up, COST, best * factor).total_s * 1.01


def test_work_that_never_ends_is_refused() -> None:
    """Interruptions faster than a checkpoint leave no time for work."""
    with pytest.raises(InputError, match="on-demand"):
        _expected(HOUR_S, 5.0)


@pytest.mark.parametrize(("share", "hours"), [(0.05, 14232.0), (0.2, 3271.4), (0.5, 1053.2)])
def test_a_monthly_share_is_a_mean_time(share: float, hours: float) -> None:
    """M = -730 h / ln(1 - f)."""
    assert mean_up_from_monthly_share(share) / HOUR_S == pytest.approx(hours, rel=1e-3)


# pattern of minutes; checkpoint and restart of one minute, 2 minutes between checkpoints
REPLAYS = {
    "never interrupted": ("1" * 20, 300.0, 8, 8, 0),  # 1 restart, 5 work, 2 checkpoints
    "waits for capacity": ("0" * 5 + "1" * 20, 300.0, 8, 13, 0),
    # 4 minutes: restart, 2 work, checkpoint; then restart, 3 work, 1 checkpoint
    "one interruption keeps the checkpoint": ("1111011111111", 300.0, 9, 10, 1),
    # 3 minutes: restart, 2 work, no checkpoint: all lost
    "one interruption loses the work": ("111011111111111", 300.0, 11, 12, 1),
}


@pytest.mark.parametrize("case", REPLAYS)
def test_a_replay_is_what_a_clock_would_show(case: str) -> None:
    """Minute by minute: billed time, wall time and interruptions."""
    pattern, work, billed_min, wall_min, interruptions_ = REPLAYS[case]
    cost = CheckpointCosts(write_s=60.0, restart_s=60.0)
    run = replay(_trace(pattern), work, cost, interval_s=120.0)
    assert run.billed.total_s / 60.0 == billed_min
    assert run.wall_s is not None
    assert run.wall_s / 60.0 == wall_min
    assert run.interruptions == interruptions_


def test_a_trace_that_ends_first_has_no_wall_time() -> None:
    """Work that the trace does not reach is unfinished, not finished at its end."""
    run = replay(_trace("1" * 5), HOUR_S, COST, interval_s=600.0)
    assert run.wall_s is None
    assert miss_probability((run,), math.inf) == 1.0


@given(pattern=st.text("01", min_size=10, max_size=400), work=st.floats(min_value=1, max_value=9e3))
def test_nothing_is_billed_while_nothing_is_held(pattern: str, work: float) -> None:
    """Billed time never exceeds the time with capacity, and never undercuts finished work."""
    trace = _trace(pattern)
    run = replay(trace, work, COST, interval_s=300.0)
    assert run.billed.total_s <= sum(trace.up) * trace.tick_s + 1e-6
    assert run.billed.lost_s >= -1e-6
    if run.wall_s is not None:
        assert run.billed.work_s == work


def test_a_deadline_needs_a_trace_and_enough_of_it() -> None:
    """Without a trace spot with a deadline is refused; with one, by the share of runs that miss."""
    assert misses_deadline(1.0, _asked(), 1) is None
    assert "trace" in (misses_deadline(1.0, _asked(deadline_h=10.0), 1) or ("", ""))[1]
    steady = _trace("1" * 60 * 24 * 4)
    assert misses_deadline(1.0, _asked(steady, deadline_h=3.0), 1) is None
    late = _asked(_trace("0" * 600 + "1" * 600), deadline_h=3.0)
    refused = misses_deadline(1.0, late, 1)
    assert refused is not None
    assert "chance to miss" in refused[1]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"metadata": {}, "data": []}', "[" * 10_000])
def test_another_file_is_no_trace(text: str) -> None:
    """The message shows the form that is wanted."""
    with pytest.raises(InputError, match="gap_seconds"):
        parse_trace(text, "t.json")


def test_published_buckets_are_read_per_region_and_size() -> None:
    """AWS's buckets become shares; the open one has no upper end; others publish nothing."""
    offers = {(o.provider, o.instance_type, o.region, o.purchase): o for o in load_catalog().offers}
    spot = [o for key, o in offers.items() if key[3] == "spot"]
    buckets = {o: interruptions(o.provider, o.instance_type, o.region) for o in spot}
    known = [bucket for bucket in buckets.values() if bucket is not None]
    assert {o.provider for o, bucket in buckets.items() if bucket} == {"aws"}
    assert any(bucket.high is None and bucket.low == 0.2 for bucket in known)
    assert all(0.0 <= b.low < (b.high or 1.0) for b in known)
    on_demand = next(o for o in offers.values() if o.purchase == "on_demand")
    assert rate(on_demand, _asked(), 1) is None


def test_the_interval_on_spot_is_the_machines() -> None:
    """Failures and interruptions add up as rates, and an hour of work is the most that is lost."""
    assert checkpoint_every_s(8, COST, 2 * HOUR_S) < checkpoint_every_s(8, COST, 4 * HOUR_S)
    assert checkpoint_every_s(8, COST, 1e9) == checkpoint_every_s(8, COST) == HOUR_S
    together = 1.0 / (1.0 / mean_up_s(8) + 1.0 / (2 * HOUR_S))
    assert checkpoint_every_s(8, COST, 2 * HOUR_S) == checkpoint_interval_s(together, COST)


def _spot_of_aws() -> Offer:
    """Return the first spot offer whose interruptions are published."""
    return next(
        o
        for o in load_catalog().offers
        if o.purchase == "spot" and interruptions(o.provider, o.instance_type, o.region)
    )


def test_a_bucket_gives_a_range_of_rates() -> None:
    """Rare, expected and often are in order, and the basis names bucket and source."""
    spot = _spot_of_aws()
    found = rate(spot, _asked(), 1)
    assert found is not None
    assert found.rare_s > found.mean_s > found.often_s
    assert "month" in found.basis
    assert found.billed(24.0, "low").total_s <= found.billed(24.0, "high").total_s


DAY_S = 24 * HOUR_S


def test_a_job_on_several_machines_stops_when_any_of_them_is_taken() -> None:
    """N machines are N times as often interrupted; taken all at once, as rarely as one."""
    spot = _spot_of_aws()
    for trace in (None, _trace("110" * 6000, 3600.0)):
        one, four = (rate(spot, _asked(trace), 8, machines) for machines in (1, 4))
        assert one is not None
        assert four is not None
        assert four.mean_s == one.mean_s / 4
        assert four.often_s == one.often_s / 4
        assert four.rare_s == one.rare_s
        assert four.interval_s <= one.interval_s
        assert "any of 4" in four.basis
        assert "any of" not in one.basis


@pytest.mark.parametrize("machines", [2, 8])
def test_the_law_of_several_machines_is_what_a_drawn_fleet_bills(machines: int) -> None:
    """Fleets drawn machine by machine, each taken on its own, bill what the closed form says."""
    up_s, work_s, tau_s = 200 * HOUR_S, 100 * HOUR_S, HOUR_S
    draw = random.Random(machines)  # noqa: S311 - a reproducible draw, no secret
    billed = [_drawn_fleet(draw, machines, up_s, work_s, tau_s) for _ in range(400)]
    expected = expected_billed(work_s, up_s / machines, COST, tau_s).total_s
    assert mean(billed) == pytest.approx(expected, rel=0.01)


def _drawn_fleet(
    draw: random.Random, machines: int, up_s: float, work_s: float, tau_s: float
) -> float:
    """Billed seconds of each of so many machines: all of them redo what one of them lost."""
    total_s, done_s = 0.0, 0.0
    while True:
        taken_s = min(draw.expovariate(1.0 / up_s) for _ in range(machines))
        left = math.ceil((work_s - done_s) / tau_s)
        at_end_s = (COST.restart_s if total_s else 0.0) + left * (tau_s + COST.write_s)
        if taken_s >= at_end_s:
            return total_s + at_end_s
        total_s += taken_s
        held_s = taken_s - COST.restart_s * (total_s > taken_s)
        done_s += max(0, int(held_s // (tau_s + COST.write_s))) * tau_s


DAY_S = 24 * HOUR_S


def _mean_billed(trace: Availability, interval_s: float) -> float:
    runs = replay_starts(trace, DAY_S, COST, interval_s=interval_s)
    return mean(run.billed.total_s for run in runs if run.wall_s is not None)


@pytest.fixture(scope="module")
def traces(shared: Path) -> list[Availability]:
    """Published 45-day availability traces."""
    found = sorted((shared / "datasets" / "spot").rglob("*.json"))
    return [parse_trace(path.read_text(encoding="utf-8"), path.name) for path in found]


def test_billed_hours_match_replay_with_the_traces_own_rate(traces: list[Availability]) -> None:
    """Median error of the closed form at most 3 % (a day's work, checkpoints of 2 min)."""
    errors = []
    for trace in traces:
        up = trace.mean_up_s or 0.0
        replayed = _mean_billed(trace, checkpoint_interval_s(up, COST))
        errors.append(abs(_expected(DAY_S, up).total_s / replayed - 1.0))
    assert median(errors) <= 0.03, errors


def test_billed_hours_are_forecast_from_the_first_half(traces: list[Availability]) -> None:
    """Median error at most 8 % when the rate of the first half meets the second."""
    errors = []
    for trace in traces:
        half = len(trace.up) // 2
        first, second = replace(trace, up=trace.up[:half]), replace(trace, up=trace.up[half:])
        up = first.mean_up_s or 0.0
        replayed = _mean_billed(second, checkpoint_interval_s(up, COST))
        errors.append(abs(_expected(DAY_S, up).total_s / replayed - 1.0))
    assert median(errors) <= 0.08, errors
