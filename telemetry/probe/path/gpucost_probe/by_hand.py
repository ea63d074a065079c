"""The probe in a program that measures itself: started, told of steps, and ended by a call.

PyTorch may have been imported before. What the probe patches stays patched; between two
measurements it writes nothing.

`begin`, `step` and `end` are for who measures devices and host beside the program, as
`gpucost.measure` does. `Measurement` does without: it writes a capture, in the format of
`telemetry.formats.capture`, of what a process can see by itself.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import tempfile
import time
from time import perf_counter

from . import WATCHED, _note_reached, process, watch_imports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

CAPTURE_SCHEMA = "gpucost.capture/v1"
_GIB_KIB = 1 << 20

_installed = False


def begin(folder: str) -> None:
    """Start the probe in this process, or restart it.

    Args:
        folder: where it writes.
    """
    global _installed  # noqa: PLW0603 - one a process, like the probe
    _note_reached(folder)
    if _installed:
        probe = process.probe_of(folder)
        probe.folder, probe.by_hand = folder, False
        probe.renew()
        probe.watch.start()
        return
    _installed = True
    process.probe_of(folder)
    for name, patcher in WATCHED.items():
        if name in sys.modules:
            process.patch(sys.modules[name], patcher, folder)
    _renew_copies()
    watch_imports(folder)


def step(n: int, items: int | None) -> None:
    """Take the end of steps that the program tells; from then on optimizers tell none.

    Args:
        n: how many ended together.
        items: samples or tokens in them, None where unknown.
    """
    probe = process.probe_of("")
    probe.events.hello("python", platform.python_version())
    if not probe.by_hand:
        probe.by_hand = True
        probe.events.write("by-hand")
    probe.steps.stepped(perf_counter(), None, n, items)


def end() -> None:
    """Write what was held back, and nothing more until the next begin."""
    probe = process.probe_of("")
    probe.events.bye()
    probe.watch.end()
    probe.events.forget()


def _renew_copies() -> None:
    """Let `torch.save` be the patched function; PyTorch copied it when it was imported."""
    torch, serialization = sys.modules.get("torch"), sys.modules.get("torch.serialization")
    if hasattr(torch, "save") and hasattr(serialization, "save"):
        torch.save = serialization.save  # type: ignore[union-attr]


class Measurement:
    """What is measured between `with` and its end; made by `gpucost_probe.measure`.

    Attributes:
        path: the capture, once the block has ended; None where it could not be written, or
            `gpucost profile` measures this program.
    """

    def __init__(self, name: str, interval_s: float) -> None:
        self.path: str | None = None
        self._name = name
        self._folder = ""
        self._host = _HostReadings(interval_s)
        self._begun_s = 0.0

    def __enter__(self) -> Measurement:  # noqa: PYI034 - Self is of Python 3.11
        """Start measuring."""
        if "GPUCOST_PROBE_DIR" in os.environ:
            return self
        try:
            self._folder = tempfile.mkdtemp(prefix="gpucost-probe-")
        except OSError as error:
            _say("%s: not measured: %s" % (self._name, error.strerror or error))
            return self
        self._begun_s = time.time()
        begin(self._folder)
        process.probe_of("").each_look = self._host.look
        return self

    def step(self, n: int = 1, *, items: int | None = None) -> None:
        """Say that a step has ended, where it is not a step of a PyTorch or Keras optimizer.

        Args:
            n: steps that ended together.
            items: samples or tokens in them.
        """
        if self._folder:
            step(n, items)

    def __exit__(self, *_: object) -> None:
        """Write the capture; an exception of the program goes on as it is."""
        folder, self._folder = self._folder, ""
        if not folder:
            return
        try:
            process.probe_of("").each_look = None
            end()
            self._host.read()
            self.path = self._write(folder)
            _say("wrote %s; next: gpucost import %s" % (self.path, self.path))
        except Exception as error:
            _say("%s: nothing was written: %r" % (self._name, error))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _write(self, folder: str) -> str:
        """Write the capture beside others of its name, and return its path."""
        names = ("%s%s.capture.jsonl" % (self._name, end) for end in ("", *range(-2, -1000, -1)))
        path = next(name for name in names if not os.path.exists(name))
        with open(path, "x", encoding="utf-8") as stream:
            lines = (json.dumps(item, separators=(",", ":")) for item in self._items(folder))
            stream.writelines(line + "\n" for line in lines)
        return path

    def _items(self, folder: str) -> Iterator[object]:
        yield {
            "capture": CAPTURE_SCHEMA,
            "t_s": round(self._begun_s, 3),
            "job": os.path.basename(self._name),
            "interval_s": self._host.interval_s,
            "cpu_cores": len(os.sched_getaffinity(0)),
            "ram_gib": self._host.ram_gib,
        }
        yield {"columns": ["cpu_util", "ram_used_gib"], "id": 0, "host": True}
        for row in self._host.rows:
            yield [0, *row]
        for name in sorted(os.listdir(folder)):
            stem, ending = os.path.splitext(name)
            if ending == ".jsonl":
                with open(os.path.join(folder, name), encoding="utf-8") as events:
                    for line in events:
                        yield dict(json.loads(line), process=stem)
        yield {"end": round(time.time(), 3)}


class _HostReadings:
    """How busy the cores are that this process may use, and how much memory is in use.

    Attributes:
        interval_s: seconds between readings.
        ram_gib: memory of the machine; None where it is not known.
        rows: time since 1970, share of the cores in use, memory in use in GiB.
    """

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self.ram_gib: float | None = None
        self.rows: list[tuple[float, float, float]] = []
        self._due_s = 0.0
        self._counted: tuple[int, int] | None = None

    def look(self) -> None:
        """Read, where the time has come."""
        if perf_counter() >= self._due_s:
            self.read()

    def read(self) -> None:
        """Add a row; the first reading counts from there on."""
        self._due_s = perf_counter() + self.interval_s
        try:
            before, self._counted = self._counted, _busy_and_all()
            memory = _memory_kib()
        except (OSError, ValueError, KeyError):
            return
        self.ram_gib = memory["MemTotal"] / _GIB_KIB
        used_gib = (memory["MemTotal"] - memory["MemAvailable"]) / _GIB_KIB
        if before is None or self._counted[1] <= before[1]:
            return
        busy, total = self._counted[0] - before[0], self._counted[1] - before[1]
        share = min(1.0, max(0.0, busy / total))
        self.rows.append((round(time.time(), 3), round(share, 6), round(used_gib, 6)))


def _busy_and_all() -> tuple[int, int]:
    """Return the ticks in which our cores were busy, and all their ticks (proc(5))."""
    own_cores = {"cpu%d" % core for core in os.sched_getaffinity(0)}
    busy = total = 0
    with open("/proc/stat", encoding="ascii") as stream:
        for line in stream:
            name, *cells = line.split()
            if name in own_cores:
                ticks = [int(word) for word in cells[:8]]  # guest time is in user time already
                total += sum(ticks)
                busy += sum(ticks) - ticks[3] - ticks[4]
    return busy, total


def _memory_kib() -> dict[str, int]:
    with open("/proc/meminfo", encoding="ascii") as stream:
        lines = (line.split() for line in stream)
        return {cells[0].rstrip(":"): int(cells[1]) for cells in lines}


def _say(sentence: str) -> None:
    try:
        sys.stderr.write("gpucost: %s\n" % sentence)
    except Exception:
        pass
