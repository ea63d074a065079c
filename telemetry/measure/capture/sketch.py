"""A distribution in a few points, so that quantiles of hours take a line and can be added up.

The merging t-digest of Dunning and Ertl (Computing Extremely Accurate Quantiles Using t-Digests,
arXiv:1902.04023): neighbouring values are averaged, few at the ends and more in the middle. The
mean is exact, and so are the least and the greatest value.
"""

from __future__ import annotations

from math import asin, pi, sin
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Point = tuple[float, float]
MOST_POINTS = 128
_DIGITS = 6


def sketched(points: Iterable[Point], most: int = MOST_POINTS) -> list[Point]:
    """Return the distribution of points in at most so many.

    Args:
        points: values and their weights (> 0), in any order.
        most: points to keep; where no more values than this differ, nothing is lost.

    Returns:
        Values in ascending order, with their weights.
    """
    distinct: list[Point] = []
    for value, weight in sorted(points):
        if distinct and distinct[-1][0] == value:
            distinct[-1] = (value, distinct[-1][1] + weight)
        else:
            distinct.append((value, weight))
    return distinct if len(distinct) <= most else _merged(distinct, most)


def _merged(points: list[Point], most: int) -> list[Point]:
    """Merge neighbours as long as a point spans at most one unit of the scale function k1.

    The first and the last stay by themselves.
    """
    *points, last = points
    total = sum(weight for _, weight in points) + last[1]
    merged: list[Point] = []
    value, weight = points[0]
    before, limit = 0.0, 0.0
    for following, more in points[1:]:
        if (before + weight + more) / total <= limit:
            value += (following - value) * more / (weight + more)
            weight += more
            continue
        merged.append((value, weight))
        before += weight
        limit = _limit(before / total, most)
        value, weight = following, more
    return [*merged, (value, weight), last]


def _limit(rank: float, most: int) -> float:
    """Return how far a point may reach that begins at a rank."""
    place = most * asin(2.0 * min(rank, 1.0) - 1.0) / (2.0 * pi) + 1.0
    return (sin(min(2.0 * pi * place / most, pi / 2.0)) + 1.0) / 2.0


def shortened(value: float) -> float:
    """Return a number as it is written: six significant digits."""
    return float(f"{value:.{_DIGITS}g}")
