"""What `gpucost plan` may be asked: its options, in the order in which the help shows them."""

from collections.abc import Callable
from typing import Any

import click

from gpucost.arguments.later import later_option
from gpucost.arguments.parameters import (
    AMOUNT,
    BOOT_DISK,
    COUNTS,
    DAY,
    DESTINATION,
    DOLLARS,
    DURATION,
    GRID,
    HORIZON,
    HOST_SHARE,
    HOURS_A_MONTH,
    INCREASE,
    PUE,
    SIZE,
    SLOWDOWN,
)
from gpucost.arguments.usage_options import EGRESS_TO
from planner.choice.requirements import (
    BOOT_DISK_GIB,
    ENGINEER_USD_PER_HOUR,
    HORIZON_MONTHS,
    INCLUDABLE,
    OBJECTIVES,
)
from pricing.catalog.offer import PURCHASES


def plan_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add every option of `gpucost plan` but what is printed."""
    declared = (
        click.option(
            "--objective",
            type=click.Choice(OBJECTIVES),
            help="What is minimised.",
            default="cost",
            show_default=True,
        ),
        click.option(
            "--deadline", type=DURATION, help="A run must end within this, 95 % sure: 24h."
        ),
        click.option("--budget", type=DOLLARS, help="The period must cost less, 95 % sure."),
        click.option("--provider", "providers", multiple=True, help="Only this one (repeatable)."),
        click.option(
            "--region",
            "regions",
            multiple=True,
            help="Data stay there: a region, eu, us, apac, a country (repeatable).",
        ),
        click.option("--gpu", "gpus", multiple=True, help="Only this model (repeatable)."),
        click.option("--gpus", "gpu_counts", type=COUNTS, help="GPUs to use: 8 or 1..8."),
        click.option(
            "--purchase",
            "purchases",
            type=click.Choice(PURCHASES),
            multiple=True,
            help="Ways of buying.  [default: on_demand]",
        ),
        click.option(
            "--hours-per-month",
            type=HOURS_A_MONTH,
            help="Hours held a month.",
        ),
        click.option(
            "--work-total",
            type=AMOUNT,
            help="Units of one run; the plan is then per run.",
        ),
        click.option("--egress", type=SIZE, help="Data sent out in the period: 500GiB."),
        click.option("--egress-to", type=DESTINATION, help=EGRESS_TO),
        click.option("--storage", type=SIZE, help="Data kept for the period: 2TiB."),
        click.option(
            "--boot-disk",
            type=BOOT_DISK,
            default=f"{BOOT_DISK_GIB}GiB",
            show_default=True,
            help="Disk that each machine boots from, today's too; none leaves it out.",
        ),
        click.option(
            "--public-address/--no-public-address",
            default=True,
            show_default=True,
            help="Each machine has a public IPv4 address, today's too.",
        ),
        click.option("--slo-ms", type=AMOUNT, help="Latency target, milliseconds."),
        click.option(
            "--consolidate/--no-consolidate",
            default=None,
            help="Pack jobs on fewer GPUs.  [default: with several jobs]",
        ),
        click.option(
            "--max-slowdown",
            type=SLOWDOWN,
            default=1.2,
            show_default=True,
            help="Most a job may slow down.",
        ),
        click.option(
            "--max-moves",
            type=click.IntRange(min=0),
            help="Most jobs that may move to share a GPU.",
        ),
        click.option(
            "--time-limit",
            type=DURATION,
            help="End the search for a better packing after this long, with the best found so far.",
        ),
        click.option(
            "--current", metavar="PROVIDER/TYPE[/REGION]", help="What runs the jobs today."
        ),
        click.option(
            "--price",
            "price_usd_per_hour",
            type=DOLLARS,
            help="What one of today's machines costs an hour, in place of the list price.",
        ),
        click.option(
            "--whole-machine",
            is_flag=True,
            help="A job on part of a machine bears all of its bill.",
        ),
        click.option(
            "--machine-only",
            is_flag=True,
            help="Leave boot disks, addresses and the disk of the data set out of every bill.",
        ),
        click.option(
            "--include", type=click.Choice(INCLUDABLE), multiple=True, help="Offer these too."
        ),
        click.option(
            "--launchable",
            "launchable_only",
            is_flag=True,
            help="Only options that `gpucost provision` can start.",
        ),
        click.option(
            "--spot-trace",
            type=click.Path(dir_okay=False),
            help="Availability of spot capacity: lost work, wall time and deadlines from it.",
        ),
        click.option(
            "--checkpoint-time",
            type=DURATION,
            default="2m",
            show_default=True,
            help="Time to write one checkpoint.",
        ),
        click.option(
            "--restart-time",
            type=DURATION,
            default="6m",
            show_default=True,
            help="Time from a new machine to work going on.",
        ),
        click.option(
            "--engineer-rate",
            type=DOLLARS,
            default=str(ENGINEER_USD_PER_HOUR),
            show_default=True,
            help="Dollars an hour of engineering: a change must earn its work.",
        ),
        click.option(
            "--horizon",
            "horizon_months",
            type=HORIZON,
            metavar="DURATION",
            help=f"Time in which it must: 3mo, 1y.  [default: {HORIZON_MONTHS}mo; a run: one]",
        ),
        click.option(
            "--grid-g-per-kwh", type=GRID, help="Grams of CO2e for each kWh, for the carbon."
        ),
        click.option("--pue", type=PUE, help="Energy of the site over that of its machines."),
        click.option(
            "--host-power-share",
            type=HOST_SHARE,
            help="Share of a node's power that is not its GPUs': 0.2 to 0.4.",
        ),
        click.option("--as-of", type=DAY, help="Prices and rules of that day.  [default: today]"),
        click.option(
            "-o", "--output", "target", help="Write plan.json here; - is standard output."
        ),
        click.option("--report", "report_path", help="Write the markdown report here."),
        click.option(
            "--fail-over", type=DOLLARS, help="Exit 7 when the recommended cost is above this."
        ),
        click.option(
            "--fail-over-increase",
            type=INCREASE,
            help="Exit 7 when it is above --base's by more than this: 500 or 10%.",
        ),
        click.option(
            "--base", type=click.Path(dir_okay=False), help="An earlier plan.json to compare with."
        ),
        later_option("--allow-gpu-change", is_flag=True),
        click.option(
            "--history",
            type=click.Path(dir_okay=False),
            help="What became of earlier predictions: it centres and widens these.",
        ),
        click.option(
            "--probe",
            "probes",
            multiple=True,
            metavar="FILE",
            type=click.Path(dir_okay=False),
            help="The same job measured elsewhere (repeatable): other GPUs, other numbers of them.",
        ),
    )
    for option in reversed(declared):
        command = option(command)
    return command


PLAN_GROUPS = {
    "Job": "--hours-per-month --work-total --deadline --slo-ms --egress --egress-to --storage "
    "--checkpoint-time --restart-time --current --probe --history --jobs-by",
    "Machine": "--provider --region --gpu --gpus --include --launchable --boot-disk "
    "--public-address --machine-only --spot-trace --grid-g-per-kwh --pue --host-power-share",
    "Money": "--objective --budget --purchase --price --whole-machine --engineer-rate --horizon "
    "--as-of --fail-over --fail-over-increase --base",
    "Fleet": "--consolidate --max-slowdown --max-moves --time-limit --allow-gpu-change",
    "Output": "--output --report --lang --fx --all --format --quiet --verbose --no-color --help",
}
