"""Jobs that are one row: those of which a report would say the same."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from templates.language.speech import say
from templates.report_text import changes, place

if TYPE_CHECKING:  # the words need to know the values' types, not the planner
    from planner.plan_document.document import PlanDocument
    from planner.plan_document.jobs import JobDocument
    from planner.plan_document.options import OptionDocument

_LONGEST_NAME = 60
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Jobs that stand in one row; the first of them is told.

    Attributes:
        jobs: at least one, in the plan's order.
    """

    jobs: tuple[JobDocument, ...]

    @property
    def first(self) -> JobDocument:
        """The job whose figures are told."""
        return self.jobs[0]

    @property
    def title(self) -> str:
        """`infer-captions`, or `4 x like infer-captions`."""
        name = short(self.first.name)
        if len(self.jobs) == 1:
            return name
        return say("{n} x like {name}", n=len(self.jobs), name=name)

    @property
    def before(self) -> Decimal | None:
        """Today's bill of all of them; None where it is not known."""
        each = [job.baseline.cost.total for job in self.jobs]
        known = [usd for usd in each if usd is not None]
        return sum(known, _ZERO) if len(known) == len(each) else None

    @property
    def choices(self) -> tuple[OptionDocument, ...]:
        """What each is to do, where it is to do something on its own."""
        return tuple(job.choice for job in self.jobs if job.choice is not None)

    @property
    def at_stake(self) -> Decimal:
        """What their recommended options save in the period."""
        return sum((one.saves.usd or _ZERO for one in self.choices), _ZERO)


def short(name: str) -> str:
    """Return a name as it fits into a row."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def alike(plan: PlanDocument) -> list[Alike]:
    """Return the jobs of a plan in groups of which the same is said, the largest saving first."""
    groups: dict[tuple[object, ...], list[JobDocument]] = {}
    for job in plan.jobs:
        groups.setdefault(_said(job, plan), []).append(job)
    found = [Alike(jobs=tuple(jobs)) for jobs in groups.values()]
    return sorted(found, key=lambda one: (-one.at_stake, -(one.before or _ZERO)))


def _said(job: JobDocument, plan: PlanDocument) -> tuple[object, ...]:
    """Return what a row says of a job: where it runs, what it costs, why, and what to do."""
    today, option, shared = job.baseline, job.choice, plan.placement_of(job)
    advice: tuple[object, ...] = ()
    if option is not None:
        cost = option.cost
        where = place(option.offer, option.count)
        advice = (where, changes(option), cost.low, cost.mid, cost.high, option.confidence)
    return (
        job.kind,
        place(today.offer, today.count),
        today.assumed,
        today.cost.total,
        tuple(finding.code for finding in job.findings),
        shared is not None,
        shared is not None and len(shared.jobs) > 1,
        advice,
    )
