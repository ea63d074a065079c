"""What a change is worth: what it surely saves over the horizon, less the work and the move.

net = (today's cost - the option's cost at its high end) x periods - effort hours x engineer's rate
- moving the data once. The high end is read off the draws of hours and price, so a net above 0 is a
saving that 95 % of them do not take away: it says which changes pay. Which of them is best is told
by what they are expected to spend at the price as it was read (`Candidate.compared`).
"""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache

from planner.choice.baseline import Baseline
from planner.choice.candidate import Candidate
from planner.choice.changes import effort_usd
from planner.choice.context import JobContext
from planner.choice.workload import GIB, Workload
from planner.models.costs import Benefit, Move
from planner.profile.model import Profile
from pricing.billing.quote import Usage, quote
from pricing.catalog.offer import Offer

_ZERO = Decimal(0)
# Traffic of one machine that leaves its region: 5 Gbit/s at most, whatever its network card has
# (docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-network-bandwidth.html, of instances
# with fewer than 32 vCPUs; others are not told apart here).
_LEAVING_GBPS = 5.0
_BITS_PER_BYTE = 8
_DAYS_PER_MONTH = Decimal("30.4")  # 730 h


def data_bytes(profile: Profile, work: Workload) -> int | None:
    """Return the data that would move: the data set and what is stored; None when not stated.

    A data set that fits into what is stored is part of it.
    """
    dataset = profile.job.dataset_gib
    if dataset is None and not work.storage_bytes:
        return None
    dataset_bytes = round((dataset or 0.0) * GIB)
    return work.storage_bytes + (dataset_bytes if dataset_bytes > work.storage_bytes else 0)


def move(
    baseline: Baseline, offer: Offer, moved_bytes: int | None, saves: Decimal | None, day: date
) -> Move | None:
    """Return the one-off cost of moving the data, or None when it stays where it is.

    Args:
        baseline: today's machine, which bills the egress, or the traffic between its regions.
        offer: where the job would go.
        moved_bytes: the data; None = not stated, so nothing is known of the cost.
        saves: dollars saved in a month, for the pay-back; None in a plan per run.
        day: of the prices.
    """
    today = baseline.offer
    if today is None or baseline.keeps_data(offer):
        return None
    if moved_bytes is None:
        return Move(once_usd=None, hours=None, pays_back_days=None)
    once = _once_usd(today, moved_bytes, today.provider == offer.provider, day)
    links = [o.network_gbps for o in (today, offer) if o.network_gbps]
    hours = moved_bytes * _BITS_PER_BYTE / (min((*links, _LEAVING_GBPS)) * 1e9) / 3600.0
    days = None
    if once is not None and saves is not None and saves > 0:
        days = float(once / (saves / _DAYS_PER_MONTH))
    return Move(once_usd=once, hours=hours, pays_back_days=days)


@lru_cache(maxsize=256)
def _once_usd(today: Offer, moved_bytes: int, inside: bool, day: date) -> Decimal | None:  # noqa: FBT001 - a key
    """Return what the traffic costs, inside the provider or out of it; None: no price is known."""
    out, between = (0, moved_bytes) if inside else (moved_bytes, 0)
    usage = Usage(duration_s=0, egress_bytes=out, inter_region_bytes=between, as_of=day)
    egress = [line.usd for line in quote(today, usage).lines if line.what == "egress"]
    return sum(egress, _ZERO) if egress or not moved_bytes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """What a candidate costs, moves and is worth against today.

    Attributes:
        candidate: what is weighed.
        move: of the data; None where they stay.
        benefit: of changing to it.
        spends: expected dollars of the horizon by `Candidate.compared`, work and move included.
    """

    candidate: Candidate
    move: Move | None
    benefit: Benefit
    spends: Decimal

    @property
    def pays(self) -> bool:
        """Whether the change surely earns its work and its move; unknown is no."""
        return self.benefit.net_usd is not None and self.benefit.net_usd > 0


def spends_at_least(candidate: Candidate, context: JobContext) -> Decimal:
    """Return what a candidate spends at least: its machines and its work, without the move."""
    effort = effort_usd(candidate.effort_hours, context.asked.engineer_usd_per_hour)
    return candidate.lowest_usd * context.periods + effort


def weigh(candidate: Candidate, context: JobContext) -> Worth:
    """Return what a candidate is worth against today, over the horizon that was asked for."""
    periods, today, high = context.periods, context.baseline.cost, candidate.usd_range.high
    effort = effort_usd(candidate.effort_hours, context.asked.engineer_usd_per_hour)
    saves = None if today is None else (today - high) * periods
    expected = None if today is None else today - candidate.expected
    a_month = expected if context.work.storage_h is not None else None
    data = data_bytes(context.profile, context.work)
    moved = move(context.baseline, candidate.offer, data, a_month, context.catalog.as_of)
    once = effort + ((moved.once_usd if moved else None) or _ZERO)
    return Worth(
        candidate=candidate,
        move=moved,
        benefit=Benefit(
            periods=periods,
            saves_usd=saves,
            effort_hours=candidate.effort_hours,
            effort_usd=effort,
            moving_usd=moved.once_usd if moved else _ZERO,
            net_usd=None if saves is None else saves - once,
            pays_back_periods=float(once / expected) if expected and expected > 0 else None,
        ),
        spends=candidate.compared * periods + once,
    )
