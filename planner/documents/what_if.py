"""What a plan would cost at other hours, prices, rates and choices: plain arithmetic on its lines.

Hours scale every line that is billed by time, today and in the options alike; the price of a
machine other than today's scales its compute line; the ends of an interval keep their distance in
proportion to what is billed by time. Nothing is predicted anew: an option that needs a cure which
is left out, or another purchase or provider than allowed, is said to be out, never guessed.

The page of a plan does the same in the browser (templates/page/what_if.js), to the cent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from planner.plan_document.bill import OfferDocument
from planner.plan_document.document import PlanDocument
from planner.plan_document.jobs import JobDocument
from planner.plan_document.options import BaselineDocument, OptionDocument

TIMED = frozenset(
    ("compute", "boot", "boot-disk", "address", "control-plane", "lost-work", "checkpoint")
)
"""Lines that grow with the hours; storage and traffic of a month do not."""

_HUNDRED = 100
_HALF = Fraction(1, 2)
_STAY = "o0"


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


def what_if_table(plan: PlanDocument) -> dict[str, Any]:
    """Return the figures that can be worked out again, amounts as text: the page's own data."""
    return {"period": plan.period, "jobs": [_job(job) for job in plan.jobs]}


def _job(job: JobDocument) -> dict[str, Any]:
    total = job.baseline.cost.total
    return {
        "name": job.name,
        "today": None if total is None else _parts(job.baseline),
        "recommended": job.recommended,
        "options": [_option(one, job) for one in job.options],
    }


def _parts(way: BaselineDocument | OptionDocument) -> dict[str, str]:
    lines = way.cost.lines
    compute = sum((one.usd for one in lines if one.what == "compute"), Decimal(0))
    timed = sum((one.usd for one in lines if one.what in TIMED), Decimal(0)) - compute
    fixed = sum((one.usd for one in lines), Decimal(0)) - compute - timed
    return {"compute": f"{compute:f}", "timed": f"{timed:f}", "fixed": f"{fixed:f}"}


def _option(option: OptionDocument, job: JobDocument) -> dict[str, Any]:
    worth, today, offer = option.benefit, job.baseline.offer, option.offer
    here = today is not None and _size(today) == _size(offer)
    return {
        "id": option.id,
        "provider": offer.provider,
        "purchase": offer.purchase,
        "cures": [code for code in option.actions if any(r.code == code for r in job.remedies)],
        "here": here,
        **_parts(option),
        "low": f"{option.cost.low:f}",
        "high": f"{option.cost.high:f}",
        "periods": f"{worth.periods:f}" if worth else "1",
        "effort": f"{Decimal(str(worth.effort_hours)):f}" if worth else "0",
        "moving": f"{worth.moving_usd:f}" if worth and worth.moving_usd is not None else "0",
    }


def _size(offer: OfferDocument) -> tuple[str, str, str, str]:
    return offer.provider, offer.instance_type, offer.region, offer.purchase


def what_if(table: Mapping[str, Any], asked: WhatIf) -> dict[str, Any]:
    """Return what each job costs at other circumstances, in whole cents.

    Args:
        table: of `what_if_table`.
        asked: the circumstances.

    Returns:
        today: cents of all jobs with a known bill; best: of what leaves most over the horizon;
        jobs: of each its name, `today`, `best` (an option's id, `o0` for leaving it) and options:
        `out` says why an option is out of the question, else None; `low`, `mid`, `high`, `saves`
        and `net` in cents, None where it is out or today's bill is not known.
    """
    jobs = [_answer(job, asked) for job in table["jobs"]]
    known = [job for job in jobs if job["today"] is not None]
    best = 0
    for job in known:
        chosen = next((one for one in job["options"] if one["id"] == job["best"]), None)
        best += chosen["mid"] if chosen else job["today"]
    return {"today": sum(job["today"] for job in known), "best": best, "jobs": jobs}


def _answer(job: Mapping[str, Any], asked: WhatIf) -> dict[str, Any]:
    hours = Fraction(asked.hours_percent, _HUNDRED)
    today = None
    if job["today"] is not None:
        parts = {name: Fraction(text) for name, text in job["today"].items()}
        today = parts["fixed"] + (parts["compute"] + parts["timed"]) * hours
    options = [_recomputed(one, today, hours, asked) for one in job["options"]]
    paying = [one for one in options if one["net"] is not None and one["net"] > 0]
    best = max(paying, key=lambda one: one["net"], default=None)
    return {
        "name": job["name"],
        "today": None if today is None else _cents(today),
        "best": best["id"] if best else _STAY,
        "options": options,
    }


def _recomputed(
    option: Mapping[str, Any], today: Fraction | None, hours: Fraction, asked: WhatIf
) -> dict[str, Any]:
    names = ("low", "mid", "high", "saves", "net")
    out = _out(option, asked)
    if out is not None:
        return {"id": option["id"], "out": out, **dict.fromkeys(names)}
    compute, timed, fixed = (Fraction(option[name]) for name in ("compute", "timed", "fixed"))
    price = 1 if option["here"] else 1 + Fraction(asked.price_percent, _HUNDRED)
    before = compute + timed
    after = (compute * price + timed) * hours
    mid = fixed + after
    grown = after / before if before else Fraction(1)
    low, high = (_end(Fraction(option[end]), fixed, grown) for end in ("low", "high"))
    once = Fraction(option["effort"]) * asked.rate_cents / _HUNDRED + Fraction(option["moving"])
    saves = None if today is None else today - mid
    net = None if today is None else (today - high) * Fraction(option["periods"]) - once
    values = (low, mid, high, saves, net)
    figures = {n: None if v is None else _cents(v) for n, v in zip(names, values, strict=True)}
    return {"id": option["id"], "out": None, **figures}


def _out(option: Mapping[str, Any], asked: WhatIf) -> str | None:
    """Return why an option is out of the question; None where it is not."""
    if asked.providers is not None and option["provider"] not in asked.providers:
        return "provider"
    if asked.purchases is not None and option["purchase"] not in asked.purchases:
        return "purchase"
    if asked.cures is not None and any(code not in asked.cures for code in option["cures"]):
        return "cure"
    return None


def _end(end: Fraction, fixed: Fraction, grown: Fraction) -> Fraction:
    """Return an end of an interval; what is billed by time in it has grown in proportion."""
    return end if end <= fixed else fixed + (end - fixed) * grown


def _cents(usd: Fraction) -> int:
    """Return whole cents, half up, away from zero."""
    scaled = abs(usd) * _HUNDRED + _HALF
    whole = scaled.numerator // scaled.denominator
    return -whole if usd < 0 else whole
