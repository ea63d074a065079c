"""Lines of a CSV log to rows of cells, whatever lies between them."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import zip_longest

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from telemetry.readers.clock import Texts, TimeTexts, distinct
from telemetry.readers.column_names import (
    cells_of,
    csv_header,
    first_of,
    is_header,
    is_rule,
    meanings,
)
from telemetry.readers.hints import Hints
from telemetry.readers.ledger import kind_of
from telemetry.readers.payload import date_after, is_date_line
from telemetry.readers.units import MOST, SCALES, THROTTLE_BITS, Meaning, spelled

_HEADER_WITHIN, _ODD = 5000, "wrong number of fields"
_LONGEST_DATE = 40
_MOST_PARTS = 16  # of a column, before they are put together
_NEWLINE, _QUOTE, _ZERO = b'\n"0'
_COMMA_TIME = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d),(\d{3,9})")
_STAMP = re.compile(
    r"\[?(?:\w{3} +\d\d? )?(?P<time>(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d(?:\.\d+)?Z?)\]?[ \t]+"
    r"(?=\S)"
)
_HOST = re.compile(r"(?P<host>[A-Za-z][\w.-]*): +(?=\S)")  # of pdsh and clush
_LOST = re.compile(r"([0-9A-Fa-f:]+\.[0-9A-Fa-f]): (?:GPU is lost|Unknown Error)")
_UNIT = re.compile(r"[%A-Za-z\]]$")
# HWiNFO's last line: the sensor of each column, of which several have the same name.
GPU_SENSOR = re.compile(r"GPU \[#(\d{1,3})\]: ([^:,;\"]+)")
_PROMPT = re.compile(r"(?:PS )?[A-Za-z]:\\[^>|]*>|\S+@\S+[$#] ")  # with what was typed behind it
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
        columns: what each of them holds, by place; None where nothing of use.
        of_health: those that say something of a GPU's health.
        times: of the rows, as far as cells or date lines say them.
        sensors: what measured each column, where a line says it.
        gpu: index and model of the only GPU whose columns are used; None where any are.
        rows: their number.
        marks: where a header or date line stood: the row below it, how many came before, the date.
        pending: rows whose cells have not been taken in, each of these of one line or more.
        waiting: their number.
        blocks: cells of the others, by place, block by block.
    """

    header: tuple[str, ...]
    columns: dict[int, Meaning | None]
    of_health: dict[int, str]
    times: TimeTexts
    sensors: Sequence[str] = ()
    gpu: tuple[int, str] | None = None
    rows: int = 0
    marks: list[tuple[int, int, str]] = field(default_factory=list)
    pending: list[bytes] = field(default_factory=list)
    waiting: int = 0
    blocks: dict[int, list["_Part"]] = field(default_factory=lambda: defaultdict(list))

    @property
    def of_time(self) -> list[int]:
        """The places of the columns that say when a row was read."""
        return [i for i, h in self.columns.items() if h and h.target in {"timestamp", "date"}]

    def add(self, lines: bytes, count: int = 1) -> None:
        """Add rows whose cells are taken in later."""
        self.pending.append(lines)
        self.waiting += count

    def flush(self, delimiter: str) -> None:
        """Take in the cells of the pending rows."""
        lines, count, self.pending, self.waiting = self.pending, self.waiting, [], 0
        if not lines:
            return
        used = {i for i, holds in self.columns.items() if holds} | set(self.of_health)
        texts = _texts(b"\n".join(lines), delimiter, len(self.header), sorted(used))
        self.rows += count
        for i, part in texts.items():
            parts = [*self.blocks[i], part]
            self.blocks[i] = parts if len(parts) < _MOST_PARTS else [_together(parts)]
        times: dict[int | None, Texts] = {i: _cells(self.blocks.pop(i)) for i in self.of_time}
        time, day = (times.get(first_of(self.columns, target)) for target in ("timestamp", "date"))
        if day is not None:
            days = pd.Series(day, dtype=object)
            if time is not None and not days.str.contains(":").all():
                days = days + " " + pd.Series(time, dtype=object)
            self.times.take(days)
        elif time is not None:
            self.times.take(time)
        elif any(date for _, _, date in self.marks):
            self.times.take(pd.Series(self.by_row(2)[-count:], dtype=object))

    def by_row(self, field_: int) -> NDArray[np.object_]:
        """Return for each row a field of the mark above it."""
        values = np.array([mark[field_] for mark in self.marks], dtype=object)
        starts = [row for row, _, _ in self.marks]
        return values[np.searchsorted(starts, np.arange(self.rows), side="right") - 1]

    def of_each_gpu(self) -> "list[CsvTable]":
        """Return a table of each GPU among the sensors, with what is of no GPU; else this one."""
        sensors = map(GPU_SENSOR.match, self.sensors)
        of_gpu = {i: (int(s[1]), s[2].strip()) for i, s in enumerate(sensors) if s}
        gpus = sorted({gpu for i, gpu in of_gpu.items() if self.columns.get(i)})
        return [
            replace(
                self,
                gpu=gpu,
                columns={i: h for i, h in self.columns.items() if of_gpu.get(i, gpu) == gpu},
                of_health={i: k for i, k in self.of_health.items() if of_gpu.get(i, gpu) == gpu},
            )
            for gpu in gpus
        ] or [self]

    def cells(self) -> dict[int, "pd.Categorical[str]"]:
        """Return all cells taken in, by place."""
        return {i: _cells(parts) for i, parts in self.blocks.items()}


# Cells of a column: codes, of no more bytes than they need, and the texts that they name.
_Part = tuple[NDArray[np.int64], pa.Array]


def _part(cells: pa.DictionaryArray) -> _Part:
    smallest = np.result_type(np.int8, np.min_scalar_type(len(cells.dictionary)))
    return cells.indices.to_numpy().astype(smallest), cells.dictionary


def _together(parts: Sequence[_Part]) -> _Part:
    """Return cells of several blocks, each distinct text once, without the blanks around it."""
    texts = pa.concat_arrays([texts for _, texts in parts])
    places, texts = _part(pc.utf8_trim_whitespace(texts).dictionary_encode())
    own = np.split(places, np.cumsum([len(texts) for _, texts in parts]))
    return np.concatenate([own[i][codes] for i, (codes, _) in enumerate(parts)]), texts


def _cells(parts: Sequence[_Part]) -> "pd.Categorical[str]":
    codes, texts = _together(parts)
    once = pd.Index(texts.to_pylist(), dtype=object)
    return pd.Categorical.from_codes(codes, once, validate=False)


def split(blocks: Iterable[str], hints: Hints) -> "Rows | None":
    """Return the rows of a log; None when no header names a measurement.

    Args:
        blocks: its text, in blocks of whole lines.
        hints: `map` names columns that are not known, `tz` the zone of times.
    """
    rows: Rows | None = None
    before, first = list[str](), ""
    for block in blocks:
        text = re.sub(r"\r+$", "", block, flags=re.MULTILINE) if "\r" in block else block
        first = first or next((line for line in text.split("\n") if line.strip()), "")
        text = _without_stamps(text, first, hints)
        if rows is None:
            lines = text.split("\n")
            # Or far down, after thousands of lines of human tables.
            late = (
                (",", list(c), i) for i, line in enumerate(lines) if (c := names(line, ",", hints))
            )
            header = csv_header(lines[:_HEADER_WITHIN], hints) or next(late, None)
            before += lines[: header[2] if header else None]
            if header is None:
                continue
            rows = Rows(header, lines[header[2]], before, hints)
            text = "\n".join(lines[header[2] + (rows.raw is not None) :])
        rows.take(text.encode("utf-8", "replace"))
    return rows


class Rows:
    """What a log holds; tells rows from other lines, block by block.

    Attributes:
        tables: those with a header of their own, by it.
        delimiter: between cells.
        dropped: lines that are not rows, by reason; headers, dates and blank lines are not counted.
        lost: addresses of GPUs that the driver said it had lost.
    """

    def __init__(
        self, header: tuple[str, list[str], int], line: str, before: list[str], hints: Hints
    ) -> None:
        self.delimiter, columns, _ = header
        self.raw = line if columns[0] != "1" else None  # of a file without one they are numbered
        self._hints = hints
        dated = [line for line in before if is_date_line(line)]
        undated = sum(bool(line.strip()) for line in before) - len(dated)
        self.dropped = Counter({"line before the header": undated})
        self.lost: set[str] = set()
        self._block, self._date = 0, reduce(date_after, dated, "")
        self.tables: dict[tuple[str, ...], CsvTable] = {}
        self._last = [b"", b""]
        self._open(tuple(columns))

    def _open(self, header: tuple[str, ...]) -> None:
        """Open the table of a header, or go on with it."""
        if header not in self.tables:
            self.tables[header] = CsvTable(
                header=header,
                columns=meanings(header, self._hints),
                of_health={i: kind for i, cell in enumerate(header) if (kind := kind_of(cell))},
                times=TimeTexts(self._hints.zone, day_first=self.delimiter == ";"),
            )
        self._table = self.tables[header]
        self._mark()

    def _mark(self) -> None:
        row = self._table.rows + self._table.waiting
        self._table.marks.append((row, self._block, self._date))

    def take(self, text: bytes) -> None:
        """Take the lines of a block; no newline ends it where its last line is cut."""
        codes = np.frombuffer(text, dtype=np.uint8)
        ends = np.append(np.flatnonzero(codes == _NEWLINE) + 1, len(text) + 1)
        bounds = np.append(0, ends[: len(ends) - (text[-1:] in (b"", b"\n"))])
        fields, plain = self._fields(codes, bounds)
        at, last = 0, len(bounds) - 1
        while at < last:
            width = len(self._table.header)
            odd = np.flatnonzero(~plain[at:] | (fields[at:] != width)) + at
            for end in (*odd, last):
                if end > at:
                    self._table.add(text[bounds[at] : bounds[end] - 1], int(end - at))
                if (at := int(end) + 1) > last:
                    break
                line = text[bounds[end] : bounds[at] - 1].decode()
                if not self._is_row(line):
                    self.lost.update(_LOST.findall(line))
                    cut = at == last and ends[-1] == bounds[-1]
                    why = "prompt of a console" if _PROMPT.match(line) else _ODD
                    self.dropped["cut line" if cut else why] += 1
                if len(self._table.header) != width:
                    break
        if last and ends[-1] == bounds[-1]:
            self._leave_out_cut(text[bounds[-2] :])
        for table in self.tables.values():
            self._last = table.pending[-1:] or self._last
            table.flush(self.delimiter)

    def _fields(
        self, codes: NDArray[np.uint8], bounds: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return how many cells each line has, and whether it needs no other look than at that.

        At the last two another look is taken: one may be cut.
        """
        begins = bounds[:-1]
        places = np.flatnonzero(codes == ord(self.delimiter))
        delimiters = np.diff(np.searchsorted(places, bounds))
        plain = (codes[begins] - _ZERO < 10) & (delimiters > 0)  # noqa: PLR2004 - digits
        plain &= ~np.logical_or.reduceat(codes == _QUOTE, begins)
        plain &= not (self.raw or "")[:1].isdigit()
        plain[-2:] = False
        return delimiters + 1, plain

    def _is_row(self, line: str) -> bool:
        """Return whether a line is a row, or no row of a known kind; act on it."""
        width = len(self._table.header)
        fields = (
            len(cells_of(line, self.delimiter)) if '"' in line else line.count(self.delimiter) + 1
        )
        if line == self.raw:
            self._block += 1
            self._mark()
        elif is_rule(line):  # or empty
            pass
        elif not line[:1].isdigit() and _SUMMARY.match(line):
            self.dropped["summary of rows"] += 1
        elif len(line) < _LONGEST_DATE and is_date_line(line):
            self._block, self._date = self._block + 1, date_after(self._date, line)
            self._mark()
        elif fields == width and GPU_SENSOR.search(line):
            self._table.sensors = cells_of(line, self.delimiter)
        elif cells := names(line, self.delimiter, self._hints):
            self.raw, self._block = line, self._block + 1
            self._open(cells)
        elif fields == width and not _PROMPT.match(line):
            self._table.add(line.encode())
        elif _COMMA_TIME.match(line) and fields == width + 1:
            # Python's logging and `date --iso-8601=ns` write the decimals of a time with a comma.
            self._table.add(_COMMA_TIME.sub(r"\1.\2", line).encode())
        else:
            return False
        return True

    def _leave_out_cut(self, line: bytes) -> None:
        """Drop a last row that was cut inside its last cell: its unit is gone."""
        pending = self._table.pending
        before = [*self._last, *pending[-2:]]
        if pending[-1:] != [line] or len(before) < 2 or not before[-2]:  # noqa: PLR2004
            return
        ends = (row.decode().strip() for row in (before[-2], line))
        if [_UNIT.search(end) is None for end in ends] == [False, True]:
            pending.pop()
            self._table.waiting -= 1
            self.dropped["cut line"] += 1


def _without_stamps(text: str, first: str, hints: Hints) -> str:
    """Return lines before which `ts` put the time, or `pdsh` the host, with it as a cell."""
    pattern, column, group = _STAMP, "timestamp", "time"
    if _HOST.match(first):
        pattern, column, group = _HOST, "hostname", "host"
    stamped = pattern.match(first)
    header = csv_header([first[stamped.end() :]], hints) if stamped else None
    if stamped is None or header is None or header[1][0] == "1":
        return text
    delimiter, columns, _ = header
    timed = first_of(meanings(columns, hints), group if group == "host" else column) is not None
    named = first[stamped.end() :]

    def without(line: str) -> str:
        stamp = pattern.match(line)
        own = line[stamp.end() :] if stamp else line
        if stamp is None or timed:
            return own
        return f"{column if own == named else stamp[group]}{delimiter}{own}"

    return "\n".join(map(without, text.split("\n")))


def names(line: str, delimiter: str, hints: Hints) -> tuple[str, ...] | None:
    """Return the columns that a line names, None where it is not a header."""
    if not (line[:1].isalpha() or line[:1] == '"') or re.search(r"\d", line):
        return None
    cells = cells_of(line, delimiter)
    return tuple(cells) if is_header(cells, hints) else None


def _texts(text: bytes, delimiter: str, width: int, positions: Sequence[int]) -> dict[int, _Part]:
    """Return the wanted columns of lines, by their position."""
    if b'"' in text or b"\r" in text:
        rows = [cells_of(line, delimiter) for line in text.decode().split("\n")]
        columns = list(zip_longest(*rows, fillvalue=""))
        return {i: (np.arange(len(rows)), pa.array(columns[i], pa.string())) for i in positions}
    names = [*map(str, range(width))]
    kinds = {names[i]: pa.dictionary(pa.int32(), pa.string()) for i in positions}
    table = csv.read_csv(
        pa.BufferReader(text),
        csv.ReadOptions(column_names=names, block_size=len(text) + 1, use_threads=False),
        csv.ParseOptions(delimiter=delimiter, quote_char=False, ignore_empty_lines=False),
        csv.ConvertOptions(include_columns=[*kinds], column_types=kinds),
    )
    return {i: _part(table[names[i]].chunk(0)) for i in positions}


_PLACEHOLDER = re.compile(r"\[.*\]?|N/?A|-|ERR!|nan|none|null", re.IGNORECASE)
# A number, its unit, and what may be between them; Arrow knows ASCII blanks alone.
_VALUE = (
    r"(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
    "[\\s\u00a0\u2007\u2009\u202f]*(?P<unit>\\S.*)?"
)
_SWAPPED = str.maketrans(".,", ",.")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(?!\d)")
# 61.440,00 and 61,440.00: both signs in one number tell which of them parts thousands.
_GROUPED = re.compile(r"\s*[-+]?\d{1,3}(?:([.,])\d{3})(?:\1\d{3})*(?!\1)[.,]\d")
_PAIR = re.compile(r"([\d.]+)\s*([A-Za-z%]*)\s*/\s*[\d.]+\s*([A-Za-z%]*)")
THROTTLE_MOST = 0xFFFF_FFFF
_FLAGS = {"active": 1.0, "not active": 0.0, "1": 1.0, "0": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A column of cells as numbers, once a distinct text; the last one stands for no cell at all.

    Attributes:
        codes: which of the texts each cell is.
        counts: how often each text comes.
        raw: values in the source's unit, NaN where missing.
        scaled: values in the slot's unit.
        missing: cells that are not numbers, by what they say.
    """

    codes: NDArray[np.int64]
    counts: NDArray[np.int64]
    raw: NDArray[np.float64]
    scaled: NDArray[np.float64]
    missing: Counter[str]

    def values(self) -> NDArray[np.float64]:
        """Return the values of the cells in the slot's unit."""
        return np.asarray(self.scaled[self.codes])


def numbers(texts: Texts, *, scale: float, to: str, sign: str = ".", typical: str = "") -> Numbers:
    """Return a column's numbers.

    Args:
        texts: the cells; None where a row has none.
        scale: the column's factor, for cells that carry no unit.
        to: the slot's unit, to which a unit in the cell is converted.
        sign: of decimals, "." or ","; "" where a comma parts thousands, as in tables for people.
        typical: the column's unit, for which `scale` holds.
    """
    codes, unique = distinct(texts)
    counts = np.append(np.bincount(codes[codes >= 0], minlength=len(unique)), 0)
    cells = [str(cell).strip() for cell in unique]
    matches = (_GROUPED.match(cell) for cell in cells if "," in cell and "." in cell)
    thousands = next((grouped[1] for grouped in matches if grouped), "")
    plain = [_plain(cell, sign, thousands).encode(errors="replace") for cell in cells]
    parsed = pc.extract_regex(pa.array(plain, pa.string()), f"^{_VALUE}$")
    raw = np.array([*pc.struct_field(parsed, "number").to_pylist(), None], dtype=float)
    units = [*pc.struct_field(parsed, "unit").to_pylist(), None]
    factors = {unit: _factor(unit, scale, to, typical) for unit in set(units) - {None}}
    factor = np.array([factors.get(unit) for unit in units], dtype=float)
    raw[~(np.abs(raw) <= MOST) | np.isnan(factor)] = np.nan
    missing: Counter[str] = Counter()
    for i in np.flatnonzero((counts > 0) & np.isnan(raw)).tolist():
        missing[missing_kind(cells[i])] += int(counts[i])
    return Numbers(codes=codes, counts=counts, raw=raw, scaled=raw * factor, missing=missing)


def number_in(text: str) -> float | None:
    """Return the number that a cell begins with, None for any other cell."""
    parsed = re.fullmatch(_VALUE, text.strip())
    return float(parsed[1]) if parsed and abs(float(parsed[1])) < MOST else None


def _plain(text: str, sign: str, thousands: str) -> str:
    """Return a cell's number with a decimal point; of `412W / 700W` the first."""
    if thousands:
        text = text.translate(_SWAPPED) if thousands == "." else text
        text = text.replace(",", "") if _THOUSANDS.match(text) else text
    elif sign == "," and "," in text:
        text = text.replace(",", ".")
    elif not sign:
        text = text.strip("*_` ")
        text = text.replace(",", "") if _THOUSANDS.match(text) else text.replace(",", ".")
    if "/" in text and (pair := _PAIR.fullmatch(text)):
        return f"{pair[1]} {pair[2] or pair[3] or ''}".strip()
    return text


def _factor(unit: str, scale: float, to: str, typical: str) -> float | None:
    if not unit:
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


def throttled(texts: Texts) -> NDArray[np.float64]:
    """Return 1 where a bitmask or an Active/Not Active cell says clocks were held down, else 0."""
    codes, unique = distinct(texts)
    flags = np.array([*(_throttled(str(cell).strip()) for cell in unique), np.nan])
    return np.asarray(flags[codes])


def _throttled(cell: str) -> float:
    if re.fullmatch(r"0[xX][0-9a-fA-F]+", cell):
        return float(bool(int(cell, 16) & THROTTLE_BITS))
    return _FLAGS.get(cell.lower(), np.nan)
