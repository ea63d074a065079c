"""Sizes of providers that publish them: disks, included transfer, images, and how they are sold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from types import MappingProxyType

from pricing.tables import from_row, names, read_csv

_SUFFIX = "_sizes.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One published size. None means unknown.

    Attributes:
        provider: such as "digitalocean".
        instance_type: the provider's slug.
        gpu: canonical GPU name.
        gpu_count: GPUs in the machine.
        boot_disk_gib: included boot disk.
        scratch_disk_gib: included disk that is lost with the machine.
        included_transfer_gib: outbound transfer that a full month includes.
        image: slug of the image made for it.
        sold: "self-serve", "spot" or "contract" (no public price).
        regions: where it was seen; empty means unknown.
        source: where it was read.
        as_of: date as the source prints it.
    """

    provider: str
    instance_type: str
    gpu: str
    gpu_count: int
    boot_disk_gib: float | None = None
    scratch_disk_gib: float | None = None
    included_transfer_gib: float | None = None
    image: str = ""
    sold: str
    regions: tuple[str, ...]
    source: str
    as_of: str


@cache
def sizes() -> Mapping[tuple[str, str], Size]:
    """Return every published size by provider and slug, in file order."""
    table = {}
    for name in names(f"*{_SUFFIX}"):
        provider = name.removesuffix(_SUFFIX)
        for row in read_csv(name):
            regions = tuple(row["regions"].split())
            size = from_row(Size, row, provider=provider, regions=regions)
            table[provider, size.instance_type] = size
    return MappingProxyType(table)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rental:
    """How the types of a provider that a pattern covers are rented.

    Attributes:
        pattern: of the types' names; `*` matches any characters.
        own_name: whether the provider itself calls them so; else the name is a price page's or a
            tracker's, and whoever rents one chooses it by hand.
        minimum_gpus: fewest GPUs of an order; None where no minimum is known.
        gpu_access: "passthrough" where the machine holds the GPUs themselves, "bare-metal" where
            nothing stands between, "network" where they are reached over TCP.
        ask: why only the seller can say what would be rented, the message `rent.ASK`; empty where
            nothing is in doubt.
        end_of_sale: last day on which the provider sold it; None: it is on sale.
        regions: where the provider documents it, for a price that holds everywhere.
        page: where a person rents there, and with which tool of the provider.
    """

    pattern: str
    own_name: bool
    minimum_gpus: int | None
    gpu_access: str = "passthrough"
    ask: str = ""
    end_of_sale: date | None = None
    regions: tuple[str, ...] = ()
    page: str = ""


@cache
def rental_of(provider: str, instance_type: str) -> _Rental | None:
    """Return how a type is rented; None where nothing is written down of its provider."""
    return next(
        (
            rental
            for rental in _rentals().get(provider, ())
            if fnmatchcase(instance_type, rental.pattern)
        ),
        None,
    )


def page_of(provider: str) -> str | None:
    """Return where to rent at a provider by hand; None where no page is written down."""
    return next((r.page for r in _rentals().get(provider, ()) if r.page), None)


@cache
def _rentals() -> Mapping[str, Sequence[_Rental]]:
    """Return rentals by provider, the narrow patterns first, as in the file."""
    rentals: dict[str, list[_Rental]] = {}
    for row in read_csv("rental.csv"):
        rentals.setdefault(row["provider"], []).append(
            from_row(
                _Rental,
                row | {"minimum_gpus": ""},
                pattern=row["instance_type"],
                own_name=row["own_name"] == "yes",
                minimum_gpus=int(row["minimum_gpus"]) if row["minimum_gpus"] else None,
                regions=tuple(row["regions"].split()),
            )
        )
    return rentals


_ADVISOR_SUFFIX = "_spot_advisor.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bucket:
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


def interruptions(provider: str, instance_type: str, region: str) -> _Bucket | None:
    """Return the published bucket of a spot machine; None where nothing is published for it."""
    table = f"{provider}{_ADVISOR_SUFFIX}"
    if table not in names(f"*{_ADVISOR_SUFFIX}"):
        return None
    return _buckets(table).get((region, instance_type))


@cache
def _buckets(table: str) -> Mapping[tuple[str, str], _Bucket]:
    buckets = {}
    for row in read_csv(table):
        text = row["interruption_bucket"]
        low, high = _bounds(text)
        key = (row["region"], row["instance_type"])
        buckets[key] = from_row(_Bucket, row, low=low, high=high, text=text)
    return buckets


def _bounds(text: str) -> tuple[float, float | None]:
    """Return the ends of `<5%`, `5-10%`, `>20%` as shares."""
    number = text.strip("<>%")
    if text.startswith("<"):
        return 0.0, float(number) / 100.0
    if text.startswith(">"):
        return float(number) / 100.0, None
    low, high = number.split("-")
    return float(low) / 100.0, float(high) / 100.0
