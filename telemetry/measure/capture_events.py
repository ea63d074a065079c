"""The probe's events: read from its files while they grow, and kept within bounds on long runs.

`EventTail` follows the event files, one a process, and frees what has been read: a hole is punched
into the file, which keeps its length, so the writing process notices nothing. Each line carries
`at`, where the next one begins: whoever reads the capture of a killed sampler goes on from there.

`EventFold` keeps the first and last events of each process as they are; the others are added up,
several of a kind as one that tells the same totals.
"""

import ctypes
import json
import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from telemetry.readers.records import json_of
from telemetry.recording.observed import SUMMED, add_up, of_line
from telemetry.recording.places import most_frequent

Event = dict[str, Any]

HEAD, RECENT, AT_ONCE = 100, 400, 100
# Of one kind and process; twice as many are added up in pairs.
MOST = 200
MOST_PLACES = 48
MOST_PROCESSES = 4096


class EventFold:
    """Keeps the events of all processes within bounds.

    Attributes:
        left_out: whether there were more processes than are kept.
    """

    def __init__(self) -> None:
        self._processes: dict[str, _FoldedProcess] = {}
        self.left_out = False

    def add(self, line: str) -> bool:
        """Take a line; return whether older ones were folded."""
        key = _process_of(line)
        process = self._processes.get(key)
        if process is None:
            if len(self._processes) >= MOST_PROCESSES:
                self.left_out = True
                return False
            process = self._processes[key] = _FoldedProcess()
        return process.add(line)

    def lines(self) -> Iterator[str]:
        """Yield what is kept, process by process."""
        for process in self._processes.values():
            yield from process.lines()


@dataclass(slots=True)
class _FoldedProcess:
    head: list[str] = field(default_factory=list)
    recent: deque[str] = field(default_factory=deque)
    folded: dict[tuple[object, ...], list[Event]] = field(default_factory=lambda: defaultdict(list))

    def add(self, line: str) -> bool:
        if len(self.head) < HEAD:
            self.head.append(line)
            return False
        self.recent.append(line)
        if len(self.recent) < RECENT + AT_ONCE:
            return False
        for _ in range(AT_ONCE):
            event = json.loads(self.recent.popleft())
            same = self.folded[_kind(event)]
            same.append(event)
            if len(same) >= 2 * MOST:
                same[:] = _in_pairs(same)
        return True

    def lines(self) -> Iterator[str]:
        yield from self.head
        folded = [event for events in self.folded.values() for event in events]
        for event in sorted(folded, key=lambda event: float(event.get("t_s") or 0.0)):
            yield json.dumps(event, separators=(",", ":"))
        yield from self.recent


def _process_of(line: str) -> str:
    """Return the process that a line names at its end, as `EventTail` writes it.

    Without a parse.
    """
    return line.rpartition('"process":"')[2].partition('"')[0] if '"process":"' in line else ""


def _kind(event: Event) -> tuple[object, ...]:
    """Return what events must have in common to be added up."""
    kind = event.get("event")
    marks = [event.get(name) for name in ("kind", "by")]
    missing = [event.get(name) is None for name in SUMMED]
    return (kind, *marks, *missing)


def _in_pairs(events: list[Event]) -> list[Event]:
    add = _ADDED.get(str(events[0].get("event")), _latest)
    return [
        add(*events[i : i + 2]) if i + 1 < len(events) else events[i]
        for i in range(0, len(events), 2)
    ]


def added_steps(earlier: Event, later: Event) -> Event:
    """Return the steps of two lines as one; the later line's place, the sum of everything else."""
    sums = {name: _plus(earlier.get(name), later.get(name)) for name in SUMMED if name in later}
    event = {**earlier, **later, **sums, "n": int(earlier.get("n") or 1) + int(later.get("n") or 1)}
    if "longest_s" in earlier or "longest_s" in later:
        times = add_up(map(of_line, (earlier, later)))
        event["longest_s"] = times.longest_s or 0.0
        event["lengths"] = {str(bucket): n for bucket, n in times.counts.items()}
    return event


def _added_spans(earlier: Event, later: Event) -> Event:
    """Return two stretches as one, with their number and the time that they spread over."""
    begin, end = earlier["t_s"], later["t_s"] + (later.get("over_s") or later["s"])
    waited = {"wait_s": _plus(earlier.get("wait_s"), later["wait_s"])} if "wait_s" in later else {}
    return {
        **earlier,
        **later,
        **waited,
        "t_s": begin,
        "s": round(earlier["s"] + later["s"], 6),
        "n": int(earlier.get("n") or 1) + int(later.get("n") or 1),
        "over_s": round(end - begin, 6),
    }


def _added_stacks(earlier: Event, later: Event) -> Event:
    """Return the samples of two lines counted together; the rarest places become one."""
    counts: dict[tuple[str, ...], int] = defaultdict(int)
    for *frame, n in [*earlier["seen"], *later["seen"]]:
        counts[tuple(frame)] += n
    return {**earlier, **later, "seen": most_frequent(counts, MOST_PLACES)}


def _latest(_: Event, later: Event) -> Event:
    """Return the last message on each subject that is repeated when it changed."""
    return later


_ADDED: dict[str, Callable[[Event, Event], Event]] = {
    "step": added_steps,
    "iteration": added_steps,
    "span": _added_spans,
    "stacks": _added_stacks,
}


def _plus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else round(a + b, 6)


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
            fields = (self.folder / "reached").read_text(encoding="ascii").split()
        except (OSError, ValueError):
            return frozenset()
        return frozenset(int(word) for word in fields if word.isdecimal())

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
        lines: list[str] = []
        for line, end in event_lines(path, self._offsets.get(path.name, 0)):
            self._offsets[path.name] = end
            event = event_of(line)
            if event is not None:
                self.kinds.add(str(event["event"]))
                self._recent += [event] if event["event"] == "step" else []
                lines.append(named(event, path.stem, end))
        return lines


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
    event = json_of(line.decode("utf-8", errors="replace"))
    return event if isinstance(event, dict) and "event" in event else None


def named(event: Mapping[str, Any], process: str, end: int) -> str:
    """Return the line of a capture: the event, whose it is, and where the next one begins."""
    return json.dumps({**event, "at": end, "process": process}, separators=(",", ":"))


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
