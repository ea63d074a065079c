"""By how much a price that was read some days ago may have risen since.

The 95 % points of how far dated list prices rose over 30 to 270 days, counted on 2026-11-22 in
price observations of 2025-01 to 2026-11: the price files of the Karpenter providers for AWS, Azure
and GCP, and public trackers for the others (RunPod, DigitalOcean, Voltage Park, Vast). One rising
market: over a longer age than the last point the last one is kept.
"""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Literal

from pricing.catalog.offer import Offer

Sellers = Literal["hyperscaler", "specialist", "marketplace", "spot"]

_HYPERSCALERS = frozenset(("aws", "azure", "gcp", "oci"))
_MARKETPLACES = frozenset(("vast",))
_ONE = Decimal(1)
# (days, factor); observations at 90 days: 10,377 / 234 / 215 / 264.
_POINTS: Mapping[Sellers, tuple[tuple[int, str], ...]] = {
    "hyperscaler": ((0, "1.00"), (270, "1.00")),
    "specialist": ((0, "1.00"), (30, "1.13"), (90, "1.22"), (180, "1.30")),
    "marketplace": ((0, "1.00"), (30, "1.14"), (60, "1.67"), (90, "2.17"), (180, "2.53")),
    "spot": ((0, "1.00"), (30, "1.95"), (60, "2.00")),
}


def sellers(offer: Offer) -> Sellers:
    """Return the kind of seller and price whose history the offer's price is expected to share."""
    if offer.purchase == "spot":
        return "spot"
    if offer.provider in _HYPERSCALERS:
        return "hyperscaler"
    return "marketplace" if offer.is_community or offer.provider in _MARKETPLACES else "specialist"


def risen_at_most(offer: Offer, day: date) -> Decimal:
    """Return the factor, >= 1, that the price has risen by at most since it was read (95 %).

    A price that starts after `day`, or was read on it, has not moved.
    """
    age, points = max(0, (day - offer.as_of).days), _POINTS[sellers(offer)]
    for (from_d, from_), (to_d, to) in pairwise(points):
        if age < to_d:
            part = Decimal(age - from_d) / Decimal(to_d - from_d)
            return Decimal(from_) + part * (Decimal(to) - Decimal(from_))
    return max(_ONE, Decimal(points[-1][1]))
