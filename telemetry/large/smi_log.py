"""A CSV log of GPU readings of any size, read in blocks into columns of numbers.

What it makes of a log is what the exact reader (`formats.csv_log`) makes of it. A log
that is not plain (several tables, quotes, no device column ...) is left to that one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from telemetry.large.fields import NumberColumn, ThrottleColumn, hashed
from telemetry.large.lines import BlockRows, UnfitError, blocks, rows_of
from telemetry.large.times import TimeColumn
from telemetry.readers import clock, csv_text
from telemetry.readers.column_names import BITMASK, FLAG, csv_header, meaning
from telemetry.readers.payload import decode
from telemetry.readers.recording_builder import real_uuid
from telemetry.readers.units import HOST_UNITS
from telemetry.recording.recording import EXTRA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from telemetry.readers.hints import Hints
    from telemetry.readers.units import Meaning

DELIMITER = ","
_IDENTITY = ("uuid", "index", "bus", "host", "name", "mig")
_WITH_UUID, _WITHOUT = ("uuid", "mig"), ("uuid", "index", "bus", "host", "mig")
_HEAD_LINES = 2


@dataclass(slots=True)
class SmiLog:
    """What the rows of a log say, and what was left out.

    Attributes:
        header: the columns' names.
        wanted: what the columns mean that are used, by place.
        devices: of each device code what the columns say of it.
        codes: the device of each row, a block each.
        numbers: columns of numbers, by place.
        dropped: lines that are not rows, by reason.
        rows: rows found.
    """

    header: tuple[str, ...]
    wanted: dict[int, Meaning]
    devices: list[dict[str, str]] = field(default_factory=list)
    codes: list[NDArray[np.int32]] = field(default_factory=list)
    numbers: dict[int, NumberColumn] = field(default_factory=dict)
    time: TimeColumn = field(default_factory=TimeColumn)
    throttle: ThrottleColumn | None = None
    dropped: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    _known: dict[int, int] = field(default_factory=dict)
    _told_by: tuple[str, ...] = _WITHOUT

    def __post_init__(self) -> None:
        """Make the columns.

        Raises:
            UnfitError: they do not say when and of which device a row is.
        """
        targets = Counter(known.target for known in self.wanted.values())
        once = ("timestamp", *_IDENTITY)
        if targets["timestamp"] != 1 or any(targets[name] > 1 for name in once):
            raise UnfitError
        if not (targets["uuid"] or targets["index"] or targets["bus"]) or any(
            target in EXTRA or target in HOST_UNITS for target in targets
        ):
            raise UnfitError
        held = tuple(i for i, known in self.wanted.items() if known.target in {BITMASK, FLAG})
        self.throttle = ThrottleColumn(held) if held else None
        self.numbers = {
            i: NumberColumn(self.header[i].strip(), known)
            for i, known in sorted(self.wanted.items())
            if known.target not in {*once, BITMASK, FLAG} and known.scale is not None
        }

    def read(self, rows: BlockRows) -> None:
        """Add the rows of a block."""
        if not rows.count:
            return
        self.rows += rows.count
        self.codes.append(self._devices_of(rows))
        for i, known in self.wanted.items():
            if known.target == "timestamp":
                self.time.read(rows, i)
        for i, column in self.numbers.items():
            column.read(rows, i)
        if self.throttle is not None:
            self.throttle.read(rows)

    def _devices_of(self, rows: BlockRows) -> NDArray[np.int32]:
        columns = {k.target: i for i, k in self.wanted.items() if k.target in _IDENTITY}
        if not self.devices:
            first = rows.cell(columns["uuid"], 0) if "uuid" in columns else None
            self._told_by = _WITH_UUID if real_uuid(first) else _WITHOUT
        found = np.zeros(rows.count, dtype=np.uint64)
        for target in self._told_by:
            if target in columns:
                found = found * np.uint64(0x100000001B3) ^ hashed(rows, columns[target])
        codes, unique = pd.factorize(found)
        ours = np.empty(len(unique), dtype=np.int32)
        for i, key in enumerate(unique.tolist()):
            if key not in self._known:
                self._known[key] = len(self.devices)
                row = int(np.flatnonzero(codes == i)[0])
                self.devices.append({t: rows.cell(c, row) for t, c in columns.items()})
                if self._told_by == _WITH_UUID and not real_uuid(self.devices[-1]["uuid"]):
                    raise UnfitError
            ours[i] = self._known[key]
        return ours[codes]


def read_log(chunks: Iterable[bytes], hints: Hints) -> SmiLog:
    """Return what a log says, from its parts in their order.

    Raises:
        UnfitError: it is not a plain log.
    """
    whole = blocks(chunks)
    first = next(whole, b"")
    log, raw = _begun(first, hints)
    body = first[first.index(b"\n") + 1 :]
    width = len(log.header)

    def special(line: str) -> bool:
        if line == raw:
            return True
        named = csv_text.names(line, DELIMITER, hints) is not None
        if named or clock.is_date_line(line) or csv_text.is_summary(line):
            raise UnfitError
        return False

    before = b""
    for block in chain([body], whole):
        lines = _ended(block, before, width, log)
        if not lines:
            continue
        rows, wrong = rows_of(lines, ord(DELIMITER), width, special)
        log.dropped["wrong number of fields"] += wrong
        log.read(rows)
        if rows.count:
            before = rows.data[rows.starts[0, -1] : rows.ends[-1, -1]]
    if not log.rows:
        raise UnfitError
    log.dropped = +log.dropped
    return log


def _width(line: bytes) -> int:
    return line.count(DELIMITER.encode()) + 1


def _begun(first: bytes, hints: Hints) -> tuple[SmiLog, str]:
    end = first.find(b"\n")
    head = first[: max(end, 0)]
    if end < 0 or any(byte == 0 or byte > 127 for byte in head):  # noqa: PLR2004 - ASCII
        raise UnfitError
    raw = decode(head).rstrip("\r")
    found = csv_header([raw], hints)
    if found is None or found[0] != DELIMITER or not csv_text.header_is_line(found[1]):
        raise UnfitError
    header = tuple(found[1])
    named = {i: meaning(cell, hints) for i, cell in enumerate(header)}
    wanted = {i: known for i, known in named.items() if known is not None}
    return SmiLog(header=header, wanted=wanted), raw


def _ended(block: bytes, before: bytes, width: int, log: SmiLog) -> bytes:
    """Return a block's whole lines; a last line that was cut is counted."""
    if block.endswith(b"\n") or not block:
        return block
    cut = block.rfind(b"\n") + 1
    last, rest = block[cut:], block[:cut]
    if not last.strip():
        return rest
    lines = rest.splitlines()
    good = [line for line in lines[-_HEAD_LINES:] if _width(line) == width] or [before]
    if _width(last) != width or csv_text.lost_its_unit(
        good[-1].decode("utf-8", "replace"), last.decode("utf-8", "replace")
    ):
        log.dropped["cut line"] += 1
        return rest
    return block + b"\n"


def columns_by_target(log: SmiLog) -> Iterator[tuple[str, list[NumberColumn]]]:
    """Yield each target's columns, the one first that the exact reader would use."""
    found: dict[str, list[tuple[bool, int, int, NumberColumn]]] = {}
    for i, column in log.numbers.items():
        empty = sum(column.missing.values()) >= log.rows
        row = (empty, column.known.rank, i, column)
        found.setdefault(column.known.target, []).append(row)
    for target, rows in found.items():
        yield target, [row[3] for row in sorted(rows, key=lambda row: row[:3])]
