"""`gpucost prices check` and `history`: how old prices are, where they disagree, how they moved."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import groupby

from gpucost.arguments.parameters import check_known
from gpucost.prices.cache import load_catalog, price_folder
from gpucost.views.output import Output, Table, price_cell, print_if_json, print_table
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import ANY_REGION, EVERYWHERE, Offer, read_from
from pricing.catalog.price_age import SeenPrice, bundled_history, by_price
from pricing.errors import InputError
from pricing.hardware import matching
from pricing.message import Message
from pricing.money import price_text, without_zeros
from pricing.refresh import store
from pricing.refresh.integrity_gate import offer_faults

CONFLICT = Decimal("0.01")
"""Two readings of one day that differ by more than this share are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceAge:
    """How old one provider's prices are.

    Attributes:
        provider: such as "aws".
        offers: prices in force.
        newest: day of the newest of them.
        oldest: day of the oldest.
        days: age of the newest.
        stale: how many are over 60 days old, or undated.
        refreshed: how many come from the cache.
    """

    provider: str
    offers: int
    newest: date
    oldest: date
    days: int
    stale: int
    refreshed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPrices:
    """What `gpucost prices check` found: the age of each provider's prices, and sentences.

    Attributes:
        as_of: day of the question.
        providers: how old the prices of each are.
        conflicts: readings of one day that disagree, a sentence each.
        doubtful: rows that fail a check, a sentence each.
    """

    as_of: date
    providers: tuple[PriceAge, ...]
    conflicts: tuple[str, ...]
    doubtful: tuple[str, ...]


def check_prices(day: date, providers: tuple[str, ...], output: Output) -> None:
    """Print the age of each provider's prices, conflicts, and rows that fail the gate.

    Raises:
        InputError: a provider is not in the catalog.
    """
    catalog = load_catalog(day, say=output.say)
    check_known("--provider", providers, (offer.provider for offer in catalog.offers))
    ages = [age for age in _ages(catalog) if not providers or age.provider in providers]
    conflicts = [text for name, text in _conflicts(catalog.rows) if _is_chosen(name, providers)]
    doubts = [text for name, text in _doubts(catalog.offers) if _is_chosen(name, providers)]
    checked = CheckedPrices(
        as_of=day, providers=tuple(ages), conflicts=tuple(conflicts), doubtful=tuple(doubts)
    )
    if print_if_json(checked, output):
        return
    columns = ("provider", "offers", "newest", "oldest", "days", "stale", "refreshed")
    rows = tuple(tuple(str(getattr(age, name)) for name in columns) for age in ages)
    right = frozenset(("offers", "days", "stale", "refreshed"))
    print_table(Table(columns=columns, rows=rows, right=right), output)
    for line in (*conflicts, *doubts):
        output.say(line)
    output.say(
        f"{len(conflicts)} conflicts over {CONFLICT:.0%}, {len(doubts)} doubtful rows. "
        f"`gpucost prices update` refreshes prices."
    )


def _is_chosen(provider: str, providers: tuple[str, ...]) -> bool:
    return not providers or provider in providers


def _ages(catalog: Catalog) -> Iterator[PriceAge]:
    refreshed = set(store.load(price_folder()).offers)
    for provider, group in groupby(catalog.offers, key=lambda offer: offer.provider):
        offers = tuple(group)
        newest = max(offer.as_of for offer in offers)
        yield PriceAge(
            provider=provider,
            offers=len(offers),
            newest=newest,
            oldest=min(offer.as_of for offer in offers),
            days=(catalog.as_of - newest).days,
            stale=sum(catalog.is_stale(offer) for offer in offers),
            refreshed=sum(offer in refreshed for offer in offers),
        )


def _conflicts(rows: Sequence[Offer]) -> Iterator[tuple[str, str]]:
    """Yield (provider, sentence) for each two readings of one offer and day that disagree."""

    def key(row: Offer) -> tuple[str, str, str, str, date]:
        return (row.provider, row.instance_type, row.region, row.purchase, row.as_of)

    dated = (row for row in rows if row.dated and not row.withdrawn and row.valid_until is None)
    for (provider, name, region, purchase, day), group in groupby(sorted(dated, key=key), key=key):
        prices = sorted({(row.usd_per_hour, row.source) for row in group})
        (low, low_source), (high, high_source) = prices[0], prices[-1]
        if high - low > CONFLICT * low:
            label = f"{provider}/{name}/{region}".removesuffix("/*")
            against = f"{price_text(low)} ({low_source}) against {price_text(high)} ({high_source})"
            yield provider, f"conflict: {label}, {purchase}, {day}: {against}"


def _doubts(offers: Sequence[Offer]) -> Iterator[tuple[str, str]]:
    """Yield (provider, sentence) for each type that the hardware table contradicts."""
    faults: dict[tuple[str, str, str], list[Offer]] = {}
    for offer in offers:
        for _, detail in offer_faults(offer):
            faults.setdefault((offer.provider, offer.name, detail), []).append(offer)
    for (provider, name, detail), wrong in faults.items():
        offer_text = f"{wrong[0].place}, {wrong[0].purchase}"
        which = offer_text if len(wrong) == 1 else f"{name} ({len(wrong)} prices)"
        yield provider, f"doubtful: {which}: {detail}"


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
    readings = (*bundled_history(), *read_from(load_catalog(day, say=output.say).rows))
    check_known("--provider", providers, (reading.provider for reading in readings))
    matching_readings = [
        reading
        for reading in readings
        if reading.seen_on <= day
        and (not models or reading.gpu in models)
        and (not providers or reading.provider in providers)
        and reading.purchase in purchases
    ]
    series = [prices for prices in by_price(matching_readings).values() if len(prices) > 1]
    if not series:
        raise InputError(Message("input.no-two-days"))
    if not print_if_json([_document(prices) for prices in series], output):
        _show(series, output)


def sparkline(readings: Sequence[SeenPrice], start: date, end: date) -> str:
    """Return the price over equal steps of time, lowest to highest; blank before the first one."""
    prices = [reading.usd_per_hour for reading in readings]
    low, span = min(prices), max(prices) - min(prices)
    days = (end - start).days
    drawn = []
    for step in range(_WIDTH):
        day = date.fromordinal(start.toordinal() + round(days * (step + 1) / _WIDTH))
        read = [reading.usd_per_hour for reading in readings if reading.seen_on <= day]
        at = 0 if not read or not span else int((read[-1] - low) / span * (len(_BARS) - 1))
        drawn.append(_BARS[at] if read else " ")
    return "".join(drawn)


def _show(series: Sequence[Sequence[SeenPrice]], output: Output) -> None:
    start = min(readings[0].seen_on for readings in series)
    end = max(readings[-1].seen_on for readings in series)
    ordered = sorted(series, key=lambda readings: -abs(_change(readings)))
    short = output.format == "table" and not output.verbose
    shown = ordered[:_SHOWN] if short else ordered
    rows = tuple(_row(readings, start, end, output) for readings in shown)
    right = frozenset(("USD/h", "USD/h now", "change"))
    print_table(Table(columns=_COLUMNS, rows=rows, right=right), output)
    hidden = len(ordered) - len(shown)
    moved = sum(_change(readings) != 0 for readings in ordered)
    more = f"; {hidden} more with -v" if hidden else ""
    output.say(
        f"{len(ordered)} prices read on two days or more, {start} to {end}; {moved} of them "
        f"changed{more}. Each sparkline is scaled to its own lowest and highest price."
    )


def _row(readings: Sequence[SeenPrice], start: date, end: date, output: Output) -> tuple[str, ...]:
    first, last = readings[0], readings[-1]
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
        f"{_change(readings):+.1%}" if _change(readings) else "0%",
        sparkline(readings, start, end),
    )


def _change(readings: Sequence[SeenPrice]) -> Decimal:
    """Return by what share the last price is above the first."""
    return readings[-1].usd_per_hour / readings[0].usd_per_hour - 1


def _document(readings: Sequence[SeenPrice]) -> PriceSeries:
    last = readings[-1]
    return PriceSeries(
        provider=last.provider,
        region=last.region,
        instance_type=last.instance_type,
        gpu=last.gpu,
        gpu_count=last.gpu_count,
        purchase=last.purchase,
        prices=tuple(
            DatedPrice(
                date=reading.seen_on,
                usd_per_hour=without_zeros(reading.usd_per_hour),
                confidence=reading.confidence,
                source=reading.source,
            )
            for reading in readings
        ),
    )
