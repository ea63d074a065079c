"""Folders of the user: the cache, and what is remembered from one call to the next."""

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


STATE = "GPUCOST_STATE_DIR"


def state_folder() -> Path:
    """Return the folder of the journal: GPUCOST_STATE_DIR, else the user's state folder."""
    named = os.environ.get(STATE)
    if named:
        return Path(named)
    from platformdirs import user_state_path  # noqa: PLC0415 - only without GPUCOST_STATE_DIR

    return user_state_path("gpucost")
