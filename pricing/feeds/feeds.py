"""Which public feeds are read (`pricing/data/feeds.toml`), and how their documents are."""

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import msgspec

from pricing.errors import InputError
from pricing.money import plain
from pricing.refresh.feed_rows import FeedPage, FeedRow, to_reading
from pricing.refresh.reading import Feed, FeedReading, FeedRequest, Question, Read, required
from pricing.tables import read_toml

_FEEDS = msgspec.convert((read_toml("feeds.toml") or {})["feed"], tuple[Feed, ...])
FEEDS: Mapping[str, Feed] = MappingProxyType({feed.name: feed for feed in _FEEDS})
"""Name -> feed."""


def reader(feed: Feed) -> Read:
    """Return the reader of a feed; it is imported when it reads."""
    module = import_module(f"pricing.feeds.{feed.module}")
    if not feed.source:
        return cast("Read", module.read)
    return partial(_read_rows, feed, module.rows)


def _read_rows(
    feed: Feed, rows: Callable[[FeedRequest, Counter[str]], Iterable[FeedRow]], request: FeedRequest
) -> FeedReading:
    """Return the one reading of a feed of one provider, as of the day on which it is read."""
    (provider,) = feed.providers
    page = FeedPage(
        provider=provider, source=feed.source, day=request.today, confidence=feed.confidence
    )
    reading = to_reading(page, rows(request, page.left_out))
    return FeedReading(readings=(reading,))


def document(request: FeedRequest, question: Question) -> Any:  # noqa: ANN401 - a document of any shape
    """Return the document that answers a question; numbers with a point are `Decimal`.

    Raises:
        InputError: it is not JSON.
    """
    data = required(request.answers.get(question), question).path.read_bytes()
    return parsed(data, question.name)


def parsed(data: bytes, name: str) -> Any:  # noqa: ANN401 - a document of any shape
    """Return the document of a text.

    Raises:
        InputError: it is not JSON.
    """
    try:
        return json.loads(data, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: cannot be read: not whole JSON ({error}).") from None


def undated(path: Path) -> InputError:
    """Return why a table that is a file cannot be read without a day."""
    return InputError(
        f"{path}: a table carries no date, and the file's own is that of the copy. Say of "
        "which day its prices are: --as-of YYYY-MM-DD."
    )


def digits(value: object) -> str:
    """Return the digits of a number, "" where there is none.

    Anything else as it is, for the gate.
    """
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, Decimal | int):
        return plain(Decimal(value))
    return str(value)[:40]


def number(value: object) -> float | None:
    """Return the number, where it is one."""
    return float(value) if isinstance(value, Decimal | int) and value is not True else None


def rows_of(data: bytes, name: str, columns: frozenset[str]) -> Iterator[Mapping[str, str]]:
    """Yield the rows of a small document.

    Raises:
        InputError: it ends within a line, lacks columns, or is not text.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{name}: cannot be read: it is not text.") from None
    if text and not text.endswith("\n"):
        raise InputError(f"{name}: cannot be read: it ends within a line, so it was cut short.")
    yield from table(io.StringIO(text, newline=""), name, columns)


def check_end(path: Path, name: str) -> None:
    """Refuse a text that ends within a line.

    Raises:
        InputError: it does.
    """
    with path.open("rb") as file:
        if file.seek(0, 2):
            file.seek(-1, 2)
            if file.read(1) != b"\n":
                raise InputError(
                    f"{name}: cannot be read: it ends within a line, so it was cut short."
                )


def table(lines: Iterator[str], name: str, columns: frozenset[str]) -> Iterator[Mapping[str, str]]:
    """Yield the rows under a heading, as text; cells that a line lacks are empty.

    Raises:
        InputError: columns are missing, or a line cannot be read.
    """
    read = csv.DictReader(lines, restval="")
    missing = sorted(columns - set(read.fieldnames or ()))
    if missing:
        raise InputError(f"{name}: not the table that is known, without {', '.join(missing)}.")
    try:
        yield from read
    except csv.Error as error:
        raise InputError(f"{name}: cannot be read: {error}.") from error
