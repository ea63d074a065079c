"""`gpucost prices check`: how old the prices are, where they disagree, which look wrong."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import groupby

from gpucost.arguments.parameters import check_known
from gpucost.prices.cache import load_catalog, price_folder
from gpucost.views.output import Output, Table, print_json, print_table
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer
from pricing.money import price_text
from pricing.refresh import store
from pricing.refresh.integrity_gate import offer_faults

CONFLICT = Decimal("0.01")
"""Two readings of one day that differ by more than this share are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Age:
    """How old one provider's prices are.

    Attributes:
        provider: such as "aws".
        offers: prices in force.
        newest: day of the newest of them.
        oldest: day of the oldest.
        days: age of the newest.
        stale: how many are over 30 days old and may have risen by over a fifth, or are undated.
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
    providers: tuple[Age, ...]
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
    conflicts = [text for name, text in _conflicts(catalog.rows) if _asked(name, providers)]
    doubts = [text for name, text in _doubts(catalog.offers) if _asked(name, providers)]
    if output.format == "json":
        print_json(
            CheckedPrices(
                as_of=day,
                providers=tuple(ages),
                conflicts=tuple(conflicts),
                doubtful=tuple(doubts),
            )
        )
        return
    columns = ("provider", "offers", "newest", "oldest", "days", "stale", "refreshed")
    rows = tuple(tuple(str(getattr(age, name)) for name in columns) for age in ages)
    right = frozenset(("offers", "days", "stale", "refreshed"))
    print_table(Table(columns=columns, rows=rows, right=right), output)
    for line in (*conflicts, *doubts):
        output.say(line)
    output.say(
        f"{len(conflicts)} conflicts over {CONFLICT:.0%}, {len(doubts)} doubtful rows. "
        f"`gpucost prices update` reads prices anew."
    )


def _asked(provider: str, providers: tuple[str, ...]) -> bool:
    return not providers or provider in providers


def _ages(catalog: Catalog) -> Iterator[Age]:
    refreshed = set(store.load(price_folder()).offers)
    for provider, group in groupby(catalog.offers, key=lambda offer: offer.provider):
        offers = tuple(group)
        newest = max(offer.as_of for offer in offers)
        yield Age(
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
        (low, one), (high, other) = prices[0], prices[-1]
        if high - low > CONFLICT * low:
            place = f"{provider}/{name}/{region}".removesuffix("/*")
            against = f"{price_text(low)} ({one}) against {price_text(high)} ({other})"
            yield provider, f"conflict: {place}, {purchase}, {day}: {against}"


def _doubts(offers: Sequence[Offer]) -> Iterator[tuple[str, str]]:
    """Yield (provider, sentence) for each type that the hardware table contradicts."""
    found: dict[tuple[str, str, str], list[Offer]] = {}
    for offer in offers:
        for _, detail in offer_faults(offer):
            found.setdefault((offer.provider, offer.name, detail), []).append(offer)
    for (provider, name, detail), wrong in found.items():
        one = f"{wrong[0].place}, {wrong[0].purchase}"
        which = one if len(wrong) == 1 else f"{name} ({len(wrong)} prices)"
        yield provider, f"doubtful: {which}: {detail}"
