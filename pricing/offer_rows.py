"""Reads the bundled offer files, `data/offers/<provider>.csv`, into offers."""

from collections.abc import Mapping
from functools import cache

from pricing.dates import read_date, read_day
from pricing.errors import InputError
from pricing.money import usd
from pricing.offer import Offer
from pricing.sizes import Size, sizes
from pricing.tables import DATA, names, number, read_csv


@cache
def bundled_offers() -> tuple[Offer, ...]:
    """Every bundled row, current and superseded, by provider and in file order.

    Raises:
        InputError: every row that is no offer, with its file and line.
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
    """The offer of one CSV row (columns: see data/README.md), joined with its published size.

    Raises:
        InputError: a price that is no money, or values that no offer can have.
        ValueError: a number or date that is none.
    """
    as_of, dated = read_date(row["as_of"])
    size = sizes().get((provider, row["instance_type"]), _NO_SIZE)
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
        host=row["host"],
        boot_disk_gib=size.boot_disk_gib,
        scratch_disk_gib=size.scratch_disk_gib,
        included_transfer_gib=size.included_transfer_gib,
        contract_only=size.sold == "contract",
    )


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
