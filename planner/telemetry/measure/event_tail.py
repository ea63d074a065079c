"""Follows the event files that the probe writes, one a process."""

import json
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

_MOST_BYTES = 1 << 24
_RECENT = 50


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

    def _lines(self, path: Path) -> list[str]:
        offset = self._offsets.get(path.name, 0)
        try:
            with path.open("rb") as stream:
                stream.seek(offset)
                data = stream.read(_MOST_BYTES)
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offsets[path.name] = offset + len(whole)
        return [
            named
            for line in whole.decode("utf-8", errors="replace").splitlines()
            if (named := self._named(line, path.stem)) is not None
        ]

    def _named(self, line: str, process: str) -> str | None:
        """The line with its process's name; None for one that is no event."""
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(event, dict) or "event" not in event:
            return None
        self.kinds.add(str(event["event"]))
        if event["event"] == "step":
            self._recent.append(event)
        return json.dumps({**event, "process": process}, separators=(",", ":"))
