"""Columns of a log to numbers: what is plain by DuckDB, what is odd as the exact reader does."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from telemetry.large.table import NeedsSlowReaderError, Table, quoted, refuse_quoted
from telemetry.readers import clock
from telemetry.readers.csv_text import MOST, numbers, throttled
from telemetry.readers.units import Meaning, spelled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from numpy.typing import NDArray


MISSING = np.int32(-(1 << 31))
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_FORMS = {
    23: ("%Y/%m/%d %H:%M:%S.%g", clock.SMI_MILLIS),
    19: ("%Y/%m/%d %H:%M:%S", clock.SMI_SECONDS),
}
_STEP_BACK_S = 1800.0
_MOST_LABELS = 100_000
_MOST_KEPT = 2e7  # in hundredths this is the most that 32 bits hold


@dataclass(slots=True, kw_only=True)
class NumberColumn:
    """A column of numbers, as whole numbers of `1 / per` where it holds such.

    Attributes:
        source: its name in the header.
        meaning: what it means.
        counts: int32 with MISSING; float64 with NaN where `per` is 0.
        per: 1 or 100; 0 for floats.
        missing: cells that are not numbers, by what they say.
    """

    source: str
    meaning: Meaning
    counts: NDArray[np.int32] | NDArray[np.float64]
    per: int
    missing: Counter[str] = field(default_factory=Counter)


class Labels:
    """What columns of few different texts say, as a code for each row.

    Args:
        columns: by which rows are told apart.
        cells: whose texts are wanted of each.
    """

    def __init__(self, columns: Sequence[int], cells: Sequence[int]) -> None:
        self.sql = f"hash({', '.join(f'c{i}' for i in columns)})"
        self._cells = cells
        self._codes: dict[int, int] = {}
        self._first_rows: list[int] = []
        self._parts: list[NDArray[np.int32]] = []
        self._rows = 0

    def add(self, hashes: pd.Series) -> None:
        """Add the hashes of some rows."""
        codes, unique = pd.factorize(hashes.to_numpy(dtype=np.uint64))
        own = np.empty(len(unique), dtype=np.int32)
        for i, key in enumerate(unique.tolist()):
            if key not in self._codes:
                if len(self._codes) == _MOST_LABELS:
                    raise NeedsSlowReaderError
                self._codes[key] = len(self._codes)
                self._first_rows.append(self._rows + int(np.argmax(codes == i)))
            own[i] = self._codes[key]
        self._parts.append(own[codes])
        self._rows += len(codes)

    def joined(
        self, table: Table, head: pd.DataFrame
    ) -> tuple[NDArray[np.int32], list[tuple[str, ...]]]:
        """Return the code of each row, and the texts of each code; the parts are let go."""
        later = [key for key, n in self._codes.items() if self._first_rows[n] >= len(head)]
        labels = table.labels(self.sql, later, self._cells)
        first = head[[f"x{i}" for i in self._cells]]
        texts = [
            labels[key] if key in labels else tuple(first.iloc[self._first_rows[n]])
            for key, n in self._codes.items()
        ]
        refuse_quoted(cell for row in texts for cell in row)
        codes = np.concatenate(self._parts)
        self._parts.clear()
        return codes, [tuple(cell.strip() for cell in row) for row in texts]


def throttle_of(
    columns: Sequence[tuple[NDArray[np.int32], list[tuple[str, ...]]]],
) -> NDArray[np.int32] | None:
    """Return whether any column says that clocks were held down, 1, 0 or MISSING a row."""
    if not columns:
        return None
    held_down = np.full(len(columns[0][0]), np.nan)
    for codes, texts in columns:
        held_down = np.fmax(
            held_down, throttled(pd.Series([row[0] for row in texts], dtype=object))[codes]
        )
    return np.where(np.isnan(held_down), MISSING, held_down).astype(np.int32)


class Cells:
    """Cells of one column as numbers, in whole `1 / per` where they are such.

    Args:
        column: its name.
        meaning: what it means.
        unit: what stands behind its numbers.
        constant: a cell and its number, where most cells are the same.
    """

    def __init__(
        self, column: str, meaning: Meaning, unit: str, constant: tuple[str, float] | None = None
    ) -> None:
        number = f"substring({column}, 1, strlen({column}) - {len(unit)})" if unit else column
        plain = [f"ends_with({column}, {quoted(unit)})"] if unit else []
        plain.append(f"NOT contains({column}, '_')")  # which DuckDB takes between digits
        usual = f"WHEN {column} = {quoted(constant[0])} THEN {constant[1]!r}" if constant else ""
        self.sql = f"CASE {usual} WHEN {' AND '.join(plain)} THEN try_cast({number} AS DOUBLE) END"
        self.is_odd = f"NOT coalesce(abs({self.sql}) < {MOST!r}, false)"
        self.odd = 0
        self._column, self._meaning = column, meaning
        self._parts: list[NDArray[np.int32] | NDArray[np.float64]] = []
        self._per: list[int] = []

    @classmethod
    def of(cls, place: int, meaning: Meaning, head: pd.DataFrame) -> Cells:
        """Return a column by its first cells: the unit behind the first one that is a number."""
        cells = head[f"x{place}"]
        for cell in cells.head(32):
            number = _NUMBER.match(cell.strip())
            if number is not None:
                unit = cell.strip()[number.end() :]
                if unit.strip() and spelled(unit) != meaning.unit:
                    raise NeedsSlowReaderError
                constant_cells = (cells == cells.iloc[0]).all() and abs(float(number[0])) < MOST
                constant = (cell, float(number[0])) if constant_cells else None
                return cls(f"c{place}", meaning, unit, constant)
        return cls(f"c{place}", meaning, "")

    def add(self, values: pd.Series) -> None:
        """Add the numbers of some rows; what is none of them is odd."""
        cells = values.to_numpy(dtype=np.float64, na_value=np.nan)
        good = np.abs(cells) < MOST
        if not good.all():
            self.odd += int((~good).sum())
            cells = np.where(good, cells, np.nan)
        counts, per = _counted(cells)
        self._parts.append(counts)
        self._per.append(per)

    def joined(self, table: Table, source: str) -> NumberColumn:
        """Return the column, odd cells as the exact reader reads them; the parts are let go.

        Raises:
            NeedsSlowReaderError: a cell is in another unit than its column.
        """
        values, per = self._joined()
        column = NumberColumn(source=source, meaning=self._meaning, counts=values, per=per)
        if self.odd:
            self._read_odd(table, column)
        return column

    def _joined(self) -> tuple[NDArray[np.int32] | NDArray[np.float64], int]:
        per = 0 if 0 in self._per else max(self._per, default=1)
        parts = [
            part if own == per else recounted(part, own, per)
            for part, own in zip(self._parts, self._per, strict=True)
        ]
        self._parts.clear()
        self._per.clear()
        if per == 0:
            return np.concatenate(parts, dtype=np.float64), per
        return np.concatenate(parts, dtype=np.int32), per

    def _read_odd(self, table: Table, column: NumberColumn) -> None:
        """Put what the exact reader makes of odd cells in their places."""
        scale = self._meaning.scale or 1.0
        parts = []
        for texts in table.texts(self._column, self.is_odd):
            read = numbers(texts, scale=scale, to=self._meaning.to, typical=self._meaning.unit)
            if not np.array_equal(read.raw * scale, read.scaled, equal_nan=True):
                raise NeedsSlowReaderError
            column.missing += read.missing
            parts.append(read.raw)
        exact = np.concatenate(parts)
        odd = np.isnan(column.counts) if column.per == 0 else column.counts == MISSING
        if np.isfinite(exact).any():
            floats = as_floats(column.counts, column.per)
            floats[odd] = exact
            column.counts, column.per = _counted(floats)


def _counted(
    values: NDArray[np.float64],
) -> tuple[NDArray[np.int32] | NDArray[np.float64], int]:
    """Return numbers as whole ones of `1 / per`, or as they are where 32 bits do not hold such."""
    read = np.isfinite(values)
    whole = bool(read.all())
    numbers_ = values if whole else values[read]
    if len(numbers_) and (numbers_.max() >= _MOST_KEPT or numbers_.min() < 0):
        return values, 0
    for per in (1, 100):
        rounded = np.rint(numbers_ * per)
        if (rounded / per == numbers_).all():
            if whole:
                return rounded.astype(np.int32), per
            counts = np.full(len(values), MISSING, dtype=np.int32)
            counts[read] = rounded
            return counts, per
    return values, 0


def recounted(
    part: NDArray[np.int32] | NDArray[np.float64], own: int, per: int
) -> NDArray[np.int32] | NDArray[np.float64]:
    """Return numbers of `1 / own` as such of `1 / per`, as floats where per is 0."""
    if per == 0:
        return as_floats(part, own)
    return np.where(part == MISSING, MISSING, part * np.int32(per // own))


def as_floats(values: NDArray[np.int32] | NDArray[np.float64], per: int) -> NDArray[np.float64]:
    """Return counted values as numbers, NaN where missing."""
    if per == 0:
        return np.asarray(values, dtype=np.float64)
    floats = values / float(per)
    floats[values == MISSING] = np.nan
    return np.asarray(floats)


class Times:
    """Times as nvidia-smi writes them, in seconds since 1970 as if they were UTC."""

    def __init__(self, column: str, length: int) -> None:
        form, self._exact = _FORMS[length]
        self._column = column
        cell = column if column == "c0" else f"ltrim({column})"
        self.sql = (
            f"CASE WHEN strlen({cell}) = {length} THEN epoch_ms(try_strptime({cell}, '{form}')) END"
        )
        self.is_odd = f"{self.sql} IS NULL"
        self._parts: list[NDArray[np.float64]] = []
        self.odd = 0

    def add(self, millis: pd.Series) -> None:
        """Add the times of some rows."""
        seconds = millis.to_numpy(dtype=np.float64, na_value=np.nan) / 1000.0
        self.odd += int(np.isnan(seconds).sum())
        self._parts.append(seconds)

    def instants(self, table: Table, zone: tzinfo | None) -> clock.SourceClock:
        """Return all instants; the parts are let go.

        Raises:
            NeedsSlowReaderError: some are spelled as the exact reader would rather have all.
        """
        naive = np.concatenate(self._parts)
        self._parts.clear()
        if self.odd:
            spelled_out = map(self._spelled, table.texts(self._column, self.is_odd))
            naive[np.isnan(naive)] = np.concatenate(list(spelled_out))
        naive = clock.placed(naive)
        known_s = naive[np.isfinite(naive)]
        if zone is None and not (known_s[1:] < known_s[:-1] - _STEP_BACK_S).any():
            return clock.SourceClock(t_s=naive, absolute=True, local=True)
        return clock.local(naive, zone)

    def _spelled(self, texts: pd.Series) -> NDArray[np.float64]:
        """Return what the exact reader makes of cells such as 2026/1/05 10:00:00.000."""
        texts = texts.str.strip()
        if clock.any_zoned(texts):
            raise NeedsSlowReaderError
        millis = clock.spelled(texts, clock.SMI_MILLIS)
        if self._exact == clock.SMI_MILLIS:
            return millis
        if np.isfinite(millis).any():
            raise NeedsSlowReaderError
        return clock.spelled(texts, self._exact)


class EpochTimes(Cells):
    """Times as numbers, whose size tells whether they are seconds, milliseconds ..."""

    def instants(self, table: Table, zone: tzinfo | None) -> clock.SourceClock:
        """Return all instants; the parts are let go."""
        del zone
        seconds = as_floats(*self._joined())
        if self.odd:
            texts = pd.concat(list(table.texts(self._column, self.is_odd)))
            seconds[np.isnan(seconds)] = pd.to_numeric(texts, errors="coerce")
        return clock.epoch(seconds)


def times_column(column: str, first: str) -> Times | EpochTimes:
    """Return how a column of times is read whose first cell is this."""
    if first.replace(".", "", 1).isdecimal():
        return EpochTimes(column, Meaning(target="timestamp", unit="s"), "")
    if len(first) not in _FORMS or first[4] != "/":
        raise NeedsSlowReaderError
    return Times(column, len(first))
