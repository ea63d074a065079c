"""How many times as fast a job runs after a change, from the steps that both runs recorded.

The steps of a run lie row by row in `profile.steps.jsonl`. How far their mean may be off is told by
parts of the run, or by what stands in for them where there is no series; the ratio of two means has
a 95 % interval by the laws of small samples.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from statistics import NormalDist, stdev
from typing import TYPE_CHECKING

from planner.models.estimate import Interval
from planner.prediction.profiled_step import rate_per_s
from planner.signals.thresholds import FEWEST_READINGS
from pricing.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.profile.model import Profile, Step

_WIDEST = 100.0  # x/: 10 around the middle: our choice of what still says something
CONFIDENCE = 0.95
"""Two-sided: "proved" is then said of a change without effect in 2.5 % of all cases."""
UPPER = (1.0 + CONFIDENCE) / 2.0


class MeasuredRatio(Interval, frozen=True, kw_only=True):
    """How many times as fast, as it was measured; 1: as before, above 1: faster.

    Attributes:
        low: lower end of the 95 % interval.
        mid: what was measured.
        high: upper end.
        basis: what it was worked out from, and how.
    """

    basis: str

    @property
    def is_known(self) -> bool:
        """Whether the interval is narrower than x/: 10, so that it says anything."""
        return self.high / self.low <= _WIDEST

    @property
    def is_faster(self) -> bool:
        """Whether the whole interval lies above 1."""
        return self.low > 1.0

    @property
    def is_slower(self) -> bool:
        """Whether the whole interval lies below 1."""
        return self.high < 1.0


def ratio_of_logs(mid: float, half_width: float, basis: str) -> MeasuredRatio:
    """Return exp(mid) x/÷ exp(half_width)."""
    return MeasuredRatio(
        low=math.exp(mid - half_width),
        mid=math.exp(mid),
        high=math.exp(mid + half_width),
        basis=basis,
    )


def t_quantile(probability: float, freedom: float) -> float:
    """Return the quantile of Student's t with `freedom` >= 2 degrees of freedom.

    The expansion of Abramowitz and Stegun, 26.7.5: within 1 % of the exact value at 2 degrees,
    0.1 % from 3.

    Raises:
        ValueError: fewer than 2 degrees of freedom.
    """
    if freedom < 2.0:  # noqa: PLR2004 - the expansion holds from here
        raise ValueError(f"{freedom} degrees of freedom; at least 2 are needed")
    x = NormalDist().inv_cdf(probability)
    terms = (
        (x**3 + x) / 4.0,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96.0,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384.0,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160.0,
    )
    return x + sum(term / freedom**power for power, term in enumerate(terms, start=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """Steps in a row of the series.

    Attributes:
        step: number of the last of them.
        n: how many.
        step_s: mean length, seconds.
        loss: of the last of them; None where it was not recorded.
    """

    step: int
    n: int
    step_s: float
    loss: float | None = None


def parse_steps(text: str, origin: str) -> tuple[StepRow, ...]:
    """Return the rows that have a length, the first one left out: start-up is in it.

    A last line that was cut off is left out.

    Raises:
        InputError: another line is not a row of steps.
    """
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    rows: list[StepRow] = []
    problems: list[str] = []
    for number, line in lines:
        try:
            row = _row(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError):
            if number == lines[-1][0]:
                break
            problems.append(f"{origin}:{number}: not a row of steps; measure the run again.")
            continue
        if row is not None:
            rows.append(row)
    if problems:
        raise InputError(problems)
    return tuple(rows[1:])


def _row(item: dict[str, object]) -> StepRow | None:
    length, loss = item.get("step_s"), item.get("loss")
    if length is None:
        return None
    row = StepRow(
        step=int(str(item["step"])),
        n=int(str(item.get("n", 1))),
        step_s=float(str(length)),
        loss=None if loss is None else float(str(loss)),
    )
    if row.n < 1 or not (math.isfinite(row.step_s) and row.step_s > 0.0):
        raise ValueError(length)
    return row


def mean_step_s(rows: Iterable[StepRow]) -> float:
    """Return the mean length of a step, seconds."""
    rows = tuple(rows)
    return sum(row.n * row.step_s for row in rows) / sum(row.n for row in rows)


_PARTS = 8  # long enough to be alike, enough of them for Student's t: 2.36 standard errors
# Where only quantiles are known, steps are taken to hang together as an AR(1) of 0.8, the strongest
# that the experiments are tried with: sqrt((1 + 0.8) / (1 - 0.8)) = 3.
_HANG_TOGETHER = 3.0
# Where not even quantiles are known: the largest run-to-run spread of MLPerf times to train, but
# for one benchmark (CV 0.1-9 %).
UNKNOWN_SPREAD = 0.09
_P95 = 1.645  # standard deviations from the median to the 95 % quantile of a normal law


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanStep:
    """The mean length of a run's steps, and its error.

    Attributes:
        mean_s: seconds.
        log_error: half of the 95 % interval, in log space.
        basis: how it is known.
    """

    mean_s: float
    log_error: float
    basis: str


def settled(rows: Sequence[StepRow]) -> tuple[StepRow, ...]:
    """Return the rows without the warm-up: the cut after which the mean is known best (MSER).

    White 1997: the least variance of the remaining rows over their number squared. At most a third
    of the rows is cut; what still changes after that is drift.
    """
    limit, best, lowest = len(rows) // 3, 0, math.inf
    sum_s = sum_squares = 0.0
    for at in range(len(rows) - 1, -1, -1):
        sum_s += rows[at].step_s
        sum_squares += rows[at].step_s ** 2
        remaining = len(rows) - at
        error = max(0.0, sum_squares - sum_s**2 / remaining) / remaining**2
        if at <= limit and error <= lowest:
            best, lowest = at, error
    return tuple(rows[best:])


def of_series(rows: Sequence[StepRow]) -> MeanStep:
    """Return the mean of the settled rows and its error, by parts of the run and not by steps.

    Steps hang together, so eight parts in a row stand for them: Student's t over their means. What
    moves more slowly than a part (a clock that falls, a cache that fills, a neighbor who comes)
    shows in the halves: a run is taken to differ from another as its halves do from each other, as
    in a random walk. Student's t with the two degrees of freedom that the halves of two runs leave
    also covers a straight drift, by which two runs differ twice as much as halves. Few rows make a
    wide interval.
    """
    cut, rows = len(rows), settled(rows)
    noise, drift = _spread_of_parts(rows, _PARTS) / math.sqrt(_PARTS), _spread_of_parts(rows, 2)
    return MeanStep(
        mean_s=mean_step_s(rows),
        log_error=math.hypot(t_quantile(UPPER, _PARTS - 1) * noise, t_quantile(UPPER, 2) * drift),
        basis=f"Student's t over {_PARTS} parts of {len(rows)} rows of steps, and over halves "
        f"({cut - len(rows)} rows cut first)",
    )


def _spread_of_parts(rows: Sequence[StepRow], parts: int) -> float:
    """Return the standard deviation of the log mean steps of so many parts in a row."""
    size = len(rows) // parts
    starts = range(len(rows) - size * parts, len(rows), size)
    return stdev(math.log(mean_step_s(rows[at : at + size])) for at in starts)


def of_statistics(step: Step, mean_s: float) -> MeanStep:
    """Return the mean and its error where only the profile's figures of the steps are known."""
    if step.count and step.count > 1 and step.p50_s and step.p95_s:
        spread = max(0.0, step.p95_s - step.p50_s) / _P95 / mean_s
        # A mean far from the median comes of rare long steps that the quantiles do not show.
        spread = math.hypot(spread, abs(mean_s - step.p50_s) / mean_s)
        return MeanStep(
            mean_s=mean_s,
            log_error=1.96 * _HANG_TOGETHER * spread / math.sqrt(step.count),
            basis=f"quantiles of {step.count} steps, taken to hang together (no series)",
        )
    return of_unknown(mean_s)


def of_unknown(mean_s: float) -> MeanStep:
    """Return the mean where nothing is known of its error but what runs usually differ by."""
    return MeanStep(
        mean_s=mean_s,
        log_error=1.96 * UNKNOWN_SPREAD,
        basis="one figure without its spread: +-9 % a run, as published runs differ",
    )


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
    means = (_steps(before), _steps(after))
    if means[0] is None or means[1] is None or per_step is None:
        per_step, means = 1.0, (_per_unit(before, after), _per_unit(after, before))
    old, new = means
    if old is None or new is None or per_step is None:
        raise InputError(_nothing_in_common(before, after))
    errors = (old.log_error, new.log_error, 1.96 * RUN_TO_RUN, 1.96 * RUN_TO_RUN)
    basis = "; ".join(dict.fromkeys((old.basis, new.basis)))
    return ratio_of_logs(
        math.log(old.mean_s / new.mean_s * per_step),
        math.hypot(*errors),
        f"95 % interval: {basis}; and {RUN_TO_RUN:.0%} a run, as equal runs differ",
    )


def _within_one_run(after: Profile) -> MeasuredRatio | None:
    """Return what the run after measured in turns; None where it made no such experiment.

    It switched, so its own mean step is of both settings; and one machine at one time needs no
    allowance for runs that differ.
    """
    trial = after.experiment
    if trial is None or trial.low is None or trial.mid is None or trial.high is None:
        return None
    return MeasuredRatio(low=trial.low, mid=trial.mid, high=trial.high, basis=trial.basis)


def _steps(run: MeasuredRun) -> MeanStep | None:
    if len(run.steps) >= FEWEST_READINGS:
        return of_series(run.steps)
    step = run.profile.step
    if step is not None and step.mean_s:
        return of_statistics(step, step.mean_s)
    return of_unknown(mean_step_s(run.steps)) if run.steps else None


def _work_of_a_step(before: Profile, after: Profile) -> float | None:
    """Return the work of a step after over that of one before; None where that is not known."""
    old, new = before.step, after.step
    if old is None or new is None or old.counted_by != new.counted_by:
        return None
    shapes = [(p.job.batch_per_gpu, p.gpu_count, p.hardware.nodes or 1) for p in (before, after)]
    if shapes[0] == shapes[1]:
        return 1.0
    split = before.job.splits_the_model or after.job.splits_the_model
    if before.job.batch_per_gpu and after.job.batch_per_gpu and not split:
        items = [p.gpu_count * (p.job.batch_per_gpu or 1) for p in (before, after)]
        return items[1] / items[0]
    return None


def _per_unit(run: MeasuredRun, counterpart: MeasuredRun) -> MeanStep | None:
    """Return seconds for a unit of work, where both runs count the same thing."""
    units = [
        member.profile.work.unit if member.profile.work else None for member in (run, counterpart)
    ]
    rate = rate_per_s(run.profile)
    batches = {member.profile.job.batch_per_gpu for member in (run, counterpart)}
    if None in units or units[0] != units[1] or not rate:
        return None
    if units[0] == _STEP and len(batches) > 1:
        return None  # a step of another batch is another amount of work
    return of_unknown(1.0 / rate)


def _nothing_in_common(before: MeasuredRun, after: MeasuredRun) -> list[str]:
    need = (
        "the runs cannot be compared: both need times of a step (`gpucost profile -- COMMAND`), or "
        "work of one unit (`gpucost import --work UNIT=DONE`)."
    )
    return [need, *(f"{run.name}: has {_has(run.profile)}." for run in (before, after))]


def _has(profile: Profile) -> str:
    measures = []
    if profile.step is not None and profile.step.mean_s:
        batch = profile.job.batch_per_gpu
        measures.append(f"steps counted by {profile.step.counted_by or 'nobody knows what'}")
        measures.append(f"batch {batch}" if batch else "an unknown batch")
    if rate_per_s(profile):
        unit = profile.work.unit if profile.work else None
        measures.append(f"a rate of work in {unit or 'an unknown unit'}")
    return ", ".join(measures) or "neither step times nor a rate of work"
