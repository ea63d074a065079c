"""`gpucost compare`: the same work on two sets of machines, such as one of 8 GPUs or 8 of one."""

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal

import click
from msgspec import structs

from gpucost.arguments.parameters import options, today
from gpucost.live.sources import read_sources
from gpucost.prices.cache import load_catalog, refreshing_prices
from gpucost.views.output import (
    Output,
    Table,
    language_option,
    output_options,
    print_if_json,
    print_prose,
    print_table,
)
from planner.choice.comparison import ComparedMachines, Comparison, compare
from pricing.catalog.price_age import age_of
from pricing.errors import InputError
from pricing.message import Message
from pricing.money import show, whole_dollars
from templates.language.translate import translate_text

_SHARE_SHOWN = Decimal("0.005")
_BUSY = 0.5


@click.command(
    name="compare", epilog="Example: gpucost compare 8xH100 8x1xH100 --provider digitalocean"
)
@click.argument("words_typed", nargs=-1, required=True, metavar="A [vs] B [SOURCE...]")
@options("provider hours as-of")
@output_options
@language_option
@refreshing_prices
def command(
    words_typed: tuple[str, ...],
    providers: tuple[str, ...],
    hours: float | None,
    as_of: date | None,
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
    if print_if_json(comparison, output):
        return
    columns = ("", *(side.name for side in comparison.sides))
    print_table(Table(columns=columns, rows=_rows(comparison.sides)), output)
    for warning in comparison.warnings:
        output.say(_text("note", text=warning))
    if output.format == "table":
        for sentence in _verdict(comparison, " ".join(typed[2:])):
            print_prose(sentence)


def _text(code: str, **params: str | float) -> str:
    return translate_text(Message(f"compare.{code}", **params))


def _rows(sides: Sequence[ComparedMachines]) -> tuple[tuple[str, ...], ...]:
    """Return what is compared, and its value on each side."""
    cells = {
        "machines": [f"{s.machines} x {s.provider}/{s.instance_type}" for s in sides],
        "hourly": [
            _text("each", usd=show(s.usd_per_hour), gpu=show(s.usd_per_gpu_hour)) for s in sides
        ],
        "links": [_gpus(s) for s in sides],
        "hours": [_range(*structs.astuple(s.hours), unit="{} h") for s in sides],
        "dollars": [_range(*s.usd, unit="${}") for s in sides],
        "read": [_read(s.price_age_days) for s in sides],
    }
    return tuple((_text(name), *values) for name, values in cells.items())


def _read(days: int | None) -> str:
    """Return how long ago a price was read, and that it is old: over 60 days, or of no day."""
    code = "undated" if days is None else "days-old" if age_of(days) == "old" else "days"
    return _text(code, n=days or 0)


def _gpus(side: ComparedMachines) -> str:
    if side.machines > 1:
        return _text("network", n=side.gpus, gpu=side.gpu)
    links = side.links.partition(",")[0]
    return _text("gpus", n=side.gpus, gpu=side.gpu, links=f", {links}" * (side.gpus > 1))


def _range(*ends: float | Decimal, unit: str) -> str:
    """Return `841 h (768-2,854)`, or one figure where the range is narrow."""
    low, mid, high = (Decimal(str(end)) for end in ends)
    wide = high - low > _SHARE_SHOWN * mid
    spread = f" ({whole_dollars(low)}-{whole_dollars(high)})" if wide else ""
    return unit.format(whole_dollars(mid)) + spread


def _verdict(comparison: Comparison, sources: str) -> Iterator[str]:
    """Yield what to take for one job, for independent ones, and what would say more."""
    first, second = comparison.sides
    low, mid, high = (hours / first.hours.mid for hours in structs.astuple(second.hours))
    even = float(comparison.break_even)
    cheap, dear = (first, second) if mid >= even else (second, first)
    yield _text(
        "open" if low < even < high else "take",
        cheap=cheap.name,
        dear=dear.name,
        usd=_range(*cheap.usd, unit="${}"),
        other=_range(*dear.usd, unit="${}"),
    )
    if abs(mid - 1.0) > _SHARE_SHOWN:
        yield _text("longer", name=second.name, first=first.name, low=low, mid=mid, high=high)
    less, more = sorted(comparison.sides, key=lambda side: side.usd_per_gpu_hour)
    usd, more_usd = show(less.usd_per_gpu_hour), show(more.usd_per_gpu_hour)
    if usd == more_usd:
        yield _text("apart-alike", usd=usd)
    elif less.gpu == more.gpu:  # models differ in hours, too
        yield _text("apart", name=less.name, usd=usd, other=more_usd)
    busy = comparison.busy_fraction
    if not sources:
        yield _text("measure", words=f"{first.name} {second.name}")
    elif busy is not None and busy < _BUSY:
        yield _text("idle", busy=busy, sources=sources)
