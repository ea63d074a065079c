"""Reads the bundled offer files, `data/offers/<provider>.csv`, into offers."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from functools import cache

from pricing.catalog.offer import Offer
from pricing.catalog.price_age import read_date
from pricing.catalog.sizes import sizes
from pricing.errors import InputError
from pricing.money import plain, usd
from pricing.tables import DATA, from_row, names, read_csv

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

_price = cache(usd)  # many rows have the same one
_STATUSES = {"current": (True, False), "withdrawn": (False, True)}


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
    offers, problems = [], []
    for line, row in enumerate(read_csv(name), start=2):
        try:
            offers.append(offer_from_row(provider, row))
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
    size = sizes().get((provider, row["instance_type"]))
    published = {name: getattr(size, name) for name in PUBLISHED if size and not row.get(name)}
    as_of, dated = read_date(row["as_of"])
    current, withdrawn = _STATUSES.get(row["status"], (False, False))
    return from_row(
        Offer,
        row,
        provider=provider,
        usd_per_hour=_price(row["usd_per_hour"]),
        as_of=as_of,
        as_of_text=row["as_of"],
        dated=dated,
        current=current,
        withdrawn=withdrawn,
        contract_only=size is not None and size.sold == "contract",
        **published,
    )


def row_from_offer(offer: Offer) -> dict[str, str]:
    """Return the CSV row of an offer, with PUBLISHED; `offer_from_row` reads it back."""
    status = "current" if offer.current else "withdrawn" if offer.withdrawn else "superseded"
    cells = {name: _cell(getattr(offer, name)) for name in (*COLUMNS[1:], *PUBLISHED)}
    return {**cells, "status": status, "as_of": offer.date_text}


def _cell(value: str | float | Decimal | date | None) -> str:
    if isinstance(value, Decimal):
        return plain(value)
    if isinstance(value, float | int):
        return f"{value:.12g}"
    return "" if value is None else str(value)
