"""Which option of a plan a run was, and what its measured speed-up is worth: both bills."""

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

import msgspec

from planner.choice.baseline import bill_of_work, find_baseline, find_today
from planner.choice.requirements import Requirements
from planner.choice.workload import choose_period, workload
from planner.models.estimate import Estimate
from planner.plan.bill import CostLine, RentedOffer, cost_lines, offer_on
from planner.plan.job import JobPlan
from planner.plan.plan import Plan
from planner.plan.read import FoundOption, every_option, find_option
from planner.profile.kinds import APPLIED, JobKind
from planner.profile.model import Profile
from planner.profile.source import slice_named
from planner.proof.speed import MeasuredRatio
from pricing.billing.quote import OF_THE_DATA
from pricing.catalog.catalog import Catalog
from pricing.errors import InputError
from pricing.hardware import find
from pricing.listing import listed
from pricing.message import Message
from pricing.money import EXACT, sum_exactly

Period = Literal["month", "run"]
_ASK = Requirements()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rented:
    """The machines of the run after the change, and their bill of one period.

    Attributes:
        offer: one of them.
        count: how many.
        lines: the bill, as if it ran `hours`.
        hours: that the lines are for.
    """

    offer: RentedOffer
    count: int
    lines: tuple[CostLine, ...]
    hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Dollars:
    """The bill before and after the change, for one period and the same work.

    Attributes:
        period: what the dollars are for.
        before: exact.
        low: after, at the high end of the speed-up.
        mid: after, as measured.
        high: after, at the low end of the speed-up.
        hours_before: of the period.
        hours_after: of the period, as measured.
        rented: the machines after, and their bill as measured.
        follows_speed: whether a faster run needs fewer hours; else hours are held time and stay.
        notes: what was assumed.
    """

    period: Period
    before: Decimal
    low: Decimal
    mid: Decimal
    high: Decimal
    hours_before: float
    hours_after: float
    rented: _Rented
    follows_speed: bool
    notes: tuple[str, ...] = ()

    @property
    def saved_low(self) -> Decimal:
        """Least dollars saved, at the ends of the speed-up's 95 % interval."""
        return EXACT.subtract(self.before, self.high)

    @property
    def saved(self) -> Decimal:
        """Dollars saved as measured; below 0 where it costs more."""
        return EXACT.subtract(self.before, self.mid)

    @property
    def saved_high(self) -> Decimal:
        """Most dollars saved."""
        return EXACT.subtract(self.before, self.low)


def by_plan(plan: Plan, option: FoundOption, speed: MeasuredRatio) -> Dollars | None:
    """Return the dollars on the machines of a plan's option; None where a bill is not known."""
    today, cost = option.job.baseline.cost.total, option.cost
    if today is None or cost is None or option.offer is None:
        return None
    hours = option.job.baseline.hours.mid
    follows = plan.period == "run" or JobKind(option.job.kind).has_fixed_work
    notes = (f"today's bill, hours and prices are those of the plan of {plan.as_of}.",)
    rented = _Rented(
        offer=option.offer, count=option.count, lines=cost.lines, hours=option.hours.mid
    )
    return _dollars(plan.period, today, hours, rented, speed, follows=follows, notes=notes)


def by_catalog(
    before: Profile,
    after: Profile,
    catalog: Catalog,
    speed: MeasuredRatio,
    requirements: Requirements = _ASK,
) -> Dollars:
    """Return the dollars at the catalog's prices, as `plan` prices a job today.

    A run after that does not say where it ran, on the GPUs of the run before, ran there.

    Raises:
        InputError: no price of one of the two is known, or no GPU is named.
    """
    period = choose_period((before,), requirements)
    work = workload(before, requirements, period)
    today = find_baseline(before, work, catalog, requirements)
    if today.offer is None or today.cost is None:
        raise InputError(today.notes or f"{before.job.name}: no price of today's machine is known.")
    notes = today.notes
    offer, count = today.offer, today.count
    if _elsewhere(before, after):
        baseline = find_baseline(after, work, catalog, Requirements())
        if baseline.offer is None:
            raise InputError(baseline.notes)
        offer, count = baseline.offer, baseline.count
        notes = (*notes, *find_today(after, catalog, Requirements())[2])
    faster = work.hours_at_work / speed.mid if work.fixed_work else work.hours_at_work
    hours = faster + work.idle_hours
    bill = bill_of_work(offer, count, hours, work, catalog)
    rented = _Rented(
        offer=offer_on(offer, catalog.as_of), count=count, lines=cost_lines(bill.lines), hours=hours
    )
    return _dollars(
        period,
        today.cost,
        work.hours.mid,
        rented,
        speed,
        follows=work.fixed_work,
        notes=tuple(dict.fromkeys(notes)),
    )


def _elsewhere(before: Profile, after: Profile) -> bool:
    """Return whether the run after stood on other machines than the run before, by what it says."""
    old, new = before.hardware, after.hardware
    stated = new.provider is not None and new.instance_type is not None
    moved = stated and (new.provider, new.instance_type) != (old.provider, old.instance_type)
    return moved or (new.gpu, after.gpu_count) != (old.gpu, before.gpu_count)


def _dollars(  # noqa: PLR0913 - a bill has that many parts
    period: Period,
    before: Decimal,
    hours: float,
    rented: _Rented,
    speed: MeasuredRatio,
    *,
    follows: bool,
    notes: tuple[str, ...],
) -> Dollars:
    ends = {
        end: hours / ratio if follows else hours
        for end, ratio in (("low", speed.high), ("mid", speed.mid), ("high", speed.low))
    }
    bills = {end: _scaled(rented, to_hours) for end, to_hours in ends.items()}
    return Dollars(
        period=period,
        before=before,
        low=sum_exactly(line.usd for line in bills["low"]),
        mid=sum_exactly(line.usd for line in bills["mid"]),
        high=sum_exactly(line.usd for line in bills["high"]),
        hours_before=hours,
        hours_after=ends["mid"],
        rented=replace(rented, lines=bills["mid"], hours=ends["mid"]),
        follows_speed=follows,
        notes=notes,
    )


def _scaled(rented: _Rented, hours: float) -> tuple[CostLine, ...]:
    """Return the bill for other hours: machines follow them, a job's data stay."""
    if not rented.hours or hours == rented.hours:
        return rented.lines
    factor = Decimal(str(hours)) / Decimal(str(rented.hours))
    return tuple(_line(line, factor) for line in rented.lines)


def _line(line: CostLine, factor: Decimal) -> CostLine:
    if line.what in OF_THE_DATA:
        return line
    return msgspec.structs.replace(
        line,
        usd=EXACT.multiply(line.usd, factor),
        how=f"({line.how}) x {factor:.4f}, for the measured hours",
        parts=tuple(
            msgspec.structs.replace(part, quantity=EXACT.multiply(part.quantity, factor))
            for part in line.parts or ()
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """What a plan said of the run after the change.

    Attributes:
        option: the option.
        speedup: its 90 % interval over the profiled run.
    """

    option: FoundOption
    speedup: Estimate

    def held(self, measured: MeasuredRatio) -> bool:
        """Return whether what was measured lies in the predicted interval."""
        return self.speedup.low <= measured.mid <= self.speedup.high


def option_run(
    plan: Plan, before: Profile, after: Profile, named: str | None
) -> FoundOption | None:
    """Return the option that the run after the change was; None where none fits.

    The named one, else of those on the GPUs (and, where it is stated, the machine) of that run: the
    ones whose actions are nearest to what `gpucost run` applied, where it did; of them the
    recommended one, else the first in the plan's order.

    Raises:
        InputError: the name fits no option, the named one is of other GPUs, or the plan has several
            jobs and none of this name.
    """
    piece = slice_named(after)
    on_a_part = piece is not None and piece != slice_named(before)
    if named is not None:
        option = find_option(plan, named)
        if option.offer and (on_a_part or not _gpus_fit(option.offer, option.count, after)):
            machines = option.count * option.offer.gpu_count
            planned = f"{machines:g}x {option.offer.gpu}"
            ran = f"{after.gpu_count}x {after.hardware.gpu}{f' ({piece})' if piece else ''}"
            raise InputError(Message("input.other-gpus", option=named, planned=planned, ran=ran))
        return option
    if on_a_part:
        return None
    job = _job(plan, before)
    fitting = [
        option
        for option in every_option(job)
        if option.option is not None
        and option.offer is not None
        and _gpus_fit(option.offer, option.count, after)
        and _machine_fits(option.offer, job, after)
    ]
    done = applied(after)
    return min(
        fitting,
        key=lambda option: (
            len(done ^ set(option.actions)) if done else 0,
            not option.is_recommended,
        ),
        default=None,
    )


def applied(after: Profile) -> frozenset[str]:
    """Return the actions that `gpucost run` applied in a run; none where it applied none."""
    return frozenset(
        change.action for change in after.changes if change.action and change.outcome == APPLIED
    )


def not_applied(option: FoundOption, after: Profile) -> tuple[str, ...]:
    """Return the actions of an option that `gpucost run` left, where it was what ran."""
    skipped = {change.action for change in after.changes} - applied(after)
    return tuple(code for code in option.actions if code in skipped)


def prediction_of(option: FoundOption) -> Predicted | None:
    """Return what the plan predicted of an option; None for today's machine, which changes nothing.

    Plans of versions that did not write the speed-up tell it by the hours.
    """
    entry = option.option
    if entry is None:
        return None
    speedup = entry.speed
    if speedup is None:
        now, then = option.job.baseline.hours.mid, entry.hours
        if not (now and then.low):
            return None
        speedup = Estimate(
            low=now / then.high, mid=now / then.mid, high=now / then.low, basis=then.basis
        )
    return Predicted(option=option, speedup=speedup)


def _job(plan: Plan, before: Profile) -> JobPlan:
    named = [job for job in plan.jobs if job.name == before.job.name]
    if not named and len(plan.jobs) == 1:
        return plan.jobs[0]
    if not named:
        names = listed([job.name for job in plan.jobs])
        raise InputError(Message("input.no-such-job", job=repr(before.job.name), names=names))
    return named[0]


def _gpus_fit(offer: RentedOffer, count: int, after: Profile) -> bool:
    """Return whether `count` of an offer have the GPUs of a run; an unknown value fits."""
    measured = find(after.hardware.gpu, memory_gib=after.hardware.gpu_memory_gib)
    stated = after.hardware.gpu_count or len(after.gpus)
    same_gpu = measured is None or measured.name == offer.gpu
    return same_gpu and (not stated or max(1.0, offer.gpu_count) * count == stated)


def _machine_fits(offer: RentedOffer, job: JobPlan, after: Profile) -> bool:
    """Return whether it is the stated machine; where none is stated, today's, if it has the GPU."""
    stated = (after.hardware.provider, after.hardware.instance_type)
    if None not in stated:
        return stated == (offer.provider, offer.instance_type)
    today = job.baseline.offer
    if today is None or not _gpus_fit(today, job.baseline.count, after):
        return True
    current = (today.provider, today.instance_type)
    return current == (offer.provider, offer.instance_type)
