"""A trace of jobs, others drawn from it, and how long the jobs wait for the GPUs of one pool."""

import heapq
import math
import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from pricing.errors import InputError

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedJob:
    """One job of a trace.

    Attributes:
        submit_s: when it was submitted, seconds from any fixed moment.
        duration_s: how long it ran, seconds, > 0.
        gpus: GPUs that it held, >= 1.
        limit_s: how long its user said it would run at most, seconds; None: not said.
    """

    submit_s: float
    duration_s: float
    gpus: int
    limit_s: float | None = None

    def __post_init__(self) -> None:
        if not (self.duration_s > 0 and self.gpus >= 1):
            raise InputError(
                f"a job of {self.duration_s:g} s on {self.gpus} GPUs cannot be replayed."
            )

    @property
    def expected_s(self) -> float:
        """How long a scheduler would expect it to run: its limit, else as long as it did."""
        return self.duration_s if self.limit_s is None else max(self.limit_s, self.duration_s)


@dataclass(frozen=True, slots=True)
class JobTrace:
    """Jobs in order of their submission; the first one is submitted at second 0.

    Raises:
        InputError: there is no job.
    """

    jobs: tuple[TracedJob, ...]

    def __post_init__(self) -> None:
        if not self.jobs:
            raise InputError("the trace holds no job that ran on a GPU.")

    @property
    def span_s(self) -> float:
        """From the first submission to the last one, in seconds, at least a second.

        Where a job lasts longer than that, to the end of the last one if none waits.
        """
        submitted_s = max(self.jobs[-1].submit_s, 1.0)
        if submitted_s >= self.longest_s:
            return submitted_s
        return max(job.submit_s + job.duration_s for job in self.jobs)

    @property
    def longest_s(self) -> float:
        """How long the longest job runs, in seconds."""
        return max(job.duration_s for job in self.jobs)

    @property
    def load_gpus(self) -> float:
        """GPUs that are busy on average: GPU-seconds over `span_s`."""
        return sum(job.duration_s * job.gpus for job in self.jobs) / self.span_s

    @property
    def widest(self) -> int:
        """The most GPUs that one job holds."""
        return max(job.gpus for job in self.jobs)

    def only(self, fewest: int, largest: int) -> "JobTrace":
        """Return the jobs that hold so many GPUs.

        Raises:
            InputError: there is none.
        """
        chosen = [job for job in self.jobs if fewest <= job.gpus <= largest]
        if not chosen:
            raise InputError(f"no job of the trace holds {fewest} to {largest} GPUs.")
        return ordered(chosen)


def ordered(jobs: Sequence[TracedJob]) -> JobTrace:
    """Return a trace of jobs in any order, with the first submission at second 0."""
    first = min((job.submit_s for job in jobs), default=0.0)
    moved = (
        TracedJob(
            submit_s=job.submit_s - first,
            duration_s=job.duration_s,
            gpus=job.gpus,
            limit_s=job.limit_s,
        )
        for job in jobs
    )
    return JobTrace(tuple(sorted(moved, key=lambda job: job.submit_s)))


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReading:
    """What a file of jobs holds.

    Attributes:
        trace: its jobs.
        rows: rows of the file, header left out.
        dropped: rows that cannot be replayed, by reason.
        waits_s: how long each job really waited, where the file has submission and start.
    """

    trace: JobTrace
    rows: int
    dropped: Mapping[str, int]
    waits_s: tuple[float, ...]


_WEEK_D = 7
_FEWEST_BLOCKS = 4
"""Fewer weeks, or days, than that say nothing of how weeks, or days, differ (our own limit)."""


def block_days(trace: JobTrace) -> int | None:
    """Return 7 where the trace holds at least four weeks, 1 where four days, else None."""
    days = trace.span_s / DAY_S
    fitting = (size for size in (_WEEK_D, 1) if days >= _FEWEST_BLOCKS * size)
    return next(fitting, None)


def drawn_traces(trace: JobTrace, draws: int, seed: int = 0) -> Iterator[JobTrace]:
    """Yield `draws` traces as long as this one, their blocks drawn with replacement.

    Jobs keep their hour, their duration and their neighbours of the same week, so that the bursts
    of a week stay together. The same seed draws the same traces. Yields nothing where the trace is
    too short for blocks.
    """
    days = block_days(trace)
    if days is None:
        return
    block_s = days * DAY_S
    blocks: list[list[TracedJob]] = [[] for _ in range(int(trace.span_s // block_s) + 1)]
    for job in trace.jobs:
        blocks[int(job.submit_s // block_s)].append(job)
    if trace.span_s % block_s < block_s / 2:
        blocks.pop()  # a stub would be drawn as if it were a whole quiet week
    chance = random.Random(seed)  # noqa: S311 - a simulation, the same each time
    for _ in range(draws):
        jobs: list[TracedJob] = []
        for index in range(len(blocks)):
            source = chance.randrange(len(blocks))
            moved = (index - source) * block_s
            jobs += (replace(job, submit_s=job.submit_s + moved) for job in blocks[source])
        if jobs:
            yield JobTrace(tuple(jobs))


@dataclass(frozen=True, slots=True, kw_only=True)
class ErlangWait:
    """How long a job waits by Erlang's formula, in seconds.

    Attributes:
        mean_s: of all jobs.
        p95_s: of 95 % of them at most.
    """

    mean_s: float
    p95_s: float


def erlang_wait(load_gpus: float, mean_duration_s: float, gpus: int) -> ErlangWait | None:
    """Return the waits of M/M/c: jobs at random, durations exponential (Erlang 1917, formula C).

    Args:
        load_gpus: GPUs that are busy on average.
        mean_duration_s: of a job, weighted by its GPUs.
        gpus: of the pool.

    Returns:
        None where the load is as large as the pool: the queue grows without end.
    """
    if load_gpus >= gpus:
        return None
    blocked = 1.0  # Erlang B by its recursion, which does not overflow
    for servers in range(1, gpus + 1):
        blocked = load_gpus * blocked / (servers + load_gpus * blocked)
    waiting = gpus * blocked / (gpus - load_gpus * (1 - blocked))
    rate = (gpus - load_gpus) / mean_duration_s  # the wait of those who wait is exponential
    p95 = math.log(waiting / 0.05) / rate if waiting > 0.05 else 0.0  # noqa: PLR2004 - 95 %
    return ErlangWait(mean_s=waiting / rate, p95_s=p95)


Order = Literal["backfill", "fcfs"]
ORDERS: tuple[Order, ...] = ("backfill", "fcfs")
BACKFILL_DEPTH = 500
"""Waiting jobs that are looked at for a gap; schedulers have such a limit, too (ours is ours)."""


def waits(jobs: Sequence[TracedJob], gpus: int, order: Order) -> list[float | None]:
    """Return how long each job waits for its GPUs, in seconds; None: wider than the pool.

    The pool is empty at the start, a job runs as long as it did in the trace, and no job is moved
    or interrupted. `fcfs`: nobody overtakes. `backfill` (EASY, Lifka 1995): a later job may start
    in a gap if the first one that waits is not expected to start later for it.

    Args:
        jobs: in order of submission.
        gpus: of the pool, >= 1; any job can run on any of them.
        order: who is served next.
    """
    pool = _Pool(jobs, gpus)
    arriving = deque(index for index, job in enumerate(jobs) if job.gpus <= gpus)
    while arriving or pool.queue:
        ended = pool.running[0][0] if pool.queue and pool.running else float("inf")
        now = min(ended, jobs[arriving[0]].submit_s) if arriving else ended
        pool.end_until(now)
        while arriving and jobs[arriving[0]].submit_s <= now:
            pool.queue.append(arriving.popleft())
        pool.serve(now)
        if order == "backfill" and pool.free and len(pool.queue) > 1:
            pool.fill_gaps(now)
    return pool.waited


class _Pool:
    """GPUs, who holds them and who waits; plain lists, for this is the inner loop."""

    def __init__(self, jobs: Sequence[TracedJob], gpus: int) -> None:
        self.free = gpus
        self.running: list[tuple[float, int, float]] = []  # end, GPUs, expected end
        self.queue = deque[int]()
        self.waited: list[float | None] = [None] * len(jobs)
        self._submit_s = [job.submit_s for job in jobs]
        self._duration_s = [job.duration_s for job in jobs]
        self._expected_s = [job.expected_s for job in jobs]
        self._gpus = [job.gpus for job in jobs]

    def end_until(self, now: float) -> None:
        """Take back the GPUs of jobs that have ended."""
        while self.running and self.running[0][0] <= now:
            self.free += heapq.heappop(self.running)[1]

    def serve(self, now: float) -> None:
        """Start those who waited longest, until one does not fit."""
        while self.queue and self._gpus[self.queue[0]] <= self.free:
            self._start(self.queue.popleft(), now)

    def fill_gaps(self, now: float) -> None:
        """Start later jobs in the gap before the first one, which does not fit."""
        gpus, free = self._gpus, self.free
        fitting = [job for job in islice(self.queue, 1, BACKFILL_DEPTH + 1) if gpus[job] <= free]
        if not fitting:
            return
        due, spare = self._reserved(gpus[self.queue[0]], now)
        for job in fitting:
            if gpus[job] > self.free:
                continue
            if now + self._expected_s[job] > due:
                if gpus[job] > spare:
                    continue
                spare -= gpus[job]
            self._start(job, now)
            self.queue.remove(job)

    def _start(self, job: int, now: float) -> None:
        self.free -= self._gpus[job]
        self.waited[job] = max(0.0, now - self._submit_s[job])
        end, expected = now + self._duration_s[job], now + self._expected_s[job]
        heapq.heappush(self.running, (end, self._gpus[job], expected))

    def _reserved(self, needed: int, now: float) -> tuple[float, int]:
        """Return when `wanted` GPUs are expected to be free, and how many are left over then."""
        free = self.free
        ends = [(max(expected, now), gpus) for _, gpus, expected in self.running]
        heapq.heapify(ends)
        while ends:
            expected, gpus = heapq.heappop(ends)
            free += gpus
            if free >= needed:
                return expected, free - needed
        raise AssertionError("a job wider than its pool is never queued")
