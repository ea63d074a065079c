"""Jobs that are alike: a search for fewer GPUs need not tell them apart."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.fleet.search.first_fit import fullness
from planner.fleet.search.sizes import ROUNDING, Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """Jobs by what they take and the most that all beside them may take; hours may differ.

    Attributes:
        of: the class of each job; classes are numbered in the order of their first jobs.
        members: rows of the jobs of each class, in order.
    """

    of: NDArray[np.intp]
    members: tuple[tuple[int, ...], ...]

    @property
    def counts(self) -> NDArray[np.float64]:
        """How many jobs are of each class."""
        return np.array([len(rows) for rows in self.members], dtype=float)

    @property
    def firsts(self) -> NDArray[np.intp]:
        """The first job of each class."""
        return np.array([rows[0] for rows in self.members], dtype=np.intp)


def classes_of(sizes: Sizes) -> Classes:
    """Return which jobs are alike."""
    _, firsts, of = np.unique(sizes.kinds, return_index=True, return_inverse=True)
    numbers = np.empty(len(firsts), dtype=np.intp)
    numbers[np.argsort(firsts, kind="stable")] = np.arange(len(firsts))
    by_job = numbers[of]
    by_class = np.split(
        np.argsort(by_job, kind="stable"), np.cumsum(np.bincount(by_job, minlength=len(firsts)))
    )
    members = tuple(tuple(int(row) for row in rows) for rows in by_class[:-1])
    return Classes(of=by_job, members=members)


def that_pair(sizes: Sizes, classes: Classes) -> NDArray[np.bool_]:
    """Return for each job whether it fits on one GPU with any other."""
    some = sizes.of(classes.firsts)
    found = np.zeros(len(some), dtype=bool)
    # Who takes least fits beside most others, and they beside it: few are left to be looked at.
    for number in np.argsort(fullness(some).max(axis=1), kind="stable"):
        if not found[number]:
            fits = some.beside(int(number))
            fits[number] = fits[number] and len(classes.members[number]) > 1
            found |= fits
            found[number] = fits.any()
    paired: NDArray[np.bool_] = found[classes.of]
    return paired


def enough_of_each(sizes: Sizes, classes: Classes) -> NDArray[np.intp]:
    """Return rows of jobs, in order, as many of each class as could be on one GPU together."""
    some = sizes.of(classes.firsts)
    takes = np.maximum(some.takes, ROUNDING)
    most = np.floor((some.bounds / takes).min(axis=1) + ROUNDING)
    kept = [
        rows[: int(max(1.0, min(m, len(rows))))]
        for m, rows in zip(most, classes.members, strict=True)
    ]
    return np.array(sorted(row for rows in kept for row in rows), dtype=np.intp)
