"""How many times as fast a job runs after a change, from what both runs recorded."""

import math
from dataclasses import dataclass

from planner.baseline.workload import rate_per_s
from planner.profile.model import Profile
from planner.proof.bootstrap import FEWEST_ROWS, MeanStep, of_series, of_statistics, of_unknown
from planner.proof.interval import MeasuredRatio, ratio_of_logs
from planner.proof.step_series import StepRow, mean_step_s
from pricing.errors import InputError

# What two runs of the same work differ by though nothing was changed: hosts of one model, CV up to
# 2 % (39 H100 hosts of Lambda's benchmark v2; steps within one run do not show it).
RUN_TO_RUN = 0.02
_STEP = "step"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """One run: its profile and, where it was kept, its series of steps.

    Attributes:
        name: of its file.
        profile: what was measured.
        steps: rows of steps; empty without a series.
    """

    name: str
    profile: Profile
    steps: tuple[StepRow, ...] = ()


def speed_up(before: MeasuredRun, after: MeasuredRun) -> MeasuredRatio:
    """Return the work a second after over that before, with its 95 % interval.

    By steps where both runs have them and a step's work is known to be alike or in which
    proportion, else by the rates of work.

    Raises:
        InputError: the two have no measure in common.
    """
    within = _within_one_run(after.profile)
    if within is not None:
        return within
    per_step = _work_of_a_step(before.profile, after.profile)
    both = (_steps(before), _steps(after))
    if both[0] is None or both[1] is None or per_step is None:
        per_step, both = 1.0, (_per_unit(before, after), _per_unit(after, before))
    one, other = both
    if one is None or other is None or per_step is None:
        raise InputError(_nothing_in_common(before, after))
    errors = (one.log_error, other.log_error, 1.96 * RUN_TO_RUN, 1.96 * RUN_TO_RUN)
    basis = "; ".join(dict.fromkeys((one.basis, other.basis)))
    return ratio_of_logs(
        math.log(one.mean_s / other.mean_s * per_step),
        math.hypot(*errors),
        f"95 % interval: {basis}; and {RUN_TO_RUN:.0%} a run, as equal runs differ",
    )


def _within_one_run(after: Profile) -> MeasuredRatio | None:
    """Return what the run after measured in turns; None where it made no such experiment.

    It switched, so its own mean step is of both settings; and one machine at one time needs no
    allowance for runs that differ.
    """
    made = after.experiment
    if made is None or made.low is None or made.mid is None or made.high is None:
        return None
    return MeasuredRatio(low=made.low, mid=made.mid, high=made.high, basis=made.basis)


def _steps(run: MeasuredRun) -> MeanStep | None:
    if len(run.steps) >= FEWEST_ROWS:
        return of_series(run.steps)
    step = run.profile.step
    if step is not None and step.mean_s:
        return of_statistics(step, step.mean_s)
    return of_unknown(mean_step_s(run.steps)) if run.steps else None


def _work_of_a_step(before: Profile, after: Profile) -> float | None:
    """Return the work of a step after over that of one before; None where that is not known."""
    one, other = before.step, after.step
    if one is None or other is None or one.counted_by != other.counted_by:
        return None
    shapes = [(p.job.batch_per_gpu, p.gpu_count, p.hardware.nodes or 1) for p in (before, after)]
    if shapes[0] == shapes[1]:
        return 1.0
    split = before.job.splits_the_model or after.job.splits_the_model
    if before.job.batch_per_gpu and after.job.batch_per_gpu and not split:
        items = [p.gpu_count * (p.job.batch_per_gpu or 1) for p in (before, after)]
        return items[1] / items[0]
    return None


def _per_unit(run: MeasuredRun, other: MeasuredRun) -> MeanStep | None:
    """Return seconds for a unit of work, where both runs count the same thing."""
    units = [one.profile.work.unit if one.profile.work else None for one in (run, other)]
    rate = rate_per_s(run.profile)
    batches = {one.profile.job.batch_per_gpu for one in (run, other)}
    if None in units or units[0] != units[1] or not rate:
        return None
    if units[0] == _STEP and len(batches) > 1:
        return None  # a step of another batch is another amount of work
    return of_unknown(1.0 / rate)


def _nothing_in_common(before: MeasuredRun, after: MeasuredRun) -> list[str]:
    return [
        f"{one.name}: has {_has(one.profile)}; both runs need times of a step "
        "(`gpucost profile -- COMMAND`), or work of one unit (`gpucost import --work UNIT=DONE`)."
        for one in (before, after)
    ]


def _has(profile: Profile) -> str:
    found = []
    if profile.step is not None and profile.step.mean_s:
        batch = profile.job.batch_per_gpu
        found.append(f"steps counted by {profile.step.counted_by or 'nobody knows what'}")
        found.append(f"batch {batch}" if batch else "an unknown batch")
    if rate_per_s(profile):
        unit = profile.work.unit if profile.work else None
        found.append(f"a rate of work in {unit or 'an unknown unit'}")
    return ", ".join(found) or "neither step times nor a rate of work"
