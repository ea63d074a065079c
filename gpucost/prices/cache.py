"""The user's cache of prices: its catalog joined with the bundled one, and its writer.

A catalog that is published (`research/publish_prices.py`) is fetched beside a command's own work
where the one here is over a day old. Its address comes with the wheel, from the repository that
built it, and ends in the key, `#` and 64 hex digits, by which its Ed25519 signature is checked:
whoever serves the file, and whoever alters it on its way, cannot change a price in it.
"""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

import msgspec

from gpucost.arguments.parameters import options
from gpucost.arguments.settings import is_address, is_offline, load_setting
from gpucost.files.writing import CACHE, cache_folder, write_file, write_pieces
from pricing.catalog.catalog import Catalog
from pricing.catalog.catalog import load_catalog as load_bundled
from pricing.catalog.offer import Offer
from pricing.errors import InputError, ProviderError
from pricing.message import Message, set_within
from pricing.refresh import store
from pricing.refresh.integrity_gate import Passed, Span, check, spans
from pricing.refresh.reading import Feed, PriceReading, Question
from pricing.refresh.store import Update
from pricing.tables import DATA, read_toml
from providers.price_feed import FeedServer


def price_folder() -> Path:
    """Return the folder of refreshed prices: in GPUCOST_CACHE_DIR, else the user's cache."""
    return cache_folder() / "prices"


def load_catalog(as_of: date | None = None, *, say: Callable[[str], None] | None = None) -> Catalog:
    """Return all known prices, bundled and refreshed, seen from a day.

    Args:
        as_of: the day; None is the newest day on which any price was read.
        say: is told about refreshed prices that cannot be read; they are left out.
    """
    pull = _PULL.get()
    if pull is not None:
        pull.finish(say)
    stored = _published().with_rows_of(store.load(price_folder()))
    if say is not None:
        for problem in stored.problems:
            say(f"warning: {problem}")
    catalog = load_bundled(as_of, extra=stored.offers)
    if say is not None and all(row.starts > catalog.as_of for row in catalog.rows):
        first = min(row.starts for row in catalog.rows)
        say(
            f"warning: no price is known for {catalog.as_of}: the earliest is of {first}. Each "
            "figure uses the first price that was read later."
        )
    if not (stored.published or stored.sha256):
        return catalog
    return replace(catalog, published=stored.published, sha256=stored.sha256)


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
                f"{row.offer}: {row.detail}" for row in stored.passed.broken[:_NAMED]
            )
            counts = {"broken": len(stored.passed.broken), "rows": len(reading.rows)}
            failure = Message(
                "input.answer-damaged", name=reading.provider, reasons=reasons, **counts
            )
            raise ProviderError(failure)
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
                f"{wrong[0].offer}: {wrong[0].detail}; nothing of it was kept."
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
        path = store.path_of(_made_folder(), stored.reading.provider)
        write_file(str(path), store.to_text(stored.update.rows))
        self._rows[stored.reading.provider] = stored.update.rows


def _all(provider: str, stored: tuple[Offer, ...]) -> tuple[Offer, ...]:
    """Return every row of a provider, bundled and stored."""
    bundled = load_bundled().rows
    return (*(row for row in bundled if row.provider == provider), *stored)


def kept_files() -> tuple[Path, ...]:
    """Return the files of the cache that hold prices."""
    return tuple(sorted(price_folder().glob("*.csv")))


_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")
_WITHIN_S = 2.0
_DUE = timedelta(days=1)
_AGAIN_S = 3600.0  # without an answer, or with no newer catalog, nothing is asked for so long
_FILE, _ASKED, _ADDRESS = "published.gz", "published.json", "published.toml"
_VARIABLE = "GPUCOST_PRICES_URL"
PUBLISHED = Feed(
    name="catalog",
    title="the published catalog",
    url="",
    module="",
    providers=frozenset(),
    takes="",
    most_s=2,
    is_signed=True,
)


@contextmanager
def pulled_prices(*, offline: bool, refresh: bool) -> Iterator[None]:
    """Take the published catalog beside the block's work; its `load_catalog` waits for it.

    Args:
        offline: fetch nothing, as GPUCOST_OFFLINE says, too.
        refresh: fetch it though it is not due, or though this is a CI job.
    """
    off = offline or is_offline()
    pull = None
    if not off and (refresh or not os.environ.get("CI")):
        address, key = catalog_address()
        if address and (refresh or _is_due()):
            pull = _Pull(address, key, tells=refresh)
            pull.start()
    with set_within(_PULL, pull):
        yield


def refreshing_prices(run: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """Add --offline and --refresh to a command that prices; see `pulled_prices`."""

    @options("offline refresh")
    @wraps(run)
    def refreshing(*args: _Params.args, **typed: _Params.kwargs) -> _Result:
        offline, refresh = bool(typed.pop("offline")), bool(typed.pop("refresh"))
        if offline and refresh:
            raise InputError("--offline and --refresh contradict each other: give one of them.")
        day_is_given = any(typed.get(name) is not None for name in ("as_of", "start"))
        with pulled_prices(offline=offline or day_is_given, refresh=refresh):
            return run(*args, **typed)

    return refreshing


def catalog_address(typed: str = "") -> tuple[str, str]:
    """Return where the catalog is published and the key of its signature; both empty: nowhere.

    An address of the environment or of the user's own file may bring its key; one of a project's
    file, which may come with a cloned repository, is checked by the wheel's.

    Args:
        typed: another address, from the command line.

    Raises:
        InputError: there is no key.
    """
    bundled, _, bundled_key = str((read_toml(_ADDRESS) or {}).get("url", "")).partition("#")
    values = (typed, os.environ.get(_VARIABLE), load_setting("prices", "url"))
    named = next((str(value) for value in values if is_address(value)), "")
    if not named:
        return bundled, bundled_key
    address, _, key = named.partition("#")
    if not key and not bundled_key:
        raise InputError(f"{address}: add the key of the catalog's signature: {address}#KEY.")
    return address, key or bundled_key


def _published() -> store.CachedReading:
    """Return the rows of the newest catalog: fetched, or come with the wheel; else none."""
    bundled = (read_toml(_ADDRESS) or {}).get("published")
    own = _state().published
    path = DATA / _FILE if bundled and (own is None or own < bundled) else price_folder() / _FILE
    try:
        return store.unpack(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return store.CachedReading()
    except (OSError, ValueError) as error:
        return store.CachedReading(problems=(f"{path}: {error}; it is left out.",))


def _is_due() -> bool:
    """Return whether the catalog here is over a day old, and none was asked for just now."""
    state = price_folder() / _ASKED
    try:
        if time.time() - state.stat().st_mtime < _AGAIN_S:
            return False
    except OSError:
        return True
    published = _state().published
    return published is None or datetime.now(UTC) - published > _DUE


class _State(msgspec.Struct, frozen=True):
    """When the catalog here was made, and how to ask for a newer one."""

    published: datetime | None
    validators: dict[str, dict[str, str]]


def _state() -> _State:
    """Return what is known of the catalog here; nothing where it was removed."""
    folder = price_folder()
    try:
        if (folder / _FILE).is_file():
            return msgspec.json.decode((folder / _ASKED).read_bytes(), type=_State)
    except (OSError, msgspec.MsgspecError):
        pass
    return _State(None, {})


class _Pull(threading.Thread):
    """Fetches a catalog and puts it into the cache; what is not there in time is not waited for."""

    def __init__(self, address: str, key: str, *, tells: bool) -> None:
        super().__init__(daemon=True)
        self._address, self._key, self._tells = address, key, tells
        self._until = time.monotonic() + _WITHIN_S
        self._said = ""

    def run(self) -> None:
        """Take it."""
        try:
            self._said = pull_catalog(self._address, self._key)
        except InputError as error:
            self._said = f"warning: {error}"
        except ProviderError as error:
            self._said = f"warning: {error}" if self._tells else ""

    def finish(self, say: Callable[[str], None] | None) -> None:
        """Wait for it until its time is over, and say what came of it, once."""
        self.join(max(0.0, self._until - time.monotonic()))
        line, self._said = self._said, ""
        if line and say is not None:
            say(line)


_PULL: ContextVar[_Pull | None] = ContextVar("pull", default=None)


def pull_catalog(address: str, key: str) -> str:
    """Take the catalog where it has changed, and return the line to say of it; empty: no newer.

    Raises:
        InputError: it is damaged, or signed by another key; or the cache cannot be written.
        ProviderError: it cannot be fetched.
    """
    stored = _state()
    with tempfile.TemporaryDirectory(prefix="gpucost-") as folder:
        server = FeedServer(
            feed=PUBLISHED, url=address, folder=Path(folder), cached=stored.validators, pause_s=0.1
        )
        _remember(stored)
        answer = server.get(Question(name=_FILE, changed_only=True))
        if answer is None:
            return ""
        data = answer.path.read_bytes()
    try:
        fetched = store.unpack(data, verifier(key))
    except ValueError as error:
        raise InputError(
            Message("input.catalog-refused", address=address, why=str(error))
        ) from None
    if stored.published is not None and (fetched.published or stored.published) < stored.published:
        return ""
    write_pieces(str(_made_folder() / _FILE), (data,))
    _remember(_State(fetched.published, server.learnt))
    return (
        f"prices: took the catalog of {fetched.published:%Y-%m-%d} "
        f"({len(fetched.offers):,} rows, sha256 {fetched.sha256[:12]})"
    )


def _remember(state: _State) -> None:
    write_file(str(_made_folder() / _ASKED), msgspec.json.encode(state).decode())


def verifier(key: str) -> Callable[[bytes, bytes], None]:
    """Return what raises ValueError where a signature is not the key's for a statement."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - only where one came
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 - the same

    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))

    def verify(signature: bytes, statement: bytes) -> None:
        try:
            public.verify(signature, statement)
        except InvalidSignature:
            raise ValueError("its signature is not that of its publisher") from None

    return verify


def _made_folder() -> Path:
    """Return the folder of refreshed prices, which is made where it is not fetched.

    Raises:
        InputError: it cannot be made.
    """
    folder = price_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = {"folder": str(folder), "why": error.strerror or "", "variable": CACHE}
        raise InputError(Message("input.no-cache", **why)) from error
    return folder
