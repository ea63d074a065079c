"""Jobs as rows of numbers: what each takes of a GPU, and the most that all beside it may take."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-9

Numbers = NDArray[np.float64]
Bins = list[list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The jobs that may share GPUs of one kind.

    Jobs fit on one GPU where, column by column, the sum of what they take is at most the least of
    their limits. So a limit that only some jobs have (a latency target) holds for who is beside
    them. A group with a job taken out fits, too.

    Attributes:
        takes: job by resource, in the resource's unit.
        limits: job by resource: the most that the job and all beside it may take; inf = no limit.
        hours: how long each job holds its GPU, at least one of them above 0.
        bounds: the limits, and what rounding may add; worked out.
        kinds: of each job; the same for jobs that are alike in all but hours; worked out.
    """

    takes: Numbers
    limits: Numbers
    hours: Numbers
    bounds: Numbers = field(init=False, repr=False)
    kinds: NDArray[np.intp] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        both = np.hstack([self.takes, self.limits])
        _, kinds = np.unique(both, axis=0, return_inverse=True)
        object.__setattr__(self, "bounds", self.limits + _slack(self.limits))
        object.__setattr__(self, "kinds", kinds.reshape(-1))

    def __len__(self) -> int:
        """Return how many jobs there are."""
        return len(self.hours)

    @property
    def one_length(self) -> bool:
        """Whether all jobs hold their GPU equally long, so that fewer GPUs are fewer dollars."""
        return len(self) == 0 or float(np.ptp(self.hours)) <= ROUNDING * float(self.hours.max())

    def of(self, rows: NDArray[np.intp]) -> "Sizes":
        """Return some of the jobs."""
        return Sizes(takes=self.takes[rows], limits=self.limits[rows], hours=self.hours[rows])

    def fits(self, rows: list[int]) -> bool:
        """Return whether these jobs fit on one GPU."""
        return bool((self.takes[rows].sum(axis=0) <= self.bounds[rows].min(axis=0)).all())

    def those_that_fit(self, rows: list[int]) -> list[int]:
        """Return the jobs that fit on one GPU with those before them that do, in order."""
        kept: list[int] = []
        taken, least = np.zeros(self.takes.shape[1]), np.full(self.takes.shape[1], np.inf)
        for row in rows:
            more, bound = taken + self.takes[row], np.minimum(least, self.bounds[row])
            if (more <= bound).all():
                kept.append(row)
                taken, least = more, bound
        return kept

    def beside(self, row: int) -> NDArray[np.bool_]:
        """Return which jobs fit on one GPU with a job like this one."""
        least = np.minimum(self.bounds, self.bounds[row])
        found: NDArray[np.bool_] = (self.takes + self.takes[row] <= least).all(axis=1)
        return found

    def cost(self, bins: Bins) -> float:
        """Return the hours of GPUs that a packing holds: of each as long as its longest job."""
        return float(sum(self.hours[rows].max() for rows in bins))

    def worth(self, bins: Bins) -> tuple[float, int]:
        """Return what a packing is judged by: hours of GPUs, then GPUs; less is better."""
        return round(self.cost(bins), 6), len(bins)


def _slack(limits: Numbers) -> Numbers:
    return ROUNDING * np.maximum(1.0, np.where(np.isfinite(limits), np.abs(limits), 0.0))


class OpenBins:
    """GPUs that are being filled: what is taken on each, and the least limit of who is there."""

    def __init__(self, sizes: Sizes, bins: Bins = ()) -> None:  # type: ignore[assignment]
        room = max(64, len(sizes))
        width = sizes.takes.shape[1]
        self.sizes = sizes
        self.bins: Bins = []
        self._taken: Numbers = np.zeros((room, width))
        self._least: Numbers = np.full((room, width), np.inf)
        self._bounds: Numbers = np.full((room, width), np.inf)
        for rows in bins:
            self.open(rows)

    def open(self, rows: list[int]) -> int:
        """Put jobs on a GPU of their own; return its number."""
        at = len(self.bins)
        self.bins.append(list(rows))
        self._taken[at] = self.sizes.takes[rows].sum(axis=0)
        self._least[at] = self.sizes.limits[rows].min(axis=0)
        self._bounds[at] = self.sizes.bounds[rows].min(axis=0)
        return at

    def fitting(self, row: int) -> NDArray[np.intp]:
        """Return the GPUs that a job may join, in order."""
        used = len(self.bins)
        least = np.minimum(self._bounds[:used], self.sizes.bounds[row])
        fits = (self._taken[:used] + self.sizes.takes[row] <= least).all(axis=1)
        found: NDArray[np.intp] = np.flatnonzero(fits)
        return found

    def room(self, at: NDArray[np.intp], column: int) -> Numbers:
        """Return what is left of a resource on GPUs."""
        left: Numbers = self._least[at, column] - self._taken[at, column]
        return left

    def fits(self, at: int, row: int) -> bool:
        """Return whether a job may join a GPU."""
        least = np.minimum(self._bounds[at], self.sizes.bounds[row])
        return bool((self._taken[at] + self.sizes.takes[row] <= least).all())

    def join(self, at: int, row: int) -> None:
        """Put a job on a GPU."""
        self.bins[at].append(row)
        self._taken[at] += self.sizes.takes[row]
        self._least[at] = np.minimum(self._least[at], self.sizes.limits[row])
        self._bounds[at] = np.minimum(self._bounds[at], self.sizes.bounds[row])
