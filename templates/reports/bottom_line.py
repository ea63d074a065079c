"""What a reader of bills asks next: the cost to expect, the work it takes, when that is paid back.

The headline says what is paid and what to do; this is the line below it. Figures are those of the
plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from templates.language.speech import say
from templates.report_text import beside, period_words, whole_dollars
from templates.reports.decision import paid_back
from templates.reports.fleet_rows import fleet_rows

if TYPE_CHECKING:
    from planner.plan_document.bill import CostRange
    from planner.plan_document.document import PlanDocument
    from planner.plan_document.jobs import JobDocument


def bottom_line(plan: PlanDocument) -> str:
    """Return cost, work and payback of what is recommended; empty where the plan does not know."""
    if all(_is_left(job) for job in plan.jobs) and not _is_packed(plan):
        return say("Nothing has to be done, so there is nothing to pay back.")
    if len(plan.jobs) == 1:
        return _of_job(plan.jobs[0], plan)
    return _of_all(plan)


def _is_left(job: JobDocument) -> bool:
    """Return whether a job whose bill is known stays as it is, and nothing is to be tried first."""
    today = job.baseline
    stays = job.choice is None and job.first_step is None and not today.breaks
    return stays and today.cost.total is not None and not today.assumed


def _is_packed(plan: PlanDocument) -> bool:
    return plan.recommended is not None and bool(plan.recommended.packed)


def _of_job(job: JobDocument, plan: PlanDocument) -> str:
    option = job.choice
    if option is None or option.benefit is None:
        return ""
    least = say("at least ") if option.cost.at_least else ""
    return say(
        "Expected: {cost} {period}; work: {work} (our estimate); paid back in: {time}.",
        cost=least + beside(option.cost.mid),
        period=period_words(plan),
        work=f"{option.benefit.effort_hours:g} h",
        time=paid_back(option, plan),
    )


def _of_all(plan: PlanDocument) -> str:
    found = plan.recommended
    if found is None or not found.saves.fraction:
        return ""
    row = fleet_rows(plan)[-1]
    least = say("at least ") if found.at_least else ""
    return say(
        "Expected: {cost} {period}{range}; work: {work} (our estimate); paid back in: {time}.",
        cost=least + beside(found.cost.mid),
        period=period_words(plan),
        range=_range(found.cost, plan),
        work=row.work,
        time=say("unknown") if row.paid_back == "-" else row.paid_back,
    )


def _range(cost: CostRange, plan: PlanDocument) -> str:
    """Return between what the cost is expected, or that only today's machines and prices count."""
    if cost.low == cost.high:
        if plan.fleet is None or plan.fleet.taken is not None:
            return ""
        packed = set(plan.recommended.packed) if plan.recommended else set()
        if any(job.choice for job in plan.jobs if job.name not in packed):
            return ""
        return say(" (no range: today's machines, fewer of them, at today's price)")
    return say(
        " ({low}-{high} nine times in ten)",
        low=whole_dollars(cost.low),
        high=whole_dollars(cost.high).removeprefix("$"),
    )
