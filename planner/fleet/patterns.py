"""Groups of jobs for one GPU each, and the linear program that chooses among them.

Jobs that are alike are one row of it, which is to be covered as often as there are such jobs.

HiGHS solves it, through scipy, which is imported only where there is something to search.

The most valuable groups of jobs for one GPU: a dynamic program over two of the resources.
What a job takes is rounded down to a grid, and resources beyond two are left out, so the value
found is at least that of any group that really fits: what proofs of a lower bound need. Jobs come
in falling order of their limit on the first resource; a group is worth what it sums up to where
all of it stays within the limit of its last job.
"""

from collections import Counter
from dataclasses import dataclass, field
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.fleet.sizes import ROUNDING, Bins, Numbers, Sizes, fullness


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
    pairs = np.zeros(len(some), dtype=bool)
    # Who takes least fits beside most others, and they beside it: few are left to be looked at.
    for number in np.argsort(fullness(some).max(axis=1), kind="stable"):
        if not pairs[number]:
            fits = some.beside(int(number))
            fits[number] = fits[number] and len(classes.members[number]) > 1
            pairs |= fits
            pairs[number] = fits.any()
    paired: NDArray[np.bool_] = pairs[classes.of]
    return paired


def enough_of_each(sizes: Sizes, classes: Classes) -> NDArray[np.intp]:
    """Return rows of jobs, in order, as many of each class as could be on one GPU together."""
    some = sizes.of(classes.firsts)
    takes = np.maximum(some.takes, ROUNDING)
    most = np.floor((some.bounds / takes).min(axis=1) + ROUNDING)
    counts = [
        rows[: int(max(1.0, min(m, len(rows))))]
        for m, rows in zip(most, classes.members, strict=True)
    ]
    return np.array(sorted(row for rows in counts for row in rows), dtype=np.intp)


Group = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxed:
    """What the linear program says.

    Attributes:
        prices: of each class: what one more job of it would add to the total (its dual).
        parts: how often each group is used.
        steps: of the simplex method until it was found.
    """

    prices: Numbers
    parts: Numbers
    steps: int


@dataclass(kw_only=True)
class Columns:
    """The groups known so far.

    Attributes:
        members: rows of the jobs of each class.
        groups: classes of jobs that fit on one GPU, sorted, and what that costs.
    """

    members: tuple[Group, ...]
    groups: dict[Group, float] = field(default_factory=dict)

    def add(self, group: list[int], cost: float) -> bool:
        """Add a group; return whether it is new."""
        before = len(self.groups)
        self.groups.setdefault(tuple(sorted(group)), cost)
        return len(self.groups) > before

    @property
    def entries(self) -> int:
        """How large the linear program is."""
        return sum(len(group) for group in self.groups)

    def relaxed(self, most_steps: int) -> Relaxed | None:
        """Return the cheapest solution with parts of groups; None where so many steps find none."""
        from scipy.optimize import linprog  # noqa: PLC0415 - a second to import

        solved = linprog(
            np.array(list(self.groups.values())),
            A_ub=-self._matrix(),
            b_ub=-np.array([len(rows) for rows in self.members], dtype=float),
            bounds=(0, None),
            method="highs",
            options={"maxiter": most_steps},
        )
        if solved.status != 0:
            return None
        return Relaxed(
            prices=np.maximum(0.0, -solved.ineqlin.marginals), parts=solved.x, steps=int(solved.nit)
        )

    def whole(self, relaxed: Relaxed, least: float) -> Bins:
        """Return the jobs of groups that are used whole, or at least such a part of once more."""
        groups, free = list(self.groups), [list(reversed(rows)) for rows in self.members]
        bins: Bins = []
        for at in np.argsort(-relaxed.parts, kind="stable"):
            part = float(relaxed.parts[at])
            if part < least:
                break
            needs = Counter(groups[at])
            for _ in range(floor(part) + (part - floor(part) >= least)):
                if all(len(free[kind]) >= often for kind, often in needs.items()):
                    bins.append([free[kind].pop() for kind in groups[at]])
        return bins

    def _matrix(self) -> Any:  # noqa: ANN401 - scipy has no types
        from scipy.sparse import csc_matrix  # noqa: PLC0415

        ends = np.cumsum([0, *(len(group) for group in self.groups)])
        rows = np.concatenate([np.array(group) for group in self.groups])
        shape = (len(self.members), len(self.groups))
        matrix = csc_matrix((np.ones(len(rows)), rows, ends), shape=shape)
        matrix.sum_duplicates()
        return matrix


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
    chosen = np.zeros((count, first + 1, second + 1), dtype=bool)
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
        chosen[number, wide : limit + 1, high:] = better
    return float(tops.max(initial=0.0)), _groups(grid, chosen, tops)


def _groups(grid: Grid, chosen: NDArray[np.bool_], tops: Numbers) -> list[list[int]]:
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
        takes = later[chosen[number, at[later, 0], at[later, 1]]]
        at[takes] -= grid.takes[number]
        for end in takes:
            groups[end].append(int(grid.order[number]))
    return [group for group in groups if group]
