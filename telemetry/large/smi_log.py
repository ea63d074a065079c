"""A CSV log of GPU readings of any size, which DuckDB reads into columns of numbers.

What it makes of a log is what the exact reader (`formats.csv_log`) makes of it. Cells
that DuckDB does not read as plain numbers or times are read again with that one's functions. A log
that is not plain (several tables, quotes, no device column ...) is left to the exact reader.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import duckdb

from telemetry.large.columns import Cells, Labels, NumberColumn, throttle_of, times_column
from telemetry.large.table import (
    DELIMITER,
    LogTail,
    NeedsSlowReaderError,
    Table,
    line_of,
    refuse_quoted,
)
from telemetry.readers import clock, csv_text
from telemetry.readers.column_names import BITMASK, FLAG, csv_header, is_rule, meanings
from telemetry.readers.payload import decode
from telemetry.readers.recording_builder import real_uuid
from telemetry.readers.units import HOST_UNITS, Meaning
from telemetry.recording.recording import EXTRA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Stream

_IDENTITY = ("uuid", "index", "bus", "host", "name", "mig")
_WITH_UUID, _WITHOUT = ("uuid", "index", "mig"), ("uuid", "index", "bus", "host", "mig")
_DUCKDB: Mapping[str, str | bool] = {
    "memory_limit": "256MB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SmiLog:
    """What the rows of a log say, and what was left out.

    Attributes:
        header: the columns as written.
        rows: how many.
        devices: of each device code, what the identifying columns say of it.
        codes: the device of each row.
        numbers: columns of numbers, by place.
        times: when each row was taken.
        throttle: what held clocks down: 1, 0 or MISSING a row; None without such a column.
        dropped: lines that are not rows, by reason.
    """

    header: Sequence[str]
    rows: int
    devices: Sequence[Mapping[str, str]]
    codes: NDArray[np.int32]
    numbers: Mapping[int, NumberColumn]
    times: clock.SourceClock
    throttle: NDArray[np.int32] | None
    dropped: Counter[str]


def read_log(stream: Stream, hints: Hints) -> SmiLog:
    """Return what a log says.

    Raises:
        NeedsSlowReaderError: it is not a plain log.
        InputError: it cannot be read.
    """
    header, line = _header(stream.head, hints)
    with TemporaryDirectory(prefix="gpucost-") as folder:
        file = _on_disk(stream, Path(folder))
        tail = LogTail.of(file, len(header))
        skipped = [line] if tail.cut is None else [line, tail.cut]
        with duckdb.connect(config={**_DUCKDB, "temp_directory": folder}) as connection:
            try:
                connection.execute("SET enable_progress_bar = false")
                table = Table(connection, str(file), header, skipped)
                return _read(table, tail, hints)
            except (duckdb.Error, UnicodeDecodeError):
                raise NeedsSlowReaderError from None


def _header(head: bytes, hints: Hints) -> tuple[tuple[str, ...], str]:
    """Return the columns of a plain log, and its first line, which names them."""
    end = head.find(b"\n")
    first = head[: max(end, 0)]
    if end < 0 or b"\0" in first or not first.isascii():
        raise NeedsSlowReaderError
    line = decode(first).rstrip("\r")
    header = csv_header([line], hints)
    if header is None or header[0] != DELIMITER or not csv_text.header_is_line(header[1]):
        raise NeedsSlowReaderError
    return tuple(header[1]), line


def _on_disk(stream: Stream, folder: Path) -> Path:
    """Return a file that begins with the log: its own, or an unpacked copy."""
    with Path(stream.path).open("rb") as own:
        if own.read(len(stream.head)) == stream.head:
            return Path(stream.path)
    file = folder / "log.csv"
    with file.open("wb") as copy:
        for chunk in stream.chunks():
            copy.write(chunk)
    return file


@dataclass(frozen=True, slots=True, kw_only=True)
class _Roles:
    """Which columns say when, of which device, and what, by place."""

    time: int
    identity: Mapping[str, int]
    throttle: tuple[int, ...]
    numbers: Mapping[int, Meaning]

    @classmethod
    def of(cls, header: Sequence[str], hints: Hints) -> _Roles:
        """Return the roles of the columns.

        Raises:
            NeedsSlowReaderError: they do not say when and of which device a row is.
        """
        named = meanings(header, hints)
        held = {i: column for i, column in named.items() if column is not None}
        targets = Counter(column.target for column in held.values())
        places = {column.target: i for i, column in held.items()}
        once = ("timestamp", *_IDENTITY)
        if (
            targets["timestamp"] != 1
            or any(targets[name] > 1 for name in once)
            or targets["date"]
            or targets["partition"]
            or not (targets["uuid"] or targets["index"] or targets["bus"])
            or any(target in EXTRA or target in HOST_UNITS for target in targets)
        ):
            raise NeedsSlowReaderError
        return cls(
            time=places["timestamp"],
            identity={name: places[name] for name in _IDENTITY if name in places},
            throttle=tuple(i for i, c in held.items() if c.target in {BITMASK, FLAG}),
            numbers={
                i: column
                for i, column in sorted(held.items())
                if column.target not in {*once, BITMASK, FLAG} and column.scale is not None
            },
        )


def _read(table: Table, tail: LogTail, hints: Hints) -> SmiLog:
    head = table.head()
    if head.empty or (len(head) > 1 and head["x0"].str[:1].str.isalpha().mean() > 1 / 2):
        raise NeedsSlowReaderError
    roles = _Roles.of(table.header, hints)
    identity = roles.identity
    by_uuid = "uuid" in identity and bool(real_uuid(head[f"x{identity['uuid']}"].iloc[0]))
    told_by = [identity[name] for name in (_WITH_UUID if by_uuid else _WITHOUT) if name in identity]
    devices = Labels(told_by, list(identity.values()))
    throttles = [Labels([i], [i]) for i in roles.throttle]
    times = times_column(f"c{roles.time}", str(head[f"x{roles.time}"].iloc[0]).strip())
    columns = {i: Cells.of(i, column, head) for i, column in roles.numbers.items()}
    parts = (times, devices, *throttles, *columns.values())
    for chunk in table.chunks([part.sql for part in parts], keep_rejects=True):
        for i, part in enumerate(parts):
            part.add(chunk[f"x{i}"])
    dropped = _dropped(table.rejects(), tail, hints)
    if roles.time or times.odd:
        letter = "" if not roles.time else " OR c0 >= 'A'"
        line = line_of(len(table.header))
        for cells in table.texts(line, f"{times.is_odd}{letter}"):
            _refuse_other_tables((line for line in cells if line[:1].isalpha()), hints)
    codes, names = devices.joined(table, head)
    if by_uuid and not all(real_uuid(name[list(identity).index("uuid")]) for name in names):
        raise NeedsSlowReaderError
    return SmiLog(
        header=table.header,
        rows=len(codes),
        devices=[dict(zip(identity, name, strict=True)) for name in names],
        codes=codes,
        numbers={i: column.joined(table, table.header[i].strip()) for i, column in columns.items()},
        times=times.instants(table, hints.zone),
        throttle=throttle_of([label.joined(table, head) for label in throttles]),
        dropped=dropped,
    )


def _dropped(rejects: Iterable[str], tail: LogTail, hints: Hints) -> Counter[str]:
    """Return how many lines are left out, by reason."""
    lines = [line for line in rejects if not is_rule(line)]
    refuse_quoted(lines)
    _refuse_other_tables(lines, hints)
    cut = tail.cut is not None or tail.unended in lines
    wrong = len(lines) - (cut and tail.cut is None)
    return +Counter({"wrong number of fields": wrong, "cut line": int(cut)})


def _refuse_other_tables(lines: Iterable[str], hints: Hints) -> None:
    """Refuse a log in which lines are headers of other tables, dates or summaries."""
    for line in lines:
        named = csv_text.names(line, DELIMITER, hints) is not None
        if named or csv_text.is_summary(line) or (line[:1].isalpha() and clock.is_date_line(line)):
            raise NeedsSlowReaderError


def columns_by_target(log: SmiLog) -> Iterator[tuple[str, list[NumberColumn]]]:
    """Yield each target's columns, the one first that the exact reader would use."""
    ranked: dict[str, list[tuple[bool, int, int, NumberColumn]]] = {}
    for i, column in log.numbers.items():
        empty = sum(column.missing.values()) >= log.rows
        row = (empty, column.meaning.rank, i, column)
        ranked.setdefault(column.meaning.target, []).append(row)
    for target, rows in ranked.items():
        yield target, [row[3] for row in sorted(rows, key=lambda row: row[:3])]
