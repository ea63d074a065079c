"""`gpucost compare`: the same work on two sets of machines, such as one of 8 GPUs or 8 of one."""

from datetime import date

import click

from gpucost.arguments.parameters import DAY, today
from gpucost.live.sources import read_sources
from gpucost.prices.cache import load_catalog, refreshing_prices
from gpucost.views.output import Output, Table, output_options, print_json, print_table
from planner.choice.comparison import ComparedMachines, Comparison, compare
from pricing.errors import InputError
from pricing.money import show

_SHARE_SHOWN = 0.005


@click.command(
    name="compare",
    epilog="Example: gpucost compare 8xH100 8x1xH100 --provider digitalocean",
)
@click.argument("words_typed", nargs=-1, required=True, metavar="A [vs] B [SOURCE...]")
@click.option("--provider", "providers", multiple=True, help="Use only this provider (repeatable).")
@click.option(
    "--as-of", type=DAY, help="Use the prices and billing rules of this day.  [default: today]"
)
@output_options
@refreshing_prices
def command(
    words_typed: tuple[str, ...], providers: tuple[str, ...], as_of: date | None, output: Output
) -> None:
    """Compare the same work on A and on B: 8xH100 is one machine with 8, 8x1xH100 are 8 with 1.

    A and B may also be PROVIDER/TYPE or 8xPROVIDER/TYPE. With a SOURCE it is the measured job.
    """
    words = [word for word in words_typed if word.lower() != "vs"]
    if len(words) < 2:  # noqa: PLR2004 - A and B
        raise click.UsageError("name two sets of machines: gpucost compare 8xH100 8x1xH100.")
    profiles = read_sources(words[2:], output.say) if words[2:] else ()
    if len(profiles) > 1:
        names = ", ".join(profile.job.name for profile in profiles)
        raise InputError(f"one job at a time: {names}. Import the one that you mean with --job.")
    catalog = load_catalog(as_of or today(), say=output.say)
    profile = profiles[0] if profiles else None
    comparison = compare((words[0], words[1]), catalog, providers, profile)
    if output.format == "json":
        print_json(comparison)
        return
    columns = ("", *(side.name for side in comparison.sides))
    print_table(Table(columns=columns, rows=_rows(comparison)), output)
    output.say(_verdict(comparison))


def _rows(comparison: Comparison) -> tuple[tuple[str, ...], ...]:
    def row(name: str, *cells: str) -> tuple[str, ...]:
        return (name, *cells)

    sides = comparison.sides
    return (
        row("machines", *(f"{s.machines} x {s.provider}/{s.instance_type}" for s in sides)),
        row(
            "USD/h",
            *(f"{show(s.usd_per_hour)} ({show(s.usd_per_gpu_hour)} a GPU)" for s in sides),
        ),
        row("links", *(s.links for s in sides)),
        row("wall time", *map(_hours, sides)),
        row("USD", *map(_dollars, sides)),
    )


def _hours(side: ComparedMachines) -> str:
    hours = side.hours
    wide = hours.high - hours.low > _SHARE_SHOWN * hours.mid
    return f"{hours.mid:,.0f} h" + (f" ({hours.low:,.0f}-{hours.high:,.0f})" if wide else "")


def _dollars(side: ComparedMachines) -> str:
    low, mid, high = side.usd
    return f"{show(mid)}" + (f" ({show(low)}-{show(high)})" if low != high else "")


def _verdict(comparison: Comparison) -> str:
    first, second = comparison.sides
    cheaper, dearer = sorted(comparison.sides, key=lambda side: side.usd[1])
    more = dearer.usd[1] - cheaper.usd[1]
    links = comparison.links_usd
    slower = f" Slower links cost ${show(links)} of it." if links and links > 0 else ""
    return (
        f"For {comparison.work}: {cheaper.name} is expected to cost ${show(more)} less.{slower} "
        f"Break-even: {second.name} is cheaper while it takes less than "
        f"{comparison.break_even:.2f} times as long as {first.name}; jobs that do not talk to "
        f"each other cost ${show(first.usd_per_gpu_hour)} and ${show(second.usd_per_gpu_hour)} a "
        "GPU-hour."
    )
