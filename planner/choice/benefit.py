"""What a change is worth: its saving, less the work and the move; and where its range comes from.

What a change is worth: what it surely saves over the horizon, less the work and the move.
net = (today's cost - the option's cost at its high end) x periods - effort hours x engineer's rate
- moving the data once. The high end holds what hours and an old price may rise to, so a net above 0
is a saving that the 90 % interval does not take away: it says which changes pay. Which of them is
best is told by what they spend at the price as it was read (`Candidate.compared`).

What the range of an option's hours comes from: the speed there, the cures, the time held.
Each is the bill's range with the others as expected. They are independent, so together they make
up `Candidate.by_hours` in quadrature; what a cure adds is what the others leave of the whole.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import lru_cache

from msgspec import structs

from planner.actions import Action
from planner.choice.baseline import Baseline
from planner.choice.candidate import Candidate, UsdRange
from planner.choice.changes import effort_hours
from planner.choice.context import JobContext, gpus_used, machines, measured_cores
from planner.choice.option import Benefit, Doubts, Move
from planner.choice.workload import GIB, Workload
from planner.models.estimate import divide, exactly
from planner.prediction.layout import Layout
from planner.prediction.predict import predict_from
from planner.profile.model import Profile
from pricing.billing.quote import Usage, quote
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer
from pricing.money import usd

_BITS_PER_BYTE = 8
_DAYS_PER_MONTH = Decimal("30.4")  # 730 h


def data_bytes(profile: Profile, work: Workload) -> int | None:
    """Return the data that would move: the data set and what is stored; None when not stated."""
    dataset = profile.job.dataset_gib
    if dataset is None and not work.storage_bytes:
        return None
    return round((dataset or 0.0) * GIB) + work.storage_bytes


def move(
    baseline: Baseline,
    offer: Offer,
    moved_bytes: int | None,
    saves: Decimal | None,
    catalog: Catalog,
) -> Move | None:
    """Return the one-off cost of moving the data, or None when it stays where it is.

    Args:
        baseline: today's machine, which bills the egress, or the traffic between its regions.
        offer: where the job would go.
        moved_bytes: the data; None = not stated, so nothing is known of the cost.
        saves: dollars saved in a month, for the pay-back; None in a plan per run.
        catalog: for the day.
    """
    today = baseline.offer
    if today is None or baseline.keeps_data(offer):
        return None
    if moved_bytes is None:
        return Move(once_usd=None, hours=None, pays_back_days=None)
    once = _once_usd(today, moved_bytes, today.provider == offer.provider, catalog.as_of)
    speeds = [o.network_gbps for o in (today, offer) if o.network_gbps]
    hours = moved_bytes * _BITS_PER_BYTE / (min(speeds) * 1e9) / 3600.0 if speeds else None
    return Move(once_usd=once, hours=hours, pays_back_days=_pays_back(once, saves))


@lru_cache(maxsize=256)
def _once_usd(today: Offer, moved_bytes: int, inside: bool, day: date) -> Decimal | None:  # noqa: FBT001 - a key
    """Return what the traffic costs, inside the provider or out of it; None: no price is known."""
    usage = Usage(
        duration_s=0,
        egress_bytes=0 if inside else moved_bytes,
        inter_region_bytes=moved_bytes if inside else 0,
        as_of=day,
    )
    egress = [line.usd for line in quote(today, usage).lines if line.what == "egress"]
    return sum(egress, Decimal(0)) if egress or not moved_bytes else None


def _pays_back(once: Decimal | None, saves: Decimal | None) -> float | None:
    if once is None or saves is None or saves <= 0:
        return None
    return float(once / (saves / _DAYS_PER_MONTH))


_HALF = Decimal("0.5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A candidate beside what it costs, moves and is worth.

    Attributes:
        candidate: what is weighed.
        low: the bill at the low end.
        high: at the high end, the age of the price included.
        move: of the data; None where they stay.
        benefit: of changing to it.
        spends: all dollars of the horizon by `Candidate.compared`, effort and move included.
    """

    candidate: Candidate
    low: Decimal
    high: Decimal
    move: Move | None
    benefit: Benefit
    spends: Decimal

    @property
    def pays(self) -> bool:
        """Whether the change is worth its work; unknown is no."""
        return self.benefit.net_usd is not None and self.benefit.net_usd > 0

    def overlaps(self, other: "Weighed") -> bool:
        """Return whether the intervals of the two bills share over half of the narrower one.

        A bill without width is shared where it lies within the other's ends.
        """
        low, high = max(self.low, other.low), min(self.high, other.high)
        narrower = min(self.high - self.low, other.high - other.low)
        return high >= low and (narrower == 0 or high - low > _HALF * narrower)


def most_net(candidate: Candidate, context: JobContext) -> Decimal:
    """Return what a candidate is worth at most: its net were the high end the expected bill.

    It is never below `Benefit.net_usd`, as no bill is higher than at its high end and moving costs
    at least nothing. Today's cost must be known.
    """
    cost = context.baseline.cost or Decimal(0)
    effort = _hours(effort_hours(candidate, context)) * context.asked.engineer_usd_per_hour
    return (cost - candidate.expected) * context.periods - effort


def least_spent(candidate: Candidate, context: JobContext) -> Decimal:
    """Return what a candidate spends at least, by its expected bill; see `Weighed.spends`.

    It is never above that, as no bill is lower at the high end of its hours.
    """
    effort = _hours(effort_hours(candidate, context)) * context.asked.engineer_usd_per_hour
    return candidate.comparable * context.periods + effort


def weigh(candidate: Candidate, context: JobContext) -> Weighed:
    """Return what a candidate is worth against today, over the horizon that was asked for."""
    periods = context.periods
    today, low, high = context.baseline.cost, candidate.cost_at("low"), candidate.cost_at("high")
    hours = effort_hours(candidate, context)
    effort = _hours(hours) * context.asked.engineer_usd_per_hour
    moved = _move(candidate, context)
    once = moved.once_usd if moved else Decimal(0)
    saves = None if today is None else (today - high) * periods
    return Weighed(
        candidate=candidate,
        low=low,
        high=high,
        move=moved,
        benefit=Benefit(
            periods=periods,
            saves_usd=saves,
            effort_hours=hours,
            effort_usd=effort,
            moving_usd=once,
            net_usd=None if saves is None else saves - effort - (once or 0),
        ),
        spends=candidate.compared * periods + effort + (once or 0),
    )


@lru_cache(maxsize=256)
def _hours(value: float) -> Decimal:
    """Return hours of work as a factor of dollars."""
    return usd(str(value))


def _move(candidate: Candidate, context: JobContext) -> Move | None:
    today, month = context.baseline.cost, context.work.storage_h is not None
    saves = today - candidate.expected if today is not None and month else None
    data = data_bytes(context.profile, context.work)
    return move(context.baseline, candidate.offer, data, saves, context.catalog)


_ZERO = Decimal(0)


def find_doubts(candidate: Candidate, context: JobContext) -> Doubts:
    """Return what the range of a candidate's hours comes from."""
    whole = _off(candidate)
    if not context.work.fixed_work:  # the time is held as today, or by the demand
        unknown = context.profile.job.kind == "unknown" and not candidate.actions
        return _doubts(candidate, speed=whole if unknown else None, use=None if unknown else whole)
    mid = candidate.work_hours.mid
    use = _off(structs.replace(candidate, work_hours=exactly(mid, "as expected")))
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
    return structs.replace(candidate, work_hours=hours)


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
