"""Lets the jobs of a trace wait for the GPUs of one pool, event by event."""

import heapq
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Literal

from planner.capacity.job_trace import TracedJob

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

    def _reserved(self, wanted: int, now: float) -> tuple[float, int]:
        """Return when `wanted` GPUs are expected to be free, and how many are left over then."""
        free = self.free
        ends = [(max(expected, now), gpus) for _, gpus, expected in self.running]
        heapq.heapify(ends)
        while ends:
            expected, gpus = heapq.heappop(ends)
            free += gpus
            if free >= wanted:
                return expected, free - wanted
        raise AssertionError("a job wider than its pool is never queued")
