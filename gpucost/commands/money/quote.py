"""`gpucost quote`: price one use of one or several machines, or one option of a plan."""

from typing import Any

import click

from gpucost.arguments.command_group import DefaultGroup, SubCommand
from gpucost.arguments.parameters import DAY, DOLLARS, DURATION, INSTANT, MOST_MACHINES, SIZE
from gpucost.arguments.usage_options import usage_options
from gpucost.views.output import Output, output_options
from pricing.catalog.offer import PURCHASES

_TYPED = (
    "duration",
    "monthly",
    "purchase",
    "price",
    "start",
    "as_of",
)  # the others are fields of Usage


class _OfPlan(SubCommand):
    """An option of a plan has its own hours, machines, data and day: nothing is overridden."""

    foreign = "{flag} cannot change an option of a plan; leave it out, or plan again with it."


def _meant(arguments: list[str]) -> str:
    named = any(word == "--option" or word.startswith("--option=") for word in arguments)
    return "plan" if named or any(word.endswith(".json") for word in arguments) else "offer"


@click.group(
    name="quote",
    cls=DefaultGroup,
    meant=_meant,
    epilog="Example: gpucost quote digitalocean/gpu-h100x8-640gb --duration 90m --egress 100GiB",
)
def command() -> None:
    """Price one use of machines, to the cent, with the formula of every line.

    Several offers are put side by side. `own` is the machine in [own_hardware] of gpucost.toml.
    """


@command.command(
    name="offer", epilog="Example: gpucost quote offer digitalocean/gpu-h100x1-80gb --monthly"
)
@click.argument("what", nargs=-1, metavar="PROVIDER/TYPE[/REGION]...|own")
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
    help="How it is bought. A commitment is owed whole, however long it is used.",
)
@click.option("--price", type=DOLLARS, help="Your own price of one machine an hour, USD: 12.50.")
@click.option(
    "--interrupted",
    is_flag=True,
    default=None,
    help="The provider ends the spot machines at the end of --duration.",
)
@click.option("--egress", "egress_bytes", type=SIZE, help="Data sent out, such as 100GiB.")
@click.option("--storage", "storage_bytes", type=SIZE, help="Volume storage meanwhile: 500GiB.")
@click.option("--storage-kind", help="The provider's kind of volume, such as ssd or network.")
@usage_options
@click.option("--start", type=INSTANT, help="Bill from that instant on, price by price. In UTC.")
@click.option("--as-of", type=DAY, help="Prices and rules of that day.  [default: today]")
@output_options
def offer(what: tuple[str, ...], output: Output, **asked: Any) -> None:
    """Price one use of one or several offers side by side; `own` is your own machine."""
    from gpucost.prices.quoting import Wanted, quote_offers  # noqa: PLC0415 - only here
    from gpucost.views.quote import show_documents  # noqa: PLC0415 - only here

    if not what:
        raise click.UsageError("price what? Give PROVIDER/TYPE, or --option JOB/ID of a plan.")
    typed = {name: asked.pop(name) for name in _TYPED}
    show_documents(quote_offers(what, Wanted(**typed, use=asked), output.say), output)


@command.command(
    name="plan", cls=_OfPlan, epilog="Example: gpucost quote plan plan.json --option train/o1"
)
@click.argument("what", nargs=-1, metavar="[PLAN]")
@click.option("--option", "option_id", metavar="JOB/ID", help="The option of PLAN to price.")
@output_options
def plan(what: tuple[str, ...], option_id: str | None, output: Output) -> None:
    """Price an option of a plan, with its own hours, machines, data and day."""
    from gpucost.files.plan_file import DEFAULT_PLAN  # noqa: PLC0415 - only here
    from gpucost.files.quote_documents import plan_document  # noqa: PLC0415 - only here
    from gpucost.views.quote import show_documents  # noqa: PLC0415 - only here

    if len(what) > 1:
        raise click.UsageError("one plan at a time: give PLAN and --option JOB/ID.")
    if option_id is None:
        raise click.UsageError("which option? Give --option JOB/ID, such as --option train/o1.")
    show_documents([plan_document(what[0] if what else DEFAULT_PLAN, option_id)], output)
