"""The plan of a job cut down to what the plan as a whole needs: a fleet's fits into memory.

What is left out is written to the file job by job; what the notes of a plan and its screen count in
it is kept as `LeftOut`.
"""

from dataclasses import replace

from planner.plan.plan import JobPlan, LeftOut


def in_brief(job: JobPlan) -> JobPlan:
    """Return a job's plan with the options that it names alone, and without what explains them.

    Why nothing keeps every limit stays, as a plan that finds nothing says it.
    """
    named = job.named
    ids = {job.recommended, named.smallest_change, named.cheapest, named.first_launchable}
    listed = job.options
    kept = tuple(one for one in listed if one.id in ids) or listed[:1]
    held = {one.id for one in kept}
    return replace(
        job,
        findings=(),
        options=kept,
        rejected=() if job.feasible else job.rejected,
        machine_sizes=(),
        remedies=(),
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
