"""What today's bill is for, job by job: GPUs that work, that idle, and that nobody holds.

And the same by team, owner and cost centre: the parts of one bill.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from itertools import combinations

from msgspec import structs

from planner.fleet.fleet import Together
from planner.models.costs import BillUse, Label, TeamShare
from planner.models.estimate import digits, digits_of
from planner.plan.draft import JobDraft, PlanDraft
from planner.profile.join import by_shared_gpus, overlap
from planner.profile.model import Profile
from planner.profile.source import part_measured
from pricing.billing.quote import OF_THE_DATA
from pricing.money import EXACT, cents

_ZERO = Decimal(0)
_CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUse:
    """What one job's bill is for, exact: dollars of the period, and GPU hours.

    Attributes:
        gpus: that it holds, in parts where it shares them, and its part of those of its machine
            that nobody holds.
        gpu_hours: that it holds them.
        free_gpu_hours: its part of the machine's GPUs and hours that nobody holds.
        busy_fraction: of the held hours; None where nobody measured it.
        work: its GPUs while they are busy.
        idle: its GPUs while they are idle.
        unmeasured: its GPUs where nobody measured that.
        data: disks, snapshots and traffic.
        free: what nobody holds.
    """

    gpus: float
    gpu_hours: float
    free_gpu_hours: float
    busy_fraction: float | None
    work: Decimal = _ZERO
    idle: Decimal = _ZERO
    unmeasured: Decimal = _ZERO
    data: Decimal
    free: Decimal

    @property
    def held(self) -> Decimal:
        """Dollars of all but what nobody holds."""
        return self.work + self.idle + self.unmeasured + self.data

    @property
    def idle_gpu_hours(self) -> float:
        """Held and idle; 0 where nobody measured it."""
        return 0.0 if self.busy_fraction is None else self.gpu_hours * (1.0 - self.busy_fraction)


def job_uses(jobs: Sequence[JobDraft]) -> dict[str, JobUse]:
    """Return what each job's bill of today is for, by name."""
    busy: dict[str, float | None] = {}
    for group in by_shared_gpus([job.profile for job in jobs]):
        busy |= _busy_together([jobs[index] for index in group])
    return {job.name: _job_use(job, busy[job.name]) for job in jobs}


def _busy_together(jobs: Sequence[JobDraft]) -> dict[str, float | None]:
    """Return for jobs on the same GPUs how much of its own part of them each keeps busy, 0-1.

    Where each was read as busy as the device is, that is the part's, too; else what one takes of
    the others' parts is not idle there, and where the device was read beside them, no more is idle
    in all than it was.
    """
    crowds = [max(1.0, _own_parts(job)[0]) for job in jobs]  # jobs on each GPU
    shares = [job.profile.paid_busy_fraction for job in jobs]
    if not _are_of_device([job.profile for job in jobs]):
        shares = [b if b is None else b * crowd for b, crowd in zip(shares, crowds, strict=True)]
    parts = [
        (busy, job.profile.gpu_count / crowd)
        for busy, job, crowd in zip(shares, jobs, crowds, strict=True)
        if busy is not None
    ]
    free = sum(gpus * max(0.0, 1.0 - busy) for busy, gpus in parts)
    excess = sum(gpus * max(0.0, busy - 1.0) for busy, gpus in parts)
    devices = [d for job in jobs if (d := job.profile.mean("util.all_processes")) is not None]
    if len(devices) == len(parts) > 0:
        idle = 1.0 - sum(devices) / len(devices)
        excess = max(excess, free - sum(gpus for _, gpus in parts) * idle)
    scale = max(0.0, 1.0 - excess / free) if free else 1.0
    return {
        job.name: None if busy is None else 1.0 - scale * max(0.0, 1.0 - busy)
        for job, busy in zip(jobs, shares, strict=True)
    }


def _are_of_device(profiles: Sequence[Profile]) -> bool:
    """Return whether what several jobs read of the same GPUs is what the device did.

    So it is where they read the same to the digit, and where none ran while another did; not where
    the device was read beside what is of each alone.
    """
    if any(profile.readings("util.all_processes") for profile in profiles):
        return False
    readings = {tuple(profile.readings("util.kernel_time")) for profile in profiles}
    together = any(overlap(a, b) for a, b in combinations(profiles, 2))
    return len(profiles) > 1 and (len(readings) == 1 or not together)


def _job_use(job: JobDraft, busy: float | None) -> JobUse:
    count, hours = job.profile.hardware.gpu_count or 0, job.baseline.hours.mid
    of_gpus, of_hours = _own_parts(job)
    crowd, of_gpus = max(1.0, of_gpus), min(1.0, of_gpus)
    gpus = count * job.work.replicas * part_measured(job.profile) / crowd
    part = of_gpus * of_hours
    lines = job.baseline.quote.lines if job.baseline.quote else ()
    data = sum((line.usd for line in lines if line.what in OF_THE_DATA), _ZERO)
    machine = sum((line.usd for line in lines if line.what not in OF_THE_DATA), _ZERO)
    own = EXACT.multiply(machine, Decimal(repr(part)))
    work = _ZERO if busy is None else EXACT.multiply(own, Decimal(repr(busy)))
    return JobUse(
        gpus=gpus / of_gpus if of_gpus else gpus,
        gpu_hours=hours * gpus,
        free_gpu_hours=hours * gpus * (1.0 / part - 1.0) if part else 0.0,
        busy_fraction=busy,
        work=work,
        idle=_ZERO if busy is None else own - work,
        unmeasured=own if busy is None else _ZERO,
        data=data,
        free=machine - own,
    )


def _own_parts(job: JobDraft) -> tuple[float, float]:
    """Return the parts of a job's machine bill that are of its own GPUs and hours.

    The first is above 1 where jobs hold more GPUs together than the machine has: the jobs on each.
    """
    tenancy, offer = job.baseline.tenancy, job.baseline.offer
    if tenancy is None or offer is None or not tenancy.beside:
        return 1.0, 1.0
    hours = job.baseline.hours.mid
    return tenancy.of / tenancy.parts / offer.gpu_count, (
        hours / max(hours, tenancy.hours) if hours else 0.0
    )


def bill_use(
    plan: PlanDraft, uses: Mapping[str, JobUse], rows: Sequence[TeamShare]
) -> BillUse | None:
    """Return what the bill of all jobs is for; None of a single job.

    Args:
        plan: what was planned.
        uses: of each job, by name.
        rows: by team, owner or cost centre; the figures are the sums of the first label's.
    """
    if len(plan.jobs) == 1:
        return None
    first = [row for row in rows if row.by == rows[0].by]
    jobs = uses.values()
    if first:
        work = sum((row.work_usd for row in first), _ZERO)
        free = sum((row.idle_usd for row in first if not row.held), _ZERO)
        idle = sum((row.idle_usd for row in first if row.held), _ZERO)
    else:
        work, free, idle = (
            cents(sum((getattr(use, name) for use in jobs), _ZERO))
            for name in ("work", "free", "idle")
        )
    measured = [use for use in jobs if use.busy_fraction is not None]
    hours = sum(use.gpu_hours + use.free_gpu_hours for use in measured)
    busy = sum(use.gpu_hours * (use.busy_fraction or 0.0) for use in measured)
    return BillUse(
        gpus=digits(sum(use.gpus for use in jobs)),
        busy_fraction=digits_of(busy / hours if hours else None),
        work_usd=work,
        idle_usd=idle,
        free_usd=free,
        idle_by_job={name: cents(use.idle) for name, use in uses.items()},
    )


def apportioned(amounts: Sequence[Decimal], total: Decimal) -> list[Decimal]:
    """Return the amounts in cents, so that they sum to the total in cents (largest remainder).

    Args:
        amounts: exact, >= 0; they sum to about `total`.
        total: rounded half up to cents once.
    """
    floors = [amount.quantize(_CENT, ROUND_FLOOR) for amount in amounts]
    missing = int((cents(total) - sum(floors, _ZERO)) / _CENT)
    remainders = [amount - floor for amount, floor in zip(amounts, floors, strict=True)]
    order = sorted(range(len(remainders)), key=lambda index: -remainders[index])
    step = _CENT if missing > 0 else -_CENT
    for index in order[: abs(missing)] if missing > 0 else list(reversed(order))[: abs(missing)]:
        floors[index] += step
    return floors


LABELS: tuple[Label, ...] = ("team", "owner", "cost_center")


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
        row = _row(label, None, (), [], (cents(_ZERO), free_then))
        row = structs.replace(row, held=False, gpu_hours=hours, idle_gpu_hours=hours)
        rows.append(structs.replace(row, usd=free_today, idle_usd=free_today))
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
