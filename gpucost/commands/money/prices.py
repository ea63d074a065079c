"""`gpucost prices`: list the known prices, show how they moved, update and check them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from operator import attrgetter
from typing import Any

import click
import msgspec
from click.core import ParameterSource
from msgspec import UNSET, UnsetType

from gpucost.arguments.command_group import DefaultGroup
from gpucost.arguments.parameters import check_known, options, today
from gpucost.prices.cache import load_catalog, refreshing_prices
from gpucost.prices.checks import check_prices, print_history
from gpucost.prices.update import UpdateRequest, update_prices
from gpucost.views.output import (
    Output,
    Table,
    output_options,
    price_cell,
    print_if_json,
    print_table,
    terminal_height,
)
from planner.plan.bill import RentedOffer, rented_offer
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer
from pricing.catalog.price_age import OLD_DAYS
from pricing.catalog.regions import known_regions, placed, regions_of
from pricing.errors import InputError
from pricing.hardware import matching
from pricing.listing import counted
from pricing.money import price_text

_SHOWN, _LEAST_SHOWN = 40, 5
_AROUND = 12  # lines of a screen that are not rows: the table's head, what is said, the prompt
SORTS: dict[str, Callable[[Offer], tuple[Any, ...]]] = {
    "price": lambda o: (o.usd_per_hour, o.place),
    "gpu-price": attrgetter("usd_per_gpu_hour", "place"),
    "provider": lambda o: (o.place, o.purchase),
    "gpu": lambda o: (o.gpu, o.usd_per_hour, o.place),
    "gpus": lambda o: (o.gpu_count, o.usd_per_hour, o.place),
    "age": lambda o: (o.as_of, o.place),
}
GROUPS: dict[str, Callable[[Offer], str]] = {
    "gpu": lambda o: o.gpu,
    "provider": lambda o: o.provider,
}
_CHEAPEST = ("price", "gpu-price")  # the sorts that say what is cheapest


@dataclass(frozen=True, slots=True, kw_only=True)
class _PriceQuery:
    """Which prices are wanted; empty or None leaves a thing open.

    Attributes:
        providers: any of them.
        gpu_names: any of these models, as people write them.
        counts: fewest and most GPUs of the machine.
        regions: prices that hold in one of them.
        max_price: USD an hour for the machine.
        purchases: any of these ways of buying.
        sort: one of SORTS.
        group_by: one of GROUPS: of each group only its cheapest offer; None: every offer.
    """

    providers: tuple[str, ...] = ()
    gpu_names: tuple[str, ...] = ()
    counts: tuple[int, int] | None = None
    regions: tuple[str, ...] = ()
    max_price: Decimal | None = None
    purchases: tuple[str, ...] = ()
    sort: str = "price"
    group_by: str | None = None

    @property
    def order(self) -> str:
        """The one of SORTS that says what is cheapest."""
        return self.sort if self.sort in _CHEAPEST else "price"

    def find(self, catalog: Catalog) -> list[Offer]:
        """Return the offers that are wanted, in order.

        Raises:
            InputError: a provider, a region or a GPU is not known.
        """
        check_known("--provider", self.providers, (o.provider for o in catalog.offers))
        regions = tuple(region.lower() for region in self.regions)
        check_known("--region", regions, known_regions(catalog.offers))
        placed_offers = (o for o in self._anywhere(catalog) if placed(o, regions) is not None)
        return sorted(placed_offers, key=SORTS[self.sort])

    def without_place(self, catalog: Catalog) -> int:
        """Return how many offers a region leaves out because nothing says where they are."""
        return sum(not regions_of(o) for o in self._anywhere(catalog)) if self.regions else 0

    def _anywhere(self, catalog: Catalog) -> list[Offer]:
        models = {gpu.name for name in self.gpu_names for gpu in matching(name)}
        return [offer for offer in catalog.offers if self._wants(offer, models)]

    def grouped(self, offers: list[Offer]) -> list[tuple[Offer, int | None]]:
        """Return the rows to show, in order, with the number of offers that each stands for.

        Of a group that is its cheapest offer, for each GPU where that is the order, else for the
        machine. Without groups each offer is a row, and there is no number.
        """
        if self.group_by is None:
            return [(offer, None) for offer in offers]
        cheapest = SORTS[self.order]
        groups: dict[str, list[Offer]] = {}
        for offer in offers:
            groups.setdefault(GROUPS[self.group_by](offer), []).append(offer)
        rows: list[tuple[Offer, int | None]]
        rows = [(min(group, key=cheapest), len(group)) for group in groups.values()]
        return sorted(rows, key=lambda row: SORTS[self.sort](row[0]))

    def _wants(self, offer: Offer, models: set[str]) -> bool:
        return (
            (not self.providers or offer.provider in self.providers)
            and (not models or offer.gpu in models)
            and (not self.counts or self.counts[0] <= offer.gpu_count <= self.counts[1])
            and (self.max_price is None or offer.usd_per_hour <= self.max_price)
            and (not self.purchases or offer.purchase in self.purchases)
        )


class ListedOffer(RentedOffer, frozen=True, kw_only=True):
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
        offers_in_group: of which this is the cheapest, where groups were asked for.
    """

    gpu_memory_gib: float
    vcpus: float | None
    ram_gib: float | None
    interconnect: str | None
    confidence: str
    notes: str
    stale: bool
    why: str | UnsetType = UNSET
    offers_in_group: int | UnsetType = UNSET


def list_prices(query: _PriceQuery, day: date, output: Output, *, why: bool) -> None:
    """Print the prices of a day that are wanted.

    Raises:
        InputError: as `Query.find`.
    """
    catalog = load_catalog(day, say=output.say)
    offers = query.find(catalog)
    rows = query.grouped(offers)
    _show(rows, query, catalog, output, why=why)
    if output.verbose and not why:
        for offer, _ in rows[:_SHOWN]:
            output.say(f"why: {offer.place}, {offer.purchase}: {_reason(offer, catalog)}")


def _show(
    rows: list[tuple[Offer, int | None]],
    query: _PriceQuery,
    catalog: Catalog,
    output: Output,
    *,
    why: bool,
) -> None:
    documents = [
        msgspec.structs.replace(_document(offer, catalog, why=why), offers_in_group=count or UNSET)
        for offer, count in rows
    ]
    if print_if_json(documents, output):
        return
    fitting = min(_SHOWN, max(_LEAST_SHOWN, terminal_height() - _AROUND))
    shown = rows if output.format != "table" or output.verbose else rows[:fitting]
    print_table(_table(shown, query, catalog, output, why=why), output)
    hidden = len(rows) - len(shown)
    more = f"; {hidden} more with -v" if hidden else ""
    offers = sum(count or 1 for _, count in rows)
    groups = "" if query.group_by is None else f" in {counted(len(rows), 'group')}"
    output.say(
        f"{counted(offers, 'offer')}{groups} as of {catalog.as_of}{more}. Prices read "
        f"{catalog.oldest} to {catalog.newest}; 'old' is over {OLD_DAYS} days, or undated."
    )
    if hidden := query.without_place(catalog):
        left_out = f"{counted(hidden, 'offer')} left out: no region is published"
        output.say(f"{left_out}. Without --region they are listed.")
    if rows:
        output.say(_cheapest([offer for offer, _ in rows], catalog, by=SORTS[query.order]))


def _table(
    shown: list[tuple[Offer, int | None]],
    query: _PriceQuery,
    catalog: Catalog,
    output: Output,
    *,
    why: bool,
) -> Table:
    """Return the rows; on a screen provider, type and region are one name, as `quote` takes it."""
    screen = output.format == "table"
    columns: tuple[str, ...] = ("offer",) if screen else ("provider", "type", "region")
    age = "age" if screen else ""
    columns += ("GPUs", "GPU", "purchase", "USD/h", "read", age)
    columns += ("offers",) if any(count is not None for _, count in shown) else ()
    columns += ("why",) if why else ()
    by_gpu = query.group_by == "gpu"
    model_given = query.gpu_names and not by_gpu  # of which GPU they are, was asked
    return Table(
        columns=columns,
        rows=tuple(_row(offer, count, catalog, output, why=why) for offer, count in shown),
        right=frozenset(("USD/h", "GPUs", "offers")),
        spare=("read", "GPU", "purchase") if model_given else ("read", "purchase"),
        cut=frozenset(("offer", "GPU")),
        uncut=frozenset(("purchase", "read", age)),
    )


def _row(
    offer: Offer, count: int | None, catalog: Catalog, output: Output, *, why: bool
) -> tuple[str, ...]:
    named = (offer.provider, offer.instance_type, offer.region_text)
    cells: tuple[str, ...] = (
        *((offer.place,) if output.format == "table" else named),
        f"{offer.gpu_count:g}",
        offer.gpu,
        offer.purchase,
        price_cell(offer.usd_per_hour, output),
        offer.as_of.isoformat(),
        _mark(offer, catalog, " old" if output.format != "table" else ""),
    )
    cells += () if count is None else (str(count),)
    return (*cells, _reason(offer, catalog)) if why else cells


def _cheapest(
    offers: list[Offer], catalog: Catalog, *, by: Callable[[Offer], tuple[Any, ...]]
) -> str:
    """Return the answer: the cheapest offer, and the cheapest whose price is not old."""
    lowest = min(offers, key=by)
    if not catalog.is_stale(lowest):
        return f"Cheapest: {_priced(lowest)}."
    fresh = min((o for o in offers if not catalog.is_stale(o)), key=by, default=None)
    if fresh is None:
        return f"Cheapest: {_priced(lowest)}. All prices here are out of date."
    return f"Cheapest: {_priced(lowest)} (old). Cheapest that is not old: {_priced(fresh)}."


def _priced(offer: Offer) -> str:
    return f"{offer.place}, {offer.purchase}, ${price_text(offer.usd_per_hour)} an hour"


def _mark(offer: Offer, catalog: Catalog, old: str) -> str:
    """Return what is said beside an old price."""
    age = offer.age(catalog.as_of)
    days = (catalog.as_of - offer.as_of).days
    return age if age == "old" else f"{days} days{old}" if age == "ageing" else ""


def _reason(offer: Offer, catalog: Catalog) -> str:
    """Return where the price was read, since when it holds, and which rows gave way to it."""
    validity = f"holds from {offer.starts}"
    if offer.valid_until is not None:
        validity += f" to {offer.valid_until}"
    if catalog.as_of < offer.starts:
        validity += ", the first price known"
    parts = [f"{offer.source}, read {offer.date_text}, {offer.confidence}", validity]
    parts += [f"instead of {_short(row)}" for row in _superseded(offer, catalog)]
    return "; ".join((*parts, offer.notes) if offer.notes else parts)


def _superseded(offer: Offer, catalog: Catalog) -> list[Offer]:
    rows = catalog.history(offer.provider, offer.instance_type, offer.region, offer.purchase)
    return [row for row in reversed(rows) if row != offer]


def _short(row: Offer) -> str:
    until = f" to {row.valid_until}" if row.valid_until is not None else ""
    ending = ", withdrawn" if row.withdrawn else ""
    return f"{price_text(row.usd_per_hour)} from {row.starts}{until}{ending} ({row.source})"


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
        confidence=offer.confidence,
        stale=catalog.is_stale(offer),
        gpu_memory_gib=offer.gpu_memory_gib,
        vcpus=offer.vcpus,
        ram_gib=offer.ram_gib,
        interconnect=offer.interconnect,
        notes=offer.notes,
        why=_reason(offer, catalog) if why else UNSET,
    )


@click.group(
    name="prices",
    cls=DefaultGroup,
    default_for=lambda _: "list",
    epilog="Example: gpucost prices --gpu H100 --gpus 8 --max-price 40 --sort price",
)
def command() -> None:
    """List known prices with source and date; `update` fetches them, `check` finds problems."""


@command.command(name="list", epilog="Example: gpucost prices list --gpu L4 --sort gpu-price")
@options(
    "provider gpu.prices gpus.prices region.prices max-price purchase.prices sort group-by as-of "
    "why",
    sort={"type": click.Choice(tuple(SORTS))},
    group_by={"type": click.Choice(tuple(GROUPS))},
)
@output_options
@refreshing_prices
def list_(as_of: date | None, why: bool, output: Output, **filters: object) -> None:  # noqa: FBT001 - click's
    """List known prices with source and date; this is the default."""
    list_prices(_PriceQuery(**filters), as_of or today(), output, why=why)  # type: ignore[arg-type] # click's


@command.command(name="history", epilog="Example: gpucost prices history --gpu H100")
@options("provider gpu.prices purchase.history as-of.history")
@output_options
def history(
    providers: tuple[str, ...],
    gpu_names: tuple[str, ...],
    purchases: tuple[str, ...],
    as_of: date | None,
    output: Output,
) -> None:
    """Show how prices changed: the first and last reading of each, with a sparkline."""
    print_history(gpu_names, providers, purchases, as_of or today(), output)


@command.command(name="update", epilog="Example: gpucost prices update --provider digitalocean")
@options(
    "provider region.prices as-of accept-jumps feed url from", **{"from": {"type": (str, str)}}
)
@output_options
@click.pass_context
def update(
    ctx: click.Context, /, *, catalog: tuple[str, str] | None, output: Output, **filters: object
) -> None:
    """Read public price feeds and every provider whose credentials are set.

    Prices are stored in the user's cache; those that look wrong are left out and reported.
    """
    exclusive = {"as_of": "--as-of"} if catalog is None else {"feeds": "--feed", "urls": "--url"}
    for name, flag in exclusive.items():
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InputError(f"{flag} does not go with gpucost prices update; leave it out.")
    if catalog is None:
        filters["as_of"] = None
    update_prices(UpdateRequest(catalog=catalog, **filters), output)  # type: ignore[arg-type] # click's


@command.command(name="check", epilog="Example: gpucost prices check -f json")
@options("provider as-of")
@output_options
def check(providers: tuple[str, ...], as_of: date | None, output: Output) -> None:
    """Show how old the prices are, where they disagree, and which look wrong."""
    check_prices(as_of or today(), providers, output)
