"""`gpucost prices`: the known prices, with source and date."""

from datetime import date
from decimal import Decimal
from typing import Any

import click

from gpucost.output import Output, Table, output_options, print_json, print_table
from gpucost.parameters import COUNTS, DAY, DOLLARS, check_known, today
from planner.profile.model import PURCHASES
from pricing.catalog import Catalog, load_catalog
from pricing.errors import NotBuiltYetError
from pricing.hardware import matching
from pricing.money import plain
from pricing.offer import Offer
from pricing.quote import offer_json

_SHOWN = 40
_SORTS: dict[str, Any] = {
    "price": lambda o: (o.usd_per_hour, o.place),
    "gpu-price": lambda o: (o.usd_per_hour / Decimal(str(o.gpu_count)), o.place),
    "provider": lambda o: (o.place, o.purchase),
    "gpu": lambda o: (o.gpu, o.usd_per_hour, o.place),
    "gpus": lambda o: (o.gpu_count, o.usd_per_hour, o.place),
    "age": lambda o: (o.as_of, o.place),
}


@click.command(
    name="prices", epilog="Example: gpucost prices --gpu H100 --gpus 8 --max-price 40 --sort price"
)
@click.argument("action", required=False, type=click.Choice(("update", "check")))
@click.option("--provider", "providers", multiple=True, help="Only this provider (repeatable).")
@click.option("--gpu", "gpu_names", multiple=True, help="Only this GPU model (repeatable).")
@click.option("--gpus", "counts", type=COUNTS, help="GPUs in the machine: 8 or 1..8.")
@click.option("--region", "regions", multiple=True, help="Only this region (repeatable).")
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
@output_options
def command(
    action: str | None, sort: str, as_of: date | None, output: Output, **wanted: Any
) -> None:
    """List known prices, with source and date."""
    if action is not None:
        raise NotBuiltYetError(f"gpucost prices {action} is not built yet; listing works.")
    catalog = load_catalog(as_of or today())
    check_known("--provider", wanted["providers"], (o.provider for o in catalog.offers))
    check_known("--region", wanted["regions"], (o.region for o in catalog.offers))
    gpus = {gpu.name for name in wanted.pop("gpu_names") for gpu in matching(name)}
    found = sorted(
        (offer for offer in catalog.offers if _wanted(offer, gpus, **wanted)), key=_SORTS[sort]
    )
    _show(found, catalog, output)


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
        and (not regions or offer.region in (*regions, "*"))
        and (max_price is None or offer.usd_per_hour <= max_price)
        and (not purchases or offer.purchase in purchases)
    )


def _show(found: list[Offer], catalog: Catalog, output: Output) -> None:
    if output.format == "json":
        print_json([_json(offer, catalog) for offer in found])
        return
    short = output.format == "table" and not output.verbose
    shown = found[:_SHOWN] if short else found
    columns = ("provider", "type", "region", "GPUs", "GPU", "purchase", "USD/h", "read", "")
    rows = tuple(_row(offer, catalog) for offer in shown)
    print_table(Table(columns=columns, rows=rows, right=frozenset(("USD/h", "GPUs"))), output)
    hidden = len(found) - len(shown)
    more = f"; {hidden} more with -v" if hidden else ""
    output.say(
        f"{len(found)} offers as of {catalog.as_of}{more}. Prices read {catalog.oldest} to "
        f"{catalog.newest}; 'stale' is older than 30 days or undated."
    )


def _row(offer: Offer, catalog: Catalog) -> tuple[str, ...]:
    return (
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


def _json(offer: Offer, catalog: Catalog) -> dict[str, Any]:
    return {
        **offer_json(offer),
        "gpu_memory_gib": offer.gpu_memory_gib,
        "vcpus": offer.vcpus,
        "ram_gib": offer.ram_gib,
        "interconnect": offer.interconnect,
        "confidence": offer.confidence,
        "notes": offer.notes,
        "stale": catalog.is_stale(offer),
    }
