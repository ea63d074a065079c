"""Jobs of a fleet that are to end because no kernel of theirs ran: every output takes it from here.

A machine that others stand on is billed all the same, so ending a job there gives back its GPUs;
dollars come back where the machine goes, too. What is owed anyway does not come back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from planner.choice.candidate import owed_line
from planner.choice.changes import END
from planner.choice.ranking import STAY, Named
from planner.plan.draft import JobDraft, leaves
from planner.plan.job import Now
from pricing.billing.lines import QuoteLine
from pricing.message import Message


def end_idle(jobs: Iterable[JobDraft]) -> tuple[JobDraft, ...]:
    """Return what is planned for each job, those that do nothing as ended.

    Of a single job it is said what to do with it instead, for its machine is its own.
    """
    plans = {job.name: job for job in jobs}
    if len(plans) == 1:
        return tuple(plans.values())
    return tuple(_ended(job, plans) if job.does_nothing else job for job in plans.values())


def _ended(job: JobDraft, plans: Mapping[str, JobDraft]) -> JobDraft:
    return replace(
        job,
        recommended=STAY,
        named=Named(),
        now=Now(kind="end", what=Message("first.stop"), actions=(END,)),
        proof=None,
        reason=None,
        remaining=_remaining(job, plans),
    )


def _remaining(job: JobDraft, plans: Mapping[str, JobDraft]) -> tuple[QuoteLine, ...]:
    """Return the lines of its bill that are still paid once it has ended, alone."""
    tenancy, bill = job.baseline.tenancy, job.baseline.quote
    if bill is None:
        return ()
    if not all(leaves(plans[name]) for name in (tenancy.beside if tenancy else ())):
        return bill.lines
    owed = job.baseline.owed
    return (owed_line(owed, bill.usage.as_of),) if owed > 0 else ()
