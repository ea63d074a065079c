"""The plan of a job cut down to what the plan as a whole needs: a fleet's fits into memory.

What is left out is written to the file job by job; what the notes of a plan and its screen count in
it is kept as `LeftOut`.
"""

from dataclasses import replace

from planner.actions.settings import MachineSettings
from planner.choice.option import Energy
from planner.choice.ranking import Named
from planner.plan.plan import JobPlan, LeftOut


def in_brief(job: JobPlan) -> JobPlan:
    """Return a job's plan with the option that is recommended alone, and without what explains it.

    Where today's machine breaks a limit an option stays, if there is one, as that keeps them; why
    nothing does stays, too, as a plan that finds nothing says it.
    """
    listed = job.options
    chosen = tuple(one for one in listed if one.id == job.recommended)
    kept = chosen or (listed[:1] if job.baseline.broken else ())
    held = {one.id for one in kept}
    return replace(
        job,
        findings=(),
        options=kept,
        rejected=() if job.feasible else job.rejected,
        named=Named(),
        machine=MachineSettings(),
        remedies=(),
        work_cost=None,
        energy=Energy(),
        power_cap=None,
        first_step=None,
        machine_sizes=(),
        probe=None,
        left_out=LeftOut(
            codes=frozenset(job.codes),
            offers=tuple(one.offer for one in listed if one.id not in held),
            blind=frozenset(
                one.offer.provider
                for one in listed
                if one.offer.purchase == "spot" and not one.interruptions_known
            ),
        ),
    )
