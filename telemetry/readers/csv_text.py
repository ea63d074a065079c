"""Lines of a CSV log to rows of cells, whatever lies between them."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from telemetry.readers import clock
from telemetry.readers.column_names import (
    cells_of,
    csv_header,
    fields_of,
    is_header,
    is_rule,
    meanings,
)
from telemetry.readers.units import SCALES, THROTTLE_BITS, spelled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from telemetry.readers.hints import Hints
    from telemetry.readers.recording_builder import RecordingBuilder

_HEADER_WITHIN = 5000
_LONGEST_DATE = 40
_COMMA_TIME = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d),(\d{3,9})")
_STAMP = re.compile(
    r"\[?(?:\w{3} +\d\d? )?(?P<time>(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d(?:\.\d+)?Z?)\]?[ \t]+"
    r"(?=\S)"
)
_UNIT = re.compile(r"[%A-Za-z\]]$")
# People end a table with a line of means or sums: it is not a device's.
_SUMMARY = re.compile(
    r"[\s|*_\"]*(mean|avg|average|total|sum|all|max|min|median|overall)[\s*_\"]*[,;\t|]",
    re.IGNORECASE,
)


@dataclass(slots=True, kw_only=True)
class CsvTable:
    """The rows under one header.

    Attributes:
        header: the column names as written.
        lines: the rows' text.
        blocks: for each row, how many headers or date lines came before it.
        dates: for each row, the date line above it, "" without one.
    """

    header: tuple[str, ...]
    lines: list[str] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What a log holds.

    Attributes:
        tables: one per distinct header.
        delimiter: between cells.
        dropped: lines that are not rows, by reason; headers, dates and blank lines are not counted.
    """

    tables: tuple[CsvTable, ...]
    delimiter: str
    dropped: Counter[str]


def split(text: str, hints: Hints) -> Rows | None:
    """Return the rows of a log; None when no header names a measurement."""
    lines = _without_stamps([line.rstrip("\r") for line in text.split("\n")], hints)
    first_header = csv_header(lines[:_HEADER_WITHIN], hints) or _late_header(lines, hints)
    if first_header is None:
        return None
    delimiter, header, first = first_header
    tables = {tuple(header): CsvTable(header=tuple(header))}
    table = tables[tuple(header)]
    dropped: Counter[str] = Counter()
    before = [line for line in lines[:first] if line.strip()]
    dated = [line.strip() for line in before if clock.is_date_line(line)]
    dropped["line before the header"] = len(before) - len(dated)
    raw, block, width = lines[first] if header_is_line(header) else None, 0, len(header)
    date = dated[-1] if dated else ""
    for line in lines[first + (raw is not None) :]:
        if line == raw:
            block += 1
        elif is_rule(line):  # or empty
            continue
        elif is_summary(line):
            dropped["summary of rows"] += 1
        elif len(line) < _LONGEST_DATE and clock.is_date_line(line):
            block, date = block + 1, line.strip()
        elif cells := names(line, delimiter, hints):
            raw, block, width = line, block + 1, len(cells)
            table = tables.setdefault(cells, CsvTable(header=cells))
        elif fields_of(line, delimiter) == width or (
            # Python's logging and `date --iso-8601=ns` write the decimals of a time with a comma.
            _COMMA_TIME.match(line) and fields_of(line, delimiter) == width + 1
        ):
            whole = fields_of(line, delimiter) == width
            table.lines.append(line if whole else _COMMA_TIME.sub(r"\1.\2", line))
            table.blocks.append(block)
            table.dates.append(date)
        else:
            dropped["cut line" if line is lines[-1] else "wrong number of fields"] += 1
    _last_line(table, text, lines, dropped)
    return Rows(tables=tuple(tables.values()), delimiter=delimiter, dropped=+dropped)


def _without_stamps(lines: list[str], hints: Hints) -> list[str]:
    """Return lines before which `ts` or a logger put the time, with it as a cell of its own."""
    first = next((i for i, line in enumerate(lines) if line.strip()), None)
    stamped = _STAMP.match(lines[first]) if first is not None else None
    if first is None or stamped is None:
        return lines
    header = csv_header([lines[first][stamped.end() :]], hints)
    if header is None or not header_is_line(header[1]):
        return lines
    delimiter, names_, _ = header
    timed = any(m is not None and m.target == "timestamp" for m in meanings(names_, hints).values())
    stamps = [(_STAMP.match(line), line) for line in lines]
    head = "" if timed else f"timestamp{delimiter}"
    return [
        line
        if stamp is None
        else head + line[stamp.end() :]
        if line[stamp.end() :] == lines[first][stamped.end() :]
        else line[stamp.end() :]
        if timed
        else f"{stamp['time']}{delimiter}{line[stamp.end() :]}"
        for stamp, line in stamps
    ]


def is_summary(line: str) -> bool:
    """Return whether a line holds the mean, the sum ... of those above it."""
    return not line[:1].isdigit() and _SUMMARY.match(line) is not None


def header_is_line(header: list[str]) -> bool:
    """Return whether the file has the header; columns of a file without one are numbered."""
    return header[0] != "1"


def _late_header(lines: list[str], hints: Hints) -> tuple[str, list[str], int] | None:
    """Return a header far down, after thousands of lines of human tables."""
    for i, line in enumerate(lines):
        if cells := names(line, ",", hints):
            return ",", list(cells), i
    return None


def names(line: str, delimiter: str, hints: Hints) -> tuple[str, ...] | None:
    """Return the columns that a line names, None where it is not a header."""
    if not (line[:1].isalpha() or line[:1] == '"') or re.search(r"\d", line):
        return None
    cells = cells_of(line, delimiter)
    return tuple(cells) if is_header(cells, hints) else None


def _last_line(table: CsvTable, text: str, lines: list[str], dropped: Counter[str]) -> None:
    """Drop a last row that was cut inside its last cell: its unit is gone."""
    whole = text.endswith("\n") or len(table.lines) < 2  # noqa: PLR2004 - one to compare with
    if whole or table.lines[-1] != lines[-1]:
        return
    if lost_its_unit(table.lines[-2], table.lines[-1]):
        for column in (table.lines, table.blocks, table.dates):
            column.pop()
        dropped["cut line"] += 1


def lost_its_unit(before: str, last: str) -> bool:
    """Return whether a last row ends without a unit where the one before ends with one."""
    return bool(_UNIT.search(before.strip())) and not _UNIT.search(last.strip())


def frame(table: CsvTable, delimiter: str, wanted: list[int]) -> pd.DataFrame:
    """Return the wanted columns of a table as text, columns named by their position."""
    text = "\n".join(table.lines)
    if '"' in text or "\r" in text:
        rows = [cells_of(line, delimiter) for line in table.lines]
        return pd.DataFrame({i: [row[i] if i < len(row) else "" for row in rows] for i in wanted})
    return pd.read_csv(
        io.StringIO(text),
        sep=delimiter,
        header=None,
        names=list(range(len(table.header))),
        usecols=wanted,
        dtype=str,
        na_filter=False,
        skipinitialspace=True,
        skip_blank_lines=False,
        quoting=csv.QUOTE_NONE,
    )


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
            said[i] = missing_kind(text)
            continue
        raw[i] = float(parsed[1])
        scaled[i] = raw[i] * factor
    counts = np.bincount(codes, minlength=len(unique))
    missing: Counter[str] = Counter()
    for i, kind in said.items():
        missing[kind] += int(counts[i])
    return Numbers(raw=raw[codes], scaled=scaled[codes], missing=missing)


def number_in(text: str) -> float | None:
    """Return the number that a cell begins with, None for any other cell."""
    parsed = _VALUE.fullmatch(text.strip())
    return float(parsed[1]) if parsed and abs(float(parsed[1])) < MOST else None


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
    unit_name = spelled(unit)
    return scale if unit_name == typical else SCALES.get((unit_name or "", to))


def missing_kind(text: str) -> str:
    """Return what a cell without a number says."""
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


def csv_rows(builder: RecordingBuilder, reason: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a table with commas by the names in its first line.

    Args:
        builder: where rows are counted.
        reason: what is said of a row with more or fewer cells than the header.
    """
    lines = [line for line in builder.text.splitlines() if line.strip()]
    header = [cell.strip() for cell in cells_of(lines[0], ",")] if lines else []
    for line in lines[1:]:
        cells = [cell.strip() for cell in cells_of(line, ",")]
        if len(cells) == len(header):
            builder.rows_read += 1
            yield dict(zip(header, cells, strict=True))
        else:
            builder.leave_out(reason)
