"""How often a provider takes spot machines back, where it publishes that."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from pricing.catalog.offer import Offer
from pricing.tables import names, read_csv

_SUFFIX = "_spot_advisor.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """The share of spot machines of one size and region that were taken back within a month.

    Attributes:
        low: the share is at least this, 0-1.
        high: and at most this; None where the provider's last bucket is open.
        text: as the provider prints it.
        source: where it was read.
        as_of: when.
    """

    low: float
    high: float | None
    text: str
    source: str
    as_of: str


def interruptions(offer: Offer) -> Bucket | None:
    """Return the published bucket of a spot offer; None where nothing is published for it."""
    table = f"{offer.provider}{_SUFFIX}"
    if offer.purchase != "spot" or table not in names(f"*{_SUFFIX}"):
        return None
    return _buckets(table).get((offer.region, offer.instance_type))


@cache
def _buckets(table: str) -> Mapping[tuple[str, str], Bucket]:
    return {(row["region"], row["instance_type"]): _bucket_from_row(row) for row in read_csv(table)}


def _bucket_from_row(row: Mapping[str, str]) -> Bucket:
    low, high = _bounds(row["interruption_bucket"])
    return Bucket(
        low=low,
        high=high,
        text=row["interruption_bucket"],
        source=row["source"],
        as_of=row["as_of"],
    )


def _bounds(text: str) -> tuple[float, float | None]:
    """Return the ends of `<5%`, `5-10%`, `>20%` as shares."""
    number = text.strip("<>%")
    if text.startswith("<"):
        return 0.0, float(number) / 100.0
    if text.startswith(">"):
        return float(number) / 100.0, None
    low, high = number.split("-")
    return float(low) / 100.0, float(high) / 100.0
