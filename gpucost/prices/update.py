"""`gpucost prices update`: ask feeds and providers, keep what can be believed, report the rest.

All are asked at the same time; one that fails takes nothing from the others.
"""

import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path

from gpucost.arguments.settings import is_address
from gpucost.files.writing import write_file
from gpucost.prices.cache import (
    PriceCacheWriter,
    StoredReading,
    catalog_address,
    kept_files,
    price_folder,
    pull_catalog,
)
from gpucost.views.output import Output, Table, print_json, print_table
from pricing.catalog.offer import Offer
from pricing.errors import GpucostError, InputError, MissingCredentialsError, ProviderError
from pricing.feeds.feeds import FEEDS, reader
from pricing.listing import counted
from pricing.message import Message
from pricing.money import price_text
from pricing.refresh.integrity_gate import RefusedPrice
from pricing.refresh.reading import Answers, Feed, FeedReading, FeedRequest, PriceReading
from providers.price_feed import FeedFiles, FeedServer, Validators
from providers.provider import Request
from providers.registry import fetcher, priced

_READ = "read.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRequest:
    """What the command line asks for.

    Attributes:
        providers: only these; empty: all.
        regions: of sources with prices by region; empty: their default list.
        accept_jumps: keep prices that moved by more than x3; asked for though nothing has changed.
        feeds: only these public feeds; empty: all.
        urls: "NAME=ADDRESS" of feeds that are asked elsewhere; an address alone is the catalog's.
        catalog: name of a feed and the file, folder or address to read it from, and nothing else.
        as_of: day of that feed's prices.
    """

    providers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    accept_jumps: bool = False
    feeds: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    catalog: tuple[str, str] | None = None
    as_of: date | None = None

    @property
    def place(self) -> str | None:
        """The file, folder or address that `--from` names."""
        return self.catalog[1] if self.catalog else None

    @property
    def address_of(self) -> Mapping[str, str]:
        """The address of each feed that is asked elsewhere.

        Raises:
            InputError: one is not NAME=ADDRESS.
        """
        texts = [text for text in self.urls if not is_address(text)]
        wrong = [text for text in texts if not text.partition("=")[2]]
        if wrong:
            raise InputError(Message("input.not-feed-address", text=text) for text in wrong)
        return {name: url for name, _, url in (text.partition("=") for text in texts)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceResult:
    """What came of one source, or why nothing did.

    Attributes:
        name: of the feed or the provider.
        own: whether the provider itself answered.
        readings: what it said.
        problems: what could not be read of a feed, a sentence each.
        unchanged: parts of a feed that are what they were last time.
        failure: why nothing came; None where something did.
        learnt: how to ask only for what has changed.
    """

    name: str
    own: bool = False
    readings: tuple[PriceReading, ...] = ()
    problems: tuple[str, ...] = ()
    unchanged: int = 0
    failure: GpucostError | None = None
    learnt: Validators


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """What all sources of one update share."""

    request: UpdateRequest
    folder: Path
    validators: Validators
    say: Callable[[str], None]
    stop: threading.Event
    now: datetime


def ask(
    feeds: Sequence[Feed],
    providers: Sequence[str],
    request: UpdateRequest,
    say: Callable[[str], None],
) -> Iterator[SourceResult]:
    """Yield what each source said, in the order of feeds and providers; all are asked at once.

    An interruption stops the others, too.
    """
    stop = threading.Event()
    with tempfile.TemporaryDirectory(prefix="gpucost-") as folder:
        shared = _Round(
            request=request,
            folder=Path(folder),
            validators={} if request.catalog or request.accept_jumps else read_validators(),
            say=say,
            stop=stop,
            now=datetime.now(UTC),
        )
        executor = ThreadPoolExecutor(max_workers=max(1, len(feeds) + len(providers)))
        try:
            futures = [executor.submit(_of_feed, feed, shared) for feed in feeds]
            futures += [executor.submit(_of_provider, name, shared) for name in providers]
            for future in futures:
                yield future.result()
        finally:
            stop.set()
            executor.shutdown(cancel_futures=True)


def _of_feed(feed: Feed, shared: _Round) -> SourceResult:
    request = shared.request
    try:
        answers = _answers(feed, shared)
        shared.say(f"reading {feed.title} ...")
        reading = reader(feed)(
            FeedRequest(
                answers=answers,
                now=shared.now,
                as_of=request.as_of if request.catalog else None,
                regions=request.regions,
                providers=request.providers,
                say=shared.say,
            )
        )
    except GpucostError as error:
        return SourceResult(name=feed.name, failure=error, learnt={})
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        return SourceResult(name=feed.name, failure=_strange(feed, error), learnt={})
    if not reading.readings and not reading.unchanged:
        return SourceResult(
            name=feed.name, failure=_nothing_read(feed, reading, request), learnt={}
        )
    return SourceResult(
        name=feed.name,
        readings=reading.readings,
        problems=reading.problems,
        unchanged=reading.unchanged,
        learnt=answers.learnt if isinstance(answers, FeedServer) else {},
    )


def _answers(feed: Feed, shared: _Round) -> Answers:
    origin = shared.request.place or shared.request.address_of.get(feed.name, feed.url)
    if "://" not in origin:
        return FeedFiles(feed=feed, path=Path(origin).expanduser())
    return FeedServer(
        feed=feed, url=origin, folder=shared.folder, cached=shared.validators, stop=shared.stop
    )


def _strange(feed: Feed, error: Exception) -> ProviderError:
    reason = f"{type(error).__name__}: {error}"[:120]
    return ProviderError(
        f"{feed.title}: not of the form that is known ({reason}); nothing of it was kept."
    )


def _nothing_read(feed: Feed, reading: FeedReading, request: UpdateRequest) -> GpucostError:
    kind = ProviderError if "://" in (request.place or feed.url) else InputError
    return kind(reading.problems or (nothing_kept(request.place or feed.title, request),))


def nothing_kept(origin: str, request: UpdateRequest) -> str:
    """Return what is said where no price of a place was kept."""
    suffix = f" for {', '.join(request.providers)}" if request.providers else ""
    return f"{origin}: no price in it could be kept{suffix}."


def _of_provider(name: str, shared: _Round) -> SourceResult:
    request = Request(now=shared.now, environment=os.environ, regions=shared.request.regions)
    try:
        shared.say(f"asking {name} ...")
        return SourceResult(name=name, own=True, readings=(fetcher(name)(request),), learnt={})
    except GpucostError as error:
        return SourceResult(name=name, own=True, failure=error, learnt={})


def read_validators() -> dict[str, dict[str, str]]:
    """Return how to ask for what has changed only; nothing where prices were removed since."""
    try:
        stored = json.loads((price_folder() / _READ).read_text(encoding="utf-8"))
        if not set(stored["files"]) <= {path.name for path in kept_files()}:
            return {}
        return {str(url): dict(headers) for url, headers in stored["documents"].items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def write_validators(learnt: Validators) -> None:
    """Remember what was read whole, beside what was remembered before."""
    documents = {**read_validators(), **learnt}
    if learnt and price_folder().is_dir():
        stored = {"files": [path.name for path in kept_files()], "documents": documents}
        write_file(str(price_folder() / _READ), json.dumps(stored, indent=1, sort_keys=True) + "\n")


NONE = "none"
"""`--feed none`: no public feed, only providers whose credentials are there."""


@dataclass(slots=True, kw_only=True)
class _Outcome:
    """What was kept, and what was not."""

    keeper: PriceCacheWriter
    readings: list[StoredReading] = field(default_factory=list)
    failures: list[GpucostError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    providers: set[str] = field(default_factory=set)
    unchanged: int = 0
    refused: bool = False


def _outcome(request: UpdateRequest) -> _Outcome:
    today = datetime.now(UTC).date()
    return _Outcome(keeper=PriceCacheWriter(day=today, accept_jumps=request.accept_jumps))


def update_prices(request: UpdateRequest, output: Output) -> None:
    """Refresh prices and print what changed.

    A source that fails loses nothing that was known, and no other source's prices.

    Raises:
        InputError: a provider or a feed is not known, a file cannot be read, the cache not be
            written.
        ProviderError: a provider with credentials failed, a feed that was named, or nothing was
            read of what was asked for; raised after the others were kept.
        MissingCredentialsError: credentials alone could tell the prices that were asked for.
    """
    if not (request.catalog or request.feeds or request.providers):
        _pull(request, output)
    outcome = _imported(request, output) if request.catalog else _fetched(request, output)
    show(outcome.readings, output)
    for note in outcome.skipped:
        output.say(f"note: skipped: {note}")
    for problem in outcome.warnings:
        output.say(f"warning: {problem}")
    if outcome.unchanged:
        output.say(f"{counted(outcome.unchanged, 'list')} unchanged since the last reading.")
    _raise(outcome.failures)


def _pull(request: UpdateRequest, output: Output) -> None:
    """Take the published catalog, where one is, before the feeds are asked."""
    typed = next((text for text in request.urls if is_address(text)), "")
    address, key = catalog_address(typed)
    if address:
        try:
            output.say(pull_catalog(address, key) or "prices: no newer catalog is published.")
        except ProviderError as error:
            output.say(f"warning: {error}")


def _raise(failures: list[GpucostError]) -> None:
    if not failures:
        return
    problems = [problem for failure in failures for problem in failure.problems]
    kinds = {type(failure) for failure in failures}
    kind = kinds.pop() if len(kinds) == 1 else ProviderError
    raise kind(problems)


def _imported(request: UpdateRequest, output: Output) -> _Outcome:
    """Return one feed from a file, a folder or another address."""
    name, origin = request.catalog or ("", "")
    _check_feeds((name,))
    outcome = _outcome(request)
    _take(ask((FEEDS[name],), (), request, output.say), outcome, named=True)
    if not any(reading.passed.offers for reading in outcome.readings) and not outcome.failures:
        outcome.failures.append(InputError((nothing_kept(origin, request), *outcome.warnings)))
        outcome.warnings.clear()
    return outcome


def _fetched(request: UpdateRequest, output: Output) -> _Outcome:
    """Return everything that came; a provider that was named is asked itself where possible."""
    _check_feeds(name for name in (*request.feeds, *request.address_of) if name != NONE)
    _check_providers(request.providers)
    outcome = _outcome(request)
    own = () if set(request.feeds) - {NONE} else priced()
    if request.providers:
        own = tuple(name for name in request.providers if name in own)
        _take(ask((), own, request, output.say), outcome)
        remaining = tuple(name for name in request.providers if name not in outcome.providers)
        feeds = _feeds(request, remaining)
        only = replace(request, providers=remaining)
        _take(ask(feeds, (), only, output.say), outcome, named=bool(request.feeds))
    else:
        feeds = _feeds(request, ())
        _take(ask(feeds, own, request, output.say), outcome, named=bool(request.feeds))
    if not outcome.readings and not outcome.unchanged and not outcome.failures:
        outcome.failures.append(_no_prices(outcome, only_credentials=not feeds))
        outcome.warnings.clear()
        outcome.skipped.clear()
    return outcome


def _no_prices(outcome: _Outcome, *, only_credentials: bool) -> GpucostError:
    if only_credentials:
        return MissingCredentialsError(outcome.skipped)
    return ProviderError((*outcome.warnings, *outcome.skipped) or ("no price was read.",))


def _feeds(request: UpdateRequest, providers: tuple[str, ...]) -> tuple[Feed, ...]:
    """Return the feeds to read: those named, else all that tell prices of the providers."""
    if request.feeds:
        return tuple(FEEDS[name] for name in request.feeds if name != NONE)
    if request.providers:
        names = frozenset(providers)
        return tuple(feed for feed in FEEDS.values() if feed.providers & names)
    return tuple(feed for feed in FEEDS.values() if not feed.asked_only)


def _take(results: Iterable[SourceResult], outcome: _Outcome, *, named: bool = False) -> None:
    """Keep what came, source by source."""
    for result in results:
        if result.failure is not None:
            _note_failure(result, result.failure, outcome, named=named)
            continue
        outcome.providers.add(result.name)
        outcome.unchanged += result.unchanged
        outcome.warnings += result.problems
        try:
            keep = outcome.keeper.keep_whole if result.own else outcome.keeper.keep_good
            for reading in result.readings:
                _keep(keep, reading, outcome, own=result.own)
        finally:
            write_validators({} if outcome.refused else result.learnt)


def _keep(
    keep: Callable[[PriceReading], StoredReading],
    reading: PriceReading,
    outcome: _Outcome,
    *,
    own: bool,
) -> None:
    try:
        outcome.readings.append(keep(reading))
    except ProviderError as error:
        outcome.refused = True
        if own:
            outcome.failures.append(error)
        else:
            outcome.warnings += error.problems


def _note_failure(
    result: SourceResult, failure: GpucostError, outcome: _Outcome, *, named: bool
) -> None:
    if isinstance(failure, MissingCredentialsError):
        outcome.skipped += failure.problems
        return
    outcome.providers.add(result.name)
    if result.own or named:
        outcome.failures.append(failure)
    else:
        outcome.warnings += failure.problems


def _check_feeds(names: Iterable[str]) -> None:
    missing = [name for name in names if name not in FEEDS]
    if missing:
        raise InputError(f"{name} is not a feed; there are {', '.join(FEEDS)}." for name in missing)


def _check_providers(names: Iterable[str]) -> None:
    covered = {provider for feed in FEEDS.values() for provider in feed.providers}
    missing = [name for name in names if name not in covered | set(priced())]
    if missing:
        names_text = ", ".join(sorted(covered | set(priced())))
        raise InputError(Message("input.no-feed-of", name=n, names=names_text) for n in missing)


_NAMED = 5


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


def show(stored: Sequence[StoredReading], output: Output) -> None:
    """Print a row or a document a reading, and what changed on standard error."""
    readings = [_document(reading) for reading in stored]
    if output.format == "json":
        print_json(readings)
    elif readings:
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
        rows = tuple(_row(reading) for reading in readings)
        print_table(Table(columns=columns, rows=rows, right=frozenset(columns[2:8])), output)
    for reading in readings:
        for line in _details(reading, None if output.verbose else _NAMED):
            output.say(line)


def _row(reading: UpdatedPrices) -> tuple[str, ...]:
    counts = (
        reading.confirmed + len(reading.new) + len(reading.changed),
        *(len(getattr(reading, name)) for name in ("new", "changed", "withdrawn", "replaced")),
        len(reading.kept_out),
    )
    read = reading.read_on.isoformat()
    return (reading.provider, read, *map(str, counts), reading.source)


def _details(reading: UpdatedPrices, limit: int | None) -> Iterator[str]:
    yield from _some("new", reading.new, limit)
    yield from _some("changed", reading.changed, limit)
    yield from _some("withdrawn", reading.withdrawn, limit)
    yield from _some("replaced", reading.replaced, limit)
    yield from _some("kept out", [f"{row.offer}: {row.detail}" for row in reading.kept_out], limit)
    yield from _some("note", reading.notes, limit)


_KNOWN = "a newer or more reliable source has this machine under another name"


def _some(label: str, lines: Sequence[str], limit: int | None) -> Iterator[str]:
    shown = lines if limit is None else lines[:limit]
    for line in shown:
        yield f"{label}: {line}"
    if len(lines) > len(shown):
        yield f"{label}: {len(lines) - len(shown)} more with -v"


def _priced(offer: Offer) -> str:
    return f"{offer.place}, {offer.purchase}: {price_text(offer.usd_per_hour)} USD/h"


def _document(stored: StoredReading) -> UpdatedPrices:
    reading, update = stored.reading, stored.update
    late = (
        RefusedPrice(offer=f"{o.place}, {o.purchase}", fault="outdated", detail=_KNOWN)
        for o in update.outdated
    )
    return UpdatedPrices(
        provider=reading.provider,
        source=reading.source,
        read_on=reading.read_on,
        confirmed=len(update.same),
        new=tuple(map(_priced, update.new)),
        changed=tuple(map(_priced, update.changed)),
        withdrawn=tuple(offer.place for offer in update.withdrawn),
        replaced=tuple(offer.place for offer in update.replaced),
        kept_out=(*stored.passed.kept_out, *late),
        notes=reading.notes,
    )
