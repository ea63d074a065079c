"""Reads TensorBoard's event files: scalars of GPUs that Lightning and others log.

The framing is TFRecord's (length, checksum, data, checksum), the fields are those of TensorFlow's
`event.proto` and `summary.proto`: wall time 1, summary 5; of its values tag 1, simple value 2,
tensor 8 with float values 5, double values 6 or raw content 4. Checksums are not compared.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from pricing.errors import InputError
from telemetry.readers import series
from telemetry.readers.column_names import METRICS, key_of
from telemetry.readers.recording_builder import RecordingBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "tensorboard"
_HEAD, _TAIL = 12, 4
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WALL_TIME, _SUMMARY, _VALUE = 1, 5, 1
_TAG, _SIMPLE, _TENSOR = 1, 2, 8
_CONTENT, _FLOATS, _DOUBLES = 4, 5, 6
_LONGEST_VARINT = 10
# Where a tag says which GPU: `gpu_id: 0/utilization.gpu (%)`, `system/gpu_0_...`, `gpu.0.memory`.
_INDEX = re.compile(r"gpu_id[:_][ _](\d+)/|gpu[_.](\d+)[_./]|cuda:(\d+)[./]")


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the scalars that are readings of GPUs; a damaged end is left out and counted.

    Raises:
        InputError: no scalar of the file is a reading of a GPU.
    """
    builder = RecordingBuilder(payload, FORMAT)
    mapped = {column.lower() for column, _ in hints.map}
    points: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for event in _events(payload.data, builder):
        try:
            for t_s, tag, value in _scalars(event):
                points[tag].append((t_s, value))
        except (ValueError, struct.error, IndexError, RecursionError):
            builder.rows_read += 1
            builder.dropped["damaged event"] += 1
    found = []
    for tag, rows in sorted(points.items()):
        name, index = _name(tag)
        if name.lower() not in mapped and key_of(name, {}) not in METRICS:
            builder.rows_read += len(rows)
            builder.dropped["point of a metric that is not used"] += len(rows)
            continue
        times, values = np.array(sorted(rows), dtype=float).T
        one = series.SampledSeries(
            name=name, labels={"gpu": index}, t_s=times, readings=values, counter=False
        )
        found.append(one)
    if not found:
        shown = ", ".join(sorted(points)[:5]) or "none"
        raise InputError(
            f"{payload.name}: no reading of a GPU among its scalars ({shown}). Log them with "
            "Lightning's DeviceStatsMonitor, or name a scalar with --map TAG=slot."
        )
    return series.recording(builder, found, hints)


def _name(tag: str) -> tuple[str, str]:
    """Return a tag without what comes before the metric, with N for the GPU, and the GPU."""
    match = _INDEX.search(tag)
    index = next((text for text in match.groups() if text), "0") if match else "0"
    if match and match[1]:
        return tag[match.end() :], index
    plain = tag.replace(f"gpu_{index}_", "gpu_N_")
    known = key_of(plain, {}) in METRICS
    return (plain if known else plain.rpartition("/")[2]), index


def _events(data: bytes, builder: RecordingBuilder) -> Iterator[bytes]:
    at = 0
    while at + _HEAD <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        start = at + _HEAD
        if start + length + _TAIL > len(data):
            break
        yield data[start : start + length]
        at = start + length + _TAIL
    if at < len(data):
        builder.rows_read += 1
        builder.dropped["cut event"] += 1


def _scalars(event: bytes) -> Iterator[tuple[float, str, float]]:
    """Yield time, tag and value of each scalar of an event."""
    t_s, summaries = None, []
    for number, value in _fields(event):
        if number == _WALL_TIME and isinstance(value, bytes):
            (t_s,) = struct.unpack("<d", value)
        elif number == _SUMMARY and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for number, value in _fields(summary):
            if number == _VALUE and isinstance(value, bytes) and t_s is not None:
                tag, scalar = _scalar(value)
                if tag and scalar is not None:
                    yield t_s, tag, scalar


def _scalar(value: bytes) -> tuple[str, float | None]:
    tag, scalar = "", None
    for number, part in _fields(value):
        if not isinstance(part, bytes):
            continue
        if number == _TAG:
            tag = part.decode("utf-8", "replace")
        elif number == _SIMPLE and len(part) == 4:  # noqa: PLR2004 - bytes of a float
            (scalar,) = struct.unpack("<f", part)
        elif number == _TENSOR:
            scalar = _of_tensor(part)
    return tag, scalar


def _of_tensor(tensor: bytes) -> float | None:
    """Return the number in a tensor of one element; None for any other."""
    forms = {4: "<f", 8: "<d"}
    for number, part in _fields(tensor):
        if number in (_CONTENT, _FLOATS, _DOUBLES) and isinstance(part, bytes):
            form = forms.get(len(part))
            if form is not None:
                return float(struct.unpack(form, part)[0])
    return None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field of a protobuf message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            length, at = _varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError("not a field of protobuf")
        if at + length > len(data):
            raise ValueError("a field is longer than its message")
        yield key >> 3, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for i in range(_LONGEST_VARINT):
        byte = data[at + i]
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more bytes follow
            return value, at + i + 1
    raise ValueError("a number of protobuf that is too long")
