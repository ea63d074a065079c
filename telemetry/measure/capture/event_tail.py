"""Follows the event files that the probe writes, one a process, and frees what has been read.

The place of what was read is given back to the file system (a hole is punched; the file keeps its
length, so the writing process notices nothing). Each line carries `at`, where the next one begins:
from there whoever reads the capture of a killed sampler can go on.
"""

import ctypes
import json
import os
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_RECENT = 50
_HOLE_BYTES = 1 << 20
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE of linux/falloc.h


@dataclass(slots=True)
class EventTail:
    """Reads what is new in a folder of event files.

    Attributes:
        folder: where the probe writes.
        kinds: of the events seen until now.
    """

    folder: Path
    kinds: set[str] = field(default_factory=set)
    _recent: deque[dict[str, float]] = field(default_factory=lambda: deque(maxlen=_RECENT))
    _offsets: dict[str, int] = field(default_factory=dict)
    _freed: dict[str, int] = field(default_factory=dict)

    def new_lines(self) -> list[str]:
        """Return the lines added since the last call, each with its process's name in it.

        A last line without its end is left for the next call.
        """
        return [line for path in sorted(self.folder.glob("*.jsonl")) for line in self._lines(path)]

    def reached(self) -> frozenset[int]:
        """Return the processes in which the probe came up."""
        try:
            words = (self.folder / "reached").read_text(encoding="ascii").split()
        except (OSError, ValueError):
            return frozenset()
        return frozenset(int(word) for word in words if word.isdecimal())

    def recent_step(self) -> dict[str, float]:
        """Return the mean seconds of the last steps, by part; empty without any."""
        n = sum(line.get("n") or 0 for line in self._recent)
        names = ("step_s", "data_wait_s")
        return {
            name: sum(line.get(name) or 0.0 for line in self._recent) / n for name in names if n
        }

    def free(self) -> None:
        """Give back the place of the lines that were returned, once they lie elsewhere."""
        for name, offset in self._offsets.items():
            freed = self._freed.get(name, 0)
            if offset - freed >= _HOLE_BYTES:
                self._freed[name] = offset
                punch(self.folder / name, freed, offset - freed)

    def _lines(self, path: Path) -> list[str]:
        """Return the new lines of a file."""
        offset = self._offsets.get(path.name, 0)
        if _size(path) <= offset:
            return []
        lines: list[str] = []
        for line, end in event_lines(path, offset):
            self._offsets[path.name] = end
            event = event_of(line)
            if event is not None:
                self._note(event)
                lines.append(named(event, path.stem, end))
        return lines

    def _note(self, event: dict[str, Any]) -> None:
        self.kinds.add(str(event["event"]))
        if event["event"] == "step":
            self._recent.append(event)


def event_lines(path: Path, offset: int = 0) -> Iterator[tuple[bytes, int]]:
    """Yield the whole lines of an event file from an offset on, with where each ends.

    A last line without its end is left out; so is what a file that cannot be read holds.
    """
    try:
        with path.open("rb") as stream:
            stream.seek(offset)
            for line in stream:
                if not line.endswith(b"\n"):
                    return
                offset += len(line)
                yield line, offset
    except OSError:
        return


def event_of(line: bytes) -> dict[str, Any] | None:
    """Return the event of a line; None for one that is not an event."""
    try:
        event = json.loads(line.decode("utf-8", errors="replace"))
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and "event" in event else None


def named(event: Mapping[str, Any], process: str, end: int) -> str:
    """Return the line of a capture: the event, whose it is, and where the next one begins."""
    return json.dumps({**event, "at": end, "process": process}, separators=(",", ":"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def punch(path: Path, offset: int, length: int) -> None:
    """Free a part of a file where the system can; elsewhere the file stays as long as it is."""
    try:
        call = ctypes.CDLL(None, use_errno=True).fallocate
        call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
        handle = os.open(path, os.O_WRONLY)
    except (OSError, AttributeError):
        return
    try:
        call(handle, _KEEP_SIZE | _PUNCH_HOLE, offset, length)
    finally:
        os.close(handle)
