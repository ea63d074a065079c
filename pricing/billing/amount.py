"""What a quantity costs over a time: by the hour, by the month, by size and month."""

from collections.abc import Iterable, Sequence
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

_ZERO = Decimal(0)
_ONE = Decimal(1)
_WHOLE_HOUR_S = SECONDS_PER_HOUR
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


class Share(NamedTuple):
    """Hours of a month, and how many the month has for the price."""

    hours: Decimal
    month_h: Decimal


class MonthPart(NamedTuple):
    """What of a use falls in one month: its share of the whole, and the hours in that month."""

    fraction: Decimal
    hours: Decimal


class _Words:
    """A formula under construction: numbers are put in when it is read."""

    def __init__(self) -> None:
        self.numbers: list[Number] = []

    def put(self, number: Number) -> str:
        """Return the place of a quantity in the formula."""
        self.numbers.append(number)
        return f"{{{len(self.numbers) - 1}}}"

    def price(self, usd: Decimal) -> str:
        """Return the place of a price in the formula."""
        return f"{self.put(usd)[:-1]}:usd}}"

    def shares(self, shares: Sequence[Share]) -> str:
        """Return the parts of months as text."""
        parts = [f"{self.put(share.hours)} h / {self.put(share.month_h)} h" for share in shares]
        return parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"


def stepped_s(time_s: Decimal, step_s: Decimal | None) -> Decimal:
    """Return the time up to whole steps; as it is where it is not counted in steps."""
    if step_s is None:
        return time_s
    steps, rest = divmod(time_s, step_s)
    return (steps + 1) * step_s if rest else time_s


def months_touched(time_s: Decimal, start: datetime | None) -> int:
    """Return the months a time lies in: calendar months if its start is known, else the fewest."""
    if start is None:
        months, rest = divmod(time_s, LONGEST_MONTH_H * SECONDS_PER_HOUR)
        return max(1, int(months) + bool(rest))
    return len(_calendar(EXACT.divide(time_s, SECONDS_PER_HOUR), start))


def month_parts(time_s: Decimal, start: datetime | None) -> tuple[MonthPart, ...]:
    """Return how a time lies in the months of an account.

    Where no start is known only whole months of 730 hours count, and one at least: an allowance
    per month is not given twice for an hour more.
    """
    hours = EXACT.divide(time_s, SECONDS_PER_HOUR)
    if start is not None:
        found = [share.hours for share in _calendar(hours, start)]
    else:
        months = max(1, int(hours // HOURS_PER_MONTH))
        found = [EXACT.divide(hours, Decimal(months))] * months
    if len(found) == 1:
        return (MonthPart(_ONE, hours),)
    return tuple(MonthPart(EXACT.divide(here, hours), here) for here in found)


def shares(time_s: Decimal, price: BillingRule, start: datetime | None) -> tuple[Share, ...]:
    """Return the hours of each month, with the hours that a month of the price has.

    A price by the calendar month, in months that are not known, is for 730 hours, and for a whole
    month never more than its price.
    """
    hours = EXACT.divide(time_s, SECONDS_PER_HOUR)
    if price.month_h == CALENDAR:
        if start is not None:
            return _calendar(hours, start)
        hours = min(hours, months_touched(time_s, None) * HOURS_PER_MONTH)
    month_h = price.month_h if isinstance(price.month_h, Decimal) else HOURS_PER_MONTH
    return (Share(hours, month_h),)


def _calendar(hours: Decimal, start: datetime) -> tuple[Share, ...]:
    """Return the hours by calendar month in UTC; one share, maybe empty, if there are no hours."""
    at, left = start.astimezone(UTC), hours
    found: list[Share] = []
    while left > 0 or not found:
        first = at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        december = first.month == _DECEMBER
        then = first.replace(year=first.year + december, month=1 if december else first.month + 1)
        here = min(left, _hours(then - at))
        found.append(Share(here, _hours(then - first)))
        at, left = then, left - here
    return tuple(found)


def _hours(span: timedelta) -> Decimal:
    whole_s = Decimal(span.days * 86400 + span.seconds)
    return EXACT.divide(whole_s + Decimal(span.microseconds) / 10**6, SECONDS_PER_HOUR)


def by_hour(price: BillingRule, count: int, time_s: Decimal) -> Amount:
    """Bill `count` x hours x USD/h; begun hours, with a warning, where steps are not documented."""
    billed_s = stepped_s(time_s, _WHOLE_HOUR_S if price.step_s is None else price.step_s)
    hours = EXACT.divide(billed_s, SECONDS_PER_HOUR)
    unit_h = EXACT.multiply(hours, Decimal(count))
    words = _Words()
    formula = f"{words.put(hours)} h x {words.price(price.amount)} USD/h"
    formula = formula if count == 1 else f"{words.put(count)} x {formula}"
    warnings: tuple[str, ...] = ()
    if price.step_s is None and billed_s != time_s:
        warnings = ("how a part of an hour is rounded is not documented; it is rounded up",)
    return Amount(
        usd=EXACT.multiply(unit_h, price.amount),
        formula=formula,
        numbers=tuple(words.numbers),
        parts=(Priced(unit_h, "Hours", price.amount),),
        warnings=warnings,
    )


def by_month(price: BillingRule, count: int, time_s: Decimal, start: datetime | None) -> Amount:
    """Bill `count` x a fee per month: for the part of each month if prorated, else for all of it.

    A month never costs more than its fee. Whole months for want of a rule come with a warning.
    """
    words = _Words()
    fee = EXACT.multiply(price.amount, Decimal(count))
    text = f"{words.price(price.amount)} USD/month"
    text = text if count == 1 else f"{words.put(count)} x {text}"
    months = months_touched(time_s, start)
    if not price.prorated:
        usd = fee * months
        said = "whether a part of a month is prorated is not documented; whole months are billed"
        return Amount(
            usd=usd,
            formula=f"{text} x {words.put(months)} months" if months > 1 else text,
            numbers=tuple(words.numbers),
            parts=(Priced(Decimal(count * months), "Months", price.amount),),
            warnings=(said,) if fee else (),
        )
    held = shares(stepped_s(time_s, price.step_s), price, start)
    held = tuple(Share(min(hours, month_h * months), month_h) for hours, month_h in held)
    return Amount(
        usd=_of_months(fee, held),
        formula=f"{text} x {words.shares(held)}",
        numbers=tuple(words.numbers),
        parts=tuple(
            Priced(share.hours * count, "Months", price.amount, share.month_h) for share in held
        ),
    )


def by_size(
    terms: Sequence[BillingRule], quantity: Decimal, time_s: Decimal, start: datetime | None
) -> Amount:
    """Bill quantity x USD per unit and month x hours / hours of the month, over a price's tiers."""
    price, words = terms[0], _Words()
    held = shares(stepped_s(time_s, price.step_s), price, start)
    tiers = _in_tiers(terms, quantity)
    unit = price.per
    per_month = f"USD/{unit}-month"
    texts = [f"{words.put(size)} {unit} x {words.price(usd)} {per_month}" for size, usd in tiers]
    text = texts[0] if len(texts) == 1 else f"({' + '.join(texts)})"
    return Amount(
        usd=_of_size(tiers, held),
        formula=f"{text} x {words.shares(held)} per month",
        numbers=tuple(words.numbers),
        parts=tuple(
            Priced(EXACT.multiply(size, share.hours), f"{unit}-Months", usd, share.month_h)
            for size, usd in tiers
            for share in held
        ),
    )


def size_usd(
    terms: Sequence[BillingRule], quantity: Decimal, time_s: Decimal, start: datetime | None
) -> Decimal:
    """Return the dollars of `by_size`, without their formula."""
    held = shares(stepped_s(time_s, terms[0].step_s), terms[0], start)
    return _of_size(_in_tiers(terms, quantity), held)


def _in_tiers(terms: Sequence[BillingRule], quantity: Decimal) -> list[tuple[Decimal, Decimal]]:
    """Return how much of a quantity lies in each tier, and the tier's price."""
    return [
        (min(quantity, tier.tier_until) - tier.tier_from, tier.amount)
        for tier in terms
        if quantity > tier.tier_from or not tier.tier_from
    ]


def _of_size(tiers: Sequence[tuple[Decimal, Decimal]], held: Sequence[Share]) -> Decimal:
    return _of_months(_sum(EXACT.multiply(size, usd) for size, usd in tiers), held)


def _of_months(monthly: Decimal, held: Sequence[Share]) -> Decimal:
    """Divide last, so that whole cents stay whole."""
    return _sum(EXACT.divide(EXACT.multiply(monthly, hours), month_h) for hours, month_h in held)


def _sum(amounts: Iterable[Decimal]) -> Decimal:
    total = _ZERO
    for amount in amounts:
        total = EXACT.add(total, amount)
    return total


@lru_cache(maxsize=4096)
def words_of(price: BillingRule, words: str) -> str:
    """Return the rule in words: "snapshots at 0.05 USD/GB-month, of the calendar month"."""
    text = f"{words} at {price.price_words}"
    if price.step_s is not None:
        text += f", in steps of {plain(price.step_s)} s"
    if price.month_h == CALENDAR:
        return f"{text}, of the hours of the calendar month"
    return f"{text}, of a month of {price.month_h} h" if price.month_h else text
