"""Unions of intervals in time, and how much of a stretch they cover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True)
class Covered:
    """Intervals that do not overlap, ascending; times in one unit."""

    begins: NDArray[np.float64]
    ends: NDArray[np.float64]

    @property
    def total(self) -> float:
        """The length of all of them."""
        return float((self.ends - self.begins).sum())

    def until(self, times: ArrayLike) -> NDArray[np.float64]:
        """Return how much is covered before each time."""
        at = np.asarray(times, dtype=float)
        if not len(self.begins):
            return np.zeros_like(at)
        edges = np.column_stack((self.begins, self.ends)).ravel()
        lengths = np.cumsum(self.ends - self.begins)
        covered = np.column_stack((np.append(0.0, lengths[:-1]), lengths)).ravel()
        return np.asarray(np.interp(at, edges, covered), dtype=float)

    def within(self, begins: ArrayLike, ends: ArrayLike) -> NDArray[np.float64]:
        """Return how much of each stretch is covered."""
        return np.maximum(0.0, self.until(ends) - self.until(begins))


def union(begins: Sequence[float], lengths: Sequence[float]) -> Covered:
    """Return the union of intervals by begin and length, in any order."""
    start = np.array(begins, dtype=float)
    end = start + np.maximum(np.array(lengths, dtype=float), 0.0)
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order]) if len(order) else end
    first = np.ones(len(start), dtype=bool)
    first[1:] = start[1:] > end[:-1]
    places = np.flatnonzero(first)
    last = np.append(places[1:], len(start)) - 1 if len(places) else places
    return Covered(start[places], end[last])
