"""What a plan advises, in sentences: what is paid and why, what to do, what gpucost can start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from templates.copies import copies
from templates.report_text import (
    STAY,
    changes,
    cost_range,
    period_words,
    place,
    saving,
    whole_dollars,
)

if TYPE_CHECKING:  # the words need to know the values' types, not the planner
    from planner.plan_document.document import PlanDocument
    from planner.plan_document.jobs import JobDocument, StepDocument
    from planner.plan_document.options import BaselineDocument, OptionDocument


def headline(job: JobDocument, plan: PlanDocument) -> tuple[str, str]:
    """Return two sentences: what is paid and why, and what to do."""
    today, period = job.baseline.cost.total, period_words(plan)
    known = "at least " if job.baseline.cost.at_least else ""
    if today is None:
        paid = "What it costs today is unknown."
    elif job.baseline.assumed:
        paid = f"It would cost {known}{whole_dollars(today)} {period} where it is assumed to run."
    else:
        paid = f"You pay {known}{whole_dollars(today)} {period}."
    return f"{paid} {_cause(job)}", _advice(job, plan)


def _cause(job: JobDocument) -> str:
    first = job.verdict
    if first is None or (first.code == "unmeasured" and first.waste_usd is None):
        return "Too little was measured to say what of it is wasted."
    return first.cause


def _advice(job: JobDocument, plan: PlanDocument) -> str:
    shared = plan.placement_of(job)
    if shared is None:
        return _advice_alone(job, plan)
    others = [name for name in shared.jobs if name != job.name]
    where = f"GPU {shared.id} ({place(shared.offer)})"
    taken = plan.fleet.taken if plan.fleet else None
    moves = taken is not None and job.name in taken.jobs
    keep = "Run" if moves else "Keep"
    told = f"Let it share {where} with {', '.join(others)}" if others else f"{keep} it on {where}"
    if moves and shared.offer.by_hand_at:
        told += f"; rent it at {shared.offer.by_hand_at}"
    return f"{told}. On its own: {_advice_alone(job, plan)}"


def _advice_alone(job: JobDocument, plan: PlanDocument) -> str:
    option, today = job.choice, job.baseline.cost.total
    if option is None:
        return _stay(job)
    less = saving(option, today)
    ends = f"{whole_dollars(option.cost.low)}-{whole_dollars(option.cost.high)[1:]}"
    advice = f"Run it on {place(option.offer, option.count)}, {changes(option, plan)}: "
    by_hand = f" Rent it at {option.offer.by_hand_at}." if option.offer.by_hand_at else ""
    told = f"{advice}{ends} {period_words(plan)}" + (f", {less}." if less else ".") + by_hand
    if option.scaling is not None:
        told += f" Copies: {copies(option.scaling.by_hour)}."
    return f"{told}{_to_launch(job, option, plan)}"


def _to_launch(job: JobDocument, option: OptionDocument, plan: PlanDocument) -> str:
    """Return what gpucost can start instead of an option that it cannot; empty where it need not.

    Nothing has to be started where the job stays on the machine that it runs on.
    """
    today = job.baseline
    stays = today.offer is not None and not today.assumed and _machine(today) == _machine(option)
    if option.provisionable or stays or job.smallest_change is None:
        return ""
    first = job.option(job.first_launchable)
    if first is None:
        return " gpucost can start none of the options listed."
    less = saving(first, today.cost.total)
    cost = f"{cost_range(first)} {period_words(plan)}" + (f", {less}" if less else "")
    where = f"{first.id}, {place(first.offer, first.count)}"
    return f" gpucost cannot start that; the first that it can is {where}: {cost}."


def _machine(way: BaselineDocument | OptionDocument) -> tuple[object, ...]:
    offer = way.offer
    if offer is None:
        return ()
    return offer.provider, offer.instance_type, offer.region, offer.purchase, way.count


def _stay(job: JobDocument) -> str:
    if job.baseline.cost.total is None:
        return "Say what it costs with --current, and savings can be worked out."
    if job.baseline.breaks:
        broken = ", ".join(sorted({b.reason for b in job.baseline.breaks}))
        return f"Nothing keeps every limit: today's machine breaks {broken}, and so does the rest."
    first = job.first_step
    if first is not None and first.kind == "end":
        return f"{_sentence(first)}."
    return _leave(job) + (
        f" First {_sentence(first)[0].lower()}{_sentence(first)[1:]}." if first else ""
    )


def _sentence(step: StepDocument) -> str:
    """Return a first step with its command, without the full stop."""
    what = f"{step.what[0].upper()}{step.what[1:]}"
    return f"{what}: {step.command}" if step.command else what


def _leave(job: JobDocument) -> str:
    """Return why nothing is recommended, for what reason the cheapest is not."""
    if not job.options:
        return "Leave it: no other offer keeps every limit."
    cheapest = min(job.options, key=lambda o: o.cost.mid)
    saves = cheapest.saves.usd
    if saves is None or saves <= 0:
        return "Leave it: no option is cheaper."
    worth = [o.benefit.saves_usd for o in job.options if o.benefit]
    sure = [saves for saves in worth if saves is not None and saves > 0]
    if not sure:
        return "Leave it: some options look cheaper, none is surely so (see their ranges)."
    return "Leave it: what is surely saved does not pay for the work and the move (see benefit)."


def named(job: JobDocument) -> str:
    """Return the named options: smallest change, cheapest, first to launch; empty for old plans."""
    if job.smallest_change is None or job.cheapest is None:
        return ""
    first = job.option(job.first_launchable)
    launch = f"{first.id} ({place(first.offer, first.count)})" if first else "none of them"
    return (
        f"smallest change that pays: {_id(job.smallest_change)}; cheapest: "
        f"{_id(job.cheapest)}; first that gpucost can launch: {launch}"
    )


def _id(option: str) -> str:
    return f"{option} (leave it)" if option == STAY else option
