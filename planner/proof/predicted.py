"""Which option of a plan a run was, what it predicted, and whether that held."""

from dataclasses import dataclass

from planner.models.estimate import Estimate
from planner.plan.bill import RentedOffer
from planner.plan.job import JobPlan
from planner.plan.plan import Plan
from planner.plan.read import FoundOption, every_option, find_option
from planner.profile.kinds import APPLIED
from planner.profile.model import Profile
from planner.profile.source import slice_named
from planner.proof.speed import MeasuredRatio
from pricing.errors import InputError
from pricing.hardware import find
from pricing.listing import listed


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
            raise InputError(
                f"--option {named} is on {option.count * option.offer.gpu_count:g}x "
                f"{option.offer.gpu}, but AFTER ran on {after.gpu_count}x {after.hardware.gpu}"
                f"{f' ({piece})' if piece else ''}: name the option that was run, or leave "
                "--option out."
            )
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
        raise InputError(
            f"the plan has no job {before.job.name!r} (it has {names}); give its plan, "
            "or --option JOB/ID."
        )
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
