"""Runs that live through a change of price or rules: each stretch at its own price."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.billing.quote import Quote, Usage, quote, quote_over
from pricing.catalog.catalog import load_catalog
from pricing.catalog.offer import Offer
from pricing.errors import InputError
from tests.pricing.factories import ASKED_ON, an_offer

BUNDLED = load_catalog(ASKED_ON)
H100 = BUNDLED.history("digitalocean", "gpu-h100x1-80gb")


def rows(*prices: tuple[str, date, date | None]) -> tuple[Offer, ...]:
    """The history of one offer billed by the second: price, first day, last day."""
    return tuple(
        an_offer(
            provider="digitalocean",
            usd_per_hour=Decimal(usd),
            as_of=begins,
            valid_from=begins,
            valid_until=ends,
            current=ends is None,
        )
        for usd, begins, ends in prices
    )


def bill(history: tuple[Offer, ...], start: datetime, hours: float, **use: Any) -> Quote:
    """The bill of a run that starts then."""
    usage = Usage(duration_s=hours * 3600, as_of=start.date(), start=start, **use)
    return quote_over(history, usage)


OLD_AND_NEW = rows(("1.00", date(2026, 6, 1), date(2026, 6, 30)), ("2.00", date(2026, 7, 1), None))
EVENING = datetime(2026, 6, 30, 22, tzinfo=UTC)


def test_each_stretch_has_its_own_price() -> None:
    """Two hours at the old price, three at the new one, in one line that says so."""
    found = bill(OLD_AND_NEW, EVENING, 5)
    (line,) = found.lines
    assert line.usd == 8
    assert line.how == "7,200 s x 1.00 USD/h / 3600 + 10,800 s x 2.00 USD/h / 3600"
    assert any("from 1.00 to 2.00 USD/h on 2026-07-01" in text for text in found.warnings)
    assert [(part.counted, part.unit_usd) for part in line.parts] == [(7200, 1), (10800, 2)]


def test_machines_multiply_every_stretch() -> None:
    """Three machines cost three times as much."""
    (line,) = bill(OLD_AND_NEW, EVENING, 5, count=3).lines
    assert line.usd == 24
    assert line.how.startswith("3 x (7,200 s x 1.00 USD/h")


def test_additional_time_has_the_price_of_its_stretch() -> None:
    """Boot comes after the two hours of work, in the new price."""
    lines = bill(OLD_AND_NEW, EVENING, 2, boot_s=1800).lines
    assert [(line.what, line.usd) for line in lines] == [("compute", 2), ("boot", 1)]
    assert lines[1].how == "1,800 s x 2.00 USD/h / 3600"


def test_an_ended_price_without_successor_is_kept_and_said() -> None:
    """A promotion that ends with nothing known after it: its price goes on, with a warning."""
    promotion = rows(("1.00", date(2026, 6, 1), date(2026, 6, 30)))
    found = bill(promotion, EVENING, 5)
    assert found.exact == 5
    assert any("ended on 2026-06-30 and no later one is known" in w for w in found.warnings)


def test_a_run_inside_one_price_is_an_ordinary_bill() -> None:
    """Without a change the bill is that of `quote`, without a further warning."""
    start = datetime(2026, 7, 2, tzinfo=UTC)
    usage = Usage(duration_s=3600, as_of=start.date(), start=start)
    assert quote_over(OLD_AND_NEW, usage) == quote(OLD_AND_NEW[1], usage)


def test_other_zones_are_read_in_utc() -> None:
    """The day of a start is its day in UTC."""
    start = datetime.fromisoformat("2026-07-01T00:30+02:00")
    usage = Usage(duration_s=3600, as_of=date(2026, 6, 30), start=start)
    assert quote_over(OLD_AND_NEW, usage).exact == 1


@pytest.mark.parametrize(
    ("history", "usage"),
    [
        ((), Usage(duration_s=1, as_of=date(2026, 7, 1), start=datetime(2026, 7, 1, tzinfo=UTC))),
        (OLD_AND_NEW, Usage(duration_s=1, as_of=date(2026, 7, 1))),
    ],
)
def test_without_history_or_start_there_is_no_bill(
    history: tuple[Offer, ...], usage: Usage
) -> None:
    """Both are needed."""
    with pytest.raises(InputError, match="the known prices and the instant"):
        quote_over(history, usage)


def test_a_life_beyond_the_calendar_is_billed() -> None:
    """Thirty thousand years overflow no date."""
    assert bill(OLD_AND_NEW, EVENING, 3e8).exact > 0


STARTS = st.datetimes(datetime(2024, 9, 30), datetime(2026, 11, 1), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis wants them naive
SECONDS = st.integers(0, 40_000_000)


@given(STARTS, SECONDS, SECONDS)
def test_more_seconds_never_cost_less_over_time(start: datetime, one: int, other: int) -> None:
    """A longer run never costs less, whatever prices and rules change in it."""
    short, long = (
        quote_over(H100, Usage(duration_s=s, as_of=start.date(), start=start)).exact
        for s in sorted((one, other))
    )
    assert short <= long


@given(STARTS, st.integers(1, 500), st.integers(1, 500))
def test_a_run_costs_what_its_two_halves_cost(start: datetime, one: int, other: int) -> None:
    """Cut at a whole hour, by the second, two runs cost what one does: no stretch is lost."""
    start = max(start, datetime(2026, 1, 1, tzinfo=UTC)).replace(minute=0, second=0, microsecond=0)
    whole = bill(H100, start, one + other).exact
    halves = bill(H100, start, one).exact + bill(H100, start + timedelta(hours=one), other).exact
    assert abs(whole - halves) < Decimal("1e-15")
