"""Reads the bundled offer files, `data/offers/<provider>.csv`, into offers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from operator import itemgetter
from typing import Any

from pricing.catalog.offer import Offer
from pricing.catalog.price_age import read_date, read_day
from pricing.catalog.sizes import Size, sizes
from pricing.errors import InputError
from pricing.money import plain, usd
from pricing.tables import DATA, names, number, read_lines

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

_cells = itemgetter(*COLUMNS)
_TYPE = COLUMNS.index("instance_type")
_figure = cache(float)
_price = cache(usd)
"""Many rows have the same figures: each text is read once."""


@cache
def bundled_offers() -> tuple[Offer, ...]:
    """Return every bundled row, current and superseded, by provider and in file order.

    Raises:
        InputError: every row that is not an offer, with its file and line.
    """
    offers: list[Offer] = []
    problems: list[str] = []
    for name in names("offers/*.csv"):
        provider = name.removeprefix("offers/").removesuffix(".csv")
        try:
            offers += offers_from_file(provider, name)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return tuple(offers)


def offers_from_file(provider: str, name: str) -> list[Offer]:
    """Return the offers of a file below `pricing/data` with the columns of COLUMNS, in file order.

    Raises:
        InputError: every row that is not an offer, with its file and line.
    """
    header, lines = read_lines(name)
    if tuple(header) != COLUMNS:
        lines = list(map(itemgetter(*map(header.index, COLUMNS)), lines))
    offers, problems, published = [], [], sizes()
    for line, cells in enumerate(lines, start=2):
        size = published.get((provider, cells[_TYPE]), _NO_SIZE)
        try:
            offers.append(_offer_from_cells(provider, cells, size))
        except (InputError, ValueError) as error:
            problems.append(f"{DATA / name}:{line}: {error}")
    if problems:
        raise InputError(problems)
    return offers


def offer_from_row(provider: str, row: Mapping[str, str]) -> Offer:
    """Return the offer of one CSV row (see COLUMNS and PUBLISHED), joined with its published size.

    Raises:
        InputError: a price that is not money, or values that no offer can have.
        ValueError: a number or date that is none.
    """
    size = sizes().get((provider, row["instance_type"]), _NO_SIZE)
    if PUBLISHED[0] in row:
        size = _as_printed(row, size)
    return _offer_from_cells(provider, _cells(row), size)


def _offer_from_cells(provider: str, cells: Sequence[str], size: Size) -> Offer:
    """Return the offer of the cells of COLUMNS."""
    (
        status,
        region,
        instance_type,
        gpu,
        gpu_count,
        gpu_memory_gib,
        vcpus,
        ram_gib,
        local_disk_gib,
        interconnect,
        network_gbps,
        host,
        purchase,
        usd_per_hour,
        as_of_text,
        valid_from,
        valid_until,
        confidence,
        source,
        notes,
    ) = cells
    as_of, dated = read_date(as_of_text)
    return Offer(
        provider=provider,
        region=region,
        instance_type=instance_type,
        gpu=gpu,
        gpu_count=_figure(gpu_count),
        gpu_memory_gib=_figure(gpu_memory_gib),
        purchase=purchase,
        usd_per_hour=_price(usd_per_hour),
        source=source,
        as_of=as_of,
        as_of_text=as_of_text,
        dated=dated,
        vcpus=number(vcpus),
        ram_gib=number(ram_gib),
        local_disk_gib=number(local_disk_gib),
        interconnect=interconnect or None,
        network_gbps=number(network_gbps),
        valid_from=read_day(valid_from),
        valid_until=read_day(valid_until),
        confidence=confidence,
        notes=notes,
        current=status == "current",
        withdrawn=status == "withdrawn",
        host=host,
        boot_disk_gib=size.boot_disk_gib,
        scratch_disk_gib=size.scratch_disk_gib,
        included_transfer_gib=size.included_transfer_gib,
        contract_only=size.sold == "contract",
    )


def _as_printed(row: Mapping[str, str], size: Size) -> Size:
    """Return the size with the figures that the row prints itself."""
    figures = {name: number(row.get(name, "")) for name in PUBLISHED}
    printed: dict[str, Any] = {name: value for name, value in figures.items() if value is not None}
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
    image="",
    sold="",
    regions=(),
    source="",
    as_of="",
)
