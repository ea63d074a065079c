"""Puts jobs of one machine type together on its GPUs, within every limit of sharing."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from planner.baseline.requirements import Requirements
from planner.fleet.at_once import AtOnce, in_turn
from planner.fleet.limits import refuses, shares_with_nobody, sizes_of
from planner.fleet.search.search import StopSearch, pack_rows
from planner.fleet.tenant import Tenant, Unmoved, least_slice

Groups = list[list[Tenant]]

FEWEST_JOBS = 500
"""Fewer are packed sooner than handed over to another process."""


@dataclass(kw_only=True)
class Packing:
    """The jobs of one machine type on its GPUs.

    Attributes:
        groups: who shares a GPU; no limit is broken.
        bound: GPUs that these jobs need in any packing.
        stopped: whether the search was ended before it was done.
        kept: jobs that could share but are not to be moved.
    """

    groups: Groups
    bound: int
    stopped: bool = False
    kept: set[str] = field(default_factory=set)


def pack_all(
    pools: Sequence[list[Tenant]],
    asked: Requirements,
    stop: StopSearch,
    at_once: AtOnce,
    *,
    proves: bool,
) -> list[Packing]:
    """Return the packing of the jobs of each machine type.

    Where most jobs are of one type its search is spread, else the types are, the largest first.
    """
    jobs = sum(map(len, pools))
    if jobs < FEWEST_JOBS:
        return [pack(pool, asked, stop, proves=proves) for pool in pools]
    largest_first = sorted(range(len(pools)), key=lambda number: -len(pools[number]))
    most = {n for n in largest_first if 2 * len(pools[n]) > jobs}
    found = {n: pack(pools[n], asked, stop, at_once, proves=proves) for n in most}
    others = [n for n in largest_first if n not in most]
    packed = at_once([partial(_in_rows, pools[n], asked, stop, proves=proves) for n in others])
    for n, (rows, one) in zip(others, packed, strict=True):
        found[n] = replace(one, groups=[[pools[n][row] for row in group] for group in rows])
    return [found[n] for n in range(len(pools))]


def _in_rows(
    pool: list[Tenant], asked: Requirements, stop: StopSearch, *, proves: bool
) -> tuple[list[list[int]], Packing]:
    """Return groups as places of jobs in the pool, which is elsewhere too, and the rest of it."""
    found, places = (
        pack(pool, asked, stop, proves=proves),
        {id(one): place for place, one in enumerate(pool)},
    )
    return [[places[id(one)] for one in group] for group in found.groups], replace(found, groups=[])


def pack(
    group: list[Tenant],
    asked: Requirements,
    stop: StopSearch = lambda: False,
    at_once: AtOnce = in_turn,
    *,
    proves: bool = True,
) -> Packing:
    """Return the packing with the fewest dollars, then GPUs, that the search finds."""
    isolated = _pack_slices([t for t in group if t.is_isolated], asked)
    jobs = sorted((t for t in group if not t.is_isolated), key=lambda t: t.name)
    rest = [t for t in jobs if not shares_with_nobody(t)]
    alone = [[t] for t in jobs if shares_with_nobody(t)]
    least = len(alone) + isolated.bound
    alone += isolated.groups
    if not rest:
        return Packing(groups=alone, bound=least)
    found = pack_rows(sizes_of(rest, asked), stop, at_once, proves=proves)
    together = list(_that_hold([[rest[row] for row in rows] for rows in found.bins], asked))
    groups = [sorted(one, key=lambda t: t.name) for one in (*together, *alone)]
    groups.sort(key=lambda one: (-len(one), one[0].name))
    bound = min(found.bound, len(together)) + least
    return Packing(groups=groups, bound=bound, stopped=found.stopped)


def _pack_slices(group: list[Tenant], asked: Requirements) -> Packing:
    """Put jobs that must be isolated on GPUs cut into slices, the largest memory first."""
    largest_first = sorted(group, key=lambda t: (-(t.memory_gib or 0.0), t.name))
    groups: Groups = []
    for one in largest_first:
        shares = () if shares_with_nobody(one) else groups
        found = next((g for g in shares if _takes(g, one, asked)), None)
        if found is None:
            groups.append([one])
        else:
            found.append(one)
    return Packing(groups=groups, bound=_fewest_cut(group))


def _takes(group: list[Tenant], one: Tenant, asked: Requirements) -> bool:
    return not shares_with_nobody(group[0]) and refuses([*group, one], asked) is None


def _fewest_cut(group: list[Tenant]) -> int:
    """Return GPUs that isolated jobs need at least: their smallest slices' compute, summed."""
    alone = sum(shares_with_nobody(t) for t in group)
    sizes = [least_slice(t) for t in group if not shares_with_nobody(t)]
    return alone + math.ceil(round(sum(sizes), 6))


def _that_hold(groups: Groups, asked: Requirements) -> Iterator[list[Tenant]]:
    """Yield groups within every limit as it is said to the user; who breaks one stands apart."""
    for group in groups:
        if len(group) == 1 or refuses(group, asked) is None:
            yield group
            continue
        kept: list[Tenant] = []
        for one in group:
            if kept and refuses([*kept, one], asked):
                yield [one]
            else:
                kept.append(one)
        yield kept


def holder(group: list[Tenant]) -> Tenant:
    """Return the job that a group's GPU is held for: the one with the most hours."""
    return max(group, key=lambda t: (t.home.hours if t.home else 0.0, t.name))


def with_fewer_moves(packings: list[Packing], most: int) -> None:
    """Take jobs back to GPUs of their own until no more than `most` of them move.

    The holder of a GPU stays; who saves least by moving is taken back first.
    """
    moves = [
        (one.home.usd if one.home else 0, one.name, packing, number)
        for packing in packings
        for number, group in enumerate(packing.groups)
        for one in group
        if one is not holder(group)
    ]
    moves.sort(key=lambda move: (-move[0], move[1]))
    for _, name, packing, number in moves[most:]:
        group = packing.groups[number]
        one = next(t for t in group if t.name == name)
        packing.groups[number] = [t for t in group if t is not one]
        packing.groups.append([one])
        packing.kept.add(name)


def unmoved(packing: Packing, asked: Requirements) -> Iterator[Unmoved]:
    """Yield for each GPU why its job cannot join the emptiest other one."""
    groups = packing.groups
    open_to = [g for g in groups if not any(shares_with_nobody(t) for t in g)]
    fullest_last = sorted(
        open_to if len(open_to) > 1 else groups,
        key=lambda g: (sum(t.share or 0.0 for t in g), sum(t.memory_gib or 0.0 for t in g)),
    )
    for group in groups if len(groups) > 1 else ():
        one = holder(group)
        other = next(g for g in fullest_last if g is not group)
        if one.name in packing.kept:
            yield Unmoved(job=one.name, reason="moves", detail="--max-moves leaves it where it is")
        elif found := refuses([one, *other], asked) or refuses([*group, *other], asked):
            yield Unmoved(job=one.name, reason=found[0], detail=found[1])
