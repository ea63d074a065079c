"""Where refreshed prices are kept, and the catalog that joins them with the bundled ones."""

import os
from collections.abc import Callable
from datetime import date
from pathlib import Path

from pricing.catalog.catalog import Catalog
from pricing.catalog.catalog import load_catalog as load_with
from pricing.refresh import store

CACHE = "GPUCOST_CACHE_DIR"


def price_folder() -> Path:
    """Return the folder of refreshed prices: in GPUCOST_CACHE_DIR, else the user's cache."""
    named = os.environ.get(CACHE)
    if named:
        return Path(named) / "prices"
    from platformdirs import user_cache_path  # noqa: PLC0415 - only without GPUCOST_CACHE_DIR

    return user_cache_path("gpucost") / "prices"


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
    return load_with(as_of, extra=stored.offers)
