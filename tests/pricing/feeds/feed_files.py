"""Reads files as a public price feed."""

from datetime import UTC, date, datetime
from pathlib import Path

from pricing.errors import InputError
from pricing.feeds.feeds import FEEDS, reader
from pricing.refresh.reading import FeedReading, FeedRequest, PriceReading
from providers.price_feed import FeedFiles

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)


def feed_of(name: str, place: Path, as_of: date | None = None) -> FeedReading:
    """Return what a feed's reader makes of a file or a folder."""
    feed = FEEDS[name]
    return reader(feed)(FeedRequest(answers=FeedFiles(feed=feed, path=place), now=NOW, as_of=as_of))


def readings_of(name: str, place: Path, as_of: date | None = None) -> tuple[PriceReading, ...]:
    """Return the readings of files of which all can be read."""
    said = feed_of(name, place, as_of)
    assert said.problems == ()
    return said.readings


def problems_of(name: str, place: Path, as_of: date | None = None) -> tuple[str, ...]:
    """Return what is wrong with files of which something cannot be read."""
    try:
        said = feed_of(name, place, as_of)
    except InputError as error:
        return error.problems
    assert said.problems
    return said.problems
