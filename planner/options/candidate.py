"""An option in the making: an offer with actions, its hours, and its bill at each end of them.

The bill at each end also holds what a price may have moved by since it was read. The two are
independent, so they add in quadrature as shares of the expected bill.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from planner.baseline.bill_of_work import bill_of_work, seconds, usage_of_work, use_of_work
from planner.baseline.tenancy import Tenancy
from planner.baseline.workload import Workload
from planner.models.copies import Scaling
from planner.models.estimate import Estimate
from planner.models.interruption import Billed
from planner.options.spot import Interruptions
from pricing.billing.quote import Quote, Usage
from pricing.billing.sums import Part, Sums, in_sums, sums_of
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer
from pricing.catalog.price_age import UNMOVED, PriceRange
from pricing.lazily import lazy_property

_NOTHING = Decimal(0)
End = Literal["low", "mid", "high"]
_BY_TIME = (
    "compute",
    "boot",
    "lost-work",
    "checkpoint",
    "idle-tail",
)  # what the hourly price bills


@dataclass(frozen=True, slots=True, kw_only=True)
class UsdRange:
    """Dollars of the period, from the 5 % to the 95 % end."""

    low: Decimal
    high: Decimal


def _quadrature(one: Decimal, other: Decimal) -> Decimal:
    """Return the length of two independent parts; one alone is itself, to the last digit."""
    if not one or not other:
        return abs(one + other)
    return (one * one + other * other).sqrt()


def _of_kinds(kinds: Collection[str], parts: Iterable[Part]) -> Decimal:
    """Return what a bill's parts of some kinds come to."""
    amount = _NOTHING
    for what, usd in parts:
        if what in kinds:
            amount += usd
    return amount


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An option before ranking.

    Attributes:
        offer: what is rented.
        count: machines, of all replicas together.
        actions: codes of actions applied.
        speed: speed-up over today.
        work_hours: hours of useful work in the period.
        work: hours and data of the job today.
        interruptions: of spot capacity; None where there are none or the rate is unknown.
        catalog: for the day.
        dearest: the most that anybody asks for a part of a use; None where nobody's is known.
        moved: the factors between which the hourly price lies today, over what was read; none for
            the machine that is paid today, whose price is the same on both sides.
        tenancy: the job's part in the bill, on today's machine where others use it, too.
        unknown_today: parts of the bill whose price is unknown at this provider today as well.
        scaling: copies by the hour; None where as many run as today, all the time.
    """

    offer: Offer
    count: int
    actions: tuple[str, ...]
    speed: Estimate
    work_hours: Estimate
    work: Workload
    interruptions: Interruptions | None
    catalog: Catalog
    dearest: Callable[[str, Usage], Decimal | None]
    moved: PriceRange = UNMOVED
    tenancy: Tenancy | None = None
    unknown_today: tuple[str, ...] = ()
    scaling: Scaling | None = None

    @property
    def copies(self) -> int:
        """Copies of the job, at the peak."""
        return self.work.replicas if self.scaling is None else self.scaling.peak

    @lazy_property
    def hours(self) -> Estimate:
        """Machine hours of the period: useful work, and what interruptions add to it."""
        found = self.interruptions
        if found is None:
            return self.work_hours
        low, mid, high = (
            found.billed(getattr(self.work_hours, end), end).total_s / 3600.0
            for end in ("low", "mid", "high")
        )
        basis = f"{self.work_hours.basis}; {found.basis}"
        return Estimate(low=low, mid=mid, high=high, basis=basis, weak=self.work_hours.weak)

    @lazy_property
    def quote(self) -> Quote:
        """The bill at the expected hours."""
        return self._bill("mid")

    @lazy_property
    def missing(self) -> Decimal:
        """What parts of the bill without a known price cost at most, by the dearest known price.

        A part that is unknown where the job runs today as well is unknown on both sides.
        """
        amount = _NOTHING
        for what in self._sums.unknown:
            if what not in self.unknown_today:
                most = self.dearest(what, self._usage("mid")) or _NOTHING
                amount += max(_NOTHING, most - _of_kinds((what,), self._sums.parts))
        return amount

    @lazy_property
    def expected(self) -> Decimal:
        """The expected bill, exact; unknown parts are missing in it."""
        return self._sums.exact

    @property
    def at_least(self) -> bool:
        """Whether a part of the bill has no known price, so that it costs more."""
        return bool(self._sums.unknown)

    @lazy_property
    def comparable(self) -> Decimal:
        """The expected bill, complete: unknown parts at the dearest known price."""
        found = self._sums
        return found.exact + self.missing if found.unknown else found.exact

    def cost_at(self, end: End) -> Decimal:
        """Return the exact bill at one end of hours and price.

        Unknown parts are missing in it, but at the high end, where they have the dearest price.
        """
        expected, of_hours, of_price = self.expected, self.by_hours, self.by_price
        if end == "low":
            off = _quadrature(of_hours.low - expected, of_price.low - expected)
            return max(_NOTHING, expected - off)
        if end == "high":
            off = _quadrature(of_hours.high - expected, of_price.high - expected)
            return expected + off + self.missing
        return expected

    @property
    def compared(self) -> Decimal:
        """The bill by which options that pay are told apart: hours at their high end, complete.

        The price is as it was read: in the backtest on the price history (research/price_moves.md)
        no rule that asks for more caution chose prices that cost less later. A price of low trust
        must win at the high end of what it may have moved by.
        """
        if self.offer.confidence == "low":
            return self.cost_at("high")
        return self.by_hours.high + self.missing

    @lazy_property
    def by_hours(self) -> UsdRange:
        """What the bill may be for its hours alone, the price as it was read."""
        return UsdRange(low=self._sums_at("low").exact, high=self._sums_at("high").exact)

    @lazy_property
    def by_price(self) -> UsdRange:
        """What the bill may be for the age of its price alone, at the expected hours."""
        by_time, moved, expected = _of_kinds(_BY_TIME, self._sums.parts), self.moved, self.expected
        low, high = by_time * (moved.low - 1), by_time * (moved.high - 1)
        return UsdRange(low=expected + low, high=expected + high)

    @lazy_property
    def _sums(self) -> Sums:
        return self._sums_at("mid")

    def _sums_at(self, end: End) -> Sums:
        """Return what the bill comes to at one end of the hours."""
        if end != "mid" and self.interruptions is None and self._hours_at(end) == self._hours_at():
            return self._sums  # held time stays
        if self.tenancy is not None or self.interruptions is not None:
            return in_sums(self._bill(end))
        held = use_of_work(self.offer, self.count, self.work, self.catalog)
        return sums_of(self.offer, held, seconds(self._hours_at(end) * 3600.0))

    def _hours_at(self, end: End = "mid") -> float:
        hours: float = getattr(self.work_hours, end)
        return hours

    def _extra(self, end: End) -> Billed | None:
        found = self.interruptions
        return None if found is None else found.billed(self._hours_at(end), end)

    def _usage(self, end: End) -> Usage:
        hours = self._hours_at(end)
        extra = None if self.interruptions is None else self._extra(end)
        if self.tenancy is not None:
            hours = max(hours, self.tenancy.hours)
        return usage_of_work(self.offer, self.count, hours, self.work, self.catalog, extra)

    def _bill(self, end: End) -> Quote:
        return bill_of_work(
            self.offer,
            self.count,
            self._hours_at(end),
            self.work,
            self.catalog,
            self._extra(end),
            tenancy=self.tenancy,
        )
