"""Values for tests, complete but for what a test is about."""

from datetime import date
from decimal import Decimal
from typing import Any

from pricing.catalog.offer import Offer

ASKED_ON = date(2026, 11, 21)


def an_offer(**changes: Any) -> Offer:
    """A plain one-GPU offer, with the fields that a test names changed."""
    fields: dict[str, Any] = {
        "provider": "example",
        "region": "*",
        "instance_type": "one-gpu",
        "gpu": "L4",
        "gpu_count": 1,
        "gpu_memory_gib": 24,
        "purchase": "on_demand",
        "usd_per_hour": Decimal("1.00"),
        "source": "a test",
        "as_of": date(2026, 11, 1),
    }
    return Offer(**fields | changes)
