"""`gpucost quote`: price one use of one machine, or one option of a plan."""

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from gpucost.output import Output, Table, output_options, print_json, print_table
from gpucost.parameters import DAY, DURATION, SIZE, today
from gpucost.plan_file import find_option, load_plan
from planner.baseline import parse_place
from planner.profile.model import PURCHASES
from pricing.catalog import load_catalog
from pricing.errors import InputError
from pricing.quote import Usage, quote, to_json


@click.command(
    name="quote",
    epilog="Example: gpucost quote digitalocean/gpu-h100x8-640gb --duration 90m --egress 100GiB",
)
@click.argument("what", metavar="PROVIDER/TYPE[/REGION]|PLAN")
@click.option("--duration", type=DURATION, help="Life of the instance, billing start to end: 90m.")
@click.option("--count", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--purchase", type=click.Choice(PURCHASES), default="on_demand", show_default=True)
@click.option("--egress", type=SIZE, help="Data sent out, such as 100GiB.")
@click.option("--storage", type=SIZE, help="Volume storage kept meanwhile: 500GiB.")
@click.option("--as-of", type=DAY, help="Prices and rules of that day.  [default: today]")
@click.option("--option", "option_id", metavar="JOB/ID", help="The option of PLAN to price.")
@output_options
def command(what: str, option_id: str | None, output: Output, **asked: Any) -> None:
    """Price one use of one machine, to the cent, with the formula of every line."""
    if option_id is not None or what.endswith(".json") or Path(what).is_file():
        document = _of_plan(what, option_id, asked["duration"])
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
    return to_json(quote(offer, usage))


def _of_plan(what: str, option_id: str | None, duration: Decimal | None) -> dict[str, Any]:
    if option_id is None:
        raise click.UsageError("which option? Give --option JOB/ID, such as --option train/o1.")
    if duration is not None:
        raise InputError("a plan's option has its own hours; leave out --duration.")
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


def show_quote(document: dict[str, Any], output: Output) -> None:
    """Print a quote document."""
    if output.format == "json":
        print_json(document)
        return
    offer = document["offer"]
    place = "/".join(
        part for part in (offer["provider"], offer["instance_type"], offer["region"]) if part != "*"
    )
    title = f"{place} x{document['count']}, {offer['purchase']}, price of {offer['as_of']}"
    rows = [(line["what"], line["usd"], line["how"], line["rule"]) for line in document["lines"]]
    rows.append(("total", document["total"], "rounded half up to cents", ""))
    wide = 4 if output.verbose or output.format != "table" else 3
    print_table(
        Table(
            columns=("line", "USD", "how", "rule")[:wide],
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
