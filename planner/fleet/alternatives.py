"""The fleet on another machine: the jobs that can on one type, the others packed where they are.

So that moving and packing are weighed together: a GPU that carries more jobs may be the cheaper one
although no job alone would move to it. Which types are looked at is chosen by an estimate, what one
costs by packing it (first fit), so that none that is listed is only estimated. What moving costs
once is beside the bill, not in it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import count

from planner.baseline.baseline import Baseline, gpu_memory_gib
from planner.baseline.requirements import Requirements
from planner.baseline.workload import Workload
from planner.fleet.consolidate import Alternative, Fleet, Placement, Together, consolidate
from planner.fleet.home import Elsewhere, Home, moving_usd
from planner.fleet.tenant import CONTEXT_GIB, PackedBefore, Tenant, tenant, why_alone
from planner.options.candidate import Candidate
from planner.options.feasibility import BUSIEST
from planner.profile.model import Profile
from planner.signals.compute_share import busy_there
from planner.signals.thresholds import USABLE
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer

LISTED = 3
_NOTHING = Decimal(0)
_TRIED = 5  # types that are packed, the best by the estimate

Place = tuple[str, str, str, str]
"""Provider, type, region, way of buying."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Movable:
    """One job of the fleet.

    Attributes:
        profile: what was measured.
        baseline: what runs it today.
        work: its hours and data.
        home: where it is packed; None where there is nowhere.
        elsewhere: the other machines of one GPU that keep every limit.
    """

    profile: Profile
    baseline: Baseline
    work: Workload
    home: Home | None
    elsewhere: tuple[Elsewhere, ...] = ()

    @property
    def name(self) -> str:
        """The job's name."""
        return self.profile.job.name

    @property
    def beside(self) -> tuple[str, ...]:
        """Names of the jobs that stand on its machine today."""
        tenancy = self.baseline.tenancy
        return tenancy.beside if tenancy else ()


def find_alternatives(
    jobs: Sequence[Movable],
    fleet: Fleet,
    asked: Requirements,
    catalog: Catalog,
    known: PackedBefore,
) -> tuple[Alternative, ...]:
    """Return the machine types on which the fleet would cost less than `fleet`, cheapest first.

    None where the number of moves is limited, or the time is up. Machine types that no job moves
    from or to are packed as in `fleet`, of which `known` is.
    """
    if asked.max_moves is not None or asked.ends_search():
        return ()
    tenants = {one.name: tenant(one.profile, one.baseline, one.home) for one in jobs}
    free = [
        one
        for one in jobs
        if one.elsewhere
        and not tenants[one.name].is_isolated
        and why_alone(tenants[one.name], asked) is None
    ]
    found = []
    for offer, moving in _promising(free, tenants, fleet):
        packed = _packed(jobs, offer, moving, asked, catalog, known, quick=True)
        if packed.fleet.cost_after < fleet.cost_after:
            first = len(fleet.placements)
            found.append(replace(packed, fleet=packed.fleet.numbered_from(first)))
    found.sort(key=lambda one: (one.fleet.cost_after, one.offer.place, one.offer.purchase))
    return tuple(found[:LISTED])


def searched(
    found: Alternative,
    jobs: Sequence[Movable],
    asked: Requirements,
    catalog: Catalog,
    known: PackedBefore,
) -> Alternative:
    """Return an alternative as a search packs it; as it is where that would cost more.

    In those that are listed the jobs that move are packed by first fit alone.
    """
    moving = {
        one.name: to
        for one in jobs
        if one.name in found.jobs
        for to in one.elsewhere
        if to.offer == found.offer
    }
    packed = _packed(jobs, found.offer, moving, asked, catalog, known, quick=False)
    if packed.fleet.cost_after > found.fleet.cost_after:
        return found
    first = min(one.id for one in found.fleet.placements) - 1
    return replace(packed, fleet=packed.fleet.numbered_from(first))


def _packed(  # noqa: PLR0913, PLR0917 - what a packing is made of
    jobs: Sequence[Movable],
    offer: Offer,
    moving: Mapping[str, Elsewhere],
    asked: Requirements,
    catalog: Catalog,
    known: PackedBefore,
    *,
    quick: bool,
) -> Alternative:
    homes = {one.name: one.home for one in jobs}
    away = {n: _home(one, moving[n], catalog) for one in jobs if (n := one.name) in moving}
    pairs = [(one.profile, one.baseline) for one in jobs]
    fleet = consolidate(pairs, asked, homes | away, catalog, quick=quick, known=known)
    return Alternative(
        offer=offer,
        jobs=tuple(sorted(moving)),
        fleet=replace(fleet, together=_tied(fleet, jobs, away)),
        unknown=tuple(sorted(name for name, home in away.items() if home.moving_usd is None)),
    )


def _tied(fleet: Fleet, jobs: Iterable[Movable], away: Mapping[str, Home]) -> tuple[Together, ...]:
    """Return the groups to be packed all or none; jobs of one machine leave it together.

    Who stayed on it would be billed for all of it.
    """
    groups = dict(enumerate(fleet.together))
    of_job = {name: number for number, group in groups.items() for name in group.jobs}
    where = {job: one for one in fleet.placements for job in one.jobs}
    free = count(len(groups))
    leaving = {frozenset((one.name, *one.beside)) for one in jobs if one.name in away}
    for machine in sorted(leaving, key=sorted):
        names = [name for name in sorted(machine) if name in where]
        if len(names) == 1:
            continue
        for name in names:
            if name not in of_job:
                of_job[name] = next(free)
                groups[of_job[name]] = _on_its_own(where[name], away.get(name))
        numbers = sorted({of_job[name] for name in names})
        groups[numbers[0]] = _joined([groups.pop(number) for number in numbers])
        of_job.update(dict.fromkeys(groups[numbers[0]].jobs, numbers[0]))
    return tuple(groups[number] for number in sorted(groups))


def _on_its_own(place: Placement, home: Home | None) -> Together:
    low, high = home.ends if home else (place.cost, place.cost)
    return Together(
        jobs=place.jobs,
        placements=(place.id,),
        cost=place.cost,
        low=low,
        high=high,
        effort_hours=home.effort_hours if home else 0.0,
        moving_usd=(home.moving_usd if home else None) or _NOTHING,
    )


def _joined(groups: Sequence[Together]) -> Together:
    """Return groups as one that is packed all or none."""
    return Together(
        jobs=tuple(sorted(name for one in groups for name in one.jobs)),
        placements=tuple(id_ for one in groups for id_ in one.placements),
        cost=sum((one.cost for one in groups), _NOTHING),
        low=sum((one.low for one in groups), _NOTHING),
        high=sum((one.high for one in groups), _NOTHING),
        effort_hours=sum(one.effort_hours for one in groups),
        moving_usd=sum((one.moving_usd for one in groups), _NOTHING),
        others=tuple(line for one in groups for line in one.others),
    )


def _promising(
    jobs: Iterable[Movable], tenants: Mapping[str, Tenant], fleet: Fleet
) -> list[tuple[Offer, dict[str, Elsewhere]]]:
    """Return the types that may save most, with who would move to each.

    A job costs its part of its GPU's bill in `fleet`, and elsewhere what it would in a packing that
    leaves no room on any GPU, which is the least that it can. The jobs of one machine type move
    where that saves for all of them together, those of one machine all or none.
    """
    bills = {job: p.cost / len(p.jobs) for p in fleet.placements for job in p.jobs}
    saves: dict[Place, dict[Place, Decimal]] = {}
    moving: dict[Place, dict[str, tuple[Movable, Place, Elsewhere]]] = {}
    for one in jobs:
        here = tenants[one.name]
        if here.home is None:
            continue
        cost, leaves = bills.get(one.name, here.home.quote.exact), _place(here.home.offer)
        for to in one.elsewhere:
            place = _place(to.offer)
            gains = saves.setdefault(place, {})
            gains[leaves] = gains.get(leaves, _NOTHING) + cost - to.usd * _part(here, to)
            moving.setdefault(place, {})[one.name] = (one, leaves, to)
    best = {place: sum((g for g in by.values() if g > 0), _NOTHING) for place, by in saves.items()}
    found: list[tuple[Offer, dict[str, Elsewhere]]] = []
    for place in sorted((p for p in best if best[p] > 0), key=lambda p: (-best[p], p)):
        going = {name for name, (_, leaves, _) in moving[place].items() if saves[place][leaves] > 0}
        whole = {n: moving[place][n] for n in going if going.issuperset(moving[place][n][0].beside)}
        if whole and len(found) < _TRIED:
            there = {name: whole[name][2] for name in sorted(whole)}
            found.append((next(iter(there.values())).offer, there))
    return found


def _place(offer: Offer) -> Place:
    return offer.provider, offer.instance_type, offer.region, offer.purchase


def _part(one: Tenant, to: Elsewhere) -> Decimal:
    """Return the part of a GPU that a job takes there, were it as full as limits allow."""
    memory = (one.memory_gib or 0.0) + CONTEXT_GIB
    busy = min(1.0, (one.share or 0.0) * to.factor)
    filled = max(busy / BUSIEST, memory / (USABLE * gpu_memory_gib(to.offer)))
    return Decimal(min(1.0, filled))


def _home(one: Movable, to: Elsewhere, catalog: Catalog) -> Home:
    bill = Candidate(
        offer=to.offer,
        count=1,
        actions=(),
        speed=to.speed,
        work_hours=to.hours,
        work=one.work,
        interruptions=None,
        catalog=catalog,
        dearest=lambda _, __: None,  # no part of its bill is unknown
        moved=to.price,
    )
    return Home(
        offer=to.offer,
        hours=to.hours.mid,
        quote=bill.quote,
        speed=to.speed,
        profile=busy_there(one.profile, to.factor),
        moved=True,
        low=bill.cost_at("low"),
        high=bill.cost_at("high"),
        effort_hours=to.effort_hours,
        moving_usd=moving_usd(one.profile, one.baseline, one.work, to.offer, catalog),
    )
