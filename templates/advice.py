"""What a plan advises, in sentences: what is paid and why, what to do, what gpucost can start."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from templates.language.translate import _, gap, join, translate_text, word
from templates.report_text import (
    STAY,
    place,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.plan.job import JobPlan
    from planner.plan.option import Baseline, Option
    from planner.signals.finding import FirstStep

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY_H = 24


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


def _first(job: JobPlan) -> list[str]:
    """Return the sentence on what to do first here; empty where nothing is worth it."""
    step = job.first_step
    if step is None:
        return []
    text = f"{sentence(step)[0].lower()}{sentence(step)[1:]}"
    return [_("First {step}.", step=text)]


def machine_of(way: Baseline | Option) -> tuple[object, ...]:
    """Return what is rented and how many; empty where that is unknown."""
    offer = way.offer
    if offer is None:
        return ()
    return offer.provider, offer.instance_type, offer.region, offer.purchase, way.count


def stay(job: JobPlan) -> str:
    """Return why the job is to stay as it is, and what to do first."""
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
        return _("{step}.", step=sentence(first))
    return gap().join([_leave(job), *_first(job)])


def sentence(step: FirstStep) -> str:
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
