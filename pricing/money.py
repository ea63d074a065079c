"""Money is `Decimal`: it enters through `usd`, is rounded once by `cents`, and is shown here."""

from collections.abc import Iterable
from decimal import (
    ROUND_CEILING,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    Context,
    Decimal,
    InvalidOperation,
)
from functools import reduce
from typing import TYPE_CHECKING

from pricing.errors import InputError

if TYPE_CHECKING:
    Amount = Decimal
else:

    class _AmountType(type):
        """A type of its own to msgspec, so that a number is not taken for an amount."""

        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, Decimal)

    class Amount(metaclass=_AmountType):
        """A `Decimal` of a document: dollars, or a quantity of a bill. JSON has it as text."""


HOURS_PER_MONTH = Decimal(730)
"""Hours in a month where a price is per month: 365 x 24 / 12, the cloud price lists' convention."""

EXACT = Context(prec=28, rounding=ROUND_HALF_EVEN)
"""Arithmetic of bills: Python's own 28 digits, whatever context the caller has set."""

_CENT = Decimal("0.01")
_TWO_DIGITS = 2
_QUANTITY_DIGITS = 6
_CENTS_BELOW = Decimal(10)
_LARGEST = Decimal("1e15")


def usd(value: str | int | Decimal) -> Decimal:
    """Return dollars as an exact decimal; the only door through which money enters.

    Args:
        value: digits as the provider prints them ("35.28"), an int or a Decimal; never a float,
            which has already lost the price.

    Returns:
        The same amount, finite, below 10^15.

    Raises:
        InputError: for a float, a bool, NaN, infinity, text that is not a number, or an amount
            beyond any bill.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        msg = (
            f"{value!r} is not money: a {type(value).__name__} has no exact cents. "
            'Pass the digits as text, for example usd("35.28").'
        )
        raise InputError(msg)
    try:
        amount = Decimal(value.strip() if isinstance(value, str) else value)
    except InvalidOperation:
        msg = f'{value!r} is not an amount of dollars. Write plain digits, for example "35.28".'
        raise InputError(msg) from None
    if not amount.is_finite() or not -_LARGEST < amount < _LARGEST:
        msg = f'{value!r} is not an amount that can be billed. Write digits, for example "35.28".'
        raise InputError(msg)
    return amount


def sum_exactly(amounts: Iterable[Decimal]) -> Decimal:
    """Return the sum of dollars with every digit."""
    return reduce(EXACT.add, amounts, Decimal(0))


def cents(amount: Decimal) -> Decimal:
    """Return the amount rounded half up (away from zero) to 0.01, as bills are."""
    return amount.quantize(_CENT, ROUND_HALF_UP, EXACT)


def in_cents(amount: Decimal | None) -> Decimal | None:
    """Return dollars rounded to cents where they are known."""
    return None if amount is None else cents(amount)


def cents_up(amount: Decimal) -> Decimal:
    """Return the amount rounded up to 0.01: a cap that still holds the amount."""
    return amount.quantize(_CENT, ROUND_CEILING, EXACT)


def show(amount: Decimal) -> str:
    """Return the amount for people, rounded half up to cents with thousands apart: "1,234.56"."""
    return f"{cents(amount):,}"


def line_text(amount: Decimal) -> str:
    """Return an amount of a line for people: as `show`.

    Below a cent with two digits of it: "0.0037".
    """
    if not amount or abs(amount) >= _CENT:
        return show(amount)
    return f"{round(amount, 1 - amount.adjusted()):f}"


def price_text(amount: Decimal) -> str:
    """Return a price for people, every digit kept, cents at least: "0.10", "1,024.00", "0.0035"."""
    dollars, _, decimals = f"{amount:,f}".partition(".")
    return f"{dollars}.{decimals.rstrip('0'):0<{_TWO_DIGITS}}"


def quantity_text(amount: Decimal) -> str:
    """Return a quantity for people: thousands apart, six digits of what is not whole: "133.929"."""
    if amount == amount.to_integral_value():
        return f"{amount:,.0f}"
    rounded = round(amount, max(0, _QUANTITY_DIGITS - amount.adjusted() - 1))
    text = f"{rounded:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def whole_dollars(amount: Decimal) -> str:
    """Format dollars without cents, half up, thousands apart: "1,235"; below ten with cents."""
    if abs(amount) < _CENTS_BELOW:
        return show(amount)
    return f"{amount.quantize(Decimal(1), rounding=ROUND_HALF_UP, context=EXACT):,}"


def plain(amount: Decimal) -> str:
    """Return the amount for JSON, every digit kept: no exponent, no zeros at its end ("8")."""
    text = f"{amount:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def without_zeros(amount: Decimal) -> Decimal:
    """Return the same amount as documents hold it: no exponent, no zeros at its end."""
    text = str(amount)
    if text[-1] != "0" and "E" not in text:  # as most amounts are
        return amount
    return Decimal(plain(amount))
