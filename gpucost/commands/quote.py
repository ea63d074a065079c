"""`gpucost quote`: price one use of one machine, or one option of a plan."""

import json
from datetime import date
from decimal import Decimal
from typing import Any

import click
from click.core import ParameterSource

from gpucost.output import Output, Table, output_options, print_json, print_table
from gpucost.parameters import DAY, DURATION, MOST_MACHINES, SIZE, today
from gpucost.plan_file import DEFAULT_PLAN, find_option, load_plan
from planner.baseline import parse_place
from planner.profile.model import PURCHASES
from pricing.catalog import load_catalog
from pricing.dates import STALE_AFTER_DAYS
from pricing.errors import InputError
from pricing.money import plain
from pricing.offer import EVERYWHERE
from pricing.quote import Usage, quote, to_json

_MILLIONTH = Decimal("0.000001")


@click.command(
    name="quote",
    epilog="Example: gpucost quote digitalocean/gpu-h100x8-640gb --duration 90m --egress 100GiB",
)
@click.argument("what", required=False, metavar="PROVIDER/TYPE[/REGION]|PLAN")
@click.option("--duration", type=DURATION, help="Life of the instance, billing start to end: 90m.")
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
@click.option("--egress", type=SIZE, help="Data sent out, such as 100GiB.")
@click.option("--storage", type=SIZE, help="Volume storage kept meanwhile: 500GiB.")
@click.option("--as-of", type=DAY, help="Prices and rules of that day.  [default: today]")
@click.option("--option", "option_id", metavar="JOB/ID", help="The option of PLAN to price.")
@output_options
@click.pass_context
def command(
    ctx: click.Context, /, what: str | None, option_id: str | None, output: Output, **asked: Any
) -> None:
    """Price one use of one machine, to the cent, with the formula of every line."""
    if option_id is not None or (what is not None and what.endswith(".json")):
        _refuse_with_plan(ctx)
        document = _of_plan(what or DEFAULT_PLAN, option_id)
    elif what is None:
        raise click.UsageError("price what? Give PROVIDER/TYPE, or --option JOB/ID of a plan.")
    else:
        document = _of_offer(what, **asked)
    show_quote(document, output)


def _of_offer(
    what: str,
    *,
    duration: Decimal | None,
    count: int,
    purchase: str,
    egress: int | None,
    storage: int | None,
    as_of: date | None,
) -> dict[str, Any]:
    if duration is None:
        raise click.UsageError("how long? Give --duration, such as --duration 90m.")
    provider, instance_type, region = parse_place(what)
    day = as_of or today()
    offer = load_catalog(day).find(provider, instance_type, region, purchase)
    usage = Usage(
        duration_s=duration,
        count=count,
        egress_bytes=egress or 0,
        storage_bytes=storage or 0,
        as_of=day,
    )
    document = to_json(quote(offer, usage))
    if region is not None and offer.region == EVERYWHERE:
        document["warnings"].append(
            f"{provider} has one price everywhere; whether it sells in {region} was not checked."
        )
    return document


def _refuse_with_plan(ctx: click.Context) -> None:
    """An option of a plan has its own hours, machines, data and day: nothing is overridden."""
    given = [
        name
        for name in ("duration", "count", "purchase", "egress", "storage", "as_of")
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise InputError(
            f"--{name.replace('_', '-')} cannot change an option of a plan; leave it out, or plan "
            "again with it."
            for name in given
        )


def _of_plan(what: str, option_id: str | None) -> dict[str, Any]:
    if option_id is None:
        raise click.UsageError("which option? Give --option JOB/ID, such as --option train/o1.")
    plan = load_plan(what)
    option = find_option(plan, option_id)
    return {
        "schema": "gpucost.quote/v1",
        "as_of": plan["as_of"],
        "currency": plan["currency"],
        "total": option["cost"]["mid"],
        "offer": option["offer"],
        "count": option["count"],
        "duration_s": round(option["hours"]["mid"] * 3600),
        "billed_s": None,
        "lines": option["cost"]["lines"],
        "warnings": plan["warnings"],
    }


def _shown(usd: str, output: Output) -> str:
    """Return an exact amount, in a table to a millionth of a dollar."""
    if output.format != "table":
        return usd
    amount = Decimal(usd)
    return plain(min(amount, amount.quantize(_MILLIONTH), key=lambda a: len(str(a))))


def _is_stale(document: dict[str, Any]) -> bool:
    day, read = (
        date.fromisoformat(text) for text in (document["as_of"], document["offer"]["as_of"])
    )
    return (day - read).days > STALE_AFTER_DAYS


def show_quote(document: dict[str, Any], output: Output) -> None:
    """Print a quote document."""
    if output.format == "json":
        print_json(document)
        return
    offer = document["offer"]
    place = "/".join(
        part for part in (offer["provider"], offer["instance_type"], offer["region"]) if part != "*"
    )
    read = f"read {offer['as_of']}" + (", stale" if _is_stale(document) else "")
    title = f"{place} x{document['count']}, {offer['purchase']}, price {read}"
    rows = [
        (line["what"], _shown(line["usd"], output), line["how"], line["rule"], place, read)
        for line in document["lines"]
    ]
    rows.append(("total", document["total"], "rounded half up to cents", "", place, read))
    wide = {"csv": 6, "md": 4}.get(output.format, 4 if output.verbose else 3)
    print_table(
        Table(
            columns=("line", "USD", "how", "rule", "offer", "price")[:wide],
            rows=tuple(row[:wide] for row in rows),
            right=frozenset(("USD",)),
            title=title,
        ),
        output,
    )
    for warning in document["warnings"]:
        output.say(f"note: {warning}")
    if output.verbose:
        output.say(f"source: {offer['source']}")
        output.say(json.dumps(document["offer"]))
