"""Text cells of a table to numbers: units in the cell, placeholders, decimal commas."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from telemetry.parsing.units import SCALES, THROTTLE_BITS, spelled

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PLACEHOLDER = re.compile(r"\[.*\]?|N/?A|-|ERR!|nan|none|null", re.IGNORECASE)
_VALUE = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(\S.*)?")
_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+(?!\d)")
_PAIR = re.compile(r"([\d.]+)\s*([A-Za-z%]*)\s*/\s*[\d.]+\s*([A-Za-z%]*)")
MOST = 1e30  # nothing measured is greater, and sums of greater numbers overflow
THROTTLE_MOST = 0xFFFF_FFFF
_FLAGS = {"active": 1.0, "not active": 0.0, "1": 1.0, "0": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A column of cells as numbers.

    Attributes:
        raw: values in the source's unit, NaN where missing.
        scaled: values in the slot's unit.
        missing: cells that are not numbers, by what they say.
    """

    raw: NDArray[np.float64]
    scaled: NDArray[np.float64]
    missing: Counter[str]


def numbers(
    texts: pd.Series, *, scale: float, to: str, sign: str = ".", typical: str = ""
) -> Numbers:
    """Return a column's numbers.

    Args:
        texts: the cells.
        scale: the column's factor, for cells that carry no unit.
        to: the slot's unit, to which a unit in the cell is converted.
        sign: of decimals, "." or ","; "" where a comma parts thousands, as in tables for people.
        typical: the column's unit, for which `scale` holds.
    """
    codes, unique = pd.factorize(texts.fillna(""))
    raw, scaled = np.full(len(unique), np.nan), np.full(len(unique), np.nan)
    said: dict[int, str] = {}
    for i, cell in enumerate(unique):
        text = str(cell).strip()
        parsed = _VALUE.fullmatch(_plain(text, sign))
        factor = _factor(parsed[2], scale, to, typical) if parsed else None
        if parsed is None or factor is None or abs(float(parsed[1])) > MOST:
            said[i] = _kind(text)
            continue
        raw[i] = float(parsed[1])
        scaled[i] = raw[i] * factor
    counts = np.bincount(codes, minlength=len(unique))
    missing: Counter[str] = Counter()
    for i, kind in said.items():
        missing[kind] += int(counts[i])
    return Numbers(raw=raw[codes], scaled=scaled[codes], missing=missing)


def _plain(text: str, sign: str) -> str:
    """Return a cell's number with a decimal point; of `412W / 700W` the first."""
    if sign == "," and "," in text:
        text = text.replace(",", ".")
    elif not sign:
        text = text.strip("*_` ")
        text = text.replace(",", "") if _THOUSANDS.match(text) else text.replace(",", ".")
    if "/" in text and (pair := _PAIR.fullmatch(text)):
        return f"{pair[1]} {pair[2] or pair[3] or ''}".strip()
    return text


def _factor(unit: str | None, scale: float, to: str, typical: str) -> float | None:
    if unit is None:
        return scale
    known = spelled(unit)
    return scale if known == typical else SCALES.get((known or "", to))


def _kind(text: str) -> str:
    if not text:
        return "empty"
    if _PLACEHOLDER.fullmatch(text):
        return text if len(text) < 60 else "[...]"  # noqa: PLR2004 - a line of a report
    return "not a number"


def throttled(texts: pd.Series) -> NDArray[np.float64]:
    """Return 1 where a bitmask or an Active/Not Active cell says clocks were held down, else 0."""
    codes, unique = pd.factorize(texts.fillna(""))
    return np.array([_throttled(str(cell).strip()) for cell in unique] or [np.nan])[codes]


def _throttled(cell: str) -> float:
    if cell.lower().startswith("0x"):
        try:
            return float(bool(int(cell, 16) & THROTTLE_BITS))
        except ValueError:
            return np.nan
    return _FLAGS.get(cell.lower(), np.nan)
