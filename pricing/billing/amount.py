"""The dollars of a quantity with their formula, and how a time lies in steps and months."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from pricing.billing.lines import Priced, QuoteLine, quote_line
from pricing.billing.provider_rules import CALENDAR, BillingRule
from pricing.money import EXACT, HOURS_PER_MONTH, plain

SECONDS_PER_HOUR = Decimal(3600)
LONGEST_MONTH_H = Decimal(744)
"""Where no start is known, a use is taken to touch as few months as it can, of 31 days each."""

_ONE = Decimal(1)
_divide = EXACT.divide
_LONGEST_MONTH_S = LONGEST_MONTH_H * SECONDS_PER_HOUR
_DECEMBER = 12

Number = Decimal | int | str


class Amount(NamedTuple):
    """Dollars with their formula, the numbers in it, and what must be said beside them."""

    usd: Decimal
    formula: str
    numbers: tuple[Number, ...]
    parts: tuple[Priced, ...]
    warnings: tuple[str, ...] = ()

    def line(self, what: str, price: BillingRule, words: str) -> QuoteLine:
        """Return the line of a bill; its rule says the words, its source is the price's."""
        return quote_line(
            what,
            self.usd,
            self.formula,
            self.numbers,
            words,
            price.source,
            price.as_of,
            self.parts,
        )


Share = tuple[Decimal, Decimal]
"""Hours of a month, and how many the month has for the price."""


class MonthPart(NamedTuple):
    """What of a use falls in one month: its share of the whole, and the hours in that month."""

    fraction: Decimal
    hours: Decimal


def stepped_s(time_s: Decimal, step_s: Decimal | None) -> Decimal:
    """Return the time up to whole steps; as it is where it is not counted in steps."""
    if step_s is None:
        return time_s
    steps, rest = divmod(time_s, step_s)
    return (steps + 1) * step_s if rest else time_s


def months_touched(time_s: Decimal, start: datetime | None) -> int:
    """Return the months a time lies in: calendar months if its start is known, else the fewest."""
    if start is None:
        months, rest = divmod(time_s, _LONGEST_MONTH_S)
        return max(1, int(months) + bool(rest))
    return len(_calendar(EXACT.divide(time_s, SECONDS_PER_HOUR), start))


def month_parts(time_s: Decimal, start: datetime | None) -> tuple[MonthPart, ...]:
    """Return how a time lies in the months of an account.

    Where no start is known only whole months of 730 hours count, and one at least: an allowance
    per month is not given twice for an hour more.
    """
    hours = EXACT.divide(time_s, SECONDS_PER_HOUR)
    if start is not None:
        found = [here for here, _ in _calendar(hours, start)]
    else:
        months = max(1, int(hours // HOURS_PER_MONTH))
        found = [EXACT.divide(hours, Decimal(months))] * months
    if len(found) == 1:
        return (MonthPart(_ONE, hours),)
    return tuple(MonthPart(EXACT.divide(here, hours), here) for here in found)


def shares(time_s: Decimal, price: BillingRule, start: datetime | None) -> tuple[Share, ...]:
    """Return the billed hours of each month, with the hours that a month of the price has.

    A price by the calendar month, in months that are not known, is for 730 hours, and for a whole
    month never more than its price.
    """
    step_s, month_h = price.step_s, price.month_h
    billed_s = time_s if step_s is None else stepped_s(time_s, step_s)
    hours = _divide(billed_s, SECONDS_PER_HOUR)
    if month_h is None:
        return ((hours, HOURS_PER_MONTH),)
    if isinstance(month_h, Decimal):
        return ((hours, month_h),)
    if start is not None:
        return _calendar(hours, start)
    if hours > HOURS_PER_MONTH:  # one month at least is touched
        hours = min(hours, months_touched(billed_s, None) * HOURS_PER_MONTH)
    return ((hours, HOURS_PER_MONTH),)


def _calendar(hours: Decimal, start: datetime) -> tuple[Share, ...]:
    """Return the hours by calendar month in UTC; one share, maybe empty, if there are no hours."""
    at, left = start.astimezone(UTC), hours
    found: list[Share] = []
    while left > 0 or not found:
        first = at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        december = first.month == _DECEMBER
        then = first.replace(year=first.year + december, month=1 if december else first.month + 1)
        here = min(left, _hours(then - at))
        found.append((here, _hours(then - first)))
        at, left = then, left - here
    return tuple(found)


def _hours(span: timedelta) -> Decimal:
    whole_s = Decimal(span.days * 86400 + span.seconds)
    return EXACT.divide(whole_s + Decimal(span.microseconds) / 10**6, SECONDS_PER_HOUR)


@lru_cache(maxsize=4096)
def words_of(price: BillingRule, words: str) -> str:
    """Return the rule in words: "snapshots at 0.05 USD/GB-month, of the calendar month"."""
    text = f"{words} at {price.price_words}"
    if price.step_s is not None:
        text += f", in steps of {plain(price.step_s)} s"
    if price.month_h == CALENDAR:
        return f"{text}, of the hours of the calendar month"
    return f"{text}, of a month of {price.month_h} h" if price.month_h else text
