"""Reads `run-ID.wandb`, the log that a run keeps on disk: LevelDB's framing around protobuf.

The framing is that of LevelDB's log format (blocks of 32 KiB, records in fragments), its checksum
zlib's CRC-32 over kind and fragment; the fields are those of wandb's `wandb_internal.proto`:
statistics are field 7 of a record, its history field 2.
"""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING

from pricing.errors import InputError
from telemetry.formats.wandb.wandb_jsonl import of_rows
from telemetry.readers.recording_builder import RecordingBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "wandb-log"
_BLOCK, _FRAME = 32_768, 7
_BROKEN, _FULL, _FIRST, _MIDDLE, _LAST = 0, 1, 2, 3, 4
_HISTORY, _STATS = 2, 7
_STATS_TIME, _STATS_ITEM = 2, 3
_KEY, _NESTED_KEY, _VALUE_JSON = 1, 2, 16
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10
_KEPT_OF_HISTORY = frozenset(("_step", "_runtime"))


def read(payload: Payload, hints: Hints) -> Recording:  # noqa: ARG001 - one signature for readers
    """Return the system metrics of a run; what is damaged is left out and counted.

    Raises:
        InputError: it holds no record that can be read, or no system metric.
    """
    builder = RecordingBuilder(payload, FORMAT)
    rows: list[dict[str, object]] = []
    for record in _records(payload.data, builder):
        try:
            row = _row(record)
        except (ValueError, IndexError, RecursionError):
            builder.rows_read += 1
            builder.dropped["damaged record"] += 1
            continue
        if row:
            rows.append(row)
    builder.rows_read += len(rows)
    if not rows:
        raise InputError(
            f"{payload.name}: a W&B log without a statistic that can be read, so nothing was "
            "measured. It is written while the run lives: copy it again after the run."
        )
    return of_rows(builder, rows)


def _records(data: bytes, builder: RecordingBuilder) -> Iterator[bytes]:
    """Yield whole records; one of which a fragment is damaged or missing is left out."""
    parts: bytes | None = None
    for kind, fragment in _fragments(data, builder):
        if kind in {_FULL, _FIRST}:
            parts = fragment
        elif kind == _BROKEN:
            parts = None
        elif parts is not None:
            parts += fragment
        if kind in {_FULL, _LAST} and parts is not None:
            yield parts
            parts = None


def _fragments(data: bytes, builder: RecordingBuilder) -> Iterator[tuple[int, bytes]]:
    """Yield kind and content of every fragment whose checksum is right."""
    at = _FRAME  # the file's own header is as long as a frame's
    while at + _FRAME <= len(data):
        left = _BLOCK - at % _BLOCK
        if left < _FRAME:
            at += left
            continue
        said = int.from_bytes(data[at : at + 4], "little")
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        if kind not in {_FULL, _FIRST, _MIDDLE, _LAST} or length > left - _FRAME:
            # Zeros fill a block that was preallocated; anything else is damage. Both end the block.
            _lost(builder, "damaged block", int(kind != 0))
            at += left
            continue
        fragment = data[at + _FRAME : at + _FRAME + length]
        at += _FRAME + length
        if len(fragment) < length:
            _lost(builder, "cut record", 1)
        elif zlib.crc32(fragment, zlib.crc32(bytes([kind]))) != said:
            _lost(builder, "damaged record", 1)
            yield _BROKEN, b""
        else:
            yield kind, fragment


def _lost(builder: RecordingBuilder, why: str, count: int) -> None:
    builder.rows_read += count
    builder.dropped[why] += count
    builder.dropped = +builder.dropped


def _row(record: bytes) -> dict[str, object]:
    """Return the figures of a record by key; empty for records of other kinds."""
    row: dict[str, object] = {}
    for field, value in _fields(record):
        if field == _STATS and isinstance(value, bytes):
            for inner, part in _fields(value):
                if inner == _STATS_TIME and isinstance(part, bytes):
                    row["_timestamp"] = _seconds(part)
                elif inner == _STATS_ITEM and isinstance(part, bytes):
                    row.update([_item(part)])
        elif field == _HISTORY and isinstance(value, bytes):
            items = [_item(part) for _, part in _fields(value) if isinstance(part, bytes)]
            row.update(item for item in items if item[0] in _KEPT_OF_HISTORY)
    return row


def _item(data: bytes) -> tuple[str, object]:
    key, value = "", b"null"
    for field, part in _fields(data):
        if field in {_KEY, _NESTED_KEY} and isinstance(part, bytes) and not key:
            key = part.decode("utf-8", "replace")
        elif field == _VALUE_JSON and isinstance(part, bytes):
            value = part
    return key, json.loads(value)


def _seconds(data: bytes) -> float:
    """Return a protobuf Timestamp as seconds since 1970."""
    parts = {field: value for field, value in _fields(data) if isinstance(value, int)}
    return parts.get(1, 0) + parts.get(2, 0) / 1e9


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field of a message.

    Raises:
        ValueError: the bytes are not a message.
        IndexError: it ends within a field.
    """
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        sizes = {_FIXED64: 8, _FIXED32: 4}
        if kind == _BYTES:
            size, at = _varint(data, at)
        elif kind in sizes:
            size = sizes[kind]
        else:
            raise ValueError(kind)
        if at + size > len(data):
            raise IndexError(size)
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for n in range(_LONGEST_VARINT):
        byte = data[at + n]
        value |= (byte & 0x7F) << (7 * n)
        if not byte & 0x80:
            return value, at + n + 1
    raise ValueError(value)
