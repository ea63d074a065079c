"""What is rented and what it costs, as in plan.json."""

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from planner.plan_document.checks import in_order, need, not_negative
from pricing.catalog.offer import Offer
from pricing.money import without_zeros


@dataclass(frozen=True, slots=True, kw_only=True)
class RentedOffer:
    """What is rented, at its dated price, as a quote and a preview print it.

    Attributes:
        provider: as in the catalog.
        region: the provider's name for it; `*` where one price holds everywhere.
        instance_type: the provider's size.
        gpu: canonical model.
        gpu_count: GPUs of one machine; below 1 it is a slice of one GPU.
        purchase: how it is bought, as in the catalog: on_demand, spot or a reserved term.
        usd_per_hour: of the whole machine.
        as_of: day on which the price was read.
        source: where.
    """

    provider: str
    region: str
    instance_type: str
    gpu: str
    gpu_count: float
    purchase: str
    usd_per_hour: Decimal
    as_of: date
    source: str

    def __post_init__(self) -> None:
        need(self.gpu_count > 0, "gpu_count is not above 0")
        not_negative(usd_per_hour=self.usd_per_hour)


def rented_offer(offer: Offer) -> RentedOffer:
    """Return an offer as it is printed: whole counts without a point, no zeros behind a price."""
    return RentedOffer(
        provider=offer.provider,
        region=offer.region,
        instance_type=offer.instance_type,
        gpu=offer.gpu,
        gpu_count=whole(offer.gpu_count),
        purchase=offer.purchase,
        usd_per_hour=without_zeros(offer.usd_per_hour),
        as_of=offer.as_of,
        source=offer.source,
    )


def whole(value: Decimal | float) -> float:
    """Return a number for JSON, without a decimal point where it is whole."""
    return int(value) if value == int(value) else float(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferDocument(RentedOffer):
    """What an option of a plan rents.

    Attributes:
        stale: whether the price was too old on the plan's day; None where the plan does not say.
        age_days: how old the price was on that day; None where the plan does not say.
        confidence: of the price: high, medium or low; None where the plan does not say.
        host: "provider", or "community" for machines of third parties.
        by_hand_at: where a person rents it, as no API knows it by `instance_type`; None where one
            does.
    """

    stale: bool | None = None
    age_days: int | None = None
    confidence: str | None = None
    host: str = "provider"
    by_hand_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedPart:
    """A quantity at a unit price; FOCUS rows are made of them.

    Attributes:
        quantity: how many units.
        unit: of the quantity.
        unit_usd: for one of them.
    """

    quantity: Decimal
    unit: str
    unit_usd: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedLine:
    """One line of a bill, as a quote prints it.

    Attributes:
        what: kind of cost, as in a quote.
        usd: exact.
        how: the formula with its numbers.
        rule: the billing rule in words.
        source: where the price was read.
        as_of: date of the price as its source prints it.
    """

    what: str
    usd: Decimal
    how: str
    rule: str
    source: str = ""
    as_of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine(PricedLine):
    """One line of the predicted bill of an option.

    Attributes:
        parts: the same amount as quantities at unit prices; empty where it is not such a product.
    """

    parts: tuple[PricedPart, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRange:
    """Dollars of the period at the low end, the expected value and the high end of the hours.

    Attributes:
        low: at the low end [USD].
        mid: expected [USD].
        high: at the high end [USD].
    """

    low: Decimal
    mid: Decimal
    high: Decimal

    def __post_init__(self) -> None:
        in_order(self.low, self.mid, self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsdEnds:
    """Dollars of the period at the ends of one cause of doubt.

    Attributes:
        low: least [USD].
        high: most [USD].
    """

    low: Decimal
    high: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionCost:
    """The predicted bill of an option.

    Attributes:
        low: dollars of the period at the low end of hours and price.
        mid: expected.
        high: at the high end, what an old price may have risen by included.
        lines: they add up to `mid`, but for its rounding to cents.
        at_least: whether a part of the bill has no known price.
        unknown: those parts.
        by_hours: dollars for the range of the hours alone; None where the plan does not say.
        by_price: for what the price may have moved by since it was read.
        by_speed: for the predicted speed there alone, the rest as expected; this and the next two
            make up by_hours in quadrature, and are left out but for the option that is recommended,
            else the cheapest.
        by_cure: for what the actions on the job gain alone.
        by_use: for how long machines are held otherwise: interruptions, idle time that is saved,
            copies by the hour.
        basis: where the two come from.
    """

    low: Decimal
    mid: Decimal
    high: Decimal
    lines: tuple[CostLine, ...]
    at_least: bool = False
    unknown: tuple[str, ...] = ()
    by_hours: UsdEnds | None = None
    by_price: UsdEnds | None = None
    by_speed: UsdEnds | None = field(default=None, metadata={"if_known": True})
    by_cure: UsdEnds | None = field(default=None, metadata={"if_known": True})
    by_use: UsdEnds | None = field(default=None, metadata={"if_known": True})
    basis: str = ""

    def __post_init__(self) -> None:
        in_order(self.low, self.mid, self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class TodayCost:
    """The bill of today's machine.

    Attributes:
        total: dollars of the period; None where no price is known.
        lines: they add up to it, but for its rounding to cents.
        at_least: whether a part of the bill has no known price.
        unknown: those parts.
    """

    total: Decimal | None
    lines: tuple[CostLine, ...]
    at_least: bool = False
    unknown: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        not_negative(total=self.total)
