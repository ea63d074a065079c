"""Jobs that are to end because no kernel of theirs ran: every output takes it from here.

A machine that others stand on is billed all the same, so ending a job there gives back its GPUs;
dollars come back where the machine goes, too. What is owed anyway does not come back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal

from planner.actions import ACTIONS
from planner.choice.candidate import owed_line
from planner.choice.changes import END, LOOK, must_end
from planner.choice.ranking import STAY, Named
from planner.plan.bill import CostRange
from planner.plan.confidence import if_taken
from planner.plan.draft import JobDraft, leaves
from planner.plan.job import Now
from planner.signals.finding import Saved
from planner.signals.thresholds import IDLE
from pricing.billing.lines import QuoteLine
from pricing.message import Message, join
from pricing.money import cents

# Six days hold four working days, whatever day the recording begins on; what works by itself, and
# not when people do, has none to wait for.
_LONG_H, _LONG_OF_WORK_H = 144.0, 24.0
_LOOKS = Now(
    kind="try",
    what=ACTIONS[LOOK].title,
    actions=(LOOK,),
    command=f"gpucost explain {LOOK}",
    effort_hours=ACTIONS[LOOK].effort_hours,
)


def end_idle(jobs: Iterable[JobDraft]) -> tuple[JobDraft, ...]:
    """Return what is planned for each job, those that do nothing as ended.

    A single job takes its machine with it: that ends only after days in which nothing ran at all.
    Before, no other machine is compared: nothing says what it would have to do.
    """
    plans = {job.name: job for job in jobs}
    if len(plans) == 1:
        (job,) = plans.values()
        if not job.does_nothing or job.profile.job.kind.answers:
            return (job,)
        return (_with_machine(job) if _is_abandoned(job) else _staying(job),)
    # What may still run on the CPU of a machine of its own is looked at; of a shared one it has to
    # be out of the way before the others save anything by leaving.
    shares = {job.name for job in plans.values() if (t := job.baseline.tenancy) and t.beside}
    return tuple(
        _ended(job, plans) if job.does_nothing or (job.may_end and job.name in shares) else job
        for job in plans.values()
    )


def _staying(job: JobDraft) -> JobDraft:
    reason = job.reason if job.baseline.owed else Message("keep.nothing-ran")
    named = Named(first_launchable=job.named.first_launchable)
    return replace(job, recommended=STAY, named=named, proof=None, reason=reason)


def _ended(job: JobDraft, plans: Mapping[str, JobDraft]) -> JobDraft:
    tenancy = job.baseline.tenancy
    neighbors = [plans[name] for name in tenancy.beside] if tenancy else []
    all_leave = all(map(leaves, neighbors))
    return replace(
        job,
        recommended=STAY,
        named=Named(),
        now=Now(kind="end", what=Message("first.stop"), actions=(END,))
        if job.does_nothing
        else _LOOKS,
        proof=None,
        reason=None,
        remaining=_remaining(job, all_leave=all_leave),
        leaving_first=tuple(n.name for n in neighbors if all_leave and not n.may_end),
    )


def _remaining(job: JobDraft, *, all_leave: bool) -> tuple[QuoteLine, ...]:
    """Return the lines of its bill that are still paid once it has ended."""
    bill, owed = job.baseline.quote, job.baseline.owed
    if bill is None:
        return ()
    if not all_leave:
        return bill.lines
    return (owed_line(owed, bill.usage.as_of),) if owed > 0 else ()


def _is_abandoned(job: JobDraft) -> bool:
    """Return whether a machine that can be given back did nothing for days, on its cores either.

    What hangs is to be started anew.
    """
    profile, baseline = job.profile, job.baseline
    window, tenancy, used = profile.window, baseline.tenancy, profile.cpu_fraction
    cores, kind = profile.hardware.cpu_cores or 1, profile.job.kind
    return (
        not must_end(job.findings)
        and window is not None
        and window.recorded_s >= 3600 * (_LONG_OF_WORK_H if kind.has_fixed_work else _LONG_H)
        and not (used and max(used / IDLE, used * cores) >= 1)
        and not baseline.owed
        and not (tenancy and tenancy.held < tenancy.of)
    )


def _with_machine(job: JobDraft) -> JobDraft:
    """Return a single job as ended together with its machine, and what to look at before."""
    ended, profile = _ended(job, {job.name: job}), job.profile
    window, cost = profile.window, cents(job.baseline.cost or Decimal(0))
    days = window.recorded_s / 86400 if window else 0.0
    zero, host, usage = Decimal("0.00"), profile.host, profile.usage
    kept_gib = usage.storage_gib if usage else None
    text = (
        Message("first.end-machine", days=days),
        Message("first.copy-data", gib=kept_gib) if kept_gib else Message("first.copy-disks"),
        "" if host and host.cpu_util else Message("first.cpu-unknown"),
    )
    now = Now(
        kind="end",
        what=join(text),
        actions=(END,),
        usd=CostRange.exactly(zero),
        saves=Saved(low=cost, mid=cost, high=cost),
        pays_back_periods=0,
    )
    bill, sure = job.baseline.quote, job.confidence
    if bill is not None:
        sure = if_taken(sure.diagnosis, None, job.baseline, bill.usage.as_of)
    return replace(ended, now=now, options=(), confidence=sure, steady=None, off_hours=None)
