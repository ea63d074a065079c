"""How far others delay a job at worst: what our own pairs on an H200 add to an interval.

Two figures, each of jobs left out by whoever scores them: how far a job strays that runs again in
the same company, and how often each share of others delays it. The first is of all jobs in both
modes; the second is of a mode, and of one side alone. Under MPS it is of pairs that leave room:
beside jobs that fill the GPU nothing is promised.
"""

import math
from collections import defaultdict
from collections.abc import Collection
from functools import cache
from statistics import median
from typing import Any

from planner.prediction.sharing import expected_speed
from planner.signals.compute_share import compute_share, time_on_gpu
from research.class_fits import quantile
from research.h200_runs import MODES, Measured, measured, runs

_ONCE = 1.0
"""Every share of others delays a job once at worst, where measured pairs do not say more."""


@cache
def fitted(without: Collection[str] = frozenset()) -> dict[str, Any]:
    """Return the run-to-run spread, and the delay for each mode.

    Args:
        without: jobs whose runs, and whose neighbours' beside them, count for nothing.
    """
    spread = again(without)
    known = [one for one in calibrated() if not one.jobs & set(without)]
    return {
        "again": round(spread, 3),
        "delay": {
            mode: round(
                max(_ONCE, quantile([_delay(p, spread) for p in known if p.mode == mode])),
                3,
            )
            for mode in MODES
        },
    }


def again(without: Collection[str] = ()) -> float:
    """Return the factor between a run and those before it of the same jobs: 90 % lie within."""
    before = defaultdict[tuple[str, frozenset[str], str], list[float]](list)
    strayed = []
    for run in runs():
        if run.per_s is None or set(run.together) & set(without):
            continue
        same = before[run.mode, frozenset(run.together), run.job]
        if same:
            strayed.append(math.log(run.per_s / median(same)))
        same.append(run.per_s)
    return math.exp(quantile(strayed))


def calibrated() -> tuple[Measured, ...]:
    """Return the pairs that the delay is of."""
    return tuple(one for one in measured() if one.mode != "mps" or one.has_room)


def expected(pair: Measured) -> tuple[float, float]:
    """Return the expected speed of a job, and the share of the GPU that the other takes."""
    mine, theirs = pair.profiles
    taken = compute_share(theirs) if pair.mode == "mps" else time_on_gpu(theirs)
    others = taken or 0.0
    return expected_speed((time_on_gpu(mine) or 0.0) + others), others


def _delay(pair: Measured, spread: float) -> float:
    """Return how often the other's share delayed a job; 0 where it may just have run again."""
    mid, others = expected(pair)
    return 0.0 if pair.true >= mid / spread else (1.0 / pair.true - 1.0) / others


def one_factor(mode: str, without: Collection[str]) -> float:
    """Return the simple rule: one factor about the expected speed, whoever shares with whom."""
    known = [one for one in calibrated() if one.mode == mode and not one.jobs & set(without)]
    return math.exp(quantile([math.log(one.true / expected(one)[0]) for one in known]))
