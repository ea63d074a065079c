"""A candidate: an offer with actions, its hours, its interruptions, and its bill at each end.

What spot capacity adds to a job: lost work, restarts, checkpoints, and whether it ends in time.
How often machines are taken back comes from the user's availability trace, else from the provider's
published bucket; where neither is known, nothing is added and a warning says so. Wall time and
deadlines need a trace: without one, a job with a deadline is refused.

One job on N machines stops when any of them is taken: where they are taken independently of each
other, as a Poisson process of rate 1/M each, that is N times as often, every M/N. Machines of one
pool may also be taken together, which counts once; so the rare end keeps the rate of one machine.

An option in the making: an offer with actions, its hours, and its bill in every draw.
The draws also hold what a price may have moved by since it was read.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from statistics import fmean
from typing import Literal, get_args

from msgspec import Struct, structs

from planner.choice.baseline import bill_of_work, seconds
from planner.choice.offers import OnSale
from planner.choice.requirements import Reason, Requirements
from planner.choice.workload import Tenancy, Workload
from planner.models import interruption
from planner.models.copies import Scaling
from planner.models.costs import UsdRange
from planner.models.draws import DRAWS, Cause, Row, Source, ends, spread, times
from planner.models.estimate import Estimate
from pricing.billing.lines import QuoteLine
from pricing.billing.provider_rules import rules_of
from pricing.billing.quote import Quote, Usage
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer
from pricing.catalog.price_age import UNMOVED, PriceRange
from pricing.catalog.sizes import interruptions
from pricing.errors import InputError
from pricing.message import Message
from pricing.money import cents

MOST_LIKELY_TO_MISS = 0.05
# The open bucket (> 20 % a month) has no upper end; half of the machines is taken for it.
_OPEN_END = 0.5
# No machine of a closed lowest bucket (< 5 %) may be taken back; a tenth of its end is taken.
_NEVER = 0.1


def owed_line(usd: Decimal, day: date) -> QuoteLine:
    """Return what is owed for today's machines, whatever runs, as a line of a bill."""
    return QuoteLine(
        what="owed",
        usd=usd,
        formula="{0} USD",
        numbers=(usd,),
        rule=Message("note.owed-anyway"),
        source="hardware.owned, hardware.paid_until",
        as_of=day.isoformat(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruptions:
    """Mean time between interruptions of one copy of a job, in seconds: rare, expected, often.

    Attributes:
        rare_s: at the low end of what is known.
        mean_s: expected.
        often_s: at the high end.
        checkpoints: what one costs.
        interval_s: of work between checkpoints, as it is set on the machine.
        basis: where the rate comes from.
    """

    rare_s: float
    mean_s: float
    often_s: float
    checkpoints: interruption.CheckpointCosts
    interval_s: float
    basis: str

    def billed(self, work_h: float, end: str) -> interruption.Billed:
        """Return the billed time of so many hours of work at one end: low, mid or high cost."""
        mean_up_s = {"low": self.rare_s, "mid": self.mean_s, "high": self.often_s}[end]
        return interruption.expected_billed(
            work_h * 3600.0, mean_up_s, self.checkpoints, self.interval_s
        )


def rate(offer: Offer, needs: Requirements, gpus: int, machines: int = 1) -> Interruptions | None:
    """Return how often a job on a spot offer is interrupted; None where that is not known.

    Args:
        offer: spot capacity.
        needs: the trace of one machine (none: the provider's published bucket counts), and what a
            checkpoint costs.
        gpus: at work in one copy of the job, >= 1; they fail, too.
        machines: that one copy of the job stands on, >= 1; it stops when any of them is taken.
    """
    trace, checkpoints = needs.spot_trace, needs.checkpoints
    up_s = trace.mean_up_s if trace else None
    if offer.purchase != "spot" or (trace and up_s is None):
        return None
    if up_s is not None:
        # The rate of one half of a trace predicts billed hours of the other within 8 % (median).
        rare_s, mean_s, often_s = up_s * 2.0, up_s, up_s / 2.0
        basis = Message("hours.trace", hours=up_s / 3600.0)
    else:
        bucket = interruptions(offer.provider, offer.instance_type, offer.region)
        if bucket is None:
            return None
        high = bucket.high if bucket.high is not None else _OPEN_END
        low = bucket.low or high * _NEVER
        shares = (low, (bucket.low + high) / 2.0, high)
        rare_s, mean_s, often_s = map(interruption.mean_up_from_monthly_share, shares)
        source, day = bucket.source, str(bucket.as_of)
        basis = Message("hours.advisor", share=bucket.text, source=source, day=day)
    return Interruptions(
        rare_s=rare_s,
        mean_s=mean_s / machines,
        often_s=often_s / machines,
        checkpoints=checkpoints,
        interval_s=interruption.checkpoint_every_s(gpus, checkpoints, mean_s / machines),
        basis=Message("hours.any-of", basis=basis, n=machines) if machines > 1 else basis,
    )


def misses_deadline(work_h: float, needs: Requirements, gpus: int) -> tuple[Reason, str] | None:
    """Return why spot cannot keep a deadline; None where it can, or none is asked for."""
    trace, checkpoints, deadline_h = needs.spot_trace, needs.checkpoints, needs.deadline_h
    if deadline_h is None:
        return None
    if trace is None:
        return "deadline", Message("no.trace")
    up_s = trace.mean_up_s or len(trace.up) * trace.tick_s
    runs = interruption.replay_starts(
        trace,
        work_h * 3600.0,
        checkpoints,
        interval_s=interruption.checkpoint_every_s(gpus, checkpoints, up_s),
    )
    missed = interruption.miss_probability(runs, deadline_h * 3600.0)
    if missed <= MOST_LIKELY_TO_MISS:
        return None
    return "deadline", Message("no.deadline-on-spot", share=missed, hours=deadline_h)


def check_ends(interruptions: Interruptions, work_h: float) -> tuple[Reason, str] | None:
    """Return why the work never ends under these interruptions; None when it does."""
    try:
        interruptions.billed(work_h, "high")
    except InputError as error:
        return "purchase", error.problems[0]
    return None


_NOTHING = Decimal(0)
End = Literal["low", "mid", "high"]


class Candidate(Struct, frozen=True, kw_only=True, dict=True):
    """An option before ranking.

    Its bill is a row of draws (planner/models/draws.py): hours vary by `causes`, the hourly price
    by `moved`. Between the exact bills at the least, the expected and the most hours it is linear.

    Attributes:
        size: what is rented for one copy.
        count: machines, of all replicas together.
        actions: codes of actions applied.
        codes: of all that changes: those, what is tried first, whose work is that of the first
            step, and what the machine adds.
        effort_hours: of engineering, our estimate.
        speed: speed-up over today.
        hours_of_work: hours of useful work in the period, were all as it is today.
        idle_hours: for which the machines stay on before and after it.
        causes: what multiplies them, and how sure that is; interruptions are apart.
        untreated: the same without its actions, where none of them can hurt: no draw has more
            hours with them than without.
        basis: where the hours come from.
        work: hours and data of the job today.
        interruptions: of spot capacity; None where there are none or the rate is unknown.
        catalog: for the day.
        dearest: the most that anybody asks for a part of a use; None where nobody's is known.
        moved: the factors between which the hourly price lies today, over what was read; none for
            the machine that is paid today, whose price is the same on both sides.
        tenancy: the job's part in the bill, on today's machine where others use it, too.
        owed: for today's machines, whatever runs; on them it is part of the bill.
        stays: whether it is these machines.
        unknown_today: parts of the bill whose price is unknown at this provider today as well.
        scaling: copies by the hour; None where as many run as today, all the time.
    """

    size: OnSale
    count: int
    actions: tuple[str, ...]
    codes: tuple[str, ...]
    effort_hours: float
    speed: Estimate
    hours_of_work: float
    causes: tuple[Cause, ...]
    untreated: tuple[Cause, ...] = ()
    basis: str
    work: Workload
    interruptions: Interruptions | None
    catalog: Catalog
    dearest: Callable[[str, Usage], Decimal | None]
    moved: PriceRange = UNMOVED
    tenancy: Tenancy | None = None
    owed: Decimal = _NOTHING
    stays: bool = False
    unknown_today: tuple[str, ...] = ()
    scaling: Scaling | None = None
    idle_hours: float = 0.0

    @property
    def offer(self) -> Offer:
        """What is rented."""
        return self.size.offer

    @property
    def copies(self) -> int:
        """Copies of the job, at the peak."""
        return self.work.replicas if self.scaling is None else self.scaling.peak

    def work_hours(self, end: End = "mid") -> float:
        """Return the hours of useful work with every cause at one end."""
        hours = self.hours_of_work
        for cause in self.causes:
            hours *= getattr(cause, end)
        return hours

    def _machine_hours(self, end: End = "mid") -> float:
        extra = self._extra(end)
        hours = self.work_hours(end) if extra is None else extra.total_s / 3600.0
        return hours + self.idle_hours

    @cached_property
    def hours_mid(self) -> float:
        """Expected machine hours of the period: work, what interruptions add to it, idle hours."""
        return self._machine_hours()

    @cached_property
    def _causes(self) -> tuple[Cause, ...]:
        """All causes, interruptions among them."""
        if self.interruptions is None:
            return self.causes
        factors = [self.interruptions.billed(self.work_hours(), e).total_s for e in get_args(End)]
        low, mid, high = (total_s / 3600.0 / self.work_hours() for total_s in factors)
        return (*self.causes, Cause("use", f"interruptions/{self.offer.provider}", low, mid, high))

    @cached_property
    def _hours_row(self) -> Row:
        row = self._hours_of(cause.row for cause in self._causes)
        if not self.untreated:
            return row
        around = (cause for cause in self._causes if cause not in self.causes)
        without = self._hours_of(cause.row for cause in (*self.untreated, *around))
        return tuple(map(min, row, without))

    def _hours_of(self, factors: Iterable[Row]) -> Row:
        """Return the machine hours in each draw, of what multiplies those of work."""
        work = times((*factors, (self.hours_of_work,) * DRAWS))
        return tuple([hours + self.idle_hours for hours in work]) if self.idle_hours else work

    @cached_property
    def hours(self) -> Estimate:
        """Machine hours of the period."""
        low, high = ends(self._hours_row)
        mid, ends_ = self.hours_mid, self.interruptions
        basis = self.basis if ends_ is None else f"{self.basis}; {ends_.basis}"
        weak = self.speed.weak and any(cause.source == "speed" for cause in self.causes)
        return Estimate(low=min(low, mid), mid=mid, high=max(mid, high), basis=basis, weak=weak)

    @cached_property
    def quote(self) -> Quote:
        """The bill at the expected hours, with what is owed beside it."""
        bill, owed_usd = self._bill_mid, self._owed_beside
        if not owed_usd:
            return bill
        return structs.replace(bill, lines=(*bill.lines, owed_line(owed_usd, self.catalog.as_of)))

    @cached_property
    def _owed_beside(self) -> Decimal:
        """What is owed for today's machines and is not in the bill of these."""
        return max(_NOTHING, self.owed - self._bill_mid.by_time) if self.stays else self.owed

    @cached_property
    def missing(self) -> Decimal:
        """What parts of the bill without a known price cost at most, by the dearest known price.

        A part that is unknown where the job runs today as well is unknown on both sides.
        """
        amount = _NOTHING
        for what in self._bill_mid.unknown:
            if what not in self.unknown_today:
                dearest = self.dearest(what, self._bill_mid.usage) or _NOTHING
                priced = sum(line.usd for line in self._bill_mid.lines if line.what == what)
                amount += max(_NOTHING, dearest - priced)
        return amount

    @cached_property
    def expected(self) -> Decimal:
        """The expected bill, exact; unknown parts are missing in it."""
        return self._bill_mid.exact + self._owed_beside

    @property
    def lowest_usd(self) -> Decimal:
        """Dollars that the bill is never below: its machines, for the hours of work."""
        offer, shared = self.offer, self.tenancy
        if rules_of(offer.provider, self.catalog.as_of, offer.instance_type).gpu_monthly_cap_h:
            return _NOTHING
        time_s = seconds((self.work_hours() + self.idle_hours) * 3600.0)
        usd = time_s * self.count * offer.usd_per_hour / 3600
        return usd if shared is None else usd * shared.held / shared.of

    @property
    def at_least(self) -> bool:
        """Whether a part of the bill has no known price, so that it costs more."""
        return self._bill_mid.at_least

    @cached_property
    def comparable(self) -> Decimal:
        """The expected bill, complete: unknown parts at the dearest known price."""
        return self.expected + self.missing if self.at_least else self.expected

    @cached_property
    def _bills(self) -> tuple[tuple[float, float], ...]:
        """Hours and bill with every cause at its low end, as expected, and at its high end."""
        hours: dict[float, End] = {self._machine_hours(end): end for end in ("low", "high", "mid")}
        bills = {h: self._bill_mid if e == "mid" else self._bill(e) for h, e in hours.items()}
        return tuple(sorted((h, float(bill.exact)) for h, bill in bills.items()))

    def _usd(self, hours: Row) -> list[float]:
        """Return the bill in each draw of the hours, at the price as it was read."""
        bills = self._bills
        if len(bills) == 1:
            return [bills[0][1]] * DRAWS
        pairs, expected_h = pairwise(bills), self.hours_mid
        pieces = [(h0, usd0, (usd1 - usd0) / (h1 - h0)) for (h0, usd0), (h1, usd1) in pairs]
        (h0, usd0, slope0), (h1, usd1, slope1) = pieces[0], pieces[-1]
        return [
            usd0 + (h - h0) * slope0 if h < expected_h else usd1 + (h - h1) * slope1 for h in hours
        ]

    @cached_property
    def usd_row(self) -> Row:
        """The bill in each draw of hours and price; unknown parts are missing in it."""
        by_hours, by_time = self._usd(self._hours_row), self._by_time
        axis = f"price/{self.offer.provider}/{self.offer.purchase}"
        low, high, moved = map(float, (self.moved.low, self.moved.high, self.moved.moved))
        price = spread(axis, low, 1.0, high, moved)
        fixed = float(self._bill_mid.exact) - by_time
        read = zip(by_hours, price, strict=True)
        return self._with_owed([fixed + (usd - fixed) * factor for usd, factor in read])

    @cached_property
    def complete_row(self) -> Row:
        """The bill in each draw, unknown parts at the dearest known price."""
        missing = float(self.missing)
        return tuple([usd + missing for usd in self.usd_row])

    def _with_owed(self, bills: list[float]) -> Row:
        """Return bills with what is owed for today's machines: theirs is never less."""
        if not self.stays:
            owed = float(self.owed)
            return tuple([usd + owed for usd in bills] if owed else bills)
        floor = float(self._bill_mid.exact) - self._by_time + float(self.owed)
        return tuple([max(usd, floor) for usd in bills])

    @cached_property
    def _by_time(self) -> float:
        return float(self._bill_mid.by_time)

    @cached_property
    def usd_range(self) -> UsdRange:
        """The bill from its low end to its high end, where unknown parts have the dearest price."""
        span = self._range(self.usd_row)
        return UsdRange(low=span.low, high=span.high + self.missing)

    @cached_property
    def compared(self) -> Decimal:
        """The bill by which options are told apart: the mean over all draws of hours, complete.

        No less than its middle; a wide range does not win by that alone. A cure counts as expected:
        what it gains is seen before more is paid. The price is as it was read: in the backtest on
        the price history (research/price_moves.md) no rule that asks for more caution chose prices
        that cost less later. A price of low trust must win at the high end of what it may have
        moved by.
        """
        if self.offer.confidence == "low":
            return self.usd_range.high
        mean = fmean(self._usd_by("speed", "use"))
        return max(self.comparable, Decimal(repr(mean)) + self.missing)

    @property
    def by_hours(self) -> UsdRange:
        """What the bill may be for its hours alone, the price as it was read."""
        return self._range(self._with_owed(self._usd(self._hours_row)))

    @property
    def by_price(self) -> UsdRange:
        """What the bill may be for the age of its price alone, at the expected hours."""
        by_time = self._bill_mid.by_time
        low, high = by_time * (self.moved.low - 1), by_time * (self.moved.high - 1)
        return UsdRange(low=self.expected + low, high=self.expected + high)

    def by_source(self, source: Source) -> UsdRange:
        """Return what the bill may be for one source of doubt about its hours alone."""
        return self._range(self._usd_by(source))

    def _usd_by(self, *sources: Source) -> Row:
        """Return the bill in each draw of some sources, the others as expected; price as read."""
        rows = (c.row if c.source in sources else (c.mid,) * DRAWS for c in self._causes)
        return self._with_owed(self._usd(self._hours_of(rows)))

    def _range(self, row: Sequence[float]) -> UsdRange:
        low, high = (cents(Decimal(repr(end))) for end in ends(row))
        return UsdRange(low=max(_NOTHING, min(low, self.expected)), high=max(high, self.expected))

    @cached_property
    def _bill_mid(self) -> Quote:
        return self._bill("mid")

    def _extra(self, end: End) -> interruption.Billed | None:
        interruptions = self.interruptions
        return None if interruptions is None else interruptions.billed(self.work_hours(end), end)

    def _bill(self, end: End) -> Quote:
        return bill_of_work(
            self.offer,
            self.count,
            self.work_hours(end) + self.idle_hours,
            self.work,
            self.catalog,
            self._extra(end),
            tenancy=self.tenancy,
        )
