"""A line as quantities at unit prices says the same dollars as its formula."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.billing.lines import Priced
from pricing.billing.quote import Usage, quote
from pricing.catalog.catalog import load_catalog
from pricing.catalog.offer import Offer

DAY = date(2026, 11, 21)
OFFERS = {offer.provider: offer for offer in load_catalog(DAY).offers}


@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
@given(
    duration_s=st.integers(0, 10**7),
    egress_bytes=st.integers(0, 10**15),
    storage_bytes=st.integers(0, 10**14),
    count=st.integers(1, 64),
)
def test_parts_make_the_line(
    offer: Offer, duration_s: int, egress_bytes: int, storage_bytes: int, count: int
) -> None:
    """Where a line has parts, they add up to it: to a millionth of a dollar, at any provider."""
    usage = Usage(
        duration_s=Decimal(duration_s),
        egress_bytes=egress_bytes,
        storage_bytes=storage_bytes,
        count=count,
        as_of=DAY,
    )
    for line in quote(offer, usage).lines:
        if line.parts:
            total = sum((part.quantity * part.unit_usd for part in line.parts), Decimal(0))
            assert abs(total - line.usd) < Decimal("0.000001"), line


def test_a_quantity_is_counted_then_divided() -> None:
    """5400 s at a price for an hour are 1.5 hours; a third of an hour has twelve decimals."""
    assert Priced(Decimal(5400), "Hours", Decimal(4), Decimal(3600)).quantity == Decimal("1.5")
    third = Priced(Decimal(1200), "Hours", Decimal(4), Decimal(3600)).quantity
    assert str(third) == "0.333333333333"
