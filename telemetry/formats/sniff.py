"""Recognizes a source by its content, by the table formats.toml."""

from __future__ import annotations

import csv
import importlib
import json
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pricing.errors import InputError
from pricing.message import Message
from telemetry.readers.column_names import (
    cells_of,
    csv_header,
    delimiter_of,
    key_of,
    meaning,
    metrics,
)
from telemetry.readers.hints import Hints
from telemetry.readers.payload import STAMP, Payload, decode, is_date_line
from telemetry.readers.units import spelled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from telemetry.readers.recording_builder import RecordingBuilder
    from telemetry.recording.recording import Recording

    _Read = Callable[[RecordingBuilder, Hints], Recording]

PROFILE = "profile"
_MOST_BINARY, _ODD = 0.1, re.compile("[�\0-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_READING = re.compile(r"[-+]?[\d.]+\s*(%|[kMG]?i?B|m?W|MHz|C)?")
_FEWEST_READINGS = 3
_SHOWN_CHARACTERS = 80
_CLOCK = re.compile(r"\d:\d\d")
_PERCENT = re.compile(r"100(\.0+)?|\d\d?(\.\d+)?")
# A line of a log may begin with a bracket, too: `[04-03-2021 @ 13:32:39]`, `[DF_3 (88K)]`.
_JSON = re.compile(r'\s*(\{|\[\s*([\[{"\]]|-?\d+(\.\d+)?\s*[,\]]|$))')
_ENOUGH_BYTES = 4096
# A schema of ours settles it: a profile's provenance names columns of every other format.
_says_profile = re.compile(r'\s*\[?\s*\{\s*"schema"\s*:\s*"gpucost\.profile/').match
_OURS = r'^\s*\[?\s*\{\s*"schema"\s*:\s*"gpucost\.'
_PROFILE_KEYS = r'"(schema|hardware|job|gpus|window)"\s*:'


class UnknownFormatError(InputError):
    """A source is nothing that gpucost reads.

    Attributes:
        kind: what it is, as the end of a sentence.
    """

    def __init__(self, sentence: str, kind: str) -> None:
        super().__init__(sentence)
        self.kind = kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format that can be read; its fields are explained in formats.toml."""

    name: str
    title: str
    reader: str
    json: str = ""
    text: str = ""
    binary: bool = False
    seen: str
    tells: str
    lacks: str
    empty: str = ""
    stamped: bool = False

    def fits(self, head: str) -> bool:
        """Return whether the first characters of a source are of this format.

        Args:
            head: of a binary source, one character stands for each byte.
        """
        if self.json and _is_json(head) and re.search(self.json, head):
            return True
        if self.text:
            flags = re.MULTILINE | re.IGNORECASE
            bare = re.sub(f"^{STAMP}", "", head, flags=flags) if self.stamped else head
            return bool(re.search(self.text, bare, flags))
        return self.name in TESTS and TESTS[self.name](head)

    def read(self, payload: Payload, hints: Hints) -> Recording:
        """Return what the source holds; the reader's module is imported on first use."""
        from telemetry.readers.recording_builder import RecordingBuilder  # noqa: PLC0415 - pandas

        module, _, function = self.reader.partition(":")
        read = getattr(importlib.import_module(f"telemetry.formats.{module}"), function)
        return cast("_Read", read)(RecordingBuilder(payload, self.name, self.empty), hints)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """One kind of content that is recognized and refused.

    Attributes:
        kind: what it is, in the sender's words.
        sign: a pattern in the first characters of such content, and of no readable format.
        why: why it is refused.
        instead: what to give.
        late: whether the readable formats are tried first.
    """

    kind: str
    sign: str
    why: str = "is recognised but not read by this version"
    instead: str = "query"
    late: bool = False

    def refusal(self, name: str) -> str:
        """Return the sentence that refuses a source of this kind."""
        return f"{name}: this is {self.kind}, which {self.why}. {self.instead}."


@cache
def _tables() -> tuple[tuple[Format, ...], tuple[Refused, ...], dict[str, str]]:
    tables = tomllib.loads(Path(__file__).with_name("formats.toml").read_text(encoding="utf-8"))
    instead = tables["instead"]
    rows = ({"instead": "query", **row} for row in tables["refused"])
    refused = (
        Refused(**{**row, "instead": instead.get(row["instead"], row["instead"])}) for row in rows
    )
    return tuple(Format(**row) for row in tables["format"]), tuple(refused), instead


def formats() -> tuple[Format, ...]:
    """Return every format, in the order in which they are tried."""
    return _tables()[0]


def refused_kinds() -> tuple[Refused, ...]:
    """Return every kind of content that is refused, in the order in which they are tried."""
    return _tables()[1]


def refused(head: str, *, late: bool) -> Refused | None:
    """Return the row that knows this content, None where no row does."""
    rows = (row for row in refused_kinds() if row.late is late)
    return next((row for row in rows if re.search(row.sign, head, re.MULTILINE)), None)


def recognize(name: str, head: bytes, hints: Hints) -> Format | None:
    """Return the format of a source, None for a `profile.json`.

    Args:
        name: the file's name, for messages.
        head: its first bytes, unpacked.
        hints: `format` overrules the content; `map` makes any CSV readable.

    Raises:
        UnknownFormatError: the source is empty, binary, recognized but not read, or unknown.
        InputError: no format has the name that `hints` gives.
    """
    if hints.format is not None:
        return _named(hints.format)
    head, text = _enough(head)
    if _says_profile(text):
        return None
    if (binary := _fitting(head.decode("latin-1"), binary=True)) is not None:
        return binary
    if not text.strip():
        sentence = f"{name}: the file is empty. Give a telemetry file or a profile.json."
        raise UnknownFormatError(sentence, "empty")
    _refuse(name, text, late=False)
    if _is_json(text) and re.search(_OURS, text):
        return None
    if not _is_binary(text):
        if (row := _fitting(text, binary=False)) is not None:
            return row
        if _is_json(text) and re.search(_PROFILE_KEYS, text):
            return None
        if hints.map and text.lstrip()[:1] not in ("{", "[", "<"):
            return _named("wide-csv" if _is_wide(text, hints) else "nvidia-smi-csv")
    _refuse(name, text, late=True)
    raise UnknownFormatError(_unknown_format(name, head, text), "not telemetry that gpucost knows")


def _enough(head: bytes) -> tuple[bytes, str]:
    """Return a head and its text, less of it where the first line heads columns: rows follow."""
    text = decode(head)
    if csv_header([text.partition("\n")[0]], Hints()) is None:
        return head, text
    return head[:_ENOUGH_BYTES], text[:_ENOUGH_BYTES]


def _fitting(head: str, *, binary: bool) -> Format | None:
    return next((row for row in formats() if row.binary is binary and row.fits(head)), None)


def _refuse(name: str, text: str, *, late: bool) -> None:
    if (row := refused(text, late=late)) is not None:
        raise UnknownFormatError(row.refusal(name), f"{row.kind}, which {row.why}")


def _named(name: str) -> Format | None:
    if name == PROFILE:
        return None
    for row in formats():
        if row.name == name:
            return row
    names = ", ".join((PROFILE, *(row.name for row in formats())))
    raise InputError(f"--format {name}: no such format. Use one of: {names}.")


def _is_json(head: str) -> bool:
    return _JSON.match(head) is not None


def _is_binary(text: str) -> bool:
    return len(_ODD.findall(text[:4096])) > _MOST_BINARY * len(text[:4096])


def _unknown_format(name: str, head: bytes, text: str) -> str:
    end = f"{_tables()[2]['query']}; docs/reference/formats.md lists what gpucost reads."
    if _is_binary(text):
        return f"{name}: binary data of no kind that gpucost knows. {end}"
    if _is_json(text):
        return f"{name}: {_json_problem(head)} {end}"
    line = next(line.strip() for line in text.splitlines() if line.strip())
    shown = line if len(line) <= _SHOWN_CHARACTERS else line[: _SHOWN_CHARACTERS - 3] + "..."
    begins = f"{name}: not telemetry that gpucost knows; it begins {shown!r}. {end}"
    return headless(name, text) or begins


def headless(name: str, text: str) -> str:
    """Return what to do with rows of readings without a header, "" for other texts."""
    lines = [line for line in text.splitlines() if line.strip() and not is_date_line(line)]
    first = next(iter(lines), "")
    cells = cells_of(first, delimiter_of(first))
    readings = sum(bool(_READING.fullmatch(c.strip()) or _CLOCK.search(c)) for c in cells)
    if readings < _FEWEST_READINGS or readings < len(cells) / 2:
        return ""
    maps = _numbered([cells_of(line, delimiter_of(first)) for line in lines], len(cells))
    return Message("read.no-header", file=name, first=repr(first[:70]), maps=maps) if maps else ""


_BY_UNIT = {"%": "util.kernel_time", "MiB": "mem.used_gib", "W": "power.board_w"}
CELL_UNIT = re.compile(r"[\d.] *([%A-Za-z]+)$")


def _numbered(rows: Sequence[Sequence[str]], width: int) -> str:
    """Return a `--map` for each column whose cells tell it, "" where none is a reading."""
    maps, plain = dict[str, int](), list[int]()
    rows = [row for row in rows if len(row) == width][:_HEADER_WITHIN]
    for i, column in enumerate(zip(*rows, strict=True), start=1):
        cells = {cell.strip() for cell in column}
        unit = CELL_UNIT.search(min(cells))
        slot: str | None = None
        if _CLOCK.search(min(cells)):
            slot = "timestamp"
        elif unit:
            slot = _BY_UNIT.get(spelled(unit[1]) or "")
        elif "index" not in maps and len(cells) > 1 and cells == set(map(str, range(len(cells)))):
            slot = "index"
        elif all(map(_PERCENT.fullmatch, cells)):
            plain.append(i)
        if slot is not None:
            maps.setdefault(slot, i)
    if plain:  # a column of percent that says so goes before
        maps.setdefault("util.kernel_time", plain[0])
    if {"timestamp", "index"}.issuperset(maps):
        return ""
    return " ".join(f"--map {i}={slot}" for slot, i in sorted(maps.items(), key=lambda m: m[1]))


def _json_problem(head: bytes) -> str:
    try:
        document = json.loads(head)
    except RecursionError:
        return "brackets are nested too deeply for telemetry or a profile."
    except ValueError:
        return "JSON that is neither a profile nor telemetry, or is damaged."
    keys = ", ".join(list(document)[:8]) if isinstance(document, dict) else "a list"
    return f"JSON, but neither a profile nor telemetry (it holds: {keys or 'nothing'})."


# A line of gpustat that tells of a GPU:
# [0] NVIDIA A100-SXM4-80GB | 41°C,   0 %,   61 / 400 W |     4 / 81920 MB | name(123M)
GPUSTAT_LINE = re.compile(
    r"^[ \t>]{0,16}\[(?P<index>\d{1,3})\] (?P<model>[^|\n]{1,80}?) *\|"
    r" *(?P<temperature>\d{1,3}|\?+)(?:'|°|\ufffd)C,"
    r"(?: *(?:\d{1,3}|\?+) %,(?=[^|\n]*%))? *(?P<utilization>\d{1,3}|\?+) %"
    r"(?:, *(?P<power>\d{1,5}|\?+)(?: /? *(?P<limit>\d{1,5}|\?+))? W)?[^|\n]{0,40}\|"
    r" *(?P<used>\d{1,8}|\?+) / *(?P<total>\d{1,8}|\?+) MB",
    re.MULTILINE,
)
# What heads the tables that `rocm-smi` and `amd-smi monitor` print for people.
ROCM_HEAD = re.compile(r"^(?:GPU|Device)\s.*\bSCLK\s.*VRAM%\s+GPU%")
MONITOR_HEAD = re.compile(
    r"^(?:TIMESTAMP\s+)?GPU\s+(?:XCP\s+)?POWER\b.*\b(?:GFX%|GFX_UTIL\b|GPU_TEMP\b|VRAM_USED\b)"
)
_LONGEST_LINE = 400  # characters; a real one has half
# The columns of tables with one reading a row, by the names that tools give them.
_TIMES = ("_time", "timestampus", "timestamp_us", "timestamp_ms", "timestamp", "datetime", "time")
_NAMES = ("_field", "field", "metricname", "metric_name", "metric", "attribute_path", "key", "name")
_VALUES = ("_value", "value", "values", "metricvalue", "metric_value", "float_value")
_OF_GPUS = re.compile(r"gpu|dcgm|nvidia", re.IGNORECASE)
_LABELLED = re.compile(r"(?P<name>[^{}]*)\{(?P<labels>[^{}]*=\s*\"[^{}]*)\}")

LABEL = re.compile(r'([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"')
_OF_ONE_GPU = re.compile(
    r"(?:(?:[\w.]+/)?(?:gpu|device)_id: ?|(?:system/)?(?:gpu|cuda|card|device)[ _.:#-]?)"
    r"(?P<gpu>\d{1,3})[ _./:-]+(?P<name>\S.*)",
    re.IGNORECASE,
)
# As dashboards name the lines of a panel: `n1 / GPU 0`, `n1 - GPU 0`, `n1 GPU0 Edge`, `GPU 0`.
_OF_HOST = re.compile(
    r"(?:(?P<host>[a-z0-9][\w.:-]*?)(?: *[-/|,:])? +)?GPU[ _#:-]?(?P<gpu>\d{1,3})"
    r"(?:[ :-]+(?P<name>\S.*))?",
    re.IGNORECASE,
)
_NVIDIA_TIME = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d", re.MULTILINE)
# As `ts` puts before a line, or pdsh.
_STAMPED = re.compile(r"^(?:[A-Za-z][\w.-]*: +|\[?[\w: .-]*\d\d:\d\d:\d\d[\d.]*Z?\]?\s+)")
_HEADER_WITHIN = 200


def bare_lines(text: str) -> list[str]:
    """Return the lines of a table, without what a page of text puts around them."""
    return [line.strip(" \t>|#") for line in text.splitlines() if len(line) < _LONGEST_LINE]


def reading_columns(header: str) -> tuple[str, str, str] | None:
    """Return the columns of time, name and value of a header; None where one is missing."""
    cells = {cell.strip().strip('"').lower() for cell in header.split(delimiter_of(header))}
    columns = [
        next((name for name in row if name in cells), "") for row in (_TIMES, _NAMES, _VALUES)
    ]
    return cast("tuple[str, str, str]", tuple(columns)) if all(columns) else None


def wide_column(cell: str) -> tuple[str, dict[str, str]] | None:
    """Return metric and labels of a column that names both; None for any other column.

    A label `__name__` is the metric; so is what follows the number of a GPU. "" where the name of a
    line in a panel says of which host and GPU it is, and no more.
    """
    if (labelled := _LABELLED.fullmatch(cell.strip())) is not None:
        labels = {name.lower(): text for name, text in LABEL.findall(labelled["labels"])}
        return labels.pop("__name__", labelled["name"].strip()), labels
    if (numbered := _OF_ONE_GPU.fullmatch(cell.strip())) is not None:
        return numbered["name"], {"gpu": numbered["gpu"]}
    line = _OF_HOST.fullmatch(cell.strip())
    if line is None or (line["host"] and meaning(line["host"], Hints())):
        return None
    labels = {"gpu": line["gpu"], "hostname": line["host"] or ""}
    return line["name"] or "", {name: text for name, text in labels.items() if text}


def _is_wide(head: str, hints: Hints | None = None) -> bool:
    """Return whether a head is a table some of whose columns name a GPU and what it told."""
    hints = hints or Hints()
    line = next((text for text in head.splitlines() if text.strip() and text[:4] != "sep="), "")
    if head.lstrip()[:1] in ("{", "[", "<") and "," not in line:
        return False
    cells = next(csv.reader([line], delimiter=delimiter_of(line), skipinitialspace=True), [])
    columns = [(cell, *column) for cell in cells if (column := wide_column(cell)) is not None]
    return any(
        labels
        and (
            "{" in line
            or not name
            or key_of(name, {}) in metrics()
            or meaning(name, hints)
            or meaning(cell, hints)
        )
        for cell, name, labels in columns
    )


def is_filled(line: str) -> bool:
    """Return whether a line is one of a table; InfluxDB's annotations begin with `#`."""
    return bool(line.strip(" ,\t\r")) and not line.startswith("#")


def _is_readings(head: str) -> bool:
    """Return whether a head is a table of times, names and values, some of them of a GPU."""
    header = next((line for line in head.splitlines() if is_filled(line)), "")
    return reading_columns(header) is not None and bool(_OF_GPUS.search(head))


def _is_csv(head: str) -> bool:
    if head.lstrip()[:1] in ("{", "[", "<") and not head.lstrip()[1:2].isdigit():
        return False
    if _NVIDIA_TIME.search(head):
        return True
    lines = head.splitlines()[:_HEADER_WITHIN]
    return (
        csv_header(lines, Hints()) is not None
        or csv_header([_STAMPED.sub("", line) for line in lines[:1]], Hints()) is not None
    )


# Of formats that no pattern recognizes.
TESTS: Mapping[str, Callable[[str], bool]] = {
    "gpustat": lambda head: GPUSTAT_LINE.search(head) is not None,
    "amd-table": lambda head: any(
        ROCM_HEAD.match(line) or MONITOR_HEAD.match(line) for line in bare_lines(head)
    ),
    "readings-csv": _is_readings,
    "wide-csv": _is_wide,
    "nvidia-smi-csv": _is_csv,
}
