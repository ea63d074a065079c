"""One answer of a provider about its prices, before anybody believes it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Protocol

from pricing.catalog.offer import COLUMNS, PUBLISHED, Offer
from pricing.errors import GpucostError, InputError, UnreachableError

Row = Mapping[str, str]
"""A price as text under the columns COLUMNS and PUBLISHED; an empty cell is unknown."""

_CELLS = frozenset((*COLUMNS, *PUBLISHED))


def new_row(**cells: str) -> Row:
    """Return a row of the given cells; what is not given is unknown, `status` is current.

    Raises:
        TypeError: a cell is in no column.
    """
    strange = sorted(set(cells) - _CELLS)
    if strange:
        raise TypeError(f"no columns: {', '.join(strange)}")
    empty_row = dict.fromkeys((*COLUMNS, *PUBLISHED), "")
    return {**empty_row, "status": "current", "host": "provider", "confidence": "high", **cells}


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceReading:
    """What one source said about one provider on one day.

    Attributes:
        provider: such as "digitalocean".
        source: who said it, the same text in every row.
        read_on: the day.
        rows: the prices.
        regions: regions that the answer covers completely; None: all of them.
        purchases: ways of buying that it covers completely. What is sold so, in those regions, and
            not named, is no longer sold. Empty: the answer is not a complete list of anything.
        notes: what was left out, for people.
    """

    provider: str
    source: str
    read_on: date
    rows: tuple[Row, ...]
    regions: tuple[str, ...] | None = None
    purchases: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def covers(self, offer: Offer) -> bool:
        """Return whether the offer would be in the answer if it were still sold."""
        return (
            offer.provider == self.provider
            and offer.purchase in self.purchases
            and (self.regions is None or offer.region in self.regions)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One document of a feed.

    Attributes:
        name: its file name where files answer.
        path: after the feed's address where a server answers; a whole address on the same server is
            taken as it is.
        publisher_url: the whole address where the feed's own publisher has it elsewhere; a mirror
            has it under `path`.
        body: what is posted; None: it is fetched.
        changed_only: ask for nothing where it is what was read last time.
    """

    name: str
    path: str = ""
    publisher_url: str = ""
    body: bytes | None = None
    changed_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A document, whole and unpacked, as a file.

    Attributes:
        path: where it lies until the feed is read.
        modified: day of its last change, where the server says so.
    """

    path: Path
    modified: date | None = None


class Answers(Protocol):
    """Where the documents of a feed come from."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files, by name, where files answer; none where a server does."""

    def get(self, question: Question) -> Answer | None:
        """Return the document; None where `changed_only` was asked and nothing has changed.

        Raises:
            InputError: there is no such file, or the address cannot be used.
            ProviderError: the server failed, or answered what is too large, cut short, or not of
                this server.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRequest:
    """What is asked of a reader.

    Attributes:
        answers: where the documents come from.
        now: the time, aware.
        as_of: day of the prices, for documents that carry none.
        regions: only these, of feeds with a document a region; empty: the feed's own choice.
        providers: only these; empty: all.
        say: is told how far it is.
    """

    answers: Answers
    now: datetime
    as_of: date | None = None
    regions: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    say: Callable[[str], None] = field(default=lambda _: None, repr=False)

    @property
    def today(self) -> date:
        """The day of an answer that is made when it is asked for."""
        return self.as_of or self.now.date()

    def wants(self, provider: str) -> bool:
        """Return whether the provider's prices are asked for."""
        return not self.providers or provider in self.providers


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedReading:
    """What a feed said.

    Attributes:
        readings: one a provider and source.
        problems: parts of it that could not be read, a sentence each.
        unchanged: parts that are what they were last time.
    """

    readings: tuple[PriceReading, ...] = ()
    problems: tuple[str, ...] = ()
    unchanged: int = 0


Read = Callable[[FeedRequest], FeedReading]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A public feed that needs no account.

    Attributes:
        name: as `--from` takes it.
        title: for people.
        url: where it is.
        module: in pricing.feeds, with `read(request) -> FeedReading`.
        providers: whose prices it tells, as far as is known.
        takes: what `--from` takes beside an address.
        parts: what it publishes by provider, in its own names; empty: all in one.
        skipped: parts and flags of its rows, with why they are not offers; empty: they are.
        regions: its names of regions where ours differ.
        source: what is written beside each price, where it is of one provider and of the day.
        confidence: in them; high where the provider itself says them.
        most_mib: the largest document, unpacked.
        most_s: the longest time for all of it.
        asked_only: read only where its provider is named: too large for every day.
        is_signed: what comes is believed by its signature, so that any host may be referred to.
    """

    name: str
    title: str
    url: str
    module: str
    providers: frozenset[str]
    takes: str
    parts: tuple[str, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    regions: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    confidence: str = "medium"
    most_mib: int = 64
    most_s: int = 120
    asked_only: bool = False
    is_signed: bool = False


def read_parts(parts: Iterator[tuple[str, Callable[[], PriceReading | None]]]) -> FeedReading:
    """Read the parts of a feed, each failing alone.

    Args:
        parts: name and reader; a reader returns None where the part has not changed. Where nothing
            answers at all, the others are not tried.
    """
    readings: list[PriceReading] = []
    problems: list[str] = []
    unchanged = 0
    for name, read in parts:
        try:
            reading = read()
        except UnreachableError as error:
            problems += error.problems
            break
        except GpucostError as error:
            problems += [p if name in p else f"{name}: {p}" for p in error.problems]
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            reason = f"{type(error).__name__}: {error}"[:120]
            problems.append(f"{name}: not of the form that is known ({reason}).")
        else:
            unchanged += reading is None
            readings += [reading] if reading is not None else []
    return FeedReading(readings=tuple(readings), problems=tuple(problems), unchanged=unchanged)


def required(answer: Answer | None, question: Question) -> Answer:
    """Return the answer of a question that is not `changed_only`.

    Raises:
        InputError: there is none.
    """
    if answer is None:
        raise InputError(f"{question.name}: nothing answered.")
    return answer
