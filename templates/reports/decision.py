"""The rows on which a reader decides: today, the smallest change, the cheapest, what can start.

A row says what it costs and how sure that is, what it saves in a year, what work that takes, when
the saving has paid for it, how old the price is. Figures are those of the plan; a year is twelve of
its months.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from templates.report_text import (
    STAY,
    changes,
    cost_range,
    place,
    read_on,
    today_cost,
    whole_dollars,
)

if TYPE_CHECKING:  # the words need to know the values' types, not the planner
    from decimal import Decimal

    from planner.plan_document.bill import OfferDocument
    from planner.plan_document.document import PlanDocument
    from planner.plan_document.jobs import JobDocument
    from planner.plan_document.options import OptionDocument

_MONTHS = 12
_DAYS_PER_MONTH = 30.4  # 730 h
_LONG_DAYS = 365.0 * 3
_NONE = "-"
SOFTWARE = "same machine, software only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One way to run a job, in the words of its cells.

    Attributes:
        title: what it is called.
        what: where it runs, and what has to be done.
        cost: of the period, with its range.
        saves: in a year, or in a run.
        work: hours of an engineer.
        paid_back: how long the saving takes to pay for work and move.
        price: when the price was read.
        sure: how sure the advice would be.
        chosen: whether it is what the plan recommends.
    """

    title: str
    what: str
    cost: str
    saves: str = _NONE
    work: str = _NONE
    paid_back: str = _NONE
    price: str = _NONE
    sure: str = _NONE
    chosen: bool = False


def decision(job: JobDocument, plan: PlanDocument) -> list[Row]:
    """Return today's row and those of the named options, equal ones once."""
    rows = [_today(job)]
    if job.choice is None:
        rows.append(_leave(job))
    said: dict[str, str] = {}
    for titles, option in named_options(job).values():
        how = changes(option, plan)
        first = said.setdefault(how, option.id)
        words = how if first == option.id or how == "unchanged" else f"changed as {first}"
        rows.append(_row(", ".join(titles), option, words, job, plan))
    if job.first_launchable is None and job.choice is not None:
        rows.append(Row(title="first that gpucost can start", what="none of the options", cost="-"))
    return rows


def named_options(job: JobDocument) -> dict[str, tuple[list[str], OptionDocument]]:
    """Return the options worth a row by id, each with what it is called."""
    smallest = job.option(job.smallest_change)
    named = (
        ("recommended", job.choice),
        (f"smallest change: {SOFTWARE}", software_only(job)),
        ("smallest change that pays", smallest),
        ("cheapest", job.option(job.cheapest)),
        ("first that gpucost can start", job.option(job.first_launchable)),
    )
    found: dict[str, tuple[list[str], OptionDocument]] = {}
    for title, option in named:
        if option is not None:
            found.setdefault(option.id, ([], option))[0].append(title)
    return found


def software_only(job: JobDocument) -> OptionDocument | None:
    """Return the cheapest option on the very machine of today; None where there is none."""
    today = job.baseline.offer
    if today is None:
        return None
    here = (today.provider, today.instance_type, today.region, today.purchase, job.baseline.count)
    same = [one for one in job.options if (*_machine(one.offer), one.count) == here]
    return min(same, key=lambda one: one.cost.mid, default=None)


def _machine(offer: OfferDocument) -> tuple[str, str, str, str]:
    return offer.provider, offer.instance_type, offer.region, offer.purchase


def _today(job: JobDocument) -> Row:
    today = job.baseline
    return Row(
        title="today (assumed)" if today.assumed else "today",
        what=f"{place(today.offer, today.count)}{_gpu(today.offer)}",
        cost=today_cost(today.cost),
        price=read_on(today.offer),
    )


def _leave(job: JobDocument) -> Row:
    what = "nothing keeps every limit" if job.baseline.breaks else "leave it"
    sure = job.confidence.level if job.confidence else "unknown"
    cost = "-" if job.baseline.breaks else today_cost(job.baseline.cost)
    return Row(title="recommended", what=what, cost=cost, sure=sure, chosen=True)


def _gpu(offer: OfferDocument | None) -> str:
    return f" ({offer.gpu_count}x {offer.gpu})" if offer else ""


def _row(title: str, option: OptionDocument, how: str, job: JobDocument, plan: PlanDocument) -> Row:
    worth = option.benefit
    return Row(
        title=f"{title} ({option.id})",
        what=f"{place(option.offer, option.count)}{_gpu(option.offer)}, {how}",
        cost=cost_range(option),
        saves=year(option.saves.usd, plan, at_most=option.cost.at_least),
        work=f"{worth.effort_hours:g} h" if worth else "unknown",
        paid_back=paid_back(option, plan),
        price=read_on(option.offer),
        sure=option.confidence or "unknown",
        chosen=option.id == job.recommended != STAY,
    )


def year(saves: Decimal | None, plan: PlanDocument, *, at_most: bool = False) -> str:
    """Return what is saved in a year, in a plan per run in a run; `$120 more` where it is not."""
    if saves is None:
        return "unknown"
    amount = saves if plan.period == "run" else saves * _MONTHS
    if amount < 0:
        return f"costs {whole_dollars(-amount)} more"
    return f"{'<= ' if at_most else ''}{whole_dollars(amount)}"


def year_words(plan: PlanDocument) -> str:
    """Return for how long a saving is said: `a year`, or `a run`."""
    return "a run" if plan.period == "run" else "a year"


def paid_back(option: OptionDocument, plan: PlanDocument) -> str:
    """Return after how long the expected saving has paid for the work and the move."""
    worth = option.benefit
    if worth is None:
        return "unknown"
    if worth.pays_back_periods is None:
        return "never" if option.saves.usd is not None else "unknown"
    unsure = " at least" if worth.moving_usd is None else ""
    return after(worth.pays_back_periods, plan) + unsure


def after(periods: float, plan: PlanDocument) -> str:
    """Return a time in periods of the plan in words: `71 days`, `4 runs`."""
    if plan.period == "run":
        runs = max(1, -int(-periods // 1))
        return f"{runs} run{'s' if runs > 1 else ''}" if periods else "at once"
    days = periods * _DAYS_PER_MONTH
    if days > _LONG_DAYS:
        return "over 3 years"
    whole = round(days)
    return "at once" if whole == 0 else f"{whole} day{'s' if whole != 1 else ''}"
