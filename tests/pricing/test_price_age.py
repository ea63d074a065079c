"""An old price may have moved: by how much follows from who sells, and how."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.catalog.offer import Offer
from pricing.catalog.price_age import UNMOVED, moved, risen_at_most
from pricing.tables import read_csv
from tests.pricing.factories import an_offer

AWS = an_offer(provider="aws")
OURS = an_offer(provider="lambda")
VAST = an_offer(provider="vast", host="community")
SPOT = an_offer(provider="gcp", purchase="spot")
COMMUNITY = an_offer(provider="runpod", host="community")
TABLE = {(row["sellers"], int(row["days"])): row for row in read_csv("price_moves.csv")}


@pytest.mark.parametrize(
    ("offer", "sellers"),
    [(AWS, "hyperscaler"), (OURS, "specialist"), (VAST, "auction"), (SPOT, "spot"),
     (COMMUNITY, "specialist")],
)  # fmt: skip
def test_the_fitted_points(offer: Offer, sellers: str) -> None:
    """At the ages of the table its factors hold, half-way to the first one half of them."""
    for (kind, days), row in TABLE.items():
        if kind == sellers:
            then = moved(offer, offer.as_of + timedelta(days=days))
            assert (then.low, then.high) == (Decimal(row["low"]), Decimal(row["high"]))
    half = moved(offer, offer.as_of + timedelta(days=15))
    assert half.high - 1 == (Decimal(TABLE[sellers, 30]["high"]) - 1) / 2
    assert moved(offer, offer.as_of) == UNMOVED


@given(st.sampled_from((AWS, OURS, VAST, SPOT)), st.integers(-500, 2000), st.integers(0, 500))
def test_older_is_never_surer(offer: Offer, days: int, more: int) -> None:
    """The interval holds the price that was read, and widens with age."""
    young, old = (moved(offer, offer.as_of + timedelta(days=d)) for d in (days, days + more))
    assert old.low <= young.low <= 1 <= young.high <= old.high
    assert risen_at_most(offer, offer.as_of + timedelta(days=days)) == young.high


@pytest.mark.parametrize(
    ("offer", "days", "stale"),
    [
        (AWS, 300, False),
        (AWS, 366, True),
        (OURS, 30, False),
        (OURS, 31, True),
        (SPOT, 30, False),
        (SPOT, 31, True),
        (VAST, 31, True),
        (an_offer(provider="aws", dated=False), 0, True),
    ],
)
def test_stale_is_said_of_prices_that_move(offer: Offer, days: int, *, stale: bool) -> None:
    """Over 30 days old and perhaps risen by over a fifth; over a year old; or undated."""
    assert offer.is_stale(offer.as_of + timedelta(days=days)) is stale
