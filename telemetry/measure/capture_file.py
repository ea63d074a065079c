"""Writes the capture line by line, so that a kill or a full disk costs the last line only.

What is older than about an hour is folded (`capture_block`, `capture_events`): now and then the
file is written anew, shorter, and put in its place in one step. So a measurement of weeks stays
small. `Pace` limits how often a reading is made; `Notes` collects what a reader of the profile
should know about the measuring, each thing once.
"""

import contextlib
import json
import os
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from math import isfinite
from pathlib import Path

from pricing.tables import Json, JsonObject
from telemetry.measure.capture_block import RowFold
from telemetry.measure.capture_events import EventFold
from telemetry.recording.recording import CAPTURE_SCHEMA, GpuIdentity


class Pace:
    """The times of one reading.

    Args:
        least_s: between two readings.
        share: of one core that the reading may take; it waits longer where it costs more.
        early_s: how much earlier than `least_s` it may come, so that a tick that comes a little
            early does not skip a whole turn.
    """

    def __init__(self, least_s: float, share: float, early_s: float = 0.0) -> None:
        self._least_s = least_s - early_s
        self._share = share
        self._next_s = float("-inf")
        self._cost_s = 0.0

    def due(self, now_s: float) -> bool:
        """Return whether it is time."""
        return now_s >= self._next_s

    def took(self, now_s: float, cost_s: float) -> None:
        """Take note of a reading that began at a time and cost so much of the processor's time.

        One that was dear once, as the first is, is not dear: two in a row are.
        """
        dear_s, self._cost_s = min(cost_s, self._cost_s), cost_s
        self._next_s = now_s + max(self._least_s, dear_s / self._share)

    @contextmanager
    def taking(self, now_s: float) -> Iterator[None]:
        """Measure what a reading that begins at a time costs the processor."""
        start_s = time.thread_time()
        yield
        self.took(now_s, time.thread_time() - start_s)


class Notes:
    """Sentences, and what devices lack, gathered over the devices.

    Attributes:
        sentences: said as they are, in order, each once.
    """

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self._lacking: dict[tuple[str, str], list[str]] = defaultdict(list)

    def say(self, sentence: str) -> None:
        """Add a sentence unless it was said."""
        if sentence not in self.sentences:
            self.sentences.append(sentence)

    def lacks(self, device: str, reading: str, why: str) -> None:
        """Add that a device gives no reading of something, and why."""
        devices = self._lacking[reading, why]
        if device not in devices:
            devices.append(device)

    def all(self) -> list[str]:
        """Return every note; devices that lack the same share a sentence."""
        lacking = [
            f"{', '.join(devices)}: no {reading}: {why}."
            for (reading, why), devices in self._lacking.items()
        ]
        return [*self.sentences, *lacking]


_MODE = 0o644
_MOST_NAMES = 1000
_RECENT_LINES = 4000
_DIGITS = 6
# The file is written anew once this much was added to it and something in it was folded.
REWRITE_BYTES = 8 << 20
_MOST_WORDS = 2000


class CaptureFile:
    """A capture being written. Reading it back is `telemetry.formats.capture`.

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
        self.latest: dict[str, Mapping[str, float]] = {}
        self._words: dict[str, None] = {}
        self._facts: dict[str, Json] = {}
        self._devices: str | None = None
        self._recent: deque[str] = deque(maxlen=_RECENT_LINES)
        self._cut = False
        self._series: dict[str, tuple[int, tuple[str, ...]]] = {}
        self._declared = 0
        self._rows: dict[str, RowFold] = {}
        self._events = EventFold()
        self._folded = False
        self._added_bytes = 0
        self._rewrite_bytes = REWRITE_BYTES

    def begin(self, t_s: float, facts: JsonObject) -> None:
        """Write the first line."""
        self._word({"capture": CAPTURE_SCHEMA, "t_s": round(t_s, 3), **facts})

    def facts(self, facts: JsonObject) -> None:
        """Write what became known, or changed, since the first line."""
        self._facts |= facts
        self._append(_json({"facts": dict(facts)}))

    def row(self, t_s: float, gpu: GpuIdentity | None, values: Mapping[str, float]) -> None:
        """Write the readings of one instant.

        Args:
            t_s: seconds since 1970 UTC.
            gpu: the device; None for the host.
            values: by slot, or by field of `model.Host`.
        """
        if not values:
            return
        key = "" if gpu is None else gpu.key
        self.latest[key] = values
        number, columns = self._series.get(key, (0, ()))
        if not values.keys() <= set(columns):
            columns = (*columns, *(name for name in values if name not in columns))
            number = self._declared
            self._declared += 1
            self._series[key] = (number, columns)
            who = {"host": True} if gpu is None else {"gpu": asdict(gpu)}
            self._word({"columns": list(columns), "id": number, **who})
            self._rows.setdefault(key, RowFold(len(self._rows))).declare(number, columns)
        readings = ",".join([_number(name, values.get(name)) for name in columns])
        line = f"[{number},{t_s:.3f},{readings}]"
        self._append(line)
        self._recent.append(line)
        self._folded |= self._rows[key].add(line)
        self._rewrite_if_due()

    def lines(self, lines: Sequence[str]) -> None:
        """Write lines that are JSON already: the probe's events."""
        for line in lines:
            self._append(line)
            self._recent.append(line)
            self._folded |= self._events.add(line)
        self._rewrite_if_due()

    def recent(self) -> list[str]:
        """Return the capture of the last minutes: every declaration, the last rows and events."""
        return [*self._all_words(), *self._recent]

    def note(self, sentence: str) -> None:
        """Write what a reader of the profile should know."""
        self._word({"note": sentence})

    def device_notes(self, sentences: Sequence[str]) -> None:
        """Write what is to be known of the devices; later sentences replace earlier ones."""
        self._devices = _json({"device_notes": list(sentences)})
        self._append(self._devices)

    def end(self, t_s: float) -> None:
        """Write the last line and close the file; its absence shows that the writer was killed."""
        if self._events.left_out:
            self.note("more processes than are kept wrote events; those of the last are not here.")
        self._append(_json({"end": round(t_s, 3)}))
        os.close(self._handle)

    def remove(self) -> None:
        """Remove the file, once what is in it lies elsewhere."""
        self.path.unlink(missing_ok=True)

    def _word(self, item: object) -> None:
        line = _json(item)
        self._append(line)
        if len(self._words) < _MOST_WORDS:
            self._words[line] = None

    def _all_words(self) -> list[str]:
        latest = [_json({"facts": self._facts})] if self._facts else []
        return [*self._words, *latest, *([self._devices] if self._devices else [])]

    def _append(self, line: str) -> None:
        # A line that was cut by a full disk is ended first, so that it spoils no other.
        data = (("\n" if self._cut else "") + line + "\n").encode()
        try:
            written = os.write(self._handle, data)
        except OSError as error:
            self.problem = error.strerror or str(error)
            self.lost += 1
            return
        self._added_bytes += written
        self._cut = written < len(data)
        self.lost += self._cut
        if self._cut:
            self.problem = "the disk took only a part of a line"

    def _rewrite_if_due(self) -> None:
        """Put the folded capture in the place of the file; where that fails, it just goes on."""
        if not self._folded or self._added_bytes < self._rewrite_bytes:
            return
        self._added_bytes, self._folded = 0, False
        draft = self.path.with_name(f".{self.path.name}.draft")
        try:
            handle, length = self._written_anew(draft)
        except OSError:
            with contextlib.suppress(OSError):
                draft.unlink()
            return
        os.close(self._handle)
        self._handle, self._cut = handle, False
        self._rewrite_bytes = max(REWRITE_BYTES, length // 2)

    def _written_anew(self, draft: Path) -> tuple[int, int]:
        """Write what is kept and put it in place; return the handle to go on with, and bytes."""
        handle = os.open(draft, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC, _MODE)
        try:
            with open(handle, "w", encoding="utf-8", closefd=False) as stream:
                stream.writelines(f"{line}\n" for line in self._all_lines())
            draft.replace(self.path)
        except BaseException:
            os.close(handle)
            raise
        return handle, os.fstat(handle).st_size

    def _all_lines(self) -> Iterator[str]:
        yield from self._all_words()
        for rows in self._rows.values():
            yield from rows.lines()
        yield from self._events.lines()


def _opened(path: Path) -> tuple[Path, int]:
    """Create the file; a capture that was left behind holds measurements and is not touched."""
    for i in range(1, _MOST_NAMES):
        name = path if i == 1 else path.with_name(f"{path.stem}-{i}{path.suffix}")
        try:
            return name, os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, _MODE)
        except FileExistsError:
            continue
    raise FileExistsError(f"{path}: {_MOST_NAMES} captures lie there already")


def _json(item: object) -> str:
    return json.dumps(item, separators=(",", ":"), allow_nan=False)


def _number(name: str, value: float | None) -> str:
    """Write six significant digits: more than any sensor has, and lines stay short.

    A counter keeps its last digits, however long it has counted: they are what it says.
    """
    if value is None or not isfinite(value):
        return "null"
    if name.startswith("counter."):
        return repr(round(value, _DIGITS))
    return f"{value:.{_DIGITS}g}" if abs(value) < 1e6 else f"{value:.3f}"  # noqa: PLR2004
