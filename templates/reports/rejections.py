"""What a reader would ask about: the machines that were ruled out, and what to type next."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from templates.language.speech import say
from templates.markdown import command

if TYPE_CHECKING:  # the words need to know the values' types, not the planner
    from planner.plan_document.document import PlanDocument
    from planner.plan_document.jobs import JobDocument, RejectedDocument

# Limits of the job come first, then ways to buy. That a machine has GPUs which the job does not
# use, or one that nobody knows, is not asked.
_ASKED = (
    "memory",
    "latency",
    "slowdown",
    "deadline",
    "budget",
    "interconnect",
    "region",
    "stale-price",
    "purchase",
    "capability",
    "unavailable",
)
_KINDS_A_REASON = 2
_FIGURE = re.compile(r"[\d.,]+")


def why_not(job: JobDocument) -> list[tuple[RejectedDocument, int]]:
    """Return the rejections worth reading, each with how many others were for the same reason.

    Of rejections that differ only in their figures one is told, where there is one of today's
    provider.
    """
    today = job.baseline.offer.provider if job.baseline.offer else ""
    kinds: dict[tuple[str, str], list[RejectedDocument]] = {}
    for one in sorted(job.rejected, key=lambda r: (not r.offer.startswith(f"{today}/"), r.offer)):
        if one.reason in _ASKED:
            kinds.setdefault((one.reason, _FIGURE.sub("", one.detail)), []).append(one)
    shown: list[tuple[RejectedDocument, int]] = []
    for reason in _ASKED:
        alike = [same for (kind, _), same in kinds.items() if kind == reason]
        alike.sort(key=lambda same: -len(same))
        shown += [(same[0], len(same) - 1) for same in alike[:_KINDS_A_REASON]]
    return shown


def next_steps(job: JobDocument, plan: PlanDocument) -> list[str]:
    """Return commands that can be run now."""
    option = job.choice
    steps = []
    if option is not None:
        quote = command("gpucost", "quote", "--option", f"{job.name}/{option.id}")
        saved = "`gpucost plan ... -o plan.json`"
        steps.append(say("{quote}, once the plan is saved with {plan}", quote=quote, plan=saved))
    first = job.verdict
    if first is not None:
        steps.append(command("gpucost", "explain", first.code))
    if plan.fleet is None and option is None:
        steps.append(command("gpucost", "prices", "--sort", "gpu-price"))
    return steps
