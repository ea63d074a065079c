"""`gpucost prices`: the known prices, how they moved; `update` and `check` them."""

from datetime import date

import click
from click.core import ParameterSource

from gpucost.arguments.command_group import DefaultGroup
from gpucost.arguments.parameters import COUNTS, DAY, DOLLARS, today
from gpucost.views.output import Output, output_options
from pricing.catalog.offer import PURCHASES
from pricing.errors import InputError

_PROVIDER = click.option(
    "--provider", "providers", multiple=True, help="Only this provider (repeatable)."
)
_REGION = click.option(
    "--region", "regions", multiple=True, help="Prices that hold there: a region, eu, us ..."
)
_AS_OF = click.option("--as-of", type=DAY, help="Prices of that day.  [default: today]")
_SORTS = ("price", "gpu-price", "provider", "gpu", "gpus", "age")
_GROUPS = ("gpu", "provider")


@click.group(
    name="prices",
    cls=DefaultGroup,
    meant=lambda _: "list",
    epilog="Example: gpucost prices --gpu H100 --gpus 8 --max-price 40 --sort price",
)
def command() -> None:
    """List known prices, with source and date; `update` fetches them, `check` looks for trouble."""


@command.command(name="list", epilog="Example: gpucost prices list --gpu L4 --sort gpu-price")
@_PROVIDER
@click.option("--gpu", "gpu_names", multiple=True, help="Only this GPU model (repeatable).")
@click.option("--gpus", "counts", type=COUNTS, help="GPUs in the machine: 8 or 1..8.")
@_REGION
@click.option("--max-price", type=DOLLARS, help="Most dollars an hour for the machine.")
@click.option(
    "--purchase",
    "purchases",
    type=click.Choice(PURCHASES),
    multiple=True,
    help="Only bought this way (repeatable).",
)
@click.option(
    "--sort", type=click.Choice(_SORTS), default="price", show_default=True, help="Order."
)
@click.option(
    "--group-by",
    type=click.Choice(_GROUPS),
    help="One row for each: its cheapest offer, and how many there are.",
)
@_AS_OF
@click.option("--why", is_flag=True, help="Say beside each row why it is here.")
@output_options
def list_(as_of: date | None, why: bool, output: Output, **wanted: object) -> None:  # noqa: FBT001 - click's
    """List known prices, with source and date; what is meant where nothing else is named."""
    from gpucost.prices.listing import Query, list_prices  # noqa: PLC0415 - only here

    list_prices(Query(**wanted), as_of or today(), output, why=why)  # type: ignore[arg-type] # click's


@command.command(name="history", epilog="Example: gpucost prices history --gpu H100")
@_PROVIDER
@click.option("--gpu", "gpu_names", multiple=True, help="Only this GPU model (repeatable).")
@click.option(
    "--purchase",
    "purchases",
    type=click.Choice(PURCHASES),
    multiple=True,
    default=("on_demand",),
    show_default=True,
    help="Only bought this way (repeatable).",
)
@click.option("--as-of", type=DAY, help="Readings until that day.  [default: today]")
@output_options
def history(
    providers: tuple[str, ...],
    gpu_names: tuple[str, ...],
    purchases: tuple[str, ...],
    as_of: date | None,
    output: Output,
) -> None:
    """Show how prices moved: the first and the last reading of each, and a line of bars."""
    from gpucost.prices.history import print_history  # noqa: PLC0415 - only here

    print_history(gpu_names, providers, purchases, as_of or today(), output)


@command.command(name="update", epilog="Example: gpucost prices update --provider digitalocean")
@_PROVIDER
@_REGION
@_AS_OF
@click.option("--accept-jumps", is_flag=True, help="Keep prices that moved by over x3.")
@click.option(
    "--feed",
    "feeds",
    multiple=True,
    help="Only this public feed (repeatable); `none`: only providers with credentials.",
)
@click.option(
    "--url", "urls", multiple=True, metavar="FEED=URL", help="Where a feed is read instead."
)
@click.option(
    "--from",
    "catalog",
    type=(str, str),
    metavar="FEED FILE|URL",
    help="Read one feed from a file, folder or address; --as-of says of which day.",
)
@output_options
@click.pass_context
def update(
    ctx: click.Context, /, *, catalog: tuple[str, str] | None, output: Output, **wanted: object
) -> None:
    """Read public price feeds, and every provider whose credentials are there.

    The answers are kept in the user's cache; a price that looks wrong is kept out, and said.
    """
    from gpucost.prices.update import UpdateRequest, update_prices  # noqa: PLC0415 - only here

    alone = {"as_of": "--as-of"} if catalog is None else {"feeds": "--feed", "urls": "--url"}
    for name, flag in alone.items():
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InputError(f"{flag} does not go with gpucost prices update; leave it out.")
    if catalog is None:
        wanted["as_of"] = None
    update_prices(UpdateRequest(catalog=catalog, **wanted), output)  # type: ignore[arg-type] # click's


@command.command(name="check", epilog="Example: gpucost prices check -f json")
@_PROVIDER
@_AS_OF
@output_options
def check(providers: tuple[str, ...], as_of: date | None, output: Output) -> None:
    """Say how old the prices are, where they disagree, and which look wrong."""
    from gpucost.prices.check import check_prices  # noqa: PLC0415 - only here

    check_prices(as_of or today(), providers, output)
