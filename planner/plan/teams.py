"""Every dollar and idle hour by team, owner and cost centre: the parts of one bill."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal

from planner.models.costs import Label, TeamShare
from planner.plan.draft import JobDraft, PlanDraft
from pricing.billing.quote import OF_THE_DATA
from pricing.money import EXACT, cents

LABELS: tuple[Label, ...] = ("team", "owner", "cost_center")
_ZERO = Decimal(0)
_CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class _JobShare:
    """One job's part, exact: dollars in the order work, idle, sharing, unmeasured, data."""

    gpu_hours: float
    idle_gpu_hours: float
    parts: tuple[Decimal, ...]
    recommended: Decimal


def teams(plan: PlanDraft) -> tuple[TeamShare, ...]:
    """Return the rows of every label that a job has; none where no job has any.

    The rows of one label sum to the plan's cost of today, and recommended, to the cent.
    """
    after = _recommended(plan)
    shares = {job.name: _share(job, after[job.name]) for job in plan.jobs}
    return tuple(
        row
        for label in LABELS
        if any(getattr(job.profile.job, label) for job in plan.jobs)
        for row in _rows(label, plan, shares)
    )


def _rows(label: Label, plan: PlanDraft, shares: Mapping[str, _JobShare]) -> list[TeamShare]:
    named: dict[str | None, list[str]] = {}
    for job in plan.jobs:
        named.setdefault(getattr(job.profile.job, label) or None, []).append(job.name)
    names = sorted(named, key=lambda name: (name is None, name or ""))
    members = [[shares[job] for job in named[name]] for name in names]
    parts = [
        [sum(cells, _ZERO) for cells in zip(*(m.parts for m in of), strict=True)] for of in members
    ]
    before = apportioned([sum(of, _ZERO) for of in parts], plan.recommended.before)
    after = apportioned(
        [sum((one.recommended for one in of), _ZERO) for of in members], plan.recommended.mid
    )
    rows = []
    for place, name in enumerate(names):
        work, idle, sharing, unmeasured, data = apportioned(parts[place], before[place])
        rows.append(
            TeamShare(
                by=label,
                name=name,
                jobs=tuple(named[name]),
                gpu_hours=sum(one.gpu_hours for one in members[place]),
                idle_gpu_hours=sum(one.idle_gpu_hours for one in members[place]),
                usd=before[place],
                work_usd=work,
                idle_usd=idle,
                sharing_usd=sharing,
                unmeasured_usd=unmeasured,
                data_usd=data,
                recommended_usd=after[place],
            )
        )
    return rows


def _share(job: JobDraft, recommended: Decimal) -> _JobShare:
    gpu_hours = job.baseline.hours.mid * (job.profile.hardware.gpu_count or 0) * job.work.replicas
    busy = job.profile.paid_busy_fraction
    lines = job.baseline.quote.lines if job.baseline.quote else ()
    data = sum((line.usd for line in lines if line.what in OF_THE_DATA), _ZERO)
    machine = sum((line.usd for line in lines if line.what not in OF_THE_DATA), _ZERO)
    own = EXACT.multiply(machine, _own_part(job))
    beside = machine - own
    if busy is None:
        return _JobShare(gpu_hours, 0.0, (_ZERO, _ZERO, beside, own, data), recommended)
    work = EXACT.multiply(own, Decimal(repr(busy)))
    idle_hours = gpu_hours * (1.0 - busy)
    return _JobShare(gpu_hours, idle_hours, (work, own - work, beside, _ZERO, data), recommended)


def _own_part(job: JobDraft) -> Decimal:
    """Return the part of a job's machine bill that is of its own GPUs and hours, at most 1."""
    tenancy, offer = job.baseline.tenancy, job.baseline.offer
    if tenancy is None or offer is None or not tenancy.beside:
        return Decimal(1)
    hours = job.baseline.hours.mid
    of_gpus = min(1.0, tenancy.of / offer.gpu_count)
    of_hours = hours / max(hours, tenancy.hours) if hours else 0.0
    return Decimal(repr(of_gpus * of_hours))


def _recommended(plan: PlanDraft) -> dict[str, Decimal]:
    """Return the recommended dollars of each job; 0 where they are unknown, as in the total."""
    after = {job.name: job.alone.mid or _ZERO for job in plan.jobs}
    before = {job.name: job.alone.before or _ZERO for job in plan.jobs}
    for group in plan.recommended.packed:
        whole = sum((before[name] for name in group.jobs), _ZERO)
        for name in group.jobs:
            part = before[name] / whole if whole else Decimal(1) / len(group.jobs)
            after[name] = group.cost * part
    return after


def apportioned(amounts: Sequence[Decimal], total: Decimal) -> list[Decimal]:
    """Return the amounts in cents, so that they sum to the total in cents (largest remainder).

    Args:
        amounts: exact, >= 0; they sum to about `total`.
        total: rounded half up to cents once.
    """
    floors = [amount.quantize(_CENT, ROUND_FLOOR) for amount in amounts]
    missing = int((cents(total) - sum(floors, _ZERO)) / _CENT)
    order = _by_remainder(amounts, floors)
    step = _CENT if missing > 0 else -_CENT
    for place in order[: abs(missing)] if missing > 0 else list(reversed(order))[: abs(missing)]:
        floors[place] += step
    return floors


def _by_remainder(amounts: Iterable[Decimal], floors: Iterable[Decimal]) -> list[int]:
    left = [amount - floor for amount, floor in zip(amounts, floors, strict=True)]
    return sorted(range(len(left)), key=lambda place: -left[place])
