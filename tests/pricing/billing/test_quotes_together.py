"""Many offers quoted for one use: the bills are those of each alone."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from pricing.billing.quote import Usage, quote
from pricing.catalog.catalog import load_catalog
from tests.pricing.factories import ASKED_ON, an_offer

GB, HOUR = 10**9, 3600
BUNDLED = load_catalog(ASKED_ON)


@pytest.mark.parametrize(
    "asked",
    [
        {"duration_s": 5400},
        {"duration_s": 0},
        {"duration_s": 1},
        {"duration_s": 61, "count": 3},
        {"duration_s": HOUR, "commitment": "term"},
        {"duration_s": 1700 * HOUR, "start": datetime(2026, 11, 21, 5, tzinfo=UTC)},
        {"duration_s": 60, "boot_s": 90, "storage_bytes": GB},
        {"duration_s": 60, "interrupted": True},
    ],
    ids=str,
)
def test_a_quote_among_many_is_the_quote_alone(asked: dict[str, Any]) -> None:
    """What offers share under the rules of a provider changes no bill of any of them."""
    together = Usage(as_of=ASKED_ON, **asked)
    for offer in BUNDLED.offers:
        shared = quote(offer, together)
        assert shared == quote(offer, Usage(as_of=ASKED_ON, **asked)), offer.place
        assert sum((line.usd for line in shared.lines), Decimal(0)) == shared.exact


def test_a_least_charge_comes_back_among_many() -> None:
    """Offers under one rule of a least charge pay it or their time, in whatever order they come."""
    use = Usage(as_of=ASKED_ON, duration_s=1)
    dear, cheap = (
        an_offer(provider="digitalocean", usd_per_hour=Decimal(price)) for price in ("360", "0.36")
    )
    for order in ((dear, cheap, dear), (cheap, dear, cheap)):
        found = {offer.usd_per_hour: quote(offer, use).exact for offer in order}
        assert found == {Decimal(360): Decimal(6), Decimal("0.36"): Decimal("0.01")}
