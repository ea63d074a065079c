"""One line of a bill, and what a part of the bill hands back."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from msgspec import Struct

from pricing.billing.provider_rules import CALENDAR, BillingRule
from pricing.message import Message
from pricing.money import EXACT, HOURS_PER_MONTH, plain, price_text, quantity_text, sum_exactly

KINDS = (
    "compute",
    "boot",
    "boot-disk",
    "disk",
    "snapshot",
    "object-storage",
    "egress",
    "address",
    "control-plane",
    "lost-work",
    "checkpoint",
    "idle-tail",
    "owed",
    "move",
)
"""What a line can be for, in the order of a bill."""
BY_TIME = ("compute", "boot", "lost-work", "checkpoint", "idle-tail")
"""Those that the hourly price of a machine makes."""

_ONE = Decimal(1)
_TRILLIONTH = Decimal("1e-12")


class Priced(NamedTuple):
    """A quantity at one unit price, as a price list or an invoice states it.

    Attributes:
        counted: how much, >= 0, as it was counted: seconds, GB-hours.
        unit: what the price is for: "Hours", "GB", "GiB-Months" (FOCUS unit format).
        unit_usd: list price of one unit.
        per: what was counted for each unit: 3600 seconds an hour.
    """

    counted: Decimal
    unit: str
    unit_usd: Decimal
    per: Decimal = _ONE

    @property
    def quantity(self) -> Decimal:
        """In units, to 12 decimals: worked out when it is asked for, as few lines are exported."""
        return EXACT.divide(self.counted, self.per).quantize(_TRILLIONTH, context=EXACT)


class QuoteLine(Struct, frozen=True, kw_only=True):
    """One amount on the bill.

    Attributes:
        what: one of KINDS.
        usd: exact, not rounded.
        formula: how it is computed, with a place for each number; `{0:usd}` is a price.
        numbers: what goes there.
        rule: the billing rule in words.
        source: where the price was read.
        as_of: date of the price as the source prints it.
        parts: the same amount as quantities at unit prices; empty where it is not such a product (a
            least charge, a difference of two charges).
    """

    what: str
    usd: Decimal
    formula: str
    numbers: tuple[Decimal | int | str, ...]
    rule: str
    source: str
    as_of: str
    parts: tuple[Priced, ...] = ()

    @property
    def how(self) -> str:
        """The formula with its numbers: "90 s x 35.28 USD/h / 3600"."""
        return _with_figures(self.formula, tuple(map(_Figure, self.numbers)))


def _with_figures(formula: str, figures: Sequence[object]) -> str:
    """Return a formula, and the words in it, with numbers in their places."""
    if not isinstance(formula, Message):
        return formula.format(*figures)
    params = formula.params.items()
    texts = {k: v if isinstance(v, Message) else str(v) for k, v in params}
    return Message(formula.code, **{k: _with_figures(v, figures) for k, v in texts.items()})


class _Figure:
    """A number of a formula as people write it: a price with its cents, a quantity rounded."""

    __slots__ = ("value",)

    def __init__(self, value: Decimal | int | str) -> None:
        self.value = value

    def __format__(self, spec: str) -> str:
        value = self.value
        if isinstance(value, str):
            return value
        amount = value if isinstance(value, Decimal) else Decimal(value)
        return price_text(amount) if spec == "usd" else quantity_text(amount)


@lru_cache(maxsize=4096)
def about(category: str, text: str, provider: str = "") -> Message:
    """Return what is said of a line of a bill, and of the provider where it is given."""
    line = Message(f"line.{category}")
    if provider:
        return Message("bill.about-provider", line=line, provider=provider, text=text)
    return Message("bill.about", line=line, text=text)


class Charge(NamedTuple):
    """Lines of one kind of cost, and what must be said beside them."""

    lines: tuple[QuoteLine, ...]
    warnings: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    """Kinds of line of which some was asked for and has no known price."""


NOTHING = Charge((), ())


def together(charges: Iterable[Charge]) -> Charge:
    """Return several charges as one."""
    parts = tuple(charges)
    if len(parts) == 1:
        return parts[0]
    lines: list[QuoteLine] = []
    warnings: list[str] = []
    unpriced: list[str] = []
    for charge in parts:
        lines += charge.lines
        warnings += charge.warnings
        unpriced += charge.unknown
    return Charge(tuple(lines), tuple(warnings), tuple(dict.fromkeys(unpriced)))


SECONDS_PER_HOUR = Decimal(3600)
LONGEST_MONTH_H = Decimal(744)
"""Where no start is known, a use is taken to touch as few months as it can, of 31 days each."""

_ZERO = Decimal(0)
_add, _multiply, _divide = EXACT.add, EXACT.multiply, EXACT.divide
_ROUNDED_UP = Message("bill.hour-rounded-up")
_WHOLE_MONTHS = Message("bill.whole-months")
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

    def line(self, category: str, price: BillingRule, rule_text: str) -> QuoteLine:
        """Return the line of a bill; its rule says the words, its source is the price's."""
        return QuoteLine(
            what=category,
            usd=self.usd,
            formula=self.formula,
            numbers=self.numbers,
            rule=rule_text,
            source=price.source,
            as_of=price.as_of,
            parts=self.parts,
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
    steps, remainder = divmod(time_s, step_s)
    return (steps + 1) * step_s if remainder else time_s


def months_touched(time_s: Decimal, start: datetime | None) -> int:
    """Return the months a time lies in: calendar months if its start is known, else the fewest."""
    if start is None:
        months, remainder = divmod(time_s, _LONGEST_MONTH_S)
        return max(1, int(months) + bool(remainder))
    return len(_calendar(EXACT.divide(time_s, SECONDS_PER_HOUR), start))


def month_parts(time_s: Decimal, start: datetime | None) -> tuple[MonthPart, ...]:
    """Return how a time lies in the months of an account.

    Where no start is known only whole months of 730 hours count, and one at least: an allowance
    per month is not given twice for an hour more.
    """
    hours = EXACT.divide(time_s, SECONDS_PER_HOUR)
    if start is not None:
        month_hours = [hours_here for hours_here, _ in _calendar(hours, start)]
    else:
        months = max(1, int(hours // HOURS_PER_MONTH))
        month_hours = [EXACT.divide(hours, Decimal(months))] * months
    if len(month_hours) == 1:
        return (MonthPart(_ONE, hours),)
    return tuple(
        MonthPart(EXACT.divide(hours_here, hours), hours_here) for hours_here in month_hours
    )


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
    at, remaining = start.astimezone(UTC), hours
    months: list[Share] = []
    while remaining > 0 or not months:
        first = at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        december = first.month == _DECEMBER
        then = first.replace(year=first.year + december, month=1 if december else first.month + 1)
        hours_here = min(remaining, _hours(then - at))
        months.append((hours_here, _hours(then - first)))
        at, remaining = then, remaining - hours_here
    return tuple(months)


def _hours(span: timedelta) -> Decimal:
    whole_s = Decimal(span.days * 86400 + span.seconds)
    return EXACT.divide(whole_s + Decimal(span.microseconds) / 10**6, SECONDS_PER_HOUR)


class ByHour(NamedTuple):
    """`units` x hours x USD/h; begun hours, with a warning, where steps are not documented."""

    price: BillingRule
    units: int

    def amount(self, time_s: Decimal, start: datetime | None) -> Amount:  # noqa: ARG002 - of a Tariff
        """Return the dollars, exact, with their formula."""
        price, units, hours = self.price, self.units, _begun_h(time_s, self.price)
        unit_usd, unit_h, is_single = price.amount, self._unit_h(hours), units == 1
        rounded = price.step_s is None and stepped_s(time_s, SECONDS_PER_HOUR) != time_s
        return Amount(
            _multiply(unit_h, unit_usd),
            "{0} h x {1:usd} USD/h" if is_single else "{2} x {0} h x {1:usd} USD/h",
            (hours, unit_usd) if is_single else (hours, unit_usd, units),
            (Priced(unit_h, "Hours", unit_usd),),
            (_ROUNDED_UP,) if rounded else (),
        )

    def _unit_h(self, hours: Decimal) -> Decimal:
        return hours if self.units == 1 else _multiply(hours, Decimal(self.units))


def _begun_h(time_s: Decimal, price: BillingRule) -> Decimal:
    step_s = price.step_s
    billed_s = stepped_s(time_s, SECONDS_PER_HOUR if step_s is None else step_s)
    return _divide(billed_s, SECONDS_PER_HOUR)


class _ByMonth(NamedTuple):
    """`units` x a fee per month: for the part of each month if prorated, else for all of it.

    A month never costs more than its fee. Whole months for want of a rule come with a warning.
    """

    price: BillingRule
    units: int
    fees: Decimal

    def amount(self, time_s: Decimal, start: datetime | None) -> Amount:
        """Return the dollars, exact, with their formula."""
        price, units = self.price, self.units
        is_single, fee = units == 1, "{0:usd} USD/month"
        text = fee if is_single else f"{{1}} x {fee}"
        numbers = (price.amount,) if is_single else (price.amount, units)
        if not price.prorated:
            months = months_touched(time_s, start)
            return Amount(
                usd=self.fees * months,
                formula=_months(text, len(numbers)) if months > 1 else text,
                numbers=(*numbers, months) if months > 1 else numbers,
                parts=(Priced(Decimal(units * months), "Months", price.amount),),
                warnings=(_WHOLE_MONTHS,) if self.fees else (),
            )
        month_shares = self._month_shares(time_s, start)
        return Amount(
            usd=_of_months(self.fees, month_shares),
            formula=f"{text} x {_in_months(len(numbers), len(month_shares))}",
            numbers=(*numbers, *chain.from_iterable(month_shares)),
            parts=tuple([Priced(h * units, "Months", price.amount, of) for h, of in month_shares]),
        )

    def _month_shares(self, time_s: Decimal, start: datetime | None) -> Sequence[Share]:
        months = months_touched(time_s, start)
        month_shares = shares(time_s, self.price, start)
        return [(min(hours, month_h * months), month_h) for hours, month_h in month_shares]


def _months(fee: str, slot: int) -> Message:
    return Message("bill.months", fee=fee, n=f"{{{slot}}}")


def by_month(price: BillingRule, units: int) -> _ByMonth:
    """Return the rate of so many fees per month."""
    return _ByMonth(price, units, _multiply(price.amount, Decimal(units)))


class _BySize(NamedTuple):
    """Quantity x USD per unit and month x hours / hours of the month, over a price's tiers.

    Attributes:
        price: of the first tier.
        tiers: how much of the quantity lies in each, and its price.
        monthly_usd: of a whole month.
    """

    price: BillingRule
    tiers: Sequence[tuple[Decimal, Decimal]]
    monthly_usd: Decimal

    def amount(self, time_s: Decimal, start: datetime | None) -> Amount:
        """Return the dollars, exact, with their formula."""
        month_shares, unit = shares(time_s, self.price, start), self.price.per
        numbers: list[Decimal] = []
        parts: list[Priced] = []
        for size, usd in self.tiers:
            numbers += (size, usd)
            for hours, month_h in month_shares:
                parts.append(Priced(_multiply(size, hours), f"{unit}-Months", usd, month_h))
        for share in month_shares:
            numbers += share
        formula = _of_tiers(len(self.tiers), unit, len(month_shares))
        return Amount(
            _of_months(self.monthly_usd, month_shares), formula, tuple(numbers), tuple(parts)
        )


Tariff = ByHour | _ByMonth | _BySize
"""What something costs by its time: its price, whose source stands on the bill, and its dollars
with their formula. A start, where it is known, tells the months."""


def by_size(terms: Sequence[BillingRule], quantity: Decimal) -> _BySize:
    """Return the rate of a quantity at a price, given as its tiers in order."""
    tiers, monthly = [], _ZERO
    for tier in terms:
        if quantity > tier.tier_from or not tier.tier_from:
            size, usd = min(quantity, tier.tier_until) - tier.tier_from, tier.amount
            monthly = _add(monthly, _multiply(size, usd))
            tiers.append((size, usd))
    return _BySize(terms[0], tiers, monthly)


def _of_months(monthly: Decimal, month_shares: Iterable[Share]) -> Decimal:
    """Divide last, so that whole cents stay whole."""
    return sum_exactly(
        _divide(_multiply(monthly, hours), month_h) for hours, month_h in month_shares
    )


@lru_cache(maxsize=256)
def _of_tiers(tiers: int, unit: str, months: int) -> str:
    """Return the formula of a size in so many tiers, kept in so many months."""
    places = range(0, 2 * tiers, 2)
    texts = [f"{{{at}}} {unit} x {{{at + 1}:usd}} USD/{unit}-month" for at in places]
    text = texts[0] if len(texts) == 1 else f"({' + '.join(texts)})"
    return Message("bill.part-of-month", size=text, time=_in_months(2 * tiers, months))


@lru_cache(maxsize=256)
def _in_months(first: int, months: int) -> str:
    """Return the parts of months as text; their numbers begin with that of the place `first`."""
    places = range(first, first + 2 * months, 2)
    parts = [f"{{{at}}} h / {{{at + 1}}} h" for at in places]
    return parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"


@lru_cache(maxsize=4096)
def words_of(price: BillingRule, label: str) -> str:
    """Return the rule in words: "snapshots at 0.05 USD/GB-month, of the calendar month"."""
    text: str = Message("bill.at", what=label, price=price.price_words)
    if price.step_s is not None:
        text = Message("bill.in-steps", price=text, s=plain(price.step_s))
    if price.month_h == CALENDAR:
        return Message("bill.of-calendar-month", price=text)
    return Message("bill.of-month", price=text, h=price.month_h) if price.month_h else text
