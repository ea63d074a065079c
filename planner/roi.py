"""What the plan saves, what it takes to get there, and when that has paid off."""

from dataclasses import dataclass
from decimal import Decimal

from planner.choose import STAY
from planner.consolidate import Fleet
from planner.option import Baseline, Option
from planner.remedies import ACTIONS
from planner.requirements import Period

_DAYS_PER_MONTH = 30.4  # 730 h


@dataclass(frozen=True, slots=True, kw_only=True)
class Roi:
    """Return on the effort.

    Attributes:
        saves_usd: saved in the period by the recommended options, or by the packed fleet where
            that saves more; never both.
        effort_hours: engineering time of the actions, our estimate.
        payback_days: days until the saving has paid for the effort; None without a saving, or in
            a plan per run.
    """

    saves_usd: Decimal
    effort_hours: float
    payback_days: float | None


def roi(
    chosen: tuple[tuple[Baseline, Option | None], ...],
    fleet: Fleet | None,
    period: Period,
    rate_usd_per_hour: Decimal,
) -> Roi:
    """Return what the plan saves, and when its effort has paid off.

    Args:
        chosen: each job's baseline and its recommended option, None for "leave it".
        fleet: the packed fleet, if several jobs were planned together.
        period: of the plan.
        rate_usd_per_hour: what an engineer costs.
    """
    singly = sum(
        (baseline.cost - option.cost for baseline, option in chosen if option and baseline.cost),
        Decimal(0),
    )
    together = fleet.cost_before - fleet.cost_after if fleet else Decimal(0)
    if together > singly and fleet is not None:
        moved = sum(len(p.jobs) for p in fleet.placements if len(p.jobs) > 1)
        saves, hours = together, moved * ACTIONS["share-gpu"].effort_hours
    else:
        saves, hours = singly, sum(o.benefit.effort_hours for _, o in chosen if o)
    payback = None
    if saves > 0 and period == "month":
        payback = float(rate_usd_per_hour) * hours / float(saves) * _DAYS_PER_MONTH
    return Roi(saves_usd=saves, effort_hours=hours, payback_days=payback)


def recommended(options: tuple[Option, ...], id_: str) -> Option | None:
    """Return the recommended option; None for "leave it"."""
    return None if id_ == STAY else next(o for o in options if o.id == id_)
