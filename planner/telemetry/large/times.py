"""A column of timestamps, read in blocks: nvidia-smi's own form, and seconds since 1970."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from planner.telemetry.large.fields import NumberColumn, as_floats
from planner.telemetry.large.lines import BlockRows, UnfitError
from planner.telemetry.parsing import clock
from planner.telemetry.parsing.units import Meaning

if TYPE_CHECKING:
    from datetime import tzinfo

    from numpy.typing import NDArray

_SECONDS, _MILLIS = 19, 23  # characters of 2026/11/01 10:00:00 and of the same with .123
_STEP_BACK_S = 1800.0
# Where digits stand, and where other characters do.
_DIGITS = {"hour": (11, 12), "minute": (14, 15), "second": (17, 18), "milli": (20, 21, 22)}
_MARKS = {4: "/", 7: "/", 10: " ", 13: ":", 16: ":", 19: "."}
_MOST = {"hour": 23, "minute": 59, "second": 59, "milli": 999}


@dataclass(slots=True)
class TimeColumn:
    """When each row was taken."""

    length: int = 0
    parts: list[NDArray[np.float64]] = field(default_factory=list)
    numbers: NumberColumn | None = None

    def read(self, rows: BlockRows, column: int) -> None:
        """Add a block's cells.

        Raises:
            UnfitError: they are of another form.
        """
        if not self.length:
            cell = rows.cell(column, 0)
            self.length = len(cell)
            if cell.replace(".", "", 1).isdecimal():
                self.numbers = NumberColumn("", Meaning(target="timestamp", unit="s"))
            elif len(cell) not in {_SECONDS, _MILLIS} or cell[4] != "/":
                raise UnfitError
        if self.numbers is not None:
            self.numbers.read(rows, column)
        else:
            self.parts.append(_naive(rows, column, self.length))

    def parsed(self, zone: tzinfo | None) -> clock.SourceClock:
        """Return all instants; the parts are let go."""
        if self.numbers is not None:
            return clock.epoch(as_floats(*self.numbers.joined()))
        naive = np.concatenate(self.parts)
        self.parts.clear()
        known = naive[np.isfinite(naive)]
        if zone is None and not (np.diff(known) < -_STEP_BACK_S).any():
            return clock.SourceClock(t_s=naive, absolute=True, local=True)
        return clock.local(naive, zone)


def _naive(rows: BlockRows, column: int, length: int) -> NDArray[np.float64]:
    """Return seconds since 1970 as if the times were UTC, NaN where a cell has another form."""
    begins, data = rows.begins(column), rows.bytes
    good = rows.ends[column] - begins == length
    begins = np.minimum(begins, len(data) - length)
    marks = {place: mark for place, mark in _MARKS.items() if place < length}
    for place, mark in marks.items():
        good &= data[begins + place] == ord(mark)
    seconds = _days(rows, begins, good)
    parts = {}
    for name, places in _DIGITS.items():
        if places[-1] >= length:
            continue
        value = np.zeros(len(begins), dtype=np.int64)
        for place in places:
            digit = data[begins + place] - np.uint8(48)
            good &= digit < 10  # noqa: PLR2004 - a digit
            value = value * 10 + digit
        good &= value <= _MOST[name]
        parts[name] = value
    of_day = (parts["hour"] * 60 + parts["minute"]) * 60 + parts["second"]
    millis = (seconds + of_day) * 1000 + parts.get("milli", 0)
    return np.where(good, millis / 1000.0, np.nan)


def _days(rows: BlockRows, begins: NDArray[np.int64], good: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the seconds since 1970 at which each row's day began; a day that is none is bad."""
    words = rows.words
    year_month = words[begins]
    day = words[begins + 8] & np.uint64(0xFFFF)
    changed = np.flatnonzero((np.diff(year_month) != 0) | (np.diff(day) != 0)) + 1
    edges = [0, *changed.tolist(), len(begins)]
    found = np.zeros(len(begins), dtype=np.int64)
    for first, last in pairwise(edges):
        if first == last:
            continue
        text = rows.data[begins[first] : begins[first] + 10].decode("ascii", "replace")
        try:
            parsed = date.fromisoformat(text.replace("/", "-"))
        except ValueError:
            good[first:last] = False
            continue
        found[first:last] = int(datetime(*parsed.timetuple()[:3], tzinfo=UTC).timestamp())
    return found
