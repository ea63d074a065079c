"""`gpucost prices update`: ask the providers, check the answers, keep what can be believed."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from gpucost.files.writing import write_file
from gpucost.prices.cache import CACHE, price_folder
from gpucost.views.output import Output, Table, print_json, print_table
from pricing.catalog.catalog import load_catalog
from pricing.catalog.offer import Offer
from pricing.errors import GpucostError, InputError, MissingCredentialsError, ProviderError
from pricing.money import plain
from pricing.refresh import store
from pricing.refresh.gpuhunt import read_gpuhunt
from pricing.refresh.integrity_gate import KeptOut, Passed, check
from pricing.refresh.reading import PriceReading
from pricing.refresh.skypilot import read_skypilot
from pricing.refresh.store import Update
from providers.price_source import Request, fetcher
from providers.registry import priced

IMPORTS: dict[str, Callable[[Path, date | None], tuple[PriceReading, ...]]] = {
    "gpuhunt": read_gpuhunt,
    "skypilot": read_skypilot,
}
"""`--from NAME PATH` -> the reader of such a catalog."""

_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRequest:
    """What the command line asks for.

    Attributes:
        providers: only these; empty: all that can be asked.
        regions: of providers with prices by region; empty: their default list.
        accept_jumps: keep prices that moved by more than x3.
        catalog: name and path of a catalog to import instead of asking providers.
        as_of: day of that catalog's prices.
    """

    providers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    accept_jumps: bool = False
    catalog: tuple[str, str] | None = None
    as_of: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReading:
    """A reading that was written to the cache: what it said, what passed, what it changed."""

    reading: PriceReading
    passed: Passed
    update: Update


def update_prices(asked: UpdateRequest, output: Output) -> None:
    """Refresh prices and print what changed.

    A provider that fails loses nothing that was known of it, and no other provider's prices.

    Raises:
        InputError: a provider cannot be asked, a catalog cannot be read, the cache not be written.
        ProviderError: a provider failed; raised after the others were kept.
        MissingCredentialsError: no provider could be asked, or not one that was named.
    """
    if asked.catalog is not None:
        _show(tuple(_imported(asked, *asked.catalog)), output)
        return
    kept, failures = _fetched(asked, output)
    _show(kept, output)
    if failures:
        mistaken = all(isinstance(failure, InputError) for failure in failures)
        raise (InputError if mistaken else ProviderError)(
            problem for failure in failures for problem in failure.problems
        )


def _fetched(
    asked: UpdateRequest, output: Output
) -> tuple[tuple[StoredReading, ...], tuple[GpucostError, ...]]:
    """Everything that came, and what failed; without a --provider credentials may be missing."""
    _check_askable(asked.providers)
    request = Request(now=datetime.now(UTC), environment=os.environ, regions=asked.regions)
    kept: list[StoredReading] = []
    failures: list[GpucostError] = []
    skipped: list[str] = []
    for provider in asked.providers or priced():
        try:
            output.say(f"asking {provider} ...")
            kept.append(_believed(fetcher(provider)(request), asked))
        except MissingCredentialsError as error:
            if asked.providers:
                failures.append(error)
            skipped += error.problems
        except GpucostError as error:
            failures.append(error)
    if not kept and not failures:
        raise MissingCredentialsError(skipped)
    for note in () if asked.providers else skipped:
        output.say(f"note: skipped: {note}")
    return tuple(kept), tuple(failures)


def _check_askable(providers: Iterable[str]) -> None:
    unknown = [name for name in providers if name not in priced()]
    if unknown:
        raise InputError(
            f"--provider {name}: its prices cannot be fetched; {', '.join(priced())} can. "
            f"Others come from a catalog: gpucost prices update --from {'|'.join(IMPORTS)} PATH."
            for name in unknown
        )


def _believed(reading: PriceReading, asked: UpdateRequest) -> StoredReading:
    """The reading, written to the cache.

    Raises:
        ProviderError: a part of the answer is damaged; nothing of it is kept.
    """
    kept = _checked(reading, asked)
    if kept.passed.broken:
        told = "; ".join(f"{row.name}: {row.detail}" for row in kept.passed.broken[:_NAMED])
        raise ProviderError(
            f"{reading.provider}: the answer is damaged ({len(kept.passed.broken)} of "
            f"{len(reading.rows)} rows: {told}), so nothing of it was kept; the last good prices "
            "stay."
        )
    _write(kept)
    return kept


def _imported(asked: UpdateRequest, name: str, path: str) -> Iterator[StoredReading]:
    """Every provider of the catalog that has rows to keep; bad rows are left out one by one."""
    readings = [
        reading
        for reading in IMPORTS[name](Path(path), asked.as_of)
        if not asked.providers or reading.provider in asked.providers
    ]
    empty = True
    for reading in readings:
        kept = _checked(reading, asked)
        if kept.passed.offers:
            _write(kept)
            empty = False
            yield kept
    if empty:
        raise InputError(
            f"{path}: no price in it could be kept"
            + (f" for {', '.join(asked.providers)}." if asked.providers else ".")
        )


def _checked(reading: PriceReading, asked: UpdateRequest) -> StoredReading:
    stored = store.load(price_folder())
    known = load_catalog(reading.read_on, extra=stored.offers)
    passed = check(reading, known, accept_jumps=asked.accept_jumps)
    update = store.merge(reading, passed, known, stored.of(reading.provider))
    return StoredReading(reading=reading, passed=passed, update=update)


def _write(kept: StoredReading) -> None:
    folder = price_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be made: {error.strerror}. {CACHE} names another folder."
        ) from error
    write_file(str(store.path_of(folder, kept.reading.provider)), store.to_text(kept.update.rows))


def _show(everything: tuple[StoredReading, ...], output: Output) -> None:
    if output.format == "json":
        print_json([_document(kept) for kept in everything])
    elif everything:
        columns = ("provider", "read", "prices", "new", "changed", "withdrawn", "kept out", "from")
        rows = tuple(_row(kept) for kept in everything)
        print_table(Table(columns=columns, rows=rows, right=frozenset(columns[2:7])), output)
    for kept in everything:
        for line in _details(kept, None if output.verbose else _NAMED):
            output.say(line)


def _row(kept: StoredReading) -> tuple[str, ...]:
    update = kept.update
    fresh = len(update.new) + len(update.changed) + len(update.same)
    counts = (fresh, len(update.new), len(update.changed), len(update.withdrawn))
    return (
        kept.reading.provider,
        kept.reading.read_on.isoformat(),
        *(str(count) for count in counts),
        str(len(kept.passed.kept_out)),
        kept.reading.source,
    )


def _details(kept: StoredReading, most: int | None) -> Iterator[str]:
    update = kept.update
    yield from _some("new", [f"{_priced(offer)}" for offer in update.new], most)
    yield from _some("changed", [f"{_priced(offer)}" for offer in update.changed], most)
    yield from _some("withdrawn", [offer.place for offer in update.withdrawn], most)
    out = [f"{row.name}: {row.detail}" for row in kept.passed.kept_out]
    yield from _some("kept out", out, most)
    yield from _some("note", list(kept.reading.remarks), most)


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
        "kept_out": [_reason(row) for row in kept.passed.kept_out],
        "notes": list(kept.reading.remarks),
    }


def _reason(row: KeptOut) -> dict[str, str]:
    return {"offer": row.name, "fault": row.fault, "detail": row.detail}
