"""Asks feeds and providers at the same time; one that fails takes nothing from the others."""

import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from gpucost.arguments.settings import is_address
from gpucost.files.writing import write_file
from gpucost.prices.cache import kept_files, price_folder
from pricing.errors import GpucostError, InputError, ProviderError
from pricing.feeds.feeds import reader
from pricing.message import Message
from pricing.refresh.reading import Answers, Feed, FeedReading, FeedRequest, PriceReading
from providers.price_feed import FeedFiles, FeedServer, Validators
from providers.provider import Request
from providers.registry import fetcher

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
        return SourceResult(name=feed.name, failure=_no_prices(feed, reading, request), learnt={})
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


def _no_prices(feed: Feed, reading: FeedReading, request: UpdateRequest) -> GpucostError:
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
