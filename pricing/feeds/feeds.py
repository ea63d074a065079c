"""Which public feeds `gpucost prices update` reads: `pricing/data/feeds.toml`."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import cast

import msgspec

from pricing.refresh.feed_rows import FeedPage, FeedRow, to_reading
from pricing.refresh.reading import Feed, FeedReading, FeedRequest, Read
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
