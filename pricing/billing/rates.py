"""What something costs by its time: by the hour, by the month, by size and month.

A rate is looked up once, for whatever time: dollars alone where many are compared, with their
formula where a bill is written. Both are worked out here, by one law each.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple, Protocol

from pricing.billing.amount import (
    SECONDS_PER_HOUR,
    Amount,
    Share,
    months_touched,
    shares,
    stepped_s,
)
from pricing.billing.billing_rule import BillingRule
from pricing.billing.lines import Priced
from pricing.money import EXACT

_ZERO = Decimal(0)
_add, _multiply, _divide = EXACT.add, EXACT.multiply, EXACT.divide
_WHOLE_HOUR_S = SECONDS_PER_HOUR
_ROUNDED_UP = "how a part of an hour is rounded is not documented; it is rounded up"
_WHOLE_MONTHS = "whether a part of a month is prorated is not documented; whole months are billed"


class Rate(Protocol):
    """What something costs by its time. A start, where it is known, tells the months."""

    @property
    def price(self) -> BillingRule:
        """The price whose source stands on the bill."""

    def usd(self, time_s: Decimal, start: datetime | None) -> Decimal:
        """Return the dollars, exact."""

    def amount(self, time_s: Decimal, start: datetime | None) -> Amount:
        """Return the same dollars with their formula."""


class ByHour(NamedTuple):
    """`units` x hours x USD/h; begun hours, with a warning, where steps are not documented."""

    price: BillingRule
    units: int

    def usd(self, time_s: Decimal, start: datetime | None) -> Decimal:  # noqa: ARG002 - of a Rate
        """Return the dollars, exact."""
        return _multiply(self._unit_h(_hours(time_s, self.price)), self.price.amount)

    def amount(self, time_s: Decimal, start: datetime | None) -> Amount:  # noqa: ARG002 - of a Rate
        """Return the same dollars with their formula."""
        price, units, hours = self.price, self.units, _hours(time_s, self.price)
        each, unit_h, one = price.amount, self._unit_h(hours), units == 1
        rounded = price.step_s is None and stepped_s(time_s, _WHOLE_HOUR_S) != time_s
        return Amount(
            _multiply(unit_h, each),
            "{0} h x {1:usd} USD/h" if one else "{2} x {0} h x {1:usd} USD/h",
            (hours, each) if one else (hours, each, units),
            (Priced(unit_h, "Hours", each),),
            (_ROUNDED_UP,) if rounded else (),
        )

    def _unit_h(self, hours: Decimal) -> Decimal:
        return hours if self.units == 1 else _multiply(hours, Decimal(self.units))


def _hours(time_s: Decimal, price: BillingRule) -> Decimal:
    step_s = price.step_s
    billed_s = stepped_s(time_s, _WHOLE_HOUR_S if step_s is None else step_s)
    return _divide(billed_s, SECONDS_PER_HOUR)


class ByMonth(NamedTuple):
    """`units` x a fee per month: for the part of each month if prorated, else for all of it.

    A month never costs more than its fee. Whole months for want of a rule come with a warning.
    """

    price: BillingRule
    units: int
    fees: Decimal

    def usd(self, time_s: Decimal, start: datetime | None) -> Decimal:
        """Return the dollars, exact."""
        if not self.price.prorated:
            return self.fees * months_touched(time_s, start)
        return _of_months(self.fees, self._held(time_s, start))

    def amount(self, time_s: Decimal, start: datetime | None) -> Amount:
        """Return the same dollars with their formula."""
        price, units, usd = self.price, self.units, self.usd(time_s, start)
        one, fee = units == 1, "{0:usd} USD/month"
        text = fee if one else f"{{1}} x {fee}"
        numbers = (price.amount,) if one else (price.amount, units)
        if not price.prorated:
            months = months_touched(time_s, start)
            return Amount(
                usd=usd,
                formula=f"{text} x {{{len(numbers)}}} months" if months > 1 else text,
                numbers=(*numbers, months) if months > 1 else numbers,
                parts=(Priced(Decimal(units * months), "Months", price.amount),),
                warnings=(_WHOLE_MONTHS,) if self.fees else (),
            )
        held = self._held(time_s, start)
        return Amount(
            usd=usd,
            formula=f"{text} x {_in_months(len(numbers), len(held))}",
            numbers=(*numbers, *_numbers(held)),
            parts=tuple([Priced(h * units, "Months", price.amount, of) for h, of in held]),
        )

    def _held(self, time_s: Decimal, start: datetime | None) -> Sequence[Share]:
        months = months_touched(time_s, start)
        held = shares(time_s, self.price, start)
        return [(min(hours, month_h * months), month_h) for hours, month_h in held]


def by_month(price: BillingRule, units: int) -> ByMonth:
    """Return the rate of so many fees per month."""
    return ByMonth(price, units, _multiply(price.amount, Decimal(units)))


class BySize(NamedTuple):
    """Quantity x USD per unit and month x hours / hours of the month, over a price's tiers.

    Attributes:
        price: of the first tier.
        tiers: how much of the quantity lies in each, and its price.
        monthly_usd: of a whole month.
    """

    price: BillingRule
    tiers: Sequence[tuple[Decimal, Decimal]]
    monthly_usd: Decimal

    def usd(self, time_s: Decimal, start: datetime | None) -> Decimal:
        """Return the dollars, exact."""
        return _of_months(self.monthly_usd, shares(time_s, self.price, start))

    def amount(self, time_s: Decimal, start: datetime | None) -> Amount:
        """Return the same dollars with their formula."""
        held, unit = shares(time_s, self.price, start), self.price.per
        numbers: list[Decimal] = []
        parts: list[Priced] = []
        for size, usd in self.tiers:
            numbers += (size, usd)
            for hours, month_h in held:
                parts.append(Priced(_multiply(size, hours), f"{unit}-Months", usd, month_h))
        for share in held:
            numbers += share
        formula = _of_tiers(len(self.tiers), unit, len(held))
        return Amount(_of_months(self.monthly_usd, held), formula, tuple(numbers), tuple(parts))


def by_size(terms: Sequence[BillingRule], quantity: Decimal) -> BySize:
    """Return the rate of a quantity at a price, given as its tiers in order."""
    tiers, monthly = [], _ZERO
    for tier in terms:
        if quantity > tier.tier_from or not tier.tier_from:
            size, usd = min(quantity, tier.tier_until) - tier.tier_from, tier.amount
            monthly = _add(monthly, _multiply(size, usd))
            tiers.append((size, usd))
    return BySize(terms[0], tiers, monthly)


def _of_months(monthly: Decimal, held: Iterable[Share]) -> Decimal:
    """Divide last, so that whole cents stay whole."""
    total = _ZERO
    for hours, month_h in held:
        total = _add(total, _divide(_multiply(monthly, hours), month_h))
    return total


def _numbers(held: Sequence[Share]) -> list[Decimal]:
    return [number for share in held for number in share]


@lru_cache(maxsize=256)
def _of_tiers(tiers: int, unit: str, months: int) -> str:
    """Return the formula of a size in so many tiers, kept in so many months."""
    places = range(0, 2 * tiers, 2)
    texts = [f"{{{at}}} {unit} x {{{at + 1}:usd}} USD/{unit}-month" for at in places]
    text = texts[0] if len(texts) == 1 else f"({' + '.join(texts)})"
    return f"{text} x {_in_months(2 * tiers, months)} per month"


@lru_cache(maxsize=256)
def _in_months(first: int, months: int) -> str:
    """Return the parts of months as text; their numbers begin with that of the place `first`."""
    places = range(first, first + 2 * months, 2)
    parts = [f"{{{at}}} h / {{{at + 1}}} h" for at in places]
    return parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"
