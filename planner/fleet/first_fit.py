"""Packings by rule: each job in a fixed order joins the first GPU, or the fullest, with room."""

import numpy as np
from numpy.typing import NDArray

from planner.fleet.sizes import Bins, OpenBins, Sizes

Rows = NDArray[np.intp]


def fullness(sizes: Sizes) -> NDArray[np.float64]:
    """Return the share of a GPU that each job takes of each resource, by the job's own limit."""
    limits = np.where(sizes.limits > 0.0, sizes.limits, np.inf)
    found: NDArray[np.float64] = sizes.takes / limits
    return found


def decreasing(sizes: Sizes) -> list[Rows]:
    """Return a few orders of the jobs, large ones first; equal ones stay as they were given."""
    share = fullness(sizes)
    by_column = [share[:, column] for column in _main(share)]
    keys = [*by_column, share.max(axis=1), share.sum(axis=1)]
    if sizes.one_length:
        return [np.argsort(-key, kind="stable") for key in keys]
    return [np.lexsort((-key, -sizes.hours)) for key in keys]


def _main(share: NDArray[np.float64]) -> list[int]:
    """Return the two resources that jobs take most of."""
    return [int(column) for column in np.argsort(-share.sum(axis=0), kind="stable")[:2]]


def first_fit(sizes: Sizes, order: Rows, begun: Bins | None = None) -> Bins:
    """Return a packing: each job joins the first GPU with room for it."""
    found = OpenBins(sizes, begun or [])
    for row in order:
        fitting = found.fitting(int(row))
        if len(fitting):
            found.join(int(fitting[0]), int(row))
        else:
            found.open([int(row)])
    return found.bins


def best_fit(sizes: Sizes, order: Rows, begun: Bins | None = None) -> Bins:
    """Return a packing: each job joins the GPU on which it leaves least of the main resource."""
    found = OpenBins(sizes, begun or [])
    column = _main(fullness(sizes))[0]
    for row in order:
        fitting = found.fitting(int(row))
        if len(fitting):
            found.join(int(fitting[int(np.argmin(found.room(fitting, column)))]), int(row))
        else:
            found.open([int(row)])
    return found.bins
