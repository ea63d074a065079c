"""Jobs wait for GPUs as they would: against a slow oracle, the textbook and hand-made cases."""

import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.capacity.queueing import ORDERS, Order, TracedJob, erlang_wait, ordered, waits

POOL = 4


def _job(submit: float, duration: float, gpus: int, limit: float | None = None) -> TracedJob:
    return TracedJob(submit_s=submit, duration_s=duration, gpus=gpus, limit_s=limit)


JOBS = st.lists(
    st.builds(_job, st.integers(0, 40), st.integers(1, 30), st.integers(1, POOL + 1)),
    min_size=1,
    max_size=25,
).map(lambda jobs: ordered(jobs).jobs)


def _first_come(jobs: tuple[TracedJob, ...], gpus: int) -> list[float | None]:
    """Serve in order, each at the earliest second at which enough GPUs are free."""
    held: list[tuple[float, float, int]] = []
    found: list[float | None] = []
    earliest = 0.0
    for job in jobs:
        if job.gpus > gpus:
            found.append(None)
            continue
        now = max(job.submit_s, earliest)
        while gpus - sum(n for start, end, n in held if start <= now < end) < job.gpus:
            now = min(end for _, end, _ in held if end > now)
        held.append((now, now + job.duration_s, job.gpus))
        earliest = now
        found.append(now - job.submit_s)
    return found


@given(JOBS)
def test_first_come_first_served_is_exact(jobs: tuple[TracedJob, ...]) -> None:
    """The waits are those of an oracle that looks for the earliest second, job by job."""
    assert waits(jobs, POOL, "fcfs") == _first_come(jobs, POOL)


@given(JOBS, st.sampled_from(ORDERS))
def test_a_pool_never_holds_more_than_it_has(jobs: tuple[TracedJob, ...], order: Order) -> None:
    """At no second do running jobs hold more GPUs than there are, and each that fits runs once."""
    found = waits(jobs, POOL, order)
    spans = [
        (job.submit_s + wait, job.submit_s + wait + job.duration_s, job.gpus)
        for job, wait in zip(jobs, found, strict=True)
        if wait is not None
    ]
    assert all((wait is None) == (job.gpus > POOL) for job, wait in zip(jobs, found, strict=True))
    for start, _, _ in spans:
        assert sum(gpus for begin, end, gpus in spans if begin <= start < end) <= POOL


@given(JOBS)
def test_a_gap_is_filled_without_delaying_the_first_who_waits(jobs: tuple[TracedJob, ...]) -> None:
    """With durations known exactly, the first job that has to wait starts no later by backfill."""
    plain, filled = waits(jobs, POOL, "fcfs"), waits(jobs, POOL, "backfill")
    first = next((n for n, wait in enumerate(plain) if wait), None)
    if first is not None:
        assert filled[first] == plain[first]


@pytest.mark.parametrize(
    ("order", "limit", "expected"),
    [
        ("fcfs", None, [0, 9, 18]),  # nobody overtakes
        ("backfill", None, [0, 9, 0]),  # 5 s fit into the gap of 9 s
        ("backfill", 20, [0, 9, 18]),  # its user said 20 s: it might hold up the second
    ],
)
def test_a_small_job_fills_a_gap(order: Order, limit: float | None, expected: list[float]) -> None:
    """A short job overtakes a wide one where its stated limit says that it will be gone in time."""
    jobs = (_job(0, 10, 3), _job(1, 10, 4), _job(2, 5, 1, limit))
    assert waits(jobs, POOL, order) == expected


@pytest.mark.parametrize("gpus", [4, 8])
def test_random_jobs_wait_as_the_textbook_says(gpus: int) -> None:
    """With jobs at random and exponential durations the mean is Erlang's within 10 %."""
    chance, now, jobs = random.Random(1), 0.0, []  # noqa: S311 - a simulation
    for _ in range(200_000):
        now += chance.expovariate(0.6 * gpus / 100)
        jobs.append(_job(now, chance.expovariate(1 / 100) + 1e-9, 1))
    trace = ordered(jobs)
    found = [wait or 0.0 for wait in waits(trace.jobs, gpus, "fcfs")]
    expected = erlang_wait(0.6 * gpus, 100, gpus)
    assert expected is not None
    assert fmean(found) == pytest.approx(expected.mean_s, rel=0.1)
    assert sorted(found)[int(0.95 * len(found))] == pytest.approx(expected.p95_s, rel=0.1)


def test_a_pool_smaller_than_its_load_has_no_textbook_wait() -> None:
    """The formula is silent where the queue grows without end."""
    assert erlang_wait(8.0, 100, 8) is None
