"""When a commitment pays: the use from which a term is cheaper than paying by the hour."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any

from msgspec import Struct

from pricing.catalog.offer import EVERYWHERE, TERMS_H, Offer
from pricing.catalog.price_age import moved_in, sellers_of
from pricing.errors import InputError
from pricing.money import EXACT, HOURS_PER_MONTH, Amount, quantity_text, show, without_zeros

_OUTLOOK_D = 180


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """A reserved offer beside what the same GPUs cost by the hour.

    Attributes:
        reserved: the reserved offer.
        on_demand: the cheapest on-demand offer of the provider with the same GPU; None where it
            has none.
        term_h: hours that are paid for.
        term_usd: for one machine over the whole term.
    """

    reserved: Offer
    on_demand: Offer | None
    term_h: Decimal
    term_usd: Decimal

    @property
    def break_even_fraction(self) -> Decimal | None:
        """Share of the term's hours from which the commitment is the cheaper one.

        Reserved over on-demand price of a GPU-hour: the term is paid for every hour, on demand
        only for those used. Above 1 it never pays; None where there is nothing to compare.
        """
        if self.on_demand is None:
            return None
        return EXACT.divide(self.reserved.usd_per_gpu_hour, self.on_demand.usd_per_gpu_hour)

    @property
    def break_even_h(self) -> Decimal | None:
        """Hours of a month from which the commitment is the cheaper one; None as above."""
        fraction = self.break_even_fraction
        return None if fraction is None else EXACT.multiply(fraction, HOURS_PER_MONTH)


def commit(reserved: Offer, offers: Iterable[Offer]) -> Commitment:
    """Return the commitment of a reserved offer, compared with the offers of the same day.

    Machines of the same number of GPUs are compared where there are any, else the cheapest
    GPU-hour.

    Raises:
        InputError: the offer is not a commitment.
    """
    term_h = TERMS_H.get(reserved.purchase)
    if term_h is None:
        raise InputError(
            f"{reserved.place} is bought as {reserved.purchase}, which is not a commitment; "
            f"commitments are {', '.join(TERMS_H)}"
        )
    same = [
        offer
        for offer in offers
        if (offer.provider, offer.gpu, offer.purchase)
        == (reserved.provider, reserved.gpu, "on_demand")
        and not offer.is_community
        and (offer.region == reserved.region or EVERYWHERE in (offer.region, reserved.region))
    ]
    comparable = [offer for offer in same if offer.gpu_count == reserved.gpu_count] or same
    return Commitment(
        reserved=reserved,
        on_demand=min(comparable, key=lambda o: (o.usd_per_gpu_hour, o.place), default=None),
        term_h=term_h,
        term_usd=EXACT.multiply(reserved.usd_per_hour, term_h),
    )


def commitment_note(commitment: Commitment) -> str:
    """Return what a reader must know before committing, in one sentence."""
    note = (
        f"{commitment.reserved.place}: a commitment of {quantity_text(commitment.term_h)} h is "
        f"owed whole: {show(commitment.term_usd)} USD a machine"
    )
    fraction, alternative = commitment.break_even_fraction, commitment.on_demand
    if fraction is None or alternative is None:
        return f"{note}; no on-demand price of the same GPU is known to compare it with"
    if fraction > 1:
        return f"{note}; it never pays: {alternative.place} on demand is cheaper"
    hours = commitment.break_even_h or _ZERO
    moves = moved_in(sellers_of(alternative.provider, "on_demand"), _OUTLOOK_D)
    ends = ", ".join(f"{100 * (end - 1):+.0f} %" for end in (moves.low, moves.high))
    return (
        f"{note}; it pays from {100 * fraction:.1f} % of the hours on ({hours:.0f} h a month), "
        f"against {alternative.place} on demand; nine in ten prices on demand of such sellers "
        f"moved by {ends} at most in {_OUTLOOK_D} days"
    )


HOURS_PER_YEAR = Decimal(8760)
SPREAD_FRACTION = Decimal("0.2")
"""An input without bounds of its own is varied by a fifth: our assumption, said in the output."""

_ZERO, _ONE = Decimal(0), Decimal(1)
_AT_LEAST = {"pue": _ONE, "years": Decimal("0.5"), "gpus": _ONE}
_ABOVE_ZERO = frozenset({"capex_usd", "power_kw"})
_AT_MOST = {"interest_fraction": _ONE, "maintenance_fraction": _ONE, "years": Decimal(30)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """A machine of one's own, by its owner's figures.

    Attributes:
        name: what it is called.
        gpu: canonical GPU name.
        gpus: GPUs in it.
        capex_usd: price of machine, network and installation.
        years: it is used for, 0.5 to 30.
        interest_fraction: of capital, a year.
        residual_usd: what it is sold for in the end.
        maintenance_fraction: of capex, a year.
        power_kw: mean draw of the machine over a year.
        pue: power of the site over power of the machine, >= 1.
        usd_per_kwh: electricity.
        hosting_usd_per_year: space, rack, network.
        staff_usd_per_year: people's time.

    Raises:
        InputError: every figure out of its range.
    """

    name: str
    gpu: str
    gpus: Decimal
    capex_usd: Decimal
    years: Decimal
    power_kw: Decimal
    usd_per_kwh: Decimal
    interest_fraction: Decimal = _ZERO
    residual_usd: Decimal = _ZERO
    maintenance_fraction: Decimal = _ZERO
    pue: Decimal = _ONE
    hosting_usd_per_year: Decimal = _ZERO
    staff_usd_per_year: Decimal = _ZERO

    def __post_init__(self) -> None:
        problems = [problem for name in FIGURES if (problem := self._problem(name))]
        if not problems and self.residual_usd > self.capex_usd:
            problems = [
                f"residual_usd is {self.residual_usd}, more than capex_usd {self.capex_usd}"
            ]
        if problems:
            raise InputError(f"own hardware: {problem}" for problem in problems)

    def _problem(self, name: str) -> str:
        value = getattr(self, name)
        minimum, maximum = _AT_LEAST.get(name, _ZERO), _AT_MOST.get(name)
        if not value.is_finite() or value < minimum or (name in _ABOVE_ZERO and not value):
            above = "above 0" if name in _ABOVE_ZERO else f"at least {minimum}"
            return f"{name} is {value}; it must be {above}"
        if maximum is not None and value > maximum:
            return f"{name} is {value}; it must be at most {maximum}"
        return ""

    @property
    def annuity_factor(self) -> Decimal:
        """Capital recovery factor: the yearly payment for each dollar, over all years."""
        if not self.interest_fraction:
            return EXACT.divide(_ONE, self.years)
        growth = EXACT.power(_ONE + self.interest_fraction, -self.years)
        return EXACT.divide(self.interest_fraction, _ONE - growth)

    @property
    def costs(self) -> tuple["Cost", ...]:
        """Dollars a year by what they are for; they add up to `annual_usd`."""
        sold = EXACT.multiply(
            self.residual_usd, EXACT.power(_ONE + self.interest_fraction, -self.years)
        )
        capital = EXACT.multiply(self.capex_usd - sold, self.annuity_factor)
        upkeep = EXACT.multiply(self.capex_usd, self.maintenance_fraction)
        kwh = EXACT.multiply(EXACT.multiply(self.power_kw, self.pue), HOURS_PER_YEAR)
        return (
            Cost(what="capital", usd=capital),
            Cost(what="maintenance", usd=upkeep),
            Cost(what="power", usd=EXACT.multiply(kwh, self.usd_per_kwh)),
            Cost(what="hosting", usd=self.hosting_usd_per_year),
            Cost(what="staff", usd=self.staff_usd_per_year),
        )

    @property
    def annual_usd(self) -> Decimal:
        """What the machine costs a year, used or not."""
        return sum((cost.usd for cost in self.costs), _ZERO)

    def usd_per_gpu_hour(self, used_fraction: Decimal) -> Decimal:
        """Return dollars for each GPU-hour that is used, at a share of the year's hours above 0.

        Raises:
            InputError: the share is not above 0 and at most 1.
        """
        if not 0 < used_fraction <= 1:
            raise InputError(f"used_fraction is {used_fraction}; it must be above 0 and at most 1")
        hours = EXACT.multiply(EXACT.multiply(HOURS_PER_YEAR, self.gpus), used_fraction)
        return EXACT.divide(self.annual_usd, hours)

    def break_even_fraction(self, cloud_usd_per_gpu_hour: Decimal) -> Decimal:
        """Return the share of a year's hours from which owning is cheaper; above 1 it never is."""
        cloud = EXACT.multiply(EXACT.multiply(HOURS_PER_YEAR, self.gpus), cloud_usd_per_gpu_hour)
        return EXACT.divide(self.annual_usd, cloud)


FIGURES = tuple(f.name for f in fields(Ownership) if f.type is Decimal)
"""Names of the figures that can be varied."""


class Cost(Struct, frozen=True, kw_only=True):
    """Dollars a year for one thing.

    Attributes:
        what: it is for.
        usd: a year.
    """

    what: str
    usd: Amount


class Swing(Struct, frozen=True, kw_only=True):
    """How the break-even share moves with one figure between its low and its high end.

    Attributes:
        figure: that moves, the others as they are.
        low: its low end.
        high: its high end.
        break_even_at_low: share of the hours there [0 to 1; above 1 never].
        break_even_at_high: share of the hours there [0 to 1; above 1 never].
    """

    figure: str
    low: Amount
    high: Amount
    break_even_at_low: float
    break_even_at_high: float


def sensitivity(
    own: Ownership,
    cloud_usd_per_gpu_hour: Decimal,
    bounds: Mapping[str, tuple[Decimal, Decimal]] | None = None,
) -> tuple[Swing, ...]:
    """Return how the break-even share moves with each figure, the widest swing first.

    Args:
        own: the figures as they are.
        cloud_usd_per_gpu_hour: price to compare with; it is varied, too.
        bounds: low and high of a figure; others are varied by SPREAD_FRACTION within their range.
            The number of GPUs is not varied.
    """
    swings = _swings(own, cloud_usd_per_gpu_hour, bounds or {})
    widest = sorted(swings, key=lambda s: (-abs(s[4] - s[3]), s[0]))
    return tuple(
        Swing(
            figure=name,
            low=without_zeros(low),
            high=without_zeros(high),
            break_even_at_low=break_even_share(at_low),
            break_even_at_high=break_even_share(at_high),
        )
        for name, low, high, at_low, at_high in widest
    )


def break_even_share(fraction: Decimal) -> float:
    """Return a share as it is printed, to a hundredth of a percent."""
    return float(round(fraction, 4))


def _swings(
    own: Ownership, price: Decimal, bounds: Mapping[str, tuple[Decimal, Decimal]]
) -> Iterator[tuple[str, Decimal, Decimal, Decimal, Decimal]]:
    for name in FIGURES:
        value = getattr(own, name)
        if name == "gpus" or (not value and name not in bounds):
            continue
        ends = bounds.get(name) or tuple(_clamped(own, name, value * f) for f in _SPREAD)
        low, high = ends[0], ends[1]
        at_low, at_high = (_with(own, name, end).break_even_fraction(price) for end in (low, high))
        yield name, low, high, at_low, at_high
    ends = bounds.get(CLOUD) or (price * _SPREAD[0], price * _SPREAD[1])
    yield CLOUD, *ends, own.break_even_fraction(ends[0]), own.break_even_fraction(ends[1])


def _with(own: Ownership, name: str, value: Decimal) -> Ownership:
    changed: dict[str, Any] = {name: value}
    return replace(own, **changed)


CLOUD = "cloud_usd_per_gpu_hour"
_SPREAD = (_ONE - SPREAD_FRACTION, _ONE + SPREAD_FRACTION)


def _clamped(own: Ownership, name: str, value: Decimal) -> Decimal:
    maximum = own.capex_usd if name == "residual_usd" else _AT_MOST.get(name, value)
    minimum = own.residual_usd if name == "capex_usd" else _AT_LEAST.get(name, _ZERO)
    return max(minimum, min(maximum, value))
