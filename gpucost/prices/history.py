"""`gpucost prices history`: what machines cost on other days, as a table with a sparkline each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from gpucost.arguments.parameters import check_known
from gpucost.prices.cache import load_catalog
from gpucost.views.output import Output, Table, price_cell, print_json, print_table
from pricing.catalog.offer import ANY_REGION, EVERYWHERE
from pricing.catalog.price_history import SeenPrice, bundled_history, by_price, read_from
from pricing.errors import InputError
from pricing.hardware import matching
from pricing.money import without_zeros

_SHOWN, _WIDTH = 40, 24
_BARS = "▁▂▃▄▅▆▇█"
_COLUMNS = (
    "provider",
    "type",
    "region",
    "GPU",
    "purchase",
    "first read",
    "USD/h",
    "last read",
    "USD/h now",
    "change",
    "over time",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedPrice:
    """What a machine cost on one day: USD an hour, how sure that is, and where it was read.

    Attributes:
        date: day of the reading.
        usd_per_hour: of the whole machine.
        confidence: high, medium or low.
        source: where it was read.
    """

    date: date
    usd_per_hour: Decimal
    confidence: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSeries:
    """The readings of one price, the oldest first, as `gpucost prices history -f json` prints them.

    Attributes:
        provider: as in the catalog.
        region: the provider's name for it.
        instance_type: the provider's size.
        gpu: canonical model.
        gpu_count: GPUs of one machine.
        purchase: how it is bought, as in the catalog.
        prices: at least two.
    """

    provider: str
    region: str
    instance_type: str
    gpu: str
    gpu_count: float
    purchase: str
    prices: tuple[DatedPrice, ...]


def print_history(
    gpu_names: tuple[str, ...],
    providers: tuple[str, ...],
    purchases: tuple[str, ...],
    day: date,
    output: Output,
) -> None:
    """Print the readings of every price that is wanted, until a day.

    Raises:
        InputError: a provider or a GPU is not known, or nothing was read of what is wanted.
    """
    models = {gpu.name for name in gpu_names for gpu in matching(name)}
    everything = (*bundled_history(), *read_from(load_catalog(day, say=output.say).rows))
    check_known("--provider", providers, (one.provider for one in everything))
    wanted = [
        one
        for one in everything
        if one.seen_on <= day
        and (not models or one.gpu in models)
        and (not providers or one.provider in providers)
        and one.purchase in purchases
    ]
    series = [known for known in by_price(wanted).values() if len(known) > 1]
    if not series:
        raise InputError(
            "no such price was read on two days; ask for less, or for another --purchase."
        )
    if output.format == "json":
        print_json([_document(known) for known in series])
        return
    _show(series, output)


def sparkline(known: Sequence[SeenPrice], start: date, end: date) -> str:
    """Return the price over equal steps of time, lowest to highest; blank before the first one."""
    prices = [one.usd_per_hour for one in known]
    low, span = min(prices), max(prices) - min(prices)
    days = (end - start).days
    drawn = []
    for step in range(_WIDTH):
        day = date.fromordinal(start.toordinal() + round(days * (step + 1) / _WIDTH))
        read = [one.usd_per_hour for one in known if one.seen_on <= day]
        at = 0 if not read or not span else int((read[-1] - low) / span * (len(_BARS) - 1))
        drawn.append(_BARS[at] if read else " ")
    return "".join(drawn)


def _show(series: Sequence[Sequence[SeenPrice]], output: Output) -> None:
    start = min(known[0].seen_on for known in series)
    end = max(known[-1].seen_on for known in series)
    ordered = sorted(series, key=lambda known: -abs(_change(known)))
    short = output.format == "table" and not output.verbose
    shown = ordered[:_SHOWN] if short else ordered
    rows = tuple(_row(known, start, end, output) for known in shown)
    right = frozenset(("USD/h", "USD/h now", "change"))
    print_table(Table(columns=_COLUMNS, rows=rows, right=right), output)
    hidden = len(ordered) - len(shown)
    moved = sum(_change(known) != 0 for known in ordered)
    more = f"; {hidden} more with -v" if hidden else ""
    output.say(
        f"{len(ordered)} prices read on two days or more, {start} to {end}; {moved} of them "
        f"changed{more}. Each line of bars goes from its own lowest to its highest price."
    )


def _row(known: Sequence[SeenPrice], start: date, end: date, output: Output) -> tuple[str, ...]:
    first, last = known[0], known[-1]
    return (
        last.provider,
        last.instance_type,
        ANY_REGION if last.region == EVERYWHERE else last.region,
        f"{last.gpu_count:g}x {last.gpu}",
        last.purchase,
        first.seen_on.isoformat(),
        price_cell(first.usd_per_hour, output),
        last.seen_on.isoformat(),
        price_cell(last.usd_per_hour, output),
        f"{_change(known):+.1%}" if _change(known) else "0%",
        sparkline(known, start, end),
    )


def _change(known: Sequence[SeenPrice]) -> Decimal:
    """Return by what share the last price is above the first."""
    return known[-1].usd_per_hour / known[0].usd_per_hour - 1


def _document(known: Sequence[SeenPrice]) -> PriceSeries:
    last = known[-1]
    return PriceSeries(
        provider=last.provider,
        region=last.region,
        instance_type=last.instance_type,
        gpu=last.gpu,
        gpu_count=last.gpu_count,
        purchase=last.purchase,
        prices=tuple(
            DatedPrice(
                date=one.seen_on,
                usd_per_hour=without_zeros(one.usd_per_hour),
                confidence=one.confidence,
                source=one.source,
            )
            for one in known
        ),
    )
