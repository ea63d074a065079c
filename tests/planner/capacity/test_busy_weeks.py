"""Drawn traces are whole weeks of the trace in another order."""

from collections import Counter

import pytest

from planner.capacity.queueing import DAY_S, JobTrace, TracedJob, block_days, drawn_traces


def _trace(days: int) -> JobTrace:
    """Return one job a day, and a burst of fifty on the ninth, each known by its seconds."""
    each = [TracedJob(submit_s=day * DAY_S, duration_s=60 + day, gpus=1) for day in range(days + 1)]
    burst = [TracedJob(submit_s=8 * DAY_S + 1, duration_s=9000, gpus=1)] * 50 if days > 8 else []
    return JobTrace(tuple(sorted((*each, *burst), key=lambda job: job.submit_s)))


@pytest.mark.parametrize(("days", "expected"), [(3, None), (4, 1), (27, 1), (28, 7), (90, 7)])
def test_blocks_are_weeks_where_there_are_four(days: int, expected: int | None) -> None:
    """Weeks from four weeks on, days from four days on, else nothing is drawn."""
    trace = _trace(days)
    assert block_days(trace) == expected
    assert len(list(drawn_traces(trace, 3))) == (0 if expected is None else 3)


def test_a_burst_stays_together() -> None:
    """The fifty jobs of one minute come all at once as often as their week is drawn."""
    seen = set()
    for drawn in drawn_traces(_trace(56), 30):
        at = Counter(job.submit_s for job in drawn.jobs if job.duration_s == 9000)
        assert set(at.values()) <= {50}
        assert list(drawn.jobs) == sorted(drawn.jobs, key=lambda job: job.submit_s)
        seen.add(len(at))
    assert len(seen) > 1  # some weeks are drawn twice, some never


def test_the_same_traces_are_drawn_again() -> None:
    """Two runs say the same."""
    trace = _trace(56)
    assert list(drawn_traces(trace, 5)) == list(drawn_traces(trace, 5))
