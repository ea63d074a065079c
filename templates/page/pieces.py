"""The table that the page's what-if reads: what each way to run costs, in linear pieces.

A bill at another share `h` of today's hours and another price `p` of machines other than today's
is `fixed + h * timed + h * p * priced`. Python makes the three numbers of every bill and of both
ends of its range; the page only puts `h` and `p` in.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from templates.report_text import STAY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from planner.plan.bill import CostLine, CostRange, OptionCost, RentedOffer
    from planner.plan.job import JobPlan
    from planner.plan.option import Option
    from planner.plan.plan import Fleet, Group, Plan

TIMED = frozenset(
    ("compute", "boot", "boot-disk", "address", "control-plane", "lost-work", "checkpoint")
)
"""Lines that grow with the hours; storage and traffic of a month do not."""

_RATE = Decimal(100)  # USD an engineer's hour, where the plan does not say
_ZERO = Decimal(0)
_MICRO = Decimal("1e-6")

Pieces = tuple[Decimal, Decimal, Decimal]


def what_if_table(plan: Plan, detailed: Collection[str]) -> dict[str, Any]:
    """Return the figures of the what-if, in USD of the period.

    Of every job its bill today and its options, of those without details the recommended one alone;
    of every group of jobs that are to share GPUs the bill together.
    """
    numbers = {job.name: number for number, job in enumerate(plan.jobs)}
    return {
        "rate": int(engineer_usd(plan)),
        "jobs": [_job(job, numbers, is_full=job.name in detailed) for job in plan.jobs],
        "groups": _groups(plan, numbers) if plan.fleet else [],
    }


def engineer_usd(plan: Plan) -> Decimal:
    """Return what the plan pays an engineer an hour."""
    for job in plan.jobs:
        for option in job.options:
            benefit = option.benefit
            if benefit is not None and benefit.effort_hours:
                return Decimal(round(benefit.effort_usd / Decimal(str(benefit.effort_hours))))
    return _RATE


def pieces(bills: Iterable[tuple[Iterable[CostLine], bool]]) -> Pieces:
    """Return bills as what is fixed, what grows with the hours, and what with hours and price.

    Args:
        bills: lines, and whether they are of today's machine, whose price is known.
    """
    fixed, timed, priced = _ZERO, _ZERO, _ZERO
    for lines, stays in bills:
        for line in lines:
            usd = Decimal(line.usd)
            if line.what not in TIMED:
                fixed += usd
            elif stays or line.what != "compute":
                timed += usd
            else:
                priced += usd
    return fixed, timed, priced


def ends(mid: Pieces, cost: CostRange | OptionCost) -> list[list[str]]:
    """Return the low end, the expected bill and the high end in pieces.

    An end differs from the expected bill in what is billed by time alone, in proportion.
    """
    fixed, timed, priced = mid
    grown = timed + priced
    triples = []
    for end in (cost.low, cost.mid, cost.high):
        share = (end - fixed) / grown if grown and end > fixed else _ZERO
        value = fixed if share else end
        triples.append([_short(value), _short(timed * share), _short(priced * share)])
    return triples


def _short(usd: Decimal) -> str:
    return f"{usd.quantize(_MICRO).normalize():f}"


def _job(job: JobPlan, numbers: Mapping[str, int], *, is_full: bool) -> dict[str, Any]:
    cost, share = job.baseline.cost, job.baseline.share
    options = [option for option in job.options if is_full or option.id == job.recommended]
    return {
        "name": job.name,
        "today": None if cost.total is None else [*map(_short, pieces([(cost.lines, True)]))],
        "advice": None if job.recommended == STAY else job.recommended,
        **_ended(job),
        "beside": [numbers[name] for name in share.beside if name in numbers] if share else [],
        "must": bool(job.baseline.breaks),
        "options": [_option(option, job) for option in options],
    }


def _ended(job: JobPlan) -> dict[str, list[str]]:
    if job.ended is UNSET or job.ended.cost is None:
        return {}
    return {"ended": [*map(_short, pieces([(job.ended.lines, True)]))]}


def _option(option: Option, job: JobPlan) -> dict[str, Any]:
    benefit, today, offer = option.benefit, job.baseline.offer, option.offer
    is_today = today is not None and _sold_as(today) == _sold_as(offer)
    weak = option.hours.weak or (option.speed is not None and option.speed.weak)
    return {
        "id": option.id,
        "needs": {
            "provider": [offer.provider],
            "purchase": [offer.purchase],
            "cure": [c for c in option.actions if any(r.code == c for r in job.remedies)],
        },
        "leaves": not is_today,
        "weak": weak and option.id != job.recommended,
        "usd": ends(pieces([(option.cost.lines, is_today)]), option.cost),
        "periods": f"{benefit.periods:f}" if benefit else "1",
        "work_h": benefit.effort_hours if benefit else 0,
        "move_usd": f"{benefit.moving_usd or 0:f}" if benefit else "0",
    }


def _groups(plan: Plan, numbers: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the jobs that are recommended to share, as groups that share all or none."""
    fleet, packed = plan.fleet, set(plan.recommended.packed if plan.recommended else ())
    if fleet is None:
        return []
    return [
        _group(group, fleet, plan, numbers)
        for group in fleet.recommended_groups
        if packed.issuperset(group.jobs) and numbers.keys() >= set(group.jobs)
    ]


def _group(group: Group, fleet: Fleet, plan: Plan, numbers: Mapping[str, int]) -> dict[str, Any]:
    today = {
        _sold_as(job.baseline.offer)
        for job in plan.jobs
        if job.name in group.jobs and job.baseline.offer
    }
    places = {item.id: item for item in fleet.known}
    placed = [places[number] for number in group.placements]
    rented = [item for item in placed if _sold_as(item.offer) not in today]
    bills = [(item.lines, item not in rented) for item in placed]
    return {
        "jobs": [numbers[name] for name in group.jobs],
        "placements": list(group.placements),
        "needs": {
            "provider": sorted({item.offer.provider for item in rented}),
            "purchase": sorted({item.offer.purchase for item in rented}),
        },
        "usd": ends(pieces([*bills, ((*group.lines, *group.free), not rented)]), group.cost),
    }


def _sold_as(offer: RentedOffer) -> tuple[str, str, str, str]:
    return offer.provider, offer.instance_type, offer.region, offer.purchase
