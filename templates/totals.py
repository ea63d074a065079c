"""The one recommended total of several jobs, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from templates.language.speech import join, say, spoken
from templates.report_text import change, dollars, other_currency, period_words, place

if TYPE_CHECKING:
    from planner.plan_document.document import AlternativeDocument, PlanDocument

_NAMES = 8  # of jobs that share; a fleet's others are counted


def total(plan: PlanDocument) -> str:
    """Return the one recommended total of several jobs, and how it comes about; else nothing."""
    found = plan.recommended
    if found is None:  # a plan of an earlier version
        return ""
    least = say("at least ") if found.at_least else ""
    said = say(
        "Recommended: {least}{usd} {period}",
        least=least,
        usd=dollars(found.cost.mid) + other_currency(found.cost.mid),
        period=period_words(plan),
    )
    if found.saves.fraction:
        said += say(
            " in place of {usd}, {less}",
            usd=dollars(found.cost_before),
            less=change(100.0 * found.saves.fraction),
        )
    else:
        said += say(", as today")
    if found.packed:
        more = len(found.packed) - _NAMES
        rest = say(" and {more} more", more=more) if more > 0 else ""
        taken = plan.fleet.taken if plan.fleet else None
        there = f" {_machine(taken)}" if taken else ""
        jobs = join(found.packed[:_NAMES])
        said += say("; {jobs}{rest} share{there}", jobs=jobs, rest=rest, there=there)
    if found.unknown:
        said += say("; without {jobs}, whose cost is not known", jobs=join(found.unknown))
    return say("{step}.", step=said)


def alternative(found: AlternativeDocument, plan: PlanDocument) -> str:
    """Return what all jobs cost with some of them on another machine type."""
    moved = len(found.jobs)
    who = say("all jobs") if moved == len(plan.jobs) else say("{n} of the jobs", n=moved)
    return say(
        "{who} on {machine}: {many} in all, {usd} {period}; what moving costs once is not in it",
        who=who,
        machine=_machine(found),
        many=f"{found.gpus_after} GPU{'s' if found.gpus_after > 1 and spoken() == 'en' else ''}",
        usd=dollars(found.cost_after),
        period=period_words(plan),
    )


def _machine(found: AlternativeDocument) -> str:
    return say("{gpu} at {where}", gpu=found.offer.gpu, where=place(found.offer))
