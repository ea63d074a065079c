"""`gpucost compare`: the same work on two sets of machines, such as one of 8 GPUs or 8 of one."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal

import click
from msgspec import structs

from gpucost.arguments.parameters import options, today
from gpucost.live.sources import read_sources
from gpucost.prices.cache import load_catalog, refreshing_prices
from gpucost.views.output import Output, Table, output_options, print_json, print_prose, print_table
from planner.choice.comparison import ComparedMachines, Comparison, compare
from pricing.errors import InputError
from pricing.message import Message
from pricing.money import show, whole_dollars

_SHARE_SHOWN = Decimal("0.005")
_BUSY = 0.5


@click.command(
    name="compare", epilog="Example: gpucost compare 8xH100 8x1xH100 --provider digitalocean"
)
@click.argument("words_typed", nargs=-1, required=True, metavar="A [vs] B [SOURCE...]")
@options("provider hours as-of lang")
@output_options
@refreshing_prices
def command(
    words_typed: tuple[str, ...],
    providers: tuple[str, ...],
    hours: float | None,
    as_of: date | None,
    lang: str,
    output: Output,
) -> None:
    """Compare the same work on A and on B: 8xH100 is one machine with 8, 8x1xH100 are 8 with 1.

    A and B may also be PROVIDER/TYPE or 8xPROVIDER/TYPE. With a SOURCE it is the measured job.
    """
    typed = [word for word in words_typed if word.lower() != "vs"]
    if len(typed) < 2:  # noqa: PLR2004 - A and B
        raise click.UsageError("name two sets of machines: gpucost compare 8xH100 8x1xH100.")
    profiles = read_sources(typed[2:], output.say) if typed[2:] else ()
    if len(profiles) > 1:
        names = ", ".join(profile.job.name for profile in profiles)
        raise InputError(f"one job at a time: {names}. Import the one that you mean with --job.")
    catalog = load_catalog(as_of or today(), say=output.say)
    profile = profiles[0] if profiles else None
    comparison = compare((typed[0], typed[1]), catalog, providers, profile, hours)
    if output.format == "json":
        print_json(comparison)
        return
    columns = ("", *(side.name for side in comparison.sides))
    rows = tuple((message.translate_to(lang), *cells) for message, cells in _rows(comparison, lang))
    print_table(Table(columns=columns, rows=rows), output)
    if output.format == "table":
        for message in _verdict(comparison, " ".join(typed[2:])):
            print_prose(message.translate_to(lang))


def _rows(comparison: Comparison, lang: str) -> Iterator[tuple[Message, tuple[str, ...]]]:
    sides = comparison.sides
    yield (
        Message("compare.machines"),
        tuple(f"{s.machines} x {s.provider}/{s.instance_type}" for s in sides),
    )
    yield (
        Message("compare.hourly"),
        tuple(
            Message(
                "compare.each", usd=show(s.usd_per_hour), gpu=show(s.usd_per_gpu_hour)
            ).translate_to(lang)
            for s in sides
        ),
    )
    yield Message("compare.links"), tuple(_gpus(s).translate_to(lang) for s in sides)
    yield Message("compare.hours"), tuple(_range(*_hours(s), unit="{} h") for s in sides)
    yield Message("compare.dollars"), tuple(_range(*s.usd, unit="${}") for s in sides)
    yield (
        Message("compare.read"),
        tuple(Message("compare.days", n=s.price_age_days).translate_to(lang) for s in sides),
    )


def _gpus(side: ComparedMachines) -> Message:
    if side.machines > 1:
        return Message("compare.network", n=side.gpus, gpu=side.gpu)
    links = side.links.partition(",")[0]
    return Message("compare.gpus", n=side.gpus, gpu=side.gpu, links=f", {links}" * (side.gpus > 1))


def _hours(side: ComparedMachines) -> tuple[Decimal, ...]:
    hours = side.hours
    return tuple(Decimal(repr(value)) for value in (hours.low, hours.mid, hours.high))


def _range(low: Decimal, mid: Decimal, high: Decimal, *, unit: str) -> str:
    """Return `841 h (768-2,854)`, or one figure where the range is narrow."""
    wide = high - low > _SHARE_SHOWN * mid
    spread = f" ({whole_dollars(low)}-{whole_dollars(high)})" if wide else ""
    return unit.format(whole_dollars(mid)) + spread


def _verdict(comparison: Comparison, sources: str) -> Iterator[Message]:
    """Yield what to take for one job, for independent ones, and what would say more."""
    first, second = comparison.sides
    low, mid, high = (hours / first.hours.mid for hours in structs.astuple(second.hours))
    even = float(comparison.break_even)
    cheap, dear = (first, second) if mid >= even else (second, first)
    yield Message(
        "compare.open" if low < even < high else "compare.take",
        cheap=cheap.name,
        dear=dear.name,
        usd=_range(*cheap.usd, unit="${}"),
        other=_range(*dear.usd, unit="${}"),
    )
    if abs(mid - 1.0) > _SHARE_SHOWN:
        yield Message(
            "compare.longer", name=second.name, first=first.name, low=low, mid=mid, high=high
        )
    less, more = sorted(comparison.sides, key=lambda side: side.usd_per_gpu_hour)
    usd, more_usd = show(less.usd_per_gpu_hour), show(more.usd_per_gpu_hour)
    if usd == more_usd:
        yield Message("compare.apart-alike", usd=usd)
    elif less.gpu == more.gpu:  # models differ in hours, too
        yield Message("compare.apart", name=less.name, usd=usd, other=more_usd)
    busy = comparison.busy_fraction
    if not sources:
        yield Message("compare.measure", words=f"{first.name} {second.name}")
    elif busy is not None and busy < _BUSY:
        yield Message("compare.idle", busy=busy, sources=sources)
