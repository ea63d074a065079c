"""Jobs leave a machine whose bill they share all together or not at all.

Who moves off such a machine alone saves nothing: those who stay are billed for all of it.
"""

from collections.abc import Iterable
from dataclasses import replace

from planner.choice.ranking import STAY
from planner.plan.plan import JobPlan


def leave_together(jobs: Iterable[JobPlan]) -> tuple[JobPlan, ...]:
    """Return the plans, those that would leave their neighbours behind staying where they are.

    A job whose machine breaks a limit of the command line leaves all the same.
    """
    plans = {job.name: job for job in jobs}
    return tuple(_stay(job, plans) for job in plans.values())


def _stay(job: JobPlan, plans: dict[str, JobPlan]) -> JobPlan:
    tenancy = job.baseline.tenancy
    if tenancy is None or not _leaves(job) or job.baseline.broken:
        return job
    staying = [name for name in tenancy.beside if not _leaves(plans[name])]
    if not staying:
        return job
    note = (
        f"{job.name}: leaving {job.baseline.offer.name if job.baseline.offer else 'its machine'} "
        f"for {job.recommended} would save nothing while {', '.join(staying)} "
        f"{'stays' if len(staying) == 1 else 'stay'} on it: the machine is billed all the same."
    )
    baseline = replace(job.baseline, warnings=(*job.baseline.warnings, note))
    return replace(job, baseline=baseline, recommended=STAY)


def _leaves(job: JobPlan) -> bool:
    """Return whether the recommended option is another machine, or the same one elsewhere."""
    choice = job.choice
    if choice is None or job.baseline.offer is None:
        return False
    return not job.baseline.has_size_there(choice.offer)
