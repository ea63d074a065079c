"""Where refreshed prices are kept, and the catalog that joins them with the bundled ones."""

from collections.abc import Callable
from datetime import date
from pathlib import Path

from gpucost.files.user_folders import cache_folder
from pricing.catalog.catalog import Catalog
from pricing.catalog.catalog import load_catalog as load_with
from pricing.refresh import store


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
    return load_with(as_of, extra=stored.offers)
