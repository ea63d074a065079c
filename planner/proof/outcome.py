"""From a verification to an outcome of the user's own record, and what the record says."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from planner.models.document import digest
from planner.models.estimate import Interval
from planner.models.track_record import PastPrediction, TrackRecord
from planner.plan.plan import Plan
from planner.profile.codec import to_json
from planner.profile.model import Profile
from planner.profile.source import slice_named
from planner.proof.verify import Proof, crowded

SCHEMA = "gpucost.own-accuracy/v1"
_Z = 1.96


def outcome_of(proof: Proof, plan: Plan, recorded: datetime) -> PastPrediction | None:
    """Return what became of a plan's prediction; None if unknown.

    It predicted nothing of this run, others' work on the machine is in what was measured, or too
    few steps tell it.
    """
    prediction = proof.predicted
    if (
        prediction is None
        or not proof.speed.is_known
        or crowded(proof.before, proof.after) is not None
    ):
        return None
    before, after = proof.before.profile, proof.after.profile
    predicted, speed = prediction.speedup, proof.speed
    moved = _moved(before, after)
    record = plan.history or TrackRecord(name="none")
    by = record.of(moved=moved)
    parts = (plan.id, prediction.option.name, to_json(before), to_json(after))
    return PastPrediction(
        id=digest(parts)[:16],
        recorded=recorded,
        job=before.job.name,
        option=prediction.option.name,
        actions=prediction.option.actions,
        moved=moved,
        predicted=Interval(low=predicted.low, mid=predicted.mid, high=predicted.high),
        measured=Interval(low=speed.low, mid=speed.mid, high=speed.high),
        verdict=proof.verification.verdict,
        shift=by.shift,
        widened=by.widened,
    )


def _moved(before: Profile, after: Profile) -> bool:
    old, new = ((p.hardware.gpu, slice_named(p), p.gpu_count) for p in (before, after))
    return old != new


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnAccuracy:
    """How predictions of one sort did on the user's own jobs.

    Attributes:
        sort: `all`, `same machine` or `moved`.
        outcomes: how many.
        held: of them, measured inside the predicted 90 % interval.
        held_fraction: their share; None without any.
        held_low: low end of its 95 % interval (Wilson).
        held_high: high end.
        error_percent: median of |measured / predicted - 1|, percent; None without any.
        factor: median of measured over predicted; None without any.
        proved: of them, savings that were proved.
    """

    sort: str
    outcomes: int
    held: int
    held_fraction: float | None
    held_low: float | None
    held_high: float | None
    error_percent: float | None
    factor: float | None
    proved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRecord:
    """What one's own record says, and what `plan --history` would make of it.

    Attributes:
        schema: `gpucost.own-accuracy/v1`.
        file: where the record is.
        rows: how predictions did, by sort.
        record: what it would do to new predictions.
        outcomes: each prediction and what was measured.
    """

    schema: str = SCHEMA
    file: str
    rows: tuple[OwnAccuracy, ...]
    record: TrackRecord
    outcomes: tuple[PastPrediction, ...]


def own_accuracy(sort: str, outcomes: Sequence[PastPrediction]) -> OwnAccuracy:
    """Return the hit rate of some outcomes; the last of each that was recorded twice."""
    ratios = [outcome.measured.mid / outcome.predicted.mid for outcome in outcomes]
    hits = sum(outcome.held for outcome in outcomes)
    ends = _wilson(hits, len(outcomes)) if outcomes else (None, None)
    return OwnAccuracy(
        sort=sort,
        outcomes=len(outcomes),
        held=hits,
        held_fraction=round(hits / len(outcomes), 4) if outcomes else None,
        held_low=ends[0],
        held_high=ends[1],
        error_percent=round(100 * median(abs(r - 1) for r in ratios), 2) if ratios else None,
        factor=round(median(ratios), 4) if ratios else None,
        proved=sum(outcome.verdict == "proved" for outcome in outcomes),
    )


def _wilson(hits: int, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927)."""
    share, z2 = hits / n, _Z * _Z
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return round(max(0.0, middle - half), 4), round(min(1.0, middle + half), 4)


def own_record(file: str, outcomes: Sequence[PastPrediction], record: TrackRecord) -> OwnRecord:
    """Return the hit rates of all outcomes, and of each sort."""
    distinct = tuple({outcome.id: outcome for outcome in outcomes}.values())
    sorts = (
        ("all", distinct),
        ("same machine", [outcome for outcome in distinct if not outcome.moved]),
        ("moved", [outcome for outcome in distinct if outcome.moved]),
    )
    rows = tuple(own_accuracy(sort, some) for sort, some in sorts)
    return OwnRecord(file=file, rows=rows, record=record, outcomes=distinct)
