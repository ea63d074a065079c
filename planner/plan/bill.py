"""What must hold for a value of plan.json, whoever builds it; the reader adds where it lies."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from planner.models.costs import UsdRange
from planner.models.document import Number, need
from planner.models.estimate import whole
from planner.profile.fields import matching
from pricing.billing.lines import QuoteLine
from pricing.catalog.offer import BOUGHT, Offer
from pricing.money import Amount, without_zeros


def not_negative(**amounts: Decimal | None) -> None:
    """Check that dollars are at least 0 where they are known.

    Raises:
        ValueError: one is below; it is named.
    """
    for name, amount in amounts.items():
        need(amount is None or amount >= 0, f"{name} is {amount}, below 0")


def in_order(low: Decimal, mid: Decimal, high: Decimal) -> None:
    """Check that the ends of a range of dollars are in order.

    Raises:
        ValueError: they are not, or it begins below 0.
    """
    need(0 <= low <= mid <= high, f"low, mid and high are not in order: {low}, {mid}, {high}")


def distinct(names: Iterable[object], what: str) -> None:
    """Check that names do not repeat.

    Raises:
        ValueError: one does.
    """
    used: set[object] = set()
    for name in names:
        need(name not in used, f"two {what} are called {name}")
        used.add(name)


RentalPage = Annotated[str, matching("https://[A-Za-z0-9./-]+(?:, or its tool `[a-z]+`)?")]
"""What a plan says to open, or to type."""


class RentedOffer(msgspec.Struct, frozen=True, kw_only=True):
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
        stale: whether the price was too old on the plan's day; left out but in a plan, as what
            follows.
        age_days: how old the price was on that day; None: nobody dated it.
        confidence: of the price: high, medium or low.
        host: "provider", or "community" for machines of third parties.
        by_hand_at: where a person rents it, as no API knows it by `instance_type`; None where one
            does.
    """

    provider: str
    region: str
    instance_type: str
    gpu: str
    gpu_count: Number
    purchase: str
    usd_per_hour: Amount
    as_of: date
    source: str
    stale: bool | UnsetType | None = UNSET
    age_days: int | UnsetType | None = UNSET
    confidence: str | UnsetType | None = UNSET
    host: str | UnsetType = UNSET
    by_hand_at: RentalPage | UnsetType | None = UNSET

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


def offer_on(offer: Offer, as_of: date) -> RentedOffer:
    """Return what is rented, at its price as of the day of a plan."""
    return msgspec.structs.replace(
        rented_offer(offer),
        stale=offer.is_stale(as_of),
        age_days=offer.age_days(as_of),
        confidence=offer.confidence,
        host=offer.host,
        by_hand_at=offer.by_hand_at,
    )


_LEAST_IDLE_S = 60  # our script looks every ten seconds

CLUSTER = "kubernetes"
"""The tool that starts jobs on machines which are there already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that can rent a machine and run a job on it.

    Attributes:
        title: as it writes itself.
        providers: its names of the catalog's providers.
        types: the providers whose machine types it takes by their own names.
        gpus: its names of the catalog's GPUs.
        by_provider: those that differ at one provider.
        off_is_free: the providers where the hours of a machine end with its power.
        names_both: the providers where it wants the GPU beside the type.
        own_idle_s: the shortest time of its own rule for GPUs that do nothing; None: it has none.
    """

    title: str
    providers: Mapping[str, str]
    types: tuple[str, ...]
    gpus: Mapping[str, str]
    by_provider: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    off_is_free: tuple[str, ...] = ()
    names_both: tuple[str, ...] = ()
    own_idle_s: int | None = None

    def takes_type(self, offer: RentedOffer) -> bool:
        """Return whether it knows the machine by the provider's own name of it."""
        return offer.provider in self.types

    def gpu(self, offer: RentedOffer) -> str | None:
        """Return its name of the offer's GPU; None where it has none."""
        return self.by_provider.get(offer.provider, {}).get(offer.gpu) or self.gpus.get(offer.gpu)

    def can_start(self, offer: RentedOffer) -> bool:
        """Return whether it rents such a machine: knows the provider, and the type or the GPU."""
        is_supported = offer.provider in self.providers and offer.purchase in BOUGHT
        return is_supported and (self.takes_type(offer) or self.gpu(offer) is not None)

    def least_idle_s(self, offer: RentedOffer, image: str | None) -> int | None:
        """Return the shortest idle time after which what it starts can end; None: it cannot.

        By its own rule, else by our script, which switches the machine off and does not reach it
        from within a container.
        """
        can_end = offer.provider in self.off_is_free and image is None
        return _LEAST_IDLE_S if can_end and self.own_idle_s is None else self.own_idle_s


@cache
def tools() -> Mapping[str, Tool]:
    """Return the tools by the word that `gpucost export --to` takes."""
    text = files("planner.plan").joinpath("tools.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, Tool])


def that_start(offer: RentedOffer) -> tuple[str, ...]:
    """Return the words of the tools that can rent an offer; a cluster rents nothing."""
    return tuple(
        word for word, tool in tools().items() if word != CLUSTER and tool.can_start(offer)
    )


class PricedPart(msgspec.Struct, frozen=True, kw_only=True):
    """A quantity at a unit price; FOCUS rows are made of them.

    Attributes:
        quantity: how many units.
        unit: of the quantity.
        unit_usd: for one of them.
    """

    quantity: Amount
    unit: str
    unit_usd: Amount


class CostLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a bill.

    Attributes:
        what: kind of cost, as in a quote.
        usd: exact.
        how: the formula with its numbers.
        rule: the billing rule in words.
        source: where the price was read.
        as_of: date of the price as its source prints it.
        parts: in a plan the same amount as quantities at unit prices; empty where it is not such a
            product.
    """

    what: str
    usd: Amount
    how: str
    rule: str
    source: str = ""
    as_of: str
    parts: tuple[PricedPart, ...] | UnsetType = UNSET


def cost_lines(lines: Iterable[QuoteLine]) -> tuple[CostLine, ...]:
    """Return the lines of a bill."""
    return tuple(
        CostLine(
            what=line.what,
            usd=without_zeros(line.usd),
            how=line.how,
            rule=line.rule,
            source=line.source,
            as_of=line.as_of,
            parts=tuple(
                PricedPart(
                    quantity=without_zeros(part.quantity),
                    unit=part.unit,
                    unit_usd=without_zeros(part.unit_usd),
                )
                for part in line.parts
            ),
        )
        for line in lines
    )


class ClusterBill(msgspec.Struct, frozen=True, kw_only=True):
    """What a Kubernetes cluster costs a month, the jobs in it included.

    Attributes:
        role: how the jobs run today, what is recommended, or another way.
        cluster: `doks` or `eks`.
        region: the provider's name for it; empty where one price holds everywhere.
        usd: expected; None where not every job can run there.
        lines: what comes on top of the bills of jobs: control plane, CPU nodes, idle GPU nodes.
        min_nodes: GPU nodes that the autoscaler keeps at least.
        max_nodes: that it may start.
        min_usd: with so few of them all month; data that jobs send and keep are not in it.
        max_usd: with so many.
        effort_hours: engineering time for the cluster itself, our estimate.
        net_usd: what is left of the saving over the horizon after all work and moving; None of
            today.
        steps: what has to be done or rewritten, a sentence each.
        reason: why it is not recommended; left out of what is.
    """

    role: Literal["today", "recommended", "other"]
    cluster: Literal["doks", "eks"]
    region: str = ""
    usd: Amount | None
    lines: tuple[CostLine, ...] = ()
    min_nodes: int = 0
    max_nodes: int = 0
    min_usd: Amount = Decimal(0)
    max_usd: Amount = Decimal(0)
    effort_hours: Number = 0
    net_usd: Amount | None = None
    steps: tuple[str, ...] = ()
    reason: str | UnsetType = UNSET

    @property
    def beside_usd(self) -> Decimal:
        """Dollars on top of the bills of jobs."""
        return sum((line.usd for line in self.lines), Decimal(0))


class CostRange(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars of the period at the low end, the expected value and the high end of the hours.

    Attributes:
        low: at the low end [USD].
        mid: expected [USD].
        high: at the high end [USD].
    """

    low: Amount
    mid: Amount
    high: Amount

    def __post_init__(self) -> None:
        in_order(self.low, self.mid, self.high)

    @property
    def ends(self) -> "CostRange":
        """The range alone."""
        return CostRange(low=self.low, mid=self.mid, high=self.high)

    @classmethod
    def exactly(cls, amount: Amount) -> "CostRange":
        """Return a cost without a range."""
        return CostRange(low=amount, mid=amount, high=amount)


class OptionCost(CostRange, frozen=True, kw_only=True):
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

    lines: tuple[CostLine, ...]
    at_least: bool = False
    unknown: tuple[str, ...] = ()
    by_hours: UsdRange | None = None
    by_price: UsdRange | None = None
    by_speed: UsdRange | UnsetType = UNSET
    by_cure: UsdRange | UnsetType = UNSET
    by_use: UsdRange | UnsetType = UNSET
    basis: str = ""


class TodayCost(msgspec.Struct, frozen=True, kw_only=True):
    """The bill of today's machine.

    Attributes:
        total: dollars of the period; None where no price is known.
        lines: they add up to it, but for its rounding to cents.
        at_least: whether a part of the bill has no known price.
        unknown: those parts.
    """

    total: Amount | None
    lines: tuple[CostLine, ...]
    at_least: bool = False
    unknown: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        not_negative(total=self.total)
