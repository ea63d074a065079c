"""When a fact holds: the dates as sources print them, full, partial or missing."""

import re
from datetime import date
from functools import cache

STALE_AFTER_DAYS = 30
"""No younger price is stale, and a launch spends by no older one, unless the live one was read."""

_FULL = re.compile(r"\d{4}-\d{2}-\d{2}")
_PARTIAL = re.compile(r"(\d{4})(?:-(\d{2}))?(?!\d)")


@cache
def read_date(text: str) -> tuple[date, bool]:
    """Return the day a date text counts as, and whether it was a full date.

    A partial or undated text counts as the first day of the earliest year or month it names:
    "2024-12" is 2024-12-01, "2025/2026 (undated)" is 2025-01-01.

    Raises:
        ValueError: the text names no year.
    """
    if _FULL.fullmatch(text):
        return date.fromisoformat(text), True
    found = [date(int(year), int(month or 1), 1) for year, month in _PARTIAL.findall(text)]
    if not found:
        raise ValueError(f"{text!r} names no year; write YYYY-MM-DD, YYYY-MM or YYYY")
    return min(found), False


@cache
def read_day(text: str) -> date | None:
    """Return a full date, or None where the cell is empty.

    Raises:
        ValueError: the text is not a full date.
    """
    return date.fromisoformat(text) if text else None
