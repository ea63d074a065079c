"""What the plan saves, what it takes to get there, and when that has paid off."""

from dataclasses import dataclass
from decimal import Decimal

from planner.choice.requirements import Period
from planner.plan.recommendation import Recommendation

_DAYS_PER_MONTH = 30.4  # 730 h


@dataclass(frozen=True, slots=True, kw_only=True)
class Roi:
    """Return on the effort.

    Attributes:
        saves_usd: saved in the period by all that is recommended.
        effort_hours: engineering time of the actions, our estimate.
        payback_days: days until the saving has paid for the effort; None without a saving, or in
            a plan per run.
    """

    saves_usd: Decimal
    effort_hours: float
    payback_days: float | None


def roi(recommended: Recommendation, period: Period, rate_usd_per_hour: Decimal) -> Roi:
    """Return what the plan saves, and when its effort has paid off.

    Args:
        recommended: what all jobs are to do.
        period: of the plan.
        rate_usd_per_hour: what an engineer costs.
    """
    saves, hours = recommended.saves, recommended.effort_hours
    payback = None
    if saves > 0 and period == "month":
        payback = float(rate_usd_per_hour) * hours / float(saves) * _DAYS_PER_MONTH
    return Roi(saves_usd=saves, effort_hours=hours, payback_days=payback)
