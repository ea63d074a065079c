"""By how much a price that was read some days ago may have moved since.

The law is a table of factors by kind of seller and age, fitted on dated readings of prices
(`research/price_moves.py`) and shipped as `pricing/data/price_moves.csv`. Between its points it is
interpolated; beyond the last one, where nothing is known, the last one is kept.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Literal

from pricing.message import Message
from pricing.tables import from_row, read_csv, read_toml

FRESH_DAYS = 14
OLD_DAYS = 60
"""A price is fresh for two weeks, then ageing, and old after two months: a launch spends by no old
one unless the live one was read."""

Age = Literal["fresh", "ageing", "old"]


def age_of(days: int) -> Age:
    """Return what a price is called so many days after it was read."""
    return "fresh" if days <= FRESH_DAYS else "ageing" if days <= OLD_DAYS else "old"


def age_text(days: int | None) -> str:
    """Return how old a price is, in words: empty of a fresh one; None: of no stated day."""
    if days is None:
        return Message("price.no-date")
    return "" if age_of(days) == "fresh" else Message("price.days-old", n=days)


_FULL = re.compile(r"\d{4}-\d{2}-\d{2}")
_PARTIAL = re.compile(r"(\d{4})(?:-(\d{2}))?(?!\d)")


@cache
def read_date(text: str) -> tuple[date, bool]:
    """Return the day a date text counts as, and whether it was a full date.

    A partial or undated text counts as the first day of the earliest year or month it names:
    "2024-12" is 2024-12-01, "2025/2026 (undated)" is 2025-01-01.

    Raises:
        ValueError: the text names no year.
    """
    if _FULL.fullmatch(text):
        return date.fromisoformat(text), True
    days = [date(int(year), int(month or 1), 1) for year, month in _PARTIAL.findall(text)]
    if not days:
        raise ValueError(f"{text!r} names no year; write YYYY-MM-DD, YYYY-MM or YYYY")
    return min(days), False


Sellers = Literal["hyperscaler", "specialist", "auction", "spot"]

_HYPERSCALERS = frozenset(("aws", "azure", "gcp", "oci"))
_AUCTIONS = frozenset(("vast", "tensordock"))
_ONE = Decimal(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRange:
    """Factors between which a price lies today, over what was read (90 %).

    Attributes:
        low: at most 1.
        high: at least 1.
        moved: share of such prices that had moved at all by then, 0-1.
    """

    low: Decimal
    high: Decimal
    moved: Decimal


_FIGURES = ("low", "high", "moved")
UNMOVED = PriceRange(low=_ONE, high=_ONE, moved=Decimal(0))
"""Of a price that is known as it is today."""


def sellers_of(provider: str, purchase: str) -> Sellers:
    """Return the kind of seller and price whose history a price is expected to share.

    At an auction each host sets its own price; community machines of a provider that sets the price
    for all of them are sold like its own.
    """
    if purchase == "spot":
        return "spot"
    if provider in _HYPERSCALERS:
        return "hyperscaler"
    return "auction" if provider in _AUCTIONS else "specialist"


@cache
def moved_in(sellers: Sellers, age_d: int) -> PriceRange:
    """Return between which factors prices of such sellers lie `age_d` days after they were read."""
    points = _points()[sellers]
    age = min(max(0, age_d), points[-1][0])
    (from_d, from_), (to_d, to) = next(pair for pair in pairwise(points) if age <= pair[1][0])
    part = Decimal(age - from_d) / (to_d - from_d)
    ends = {name: (getattr(from_, name), getattr(to, name)) for name in _FIGURES}
    return PriceRange(**{name: a + part * (b - a) for name, (a, b) in ends.items()})


@cache
def _points() -> Mapping[str, Sequence[tuple[int, PriceRange]]]:
    """Return (days, factors) by seller, from day 0 on, by rising days."""
    points = defaultdict[str, list[tuple[int, PriceRange]]](lambda: [(0, UNMOVED)])
    for row in read_csv("price_moves.csv"):
        factors = PriceRange(**{name: Decimal(row[name]) for name in _FIGURES})
        points[row["sellers"]].append((int(row["days"]), factors))
    return points


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


def bundled_history() -> tuple[SeenPrice, ...]:
    """Return the bundled readings, in file order."""
    sources = read_toml("price_history_sources.toml") or {}
    return tuple(
        from_row(
            SeenPrice,
            row,
            seen_on=row["as_of"],
            source=sources[row["source"]],
            community=row["provider"] == "vast" or row["instance_type"].endswith("_community"),
        )
        for row in read_csv("price_history.csv")
    )


def by_price(readings: Iterable[SeenPrice]) -> Mapping[Key, Sequence[SeenPrice]]:
    """Return the readings of each price, oldest first, one a day: the surest, else the cheapest."""
    rank = {"high": 0, "medium": 1, "low": 2}
    series: dict[Key, dict[date, SeenPrice]] = {}
    for reading in sorted(readings, key=lambda s: (rank[s.confidence], s.usd_per_hour, s.source)):
        series.setdefault(reading.key, {}).setdefault(reading.seen_on, reading)
    return {key: tuple(days[day] for day in sorted(days)) for key, days in sorted(series.items())}
