"""Another currency beside dollars, at a rate of a day that the reader gave."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from templates.language.speech import say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date
    from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRate:
    """What a dollar is worth.

    Attributes:
        currency: its code in three letters: CNY.
        per_usd: units of it for one dollar, above 0.
        day: the day of the rate.
    """

    currency: str
    per_usd: Decimal
    day: date


_ASKED: ContextVar[ExchangeRate | None] = ContextVar("rate", default=None)


@contextmanager
def showing(rate: ExchangeRate | None) -> Iterator[None]:
    """Let totals that are said inside have another currency beside them; None: dollars alone."""
    before = _ASKED.set(rate)
    try:
        yield
    finally:
        _ASKED.reset(before)


def asked_rate() -> ExchangeRate | None:
    """Return the rate that was asked for."""
    return _ASKED.get()


def rate_words() -> str:
    """Return the rate with its day in a sentence; empty where none was asked for."""
    rate = asked_rate()
    if rate is None:
        return ""
    return say(
        "{currency} beside dollars at {rate} for one, the rate given for {day}; what is billed "
        "is dollars.",
        currency=rate.currency,
        rate=f"{rate.per_usd:f}",
        day=rate.day.isoformat(),
    )
