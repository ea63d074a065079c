"""What `gpucost prices update` prints: what was read, what changed, what was kept out and why."""

from collections.abc import Iterator
from typing import Any

from gpucost.prices.keeping import StoredReading
from gpucost.views.output import Output, Table, print_json, print_table
from pricing.catalog.offer import Offer
from pricing.money import plain
from pricing.refresh.integrity_gate import KeptOut

_NAMED = 5


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
    return f"{offer.place}, {offer.purchase}: {plain(offer.usd_per_hour)} USD/h"


def _document(kept: StoredReading) -> dict[str, Any]:
    update = kept.update
    return {
        "provider": kept.reading.provider,
        "source": kept.reading.source,
        "read_on": kept.reading.read_on.isoformat(),
        "confirmed": len(update.same),
        "new": [_priced(offer) for offer in update.new],
        "changed": [_priced(offer) for offer in update.changed],
        "withdrawn": [offer.place for offer in update.withdrawn],
        "replaced": [offer.place for offer in update.replaced],
        "kept_out": [
            *(_reason(row) for row in kept.passed.kept_out),
            *(_late(offer) for offer in update.outdated),
        ],
        "notes": list(kept.reading.notes),
    }


def _reason(row: KeptOut) -> dict[str, str]:
    return {"offer": row.name, "fault": row.fault, "detail": row.detail}


def _late(offer: Offer) -> dict[str, str]:
    return {"offer": f"{offer.place}, {offer.purchase}", "fault": "outdated", "detail": _KNOWN}
