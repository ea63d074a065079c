"""Columns of a block to numbers: what is plain at once, what is odd as the exact reader does."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from telemetry.large.lines import BlockRows, UnfitError
from telemetry.large.words import uniform
from telemetry.readers.csv_text import numbers, throttled
from telemetry.readers.units import spelled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from telemetry.readers.units import Meaning

MISSING = np.int32(-(1 << 31))
_NONE = np.empty(0, dtype=np.int64)
_ZERO, _DOT, _TEN = 48, 46, 10
_MOST_DIGITS, _MOST_DECIMALS, _KEPT_DECIMALS = 9, 6, 2
_MOST_KEPT = 2e7  # in hundredths this is the most that 32 bits hold
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


@dataclass(slots=True)
class NumberColumn:
    """A column of numbers, as whole numbers of `1 / per` where it holds such.

    Attributes:
        source: its name in the header.
        known: what it means.
        parts: its values, a block each: int32 with MISSING, or float64 with NaN.
        per: of each part, 1 or 100; 0 where it is float64.
        missing: cells that are not numbers, by what they say.
    """

    source: str
    known: Meaning
    parts: list[NDArray[np.int32] | NDArray[np.float64]] = field(default_factory=list)
    per: list[int] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)

    def read(self, rows: BlockRows, column: int) -> None:
        """Add a block's cells.

        Raises:
            UnfitError: a cell is in another unit than its column.
        """
        values, decimals, odd = _plain(rows, column, self.known)
        if len(odd):
            exact = self._odd(rows, column, odd)
            values = values.astype(np.float64) / _TEN**decimals
            values[odd] = exact
            finite = values[np.isfinite(values)]
            decimals = _decimals(finite)
            if decimals <= _KEPT_DECIMALS:
                per = _TEN**decimals
                whole = np.full(len(values), MISSING, dtype=np.int32)
                whole[np.isfinite(values)] = np.rint(finite * per)
                self._add(whole, per)
                return
            self._add(values, 0)
        elif decimals > _KEPT_DECIMALS or values.max(initial=0) >= _MOST_KEPT * _TEN**decimals:
            self._add(values.astype(np.float64) / _TEN**decimals, 0)
        else:
            self._add(values.astype(np.int32), _TEN**decimals)

    def _add(self, values: NDArray[np.int32] | NDArray[np.float64], per: int) -> None:
        self.parts.append(values)
        self.per.append(per)

    def _odd(self, rows: BlockRows, column: int, odd: NDArray[np.int64]) -> NDArray[np.float64]:
        scale = self.known.scale or 1.0
        texts = pd.Series([rows.cell(column, row) for row in odd.tolist()], dtype=object)
        found = numbers(texts, scale=scale, to=self.known.to, typical=self.known.unit)
        if not np.array_equal(found.raw * scale, found.scaled, equal_nan=True):
            raise UnfitError
        self.missing += found.missing
        return found.raw

    def joined(self) -> tuple[NDArray[np.int32] | NDArray[np.float64], int]:
        """Return all parts as one, and what their numbers are counted in; the parts are let go."""
        per = 0 if 0 in self.per else max(self.per, default=1)
        parts = [
            part if own == per else recounted(part, own, per)
            for part, own in zip(self.parts, self.per, strict=True)
        ]
        self.parts.clear()
        self.per.clear()
        if not parts:
            return np.empty(0, dtype=np.int32), per
        whole = np.concatenate(parts)
        if per == 0:
            return np.asarray(whole, dtype=np.float64), per
        return np.asarray(whole, dtype=np.int32), per


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
    found = values / float(per)
    found[values == MISSING] = np.nan
    return np.asarray(found)


def _decimals(values: NDArray[np.float64]) -> int:
    """Return how many decimals tell all values, 3 where two do not or they are too great."""
    if len(values) and (np.abs(values).max() >= _MOST_KEPT or values.min() < 0):
        return _KEPT_DECIMALS + 1
    for decimals in (0, _KEPT_DECIMALS):
        if (np.rint(values * _TEN**decimals) / _TEN**decimals == values).all():
            return decimals
    return _KEPT_DECIMALS + 1


def _plain(
    rows: BlockRows, column: int, known: Meaning
) -> tuple[NDArray[np.int64], int, NDArray[np.int64]]:
    """Return values times ten to the number of decimals, that number, and the rows to look at."""
    suffix = _suffix(rows, column, known)
    if (found := uniform(rows, column, suffix)) is not None:
        return *found, _NONE
    data, at, ends = rows.bytes, rows.begins(column), rows.ends[column]
    values, at, _ = _digits(data, at, _MOST_DIGITS)
    odd = at == rows.begins(column)
    decimals = 0
    dotted = data[at] == _DOT
    if dotted.any():
        fractions, behind, counts = _digits(data, at + dotted, _MOST_DECIMALS, dotted)
        decimals = int(counts.max())
        wide = np.power(_TEN, decimals - counts)
        values = values.astype(np.int64) * _TEN**decimals + fractions * wide
        at = behind
    odd |= ends - at != len(suffix)
    for i, byte in enumerate(suffix):
        odd |= data[at + i] != byte
    return values, decimals, np.flatnonzero(odd)


def _digits(
    data: NDArray[np.uint8],
    at: NDArray[np.int64],
    most: int,
    active: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the number that stands at each place, the place behind it, and its digits' count."""
    values = np.zeros(len(at), dtype=np.int64)
    counts = np.zeros(len(at), dtype=np.int64)
    for _ in range(most):
        digit = data[at] - np.uint8(_ZERO)
        here = digit < _TEN
        if active is not None:
            here &= active
        if not here.any():
            break
        if here.all():
            values *= _TEN
            values += digit
            at = at + 1
            counts += 1
        else:
            values = np.where(here, values * _TEN + digit, values)
            at = at + here
            counts += here
        active = here
    return values, at, counts


def _suffix(rows: BlockRows, column: int, known: Meaning) -> bytes:
    """Return what follows the numbers of a column, by the first cell that is one."""
    for row in range(min(rows.count, 32)):
        cell = rows.cell(column, row)
        if (found := _NUMBER.match(cell)) is not None:
            unit = cell[found.end() :]
            if unit.strip() and spelled(unit) != known.unit:
                raise UnfitError
            return unit.encode()
    return b""


def hashed(rows: BlockRows, column: int) -> NDArray[np.uint64]:
    """Return a number for each cell of a column: the same for the same bytes."""
    begins = rows.begins(column)
    lengths = np.maximum(rows.ends[column] - begins, 0)
    words = rows.words
    found = lengths.astype(np.uint64)
    last = len(words) - 1
    for done in range(0, int(lengths.max(initial=0)), 8):
        word = words[np.minimum(begins + done, last)]
        left = lengths - done
        if int(left.min()) < 8:  # noqa: PLR2004 - bytes of a word
            short = np.clip(left, 0, 8).astype(np.uint64) * np.uint64(8)
            mask = np.where(
                short >= np.uint64(64),
                np.uint64(0xFFFFFFFFFFFFFFFF),
                (np.uint64(1) << (short & np.uint64(63))) - np.uint64(1),
            )
            word = word & mask
        found = (found ^ word) * np.uint64(0x9E3779B97F4A7C15)
        found ^= found >> np.uint64(32)
    return np.asarray(found, dtype=np.uint64)


@dataclass(slots=True)
class ThrottleColumn:
    """What held clocks down, in columns of bits and of flags: 1, 0 or MISSING a row."""

    columns: tuple[int, ...]
    parts: list[NDArray[np.int32]] = field(default_factory=list)

    def read(self, rows: BlockRows) -> None:
        """Add a block's cells."""
        held = np.full(rows.count, np.nan)
        for column in self.columns:
            codes, unique = pd.factorize(hashed(rows, column))
            firsts = np.full(len(unique), rows.count)
            np.minimum.at(firsts, codes, np.arange(rows.count))
            texts = pd.Series([rows.cell(column, row) for row in firsts.tolist()], dtype=object)
            held = np.fmax(held, throttled(texts)[codes]) if len(texts) else held
        self.parts.append(np.where(np.isnan(held), MISSING, held).astype(np.int32))
