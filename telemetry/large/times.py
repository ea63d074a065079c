"""A column of timestamps, read in blocks: nvidia-smi's own form, and seconds since 1970."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from telemetry.large.fields import NumberColumn, as_floats
from telemetry.large.lines import BlockRows, UnfitError
from telemetry.large.words import digits_only
from telemetry.readers import clock
from telemetry.readers.units import Meaning

if TYPE_CHECKING:
    from datetime import tzinfo

    from numpy.typing import NDArray

_SECONDS, _MILLIS = 19, 23  # characters of 2026/11/01 10:00:00 and of the same with .123
_STEP_BACK_S = 1800.0
_MOST = {"hour": 23, "minute": 59, "second": 59}
# Two words of a time: `DD HH:MM` and `:SS.mmm`, and where in them digits and other bytes stand.
_CLOCK, _REST = 8, 16
_TEN, _BYTE = np.uint64(10), np.uint64(8)
_ALL_ZEROS = np.uint64(0x3030303030303030)
_CLOCK_MARKS, _CLOCK_DIGITS = np.uint64(0x0000FF0000FF0000), np.uint64(0xFFFF00FFFF000000)
_CLOCK_ZEROS = _CLOCK_DIGITS & _ALL_ZEROS
_CLOCK_MARKED = np.uint64(ord(" ") << 16 | ord(":") << 40)
_OF_REST = {
    _SECONDS: (np.uint64(0xFF), np.uint64(ord(":")), np.uint64(0xFFFF00)),
    _MILLIS: (
        np.uint64(0xFF0000FF),
        np.uint64(ord(":") | ord(".") << 24),
        np.uint64(0x00FFFFFF00FFFF00),
    ),
}


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
            naive = _naive(rows, column, self.length)
            odd = np.flatnonzero(np.isnan(naive))
            if len(odd):
                naive[odd] = self._odd(rows, column, odd)
            self.parts.append(naive)

    def _odd(self, rows: BlockRows, column: int, odd: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what the exact reader makes of cells such as 2026/1/05 10:00:00.000.

        Raises:
            UnfitError: some are spelled as the exact reader would rather have all.
        """
        texts = pd.Series([rows.cell(column, row) for row in odd.tolist()], dtype=object)
        found = clock.spelled(texts, clock.SMI_MILLIS)
        if self.length == _MILLIS:
            return found
        if np.isfinite(found).any():
            raise UnfitError
        return clock.spelled(texts, clock.SMI_SECONDS)

    def parsed(self, zone: tzinfo | None) -> clock.SourceClock:
        """Return all instants; the parts are let go."""
        if self.numbers is not None:
            return clock.epoch(as_floats(*self.numbers.joined()))
        naive = np.concatenate(self.parts)
        self.parts.clear()
        finite = np.isfinite(naive)
        known = naive if finite.all() else naive[finite]
        if zone is None and not (known[1:] < known[:-1] - _STEP_BACK_S).any():
            return clock.SourceClock(t_s=naive, absolute=True, local=True)
        return clock.local(naive, zone)


def _naive(rows: BlockRows, column: int, length: int) -> NDArray[np.float64]:
    """Return seconds since 1970 as if the times were UTC, NaN where a cell has another form."""
    begins, words = rows.begins(column), rows.words
    good = rows.ends[column] - begins == length
    begins = np.minimum(begins, len(words) - length)
    clocks, rest = words[begins + _CLOCK], words[begins + _REST]
    good &= clocks & _CLOCK_MARKS == _CLOCK_MARKED
    marks, marked, digits = _OF_REST[length]
    good &= rest & marks == marked
    clocks, rest = clocks & _CLOCK_DIGITS ^ _CLOCK_ZEROS, rest & digits ^ (digits & _ALL_ZEROS)
    good &= digits_only(clocks) & digits_only(rest)
    seconds = _days(rows, begins, good)
    # Each byte becomes ten times itself and the byte behind it: two digits in one.
    clocks, pairs = clocks * _TEN + (clocks >> _BYTE), rest * _TEN + (rest >> _BYTE)
    hour, minute, second = (
        _byte(word, place) for word, place in ((clocks, 3), (clocks, 6), (pairs, 1))
    )
    good &= (hour <= _MOST["hour"]) & (minute <= _MOST["minute"]) & (second <= _MOST["second"])
    of_day = (hour * 60 + minute) * 60 + second
    milli = _byte(pairs, 4) * 10 + _byte(rest, 6)
    return np.where(good, ((seconds + of_day) * 1000 + milli) / 1000.0, np.nan)


def _byte(word: NDArray[np.uint64], place: int) -> NDArray[np.int64]:
    return ((word >> np.uint64(8 * place)) & np.uint64(0xFF)).view(np.int64)


def _days(rows: BlockRows, begins: NDArray[np.int64], good: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the seconds since 1970 at which each row's day began; a day that is none is bad."""
    words = rows.words
    year_month = words[begins]
    day = words[begins + 8] & np.uint64(0xFFFF)
    changed = np.flatnonzero((year_month[1:] != year_month[:-1]) | (day[1:] != day[:-1])) + 1
    edges = [0, *changed.tolist(), len(begins)]
    found = np.zeros(len(begins), dtype=np.int64)
    for first, last in pairwise(edges):
        if first == last:
            continue
        text = rows.data[begins[first] : begins[first] + 10].decode("ascii", "replace")
        if text[4:5] + text[7:8] != "//":
            good[first:last] = False
            continue
        try:
            parsed = date.fromisoformat(text.replace("/", "-"))
        except ValueError:
            good[first:last] = False
            continue
        found[first:last] = int(datetime(*parsed.timetuple()[:3], tzinfo=UTC).timestamp())
        if found[first] < 0:  # the exact reader takes nothing before 1970 for a reading
            good[first:last] = False
    return found
