"""What a server has answered, a file a part: read again by series, without all of it in memory."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

_VERSION = 2
_RUN_BYTES = 3 * 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeAnswer:
    """The series of one metric over one stretch of time.

    Attributes:
        labels: of each series, as the server writes them.
        runs: a row for points that follow each other without a gap: which series, how many steps
            after the begin its first point lies, how many points it has; by series and time.
        values: the points' values, in the order of the runs.
        warnings: what the server said beside its data.
    """

    labels: tuple[Mapping[str, str], ...]
    runs: NDArray[np.int32]
    values: NDArray[Any]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Part:
    file: Path
    begin_s: int
    kind: np.dtype[np.generic]
    values_at: int


def _read(file: Path) -> tuple[dict[str, Any], NDArray[np.int32], int] | None:
    """Return a part's head, its runs, and where its values begin; None where it is none."""
    try:
        with file.open("rb") as stream:
            first = stream.readline()
            head: dict[str, Any] = json.loads(first)
            size = head["runs"] * _RUN_BYTES
            runs = np.frombuffer(stream.read(size), dtype="<i4").reshape(-1, 3)
        values_at = len(first) + size
        length = values_at + head["values"] * np.dtype(head["kind"]).itemsize
        intact = head["version"] == _VERSION and file.stat().st_size == length
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return (head, runs, values_at) if intact else None


@dataclass(slots=True)
class StoredAnswers:
    """Answers to range queries of one step, in a folder, by series.

    Attributes:
        folder: where they lie.
        step_s: time between points.
        keys: name and labels of each series, labels by name in lower case.
        notes: what a reader of the profiles should know, each once.
    """

    folder: Path
    step_s: int
    keys: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _places: dict[tuple[str, tuple[tuple[str, str], ...]], int] = field(default_factory=dict)
    _parts: list[_Part] = field(default_factory=list)
    _rows: list[NDArray[np.int64]] = field(default_factory=list)
    _sorted: NDArray[np.int64] | None = None
    _bounds: NDArray[np.int64] | None = None

    def file(self, name: str, begin_s: int, end_s: int) -> Path:
        """Return where a metric's answer for a stretch of time lies."""
        return self.folder / f"{name}-{begin_s}-{end_s}.part"

    def keep(self, file: Path, answer: RangeAnswer) -> None:
        """Write an answer; what is cut off while it is written is never taken for one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        head = {
            "version": _VERSION,
            "labels": answer.labels,
            "runs": len(answer.runs),
            "kind": answer.values.dtype.str,
            "values": len(answer.values),
            "warnings": answer.warnings,
        }
        unfinished = file.with_suffix(".unfinished")
        with unfinished.open("wb") as stream:
            stream.write(json.dumps(head).encode() + b"\n")
            stream.write(np.ascontiguousarray(answer.runs, dtype="<i4").tobytes())
            stream.write(answer.values.tobytes())
        unfinished.replace(file)

    def take(self, file: Path, name: str, begin_s: int) -> bool:
        """Add a file's series; False where it is not there, or damaged."""
        read = _read(file)
        if read is None:
            file.unlink(missing_ok=True)
            return False
        head, runs, values_at = read
        kind = np.dtype(head["kind"])
        warnings = [f"the server warned: {text}" for text in head["warnings"]]
        self.notes += [note for note in warnings if note not in self.notes]
        series = np.array([self._find(name, labels) for labels in head["labels"]], dtype=np.int64)
        lengths = runs[:, 2].astype(np.int64)
        offsets = np.cumsum(lengths) - lengths
        part = np.full(len(runs), len(self._parts), dtype=np.int64)
        places = series[runs[:, 0]] if len(runs) else np.empty(0, dtype=np.int64)
        self._rows.append(np.column_stack((places, part, runs[:, 1], lengths, offsets)))
        self._parts.append(_Part(file, begin_s, kind, values_at))
        self._sorted = None
        return True

    def _find(self, name: str, labels: dict[str, str]) -> int:
        named = {key.lower(): text for key, text in labels.items() if key != "__name__"}
        key = (name, tuple(sorted(named.items())))
        index = self._places.get(key)
        if index is None:
            index = self._places[key] = len(self.keys)
            self.keys.append((name, named))
        return index

    def read(self, series: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the times and values of a series, by time; times in seconds since 1970."""
        times: list[NDArray[np.float64]] = []
        values: list[NDArray[np.float64]] = []
        for _, number, first, length, offset in self._runs_of(series).tolist():
            part = self._parts[number]
            at = part.values_at + offset * part.kind.itemsize
            points = np.fromfile(part.file, dtype=part.kind, count=length, offset=at)
            values.append(points.astype(np.float64))
            times.append(part.begin_s + self.step_s * np.arange(first, first + length, dtype=float))
        if not times:
            return np.empty(0), np.empty(0)
        return np.concatenate(times), np.concatenate(values)

    def _runs_of(self, series: int) -> NDArray[np.int64]:
        if self._sorted is None or self._bounds is None:
            rows = np.concatenate(self._rows) if self._rows else np.empty((0, 5), dtype=np.int64)
            begins = np.array([part.begin_s for part in self._parts], dtype=np.int64)
            order = np.lexsort((rows[:, 2], begins[rows[:, 1]], rows[:, 0]))
            self._sorted = rows[order]
            self._bounds = np.searchsorted(self._sorted[:, 0], np.arange(len(self.keys) + 1))
        return self._sorted[self._bounds[series] : self._bounds[series + 1]]
