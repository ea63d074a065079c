"""Rows that stand in several logs, found by sorting the rows of all of them once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Different:
    """The different rows of a log: a number for each, and when they were read, ascending."""

    hashes: NDArray[np.uint64]
    t_s: NDArray[np.float64]

    @classmethod
    def of(cls, hashes: NDArray[np.uint64], t_s: NDArray[np.float64]) -> Different:
        """Return the rows with a number and a time each, repeated ones once."""
        once, place = np.unique(hashes, return_index=True)
        return cls(once, np.sort(t_s[place]))

    @classmethod
    def none(cls) -> Different:
        """Return a log without rows."""
        return cls(np.empty(0, dtype=np.uint64), np.empty(0))

    def between(self, begin: float, end: float) -> int:
        """Return how many were read from one time to another, both included."""
        first = np.searchsorted(self.t_s, begin, side="left")
        return int(np.searchsorted(self.t_s, end, side="right") - first)


@dataclass(slots=True)
class SharedRows:
    """How many rows each log shares with each other one.

    Attributes:
        logs: the rows of each.
    """

    logs: Sequence[Different]
    _owners: NDArray[np.int32] = field(init=False)
    _groups: list[NDArray[np.int64]] = field(init=False)
    _begins: NDArray[np.int64] = field(init=False)
    _counts: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        """Sort the rows of all, and keep those that stand in several logs."""
        sizes = [len(one.hashes) for one in self.logs]
        every = np.concatenate([one.hashes for one in self.logs])
        owners = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        order = np.argsort(every, kind="stable")
        every, owners = every[order], owners[order]
        changed = np.flatnonzero(every[1:] != every[:-1]) + 1
        begins = np.concatenate(([0], changed))
        counts = np.diff(np.append(begins, len(every)))
        several = counts > 1
        self._owners = owners[np.repeat(several, counts)]
        self._counts = counts[several]
        self._begins = np.cumsum(self._counts) - self._counts
        group = np.repeat(np.arange(len(self._counts)), self._counts)
        by_owner = np.argsort(self._owners, kind="stable")
        ends = np.cumsum(np.bincount(self._owners, minlength=len(sizes)))[:-1]
        self._groups = np.split(group[by_owner], ends)

    def shared_with(self, log: int) -> NDArray[np.int64]:
        """Return how many of a log's rows stand in each log."""
        groups = self._groups[log]
        counts = self._counts[groups]
        ends = np.cumsum(counts)
        within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
        places = np.repeat(self._begins[groups], counts) + within
        return np.bincount(self._owners[places], minlength=len(self.logs))
