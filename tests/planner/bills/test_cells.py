"""Cells of bills: amounts exact, times in UTC, rows with their lines."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.bills.bill import csv_rows, dollars, moment, present
from pricing.errors import InputError


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("$3.11", "3.11"),
        ("-$25.00", "-25.00"),
        ("$-25.00", "-25.00"),
        ("($25.00)", "-25.00"),
        ("$3,219.30", "3219.30"),
        ("0.00000080000", "0.00000080000"),
        ("5.64902E-05", "0.0000564902"),
        (" 12 ", "12"),
        (".5", "0.5"),
    ],
)
def test_an_amount_is_read_to_its_last_digit(text: str, amount: str) -> None:
    """Signs, dollar signs, thousands and exponents are read; no digit is lost."""
    assert dollars(text) == Decimal(amount)


@pytest.mark.parametrize("text", ["", "$", "-", "3.11 EUR", "€3", "1.2.3", "NaN", "inf", "1e400"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    """Another currency, no digits or no number is an error, never 0."""
    with pytest.raises(ValueError, match="is not an amount"):
        dollars(text)


@given(st.decimals(-(10**12), 10**12, places=11))
def test_printed_amounts_come_back(amount: Decimal) -> None:
    """Whatever a bill prints with eleven decimals is read as exactly that."""
    assert dollars(f"{amount:f}") == amount
    assert dollars(f"${amount:,.11f}".replace("$-", "-$")) == amount


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-01T00:00:00Z",
        "2026-11-01T00:00:00.000Z",
        "2026-11-01 00:00:00",
        "2026-11-01 00:00:00.000",
        "2026-11-01 00:00:00 +0000",
        "2026-11-01 00:00:00 UTC",
        "2026-11-01",
        "2026-11-01T02:00:00+02:00",
    ],
)
def test_every_form_of_a_time_is_the_same_instant(text: str) -> None:
    """With or without T, zone and fraction; without a zone it is UTC."""
    assert moment(text) == datetime(2026, 11, 1, tzinfo=UTC)


@given(st.integers(0, 4_000_000_000), st.integers(-12, 14))
def test_an_offset_is_taken_off(epoch_s: int, hours: int) -> None:
    """A time with a zone is the same instant in UTC."""
    there = datetime.fromtimestamp(epoch_s, tz=timezone(timedelta(hours=hours)))
    assert moment(there.isoformat()) == there


@pytest.mark.parametrize("text", ["", "yesterday", "11/01/2026", "2026-13-01"])
def test_what_is_no_time_is_refused(text: str) -> None:
    """No time is an error that quotes it."""
    with pytest.raises(ValueError, match="is not a time"):
        moment(text)


@pytest.mark.parametrize("text", ["", " ", "NULL", "null", "None", "\\N", None])
def test_null_has_many_names(text: str | None) -> None:
    """The ways to write null are None."""
    assert present(text) is None


def test_rows_carry_the_line_on_which_they_end() -> None:
    """A cell with a line break in it does not shift the numbers."""
    rows = list(csv_rows("a.csv", 'x,y\n1,"two\nlines"\n\n3,4\n'))
    assert rows == [("a.csv:3", {"x": "1", "y": "two\nlines"}), ("a.csv:5", {"x": "3", "y": "4"})]


def test_every_row_of_another_length_is_named() -> None:
    """All rows that do not fit the header are listed with their lines."""
    with pytest.raises(InputError) as caught:
        list(csv_rows("a.csv", "x,y\n1,2\n1\n1,2,3\n"))
    assert [p.partition(" ")[0] for p in caught.value.problems] == ["a.csv:3:", "a.csv:4:"]
