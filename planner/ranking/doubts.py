"""What the range of an option's hours comes from: the speed there, the cures, the time held.

Each is the bill's range with the others as expected. They are independent, so together they make
up `Candidate.by_hours` in quadrature; what a cure adds is what the others leave of the whole.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from planner.actions import Action
from planner.models.estimate import divide, exactly
from planner.options.candidate import Candidate, UsdRange
from planner.options.context import JobContext, gpus_used, machines, measured_cores
from planner.options.option import Doubts
from planner.prediction.layout import Layout
from planner.prediction.predict import predict_from

_ZERO = Decimal(0)


def find_doubts(candidate: Candidate, context: JobContext) -> Doubts:
    """Return what the range of a candidate's hours comes from."""
    whole = _off(candidate)
    if not context.work.fixed_work:  # the time is held as today, or by the demand
        unknown = context.profile.job.kind == "unknown" and not candidate.actions
        return _doubts(candidate, speed=whole if unknown else None, use=None if unknown else whole)
    mid = candidate.work_hours.mid
    use = _off(replace(candidate, work_hours=exactly(mid, "as expected")))
    sure = _cures_as_expected(candidate, context)
    with_speed = whole if sure is None else _smaller(_off(sure), whole)
    return _doubts(candidate, speed=_rest(with_speed, use), cure=_rest(whole, with_speed), use=use)


Off = tuple[Decimal, Decimal]
"""How far a bill may lie below and above the expected one, each >= 0."""


def _off(candidate: Candidate) -> Off:
    found, expected = candidate.by_hours, candidate.expected
    return max(_ZERO, expected - found.low), max(_ZERO, found.high - expected)


def _smaller(one: Off, other: Off) -> Off:
    return min(one[0], other[0]), min(one[1], other[1])


def _rest(whole: Off, part: Off) -> Off:
    low, high = (
        max(_ZERO, a * a - b * b).sqrt() if b else a for a, b in zip(whole, part, strict=True)
    )
    return low, high


def _doubts(
    candidate: Candidate,
    *,
    speed: Off | None = None,
    cure: Off | None = None,
    use: Off | None = None,
) -> Doubts:
    return Doubts(
        speed=_ends(candidate, speed), cure=_ends(candidate, cure), use=_ends(candidate, use)
    )


def _ends(candidate: Candidate, off: Off | None) -> UsdRange:
    low, high = off or (_ZERO, _ZERO)
    return UsdRange(low=candidate.expected - low, high=candidate.expected + high)


def _cures_as_expected(candidate: Candidate, context: JobContext) -> Candidate | None:
    """Return the candidate with cures that gain what is expected; None where none is unsure."""
    cures = [one for one in context.fixes if one.code in candidate.actions]
    if all(one.effect is None or one.effect[0] == one.effect[2] for one in cures):
        return None
    speed = predict_from(
        context.profile,
        context.probes,
        _layout(candidate, context),
        tuple(_as_expected(cures)),
        context.parts,
        record=context.asked.history,
    )
    hours = divide(context.work.hours.mid, speed, speed.basis)
    return replace(candidate, work_hours=hours)


def _as_expected(cures: Iterable[Action]) -> Iterable[Action]:
    for one in cures:
        mid = one.effect[1] if one.effect else 0.0
        yield replace(one, effect=(mid, mid, mid)) if one.effect else one


def _layout(candidate: Candidate, context: JobContext) -> Layout:
    """Return the GPUs and the host that the candidate runs on."""
    offer = candidate.offer
    count = machines(offer, context)
    found = Layout.of(offer, count, gpus_used(offer, context))
    cores = measured_cores(offer, context)
    if cores is None:
        return found
    return replace(found, cpu_cores=min(cores * count, found.cpu_cores or math.inf))
