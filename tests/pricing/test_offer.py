"""An offer is valid or refused with every reason, and knows its dates."""

import math
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.catalog.price_age import read_date
from pricing.errors import InputError
from tests.pricing.factories import an_offer


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"usd_per_hour": Decimal(0)}, "usd_per_hour is Decimal\\('0'\\)"),
        ({"usd_per_hour": Decimal(-1)}, "above 0"),
        ({"usd_per_hour": 1.5}, "usd_per_hour is 1.5"),
        ({"usd_per_hour": Decimal("Infinity")}, "above 0"),
        ({"gpu_count": 0}, "gpu_count is 0"),
        ({"gpu_memory_gib": 0}, "gpu_memory_gib is 0"),
        ({"gpu_memory_gib": math.nan}, "gpu_memory_gib is nan"),
        ({"purchase": "rented"}, "one of on_demand, spot"),
        ({"valid_until": date(2026, 10, 1)}, "before its start"),
    ],
)
def test_impossible_offers_are_refused(changes: dict[str, Any], said: str) -> None:
    """A price that is not a positive Decimal, or an impossible machine, never becomes an offer."""
    with pytest.raises(InputError, match=said):
        an_offer(**changes)


def test_all_problems_of_an_offer_come_at_once() -> None:
    """One error lists everything that is wrong."""
    with pytest.raises(InputError) as caught:
        an_offer(usd_per_hour=Decimal(0), gpu_count=-1, purchase="x")
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("region", "place"), [("*", "example/one-gpu"), ("mars-1", "example/one-gpu/mars-1")]
)
def test_place_names_the_region_where_there_is_one(region: str, place: str) -> None:
    """The place of an offer is what the command line takes."""
    assert an_offer(region=region).place == place
    assert an_offer(region=region).name == "example/one-gpu"


@pytest.mark.parametrize(
    ("gpu", "vendor", "cpu"),
    [("L4", "NVIDIA", "x86_64"), ("MI300X", "AMD", "x86_64"), ("GH200", "NVIDIA", "arm64"),
     ("T4G", "NVIDIA", "arm64"), ("Radeon-Pro-V520", None, "x86_64")],
)  # fmt: skip
def test_vendor_and_host_come_from_the_gpu(gpu: str, vendor: str | None, cpu: str) -> None:
    """The hardware table tells vendor and host; an unlisted GPU has no known vendor."""
    offer = an_offer(gpu=gpu)
    assert (offer.vendor, offer.cpu_architecture) == (vendor, cpu)


@pytest.mark.parametrize(
    ("text", "day", "full"),
    [
        ("2026-10-08", date(2026, 10, 8), True),
        ("2024-12", date(2024, 12, 1), False),
        ("2026 (undated)", date(2026, 1, 1), False),
        ("2025/2026 (undated)", date(2025, 1, 1), False),
        ("2026-mid", date(2026, 1, 1), False),
        ("2026-05/2026-03", date(2026, 3, 1), False),
    ],
)
def test_partial_dates_count_as_the_first_day_they_may_mean(
    text: str, day: date, *, full: bool
) -> None:
    """A date that names no day is the first day of the earliest year or month in it."""
    assert read_date(text) == (day, full)


@pytest.mark.parametrize("text", ["", "older", "current", "12", "2026-13-01", "2026-02-30"])
def test_dates_without_a_year_are_refused(text: str) -> None:
    """A text from which no day follows is an error, not a guess."""
    with pytest.raises(ValueError, match=r"year|month|day"):
        read_date(text)


@given(st.dates(date(2000, 1, 1), date(2100, 1, 1)))
def test_full_dates_read_back(day: date) -> None:
    """Every ISO date is read as itself."""
    assert read_date(day.isoformat()) == (day, True)


@pytest.mark.parametrize(
    ("age_days", "dated", "stale"),
    [(0, True, False), (60, True, False), (61, True, True), (-5, True, False), (0, False, True)],
)
def test_stale_is_old_or_undated(age_days: int, *, dated: bool, stale: bool) -> None:
    """Old is over 60 days, and always of an unknown day."""
    offer = an_offer(dated=dated, as_of_text="" if dated else "2026")
    day = offer.as_of + timedelta(days=age_days)
    assert offer.is_stale(day) is stale
    assert any("check it" in warning for warning in offer.warnings(day)) is stale


@pytest.mark.parametrize(
    ("day", "holds"),
    [(date(2026, 7, 31), False), (date(2026, 8, 1), True), (date(2026, 8, 31), True),
     (date(2026, 9, 1), False)],
)  # fmt: skip
def test_windows_include_both_ends(day: date, *, holds: bool) -> None:
    """A price holds on valid_from and on valid_until themselves."""
    offer = an_offer(valid_from=date(2026, 8, 1), valid_until=date(2026, 8, 31))
    assert offer.holds_on(day) is holds


def test_a_price_before_its_start_is_named() -> None:
    """Using the first known price for an earlier day is said."""
    (warning,) = an_offer().warnings(date(2026, 1, 1))
    assert "no price is known for 2026-01-01" in warning
    assert "2026-11-01" in warning
