"""The one recommended total of several jobs, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from templates.report_text import change, dollars, period_words

if TYPE_CHECKING:
    from planner.plan_document.document import PlanDocument

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
        said += f"; {', '.join(found.packed[:_NAMES])}{rest} share"
    if found.unknown:
        said += f"; without {', '.join(found.unknown)}, whose cost is not known"
    return f"{said}."
