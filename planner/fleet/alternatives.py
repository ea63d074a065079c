"""The fleet on another machine: every job that can on one type, the others packed where they are.

So that moving and packing are weighed together: a GPU that carries more jobs may be the cheaper one
although no job alone would move to it. Which types are looked at is chosen by an estimate, what one
costs by packing it (first fit), so that none that is listed is only estimated. What moving costs
once is beside the bill, not in it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from planner.baseline.baseline import Baseline, gpu_memory_gib
from planner.baseline.requirements import Requirements
from planner.baseline.workload import Workload
from planner.fleet.consolidate import Alternative, Fleet, consolidate
from planner.fleet.home import Elsewhere, Home, busy_there, moving_usd
from planner.fleet.tenant import CONTEXT_GIB, Tenant, tenant, why_alone
from planner.options.candidate import Candidate
from planner.options.feasibility import BUSIEST, USABLE
from planner.profile.model import Profile
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


def find_alternatives(
    jobs: Sequence[Movable], fleet: Fleet, asked: Requirements, catalog: Catalog
) -> tuple[Alternative, ...]:
    """Return the machine types on which the fleet would cost less than `fleet`, cheapest first.

    None where the number of moves is limited, or the time is up.
    """
    if asked.max_moves is not None or asked.ends_search():
        return ()
    tenants = {one.profile.job.name: tenant(one.profile, one.baseline, one.home) for one in jobs}
    free = [
        one
        for one in jobs
        if one.elsewhere
        and not tenants[one.profile.job.name].is_isolated
        and why_alone(tenants[one.profile.job.name], asked) is None
    ]
    found = []
    for offer, moving in _promising(free, tenants, fleet):
        homes = {one.profile.job.name: one.home for one in jobs}
        homes.update({one.profile.job.name: _home(one, to, catalog) for one, to in moving})
        pairs = [(one.profile, one.baseline) for one in jobs]
        packed = consolidate(pairs, asked, homes, catalog, quick=True)
        if packed.cost_after < fleet.cost_after:
            found.append(
                Alternative(
                    offer=offer,
                    jobs=tuple(sorted(one.profile.job.name for one, _ in moving)),
                    fleet=packed.numbered_from(len(fleet.placements)),
                )
            )
    found.sort(key=lambda one: (one.fleet.cost_after, one.offer.place, one.offer.purchase))
    return tuple(found[:LISTED])


def _promising(
    jobs: Iterable[Movable], tenants: Mapping[str, Tenant], fleet: Fleet
) -> list[tuple[Offer, list[tuple[Movable, Elsewhere]]]]:
    """Return the types that may save most, with who would move to each.

    A job costs its part of its GPU's bill in `fleet`, and elsewhere what it would in a packing that
    leaves no room on any GPU, which is the least that it can.
    """
    bills = {job: p.cost / len(p.jobs) for p in fleet.placements for job in p.jobs}
    saves: dict[Place, Decimal] = {}
    moving: dict[Place, list[tuple[Movable, Elsewhere]]] = {}
    for one in jobs:
        here = tenants[one.profile.job.name]
        cost = bills.get(here.name, here.home.quote.exact if here.home else _NOTHING)
        for to in one.elsewhere:
            place = (to.offer.provider, to.offer.instance_type, to.offer.region, to.offer.purchase)
            saves[place] = saves.get(place, _NOTHING) + cost - to.usd * _part(here, to)
            moving.setdefault(place, []).append((one, to))
    best = sorted((place for place in saves if saves[place] > 0), key=lambda p: (-saves[p], p))
    return [(moving[place][0][1].offer, moving[place]) for place in best[:_TRIED]]


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
