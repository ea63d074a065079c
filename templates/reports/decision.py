"""The rows and sentences on which a reader decides: today, what to do, why it stays.

A row says what it costs and how sure that is, what it saves in a year, what work that takes, when
the saving has paid for it, how old the price is. Figures are those of the plan; a year is twelve of
its months.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from templates import report_text
from templates.language.translate import _, gap, join, translate_text, word

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from planner.plan.bill import RentedOffer
    from planner.plan.job import JobPlan, Now, Proof
    from planner.plan.option import Baseline, Option
    from planner.plan.plan import Plan

_MONTHS = 12
_DAYS_PER_MONTH = 30.4  # 730 h
_LONG_DAYS = 365.0 * 3
_NONE = "-"
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY_H = 24
_GRAVE = ("high", "medium")


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


def decision(job: JobPlan, plan: Plan) -> list[Row]:
    """Return today's row and those of the named options, equal ones once."""
    rows = [_today(job)]
    if job.choice is None:
        rows.append(_leave(job, plan))
    first_with: dict[str, str] = {}
    for titles, option in named_options(job).values():
        how = report_text.changes(option, plan)
        first = first_with.setdefault(how, option.id)
        same = first != option.id and how != _("unchanged")
        phrase = _("with the changes of {id}", id=first) if same else how
        rows.append(_row(join(titles), option, phrase, job, plan))
    return rows


def named_options(job: JobPlan) -> dict[str, tuple[list[str], Option]]:
    """Return the options worth a row by id, each with what it is called."""
    cheapest = job.option(job.cheapest)
    is_least = cheapest is None or cheapest.cost.mid <= min(o.cost.mid for o in job.options)
    named = (
        (_("recommended"), job.choice),
        (_("least effort that pays"), job.option(job.smallest_change)),
        (_("cheapest") if is_least else _("cheapest without the doubtful"), cheapest),
        (_("launchable with gpucost"), job.option(job.first_launchable)),
    )
    options: dict[str, tuple[list[str], Option]] = {}
    for title, option in named:
        if option is not None:
            options.setdefault(option.id, ([], option))[0].append(title)
    return options


def columns(job: JobPlan) -> list[tuple[str, Option]]:
    """Return the options worth a column: the named ones and the fastest, equal ones once."""
    options = named_options(job)
    if (quickest := report_text.fastest(job.options)) is not None:
        options.setdefault(quickest.id, ([], quickest))[0].append(_("fastest"))
    return [(join(titles), option) for titles, option in options.values()]


def is_today(option: Option, today: Baseline) -> bool:
    """Return whether an option is on the very machines of today, or on some of a service's."""
    parts = operator.attrgetter("provider", "instance_type", "region", "purchase")
    same = today.offer is not None and parts(option.offer) == parts(today.offer)
    return same and (option.count == today.count or bool(option.scaling))


def _part_of(job: JobPlan) -> str:
    """Return the part of the machine's bill that a job bears; empty where it bears all."""
    part = shown_part(job)
    return "" if part is None else _(", {held}/{of} of its bill", held=part[0], of=part[1])


def shown_part(job: JobPlan) -> tuple[int, int] | None:
    """Return the GPUs whose part of a bill a job bears, of how many; None where it bears all."""
    share = job.baseline.share
    if share is None or share.beside or share.held >= share.of:
        return None
    return round(share.held), round(share.of)


def _today(job: JobPlan) -> Row:
    today = job.baseline
    return Row(
        title=_("today (assumed)") if today.assumed else _("today"),
        what=_with_gpu(today.offer, today.count) + _part_of(job),
        cost=report_text.today_cost(today.cost),
        price=report_text.read_on(today.offer),
    )


def ends_machine(job: JobPlan) -> bool:
    """Return whether a job is to end together with its machine, so that the bill ends, too."""
    return job.answer.now is not None and job.answer.now.kind == "end" and bool(job.answer.now.usd)


def staying(job: JobPlan, plan: Plan) -> str:
    """Return what is to be done with a job that no option is recommended for."""
    if step := job.answer.now or measured_first(job):
        return translate_text(step.what)
    if code := tried_first(job):
        return report_text.action(code, plan)
    return _("no option meets every limit") if job.baseline.breaks else _("keep as is")


def wastes(job: JobPlan) -> bool:
    """Return whether its first cause is grave, so that nobody is told to keep it as it is."""
    first = job.program_finding
    lost = first is not None and (first.waste_usd or first.waste_fraction)
    return bool(lost) and first is not None and first.severity in _GRAVE


def measured_first(job: JobPlan) -> Proof | None:
    """Return what is measured first of a job that wastes and has no step that surely pays.

    A trial on another machine comes after what may cure it here.
    """
    proof, first = job.answer.proof, job.program_finding
    if proof is None or first is None or not wastes(job) or job.baseline.breaks:
        return None
    return proof if proof.offer is None or not first.actions else None


def tried_first(job: JobPlan) -> str | None:
    """Return the action that is tried first of such a job, where nothing is measured before it."""
    first = job.program_finding
    if first is None or not wastes(job) or job.baseline.breaks or measured_first(job):
        return None
    return next(iter(first.actions), None)


def _leave(job: JobPlan, plan: Plan) -> Row:
    sure = level(job.confidence.level if job.confidence else None)
    cost = "-" if job.baseline.breaks else report_text.today_cost(job.baseline.cost)
    if job.ended and ends_machine(job):
        cost = report_text.whole_dollars(job.ended.cost)
    return Row(title=_("recommended"), what=staying(job, plan), cost=cost, sure=sure, chosen=True)


def _with_gpu(offer: RentedOffer | None, count: int) -> str:
    where = report_text.machine_name(offer, count)
    if offer is None:
        return where
    return _("{where} ({more})", where=where, more=f"{offer.gpu_count}x {offer.gpu}")


def _row(title: str, option: Option, how: str, job: JobPlan, plan: Plan) -> Row:
    benefit = option.benefit
    return Row(
        title=_("{title} ({id})", title=title, id=option.id),
        what=_("{where}, {how}", where=_with_gpu(option.offer, option.count), how=how),
        cost=report_text.cost_range(option.cost),
        saves=year(option.saves.usd, plan, at_most=option.cost.at_least),
        work=work_hours(benefit.effort_hours) if benefit else _("unknown"),
        paid_back=paid_back(option, plan),
        price=report_text.read_on(option.offer),
        sure=level(option.confidence),
        chosen=option.id == job.recommended != report_text.STAY,
    )


def work_hours(hours: float) -> str:
    """Return `5.5 h`."""
    return _("{n} h", n=f"{hours:g}")


def level(code: str | None) -> str:
    """Return how sure something is, in words."""
    return word("level", code) if code else _("unknown")


def year(saves: Decimal | None, plan: Plan, *, at_most: bool = False) -> str:
    """Return what is saved in a year, in a plan per run in a run; `$120 more` where it is not."""
    if saves is None:
        return _("unknown")
    amount = saves if plan.period == "run" else saves * _MONTHS
    if amount < 0:
        return _("costs {usd} more", usd=report_text.whole_dollars(-amount))
    return report_text.most_words(report_text.money_text(amount), at_most=at_most)


def year_words(plan: Plan) -> str:
    """Return for how long a saving is said: `a year`, or `a run`."""
    return _("a run") if plan.period == "run" else _("a year")


def paid_back(option: Option, plan: Plan) -> str:
    """Return after how long the expected saving has paid for the work and the move."""
    benefit = option.benefit
    if benefit is None or (benefit.pays_back_periods is None and option.saves.usd is None):
        return _("unknown")
    time = after(benefit.pays_back_periods, plan)
    return _("{time} at least", time=time) if benefit.moving_usd is None else time


def payback(periods: float | None, plan: Plan, *, is_least: bool) -> str:
    """Return `payback 71 d`, `does not pay back` for None; `over 71 d` where moving may cost more.

    Args:
        periods: of the plan.
        plan: for the length of its period.
        is_least: whether what the move costs is unknown.
    """
    time = after(periods, plan)
    if periods is None:
        return time
    days = round(periods * _DAYS_PER_MONTH)
    if plan.period == "month" and 0 < days <= _LONG_DAYS:
        time = _(">{n} d", n=days) if is_least else _("{n} d", n=days)
    return _("payback {time}", time=time)


def after(periods: float | None, plan: Plan) -> str:
    """Return a time in periods of the plan: `71 days`, `4 runs`; `does not pay back` for None."""
    if periods is None:
        return _("does not pay back")
    if plan.period == "run":
        runs = max(1, -int(-periods // 1))
        if not periods:
            return _("at once")
        return _("{n} runs", n=runs) if runs > 1 else _("1 run")
    days = periods * _DAYS_PER_MONTH
    if days > _LONG_DAYS:
        return _("over 3 years")
    days_rounded = round(days)
    if days_rounded == 0:
        return _("at once")
    return _("{n} days", n=days_rounded) if days_rounded != 1 else _("1 day")


def copies(by_hour: Sequence[int]) -> str:
    """Return how many copies run when: `0-5 h: 1, 6-23 h: 4`, days that are alike together."""
    if len(by_hour) == 1:
        return _("{count} at all times", count=by_hour[0])
    days = [by_hour[at : at + _DAY_H] for at in range(0, len(by_hour), _DAY_H)]
    if len(days) == 1:
        return _day(days[0])
    parts = []
    for day, run in groupby(range(len(days)), key=days.__getitem__):
        at = list(run)
        first, last = (word("day", _DAYS[day]) for day in (at[0], at[-1]))
        named = first if len(at) == 1 else f"{first}-{last}"
        parts.append(f"{named} {_day(day)}")
    return _("; ").join(parts)


def _day(by_hour: Sequence[int]) -> str:
    parts = []
    for count, run in groupby(range(len(by_hour)), key=by_hour.__getitem__):
        at = list(run)
        span = f"{at[0]}" if len(at) == 1 else f"{at[0]}-{at[-1]}"
        parts.append(_("{span} h: {count}", span=span, count=count))
    return join(parts)


def stay(job: JobPlan) -> str:
    """Return why the job is to stay as it is, or that it is to end."""
    today, now = job.baseline, job.answer.now
    if now is not None and (now.kind == "end" or now.mends_limit):
        return _("{step}.", step=sentence(now))
    if today.cost.total is None and job.answer.reason is None:
        return _("Set today's machine with --machine, or its --price, to see the savings.")
    if today.breaks and (today.broken_limits or not job.options):
        text = _(
            "No option meets every limit. Today's machine breaks one: {limits}.",
            limits=join(translate_text(b.detail) for b in today.breaks),
        )
        remedy = _("Of a language model `gpucost serve plan` finds the GPUs and copies that do.")
        is_late = {b.reason for b in today.breaks} == {"latency"}
        return f"{text}{gap()}{remedy}" if is_late else text
    reason = job.answer.reason
    if reason is None and not today.breaks:
        return _("Keep it.")
    why = translate_text(reason or _("nothing within what was asked for is surely cheaper."))
    if any(
        saved.code in report_text.CODES["open"]
        for text, saved in job.messages.items()
        if text in (reason or "")
    ):
        return _("Keep it for now: {why}", why=why)
    return _("Keep it: {why}", why=why)


def sentence(step: Now | Proof) -> str:
    """Return a first step with its command, without the full stop."""
    step_text = translate_text(step.what)
    step_text = f"{step_text[0].upper()}{step_text[1:]}"
    return (
        _("{what}: {command}", what=step_text, command=step.command) if step.command else step_text
    )
