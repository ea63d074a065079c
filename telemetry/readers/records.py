"""The records inside of a source: JSON, CSV, cells of Slurm, fields of protobuf."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from math import isfinite
from typing import TYPE_CHECKING, Any

from pricing.errors import InputError
from pricing.message import Message
from telemetry.readers.column_names import csv_cells, unneeded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from telemetry.readers.recording_builder import RecordingBuilder

_OPENING = re.compile(r"^[ \t]*[\[{]", re.MULTILINE)
_MOST_DAMAGED = 100
_MOST_INDEX = 10_000
_INDEX_DIGITS = 5
_SLURM_LENGTH = re.compile(r"(?:(?:(\d+)-)?(?:(\d+):)?(\d+):)?(\d+)(?:\.\d+)?")
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10


def documents(builder: RecordingBuilder) -> list[dict[str, object]]:
    """Return the objects of a file: one JSON document, an array of them, or one a line.

    Damaged lines are counted.

    Raises:
        InputError: no object can be read.
    """
    name = builder.name
    try:
        document = json.loads(builder.text)
    except RecursionError:
        raise InputError(f"{name}: brackets are nested too deeply for telemetry.") from None
    except ValueError as error:
        items, damaged = _by_line(builder.text)
        if items:
            builder.leave_out("cut line", damaged)
            return items
        where = f":{error.lineno}:{error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        why = {"where": f"{name}{where}", "reason": reason}
        raise InputError(Message("read.bad-json", **why)) from None
    listed = document if isinstance(document, list) else [document]
    items = mappings_in(listed)
    if not items:
        raise InputError(f"{name}: no JSON object in it, so nothing was measured. Export it again.")
    builder.leave_out("cut line", len(listed) - len(items))
    return items


def _by_line(text: str) -> tuple[list[dict[str, object]], int]:
    lines = [line for line in text.split("\n") if line.strip()]
    items = [item for line in lines if (item := mapping_of(json_of(line)))]
    return (items, len(lines) - len(items)) if 2 * len(items) >= len(lines) else ([], 0)


def json_of(text: str) -> Any:  # noqa: ANN401 - JSON
    """Return what a text says in JSON; None where it is damaged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def values(builder: RecordingBuilder, reason: str) -> list[object]:
    """Return the objects and arrays of a file in their order.

    Looped tools print them after each other without commas. Whatever lies between them is skipped;
    after a damaged one, reading goes on at the next line that opens one. Nothing is returned of
    what follows the hundredth damaged one.

    Args:
        builder: where damaged ones are counted.
        reason: what is said of them.
    """
    decoder, text = json.JSONDecoder(), builder.text
    items: list[object] = []
    damaged, at = 0, 0
    while (opening := _next(text, at)) is not None and damaged < _MOST_DAMAGED:
        try:
            value, at = decoder.raw_decode(text, opening)
        except (ValueError, RecursionError):
            damaged += 1
            after = text.find("\n", opening)
            at = len(text) if after < 0 else after + 1
            continue
        items.append(value)
    builder.leave_out(reason, damaged)
    return items


def _next(text: str, at: int) -> int | None:
    following = text[at : at + 64].lstrip(" \t\r\n,")
    if following[:1] in ("{", "[") and following:
        return text.index(following[0], at)
    opening = _OPENING.search(text, at)
    return None if opening is None else opening.end() - 1


def objects(builder: RecordingBuilder, reason: str) -> list[dict[str, object]]:
    """Return the objects of a file, those in arrays too; other values are counted as damaged."""
    items = values(builder, reason)
    flat = [item for value in items for item in (value if isinstance(value, list) else [value])]
    good = mappings_in(flat)
    builder.leave_out(reason, len(flat) - len(good))
    return good


def mapping_of(value: object) -> dict[str, object]:
    """Return a JSON object, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def mappings_in(value: object) -> list[dict[str, object]]:
    """Return the objects of a JSON array; none for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_of(value: object) -> str | None:
    """Return a string or number as text; None for anything else, booleans too."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str):
        return value[:200]
    try:
        return repr(float(value)) if isinstance(value, float) else str(value)
    except (OverflowError, ValueError):  # more digits than Python prints
        return None


def float_of(value: object) -> float | None:
    """Return the number that a text is; None for anything else."""
    try:
        return float(str(value))
    except ValueError:
        return None


def number_of(value: object) -> float | None:
    """Return a number of JSON; None for anything else, booleans and what is not finite too."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        return float(value) if is_number and isfinite(value) else None  # type: ignore[arg-type]
    except OverflowError:
        return None


def whole_of(value: object) -> int | None:
    """Return a small whole number, as an index is one; None for anything else."""
    if isinstance(value, str):
        decimal = value.isascii() and value.isdecimal() and len(value) <= _INDEX_DIGITS
        value = int(value) if decimal else None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST_INDEX:
        return None
    return value


def texts_of(item: dict[str, object], names: Iterable[str]) -> dict[str, str]:
    """Return those of the named values of an object that are texts or numbers, as texts."""
    return {name: text for name in names if (text := text_of(item.get(name))) is not None}


def slurm_length_s(text: str) -> float | None:
    """Return Slurm's `10:00`, `01:00:00`, `1-00:00:00` or `600` as seconds; else None."""
    match = _SLURM_LENGTH.fullmatch(text.strip())
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def slurm_gpus(tres: str) -> tuple[int, str | None]:
    """Return the GPUs of an allocation and their type: `gres/gpu=2,gres/gpu:a100=2` are two.

    Slurm before 20.11 wrote `gpu:2` or `gpu:a100:2`.
    """
    untyped, typed = 0, {}
    for part in tres.split(","):
        if part.startswith("gpu:"):
            part = "gres/" + "=".join(part.rsplit(":", 1))  # noqa: PLW2901 - the newer spelling
        name, _, count = part.partition("=")
        if not count.isdecimal():
            continue
        if name == "gres/gpu":
            untyped = int(count)
        elif name.startswith("gres/gpu:"):
            typed[name.partition(":")[2]] = int(count)
    return untyped or sum(typed.values()), next(iter(typed)) if len(typed) == 1 else None


def protobuf_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field of a protobuf message.

    Raises:
        ValueError: the bytes are not a message, or one of its fields is longer than it.
        IndexError: it ends within a number.
    """
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


def protobuf_parts(data: bytes, *path: int) -> Iterator[bytes]:
    """Yield the contents of every field that a path of numbers leads to, message by message.

    Raises:
        ValueError: as `protobuf_fields`, likewise IndexError.
    """
    number, *inner = path
    for field, value in protobuf_fields(data):
        if field == number and isinstance(value, bytes):
            yield from protobuf_parts(value, *inner) if inner else (value,)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for i in range(_LONGEST_VARINT):
        byte = data[at + i]
        value |= (byte & 0x7F) << 7 * i
        if not byte & 0x80:
            return value, at + i + 1
    raise ValueError("a number of protobuf that is too long")


def csv_rows(builder: RecordingBuilder, reason: str, head: str = "") -> Iterator[dict[str, str]]:
    """Yield the rows of a table with commas by the names above them.

    Args:
        builder: where rows are counted that are left out.
        reason: what is said of a row with more or fewer cells than the header.
        head: a name in every header, in small letters, which comes again with every call of a
            tool; "" where the first line is the only one.
    """
    header: list[str] = []
    for cells in (csv_cells(line) for line in builder.text.splitlines() if line.strip()):
        if head in map(str.lower, cells) if head else not header:
            header = cells
        elif header and len(cells) == len(header):
            row = dict(zip(header, cells, strict=True))
            if len(row) < len(header):
                refuse_twins(builder.name, header, {i: [cell] for i, cell in enumerate(cells)})
            yield row
        elif header:
            builder.leave_out(reason)


def refuse_twins(file: str, header: Sequence[str], columns: Mapping[int, Iterable[str]]) -> None:
    """Refuse columns of one name whose cells differ: nothing tells of which GPU each of them is.

    Args:
        file: for the message.
        header: the names by place.
        columns: cells by place; those of which nothing is read may be missing.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for i in columns:
        places[header[i].strip().lower()].append(i)
    twin_places = [(name, twins) for name, twins in places.items() if len(twins) > 1]
    for name, twins in twin_places:
        first, *later = (list(columns[i]) for i in twins)
        if name and not unneeded(name) and any(first != cells for cells in later):
            named = [f"{header[i].strip()!r} ({i + 1})" for i in twins]
            raise InputError(Message("read.twins", file=file, columns=named))
