"""What a plan would cost at other hours, prices, rates and choices: plain arithmetic on its lines.

Hours scale every line that is billed by time, today and in the options alike; the price of a
machine other than today's scales its compute line; the ends of an interval keep their distance in
proportion to what is billed by time. Nothing is predicted anew: an option that needs a cure which
is left out, or another purchase or provider than allowed, is said to be out, never guessed.

There is one total, as in the plan: the advice of each job, or the GPU that it shares where that
costs less (planner/documents/what_if/total.py). A job keeps the plan's advice while that leaves as
large a part of the best as it does in the plan; what the plan would not trust is never advised.

The page of a plan does the same in the browser (templates/page/what_if.js), to the cent.
"""

from collections.abc import Mapping
from decimal import Decimal, localcontext
from typing import Any

from planner.documents.what_if.total import (
    EXACTLY,
    HUNDRED,
    Alone,
    ScaledBill,
    Way,
    WhatIf,
    bill_parts,
    cents,
    exact,
    packings,
    place_of,
    whole_answer,
)
from planner.plan.job import JobPlan
from planner.plan.option import Option
from planner.plan.plan import Plan

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
