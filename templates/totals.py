"""The one recommended total of several jobs, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from templates.report_text import change, dollars, period_words, place

if TYPE_CHECKING:
    from planner.plan_document.document import AlternativeDocument, PlanDocument

_NAMES = 8  # of jobs that share; a fleet's others are counted


def total(plan: PlanDocument) -> str:
    """Return the one recommended total of several jobs, and how it comes about; else nothing."""
    found = plan.recommended
    if found is None:  # a plan of an earlier version
        return ""
    least = "at least " if found.at_least else ""
    said = f"Recommended: {least}{dollars(found.cost.mid)} {period_words(plan)}"
    if found.saves.fraction:
        said += f" in place of {dollars(found.cost_before)}, "
        said += change(100.0 * found.saves.fraction)
    else:
        said += ", as today"
    if found.packed:
        more = len(found.packed) - _NAMES
        rest = f" and {more} more" if more > 0 else ""
        taken = plan.fleet.taken if plan.fleet else None
        there = f" {_machine(taken)}" if taken else ""
        said += f"; {', '.join(found.packed[:_NAMES])}{rest} share{there}"
    if found.unknown:
        said += f"; without {', '.join(found.unknown)}, whose cost is not known"
    return f"{said}."


def alternative(found: AlternativeDocument, plan: PlanDocument) -> str:
    """Return what all jobs cost with some of them on another machine type."""
    moved = len(found.jobs)
    who = "all jobs" if moved == len(plan.jobs) else f"{moved} of the jobs"
    many = f"{found.gpus_after} GPU{'s' if found.gpus_after > 1 else ''}"
    return (
        f"{who} on {_machine(found)}: {many} in all, {dollars(found.cost_after)} "
        f"{period_words(plan)}; what moving costs once is not in it"
    )


def _machine(found: AlternativeDocument) -> str:
    return f"{found.offer.gpu} at {place(found.offer)}"
