"""What changed between two plans: costs by cause, new and gone waste (`gpucost.plan-change/v1`)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Literal

import msgspec

from planner.models.document import Number
from planner.models.estimate import digits
from planner.plan.job import JobPlan
from planner.plan.option import Baseline
from planner.plan.plan import Plan
from pricing.errors import InputError
from pricing.message import Message
from pricing.money import EXACT, Amount, cents

SCHEMA = "gpucost.plan-change/v1"
What = Literal["new", "gone", "stays"]
_ZERO = Decimal(0)
_SAME = 0.05  # between two readings of how busy GPUs are


class JobChange(msgspec.Struct, frozen=True, kw_only=True):
    """How today's bill of one job changed; the last three sum to after - before.

    Attributes:
        job: its name.
        what: new, gone or stays.
        before: dollars of the period; None where unknown, or the job is new.
        after: None where unknown, or the job is gone.
        price_usd: because the price of the same machine moved; None unless both are known, as
            in the next two.
        usage_usd: because hours, machines, data or the share of a machine changed.
        machine_usd: because it runs on another machine, or is bought in another way.
        busy_before: share of the time that kernels ran, 0-1; None where unknown, as the next.
        busy_after: in the later plan.
    """

    job: str
    what: What
    before: Amount | None
    after: Amount | None
    price_usd: Amount | None = None
    usage_usd: Amount | None = None
    machine_usd: Amount | None = None
    busy_before: float | None = None
    busy_after: float | None = None

    @property
    def moved_usd(self) -> Decimal | None:
        """After less before; None where a cost is unknown."""
        if self.what == "stays" and None in (self.before, self.after):
            return None
        return (self.after or _ZERO) - (self.before or _ZERO)

    @property
    def busy_hour_ratio(self) -> float | None:
        """What an hour of kernels costs now, over what it cost; None where it moved by under 5 %.

        For the same bill: a bill that moved has its causes in dollars.
        """
        if not self.busy_before or not self.busy_after or self.before != self.after:
            return None
        ratio = self.busy_before / self.busy_after
        return None if abs(ratio - 1.0) < _SAME else ratio


class WasteChange(msgspec.Struct, frozen=True, kw_only=True):
    """One finding of one job that came or went; dollars of the period, None where unknown.

    Attributes:
        job: its name.
        code: of the finding.
        what: it is new, or gone.
        before: in the earlier plan [USD].
        after: in the later plan [USD].
    """

    job: str
    code: str
    what: Literal["new", "gone"]
    before: Amount | None
    after: Amount | None


class ChangeTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over the jobs; `after` is `before` and the five causes together, to the cent.

    Waste sums what findings that came or went put at stake; findings of one job overlap.

    Attributes:
        before: today's bills in the earlier plan [USD].
        after: in the later one [USD].
        price_usd: because prices moved, for the same use.
        usage_usd: because use moved, at the same prices.
        machine_usd: because jobs run on other machines.
        new_jobs_usd: of jobs that are new.
        gone_jobs_usd: of jobs that are gone, below 0.
        new_waste_usd: what new findings put at stake.
        gone_waste_usd: what findings that are gone had put at stake.
    """

    before: Amount
    after: Amount
    price_usd: Amount
    usage_usd: Amount
    machine_usd: Amount
    new_jobs_usd: Amount
    gone_jobs_usd: Amount
    new_waste_usd: Amount
    gone_waste_usd: Amount


class PlanChange(msgspec.Struct, frozen=True, kw_only=True):
    """Two plans held against each other.

    Attributes:
        schema: `gpucost.plan-change/v1`.
        currency: of every amount.
        period: every dollar is for a `month` or a `run`.
        earlier, later: days of their prices.
        totals: of all jobs whose cost is known.
        jobs: by name.
        waste: findings that came or went.
        unknown: jobs whose cost is unknown in a plan that has them; they are in no total.
        hours_ratio: machine hours of the jobs that stay, after over before; None where there are
            none, as the next.
        hour_price_ratio: the same of what an hour of their machines costs. More hours and
            another price make the bill: it grows by the product of both.
    """

    schema: str = SCHEMA
    currency: str = "USD"
    period: str
    earlier: date
    later: date
    totals: ChangeTotals
    jobs: tuple[JobChange, ...]
    waste: tuple[WasteChange, ...]
    unknown: tuple[str, ...] = ()
    hours_ratio: Number | None = None
    hour_price_ratio: Number | None = None

    @property
    def moved(self) -> tuple[JobChange, ...]:
        """The jobs that came, went, or cost something else, those that moved most first."""
        moved = (job for job in self.jobs if job.what != "stays" or job.before != job.after)
        return tuple(sorted(moved, key=lambda job: -abs(job.moved_usd or _ZERO)))


def plan_change(old: Plan, new: Plan) -> PlanChange:
    """Return what changed from an old plan to a new one; jobs are the same by name.

    Raises:
        InputError: one is per month, the other per run, so that dollars cannot be compared.
    """
    if old.period != new.period:
        raise InputError(Message("input.other-period", old=old.period, new=new.period))
    before, after = _by_name(old), _by_name(new)
    if len(old.jobs) == len(new.jobs) == 1:  # two logs of one job: its name is that of a file
        before = {new.jobs[0].name: old.jobs[0]}
    names = sorted({*before, *after})
    jobs = tuple(_job(name, before.get(name), after.get(name)) for name in names)
    waste = tuple(
        change for name in names for change in _waste(name, before.get(name), after.get(name))
    )
    unpriced = tuple(job.job for job in jobs if not _is_known(job))
    priced = [job.job for job in jobs if job.what == "stays" and _is_known(job)]
    moved = _hours_and_price(*([plan[n].baseline for n in priced] for plan in (before, after)))
    return PlanChange(
        period=new.period,
        earlier=old.as_of,
        later=new.as_of,
        totals=_totals([job for job in jobs if _is_known(job)], waste),
        jobs=jobs,
        waste=waste,
        unknown=unpriced,
        hours_ratio=moved and digits(moved[0]),
        hour_price_ratio=moved and digits(moved[1]),
    )


def _hours_and_price(
    before: Sequence[Baseline], after: Sequence[Baseline]
) -> tuple[float, float] | None:
    """Return machine hours after over before, and the price of one; None where none is known."""
    hours, hours_now = (
        sum((Decimal(str(today.hours.mid)) * today.count for today in bills), _ZERO)
        for bills in (before, after)
    )
    bill, bill_now = (sum(map(_compute_usd, bills), _ZERO) for bills in (before, after))
    if not (hours and bill and hours_now):
        return None
    return float(hours_now / hours), float(bill_now / hours_now * hours / bill)


def _compute_usd(today: Baseline) -> Decimal:
    return sum((line.usd for line in today.cost.lines if line.what == "compute"), _ZERO)


def _by_name(plan: Plan) -> Mapping[str, JobPlan]:
    return {job.name: job for job in plan.jobs}


def _is_known(job: JobChange) -> bool:
    bills = {"new": (job.after,), "gone": (job.before,), "stays": (job.before, job.after)}
    return None not in bills[job.what]


def _job(name: str, old: JobPlan | None, new: JobPlan | None) -> JobChange:
    before = old.baseline.cost.total if old else None
    after = new.baseline.cost.total if new else None
    if old is None or new is None:
        kind: What = "new" if old is None else "gone"
        return JobChange(job=name, what=kind, before=before, after=after)
    if before is None or after is None:
        return JobChange(job=name, what="stays", before=before, after=after)
    price, usage, machine = _causes(old.baseline, new.baseline, after - before)
    return JobChange(
        job=name,
        what="stays",
        before=before,
        after=after,
        price_usd=price,
        usage_usd=usage,
        machine_usd=machine,
        busy_before=old.busy_fraction or None,
        busy_after=new.busy_fraction or None,
    )


def _causes(old: Baseline, new: Baseline, moved: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    """Return the parts of a change that price, usage and machine bring; they sum to it.

    The price's part is at the use of before, the rest is use: on another machine no part of the
    change is told apart.
    """
    if old.offer is None or new.offer is None or _machine(old) != _machine(new):
        return _ZERO, _ZERO, moved
    compute, per_hour = _compute_usd(old), old.offer.usd_per_hour
    if not per_hour:
        return _ZERO, moved, _ZERO
    dearer = EXACT.divide(new.offer.usd_per_hour - per_hour, per_hour)
    price = cents(EXACT.multiply(compute, dearer))
    return price, moved - price, _ZERO


def _machine(today: Baseline) -> tuple[object, ...]:
    offer = today.offer
    return (offer.provider, offer.instance_type, offer.region, offer.purchase) if offer else ()


def _waste(name: str, old: JobPlan | None, new: JobPlan | None) -> Iterable[WasteChange]:
    """Yield the findings of a job that came or went; neither a missing reading nor good use."""
    before, after = _findings(old), _findings(new)
    for code in sorted(after.keys() - before.keys()):
        yield WasteChange(job=name, code=code, what="new", before=None, after=after[code])
    for code in sorted(before.keys() - after.keys()):
        yield WasteChange(job=name, code=code, what="gone", before=before[code], after=None)


def _findings(job: JobPlan | None) -> Mapping[str, Decimal | None]:
    findings = job.findings if job else ()
    return {f.code: f.waste_usd for f in findings if f.code not in {"unmeasured", "well-used"}}


def _totals(jobs: list[JobChange], waste: tuple[WasteChange, ...]) -> ChangeTotals:
    def of(name: str, kind: What | None = None) -> Decimal:
        chosen = (job for job in jobs if kind in (None, job.what))
        return sum((getattr(job, name) or _ZERO for job in chosen), _ZERO)

    return ChangeTotals(
        before=of("before"),
        after=of("after"),
        price_usd=of("price_usd"),
        usage_usd=of("usage_usd"),
        machine_usd=of("machine_usd"),
        new_jobs_usd=of("after", "new"),
        gone_jobs_usd=-of("before", "gone"),
        new_waste_usd=sum((change.after or _ZERO for change in waste), _ZERO),
        gone_waste_usd=sum((change.before or _ZERO for change in waste), _ZERO),
    )
