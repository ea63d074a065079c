"""Copies of a service by the hour, in words."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from templates.language.speech import join, say, word

if TYPE_CHECKING:
    from collections.abc import Sequence

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY_H = 24


def copies(by_hour: Sequence[int]) -> str:
    """Return how many copies run when: `0-5 h: 1, 6-23 h: 4`, days that are alike together."""
    if len(by_hour) == 1:
        return say("{count} at any time", count=by_hour[0])
    days = [by_hour[at : at + _DAY_H] for at in range(0, len(by_hour), _DAY_H)]
    if len(days) == 1:
        return _day(days[0])
    told = []
    for day, run in groupby(range(len(days)), key=days.__getitem__):
        at = list(run)
        first, last = (word("day", _DAYS[day]) for day in (at[0], at[-1]))
        named = first if len(at) == 1 else f"{first}-{last}"
        told.append(f"{named} {_day(day)}")
    return say("; ").join(told)


def _day(by_hour: Sequence[int]) -> str:
    told = []
    for count, run in groupby(range(len(by_hour)), key=by_hour.__getitem__):
        at = list(run)
        span = f"{at[0]}" if len(at) == 1 else f"{at[0]}-{at[-1]}"
        told.append(say("{span} h: {count}", span=span, count=count))
    return join(told)
