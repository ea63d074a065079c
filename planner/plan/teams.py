"""Every dollar and idle hour by team, owner and cost centre: the parts of one bill."""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from planner.fleet.fleet import Together
from planner.models.costs import Label, TeamShare
from planner.plan.draft import JobDraft, PlanDraft
from planner.plan.use import JobUse, apportioned
from pricing.money import cents

LABELS: tuple[Label, ...] = ("team", "owner", "cost_center")
_ZERO = Decimal(0)


def teams(plan: PlanDraft, uses: Mapping[str, JobUse]) -> tuple[TeamShare, ...]:
    """Return the rows of every label that a job has; none where no job has any.

    The rows of one label sum to the plan's cost of today, and recommended, to the cent.

    Args:
        plan: what was planned.
        uses: what each job's bill is for.
    """
    after, free_after = _recommended(plan, uses)
    return tuple(
        row
        for label in LABELS
        if any(getattr(job.profile.job, label) for job in plan.jobs)
        for row in _rows(label, plan, uses, after, free_after)
    )


def _rows(
    label: Label,
    plan: PlanDraft,
    uses: Mapping[str, JobUse],
    after: Mapping[str, Decimal],
    free_after: Decimal,
) -> list[TeamShare]:
    named: dict[str | None, list[str]] = {}
    for job in plan.jobs:
        named.setdefault(getattr(job.profile.job, label) or None, []).append(job.name)
    names = sorted(named, key=lambda name: (name is None, name or ""))
    members = [[uses[job] for job in named[name]] for name in names]
    free = sum((use.free for use in uses.values()), _ZERO)
    *before, free_today = apportioned(
        [*(sum((use.held for use in of), _ZERO) for of in members), free], plan.recommended.before
    )
    *recommended, free_then = apportioned(
        [*(sum((after[job] for job in named[name]), _ZERO) for name in names), free_after],
        plan.recommended.mid,
    )
    rows = [
        _row(label, name, tuple(named[name]), members[index], (before[index], recommended[index]))
        for index, name in enumerate(names)
    ]
    if free_today or free_then:
        hours = sum(use.free_gpu_hours for use in uses.values())
        rows.append(
            TeamShare(
                by=label,
                name=None,
                held=False,
                jobs=(),
                gpu_hours=hours,
                idle_gpu_hours=hours,
                usd=free_today,
                work_usd=cents(_ZERO),
                idle_usd=free_today,
                unmeasured_usd=cents(_ZERO),
                data_usd=cents(_ZERO),
                recommended_usd=free_then,
            )
        )
    return rows


def _row(
    label: Label,
    name: str | None,
    jobs: tuple[str, ...],
    uses: list[JobUse],
    usd: tuple[Decimal, Decimal],
) -> TeamShare:
    """Return what the jobs of one team cost, of dollars today and recommended in cents."""
    kinds = ("work", "idle", "unmeasured", "data")
    exact = [sum((getattr(use, kind) for use in uses), _ZERO) for kind in kinds]
    work, idle, unmeasured, data = apportioned(exact, usd[0])
    return TeamShare(
        by=label,
        name=name,
        jobs=jobs,
        gpu_hours=sum(use.gpu_hours for use in uses),
        idle_gpu_hours=sum(use.idle_gpu_hours for use in uses),
        usd=usd[0],
        work_usd=work,
        idle_usd=idle,
        unmeasured_usd=unmeasured,
        data_usd=data,
        recommended_usd=usd[1],
    )


def _recommended(plan: PlanDraft, uses: Mapping[str, JobUse]) -> tuple[dict[str, Decimal], Decimal]:
    """Return the recommended dollars of each job, and of what nobody holds then.

    They are 0 where they are unknown, as in the total.
    """
    singly = {job.name: _alone(job, uses[job.name]) for job in plan.jobs}
    free_after = _ZERO
    for group in plan.recommended.packed:
        singly.update((name, (_ZERO, _ZERO)) for name in group.jobs)
        for usd, names in _bills(group, plan):
            held = [uses[name].held for name in names]
            total = sum(held, _ZERO)
            for name, usd_held in zip(names, held, strict=True):
                part = usd_held / total if total else Decimal(1) / len(names)
                singly[name] = (usd * part, _ZERO)
        free_after += sum((line.usd for line in group.free_lines), _ZERO)
    return (
        {name: held for name, (held, _) in singly.items()},
        sum((free for _, free in singly.values()), free_after),
    )


def _alone(job: JobDraft, use: JobUse) -> tuple[Decimal, Decimal]:
    """Return the dollars of a job that goes its own way, and of what nobody holds beside it."""
    usd = job.alone.mid or _ZERO
    if job.remaining is not None:
        return _ZERO, usd
    return (use.held, use.free) if job.choice is None and usd else (usd, _ZERO)


def _bills(group: Together, plan: PlanDraft) -> Iterator[tuple[Decimal, list[str]]]:
    """Yield dollars of jobs that are packed, with who pays them: of each GPU, and of the others."""
    alternative = plan.recommended.alternative
    fleet = alternative.fleet if alternative else plan.fleet
    names = {job.name for job in plan.jobs if job.remaining is None}.intersection(group.jobs)
    for placement in fleet.placements if fleet else ():
        if placement.id in group.placements:
            names.difference_update(placement.jobs)
            yield placement.cost, list(placement.jobs)
    if names:
        yield sum((line.usd for line in group.other_lines), _ZERO), sorted(names)
