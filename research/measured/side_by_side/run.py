"""Runs one job when it is told to, or alone under gpucost.

`python run.py JOB` reads a line of JSON for each run, {"at_s": monotonic second, "ramp_s": ...,
"seconds": ..., "seed": ...}, and answers with a line: steps a second, and latencies of a service.
`python run.py JOB --profile FILE --seconds 9` measures itself with `gpucost.measure` instead.
"""

import argparse
import json
import os
import random
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
from jobs import JOBS, Job
from networks import CUDA, wait_for

LEAST_STEPS = 3
Told = Callable[..., None] | None


class Done:
    """A point in the GPU's work that can be waited for."""

    def __init__(self) -> None:
        self._event = torch.cuda.Event() if CUDA else None
        if self._event is not None:
            self._event.record()

    def wait(self) -> float:
        """Wait; return the monotonic second."""
        if self._event is not None:
            self._event.synchronize()
        return time.monotonic()


def closed_loop(job: Job, until_s: float, each: Told) -> list[float]:
    """Run step after step; return when each ended."""
    ends: list[float] = []
    underway: deque[Done] = deque()
    while time.monotonic() < until_s:
        job.step()
        underway.append(Done())
        while len(underway) > job.ahead:
            ends.append(underway.popleft().wait())
            if each is not None:
                each(1, items=job.items)
    return [*ends, *(done.wait() for done in underway)]


def open_loop(
    job: Job, from_s: float, until_s: float, seed: int, each: Told
) -> list[tuple[float, float, float]]:
    """Answer requests as they come, one after the other; return arrivals, begins and ends."""
    drawn = random.Random(seed)
    served = []
    arrival_s = from_s
    while True:
        arrival_s += drawn.expovariate(job.rate)
        if arrival_s >= until_s or time.monotonic() >= until_s:
            return served
        while (left_s := arrival_s - time.monotonic()) > 0:
            time.sleep(min(left_s, 0.0005) if left_s < 0.002 else left_s - 0.0015)
        begun_s = time.monotonic()
        job.step()
        served.append((arrival_s, begun_s, Done().wait()))
        if each is not None:
            each(1, items=job.items)


def steps_of(job: Job, begin_s: float, end_s: float, each: Told) -> dict[str, float | None]:
    """Run until the end; return the steps from the begin on."""
    ends = closed_loop(job, end_s, each)
    counted = [one for one in ends if begin_s <= one <= end_s]
    if len(counted) < LEAST_STEPS:
        counted = ends
    gaps = [late - early for early, late in pairwise(counted)]
    return {
        "steps": len(counted),
        "per_s": len(gaps) / sum(gaps) if gaps else None,
        **percentiles(gaps),
    }


def requests_of(
    job: Job, times: tuple[float, float, float], seed: int, each: Told
) -> dict[str, float | None]:
    """Answer from a moment on; return what became of the requests after the ramp."""
    from_s, begin_s, end_s = times
    served = [one for one in open_loop(job, from_s, end_s, seed, each) if one[0] >= begin_s]
    takes = [ended - begun for _, begun, ended in served]
    return {
        "steps": len(served),
        "per_s": len(served) / (served[-1][2] - begin_s) if served else None,
        "service_s": statistics.fmean(takes) if takes else None,
        **percentiles([ended - arrival for arrival, _, ended in served]),
    }


def percentiles(values: list[float]) -> dict[str, float | None]:
    """Return the 50th and the 95th percentile."""
    if len(values) < LEAST_STEPS:
        return {"p50_s": None, "p95_s": None}
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    return {"p50_s": cuts[9], "p95_s": cuts[18]}


@dataclass(frozen=True, kw_only=True)
class Ask:
    """When to run, and for how long.

    Attributes:
        at_s: monotonic second at which to begin.
        ramp_s: seconds of running in, which do not count.
        seconds: what counts, after them.
        seed: of the moments at which requests come.
    """

    at_s: float
    ramp_s: float
    seconds: float
    seed: int = 11


def told(job: Job, asked: Ask, each: Told = None) -> dict[str, float | None]:
    """Run, and return what was done after the ramp."""
    while (left_s := asked.at_s - time.monotonic()) > 0:
        time.sleep(min(left_s, 0.001))
    begin_s = asked.at_s + asked.ramp_s
    end_s = begin_s + asked.seconds
    if job.rate is None:
        return steps_of(job, begin_s, end_s, each)
    return requests_of(job, (asked.at_s, begin_s, end_s), asked.seed, each)


def serve(job: Job) -> None:
    """Run each time a line says so, until there are no more."""
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(told(job, Ask(**json.loads(line)))), flush=True)


def alone(job: Job, name: str, seconds: float, profile: str) -> None:
    """Run for so long under `gpucost.measure`."""
    import gpucost  # noqa: PLC0415 - a job that shares a GPU is not measured from within

    hints = {**job.hints, "batch": job.items}
    with gpucost.measure(name, target=profile, interval_s=0.2, **hints) as measured:
        each = None if job.optimizer is not None else measured.step
        found = told(job, Ask(at_s=time.monotonic(), ramp_s=0.0, seconds=seconds), each)
    print(json.dumps(found), flush=True)


def main() -> None:
    """Run a job as the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=JOBS)
    parser.add_argument("--profile")
    parser.add_argument("--seconds", type=float, default=9.0)
    parser.add_argument("--gate", type=Path, help="touch the GPU once this file is there")
    asked = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    if asked.gate:
        wait_for(asked.gate)
    job = JOBS[asked.name]()
    for _ in range(LEAST_STEPS):
        job.step()
        Done().wait()
    told(job, Ask(at_s=time.monotonic(), ramp_s=0.0, seconds=1.0))
    if asked.profile:
        alone(job, asked.name, asked.seconds, asked.profile)
    else:
        serve(job)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # workers of a loader and contexts are let go by the system, at once


if __name__ == "__main__":
    main()
