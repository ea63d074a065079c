"""An old price may have risen: by how much follows from who sells, and how."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.catalog.price_age import risen_at_most
from tests.pricing.factories import an_offer

AWS = an_offer(provider="aws")
OURS = an_offer(provider="lambda")
VAST = an_offer(provider="vast", host="community")
SPOT = an_offer(provider="gcp", purchase="spot")


@pytest.mark.parametrize(
    ("offer", "days", "factor"),
    [
        (AWS, 125, "1"),
        (OURS, 0, "1"),
        (OURS, 15, "1.065"),
        (OURS, 30, "1.13"),
        (OURS, 90, "1.22"),
        (OURS, 400, "1.30"),
        (VAST, 90, "2.17"),
        (SPOT, 30, "1.95"),
    ],
)
def test_the_counted_points(offer: object, days: int, factor: str) -> None:
    """The 95 % points of the counted rises, straight between them, kept beyond the last."""
    day = offer.as_of + timedelta(days=days)  # type: ignore[attr-defined]
    assert risen_at_most(offer, day) == Decimal(factor)  # type: ignore[arg-type]


@given(st.sampled_from((AWS, OURS, VAST, SPOT)), st.integers(-500, 2000), st.integers(0, 500))
def test_older_is_never_surer(offer: object, days: int, more: int) -> None:
    """At least 1, and it grows with age."""
    young, old = (offer.as_of + timedelta(days=d) for d in (days, days + more))  # type: ignore[attr-defined]
    assert 1 <= risen_at_most(offer, young) <= risen_at_most(offer, old)  # type: ignore[arg-type]
