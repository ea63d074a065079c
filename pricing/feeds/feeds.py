"""Which public feeds `gpucost prices update` reads: `pricing/data/feeds.toml`."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

import msgspec

from pricing.refresh.reading import Feed, Read
from pricing.tables import read_toml

_FEEDS = msgspec.convert((read_toml("feeds.toml") or {})["feed"], tuple[Feed, ...])
FEEDS: Mapping[str, Feed] = MappingProxyType({feed.name: feed for feed in _FEEDS})
"""Name -> feed."""


def reader(feed: Feed) -> Read:
    """Return the reader of a feed; it is imported when it reads."""
    return cast("Read", import_module(f"pricing.feeds.{feed.module}").read)
