"""Reads the bundled offer files, `data/offers/<provider>.csv`, into offers."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from pricing.catalog.dates import read_date, read_day
from pricing.catalog.offer import Offer
from pricing.catalog.sizes import Size, sizes
from pricing.errors import InputError
from pricing.money import plain, usd
from pricing.tables import DATA, names, number, read_csv

COLUMNS = (
    "status",
    "region",
    "instance_type",
    "gpu",
    "gpu_count",
    "gpu_memory_gib",
    "vcpus",
    "ram_gib",
    "local_disk_gib",
    "interconnect",
    "network_gbps",
    "host",
    "purchase",
    "usd_per_hour",
    "as_of",
    "valid_from",
    "valid_until",
    "confidence",
    "source",
    "notes",
)
"""The columns of `data/offers/<provider>.csv`."""

PUBLISHED = ("boot_disk_gib", "scratch_disk_gib", "included_transfer_gib")
"""Further columns of a row that was fetched; without them the table of sizes is asked."""


@cache
def bundled_offers() -> tuple[Offer, ...]:
    """Return every bundled row, current and superseded, by provider and in file order.

    Raises:
        InputError: every row that is not an offer, with its file and line.
    """
    offers, problems = [], []
    for name in names("offers/*.csv"):
        provider = name.removeprefix("offers/").removesuffix(".csv")
        for line, row in enumerate(read_csv(name), start=2):
            try:
                offers.append(offer_from_row(provider, row))
            except (InputError, ValueError) as error:
                problems.append(f"{DATA / name}:{line}: {error}")
    if problems:
        raise InputError(problems)
    return tuple(offers)


def offer_from_row(provider: str, row: Mapping[str, str]) -> Offer:
    """Return the offer of one CSV row (see COLUMNS and PUBLISHED), joined with its published size.

    Raises:
        InputError: a price that is not money, or values that no offer can have.
        ValueError: a number or date that is none.
    """
    as_of, dated = read_date(row["as_of"])
    size = sizes().get((provider, row["instance_type"]), _NO_SIZE)
    if PUBLISHED[0] in row:
        size = _as_printed(row, size)
    return Offer(
        provider=provider,
        region=row["region"],
        instance_type=row["instance_type"],
        gpu=row["gpu"],
        gpu_count=float(row["gpu_count"]),
        gpu_memory_gib=float(row["gpu_memory_gib"]),
        purchase=row["purchase"],
        usd_per_hour=usd(row["usd_per_hour"]),
        source=row["source"],
        as_of=as_of,
        as_of_text=row["as_of"],
        dated=dated,
        vcpus=number(row["vcpus"]),
        ram_gib=number(row["ram_gib"]),
        local_disk_gib=number(row["local_disk_gib"]),
        interconnect=row["interconnect"] or None,
        network_gbps=number(row["network_gbps"]),
        valid_from=read_day(row["valid_from"]),
        valid_until=read_day(row["valid_until"]),
        confidence=row["confidence"],
        notes=row["notes"],
        current=row["status"] == "current",
        withdrawn=row["status"] == "withdrawn",
        host=row["host"],
        contract_only=size.sold == "contract",
        boot_disk_gib=size.boot_disk_gib,
        scratch_disk_gib=size.scratch_disk_gib,
        included_transfer_gib=size.included_transfer_gib,
    )


def _as_printed(row: Mapping[str, str], size: Size) -> Size:
    """Return the size with the figures that the row prints itself."""
    told = {name: number(row.get(name, "")) for name in PUBLISHED}
    printed: dict[str, Any] = {name: value for name, value in told.items() if value is not None}
    return replace(size, **printed)


def row_from_offer(offer: Offer) -> dict[str, str]:
    """Return the CSV row of an offer, with PUBLISHED; `offer_from_row` reads it back."""
    status = "current" if offer.current else "withdrawn" if offer.withdrawn else "superseded"
    return {
        "status": status,
        "region": offer.region,
        "instance_type": offer.instance_type,
        "gpu": offer.gpu,
        "gpu_count": f"{offer.gpu_count:.12g}",
        "gpu_memory_gib": f"{offer.gpu_memory_gib:.12g}",
        "interconnect": offer.interconnect or "",
        "host": offer.host,
        "purchase": offer.purchase,
        "usd_per_hour": plain(offer.usd_per_hour),
        "as_of": offer.date_text,
        "valid_from": "" if offer.valid_from is None else offer.valid_from.isoformat(),
        "valid_until": "" if offer.valid_until is None else offer.valid_until.isoformat(),
        "confidence": offer.confidence,
        "source": offer.source,
        "notes": offer.notes,
        **{name: _cell(getattr(offer, name)) for name in _NUMBERS},
    }


_NUMBERS = ("vcpus", "ram_gib", "local_disk_gib", "network_gbps", *PUBLISHED)


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.12g}"


_NO_SIZE = Size(
    provider="",
    instance_type="",
    gpu="",
    gpu_count=0,
    boot_disk_gib=None,
    scratch_disk_gib=None,
    included_transfer_gib=None,
    private_gbps=None,
    image="",
    sold="",
    regions=(),
    source="",
    as_of="",
)
