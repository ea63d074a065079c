"""An old price may have moved: by how much follows from who sells, and how."""

from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.catalog.offer import Offer
from pricing.catalog.price_age import UNMOVED
from pricing.tables import read_csv
from tests.pricing.factories import an_offer

AWS = an_offer(provider="aws")
OURS = an_offer(provider="lambda")
VAST = an_offer(provider="vast", host="community")
SPOT = an_offer(provider="gcp", purchase="spot")
COMMUNITY = an_offer(provider="runpod", host="community")
TODAY = date(2026, 11, 22)
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
            then = offer.moved(offer.as_of + timedelta(days=days))
            assert (then.low, then.high) == (Decimal(row["low"]), Decimal(row["high"]))
    half = offer.moved(offer.as_of + timedelta(days=15))
    assert half.high - 1 == (Decimal(TABLE[sellers, 30]["high"]) - 1) / 2
    assert offer.moved(offer.as_of) == UNMOVED


@given(st.sampled_from((AWS, OURS, VAST, SPOT)), st.integers(-500, 2000), st.integers(0, 500))
def test_older_is_never_surer(offer: Offer, days: int, more: int) -> None:
    """The interval holds the price that was read, and widens with age."""
    young, old = (offer.moved(offer.as_of + timedelta(days=d)) for d in (days, days + more))
    assert old.low <= young.low <= 1 <= young.high <= old.high
    assert offer.moved(offer.as_of + timedelta(days=days)).high == young.high


@pytest.mark.parametrize(
    ("offer", "days", "word"),
    [
        (AWS, 0, "fresh"),
        (AWS, 14, "fresh"),
        (AWS, 15, "ageing"),
        (OURS, 60, "ageing"),
        (OURS, 61, "old"),
        (SPOT, 61, "old"),
        (VAST, 15, "ageing"),
        (an_offer(provider="aws", dated=False), 0, "old"),
    ],
)
def test_one_word_says_the_age(offer: Offer, days: int, word: str) -> None:
    """Fresh for 14 days, ageing until the 60th, then old, whoever sells it; undated is old."""
    day = offer.as_of + timedelta(days=days)
    assert offer.age(day) == word
    assert offer.is_stale(day) is (word == "old")
