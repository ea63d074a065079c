"""The one total of a plan at other circumstances: each job its own way, or sharing a GPU.

Who shares with whom is the plan's; whether that still costs less than each its own way is worked
out again, group by group, at home and on the machine type that the plan recommends. The page of a
plan does the same in the browser (templates/page/what_if.js), to the cent.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any

from msgspec import UNSET

from planner.plan.bill import CostLine, RentedOffer
from planner.plan.job import JobPlan
from planner.plan.option import Option
from planner.plan.plan import Group, Placement, Plan

TIMED = frozenset(
    ("compute", "boot", "boot-disk", "address", "control-plane", "lost-work", "checkpoint")
)
"""Lines that grow with the hours; storage and traffic of a month do not."""

HUNDRED = 100
_BILLIONTH = Decimal("1e-9")

EXACTLY = Context(prec=100)
"""Sums and products of amounts keep every digit in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """Other circumstances than the plan's.

    Attributes:
        hours_percent: of today's hours; 100 = as planned.
        price_percent: what machines other than today's cost more, below 0 less; 0 = as planned.
        rate_cents: of an engineer's hour.
        providers: that may be taken; None: all.
        purchases: the same.
        cures: codes of actions that may be taken; None: all.
    """

    hours_percent: int = 100
    price_percent: int = 0
    rate_cents: int = 10_000
    providers: frozenset[str] | None = None
    purchases: frozenset[str] | None = None
    cures: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledBill:
    """A bill by what makes it larger, dollars of the period, exact.

    Attributes:
        fixed: what neither hours nor price change.
        timed: what the hours change.
        before: compute, as planned.
        after: compute at the other price.
    """

    fixed: Decimal
    timed: Decimal
    before: Decimal = Decimal(0)
    after: Decimal = Decimal(0)

    def with_compute(self, usd: Decimal, *, here: bool, asked: WhatIf) -> "ScaledBill":
        """Return the bill with the compute line of a machine, today's or another."""
        price = 1 if here else 1 + Decimal(asked.price_percent) / HUNDRED
        return replace(self, before=self.before + usd, after=self.after + usd * price)

    def at(self, low: str, high: str, asked: WhatIf) -> tuple[Decimal, Decimal, Decimal]:
        """Return low end, expected and high end, of the ends as planned.

        What is billed by time in an end grows in proportion.
        """
        before = self.before + self.timed
        after = (self.after + self.timed) * asked.hours_percent / Decimal(HUNDRED)
        ends = [_end(Decimal(end), self.fixed, after, before) for end in (low, high)]
        return ends[0], self.fixed + after, ends[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """An option at other circumstances, exact; dollars of the period.

    Attributes:
        id: of the option.
        out: why it is out of the question; None where it is not.
        low: at the low end.
        mid: expected.
        high: at the high end.
        saves: against today; None where today's bill is not known.
        net: what is left over the horizon, at the high end; None as above.
        once: work and move.
        leaves: whether it is on another machine than today's.
        weak: whether the plan would not act on it.
    """

    id: str
    out: str | None
    low: Decimal
    mid: Decimal
    high: Decimal
    saves: Decimal | None
    net: Decimal | None
    once: Decimal
    leaves: bool
    weak: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """A job its own way: today's bill, None where unknown, and what it changes to, None to stay."""

    before: Decimal | None
    way: Way | None

    @property
    def ends(self) -> tuple[Decimal, Decimal, Decimal] | None:
        """Low end, expected and high end of its bill; None where it is not known."""
        if self.way is not None:
            return self.way.low, self.way.mid, self.way.high
        return None if self.before is None else (self.before, self.before, self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    packing: int | None
    ends: tuple[Decimal, Decimal, Decimal]
    once: Decimal
    packed: frozenset[int] = frozenset()


def bill_parts(lines: Iterable[CostLine]) -> dict[str, str]:
    """Return what lines come to by what makes them larger: compute, timed, fixed."""
    sums = dict.fromkeys(("compute", "timed", "fixed"), Decimal(0))
    for line in lines:
        timed = "timed" if line.what in TIMED else "fixed"
        sums["compute" if line.what == "compute" else timed] += Decimal(line.usd)
    return {name: exact(usd) for name, usd in sums.items()}


def place_of(offer: RentedOffer) -> tuple[str, str, str, str]:
    """Return what tells a machine's price from another's."""
    return offer.provider, offer.instance_type, offer.region, offer.purchase


def packings(plan: Plan) -> list[list[dict[str, Any]]]:
    """Return who shares with whom at home, and on the machine type that is recommended.

    Empty in plans of versions that did not say.
    """
    fleet = plan.fleet
    if fleet is None or fleet.groups is UNSET:
        return []
    places = {one.id: one for one in fleet.known}
    taken = [fleet.taken.groups] if fleet.taken and fleet.taken.groups is not UNSET else []
    return [[_group(one, places, plan) for one in groups] for groups in (fleet.groups, *taken)]


def _group(group: Group, places: Mapping[int, Placement], plan: Plan) -> dict[str, Any]:
    today = {
        place_of(j.baseline.offer) for j in plan.jobs if j.name in group.jobs and j.baseline.offer
    }
    there = [places[id_] for id_ in group.placements]
    away = [one for one in there if place_of(one.offer) not in today]
    bills = [(one.lines, one not in away) for one in there]
    bills.append((group.lines, not away))
    return {
        "jobs": list(group.jobs),
        "placements": list(group.placements),
        "away": len(away) > 0,
        "providers": sorted({one.offer.provider for one in away}),
        "purchases": sorted({one.offer.purchase for one in away}),
        "bills": [{"here": here, **bill_parts(lines)} for lines, here in bills if lines],
        "low": f"{group.cost.low:f}",
        "high": f"{group.cost.high:f}",
        "effort": exact(Decimal(str(group.effort_hours))),
        "moving": f"{group.moving_usd:f}",
    }


def whole_answer(
    table: Mapping[str, Any], alone: Mapping[str, Alone], asked: WhatIf
) -> dict[str, Any]:
    """Return the one total, and which groups share, of what is best for each job alone.

    The rules are those of planner/plan/recommendation.py.
    """
    known = [one for one in alone.values() if one.ends is not None]
    before = sum((one.before or Decimal(0) for one in alone.values()), Decimal(0))
    told, answers = [], []
    for number, groups in enumerate(table["packings"]):
        bills = [_priced(group, asked) for group in groups]
        answers.append(_packed(number, groups, bills, alone))
        packed = answers[-1].packed
        told.append(
            [
                {"packed": at in packed, "out": out, "cost": cents(ends[1]) if not out else None}
                for at, (ends, _, out) in enumerate(bills)
            ]
        )
    best = answers[0] if answers else _packed(None, [], [], alone)
    for other in answers[1:]:
        moved = any(table["packings"][other.packing or 0][at]["away"] for at in other.packed)
        more = _net(other, before, table) > _net(best, before, table)
        if moved and other.ends[1] < best.ends[1] and more:
            best = other
    groups = table["packings"][best.packing] if best.packed and best.packing is not None else []
    low, mid, high = best.ends
    return {
        "today": cents(sum((one.before or Decimal(0) for one in known), Decimal(0))),
        "low": cents(low),
        "total": cents(mid),
        "high": cents(high),
        "packed": sorted(name for at in best.packed for name in groups[at]["jobs"]),
        "packing": best.packing if best.packed else None,
        "groups": told,
    }


def _net(found: _Answer, before: Decimal, table: Mapping[str, Any]) -> Decimal:
    return (before - found.ends[2]) * Decimal(table["periods"]) - found.once


def _priced(
    group: Mapping[str, Any], asked: WhatIf
) -> tuple[tuple[Decimal, Decimal, Decimal], Decimal, str | None]:
    """Return the ends of a group's bill, what it takes once, and why it is out of the question."""
    bill = ScaledBill(fixed=Decimal(0), timed=Decimal(0))
    for one in group["bills"]:
        fixed, timed = bill.fixed + Decimal(one["fixed"]), bill.timed + Decimal(one["timed"])
        bill = replace(bill, fixed=fixed, timed=timed)
        bill = bill.with_compute(Decimal(one["compute"]), here=one["here"], asked=asked)
    once = Decimal(group["effort"]) * asked.rate_cents / HUNDRED + Decimal(group["moving"])
    out = None
    if asked.providers is not None and not asked.providers.issuperset(group["providers"]):
        out = "provider"
    elif asked.purchases is not None and not asked.purchases.issuperset(group["purchases"]):
        out = "purchase"
    return bill.at(group["low"], group["high"], asked), once, out


def _packed(
    number: int | None,
    groups: list[Mapping[str, Any]],
    bills: list[tuple[tuple[Decimal, Decimal, Decimal], Decimal, str | None]],
    alone: Mapping[str, Alone],
) -> _Answer:
    """Return all jobs, those of a group sharing where that costs less than each its own way."""
    packed, shared, once = set(), set(), Decimal(0)
    ends = [Decimal(0)] * 3
    for at, (group, (cost, work, out)) in enumerate(zip(groups, bills, strict=True)):
        singly = [own[1] for name in group["jobs"] if (own := alone[name].ends) is not None]
        if out is None and len(singly) == len(group["jobs"]) and cost[1] < sum(singly):
            packed.add(at)
            shared.update(group["jobs"])
            ends, once = [a + b for a, b in zip(ends, cost, strict=True)], once + work
    for name, one in alone.items():
        if name not in shared and one.ends is not None:
            ends = [a + b for a, b in zip(ends, one.ends, strict=True)]
            once += one.way.once if one.way else 0
    return _Answer(
        packing=number, ends=(ends[0], ends[1], ends[2]), once=once, packed=frozenset(packed)
    )


def _end(end: Decimal, fixed: Decimal, after: Decimal, before: Decimal) -> Decimal:
    """Return an end of an interval; what is billed by time in it has grown in proportion.

    A quotient is rounded to a billionth of a dollar, so that sums of many stay short.
    """
    if end <= fixed or not before:
        return end
    return fixed + ((end - fixed) * after / before).quantize(_BILLIONTH, ROUND_HALF_UP)


def exact(usd: Decimal) -> str:
    """Return an amount as text, every digit of it."""
    return f"{usd:f}"


def cents(usd: Decimal) -> int:
    """Return whole cents, half up, away from zero."""
    return int((usd * HUNDRED).to_integral_value(ROUND_HALF_UP))


__all__ = ["WhatIf", "engineer_cents", "what_if", "what_if_table"]

_STAY = "o0"


def what_if_table(plan: Plan) -> dict[str, Any]:
    """Return the figures that can be worked out again, amounts as text: the page's own data."""
    rate = engineer_cents(plan)
    with localcontext(EXACTLY):
        jobs = [_job(job) for job in plan.jobs]
        for job in jobs:
            job["worth"] = _worth(job, WhatIf(rate_cents=rate))
        return {
            "period": plan.period,
            "rate_cents": rate,
            "periods": _periods(plan),
            "jobs": jobs,
            "packings": packings(plan),
        }


def engineer_cents(plan: Plan) -> int:
    """Return what the plan pays an engineer an hour, in cents; the usual where it does not say."""
    for job in plan.jobs:
        for option in job.options:
            worth = option.benefit
            if worth is not None and worth.effort_hours:
                return round(100 * worth.effort_usd / Decimal(str(worth.effort_hours)))
    return WhatIf().rate_cents


def _periods(plan: Plan) -> str:
    worths = (option.benefit for job in plan.jobs for option in job.options)
    return next((f"{worth.periods:f}" for worth in worths if worth is not None), "1")


def _job(job: JobPlan) -> dict[str, Any]:
    total, share = job.baseline.cost.total, job.baseline.share
    return {
        "name": job.name,
        "today": None if total is None else bill_parts(job.baseline.cost.lines),
        "recommended": job.recommended,
        "beside": list(share.beside) if share else [],
        "must": bool(job.baseline.breaks),
        "options": [_option(one, job) for one in job.options],
    }


def _worth(job: Mapping[str, Any], planned: WhatIf) -> dict[str, str]:
    """Return what the plan's advice leaves, and the best of all: exact, 0 where nothing pays."""
    ways = _ways(job, _today(job, Decimal(1)), planned)
    nets = {way.id: way.net or Decimal(0) for way in ways}
    best = _best(ways)
    advice = nets.get(job["recommended"], Decimal(0))
    return {"advice": exact(advice), "best": exact(best.net if best and best.net else Decimal(0))}


def _option(option: Option, job: JobPlan) -> dict[str, Any]:
    worth, today, offer = option.benefit, job.baseline.offer, option.offer
    weak = option.hours.weak or (option.speed is not None and option.speed.weak)
    return {
        "id": option.id,
        "provider": offer.provider,
        "purchase": offer.purchase,
        "cures": [code for code in option.actions if any(r.code == code for r in job.remedies)],
        "here": today is not None and place_of(today) == place_of(offer),
        "weak": weak and option.id != job.recommended,
        **bill_parts(option.cost.lines),
        "low": f"{option.cost.low:f}",
        "high": f"{option.cost.high:f}",
        "periods": f"{worth.periods:f}" if worth else "1",
        "effort": f"{Decimal(str(worth.effort_hours)):f}" if worth else "0",
        "moving": f"{worth.moving_usd:f}" if worth and worth.moving_usd is not None else "0",
    }


def what_if(table: Mapping[str, Any], asked: WhatIf) -> dict[str, Any]:
    """Return what the jobs cost at other circumstances, in whole cents.

    Args:
        table: of `what_if_table`.
        asked: the circumstances.

    Returns:
        today: of all jobs with a known bill; low, total, high: of what is advised, the one total;
        packed: names of the jobs that share; packing: the number of the packing that they are in,
        None without; groups: of each packing, whether each group is `packed`, why it is `out`, and
        its `cost`; jobs: of each its name, `today`, `best` (the option that leaves most, `o0` for
        none), `advice` (its own way), whether it is `packed`, and options: `out` says why one is
        out of the question, else None; `low`, `mid`, `high`, `saves` and `net`, None where it is
        out or today's bill is not known.
    """
    with localcontext(EXACTLY):
        return _answer(table, asked)


def _answer(table: Mapping[str, Any], asked: WhatIf) -> dict[str, Any]:
    hours = asked.hours_percent / Decimal(HUNDRED)
    todays = [_today(job, hours) for job in table["jobs"]]
    ways = [_ways(job, today, asked) for job, today in zip(table["jobs"], todays, strict=True)]
    advised = _together(table["jobs"], list(map(_advised, table["jobs"], ways)))
    alone = {
        job["name"]: Alone(before=today, way=way)
        for job, today, way in zip(table["jobs"], todays, advised, strict=True)
    }
    found = whole_answer(table, alone, asked)
    packed = set(found["packed"])
    jobs = []
    for job, today, options in zip(table["jobs"], todays, ways, strict=True):
        best, own = _best(options), alone[job["name"]].way
        told = {
            "name": job["name"],
            "today": None if today is None else cents(today),
            "best": best.id if best else _STAY,
            "advice": own.id if own else _STAY,
            "packed": job["name"] in packed,
            "options": [_shown(one) for one in options],
        }
        jobs.append(told)
    return {**found, "jobs": jobs}


def _today(job: Mapping[str, Any], hours: Decimal) -> Decimal | None:
    if job["today"] is None:
        return None
    parts = {name: Decimal(text) for name, text in job["today"].items()}
    return parts["fixed"] + (parts["compute"] + parts["timed"]) * hours


def _ways(job: Mapping[str, Any], today: Decimal | None, asked: WhatIf) -> list[Way]:
    return [_way(one, today, asked) for one in job["options"]]


def _way(option: Mapping[str, Any], today: Decimal | None, asked: WhatIf) -> Way:
    out = _out(option, asked)
    bill = ScaledBill(fixed=Decimal(option["fixed"]), timed=Decimal(option["timed"]))
    bill = bill.with_compute(Decimal(option["compute"]), here=option["here"], asked=asked)
    low, mid, high = bill.at(option["low"], option["high"], asked)
    work = Decimal(option["effort"]) * asked.rate_cents / HUNDRED
    moving = Decimal(option["moving"])
    net = None
    if today is not None and out is None:
        net = (today - high) * Decimal(option["periods"]) - work - moving
    return Way(
        id=option["id"],
        out=out,
        low=low,
        mid=mid,
        high=high,
        saves=None if today is None or out is not None else today - mid,
        net=net,
        once=work + moving,
        leaves=not option["here"],
        weak=option["weak"],
    )


def _out(option: Mapping[str, Any], asked: WhatIf) -> str | None:
    """Return why an option is out of the question; None where it is not."""
    if asked.providers is not None and option["provider"] not in asked.providers:
        return "provider"
    if asked.purchases is not None and option["purchase"] not in asked.purchases:
        return "purchase"
    if asked.cures is not None and any(code not in asked.cures for code in option["cures"]):
        return "cure"
    return None


def _best(ways: list[Way]) -> Way | None:
    """Return what leaves most; None where nothing is left of any."""
    paying = [way for way in ways if way.net is not None and way.net > 0 and not way.weak]
    return max(paying, key=lambda way: way.net or 0, default=None)


def _advised(job: Mapping[str, Any], ways: list[Way]) -> Way | None:
    """Return the plan's advice while it is worth as much of the best as in the plan, or the best.

    None is to leave it.
    """
    best = _best(ways)
    advice, most = Decimal(job["worth"]["advice"]), Decimal(job["worth"]["best"])
    if job["recommended"] == _STAY:
        return best if most <= 0 else None
    mine = next(way for way in ways if way.id == job["recommended"])
    if mine.out is not None:
        return best
    if mine.net is None or advice <= 0:
        return mine
    return mine if best is None or mine.net * most >= (best.net or 0) * advice else best


def _together(jobs: list[Mapping[str, Any]], advised: list[Way | None]) -> list[Way | None]:
    """Return the advice; who would leave neighbours on a machine behind stays with them."""
    leaving = {
        job["name"]
        for job, way in zip(jobs, advised, strict=True)
        if way is not None and way.leaves
    }
    return [
        None
        if way is not None
        and way.leaves
        and not job["must"]
        and any(name not in leaving for name in job["beside"])
        else way
        for job, way in zip(jobs, advised, strict=True)
    ]


def _shown(way: Way) -> dict[str, Any]:
    names = ("low", "mid", "high", "saves", "net")
    if way.out is not None:
        return {"id": way.id, "out": way.out, **dict.fromkeys(names)}
    values = {name: getattr(way, name) for name in names}
    return {
        "id": way.id,
        "out": None,
        **{name: None if value is None else cents(value) for name, value in values.items()},
    }
