"""What a change is worth: what it surely saves over the horizon, less the work and the move.

net = (today's cost - the option's cost at its high end) x periods - effort hours x engineer's rate
- moving the data once. The high end holds what hours and an old price may rise to, so a net above 0
is a saving that the 90 % interval does not take away: it says which changes pay. Which of them is
best is told by what they spend at the price as it was read (`Candidate.compared`).
"""

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from planner.options.candidate import Candidate
from planner.options.context import JobContext
from planner.options.data_transfer import data_bytes, move
from planner.options.option import Benefit, Move
from planner.ranking.changes import effort_hours
from pricing.frozen import by_name
from pricing.money import usd

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


_weighed, _benefit = by_name(Weighed), by_name(Benefit)


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
    return _weighed(
        candidate=candidate,
        low=low,
        high=high,
        move=moved,
        benefit=_benefit(
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
