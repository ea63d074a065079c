"""`gpucost capacity`: do we need more GPUs?"""

from datetime import date
from decimal import Decimal

import click

from gpucost.arguments.parameters import COUNTS, DAY, DOLLARS, DURATION, MAPPING, today
from gpucost.files.job_trace import load_trace
from gpucost.prices.gpu_price import PricedBy, gpu_price
from gpucost.views.capacity import print_capacity
from gpucost.views.output import Output, output_options, print_json
from planner.capacity.capacity import CapacityQuestion, Target, capacity
from planner.capacity.queueing import ORDERS, Order
from pricing.catalog.offer import PURCHASES

_QUANTILE = 0.95


@click.command(
    name="capacity", epilog="Example: gpucost capacity jobs.csv --gpus 8..64 --now 32 --gpu H100"
)
@click.argument("trace", metavar="TRACE")
@click.option("--gpus", type=COUNTS, required=True, metavar="A..B", help="Sizes of the pool.")
@click.option("--now", type=click.IntRange(min=1), help="GPUs of today, to compare with.")
@click.option(
    "--max-wait",
    type=DURATION,
    default="1h",
    show_default=True,
    help="95 % of jobs shall wait no longer than that.",
)
@click.option(
    "--order",
    type=click.Choice(ORDERS),
    default=ORDERS[0],
    show_default=True,
    help="Who is served next: small jobs fill gaps, or nobody overtakes.",
)
@click.option("--job-gpus", type=COUNTS, metavar="N|A..B", help="Only jobs of so many GPUs.")
@click.option(
    "--map",
    "mapped",
    type=MAPPING,
    multiple=True,
    metavar="COLUMN=SLOT[:UNIT]",
    help="A column's slot: submit start end duration gpus limit job. Units: ms s min h d.",
)
@click.option("--type", "place", metavar="PROVIDER/TYPE[/REGION]", help="The machines of the pool.")
@click.option("--gpu", metavar="MODEL", help="Or the cheapest machine with this GPU.")
@click.option("--price", type=DOLLARS, help="Or your own price of one GPU an hour, USD.")
@click.option(
    "--purchase",
    type=click.Choice(PURCHASES),
    default="on_demand",
    show_default=True,
    help="How machines are bought.",
)
@click.option(
    "--draws",
    type=click.IntRange(0, 1000),
    default=20,
    show_default=True,
    help="Other orders of the trace's weeks to replay, for the range.",
)
@click.option("--as-of", type=DAY, help="Prices of that day.  [default: today]")
@output_options
def command(
    trace: str,
    gpus: tuple[int, int],
    now: int | None,
    max_wait: Decimal,
    order: Order,
    job_gpus: tuple[int, int] | None,
    mapped: tuple[tuple[str, str], ...],
    place: str | None,
    gpu: str | None,
    price: Decimal | None,
    purchase: str,
    draws: int,
    as_of: date | None,
    output: Output,
) -> None:
    """Say whether more GPUs are needed: a trace of jobs is replayed on pools of other sizes.

    TRACE is a table with a row a job: when it was submitted, how long it ran, how many GPUs it
    held. CSV of any kind, or `sacct -P`; .gz is read as is.
    """
    day = as_of or today()
    named = PricedBy(place=place, gpu=gpu, price=price, purchase=purchase)
    each = gpu_price(named, day, output.say)
    file, reading = load_trace(trace, mapped, job_gpus)
    asked = CapacityQuestion(
        least=gpus[0],
        most=gpus[1],
        now=now,
        target=Target(quantile=_QUANTILE, wait_s=float(max_wait)),
        order=order,
        price=each,
        draws=draws,
    )
    found = capacity(
        reading, file, asked, day, lambda size: output.say(f"replaying on {size} GPUs ...")
    )
    if output.format == "json":
        print_json(found)
    else:
        print_capacity(found, output)
