"""Draws other traces from one: whole weeks (or days) of it in another order, some of them twice."""

import random
from collections.abc import Iterator
from dataclasses import replace

from planner.capacity.job_trace import DAY_S, JobTrace, TracedJob

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
        for place in range(len(blocks)):
            source = chance.randrange(len(blocks))
            moved = (place - source) * block_s
            jobs += (replace(job, submit_s=job.submit_s + moved) for job in blocks[source])
        if jobs:
            yield JobTrace(tuple(jobs))
