"""Time-weighted statistics: a sample counts for as long as it stood."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from planner.profile.model import Statistics

if TYPE_CHECKING:
    from numpy.typing import NDArray

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
GAP_INTERVALS = 3.0
# The usual interval is taken among this many neighbours, so that a source that changes its pace,
# or two sources of different pace, each keep their own.
_NEIGHBOURS = 15
_DIGITS = 6
_SAME = 1e-9


def durations(t_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how long each sample stood, in seconds.

    That is the time until the next one, at most 3 times the usual interval before or after it (a
    gap is not filled, a change of pace is none);
    samples of one instant share its time; the last one stands for the usual interval. A single
    instant stands for one second.

    Args:
        t_s: times of the samples, ascending, seconds.
    """
    if len(t_s) > 1 and bool((t_s[1:] > t_s[:-1]).all()):
        return _stood(t_s)
    instants, place, counts = np.unique(t_s, return_inverse=True, return_counts=True)
    if len(instants) == 0:
        return np.empty(0)
    if len(instants) == 1:
        return np.full(len(t_s), 1.0 / len(t_s))
    return np.asarray((_stood(instants) / counts)[place], dtype=float)


def _stood(instants: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how long each of at least two instants stood."""
    steps = np.diff(instants)
    # No usual interval is shorter than the shortest step: few steps can be above three of them.
    long = np.flatnonzero(steps > GAP_INTERVALS * steps.min())
    if len(long) > len(steps) / _NEIGHBOURS:
        usual = _usual(steps)
        return np.append(np.minimum(steps, GAP_INTERVALS * usual), usual[-1])
    places = np.append(long, len(steps) - 1)
    usual = _usual_at(steps, places)
    stood = np.append(steps, usual[-1])
    stood[long] = np.minimum(steps[long], GAP_INTERVALS * usual[:-1])
    return stood


def _usual_at(steps: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what `_usual` does, for some of the steps."""
    if len(places) == 1:  # as of a source that keeps its pace
        return np.array([_usual_beside(steps, int(places[0]))])
    edge = np.full(_NEIGHBOURS - 1, np.nan)
    behind = np.lib.stride_tricks.sliding_window_view(
        np.concatenate((edge, steps, edge)), _NEIGHBOURS
    )
    around = np.nanmedian(behind[places + _NEIGHBOURS // 2], axis=1)
    before = np.median(behind[places], axis=1)
    after = np.median(behind[places + _NEIGHBOURS - 1], axis=1)
    return np.asarray(np.fmax(np.fmax(around, before), after))


def _usual_beside(steps: NDArray[np.float64], place: int) -> float:
    """Return what `_usual` does, for one of the steps."""
    half, behind = _NEIGHBOURS // 2, place + 1
    found = [float(np.median(steps[max(0, place - half) : place + half + 1]))]
    if behind >= _NEIGHBOURS:
        found.append(float(np.median(steps[behind - _NEIGHBOURS : behind])))
    if place + _NEIGHBOURS <= len(steps):
        found.append(float(np.median(steps[place : place + _NEIGHBOURS])))
    return max(found)


def _usual(steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the usual interval around each step, on one side where the pace changes."""
    series = pd.Series(steps)
    around = series.rolling(_NEIGHBOURS, center=True, min_periods=1).median()
    before = series.rolling(_NEIGHBOURS).median()
    sides = pd.concat([around, before, before.shift(1 - _NEIGHBOURS)], axis="columns")
    return sides.max(axis="columns").to_numpy(dtype=float)


def usual_interval(t_s: NDArray[np.float64]) -> float | None:
    """Return the median time between instants, seconds; None for fewer than two."""
    steps = np.diff(t_s)
    if not (steps > 0).all():
        steps = np.diff(np.unique(t_s))
    return float(np.median(steps)) if len(steps) else None


def statistics(values: NDArray[np.float64], weights: NDArray[np.float64]) -> Statistics | None:
    """Return the weighted statistics of the values that are not NaN; None when there are none.

    A quantile q is the least value at or below which the share q of the time lies; where the share
    is met exactly, the middle between it and the next value.
    """
    known = np.isfinite(values)
    values, weights = values[known], weights[known]
    total = float(weights.sum())
    if len(values) == 0 or total <= 0:
        return None
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    mean = float(np.dot(values, weights) / total)
    ranks = np.cumsum(weights) / total
    quantiles = [_quantile(values, ranks, q) for q in QUANTILES]
    names = ("p05", "p25", "p50", "p75", "p90", "p95", "p99")
    return Statistics(
        mean=_rounded(min(max(mean, values[0]), values[-1])),
        min=_rounded(values[0]),
        max=_rounded(values[-1]),
        **{name: _rounded(value) for name, value in zip(names, quantiles, strict=True)},
    )


def _quantile(values: NDArray[np.float64], ranks: NDArray[np.float64], q: float) -> float:
    place = min(int(np.searchsorted(ranks, q - _SAME)), len(values) - 1)
    if abs(ranks[place] - q) <= _SAME and place + 1 < len(values):
        return float(values[place] + values[place + 1]) / 2
    return float(values[place])


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS)
