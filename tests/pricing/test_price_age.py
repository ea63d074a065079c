"""An old price may have moved: by how much follows from who sells, and how."""

from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.catalog.offer import Offer
from pricing.catalog.price_age import UNMOVED, moved, moved_in, risen_at_most, sellers_of
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
        (OURS, 41, False),  # old enough, but seldom risen by a fifth
        (OURS, 42, True),
        (SPOT, 30, False),
        (SPOT, 31, True),
        (VAST, 31, True),
        (an_offer(provider="aws", dated=False), 0, True),
    ],
)
def test_stale_is_said_of_prices_that_move(offer: Offer, days: int, *, stale: bool) -> None:
    """Over 30 days old and perhaps risen by over a fifth; over a year old; or undated."""
    assert offer.is_stale(offer.as_of + timedelta(days=days)) is stale


@pytest.mark.parametrize(
    ("gpu", "purchase", "read", "high"),
    [
        ("H100-SXM-80GB", "on_demand", date(2026, 5, 24), Decimal("4.49") / Decimal("2.29")),
        ("H200-SXM-141GB", "on_demand", date(2026, 5, 24), Decimal("5.86") / Decimal("3.39")),
        ("A100-SXM-80GB", "on_demand", date(2026, 5, 24), Decimal("4.49") / Decimal("2.29")),
        ("H100-SXM-80GB", "on_demand", date(2026, 10, 24), None),
        ("H100-SXM-80GB", "spot", date(2026, 5, 24), None),
    ],
)
def test_a_later_reading_that_contradicts_a_price_is_in_its_range(
    gpu: str, purchase: str, read: date, high: Decimal | None
) -> None:
    """It reaches to what others read later; a newer price, or one of another kind, goes by age."""
    verda = an_offer(provider="verda", gpu=gpu, purchase=purchase, as_of=read)
    law = moved_in(sellers_of("verda", purchase), (TODAY - read).days)
    assert moved(verda, TODAY).high == (high or law.high)
    assert (
        moved(verda, date(2026, 10, 23)).high
        == moved_in(sellers_of("verda", purchase), max(0, (date(2026, 10, 23) - read).days)).high
    )
