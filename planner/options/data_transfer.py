"""What it costs once to bring a job's data to another provider or region."""

from datetime import date
from decimal import Decimal
from functools import lru_cache

from planner.baseline.baseline import Baseline
from planner.baseline.workload import GIB, Workload
from planner.options.option import Move
from planner.profile.model import Profile
from pricing.billing.quote import Usage, quote
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer

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
