"""Lines of scrapes to columns of numbers by series: labels are read once, not once a line."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from telemetry.readers.payload import Stream, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from telemetry.readers.payload import Payload

_LINE = re.compile(r"([A-Za-z_:][\w:]*)\s*(?:\{(.*)\})?\s+(\S+)(?:\s+(-?\d+))?")
_LABEL = re.compile(r'([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"')
_TYPE = re.compile(r"# TYPE (\S+) (\w+)")
_TOTAL = "_total"
_KINDS = {"counter": True, "gauge": False}
_BLOCK, _HEAD = 1 << 20, 512
_MARK = b"\xef\xbb\xbf"
NO_VALUE = "line without a plain value"

Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(slots=True)
class ScrapeColumn:
    """The points of one series, in the order of their lines.

    Attributes:
        values: as written.
        times: in seconds; fewer than values where some lines have none.
    """

    values: array[float] = field(default_factory=lambda: array("d"))
    times: array[float] = field(default_factory=lambda: array("d"))


@dataclass(slots=True)
class Scrapes:
    """What the lines of one source say.

    Attributes:
        columns: the points by name and labels, labels by name in lower case.
        dropped: lines left out, by reason.
        broken: numbers of lines whose labels were read by what is left of them.
    """

    columns: dict[Key, ScrapeColumn] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    broken: list[int] = field(default_factory=list)
    _kinds: dict[str, str] = field(default_factory=dict)
    _plain: dict[bytes, Callable[[float], None]] = field(default_factory=dict)
    _timed: dict[bytes, ScrapeColumn] = field(default_factory=dict)
    _line: int = 0

    @property
    def timed(self) -> bool:
        """Whether every line says when it was read."""
        every = self.columns.values()
        return bool(every) and all(len(one.times) == len(one.values) for one in every)

    def counter(self, name: str) -> bool | None:
        """Return whether a metric is declared a counter; None where nothing is said."""
        kind = self._kinds.get(name) or self._kinds.get(name.removesuffix(_TOTAL), "")
        return _KINDS.get(kind)

    def read(self, block: bytes) -> None:
        """Add whole lines."""
        plain, timed = self._plain, self._timed
        for line in block.split(b"\n"):
            self._line += 1
            before, _, last = line.rpartition(b" ")
            add = plain.get(before)
            try:
                if add is not None and b"_" not in last:
                    add(float(last))
                    continue
                if add is None and before:
                    series, _, value = before.rpartition(b" ")
                    column = timed.get(series)
                    if column is not None and b"_" not in before[len(series) :] + last:
                        read, time = float(value), int(last) / 1000
                        column.values.append(read)
                        column.times.append(time)
                        continue
            except (ValueError, OverflowError):
                pass
            self._look_at(line)

    def _look_at(self, line: bytes) -> None:
        """Read a line of a series that is not known yet, a comment, or one that is damaged."""
        text = decode(line).strip()
        if not text or text.startswith("#"):
            if declared := _TYPE.match(text):
                self._kinds[declared[1]] = declared[2]
            return
        try:
            (sample,) = (one for f in text_string_to_metric_families(text) for one in f.samples)
            found = sample.name, dict(sample.labels), float(sample.value), sample.timestamp
        except (ValueError, KeyError, IndexError, TypeError, OverflowError):
            self._tolerate(text)
            return
        name, labels, value, time = found
        column = self._column(name, labels)
        column.values.append(value)
        before, _, _ = line.rpartition(b" ")
        if time is None:
            self._plain.setdefault(before, column.values.append)
        else:
            column.times.append(float(time))
            self._timed.setdefault(before.rpartition(b" ")[0], column)

    def _tolerate(self, text: str) -> None:
        """Count a line with a plain value by the labels that are still there."""
        match = _LINE.fullmatch(text)
        value = _number(match[3]) if match else None
        if match is None or value is None:
            self.dropped[NO_VALUE] += 1
            return
        if _LABEL.sub("", match[2] or "").strip(", "):
            self.broken.append(self._line)
        column = self._column(match[1], dict(_LABEL.findall(match[2] or "")))
        column.values.append(value)
        if match[4]:
            column.times.append(int(match[4]) / 1000)

    def _column(self, name: str, labels: dict[str, str]) -> ScrapeColumn:
        key = (name, tuple(sorted((label.lower(), text) for label, text in labels.items())))
        return self.columns.setdefault(key, ScrapeColumn())


def scrapes_of(payload: Payload) -> Scrapes:
    """Return what a source says; one that was not loaded is read in parts from its file."""
    found = Scrapes()
    if payload.data or not payload.path:
        for block in _blocks(_plain_parts(iter(_parts(payload.data)))):
            found.read(block)
        return found
    with Stream(payload.path) as stream:
        for block in _blocks(_plain_parts(stream.chunks())):
            found.read(block)
    return found


def _parts(data: bytes) -> Iterator[bytes]:
    for at in range(0, len(data), _BLOCK):
        yield data[at : at + _BLOCK]


def _plain_parts(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Yield text as UTF-8 without its mark, holes and carriage returns."""
    first = next(parts, b"")
    if first[:2] in {b"\xff\xfe", b"\xfe\xff"} or b"\0" in first[:_HEAD]:
        whole = decode(b"".join(chain([first], parts)))
        yield whole.replace("\r", "").encode("utf-8", "replace")
        return
    for part in chain([first.removeprefix(_MARK)], parts):
        yield part.translate(None, b"\0\r")


def _blocks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield blocks of whole lines, without the last line's end."""
    rest = b""
    for part in parts:
        text = rest + part
        lines, ended, rest = text.rpartition(b"\n")
        if ended:
            yield lines
    if rest:
        yield rest


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
