"""Where gpucost keeps what it can fetch again."""

import os
from pathlib import Path

CACHE = "GPUCOST_CACHE_DIR"


def cache_folder() -> Path:
    """Return the folder: GPUCOST_CACHE_DIR, else the user's cache."""
    named = os.environ.get(CACHE)
    if named:
        return Path(named)
    from platformdirs import user_cache_path  # noqa: PLC0415 - only without GPUCOST_CACHE_DIR

    return user_cache_path("gpucost")
