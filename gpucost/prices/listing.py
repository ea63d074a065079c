"""`gpucost prices list`: which known prices are wanted, and why each is what it is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

from gpucost.arguments.parameters import check_known
from gpucost.prices.cache import load_catalog
from gpucost.views.output import Output, Table, price_cell, print_json, print_table
from planner.plan_document.bill import RentedOffer, rented_offer
from planner.plan_document.encode import IF_KNOWN
from pricing.catalog.catalog import Catalog
from pricing.catalog.dates import STALE_AFTER_DAYS
from pricing.catalog.offer import EVERYWHERE, Offer
from pricing.catalog.regions import known_regions, placed
from pricing.hardware import matching
from pricing.money import price_text

_SHOWN = 40
SORTS: dict[str, Callable[[Offer], tuple[Any, ...]]] = {
    "price": lambda o: (o.usd_per_hour, o.place),
    "gpu-price": lambda o: (o.usd_per_hour / Decimal(str(o.gpu_count)), o.place),
    "provider": lambda o: (o.place, o.purchase),
    "gpu": lambda o: (o.gpu, o.usd_per_hour, o.place),
    "gpus": lambda o: (o.gpu_count, o.usd_per_hour, o.place),
    "age": lambda o: (o.as_of, o.place),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which prices are wanted; empty or None leaves a thing open.

    Attributes:
        providers: any of them.
        gpu_names: any of these models, as people write them.
        counts: fewest and most GPUs of the machine.
        regions: prices that hold in one of them.
        max_price: USD an hour for the machine.
        purchases: any of these ways of buying.
        sort: one of SORTS.
    """

    providers: tuple[str, ...] = ()
    gpu_names: tuple[str, ...] = ()
    counts: tuple[int, int] | None = None
    regions: tuple[str, ...] = ()
    max_price: Decimal | None = None
    purchases: tuple[str, ...] = ()
    sort: str = "price"

    def find(self, catalog: Catalog) -> list[Offer]:
        """Return the offers that are wanted, in order.

        Raises:
            InputError: a provider, a region or a GPU is not known.
        """
        check_known("--provider", self.providers, (o.provider for o in catalog.offers))
        regions = tuple(region.lower() for region in self.regions)
        check_known("--region", regions, known_regions(catalog.offers))
        models = {gpu.name for name in self.gpu_names for gpu in matching(name)}
        found = (offer for offer in catalog.offers if self._wants(offer, models, regions))
        return sorted(found, key=SORTS[self.sort])

    def _wants(self, offer: Offer, models: set[str], regions: tuple[str, ...]) -> bool:
        return (
            (not self.providers or offer.provider in self.providers)
            and (not models or offer.gpu in models)
            and (not self.counts or self.counts[0] <= offer.gpu_count <= self.counts[1])
            and (offer.region == EVERYWHERE or placed(offer, regions) is not None)
            and (self.max_price is None or offer.usd_per_hour <= self.max_price)
            and (not self.purchases or offer.purchase in self.purchases)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedOffer(RentedOffer):
    """An offer as `gpucost prices list -f json` prints it.

    Attributes:
        gpu_memory_gib: of one GPU.
        vcpus: threads of the host; None where it is not known, as in the next two.
        ram_gib: of the host.
        interconnect: between its GPUs.
        confidence: of the price: high, medium or low.
        notes: of its source.
        stale: whether the price is too old on the day that was asked for.
        why: where it was read and what gave way to it, where that was asked for.
    """

    gpu_memory_gib: float
    vcpus: float | None
    ram_gib: float | None
    interconnect: str | None
    confidence: str
    notes: str
    stale: bool
    why: str | None = field(default=None, metadata=IF_KNOWN)


def list_prices(query: Query, day: date, output: Output, *, why: bool) -> None:
    """Print the prices of a day that are wanted.

    Raises:
        InputError: as `Query.find`.
    """
    catalog = load_catalog(day, say=output.say)
    found = query.find(catalog)
    _show(found, catalog, output, why=why)
    if output.verbose and not why:
        for offer in found[:_SHOWN]:
            output.say(f"why: {offer.place}, {offer.purchase}: {_reason(offer, catalog)}")


def _show(found: list[Offer], catalog: Catalog, output: Output, *, why: bool) -> None:
    if output.format == "json":
        print_json([_document(offer, catalog, why=why) for offer in found])
        return
    short = output.format == "table" and not output.verbose
    shown = found[:_SHOWN] if short else found
    columns: tuple[str, ...]
    columns = ("provider", "type", "region", "GPUs", "GPU", "purchase", "USD/h", "read", "")
    if why:
        columns += ("why",)
    rows = tuple(_row(offer, catalog, output, why=why) for offer in shown)
    right, spare = frozenset(("USD/h", "GPUs")), ("purchase", "GPU", "region")
    print_table(Table(columns=columns, rows=rows, right=right, spare=spare), output)
    hidden = len(found) - len(shown)
    more = f"; {hidden} more with -v" if hidden else ""
    output.say(
        f"{len(found)} offers as of {catalog.as_of}{more}. Prices read {catalog.oldest} to "
        f"{catalog.newest}; 'stale' is over 30 days old and may have risen "
        "by over a fifth since, or undated."
    )


def _row(offer: Offer, catalog: Catalog, output: Output, *, why: bool) -> tuple[str, ...]:
    cells: tuple[str, ...] = (
        offer.provider,
        offer.instance_type,
        offer.region_text,
        f"{offer.gpu_count:g}",
        offer.gpu,
        offer.purchase,
        price_cell(offer.usd_per_hour, output),
        offer.as_of.isoformat(),
        _mark(offer, catalog),
    )
    return (*cells, _reason(offer, catalog)) if why else cells


def _mark(offer: Offer, catalog: Catalog) -> str:
    """Return what is said beside an old price."""
    days = (catalog.as_of - offer.as_of).days
    old = f"{days} days old" if days > STALE_AFTER_DAYS else ""
    return "stale" if catalog.is_stale(offer) else old


def _reason(offer: Offer, catalog: Catalog) -> str:
    """Return where the price was read, since when it holds, and which rows gave way to it."""
    held = f"holds from {offer.starts}"
    if offer.valid_until is not None:
        held += f" to {offer.valid_until}"
    if catalog.as_of < offer.starts:
        held += ", the first price known"
    parts = [f"{offer.source}, read {offer.date_text}, {offer.confidence}", held]
    parts += [f"instead of {_short(row)}" for row in _superseded(offer, catalog)]
    return "; ".join((*parts, offer.notes) if offer.notes else parts)


def _superseded(offer: Offer, catalog: Catalog) -> list[Offer]:
    rows = catalog.history(offer.provider, offer.instance_type, offer.region, offer.purchase)
    return [row for row in reversed(rows) if row != offer]


def _short(row: Offer) -> str:
    until = f" to {row.valid_until}" if row.valid_until is not None else ""
    gone = ", withdrawn" if row.withdrawn else ""
    return f"{price_text(row.usd_per_hour)} from {row.starts}{until}{gone} ({row.source})"


def _document(offer: Offer, catalog: Catalog, *, why: bool) -> ListedOffer:
    rented = rented_offer(offer)
    return ListedOffer(
        provider=rented.provider,
        region=rented.region,
        instance_type=rented.instance_type,
        gpu=rented.gpu,
        gpu_count=rented.gpu_count,
        purchase=rented.purchase,
        usd_per_hour=rented.usd_per_hour,
        as_of=rented.as_of,
        source=rented.source,
        gpu_memory_gib=offer.gpu_memory_gib,
        vcpus=offer.vcpus,
        ram_gib=offer.ram_gib,
        interconnect=offer.interconnect,
        confidence=offer.confidence,
        notes=offer.notes,
        stale=catalog.is_stale(offer),
        why=_reason(offer, catalog) if why else None,
    )
