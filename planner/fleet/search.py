"""Better packings than by rule, and the proof of how good they are: column generation.

A linear program chooses among groups of jobs; the prices that it gives jobs tell which groups are
worth adding. Any prices bound from below what a packing needs: their sum over the most that one
GPU can hold of them (Farley 1990). Groups are used only where the jobs' real sizes fit; the most
that a GPU can hold comes from sizes rounded down, so the bound holds. Prices that are tried lean on
those of the best bound so far, which steadies them (Wentges 1997).

Jobs that are alike are one row of the program, to be covered as often as there are such jobs. HiGHS
solves it, through scipy, which is imported only where there is something to search. The most
valuable groups for one GPU come of a dynamic program over two of the resources: what a job takes is
rounded down to a grid, and resources beyond two are left out, so the value found is at least that
of any group that really fits. Jobs come in falling order of their limit on the first resource; a
group is worth what it sums up to where all of it stays within the limit of its last job.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.fleet import sizes as packs
from planner.fleet.executor import map_on


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


def classes_of(sizes: packs.Sizes) -> Classes:
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


def that_pair(sizes: packs.Sizes, classes: Classes) -> NDArray[np.bool_]:
    """Return for each job whether it fits on one GPU with any other."""
    some = sizes.of(classes.firsts)
    pairs = np.zeros(len(some), dtype=bool)
    # Who takes least fits beside most others, and they beside it: few are left to be looked at.
    for number in np.argsort(packs.fullness(some).max(axis=1), kind="stable"):
        if not pairs[number]:
            fits = some.fitting_with(int(number))
            fits[number] = fits[number] and len(classes.members[number]) > 1
            pairs |= fits
            pairs[number] = fits.any()
    paired: NDArray[np.bool_] = pairs[classes.of]
    return paired


def enough_of_each(sizes: packs.Sizes, classes: Classes) -> NDArray[np.intp]:
    """Return rows of jobs, in order, as many of each class as could be on one GPU together."""
    some = sizes.of(classes.firsts)
    takes = np.maximum(some.takes, packs.ROUNDING)
    most = np.floor((some.bounds / takes).min(axis=1) + packs.ROUNDING)
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

    prices: packs.Numbers
    parts: packs.Numbers
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

    def whole(self, relaxed: Relaxed, threshold: float) -> packs.Bins:
        """Return the jobs of groups that are used whole, or at least such a part of once more."""
        groups, free = list(self.groups), [list(reversed(rows)) for rows in self.members]
        bins: packs.Bins = []
        for at in np.argsort(-relaxed.parts, kind="stable"):
            part = float(relaxed.parts[at])
            if part < threshold:
                break
            needs = Counter(groups[at])
            for _ in range(floor(part) + (part - floor(part) >= threshold)):
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


def on_a_grid(sizes: packs.Sizes, rows: NDArray[np.intp]) -> Grid:
    """Return some of the jobs on the grid of the two resources that bind most for all of them."""
    room = np.where(np.isfinite(sizes.limits), sizes.limits, 0.0).max(axis=0)
    share = np.divide(sizes.takes, room, out=np.zeros_like(sizes.takes), where=room > 0.0)
    tight = sizes.limits.min(axis=0) < room * (1.0 - packs.ROUNDING)
    binding = share.sum(axis=0) * np.where(tight, 1.5, 1.0)
    first, second = (int(column) for column in np.argsort(-binding, kind="stable")[:2])
    if tight[second] and not tight[first]:
        first, second = second, first
    demand = share[:, second].sum() / max(packs.ROUNDING, share[:, first].sum())
    steps = next(steps for limit, steps in GRIDS if demand <= limit)
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


def best_groups(grid: Grid, values: packs.Numbers) -> tuple[float, list[list[int]]]:
    """Return the value of the best group, and for each job the best group that it is last of.

    Args:
        grid: the jobs.
        values: what each job is worth, by its row.
    """
    count = len(grid.order)
    first, second = grid.steps
    best: packs.Numbers = np.zeros((first + 1, second + 1))
    chosen = np.zeros((count, first + 1, second + 1), dtype=bool)
    tops = np.zeros(count)
    for number in range(count):
        wide, high = grid.takes[number]
        limit = int(grid.limits[number])
        value = float(values[grid.order[number]])
        if value <= 0.0 or wide > limit:
            continue
        with_it = best[: limit + 1 - wide, : second + 1 - high] + value
        room = best[wide : limit + 1, high:]
        better = with_it > room + packs.ROUNDING
        tops[number] = float(with_it[-1, -1])
        np.copyto(room, with_it, where=better)
        chosen[number, wide : limit + 1, high:] = better
    return float(tops.max(initial=0.0)), _groups(grid, chosen, tops)


def _groups(grid: Grid, chosen: NDArray[np.bool_], tops: packs.Numbers) -> list[list[int]]:
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


StopSearch = Callable[[], bool]
Rule = Callable[[packs.Sizes, packs.Rows], packs.Bins]

ROUNDS = 80
WORK = 300_000
"""Effort of a search, our choice: rounds, and jobs plus entries of the linear program over all of
them. It counts work, not time: the same jobs get the same packing on any machine."""
STEPS = 120_000_000
"""Effort in linear programs, our choice: steps of the simplex method, times their rows; some ten
seconds. All programs of 590 kinds of jobs took half of it, each program of 2,216 kinds 65 to 180
million, so that a search took minutes."""
STEPS_OF_BOUND = 5_000_000
"""The same where they prove a bound and choose no groups. For 5,885 jobs of 106 kinds they took 2
million together; of 1,000 jobs no two of which are alike the bound was as good with 20 million."""
ALL_ORDERS = 1_000
"""Most jobs of different hours that are packed in each order; of more the best orders are taken."""
TRIED_AT_ONCE = 8  # orders; after so many it is looked whether the search is done
ALIKE = 3  # groups that a round adds for one job: more of them say little that is new
STEADY = 0.6  # part of the steady prices in those that are tried
BY_HOURS = 300
"""Most jobs of different hours for which a linear program chooses among groups by hours. Of 585 it
took six seconds and found nothing better than the rules had."""
KEPT = (0.999, 0.7, 0.5, 0.3, 0.1)
"""Least parts of groups to be kept whole when the linear program is rounded."""
_MORE = 1e-6
_HALF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A packing of jobs and what is proven about it.

    Attributes:
        bins: rows of the jobs on each GPU.
        bound: GPUs that any packing needs.
        stopped: whether the search was ended from outside.
    """

    bins: packs.Bins
    bound: int
    stopped: bool = False


def pack_rows(
    sizes: packs.Sizes, stop: StopSearch, executor: Executor | None = None, *, proves: bool = True
) -> Packed:
    """Return the best packing that is found, never worse than by first fit.

    Args:
        sizes: the jobs.
        stop: whether the search is to end with what it has.
        executor: tries rules that do not depend on each other; None: here.
        proves: whether a good bound is worth work that finds no better packing.
    """
    paired = that_pair(sizes, classes_of(sizes))
    single: packs.Bins = [[int(row)] for row in np.flatnonzero(~paired)]
    rows = np.flatnonzero(paired)
    if not len(rows):
        return Packed(bins=single, bound=len(single))
    some = sizes.of(rows)
    firsts = [packs.first_fit(some, order) for order in packs.decreasing(some)]
    search = _Search(sizes=some, firsts=firsts, bound=plain_bound(some), classes=classes_of(some))
    search.run(stop, executor, proves=proves)
    return Packed(
        bins=[*([int(rows[at]) for at in group] for group in search.best), *single],
        bound=search.bound + len(single),
        stopped=search.stopped,
    )


def plain_bound(sizes: packs.Sizes) -> int:
    """Return a bound without a search.

    On one GPU the jobs' parts of their own limits sum to at most 1, for no limit is below the least
    one; and no two jobs that take over half of their limits fit together.
    """
    share = packs.fullness(sizes)
    sums = np.ceil(share.sum(axis=0) - _MORE)
    return int(max(sums.max(), (share > _HALF + _MORE).sum(axis=0).max(), 1))


def plain_hours(sizes: packs.Sizes) -> float:
    """Return hours of GPUs that any packing holds, without a search.

    At each time the jobs that still run need as many GPUs as `plain_bound` tells.
    """
    longest_first = np.argsort(-sizes.hours, kind="stable")
    share, hours = packs.fullness(sizes)[longest_first], sizes.hours[longest_first]
    sums = np.ceil(np.cumsum(share, axis=0) - _MORE).max(axis=1)
    large = np.cumsum(share > _HALF + _MORE, axis=0).max(axis=1)
    needed = np.maximum(np.maximum(sums, large), 1.0)
    return float((needed * (hours - np.append(hours[1:], 0.0))).sum())


def _by_rule(sizes: packs.Sizes, ruled: tuple[Rule, packs.Rows]) -> packs.Bins:
    rule, order = ruled
    return rule(sizes, order)


@dataclass(kw_only=True)
class _Search:
    """A search under way.

    Attributes:
        sizes: the jobs.
        firsts: packings to begin with.
        best: the best packing so far.
        bound: GPUs that any packing needs, as far as it is proven.
        classes: which jobs are alike.
        columns: groups of classes, by the GPUs that they take: one each.
        single: groups of jobs, by the hours that they hold a GPU; none where all are the same, or
            for too many jobs.
        cost: hours of GPUs that the best packing holds.
        least_hours: that any packing holds.
        fewest: GPUs of the packings so far.
        proven: the bound before it is rounded up.
        steady: prices of the classes that prove it.
        stopped: whether the search was ended from outside.
    """

    sizes: packs.Sizes
    firsts: list[packs.Bins]
    bound: int
    classes: Classes
    best: packs.Bins = field(init=False)
    columns: Columns = field(init=False)
    single: Columns = field(init=False)
    cost: float = field(init=False)
    least_hours: float = field(init=False)
    fewest: int = field(init=False)
    proven: float = 0.0
    steady: packs.Numbers = field(default_factory=lambda: np.zeros(0))
    stopped: bool = False

    def __post_init__(self) -> None:
        self.columns = Columns(members=self.classes.members)
        self.single = Columns(members=tuple((row,) for row in range(len(self.sizes))))
        self.best = min(self.firsts, key=self.sizes.worth)
        self.cost, self.fewest = self.sizes.worth(self.best)
        self.least_hours = plain_hours(self.sizes)

    def run(self, stop: StopSearch, executor: Executor | None, *, proves: bool) -> None:
        """Find better packings until one is proven best, the effort is spent, or it is stopped."""
        if self._done(stop):
            return
        for first, order in zip(self.firsts, packs.decreasing(self.sizes), strict=True):
            self._offer(first)
            self._offer(packs.best_fit(self.sizes, order))
        orders = () if self.sizes.one_length else self._orders()
        for at in range(0, len(orders), TRIED_AT_ONCE):
            if self._done(stop):
                return
            self._try(orders[at : at + TRIED_AT_ONCE], stop, executor)
        if not (proves or self.sizes.one_length or self._by_hours):
            return  # for so many jobs of different hours no groups are chosen
        relaxed, groups = None if self._done(stop) else self._generate(stop), self.columns
        if not self.sizes.one_length and not self._done(stop):
            relaxed, groups = (
                self.single.relaxed(STEPS // len(self.sizes)) if self.single.groups else None,
                self.single,
            )
        for threshold in KEPT:
            if relaxed is None or self._done(stop):
                return
            self._complete(groups.whole(relaxed, threshold))

    def _orders(self) -> tuple[packs.Rows, ...]:
        large = len(self.sizes) > ALL_ORDERS
        return tuple(
            packs.by_length(self.sizes, packs.best_of_some(self.sizes) if large else packs.WAYS)
        )

    def _try(
        self, orders: Sequence[packs.Rows], stop: StopSearch, executor: Executor | None
    ) -> None:
        """Take the best packing of some orders by both rules, one order after the other."""
        rules = (packs.first_fit, packs.best_fit)
        tries = [(rule, order) for order in orders for rule in rules]
        packings = map_on(executor, partial(_by_rule, self.sizes), tries)
        for _ in orders:
            if self._done(stop):
                return
            for bins in islice(packings, len(rules)):
                self._offer(bins, identical=False)  # thousands of groups that prove nothing more

    def _generate(self, stop: StopSearch) -> Relaxed | None:
        """Add groups while they help; return the last solution of the linear program."""
        grid = on_a_grid(self.sizes, enough_of_each(self.sizes, self.classes))
        for prices in _plain_prices(self.sizes):
            by_class = prices[self.classes.firsts]
            self._grow(grid, by_class, by_class)
        limit = STEPS if self.sizes.one_length else STEPS_OF_BOUND
        relaxed, effort, steps = None, WORK, limit // len(self.classes.members)
        for _ in range(ROUNDS):
            effort -= len(self.classes.members) + self.columns.entries
            if effort < 0 or self._done(stop) or self.fewest <= self.bound:
                break
            solved = self.columns.relaxed(steps) if steps > 0 else None
            if solved is None:
                break
            relaxed, now, steps = solved, solved.prices, steps - solved.steps
            tried = STEADY * self.steady + (1.0 - STEADY) * now
            if not self._grow(grid, tried, now) and not self._grow(grid, now, now):
                break
        return relaxed

    def _done(self, stop: StopSearch) -> bool:
        proven = self.cost <= self.least_hours + _MORE
        proven = proven or (self.sizes.one_length and len(self.best) <= self.bound)
        self.stopped = self.stopped or (not proven and stop())
        return self.stopped or proven

    def _offer(self, bins: packs.Bins, *, identical: bool = True) -> None:
        """Take a packing if it is better; its groups may be used either way."""
        if identical or self._by_hours:
            for rows in bins:
                self._add(rows, identical=identical)
        self.fewest = min(self.fewest, len(bins))
        value = self.sizes.worth(bins)
        if value < (self.cost, len(self.best)):
            self.best, self.cost = bins, value[0]

    @property
    def _by_hours(self) -> bool:
        return not self.sizes.one_length and len(self.sizes) <= BY_HOURS

    def _add(self, rows: list[int], *, identical: bool = True) -> bool:
        """Add a group; return whether no group like it was there."""
        if self._by_hours:
            self.single.add(rows, float(self.sizes.hours[rows].max()))
        return identical and self.columns.add([int(kind) for kind in self.classes.of[rows]], 1.0)

    def _grow(self, grid: Grid, tried: packs.Numbers, now: packs.Numbers) -> bool:
        """Raise the bound by prices, add groups that are worth it now; return whether it helped."""
        top, groups = best_groups(grid, tried[self.classes.of])
        if top <= 0.0:
            return False
        proven = float(tried @ self.classes.counts) / top
        better = proven > self.proven + _MORE
        if better or not len(self.steady):
            self.proven, self.steady = proven, tried
        self.bound = max(self.bound, int(np.ceil(proven - _MORE)))
        added = [self._add(group) for group in self._worth(groups, now[self.classes.of])]
        return better or any(added)

    def _worth(self, groups: packs.Bins, now: packs.Numbers) -> Iterator[list[int]]:
        """Yield new groups that would pay, the best first, few for any one job."""
        values = sorted((-float(now[rows].sum()), rows) for rows in groups)
        uses = np.zeros(len(self.sizes), dtype=int)
        for value, rows in values:
            if -value > 1.0 + _MORE and uses[rows].min() < ALIKE:
                fitting = sorted(self._that_fits(rows, now))
                if tuple(sorted(self.classes.of[fitting])) not in self.columns.groups:
                    uses[fitting] += 1
                    yield fitting

    def _that_fits(self, rows: list[int], now: packs.Numbers) -> list[int]:
        """Return the jobs of a group that really fit together, the dearest first."""
        if self.sizes.fits(rows):
            return rows
        return self.sizes.those_that_fit(sorted(rows, key=lambda r: (-now[r], r)))

    def _complete(self, bins: packs.Bins) -> None:
        """Take such groups with the other jobs packed by rule, where that is better."""
        placed = {row for rows in bins for row in rows}
        free = np.array([row for row in range(len(self.sizes)) if row not in placed], dtype=np.intp)
        if not len(free):
            self._offer(bins)
            return
        for order in packs.decreasing(self.sizes.of(free)):
            for rule in (packs.first_fit, packs.best_fit):
                self._offer(rule(self.sizes, free[order], bins))


def _plain_prices(sizes: packs.Sizes) -> Iterator[packs.Numbers]:
    """Yield prices to begin with: parts of each resource, of two of them, of half a GPU."""
    share = packs.fullness(sizes)
    main = np.argsort(-share.sum(axis=0), kind="stable")[:2]
    yield from (share[:, column] for column in main)
    yield share[:, main].sum(axis=1)
    yield (share.max(axis=1) > _HALF).astype(float)
