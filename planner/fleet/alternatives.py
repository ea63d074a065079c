"""The fleet on another machine: the jobs that can on one type, the others packed where they are.

So that moving and packing are weighed together: a GPU that carries more jobs may be the cheaper one
although no job alone would move to it. Which types are looked at is chosen by an estimate, what one
costs by packing it (first fit), so that none that is listed is only estimated. What moving costs
once is beside the bill, not in it.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from decimal import Decimal
from itertools import count

from planner.choice.baseline import gpu_memory_gib
from planner.choice.requirements import Requirements
from planner.fleet.consolidate import Draft, drafts
from planner.fleet.fleet import Alternative, Fleet, Placement, Together, total
from planner.fleet.placements import Away, Elsewhere, Home, Movable, ended_jobs, remote_home
from planner.fleet.tenant import CONTEXT_GIB, PackingCache, Tenant, why_alone
from planner.signals.thresholds import BUSIEST, USABLE
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer

LISTED = 3
_NOTHING = Decimal(0)
_TRIED = 5  # types that are packed, the best by the estimate

Place = tuple[str, str, str, str]
"""Provider, type, region, way of buying."""


def find_alternatives(
    jobs: Sequence[Movable],
    fleet: Fleet,
    requirements: Requirements,
    catalog: Catalog,
    packed_before: PackingCache,
) -> tuple[Alternative, ...]:
    """Return the machine types on which the fleet would cost less than `fleet`, cheapest first.

    None where the number of moves is limited, or the time is up. Machine types that no job moves
    from or to are packed as in `fleet`, of which `packed_before` is.
    """
    if requirements.max_moves is not None or requirements.ends_search():
        return ()
    tenants = {
        job.name: packed_before.tenant(
            job.profile, job.baseline, job.home, requirements, quick=True
        )
        for job in jobs
    }
    free = [
        job
        for job in jobs
        if job.elsewhere
        and job.remaining_usd is None
        and not tenants[job.name].is_isolated
        and why_alone(tenants[job.name], requirements) is None
    ]
    promising = _promising(free, tenants, fleet, ended_jobs(jobs).keys())
    tried = [
        (offer, {j.name: remote_home(j, moving[j.name], catalog) for j in jobs if j.name in moving})
        for offer, moving in promising
    ]
    packings = _packed(
        jobs, [moves for _, moves in tried], requirements, catalog, packed_before, quick=True
    )
    cheaper = [
        (packed, offer, moves)
        for packed, (offer, moves) in zip(packings, tried, strict=True)
        if packed.cost_after < fleet.cost_after
    ]
    cheaper.sort(key=lambda job: (job[0].cost_after, job[1].place, job[1].purchase))
    first, listed = len(fleet.placements), cheaper[:LISTED]
    packed_before.remote_homes.update((offer.sale, moves) for _, offer, moves in listed)
    return tuple(_alternative(jobs, *job, first) for job in listed)


def searched(
    alternative: Alternative,
    jobs: Sequence[Movable],
    requirements: Requirements,
    catalog: Catalog,
    packed_before: PackingCache,
) -> Alternative:
    """Return an alternative as a search packs it; as it is where that would cost more.

    In those that are listed the jobs that move are packed by first fit alone, as in
    `packed_before`.
    """
    moves = packed_before.remote_homes[alternative.offer.sale]
    (packed,) = _packed(jobs, [moves], requirements, catalog, packed_before, quick=False)
    if packed.cost_after > alternative.fleet.cost_after:
        return alternative
    first = min(placement.id for placement in alternative.fleet.placements) - 1
    return _alternative(jobs, packed, alternative.offer, moves, first)


def _packed(  # noqa: PLR0913 - what a packing is made of
    jobs: Sequence[Movable],
    tried: Sequence[Mapping[str, Away]],
    requirements: Requirements,
    catalog: Catalog,
    packed_before: PackingCache,
    *,
    quick: bool,
) -> list[Draft]:
    """Return the fleet packed with some jobs away, for each of such choices.

    How close to a bound they are is told of the fleet at home alone.
    """
    homes = [{job.name: moves.get(job.name, job.home) for job in jobs} for moves in tried]
    pairs = [(job.profile, job.baseline) for job in jobs]
    return drafts(
        pairs,
        requirements,
        homes,
        catalog,
        quick=quick,
        packed_before=packed_before,
        proves=False,
        ended=ended_jobs(jobs),
    )


def _alternative(
    jobs: Iterable[Movable], packed: Draft, offer: Offer, moves: Mapping[str, Away], first: int
) -> Alternative:
    """Return a packing with everything that is said of it, numbered on from so many placements."""
    fleet = packed.fleet(first)
    return Alternative(
        offer=offer,
        jobs=tuple(sorted(moves)),
        fleet=replace(fleet, together=_tied(fleet, jobs, moves)),
        unknown=tuple(sorted(name for name, home in moves.items() if home.moving_usd is None)),
    )


def _tied(fleet: Fleet, jobs: Iterable[Movable], moves: Mapping[str, Home]) -> tuple[Together, ...]:
    """Return the groups to be packed all or none; jobs of one machine leave it together.

    Who stayed on it would be billed for all of it.
    """
    groups = dict(enumerate(fleet.together))
    of_job = {name: number for number, group in groups.items() for name in group.jobs}
    where = {job: item for item in fleet.placements for job in item.jobs}
    free = count(len(groups))
    leaving = {frozenset((item.name, *item.peers)) for item in jobs if item.name in moves}
    for machine in sorted(leaving, key=sorted):
        names = [name for name in sorted(machine) if name in where]
        if len(names) == 1:
            continue
        for name in names:
            if name not in of_job:
                of_job[name] = next(free)
                groups[of_job[name]] = _on_its_own(where[name], moves.get(name))
        numbers = sorted({of_job[name] for name in names})
        groups[numbers[0]] = _joined([groups.pop(number) for number in numbers])
        of_job.update(dict.fromkeys(groups[numbers[0]].jobs, numbers[0]))
    return tuple(groups[number] for number in sorted(groups))


def _on_its_own(placement: Placement, home: Home | None) -> Together:
    low, high = home.ends if home else (placement.cost, placement.cost)
    return Together(
        jobs=placement.jobs,
        placements=(placement.id,),
        cost=placement.cost,
        low=low,
        high=high,
        effort_hours=home.effort_hours if home else 0.0,
        moving_usd=(home.moving_usd if home else None) or _NOTHING,
    )


def _joined(groups: Sequence[Together]) -> Together:
    """Return groups as one that is packed all or none."""
    return Together(
        jobs=tuple(sorted(name for group in groups for name in group.jobs)),
        placements=tuple(id_ for group in groups for id_ in group.placements),
        cost=sum((group.cost for group in groups), _NOTHING),
        low=sum((group.low for group in groups), _NOTHING),
        high=sum((group.high for group in groups), _NOTHING),
        effort_hours=sum(group.effort_hours for group in groups),
        moving_usd=sum((group.moving_usd for group in groups), _NOTHING),
        other_lines=tuple(line for group in groups for line in group.other_lines),
        free_lines=tuple(line for group in groups for line in group.free_lines),
    )


def _promising(
    jobs: Iterable[Movable], tenants: Mapping[str, Tenant], fleet: Fleet, ended: AbstractSet[str]
) -> list[tuple[Offer, dict[str, Elsewhere]]]:
    """Return the types that may save most, with who would move to each.

    A job costs its part of its GPU's bill in `fleet`, and elsewhere what it would in a packing that
    leaves no room on any GPU, which is the least that it can. The jobs of one machine type move
    where that saves for all of them together, those of one machine all or none; `ended` do not
    stay behind.
    """
    bills = {job: p.cost / len(p.jobs) for p in fleet.placements for job in p.jobs}
    for group in fleet.together:
        free = total(group.free_lines)
        for name in bills.keys() & set(group.jobs) if free else ():
            bills[name] *= group.cost / (group.cost - free)
    saves: dict[Place, dict[Place, Decimal]] = {}
    moving: dict[Place, dict[str, tuple[Movable, Place, Elsewhere]]] = {}
    for job in jobs:
        tenant = tenants[job.name]
        if tenant.home is None:
            continue
        cost, leaves = bills.get(job.name, tenant.home.usd), tenant.home.offer.sale
        for to in job.elsewhere:
            site = to.offer.sale
            gains = saves.setdefault(site, {})
            gains[leaves] = gains.get(leaves, _NOTHING) + cost - to.usd * _part(tenant, to)
            moving.setdefault(site, {})[job.name] = (job, leaves, to)
    best = {site: sum((g for g in by.values() if g > 0), _NOTHING) for site, by in saves.items()}
    promising: list[tuple[Offer, dict[str, Elsewhere]]] = []
    for site in sorted((p for p in best if best[p] > 0), key=lambda p: (-best[p], p)):
        going = {name for name, (_, leaves, _) in moving[site].items() if saves[site][leaves] > 0}
        moved = going | ended
        full = {n: moving[site][n] for n in going if moved.issuperset(moving[site][n][0].peers)}
        if full and len(promising) < _TRIED:
            moves = {name: full[name][2] for name in sorted(full)}
            promising.append((next(iter(moves.values())).offer, moves))
    return promising


def _part(tenant: Tenant, to: Elsewhere) -> Decimal:
    """Return the part of a GPU that a job takes there, were it as full as limits allow."""
    memory = (tenant.memory_gib or 0.0) + CONTEXT_GIB
    busy = min(1.0, (tenant.share or 0.0) * to.factor)
    filled = max(busy / BUSIEST, memory / (USABLE * gpu_memory_gib(to.offer)))
    return Decimal(min(1.0, filled))
