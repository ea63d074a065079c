"""Money is `Decimal`: it enters through `usd`, is rounded once by `cents`, and is shown here."""

from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, InvalidOperation

from pricing.errors import InputError

HOURS_PER_MONTH = Decimal(730)
"""Hours in a month where a price is per month: 365 x 24 / 12, the cloud price lists' convention."""

EXACT = Context(prec=28, rounding=ROUND_HALF_EVEN)
"""Arithmetic of bills: Python's own 28 digits, whatever context the caller has set."""

_CENT = Decimal("0.01")
_LARGEST = Decimal("1e15")


def usd(value: str | int | Decimal) -> Decimal:
    """Dollars as an exact decimal; the only door through which money enters.

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


def cents(amount: Decimal) -> Decimal:
    """The amount rounded half up (away from zero) to 0.01, as bills are."""
    return amount.quantize(_CENT, rounding=ROUND_HALF_UP, context=EXACT)


def show(amount: Decimal) -> str:
    """The amount for people, rounded half up to cents with thousands apart: "1,234.56"."""
    return f"{cents(amount):,}"


def plain(amount: Decimal) -> str:
    """The amount for JSON, every digit kept: no exponent, no trailing zeros ("0.882", "8")."""
    text = f"{amount:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
