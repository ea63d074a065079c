"""Writes the capture, line by line, so that a kill or a full disk costs the last line only."""

import json
import os
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.telemetry.recording import CAPTURE_SCHEMA

_MODE = 0o644
_MOST_NAMES = 1000
_RECENT_LINES = 4000
_DIGITS = 6


class CaptureFile:
    """A capture being written. Reading it back is `planner.telemetry.capture`.

    A write that fails (a full disk) is counted and never raised: the job goes on, later lines are
    tried again, and the reader leaves out what was cut.

    Attributes:
        path: where it lies; an older capture of that name is kept, and a number is added.
        problem: the last failure to write, None while all is well.
        lost: lines that could not be written.
        latest: the last readings of each series; the host's under "".
    """

    def __init__(self, path: Path) -> None:
        self.path, self._handle = _opened(path)
        self.problem: str | None = None
        self.lost = 0
        self.latest: dict[str, Mapping[str, Any]] = {}
        self._words: list[str] = []
        self._rows: deque[str] = deque(maxlen=_RECENT_LINES)
        self._cut = False
        self._series: dict[str, tuple[int, tuple[str, ...]]] = {}
        self._declared = 0

    def begin(self, t_s: float, facts: Mapping[str, Any]) -> None:
        """Write the first line."""
        self._write({"capture": CAPTURE_SCHEMA, "t_s": round(t_s, 3), **facts})

    def facts(self, facts: Mapping[str, Any]) -> None:
        """Write what became known, or changed, since the first line."""
        self._write({"facts": dict(facts)})

    def row(
        self, t_s: float, identity: Mapping[str, Any] | None, values: Mapping[str, Any]
    ) -> None:
        """Write the readings of one instant.

        Args:
            t_s: seconds since 1970 UTC.
            identity: the fields of `recording.GpuIdentity`; None for the host.
            values: by slot, or by field of `model.Host`.
        """
        if not values:
            return
        key = "" if identity is None else str(identity["key"])
        self.latest[key] = values
        number, columns = self._series.get(key, (0, ()))
        if not values.keys() <= set(columns):
            columns = (*columns, *(name for name in values if name not in columns))
            number = self._declared
            self._declared += 1
            self._series[key] = (number, columns)
            who = {"host": True} if identity is None else {"gpu": dict(identity)}
            self._write({"columns": list(columns), "id": number, **who})
        readings = [_short(name, values[name]) if name in values else None for name in columns]
        self._write([number, round(t_s, 3), *readings])

    def lines(self, lines: Sequence[str]) -> None:
        """Write lines that are JSON already: the probe's events."""
        for line in lines:
            self._append(line)

    def recent(self) -> list[str]:
        """Return the capture of the last minutes: every declaration, the last rows and events."""
        return [*self._words, *self._rows]

    def note(self, sentence: str) -> None:
        """Write what a reader of the profile should know."""
        self._write({"note": sentence})

    def device_notes(self, sentences: Sequence[str]) -> None:
        """Write what is to be known of the devices; later sentences replace earlier ones."""
        self._write({"device_notes": list(sentences)})

    def end(self, t_s: float) -> None:
        """Write the last line and close the file; its absence tells that the writer was killed."""
        self._write({"end": round(t_s, 3)})
        os.close(self._handle)

    def remove(self) -> None:
        """Remove the file, once what is in it lies elsewhere."""
        self.path.unlink(missing_ok=True)

    def _write(self, item: object) -> None:
        self._append(json.dumps(item, separators=(",", ":"), allow_nan=False))

    def _append(self, line: str) -> None:
        # A line that was cut by a full disk is ended first, so that it spoils no other.
        (self._rows if line.startswith(("[", '{"event"')) else self._words).append(line)
        data = (("\n" if self._cut else "") + line + "\n").encode()
        try:
            written = os.write(self._handle, data)
        except OSError as error:
            self.problem = error.strerror or str(error)
            self.lost += 1
            return
        self._cut = written < len(data)
        self.lost += self._cut
        if self._cut:
            self.problem = "the disk took only a part of a line"


def _opened(path: Path) -> tuple[Path, int]:
    """Create the file; a capture that was left behind holds measurements and is not touched."""
    for i in range(1, _MOST_NAMES):
        name = path if i == 1 else path.with_name(f"{path.stem}-{i}{path.suffix}")
        try:
            return name, os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, _MODE)
        except FileExistsError:
            continue
    raise FileExistsError(f"{path}: {_MOST_NAMES} captures lie there already")


def _short(name: str, value: float) -> float:
    """Six significant digits: more than any sensor has, and lines stay short.

    A counter keeps its last digits, however long it has counted: they are what it says.
    """
    if name.startswith("counter."):
        return round(value, _DIGITS)
    return float(f"{value:.{_DIGITS}g}") if abs(value) < 1e6 else round(value, 3)  # noqa: PLR2004
