"""What `gpucost prices update` prints: what was read, what changed, what was kept out and why."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from gpucost.prices.keeping import StoredReading
from gpucost.views.output import Output, Table, print_json, print_table
from pricing.catalog.offer import Offer
from pricing.money import price_text

_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedPrice:
    """A price that was not taken: of which offer, the fault in a word, and the sentence.

    Attributes:
        offer: its place.
        fault: one word.
        detail: one sentence.
    """

    offer: str
    fault: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedPrices:
    """What one reading changed, as `gpucost prices update -f json` prints it.

    Attributes:
        provider: whose prices.
        source: where they were read.
        read_on: day of the reading.
        confirmed: prices that stayed as they were.
        new: offers that were not known, each with its price.
        changed: offers of another price than before, with the new one.
        withdrawn: offers that the provider has no longer.
        replaced: offers that a surer row stands for.
        kept_out: prices that were not taken.
        notes: of the reading.
    """

    provider: str
    source: str
    read_on: date
    confirmed: int
    new: tuple[str, ...]
    changed: tuple[str, ...]
    withdrawn: tuple[str, ...]
    replaced: tuple[str, ...]
    kept_out: tuple[RefusedPrice, ...]
    notes: tuple[str, ...]


def show(everything: tuple[StoredReading, ...], output: Output) -> None:
    """Print a row or a document a reading, and what changed on standard error."""
    if output.format == "json":
        print_json([_document(kept) for kept in everything])
    elif everything:
        columns = (
            "provider",
            "read",
            "prices",
            "new",
            "changed",
            "withdrawn",
            "replaced",
            "kept out",
            "from",
        )
        rows = tuple(_row(kept) for kept in everything)
        print_table(Table(columns=columns, rows=rows, right=frozenset(columns[2:8])), output)
    for kept in everything:
        for line in _details(kept, None if output.verbose else _NAMED):
            output.say(line)


def _row(kept: StoredReading) -> tuple[str, ...]:
    update = kept.update
    fresh = len(update.new) + len(update.changed) + len(update.same)
    counts = (fresh, *(len(n) for n in (update.new, update.changed, update.withdrawn)))
    return (
        kept.reading.provider,
        kept.reading.read_on.isoformat(),
        *(str(count) for count in counts),
        str(len(update.replaced)),
        str(len(kept.passed.kept_out) + len(update.outdated)),
        kept.reading.source,
    )


def _details(kept: StoredReading, most: int | None) -> Iterator[str]:
    update = kept.update
    yield from _some("new", [f"{_priced(offer)}" for offer in update.new], most)
    yield from _some("changed", [f"{_priced(offer)}" for offer in update.changed], most)
    yield from _some("withdrawn", [offer.place for offer in update.withdrawn], most)
    yield from _some("replaced", [offer.place for offer in update.replaced], most)
    out = [f"{row.name}: {row.detail}" for row in kept.passed.kept_out]
    out += [f"{offer.place}: {_KNOWN}" for offer in update.outdated]
    yield from _some("kept out", out, most)
    yield from _some("note", list(kept.reading.notes), most)


_KNOWN = "the machine is known from a later day, or a surer source, by another name"


def _some(what: str, lines: list[str], most: int | None) -> Iterator[str]:
    shown = lines if most is None else lines[:most]
    for line in shown:
        yield f"{what}: {line}"
    if len(lines) > len(shown):
        yield f"{what}: {len(lines) - len(shown)} more with -v"


def _priced(offer: Offer) -> str:
    return f"{offer.place}, {offer.purchase}: {price_text(offer.usd_per_hour)} USD/h"


def _document(kept: StoredReading) -> UpdatedPrices:
    update = kept.update
    return UpdatedPrices(
        provider=kept.reading.provider,
        source=kept.reading.source,
        read_on=kept.reading.read_on,
        confirmed=len(update.same),
        new=tuple(_priced(offer) for offer in update.new),
        changed=tuple(_priced(offer) for offer in update.changed),
        withdrawn=tuple(offer.place for offer in update.withdrawn),
        replaced=tuple(offer.place for offer in update.replaced),
        kept_out=(
            *(
                RefusedPrice(offer=row.name, fault=row.fault, detail=row.detail)
                for row in kept.passed.kept_out
            ),
            *(
                RefusedPrice(
                    offer=f"{offer.place}, {offer.purchase}", fault="outdated", detail=_KNOWN
                )
                for offer in update.outdated
            ),
        ),
        notes=tuple(kept.reading.notes),
    )
