"""What became of earlier predictions of one's own, and how it centres and widens new ones.

The shipped intervals are fitted on other people's jobs. A record of one's own outcomes may show
that predictions for these jobs are off to one side, or by more than they say.

Shift: the mean log ratio of measured to predicted, weighted by the intervals' own variances, times
max(0, 1 - V / mean^2) (positive-part James-Stein). V is the variance of that mean if the shipped
intervals are right or, where the outcomes lie farther out, if they scatter about the shipped
predictions as they were seen to: one outcome moves nothing, many that agree move nearly all.

Width: the factor that makes the shifted intervals hold the seen outcomes as often as they say, 90 %
of them (the split-conformal quantile); all of them while there are fewer than nine. Never below 1.
"""

import json
import math
from collections.abc import Iterable

import msgspec

from planner.models.document import Number, convert, encode
from planner.models.estimate import Estimate, Interval
from planner.profile.fields import Instant
from pricing.errors import InputError
from pricing.message import Message, join

_SD_OF_90 = 1.645  # standard deviations in half of a 90 % interval
_SD_OF_95 = 1.96
_COVERAGE = 0.9
# No interval of one's own runs is narrower than equal runs differ: hosts of one model, CV up to 2 %
# (39 H100 hosts of Lambda's benchmark v2).
_LEAST_HALF = _SD_OF_90 * 0.02


class PastPrediction(msgspec.Struct, frozen=True, kw_only=True):
    """One prediction and what was measured.

    Attributes:
        id: of the two runs and the option; the same question asked twice is one outcome.
        recorded: when, aware UTC.
        job: the job's name.
        option: as the plan called it.
        actions: codes of what was changed.
        moved: whether it ran on other GPUs, or another number of them, than before.
        predicted: speed-up as the plan told it, a 90 % interval.
        measured: speed-up, a 95 % interval.
        verdict: of `verify`.
        shift: log factor by which a record had already centred the prediction; 0 for none.
        widened: factor by which it had widened its interval, in logs; 1 for none.
    """

    id: str
    recorded: Instant
    job: str
    option: str
    actions: tuple[str, ...]
    moved: bool
    predicted: Interval
    measured: Interval
    verdict: str
    shift: Number = 0.0
    widened: Number = 1.0

    def __post_init__(self) -> None:
        if self.recorded.tzinfo is None or not self.widened >= 1.0 or not math.isfinite(self.shift):
            raise ValueError(f"no outcome: {self}")

    @property
    def held(self) -> bool:
        """Whether what was measured lay in the interval as it was told."""
        return self.predicted.low <= self.measured.mid <= self.predicted.high

    @property
    def log_error(self) -> float:
        """Log of measured over predicted, as shipped, before any record centred it."""
        return math.log(self.measured.mid / self.predicted.mid) + self.shift

    def half(self, *, above: bool) -> float:
        """Return half of the shipped 90 % interval on one side, in logs."""
        interval = self.predicted
        width = (
            math.log(interval.high / interval.mid)
            if above
            else math.log(interval.mid / interval.low)
        )
        return max(width / self.widened, _LEAST_HALF)

    @property
    def variance(self) -> float:
        """Of the log error, if the shipped interval and the measured one are right."""
        shipped = (self.half(above=True) + self.half(above=False)) / 2.0 / _SD_OF_90
        measured = math.log(self.measured.high / self.measured.low) / 2.0 / _SD_OF_95
        return shipped**2 + measured**2


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """What a record does to predictions of one sort.

    Attributes:
        outcomes: that it rests on.
        shift: log factor on the expected value.
        error: standard deviation of the shift, in logs.
        widened: factor on the interval's width, in logs, at least 1.
    """

    outcomes: int = 0
    shift: Number = 0.0
    error: Number = 0.0
    widened: Number = 1.0

    def applied_to(self, estimate: Estimate) -> Estimate:
        """Return a predicted factor, centred and widened; never a narrower one."""
        if not self.outcomes or estimate.low <= 0.0:
            return estimate
        extra = _SD_OF_90 * self.error
        down, up = (
            math.hypot(self.widened * math.log(part), extra)
            for part in (estimate.mid / estimate.low, estimate.high / estimate.mid)
        )
        mid = estimate.mid * math.exp(self.shift)
        return msgspec.structs.replace(
            estimate,
            low=mid * math.exp(-down),
            mid=mid,
            high=mid * math.exp(up),
            basis=join((estimate.basis, self.words)),
        )

    @property
    def words(self) -> Message:
        """What it does to a prediction."""
        code = "history.outcomes" if self.outcomes > 1 else "history.outcome"
        shift = math.exp(self.shift)
        return Message(code, n=self.outcomes, shift=shift, widened=self.widened)


NO_CORRECTION = Correction()


class TrackRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a record of outcomes does to new predictions.

    Attributes:
        name: of the file it came from; it is an input like any other.
        same_machine: for changes on the GPUs of today.
        moved: for other GPUs, or another number of them.
    """

    name: str
    same_machine: Correction = NO_CORRECTION
    moved: Correction = NO_CORRECTION

    def of(self, *, moved: bool) -> Correction:
        """Return the correction of one sort."""
        return self.moved if moved else self.same_machine


def track_record(name: str, outcomes: Iterable[PastPrediction]) -> TrackRecord:
    """Return what outcomes teach; of an outcome recorded twice, the last one counts."""
    relevant = sorted(
        {outcome.id: outcome for outcome in outcomes}.values(), key=lambda outcome: outcome.id
    )
    return TrackRecord(
        name=name,
        same_machine=correction(outcome for outcome in relevant if not outcome.moved),
        moved=correction(outcome for outcome in relevant if outcome.moved),
    )


def correction(outcomes: Iterable[PastPrediction]) -> Correction:
    """Return shift and width by the laws of the module; without outcomes, none."""
    past = tuple(outcomes)
    if not past:
        return NO_CORRECTION
    weights = [1.0 / outcome.variance for outcome in past]
    shipped = 1.0 / sum(weights)
    mean = shipped * sum(w * outcome.log_error for w, outcome in zip(weights, past, strict=True))
    scatter = sum(outcome.log_error**2 / outcome.variance for outcome in past) / len(past)
    chance = shipped * max(1.0, scatter)
    weight = max(0.0, 1.0 - chance / mean**2) if mean else 0.0
    shift = weight * mean
    return Correction(
        outcomes=len(past),
        shift=shift,
        error=math.sqrt(weight * chance),
        widened=max(1.0, _quantile([_reach(outcome, shift) for outcome in past])),
    )


def _reach(outcome: PastPrediction, shift: float) -> float:
    """Return how far out an outcome lies of its shifted interval: 1 is its end."""
    off = outcome.log_error - shift
    return abs(off) / outcome.half(above=off > 0.0)


def _quantile(reaches: list[float]) -> float:
    """Return the reach that 90 % of new ones stay within: the split-conformal quantile."""
    rank = math.ceil((len(reaches) + 1) * _COVERAGE)
    return sorted(reaches)[min(rank, len(reaches)) - 1]


SCHEMA = "gpucost.outcome/v1"


def outcome_line(outcome: PastPrediction) -> str:
    """Return an outcome as one line, with its end."""
    item = {"schema": SCHEMA, **encode(outcome)}
    return json.dumps(item, ensure_ascii=True, separators=(",", ":")) + "\n"


def parse_outcomes(text: str, origin: str) -> tuple[PastPrediction, ...]:
    """Return the outcomes in a file; a last line that was cut off is left out.

    Raises:
        InputError: another line is not an outcome, each named with its number.
    """
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    outcomes: list[PastPrediction] = []
    problems: list[str] = []
    for number, line in lines:
        try:
            outcomes.append(_outcome(json.loads(line)))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            if number == lines[-1][0] and not text.endswith("\n"):
                break
            problems.append(
                f"{origin}:{number}: not an outcome ({error!r}). `gpucost verify BEFORE AFTER "
                "--plan PLAN` records them; take the line out."
            )
    if problems:
        raise InputError(problems)
    return tuple(outcomes)


def _outcome(item: dict[str, object]) -> PastPrediction:
    if item.pop("schema") != SCHEMA:
        raise ValueError(f"its schema is not {SCHEMA}")
    return convert(PastPrediction, item)
