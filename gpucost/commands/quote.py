"""`gpucost quote`: price one use of one or several machines, or one option of a plan."""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import click
from click.core import ParameterSource

from gpucost.arguments.parameters import DAY, DURATION, INSTANT, MOST_MACHINES, SIZE, today
from gpucost.files.plan_file import DEFAULT_PLAN
from gpucost.files.quote_documents import (
    OWN,
    Asked,
    find_offer,
    offer_document,
    own_document,
    plan_document,
)
from gpucost.prices.cache import load_catalog
from gpucost.views.output import Output, output_options
from gpucost.views.quote import show_documents
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import PURCHASES
from pricing.errors import InputError

# Fields of `pricing.billing.usage.Usage` by the option that fills them: --snapshots 100GB.
_EXTRAS: dict[str, tuple[str, click.ParamType[Any], str]] = {
    "snapshots": ("snapshot_bytes", SIZE, "Snapshots kept meanwhile: 100GB."),
    "object-storage": ("object_storage_bytes", SIZE, "Objects kept meanwhile: 1TiB."),
    "object-egress": ("object_egress_bytes", SIZE, "Data sent out of the object storage."),
    "ingress": ("ingress_bytes", SIZE, "Data taken in from the internet."),
    "inter-zone": ("inter_zone_bytes", SIZE, "Data sent between zones of the region."),
    "inter-region": ("inter_region_bytes", SIZE, "Data sent to other regions."),
    "addresses": ("addresses", click.IntRange(0, MOST_MACHINES), "Public IPv4 addresses."),
    "nat-gateways": ("nat_gateways", click.IntRange(0, MOST_MACHINES), "NAT gateways."),
    "nat-traffic": ("nat_bytes", SIZE, "Data sent through NAT gateways."),
    "control-plane": (
        "control_plane",
        click.STRING,
        "Kubernetes control plane: standard, ha, extended, free.",
    ),
    "boot": ("boot_s", DURATION, "Machine time before work starts, on top: 5m."),
    "idle-tail": ("idle_tail_s", DURATION, "Machine time after work, on top: 30m."),
}
_NOT_OF_A_PLAN = frozenset({"what", "option_id", "format_", "quiet", "verbose", "no_color"})


def _extra_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each of _EXTRAS, named after the field it fills."""
    for flag, (field, kind, text) in reversed(_EXTRAS.items()):
        command = click.option(f"--{flag}", field, type=kind, help=text)(command)
    return command


@click.command(
    name="quote",
    epilog="Example: gpucost quote digitalocean/gpu-h100x8-640gb --duration 90m --egress 100GiB",
)
@click.argument("what", nargs=-1, metavar="PROVIDER/TYPE[/REGION]...|PLAN|own")
@click.option("--duration", type=DURATION, help="Life of the instance, billing start to end: 90m.")
@click.option("--monthly", is_flag=True, help="A month instead: 730 hours, and 744 beside them.")
@click.option(
    "--count", type=click.IntRange(1, MOST_MACHINES), default=1, show_default=True, help="Machines."
)
@click.option(
    "--purchase",
    type=click.Choice(PURCHASES),
    default="on_demand",
    show_default=True,
    help="How it is bought.",
)
@click.option("--egress", "egress_bytes", type=SIZE, help="Data sent out, such as 100GiB.")
@click.option("--storage", "storage_bytes", type=SIZE, help="Volume storage meanwhile: 500GiB.")
@click.option("--storage-kind", help="The provider's kind of volume, such as ssd or network.")
@_extra_options
@click.option("--start", type=INSTANT, help="Bill from that instant on, price by price. In UTC.")
@click.option("--as-of", type=DAY, help="Prices and rules of that day.  [default: today]")
@click.option("--option", "option_id", metavar="JOB/ID", help="The option of PLAN to price.")
@output_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    what: tuple[str, ...],
    option_id: str | None,
    output: Output,
    **asked: Any,
) -> None:
    """Price one use of machines, to the cent, with the formula of every line.

    Several offers are put side by side. `own` is the machine in [own_hardware] of gpucost.toml.
    """
    if option_id is not None or any(name.endswith(".json") for name in what):
        documents = [_of_plan(ctx, what, option_id)]
    elif not what:
        raise click.UsageError("price what? Give PROVIDER/TYPE, or --option JOB/ID of a plan.")
    else:
        documents = _of_offers(what, output, **asked)
    show_documents(documents, output)


def _of_offers(
    what: tuple[str, ...],
    output: Output,
    *,
    duration: Decimal | None,
    monthly: bool,
    purchase: str,
    start: datetime | None,
    as_of: date | None,
    **use: Any,
) -> list[dict[str, Any]]:
    places = [name for name in what if name != OWN]
    if monthly and (duration is not None or start is not None):
        raise click.UsageError("--monthly is a month of no date; leave out --duration and --start.")
    if start is not None and as_of is not None:
        raise click.UsageError("--start says the day; leave out --as-of.")
    if places and duration is None and not monthly:
        raise click.UsageError("how long? Give --duration, such as --duration 90m, or --monthly.")
    day = start.date() if start is not None else as_of or today()
    asked = Asked(
        day=day,
        duration_s=None if monthly else duration,
        purchase=purchase,
        start=start,
        use={name: value for name, value in use.items() if value is not None},
    )
    catalog = load_catalog(day, say=output.say)
    _check_places(places, asked, catalog)
    return [
        own_document(tuple(find_offer(place, asked, catalog) for place in places))
        if name == OWN
        else offer_document(name, asked, catalog)
        for name in what
    ]


def _check_places(places: list[str], asked: Asked, catalog: Catalog) -> None:
    """Name every offer that is not known, not only the first."""
    problems: list[str] = []
    for place in places:
        try:
            find_offer(place, asked, catalog)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)


def _of_plan(ctx: click.Context, what: tuple[str, ...], option_id: str | None) -> dict[str, Any]:
    """An option of a plan has its own hours, machines, data and day: nothing is overridden."""
    if len(what) > 1:
        raise click.UsageError("one plan at a time: give PLAN and --option JOB/ID.")
    given = [
        parameter.opts[0]
        for parameter in ctx.command.params
        if parameter.name not in _NOT_OF_A_PLAN
        and ctx.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise InputError(
            f"{flag} cannot change an option of a plan; leave it out, or plan again with it."
            for flag in given
        )
    if option_id is None:
        raise click.UsageError("which option? Give --option JOB/ID, such as --option train/o1.")
    return plan_document(what[0] if what else DEFAULT_PLAN, option_id)
