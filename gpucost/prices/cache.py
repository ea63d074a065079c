"""The user's cache of prices: its catalog joined with the bundled one, and its writer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path

from gpucost.files.writing import CACHE, cache_folder, write_file
from pricing.catalog.catalog import Catalog
from pricing.catalog.catalog import load_catalog as load_bundled
from pricing.catalog.offer import Offer
from pricing.errors import InputError, ProviderError
from pricing.refresh import store
from pricing.refresh.integrity_gate import Passed, Span, check, spans
from pricing.refresh.reading import PriceReading
from pricing.refresh.store import Update


def price_folder() -> Path:
    """Return the folder of refreshed prices: in GPUCOST_CACHE_DIR, else the user's cache."""
    return cache_folder() / "prices"


def load_catalog(as_of: date | None = None, *, say: Callable[[str], None] | None = None) -> Catalog:
    """Return all known prices, bundled and refreshed, seen from a day.

    Args:
        as_of: the day; None is the newest day on which any price was read.
        say: is told about refreshed prices that cannot be read; they are left out.
    """
    stored = store.load(price_folder())
    if say is not None:
        for problem in stored.problems:
            say(f"warning: {problem}")
    return load_bundled(as_of, extra=stored.offers)


_NAMED = 5
_POISON = frozenset({"missing", "price", "jump", "currency"})
_FEWEST = 4  # rows, before half of them says anything of an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReading:
    """A reading that was written to the cache: what it said, what passed, what it changed."""

    reading: PriceReading
    passed: Passed
    update: Update


@dataclass(kw_only=True)
class PriceCacheWriter:
    """Keeps readings, one after the other; each is held against those before.

    Attributes:
        day: today.
        accept_jumps: keep prices that moved by more than x3.
    """

    day: date
    accept_jumps: bool = False
    _rows: dict[str, tuple[Offer, ...]] = field(default_factory=dict)

    def keep_whole(self, reading: PriceReading) -> StoredReading:
        """Keep a provider's own answer, or nothing of it.

        Raises:
            ProviderError: a part of the answer is damaged; nothing of it is kept.
            InputError: the cache cannot be written.
        """
        stored = self._checked(reading)
        if stored.passed.broken:
            reasons = "; ".join(
                f"{row.name}: {row.detail}" for row in stored.passed.broken[:_NAMED]
            )
            raise ProviderError(
                f"{reading.provider}: the answer is damaged ({len(stored.passed.broken)} of "
                f"{len(reading.rows)} rows: {reasons}), so nothing of it was kept; the last good "
                "prices stay."
            )
        self._write(stored)
        return stored

    def keep_good(self, reading: PriceReading) -> StoredReading:
        """Keep the rows of a list that can be believed; of one that is mostly wrong, nothing.

        Raises:
            ProviderError: most of its rows are wrong.
            InputError: the cache cannot be written.
        """
        stored = self._checked(reading)
        wrong = [row for row in stored.passed.kept_out if row.fault in _POISON]
        if len(reading.rows) >= _FEWEST and len(wrong) * 2 > len(reading.rows):
            raise ProviderError(
                f"{reading.source}: {len(wrong)} of {len(reading.rows)} rows are wrong, such as "
                f"{wrong[0].name}: {wrong[0].detail}; nothing of it was kept."
            )
        if stored.passed.offers:
            self._write(stored)
        return stored

    @cached_property
    def _stored(self) -> store.CachedReading:
        return store.load(price_folder())

    @cached_property
    def _market(self) -> Mapping[tuple[str, str], Span]:
        return spans(load_bundled(self.day).offers)

    def _checked(self, reading: PriceReading) -> StoredReading:
        stored_rows = self._rows.get(reading.provider, self._stored.of(reading.provider))
        catalog = Catalog(
            as_of=max(self.day, reading.read_on), rows=_all(reading.provider, stored_rows)
        )
        passed = check(reading, catalog, market=self._market, accept_jumps=self.accept_jumps)
        update = store.merge(reading, passed, catalog, stored_rows)
        return StoredReading(reading=reading, passed=passed, update=update)

    def _write(self, stored: StoredReading) -> None:
        folder = price_folder()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{folder}: cannot be made: {error.strerror}. {CACHE} names another folder."
            ) from error
        path = store.path_of(folder, stored.reading.provider)
        write_file(str(path), store.to_text(stored.update.rows))
        self._rows[stored.reading.provider] = stored.update.rows


def _all(provider: str, stored: tuple[Offer, ...]) -> tuple[Offer, ...]:
    """Return every row of a provider, bundled and stored."""
    bundled = load_bundled(extra=()).rows
    return (*(row for row in bundled if row.provider == provider), *stored)


def kept_files() -> tuple[Path, ...]:
    """Return the files of the cache that hold prices."""
    return tuple(sorted(price_folder().glob("*.csv")))
