"""Money enters exact, is rounded once and half up, and keeps every digit on the way."""

import math
import re
from decimal import ROUND_DOWN, Decimal, getcontext, localcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.errors import InputError
from pricing.money import (
    EXACT,
    HOURS_PER_MONTH,
    cents,
    cents_up,
    line_text,
    plain,
    price_text,
    quantity_text,
    show,
    usd,
    whole_dollars,
    without_zeros,
)

AMOUNTS = st.decimals(min_value=-(10**9), max_value=10**9, places=6)


@pytest.mark.parametrize(
    ("value", "amount"),
    [
        ("35.28", "35.28"),
        (" 0.00595 ", "0.00595"),
        ("8", "8"),
        (8, "8"),
        (Decimal("2.4024"), "2.4024"),
        ("1e-3", "0.001"),
        ("-3", "-3"),
    ],
)
def test_usd_reads_exact_amounts(value: Any, amount: str) -> None:
    """The digits of the source are the amount."""
    assert usd(value) == Decimal(amount)


@pytest.mark.parametrize(
    "value",
    [35.28, math.nan, math.inf, "NaN", "inf", "-Infinity", "", "free", "$3", "1,2", True, None,
     "1e15", Decimal("NaN"), "9" * 40, b"3"],
)  # fmt: skip
def test_usd_refuses_what_is_not_exact_money(value: Any) -> None:
    """Floats, NaN, infinities, words and absurd amounts never become money."""
    with pytest.raises(InputError, match=r"Write|Pass"):
        usd(value)


@given(st.text(max_size=12))
def test_usd_reads_text_or_says_why_not(text: str) -> None:
    """No text makes usd fail other than by InputError, or give a number that is not money."""
    try:
        amount = usd(text)
    except InputError:
        return
    assert amount.is_finite()


@pytest.mark.parametrize(
    ("amount", "rounded"),
    [("37.485", "37.49"), ("0.005", "0.01"), ("0.0049999", "0.00"), ("-0.005", "-0.01"),
     ("1.064", "1.06"), ("2.675", "2.68"), ("0.125", "0.13")],
)  # fmt: skip
def test_cents_rounds_half_up(amount: str, rounded: str) -> None:
    """Half a cent goes away from zero, as on invoices."""
    assert str(cents(Decimal(amount))) == rounded


@given(AMOUNTS)
def test_cents_is_at_most_half_a_cent_away(amount: Decimal) -> None:
    """Rounding moves an amount by no more than half a cent, and rounds only once."""
    assert abs(cents(amount) - amount) <= Decimal("0.005")
    assert cents(cents(amount)) == cents(amount)


@given(AMOUNTS, AMOUNTS)
def test_cents_keeps_order(one: Decimal, other: Decimal) -> None:
    """A larger amount never rounds to less."""
    low, high = sorted((one, other))
    assert cents(low) <= cents(high)


@pytest.mark.parametrize(
    ("amount", "text"), [("1234.555", "1,234.56"), ("0", "0.00"), ("1e6", "1,000,000.00")]
)
def test_show_groups_thousands(amount: str, text: str) -> None:
    """People see two digits and thousands apart."""
    assert show(Decimal(amount)) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [("0.8820", "0.882"), ("36.00", "36"), ("100", "100"), ("1E+3", "1000"), ("0E-29", "0"),
     ("-0.0", "0"), ("1e-7", "0.0000001")],
)  # fmt: skip
def test_plain_has_no_exponent_and_no_spare_zeros(amount: str, text: str) -> None:
    """JSON money is plain digits."""
    assert plain(Decimal(amount)) == text


@given(AMOUNTS)
def test_plain_keeps_every_digit(amount: Decimal) -> None:
    """What is written reads back as the same amount."""
    assert without_zeros(amount) == Decimal(plain(amount)) == amount
    assert f"{without_zeros(amount):f}" == plain(amount)


def test_rounding_ignores_the_callers_decimal_context() -> None:
    """A program that lowers the precision or changes the rounding gets the same cents."""
    before = getcontext().copy()
    with localcontext() as context:
        context.prec, context.rounding = 4, ROUND_DOWN
        assert str(cents(Decimal("123456.785"))) == "123456.79"
        assert EXACT.divide(Decimal(1), Decimal(8)) == Decimal("0.125")
    assert getcontext().prec == before.prec


@pytest.mark.parametrize(
    ("amount", "price", "quantity", "line", "whole"),
    [
        ("0.1", "0.10", "0.1", "0.10", "0.10"),
        ("35.28", "35.28", "35.28", "35.28", "35"),
        ("0.0035", "0.0035", "0.0035", "0.0035", "0.00"),
        ("1234.5", "1,234.50", "1,234.5", "1,234.50", "1,235"),
        ("133.92857142857", "133.92857142857", "133.929", "133.93", "134"),
        ("10240", "10,240.00", "10,240", "10,240.00", "10,240"),
        ("0.000123456789", "0.000123456789", "0.000123457", "0.00012", "0.00"),
        ("0", "0.00", "0", "0.00", "0.00"),
        ("9.995", "9.995", "9.995", "10.00", "10.00"),
    ],
)  # fmt: skip
def test_figures_are_as_people_write_them(
    amount: str, price: str, quantity: str, line: str, whole: str
) -> None:
    """Prices keep every digit, quantities six; amounts have cents; thousands stand apart."""
    figure = Decimal(amount)
    shown = (price_text(figure), quantity_text(figure), line_text(figure), whole_dollars(figure))
    assert shown == (price, quantity, line, whole)


DOLLARS_BY_HAND = re.compile(r"\$\{[^}]*:[,.]")
"""A dollar amount that an f-string formats itself."""


def test_money_is_shown_in_one_place() -> None:
    """No module formats dollars itself: `pricing.money` does, so that there is one style."""
    root = Path(__file__).parents[2]
    packages = ("gpucost", "planner", "pricing", "providers", "telemetry", "templates")
    files = [path for package in packages for path in (root / package).rglob("*.py")]
    assert len(files) > 100
    assert not [path for path in files if DOLLARS_BY_HAND.search(path.read_text(encoding="utf-8"))]


def test_month_is_730_hours() -> None:
    """The documented month is 365 x 24 / 12 hours."""
    assert Decimal(365 * 24) / 12 == HOURS_PER_MONTH


@given(st.decimals("0", "1000000", places=9))
def test_a_cap_in_cents_holds_what_it_is_the_cap_of(amount: Decimal) -> None:
    """Rounded up to cents, a cap is never below the amount, and never a cent above it."""
    assert amount <= cents_up(amount) < amount + Decimal("0.01")
