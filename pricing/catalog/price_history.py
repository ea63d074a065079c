"""What machines cost on other days: dated readings, the bundled ones and the catalog's."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from pricing.catalog.offer import Offer
from pricing.money import usd
from pricing.tables import read_csv, read_toml

Key = tuple[str, str, str, float, str]
"""Provider, type, region, GPUs of the machine, way of buying."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPrice:
    """A price on a day.

    Attributes:
        provider: such as "aws".
        region: the provider's name for it, "*" where one price holds everywhere.
        instance_type: the provider's size; `list:...` is a price list's line without a size.
        gpu: canonical model.
        gpu_count: GPUs of the machine.
        purchase: how it was bought.
        usd_per_hour: of the whole machine.
        seen_on: the day of the reading.
        confidence: high, medium or low.
        source: where it was read.
        community: whether a third party owned the machine.
    """

    provider: str
    region: str
    instance_type: str
    gpu: str
    gpu_count: float
    purchase: str
    usd_per_hour: Decimal
    seen_on: date
    confidence: str
    source: str
    community: bool = False

    @property
    def key(self) -> Key:
        """What makes two readings those of one price."""
        return (self.provider, self.instance_type, self.region, self.gpu_count, self.purchase)

    @property
    def per_gpu(self) -> Decimal:
        """USD an hour for one GPU."""
        return self.usd_per_hour / Decimal(str(self.gpu_count))


def bundled_history() -> tuple[SeenPrice, ...]:
    """Return the bundled readings, in file order."""
    sources = read_toml("price_history_sources.toml") or {}
    return tuple(
        SeenPrice(
            provider=row["provider"],
            region=row["region"],
            instance_type=row["instance_type"],
            gpu=row["gpu"],
            gpu_count=float(row["gpu_count"]),
            purchase=row["purchase"],
            usd_per_hour=usd(row["usd_per_hour"]),
            seen_on=date.fromisoformat(row["as_of"]),
            confidence=row["confidence"],
            source=sources[row["source"]],
            community=row["provider"] == "vast" or row["instance_type"].endswith("_community"),
        )
        for row in read_csv("price_history.csv")
    )


def read_from(offers: Iterable[Offer]) -> tuple[SeenPrice, ...]:
    """Return the readings that rows of the catalog are: the day of each, and its first known one.

    Undated rows are none; what was withdrawn was not read.
    """
    return tuple(
        SeenPrice(
            provider=offer.provider,
            region=offer.region,
            instance_type=offer.instance_type,
            gpu=offer.gpu,
            gpu_count=offer.gpu_count,
            purchase=offer.purchase,
            usd_per_hour=offer.usd_per_hour,
            seen_on=day,
            confidence=offer.confidence,
            source=offer.source,
            community=offer.is_community,
        )
        for offer in offers
        if offer.dated and not offer.withdrawn
        for day in sorted({offer.as_of, min(offer.starts, offer.as_of)})
    )


def by_price(seen: Iterable[SeenPrice]) -> Mapping[Key, Sequence[SeenPrice]]:
    """Return the readings of each price, oldest first, one a day: the surest, else the cheapest."""
    rank = {"high": 0, "medium": 1, "low": 2}
    series: dict[Key, dict[date, SeenPrice]] = {}
    for one in sorted(seen, key=lambda s: (rank[s.confidence], s.usd_per_hour, s.source)):
        series.setdefault(one.key, {}).setdefault(one.seen_on, one)
    return {key: tuple(days[day] for day in sorted(days)) for key, days in sorted(series.items())}
