"""When dollars were spent: split only where the bill proves it, and never more or less than it."""

from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from planner.bills.bill import BillLine
from planner.bills.leftovers import days, stretches

FRIDAY = datetime(2026, 11, 6, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
# clocks that jump at midnight, by half an hour, and never
ZONES = ("UTC", "Europe/Berlin", "America/Havana", "America/Sao_Paulo", "Australia/Lord_Howe")


def line(
    start: datetime, hours: float, *, ran: str | None, resource: str | None = "i-1"
) -> BillLine:
    """A charge of 24 dollars for a machine."""
    return BillLine(
        kind="compute", usd=Decimal(24), provider="aws", description="", resource=resource,
        hours=Decimal(ran) if ran else None, start=start, end=start + timedelta(hours=hours),
    )  # fmt: skip


def parts(one: BillLine, zone: tzinfo = UTC) -> dict[str, Decimal]:
    """Dollars by part of the week."""
    sums: dict[str, Decimal] = {}
    for stretch in stretches(one, zone):
        sums[stretch.part] = sums.get(stretch.part, Decimal(0)) + stretch.usd
    return sums


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (line(FRIDAY, 24, ran="24"), {"night": 12, "workday": 12}),
        (line(FRIDAY, 48, ran="48"), {"night": 6, "workday": 6, "weekend": 12}),
        (line(FRIDAY + timedelta(hours=9), 1, ran="0.2"), {"workday": 24}),
        (line(FRIDAY + timedelta(hours=21), 1, ran=None), {"night": 24}),
        (line(FRIDAY + timedelta(days=1), 24, ran="3"), {"weekend": 24}),
        (line(FRIDAY, 24, ran="23"), {}),
        (line(FRIDAY, 24, ran="24", resource=None), {}),
        (line(FRIDAY, 24, ran=None), {}),
        (line(FRIDAY, 0, ran="1"), {}),
    ],
)
def test_hours_are_put_where_they_were_or_nowhere(one: BillLine, expected: dict[str, int]) -> None:
    """A span in one part is of it; a longer one is split if one machine ran all through it."""
    assert parts(one) == {part: Decimal(usd) for part, usd in expected.items()}


def test_the_zone_is_the_readers() -> None:
    """7 o'clock in UTC is 8 o'clock in Berlin: no night any more, and 19 h is."""
    morning = line(FRIDAY + timedelta(hours=7), 1, ran="1")
    evening = line(FRIDAY + timedelta(hours=19), 1, ran="1")
    assert (set(parts(morning)), set(parts(morning, BERLIN))) == ({"night"}, {"workday"})
    assert (set(parts(evening)), set(parts(evening, BERLIN))) == ({"workday"}, {"night"})


def test_days_are_told_where_a_line_is_of_one() -> None:
    """A row of a day has its day, whenever in it the machine ran; a longer one may have none."""
    assert days(line(FRIDAY, 24, ran="3"), UTC) == ((FRIDAY.date(), Decimal(24)),)
    assert days(line(FRIDAY, 240, ran="3"), UTC) == ()


@example("UTC", datetime(2015, 1, 1, 0, 0, 0, 1), 101.0, Decimal("14815.627911052"))  # noqa: DTZ001
@example("UTC", datetime(2015, 1, 1), 49.0, Decimal("14815.627911163"))  # noqa: DTZ001
@given(
    st.sampled_from(ZONES),
    st.datetimes(datetime(2015, 1, 1), datetime(2027, 1, 1)),  # noqa: DTZ001 - made aware below
    st.floats(0.01, 2000),
    st.decimals(-1000, 100_000, places=9),
)
def test_the_parts_of_a_charge_add_up_to_it(
    zone: str, start: datetime, hours: float, usd: Decimal
) -> None:
    """Through every change of clocks the stretches are the charge, to the last digit."""
    begin = start.replace(tzinfo=UTC)
    one = BillLine(
        kind="compute", usd=usd, provider="aws", description="", resource="i", hours=Decimal(9999),
        start=begin, end=begin + timedelta(hours=hours),
    )  # fmt: skip
    assert sum(stretch.usd for stretch in stretches(one, ZoneInfo(zone))) == usd
    assert sum(told for _, told in days(one, ZoneInfo(zone))) == usd
