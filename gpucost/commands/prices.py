"""`gpucost prices`: the known prices with source and date; `update` and `check` them."""

from datetime import date
from decimal import Decimal
from typing import Any

import click
from click.core import ParameterSource

from gpucost.arguments.parameters import COUNTS, DAY, DOLLARS, check_known, today
from gpucost.prices.cache import load_catalog
from gpucost.views.output import Output, Table, output_options, print_json, print_table
from pricing.billing.quote import offer_json
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import EVERYWHERE, PURCHASES, Offer
from pricing.catalog.regions import known_regions, placed
from pricing.errors import InputError
from pricing.hardware import matching
from pricing.money import plain

_SHOWN = 40
_SORTS: dict[str, Any] = {
    "price": lambda o: (o.usd_per_hour, o.place),
    "gpu-price": lambda o: (o.usd_per_hour / Decimal(str(o.gpu_count)), o.place),
    "provider": lambda o: (o.place, o.purchase),
    "gpu": lambda o: (o.gpu, o.usd_per_hour, o.place),
    "gpus": lambda o: (o.gpu_count, o.usd_per_hour, o.place),
    "age": lambda o: (o.as_of, o.place),
}
_OF_UPDATE = ("accept_jumps", "catalog")
_OF_LIST = ("gpu_names", "counts", "max_price", "purchases", "sort", "why")
_FOREIGN: dict[str | None, tuple[str, ...]] = {
    None: _OF_UPDATE,
    "update": _OF_LIST,
    "check": (*_OF_LIST, *_OF_UPDATE, "regions"),
}
"""Parameters that an action does not take."""


@click.command(
    name="prices", epilog="Example: gpucost prices --gpu H100 --gpus 8 --max-price 40 --sort price"
)
@click.argument("action", required=False, type=click.Choice(("update", "check")))
@click.option("--provider", "providers", multiple=True, help="Only this provider (repeatable).")
@click.option("--gpu", "gpu_names", multiple=True, help="Only this GPU model (repeatable).")
@click.option("--gpus", "counts", type=COUNTS, help="GPUs in the machine: 8 or 1..8.")
@click.option(
    "--region", "regions", multiple=True, help="Prices that hold there: a region, eu, us ..."
)
@click.option("--max-price", type=DOLLARS, help="Most dollars an hour for the machine.")
@click.option(
    "--purchase",
    "purchases",
    type=click.Choice(PURCHASES),
    multiple=True,
    help="Only bought this way (repeatable).",
)
@click.option(
    "--sort", type=click.Choice(tuple(_SORTS)), default="price", show_default=True, help="Order."
)
@click.option("--as-of", type=DAY, help="Prices of that day.  [default: today]")
@click.option("--why", is_flag=True, help="Say beside each row why it is here.")
@click.option("--accept-jumps", is_flag=True, help="update: keep prices that moved by over x3.")
@click.option(
    "--from",
    "catalog",
    type=(click.Choice(("skypilot", "gpuhunt")), str),
    metavar="skypilot|gpuhunt PATH",
    help="update: import a catalog that you have; --as-of says of which day.",
)
@output_options
@click.pass_context
def command(
    ctx: click.Context, /, action: str | None, sort: str, as_of: date | None, **wanted: Any
) -> None:
    """List known prices, with source and date; `update` fetches them, `check` looks for trouble.

    update reads DigitalOcean (DIGITALOCEAN_TOKEN) and AWS (the SDK's chain, --region) and keeps
    the answers in the user's cache; a price that looks wrong is kept out, and said.
    """
    _refuse_foreign(ctx, action)
    output: Output = wanted.pop("output")
    accept_jumps, imported = wanted.pop("accept_jumps"), wanted.pop("catalog")
    if action == "update":
        from gpucost.prices.update import Asked, update_prices  # noqa: PLC0415 - only for update

        asked = Asked(
            providers=wanted["providers"],
            regions=wanted["regions"],
            accept_jumps=accept_jumps,
            catalog=imported,
            as_of=as_of,
        )
        update_prices(asked, output)
        return
    if action == "check":
        from gpucost.prices.check import check_prices  # noqa: PLC0415 - only for check

        check_prices(as_of or today(), wanted["providers"], output)
        return
    _list(sort, as_of or today(), output, **wanted)


def _refuse_foreign(ctx: click.Context, action: str | None) -> None:
    """An option that the action does not take is refused, not ignored."""
    foreign = list(_FOREIGN[action])
    if action == "update" and ctx.params["catalog"] is None:
        foreign.append("as_of")
    if action == "update" and ctx.params["catalog"] is not None:
        foreign.append("regions")
    flags = {option.name: option.opts[0] for option in ctx.command.params}
    given = [
        flags[name]
        for name in foreign
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if given:
        what = f"gpucost prices {action}" if action else "gpucost prices"
        raise InputError(f"{flag} does not go with {what}; leave it out." for flag in given)


def _list(sort: str, day: date, output: Output, **wanted: Any) -> None:
    catalog = load_catalog(day, say=output.say)
    check_known("--provider", wanted["providers"], (o.provider for o in catalog.offers))
    wanted["regions"] = tuple(region.lower() for region in wanted["regions"])
    check_known("--region", wanted["regions"], known_regions(catalog.offers))
    gpus = {gpu.name for name in wanted.pop("gpu_names") for gpu in matching(name)}
    why = wanted.pop("why")
    found = sorted(
        (offer for offer in catalog.offers if _wanted(offer, gpus, **wanted)), key=_SORTS[sort]
    )
    _show(found, catalog, output, why=why)
    if output.verbose and not why:
        for offer in found[:_SHOWN]:
            output.say(f"why: {offer.place}, {offer.purchase}: {_reason(offer, catalog)}")


def _wanted(
    offer: Offer,
    gpus: set[str],
    *,
    providers: tuple[str, ...],
    counts: tuple[int, int] | None,
    regions: tuple[str, ...],
    max_price: Decimal | None,
    purchases: tuple[str, ...],
) -> bool:
    return (
        (not providers or offer.provider in providers)
        and (not gpus or offer.gpu in gpus)
        and (not counts or counts[0] <= offer.gpu_count <= counts[1])
        and (offer.region == EVERYWHERE or placed(offer, regions) is not None)
        and (max_price is None or offer.usd_per_hour <= max_price)
        and (not purchases or offer.purchase in purchases)
    )


def _show(found: list[Offer], catalog: Catalog, output: Output, *, why: bool) -> None:
    if output.format == "json":
        print_json([_json(offer, catalog, why=why) for offer in found])
        return
    short = output.format == "table" and not output.verbose
    shown = found[:_SHOWN] if short else found
    columns: tuple[str, ...]
    columns = ("provider", "type", "region", "GPUs", "GPU", "purchase", "USD/h", "read", "")
    if why:
        columns += ("why",)
    rows = tuple(_row(offer, catalog, why=why) for offer in shown)
    print_table(Table(columns=columns, rows=rows, right=frozenset(("USD/h", "GPUs"))), output)
    hidden = len(found) - len(shown)
    more = f"; {hidden} more with -v" if hidden else ""
    output.say(
        f"{len(found)} offers as of {catalog.as_of}{more}. Prices read {catalog.oldest} to "
        f"{catalog.newest}; 'stale' is older than 30 days or undated."
    )


def _row(offer: Offer, catalog: Catalog, *, why: bool) -> tuple[str, ...]:
    cells: tuple[str, ...] = (
        offer.provider,
        offer.instance_type,
        offer.region,
        f"{offer.gpu_count:g}",
        offer.gpu,
        offer.purchase,
        plain(offer.usd_per_hour),
        offer.as_of.isoformat(),
        "stale" if catalog.is_stale(offer) else "",
    )
    return (*cells, _reason(offer, catalog)) if why else cells


def _reason(offer: Offer, catalog: Catalog) -> str:
    """Where the price was read, since when it holds, and which rows gave way to it."""
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
    return f"{plain(row.usd_per_hour)} from {row.starts}{until}{gone} ({row.source})"


def _json(offer: Offer, catalog: Catalog, *, why: bool) -> dict[str, Any]:
    document = {
        **offer_json(offer),
        "gpu_memory_gib": offer.gpu_memory_gib,
        "vcpus": offer.vcpus,
        "ram_gib": offer.ram_gib,
        "interconnect": offer.interconnect,
        "confidence": offer.confidence,
        "notes": offer.notes,
        "stale": catalog.is_stale(offer),
    }
    if why:
        document["why"] = _reason(offer, catalog)
    return document
