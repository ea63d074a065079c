"""How far the mean of a run's steps may be off: a block bootstrap, and what stands in for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.proof.interval import CONFIDENCE, t_quantile
from planner.proof.step_series import mean_step_s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.profile.model import Step
    from planner.proof.step_series import StepRow

FEWEST_ROWS = 12
"""Fewer rows of a series tell less than the quantiles of all steps do."""

_DRAWS = 2000
_SEED = 20261121  # any number: the same runs give the same interval
_STRONGEST = 0.95  # an autocorrelation of 1 would ask for a block without end
# Where only quantiles are known, steps are taken to hang together as an AR(1) of 0.8, the strongest
# that the experiments are tried with: sqrt((1 + 0.8) / (1 - 0.8)) = 3.
_HANG_TOGETHER = 3.0
# Where not even quantiles are known: the largest run-to-run spread of MLPerf times to train, but
# for one benchmark (CV 0.1-9 %).
UNKNOWN_SPREAD = 0.09
_P95 = 1.645  # standard deviations from the median to the 95 % quantile of a normal law


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanStep:
    """The mean length of a run's steps, and its error.

    Attributes:
        mean_s: seconds.
        log_error: half of the 95 % interval, in log space.
        basis: how it is known.
    """

    mean_s: float
    log_error: float
    basis: str


def settled(rows: Sequence[StepRow]) -> tuple[StepRow, ...]:
    """Return the rows without the warm-up: the cut after which the mean is known best (MSER).

    White 1997: the least variance of the remaining rows over their number squared. At most a third
    of the rows is cut; what still changes after that is drift.
    """
    most, best, least = len(rows) // 3, 0, math.inf
    sum_s = sum_squares = 0.0
    for at in range(len(rows) - 1, -1, -1):
        sum_s += rows[at].step_s
        sum_squares += rows[at].step_s ** 2
        left = len(rows) - at
        error = max(0.0, sum_squares - sum_s**2 / left) / left**2
        if at <= most and error <= least:
            best, least = at, error
    return tuple(rows[best:])


def of_series(rows: Sequence[StepRow]) -> MeanStep:
    """Return the mean of the settled rows and its error by a circular block bootstrap over them.

    Blocks are as long as an AR(1) of the series' own autocorrelation asks for (Politis and White
    2004, corrected by Patton, Politis and White 2009). Student's t on as many degrees of freedom as
    there are blocks takes the place of the normal law, so few rows make a wide interval.
    """
    import numpy as np  # noqa: PLC0415 - only where runs are compared

    cut, rows = len(rows), settled(rows)
    cut -= len(rows)
    length = np.array([row.step_s for row in rows])
    n = np.array([row.n for row in rows], dtype=float)
    block = _block(length)
    blocks = math.ceil(len(rows) / block)
    draws = np.random.default_rng(_SEED).integers(0, len(rows), size=(_DRAWS, blocks))
    at = (draws[:, :, None] + np.arange(block)).reshape(_DRAWS, -1)[:, : len(rows)] % len(rows)
    means = (n[at] * length[at]).sum(axis=1) / n[at].sum(axis=1)
    spread = float(np.log(means).std(ddof=1))
    freedom = max(2.0, len(rows) / block - 1.0)
    return MeanStep(
        mean_s=mean_step_s(rows),
        log_error=t_quantile((1.0 + CONFIDENCE) / 2.0, freedom) * spread,
        basis=f"block bootstrap over {len(rows)} rows of steps, {block} a block ({cut} cut first)",
    )


def _block(length: object) -> int:
    """Return rows a block: (1.5)^(1/3) (2 r / (1 - r^2))^(2/3) n^(1/3), r the autocorrelation."""
    import numpy as np  # noqa: PLC0415 - only where runs are compared

    series = np.asarray(length, dtype=float)
    around = series - series.mean()
    power = float(around @ around)
    r = float(around[1:] @ around[:-1]) / power if power else 0.0
    r = min(max(r, 0.0), _STRONGEST)
    rows = (1.5 * len(series)) ** (1 / 3) * (2 * r / (1 - r * r)) ** (2 / 3)
    return int(max(1, min(math.ceil(rows), len(series) // 4)))


def of_statistics(step: Step, mean_s: float) -> MeanStep:
    """Return the mean and its error where only the profile's figures of the steps are known."""
    if step.count and step.count > 1 and step.p50_s and step.p95_s:
        spread = max(0.0, step.p95_s - step.p50_s) / _P95 / mean_s
        # A mean far from the median comes of rare long steps that the quantiles do not show.
        spread = math.hypot(spread, abs(mean_s - step.p50_s) / mean_s)
        return MeanStep(
            mean_s=mean_s,
            log_error=1.96 * _HANG_TOGETHER * spread / math.sqrt(step.count),
            basis=f"quantiles of {step.count} steps, taken to hang together (no series)",
        )
    return of_unknown(mean_s)


def of_unknown(mean_s: float) -> MeanStep:
    """Return the mean where nothing is known of its error but what runs usually differ by."""
    return MeanStep(
        mean_s=mean_s,
        log_error=1.96 * UNKNOWN_SPREAD,
        basis="one figure without its spread: +-9 % a run, as published runs differ",
    )
