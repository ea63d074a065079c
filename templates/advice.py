"""What a plan advises, in sentences: what is paid and why, what to do, what gpucost can start."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from templates.language.translate import _, gap, join, translate_text, word
from templates.report_text import (
    STAY,
    beside,
    changes,
    cost_range,
    other_currency,
    period_words,
    place,
    saving,
    whole_dollars,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.plan.bill import OptionCost
    from planner.plan.job import JobPlan
    from planner.plan.option import Baseline, Option
    from planner.plan.plan import Plan
    from planner.signals.finding import FirstStep

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY_H = 24
_MONTH_H = 744.0
_LONGER = 1.05  # from here on it is said that the work takes longer


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


def headline(job: JobPlan, plan: Plan) -> tuple[str, str]:
    """Return two sentences: what is paid and why, and what to do."""
    today, period = job.baseline.cost.total, period_words(plan)
    least = _("at least ") if job.baseline.cost.at_least else ""
    if today is None:
        paid = _("What it costs today is unknown.")
    elif job.baseline.assumed:
        paid = _(
            "Assumed to run on {where}: {known}{usd} {period} (set --current).",
            where=place(job.baseline.offer, job.baseline.count),
            known=least,
            usd=beside(today),
            period=period,
        )
    else:
        paid = _("You pay {known}{usd} {period}.", known=least, usd=beside(today), period=period)
    return f"{paid}{gap()}{_cause(job)}", _advice(job, plan)


def _cause(job: JobPlan) -> str:
    first = job.verdict
    if first is None or (first.code == "unmeasured" and first.waste_usd is None):
        return _("Not enough was measured to say how much of it is wasted.")
    return translate_text(first.cause)


def _advice(job: JobPlan, plan: Plan) -> str:
    shared = plan.placement_of(job)
    if shared is None:
        return _advice_alone(job, plan)
    others = [name for name in shared.jobs if name != job.name]
    where = f"GPU {shared.id} ({place(shared.offer)})"
    taken = plan.fleet.taken if plan.fleet else None
    moves = taken is not None and job.name in taken.jobs
    if others:
        first = _("Let it share {where} with {others}", where=where, others=join(others))
    elif moves:
        first = _("Run it on {where}", where=where)
    else:
        first = _("Keep it on {where}", where=where)
    if moves and shared.offer.by_hand_at:
        first += _("; rent it at {site}", site=translate_text(shared.offer.by_hand_at))
    alone = _("On its own: {advice}", advice=_advice_alone(job, plan))
    return f"{_('{step}.', step=first)}{gap()}{alone}"


def _advice_alone(job: JobPlan, plan: Plan) -> str:
    option, today = job.choice, job.baseline.cost.total
    if option is None:
        return _stay(job)
    less = saving(option, today)
    advice = _(
        "Run it on {where}, {how}: {cost} {period}{less}.",
        where=place(option.offer, option.count),
        how=changes(option, plan),
        cost=_between(option.cost),
        period=period_words(plan),
        less=_(", {less}", less=less) if less else "",
    )
    parts = [advice]
    parts += _doubts(job, option, plan)
    if option.offer.by_hand_at:
        parts.append(_("Rent it at {site}.", site=translate_text(option.offer.by_hand_at)))
    if option.scaling:
        parts.append(_("Copies: {copies}.", copies=copies(option.scaling.by_hour)))
    return gap().join([*parts, *_to_launch(job, option, plan), *_first(job)])


def _doubts(job: JobPlan, option: Option, plan: Plan) -> list[str]:
    """Return what a reader must know before the change: its time, or why it costs more."""
    said, today, hours = [], job.baseline, option.hours
    longer = hours.mid / today.hours.mid if today.hours.mid else 1.0
    if longer >= _LONGER and option.scaling is None:
        said.append(_("The work takes {times} times as long.", times=f"{longer:.2g}"))
    if plan.period == "month" and hours.high > _MONTH_H and hours.high > today.hours.mid:
        said.append(_("It may take up to {hours} h of a month.", hours=f"{hours.high:.0f}"))
    limits = today.broken_limits
    if limits and option.saves.usd is not None and option.saves.usd < 0:
        broken = join(sorted({word("reason", b.reason) for b in limits}))
        said.append(
            _("It costs more, and keeps what today's machine breaks: {limits}.", limits=broken)
        )
    return said


def _first(job: JobPlan) -> list[str]:
    """Return the sentence on what to do first here; empty where nothing is worth it."""
    step = job.first_step
    if step is None:
        return []
    text = f"{_sentence(step)[0].lower()}{_sentence(step)[1:]}"
    return [_("First {step}.", step=text)]


def _between(cost: OptionCost) -> str:
    """Return `$138-288`, one figure where both ends are the same dollar."""
    low, high = whole_dollars(cost.low), whole_dollars(cost.high)
    if low == high:
        return beside(cost.high)
    return f"{low}-{high[1:]}" + other_currency(cost.low, cost.high)


def _to_launch(job: JobPlan, option: Option, plan: Plan) -> list[str]:
    """Return what gpucost can start instead of an option that it cannot; empty where it need not.

    Nothing has to be started where the job stays on the machine that it runs on.
    """
    today = job.baseline
    stays = today.offer is not None and not today.assumed and _machine(today) == _machine(option)
    if option.provisionable or stays or job.smallest_change is None:
        return []
    first = job.option(job.first_launchable)
    if first is None:
        return [_("gpucost can launch none of these options.")]
    less = saving(first, today.cost.total)
    sentence = _(
        "gpucost cannot launch that option. The best one that it can launch is "
        "{id}, {where}: {cost} {period}{less}.",
        id=first.id,
        where=place(first.offer, first.count),
        cost=cost_range(first),
        period=period_words(plan),
        less=_(", {less}", less=less) if less else "",
    )
    return [sentence]


def _machine(way: Baseline | Option) -> tuple[object, ...]:
    offer = way.offer
    if offer is None:
        return ()
    return offer.provider, offer.instance_type, offer.region, offer.purchase, way.count


def _stay(job: JobPlan) -> str:
    if job.baseline.cost.total is None:
        return gap().join(
            [_("Set today's machine with --current to see the savings."), *_first(job)]
        )
    if job.baseline.breaks and not job.baseline.broken_limits and job.options:
        wishes = join(sorted({word("reason", b.reason) for b in job.baseline.breaks}))
        kept = _("Keep it: nothing that was asked for ({wishes}) is surely cheaper.", wishes=wishes)
        return gap().join([kept, *_first(job)])
    if job.baseline.breaks:
        broken = join(sorted({word("reason", b.reason) for b in job.baseline.breaks}))
        return _(
            "No option meets every limit: today's machine breaks {limits}, "
            "and so do all the others.",
            limits=broken,
        )
    first = job.first_step
    if first is not None and first.kind == "end":
        return _("{step}.", step=_sentence(first))
    return gap().join([_leave(job), *_first(job)])


def _sentence(step: FirstStep) -> str:
    """Return a first step with its command, without the full stop."""
    what = translate_text(step.what)
    what = f"{what[0].upper()}{what[1:]}"
    return _("{what}: {command}", what=what, command=step.command) if step.command else what


def _leave(job: JobPlan) -> str:
    """Return why nothing is recommended, for what reason the cheapest is not."""
    if not job.options:
        return _("Keep it: no other offer meets every limit.")
    cheapest = min(job.options, key=lambda o: o.cost.mid)
    saves = cheapest.saves.usd
    if saves is None or saves <= 0:
        return _("Keep it: no option is cheaper.")
    worth = [o.benefit.saves_usd for o in job.options if o.benefit]
    sure = [saves for saves in worth if saves is not None and saves > 0]
    if not sure:
        return _("Keep it: no option is cheaper with confidence (see the ranges).")
    return _(
        "Keep it for now: what is certain to be saved does not cover the work and the move "
        "(see net benefit)."
    )


def named(job: JobPlan) -> str:
    """Return the named options: smallest change, cheapest, first to launch; empty for old plans."""
    if job.smallest_change is None or job.cheapest is None:
        return ""
    first = job.option(job.first_launchable)
    launch = f"{first.id} ({place(first.offer, first.count)})" if first else _("none")
    return _(
        "least effort that pays: {small}; cheapest: {cheap}; launchable with gpucost: {launch}",
        small=_id(job.smallest_change),
        cheap=_id(job.cheapest),
        launch=launch,
    )


def _id(option: str) -> str:
    return _("{id} (keep as is)", id=option) if option == STAY else option
