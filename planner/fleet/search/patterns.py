"""The most valuable groups of jobs for one GPU: a dynamic program over two of the resources.

What a job takes is rounded down to a grid, and resources beyond two are left out, so the value
found is at least that of any group that really fits: what proofs of a lower bound need. Jobs come
in falling order of their limit on the first resource; a group is worth what it sums up to where
all of it stays within the limit of its last job.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.fleet.search.sizes import ROUNDING, Numbers, Sizes

GRIDS = ((0.45, (6000, 1)), (0.7, (360, 16)), (float("inf"), (90, 64)))
"""Parts of the room of the two resources, by how much the second one is in demand beside the first:
finer proves more and takes longer, so a resource that hardly binds gets few."""
FEW = 1000
FINER = 4
"""Up to so many jobs on the grid the first resource has so many times the parts where both bind: of
585 jobs of a drawn fleet it proved 116 GPUs in place of 108."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Jobs on the grid.

    Attributes:
        order: rows of the jobs, the loosest limit first.
        takes: of two resources, in steps, rounded down, in that order.
        limits: of the first resource, in steps, rounded down (sums are whole steps).
        steps: of both resources.
    """

    order: NDArray[np.intp]
    takes: NDArray[np.intp]
    limits: NDArray[np.intp]
    steps: tuple[int, int]


def on_a_grid(sizes: Sizes, rows: NDArray[np.intp]) -> Grid:
    """Return some of the jobs on the grid of the two resources that bind most for all of them."""
    room = np.where(np.isfinite(sizes.limits), sizes.limits, 0.0).max(axis=0)
    share = np.divide(sizes.takes, room, out=np.zeros_like(sizes.takes), where=room > 0.0)
    tight = sizes.limits.min(axis=0) < room * (1.0 - ROUNDING)
    binding = share.sum(axis=0) * np.where(tight, 1.5, 1.0)
    first, second = (int(column) for column in np.argsort(-binding, kind="stable")[:2])
    if tight[second] and not tight[first]:
        first, second = second, first
    demand = share[:, second].sum() / max(ROUNDING, share[:, first].sum())
    steps = next(steps for most, steps in GRIDS if demand <= most)
    if steps == GRIDS[-1][1] and len(rows) <= FEW:
        steps = FINER * steps[0], steps[1]
    order = rows[np.argsort(-sizes.limits[rows, first], kind="stable")]
    takes = np.stack(
        [
            np.floor(share[order, column] * count + 1e-6)
            for column, count in zip((first, second), steps, strict=True)
        ],
        axis=1,
    )
    limits = np.minimum(sizes.limits[order, first] / room[first], 1.0)
    return Grid(
        order=order,
        takes=takes.astype(np.intp),
        limits=np.floor(limits * steps[0] + 1e-6).astype(np.intp),
        steps=steps,
    )


def best_groups(grid: Grid, values: Numbers) -> tuple[float, list[list[int]]]:
    """Return the value of the best group, and for each job the best group that it is last of.

    Args:
        grid: the jobs.
        values: what each job is worth, by its row.
    """
    count = len(grid.order)
    first, second = grid.steps
    best: Numbers = np.zeros((first + 1, second + 1))
    taken = np.zeros((count, first + 1, second + 1), dtype=bool)
    tops = np.zeros(count)
    for number in range(count):
        wide, high = grid.takes[number]
        limit = int(grid.limits[number])
        worth = float(values[grid.order[number]])
        if worth <= 0.0 or wide > limit:
            continue
        with_it = best[: limit + 1 - wide, : second + 1 - high] + worth
        room = best[wide : limit + 1, high:]
        better = with_it > room + ROUNDING
        tops[number] = float(with_it[-1, -1])
        np.copyto(room, with_it, where=better)
        taken[number, wide : limit + 1, high:] = better
    return float(tops.max(initial=0.0)), _groups(grid, taken, tops)


def _groups(grid: Grid, taken: NDArray[np.bool_], tops: Numbers) -> list[list[int]]:
    """Return the groups behind `tops`, walking all of them back at once."""
    count = len(grid.order)
    groups: list[list[int]] = [[] for _ in range(count)]
    at = np.stack(
        [grid.limits - grid.takes[:, 0], np.full(count, grid.steps[1]) - grid.takes[:, 1]], axis=1
    )
    for number in range(count):
        if tops[number] > 0.0:
            groups[number].append(int(grid.order[number]))
    ends = np.flatnonzero(tops > 0.0)
    for number in range(count - 1, -1, -1):
        later = ends[ends > number]
        if not len(later):
            continue
        takes = later[taken[number, at[later, 0], at[later, 1]]]
        at[takes] -= grid.takes[number]
        for end in takes:
            groups[end].append(int(grid.order[number]))
    return [group for group in groups if group]
