"""Better packings than by rule, and the proof of how good they are: column generation.

A linear program chooses among groups of jobs; the prices that it gives jobs tell which groups are
worth adding. Any prices bound from below what a packing needs: their sum over the most that one
GPU can hold of them (Farley 1990). Groups are used only where the jobs' real sizes fit; the most
that a GPU can hold comes from sizes rounded down, so the bound holds. Prices that are tried lean on
those of the best bound so far, which steadies them (Wentges 1997).
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

import numpy as np

from planner.fleet.executor import map_on
from planner.fleet.patterns import (
    Classes,
    Columns,
    Grid,
    Relaxed,
    best_groups,
    classes_of,
    enough_of_each,
    on_a_grid,
    that_pair,
)
from planner.fleet.sizes import (
    WAYS,
    Bins,
    Numbers,
    Rows,
    Sizes,
    best_fit,
    best_of_some,
    by_length,
    decreasing,
    first_fit,
    fullness,
)

StopSearch = Callable[[], bool]
Rule = Callable[[Sizes, Rows], Bins]

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

    bins: Bins
    bound: int
    stopped: bool = False


def pack_rows(
    sizes: Sizes, stop: StopSearch, executor: Executor | None = None, *, proves: bool = True
) -> Packed:
    """Return the best packing that is found, never worse than by first fit.

    Args:
        sizes: the jobs.
        stop: whether the search is to end with what it has.
        executor: tries rules that do not depend on each other; None: here.
        proves: whether a good bound is worth work that finds no better packing.
    """
    paired = that_pair(sizes, classes_of(sizes))
    alone: Bins = [[int(row)] for row in np.flatnonzero(~paired)]
    rows = np.flatnonzero(paired)
    if not len(rows):
        return Packed(bins=alone, bound=len(alone))
    some = sizes.of(rows)
    firsts = [first_fit(some, order) for order in decreasing(some)]
    search = _Search(sizes=some, firsts=firsts, bound=plain_bound(some), classes=classes_of(some))
    search.run(stop, executor, proves=proves)
    return Packed(
        bins=[*([int(rows[at]) for at in group] for group in search.best), *alone],
        bound=search.bound + len(alone),
        stopped=search.stopped,
    )


def plain_bound(sizes: Sizes) -> int:
    """Return a bound without a search.

    On one GPU the jobs' parts of their own limits sum to at most 1, for no limit is below the least
    one; and no two jobs that take over half of their limits fit together.
    """
    share = fullness(sizes)
    sums = np.ceil(share.sum(axis=0) - _MORE)
    return int(max(sums.max(), (share > _HALF + _MORE).sum(axis=0).max(), 1))


def plain_hours(sizes: Sizes) -> float:
    """Return hours of GPUs that any packing holds, without a search.

    At each time the jobs that still run need as many GPUs as `plain_bound` tells.
    """
    longest_first = np.argsort(-sizes.hours, kind="stable")
    share, hours = fullness(sizes)[longest_first], sizes.hours[longest_first]
    sums = np.ceil(np.cumsum(share, axis=0) - _MORE).max(axis=1)
    large = np.cumsum(share > _HALF + _MORE, axis=0).max(axis=1)
    needed = np.maximum(np.maximum(sums, large), 1.0)
    return float((needed * (hours - np.append(hours[1:], 0.0))).sum())


def _by_rule(sizes: Sizes, ruled: tuple[Rule, Rows]) -> Bins:
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
        alike: groups of classes, by the GPUs that they take: one each.
        single: groups of jobs, by the hours that they hold a GPU; none where all are the same, or
            for too many jobs.
        cost: hours of GPUs that the best packing holds.
        least_hours: that any packing holds.
        fewest: GPUs of the packings so far.
        proven: the bound before it is rounded up.
        steady: prices of the classes that prove it.
        stopped: whether the search was ended from outside.
    """

    sizes: Sizes
    firsts: list[Bins]
    bound: int
    classes: Classes
    best: Bins = field(init=False)
    alike: Columns = field(init=False)
    single: Columns = field(init=False)
    cost: float = field(init=False)
    least_hours: float = field(init=False)
    fewest: int = field(init=False)
    proven: float = 0.0
    steady: Numbers = field(default_factory=lambda: np.zeros(0))
    stopped: bool = False

    def __post_init__(self) -> None:
        self.alike = Columns(members=self.classes.members)
        self.single = Columns(members=tuple((row,) for row in range(len(self.sizes))))
        self.best = min(self.firsts, key=self.sizes.worth)
        self.cost, self.fewest = self.sizes.worth(self.best)
        self.least_hours = plain_hours(self.sizes)

    def run(self, stop: StopSearch, executor: Executor | None, *, proves: bool) -> None:
        """Find better packings until one is proven best, the effort is spent, or it is stopped."""
        if self._done(stop):
            return
        for first, order in zip(self.firsts, decreasing(self.sizes), strict=True):
            self._offer(first)
            self._offer(best_fit(self.sizes, order))
        orders = () if self.sizes.one_length else self._orders()
        for at in range(0, len(orders), TRIED_AT_ONCE):
            if self._done(stop):
                return
            self._try(orders[at : at + TRIED_AT_ONCE], stop, executor)
        if not (proves or self.sizes.one_length or self._by_hours):
            return  # for so many jobs of different hours no groups are chosen
        relaxed, groups = None if self._done(stop) else self._generate(stop), self.alike
        if not self.sizes.one_length and not self._done(stop):
            relaxed, groups = (
                self.single.relaxed(STEPS // len(self.sizes)) if self.single.groups else None,
                self.single,
            )
        for least in KEPT:
            if relaxed is None or self._done(stop):
                return
            self._complete(groups.whole(relaxed, least))

    def _orders(self) -> tuple[Rows, ...]:
        large = len(self.sizes) > ALL_ORDERS
        return tuple(by_length(self.sizes, best_of_some(self.sizes) if large else WAYS))

    def _try(self, orders: Sequence[Rows], stop: StopSearch, executor: Executor | None) -> None:
        """Take the best packing of some orders by both rules, one order after the other."""
        rules = (first_fit, best_fit)
        tries = [(rule, order) for order in orders for rule in rules]
        packings = map_on(executor, partial(_by_rule, self.sizes), tries)
        for _ in orders:
            if self._done(stop):
                return
            for bins in islice(packings, len(rules)):
                self._offer(bins, alike=False)  # thousands of groups that prove nothing more

    def _generate(self, stop: StopSearch) -> Relaxed | None:
        """Add groups while they help; return the last solution of the linear program."""
        grid = on_a_grid(self.sizes, enough_of_each(self.sizes, self.classes))
        for prices in _plain_prices(self.sizes):
            by_class = prices[self.classes.firsts]
            self._grow(grid, by_class, by_class)
        most = STEPS if self.sizes.one_length else STEPS_OF_BOUND
        relaxed, effort, steps = None, WORK, most // len(self.classes.members)
        for _ in range(ROUNDS):
            effort -= len(self.classes.members) + self.alike.entries
            if effort < 0 or self._done(stop) or self.fewest <= self.bound:
                break
            solved = self.alike.relaxed(steps) if steps > 0 else None
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

    def _offer(self, bins: Bins, *, alike: bool = True) -> None:
        """Take a packing if it is better; its groups may be used either way."""
        if alike or self._by_hours:
            for rows in bins:
                self._add(rows, alike=alike)
        self.fewest = min(self.fewest, len(bins))
        worth = self.sizes.worth(bins)
        if worth < (self.cost, len(self.best)):
            self.best, self.cost = bins, worth[0]

    @property
    def _by_hours(self) -> bool:
        return not self.sizes.one_length and len(self.sizes) <= BY_HOURS

    def _add(self, rows: list[int], *, alike: bool = True) -> bool:
        """Add a group; return whether no group like it was there."""
        if self._by_hours:
            self.single.add(rows, float(self.sizes.hours[rows].max()))
        return alike and self.alike.add([int(kind) for kind in self.classes.of[rows]], 1.0)

    def _grow(self, grid: Grid, tried: Numbers, now: Numbers) -> bool:
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

    def _worth(self, groups: Bins, now: Numbers) -> Iterator[list[int]]:
        """Yield new groups that would pay, the best first, few for any one job."""
        values = sorted((-float(now[rows].sum()), rows) for rows in groups)
        uses = np.zeros(len(self.sizes), dtype=int)
        for value, rows in values:
            if -value > 1.0 + _MORE and uses[rows].min() < ALIKE:
                fitting = sorted(self._that_fits(rows, now))
                if tuple(sorted(self.classes.of[fitting])) not in self.alike.groups:
                    uses[fitting] += 1
                    yield fitting

    def _that_fits(self, rows: list[int], now: Numbers) -> list[int]:
        """Return the jobs of a group that really fit together, the dearest first."""
        if self.sizes.fits(rows):
            return rows
        return self.sizes.those_that_fit(sorted(rows, key=lambda r: (-now[r], r)))

    def _complete(self, bins: Bins) -> None:
        """Take such groups with the other jobs packed by rule, where that is better."""
        placed = {row for rows in bins for row in rows}
        free = np.array([row for row in range(len(self.sizes)) if row not in placed], dtype=np.intp)
        if not len(free):
            self._offer(bins)
            return
        for order in decreasing(self.sizes.of(free)):
            for rule in (first_fit, best_fit):
                self._offer(rule(self.sizes, free[order], bins))


def _plain_prices(sizes: Sizes) -> Iterator[Numbers]:
    """Yield prices to begin with: parts of each resource, of two of them, of half a GPU."""
    share = fullness(sizes)
    main = np.argsort(-share.sum(axis=0), kind="stable")[:2]
    yield from (share[:, column] for column in main)
    yield share[:, main].sum(axis=1)
    yield (share.max(axis=1) > _HALF).astype(float)
