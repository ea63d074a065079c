"""The measuring itself: devices, host and the probe's events, on one clock, into a capture.

The GPUs are read in a thread of their own: a driver call that hangs holds nothing else up.
"""

from __future__ import annotations

import json
import os
import queue
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from telemetry.measure.host import EVERY_S, HostReader
from telemetry.measure.identity import MachineIdentityReader, run_here
from telemetry.measure.job_devices import JobDevices
from telemetry.measure.nvml_reader import GpuUnavailableError, NvmlReader
from telemetry.measure.outside_stacks import OutsideStacks
from telemetry.measure.processes import ProcessTree, own_number, runs_python, unreached
from telemetry.probe import FOLDER_VARIABLE, STACKS_VARIABLE
from telemetry.recording.recording import COUNTERS, SERVING, GpuIdentity

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from pricing.tables import Json
    from telemetry.measure.capture_events import EventTail
    from telemetry.measure.capture_file import CaptureFile
    from telemetry.measure.host import JobEnd
    from telemetry.measure.nvml_device import DeviceRow
    from telemetry.measure.serving_thread import ServingThread

PATIENCE_S = 0.05  # a tick waits so long for its answer; a later one comes with the next tick
LAST_PATIENCE_S = 0.3
_LONG_S = 5.0  # an answer that takes longer is said


class GpuThread:
    """What `NvmlReader` reads, opened and read in a thread.

    Until the driver is opened there are no devices; `problems` says why it could not be.

    Args:
        gpus: the driver's indices, None for all.

    Attributes:
        identities: of the devices, as `NvmlReader` has them.
        facts: of the machine: `interconnect` and `driver`, once they are known.
        problems: why no device can be read.
    """

    def __init__(self, gpus: tuple[int, ...] | None) -> None:
        self.identities: tuple[GpuIdentity, ...] = ()
        self.facts: dict[str, str | None] = {}
        self.problems: tuple[str, ...] = ()
        self._gpus = gpus
        self._notes: list[str] = []
        self._asked: queue.SimpleQueue[tuple[Collection[int], bool]] = queue.SimpleQueue()
        self._told: queue.SimpleQueue[tuple[float, list[DeviceRow]]] = queue.SimpleQueue()
        self._since_s: float | None = time.monotonic()  # opening is the first thing asked
        self._longest_s = 0.0
        threading.Thread(target=self._serve, name="nvml", daemon=True).start()

    @property
    def notes(self) -> list[str]:
        """What a reader of the profile should know, as far as it is known now."""
        silent_s = 0.0 if self._since_s is None else time.monotonic() - self._since_s
        notes = [*self.problems, *self._notes]
        if silent_s > _LONG_S:
            notes.append("the NVIDIA driver stopped answering: GPU readings end before the job.")
        elif self._longest_s > _LONG_S:
            notes.append(
                f"the NVIDIA driver once took {self._longest_s:.0f} s to answer; GPU readings have "
                "a hole there."
            )
        return notes

    def read(
        self, pids: Collection[int] = (), *, full: bool = False
    ) -> list[tuple[float, list[DeviceRow]]]:
        """Return what has been read since the last call: seconds of `time.monotonic`, and rows.

        Mostly that is the answer to this call. While the driver takes its time it is nothing, and
        what was asked last comes with a later call.

        Args:
            pids: the processes of the job.
            full: as in `NvmlReader.read`; waits a little longer.
        """
        patience_s = LAST_PATIENCE_S if full else PATIENCE_S
        rows = self._heard(patience_s)  # of what was asked before
        if self._since_s is None and not self.problems:
            self._since_s = time.monotonic()
            self._asked.put((frozenset(pids), full))
            rows += self._heard(patience_s)
        return rows

    def _heard(self, patience_s: float) -> list[tuple[float, list[DeviceRow]]]:
        if self._since_s is None:
            return []
        try:
            taken_s, rows = self._told.get(timeout=patience_s)
        except queue.Empty:
            return []
        self._longest_s = max(self._longest_s, time.monotonic() - self._since_s)
        self._since_s = None
        return [(taken_s, rows)] if rows else []

    def _serve(self) -> None:
        try:
            reader = NvmlReader(self._gpus)
        except GpuUnavailableError as error:
            self.problems = error.problems
            self._told.put((time.monotonic(), []))
            return
        self._notes = reader.notes
        self.identities = reader.identities
        self.facts = {"interconnect": reader.interconnect, "driver": reader.driver}
        self._told.put((time.monotonic(), []))
        while True:
            pids, full = self._asked.get()
            taken_s = time.monotonic()
            rows = reader.read(pids, full=full)
            self._notes = reader.notes
            self._told.put((taken_s, rows))


# A kill of ours loses at most this much of the probe's events.
_DRAIN_S = 1.0
_LOOK_AROUND_S = 2.0
_ROOM_BYTES = 4096
_NO_PROBE = (
    "no Python program with the probe in it ran, so where a step's time goes is unknown (another "
    "language, or Python started with -I, -E or an environment of its own)."
)
_NO_STEPS = "data was loaded, but no optimizer stepped, so there are no step times (inference?)."
_NO_FRAMEWORK = (
    "no PyTorch or Keras training was seen, so where a step's time goes is unknown; device and "
    "host readings are complete."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is measured.

    Attributes:
        job: its name.
        pid: the process at its top, None for the whole machine.
        events: where the probe writes, None without a probe.
        chosen: whether the user has said which GPUs are its.
        metadata: whether the metadata service of a cloud may be asked which machine this is.
        serving: reads the metrics of the servers that are measured, None without any.
        begun_s: when who measures it started the job, by `time.monotonic`; None: it ran before.
    """

    job: str | None
    pid: int | None = None
    events: EventTail | None = None
    chosen: bool = False
    metadata: bool = True
    serving: ServingThread | None = None
    begun_s: float | None = None


class Recorder:
    """Writes what it reads, tick by tick.

    Args:
        capture: where to.
        gpus: the devices, None without a GPU.
        subject: what is measured.
        interval_s: seconds between readings.
    """

    def __init__(
        self, capture: CaptureFile, gpus: GpuThread | None, subject: Subject, interval_s: float
    ) -> None:
        self._capture = capture
        self._gpus = gpus
        self._subject = subject
        self._interval_s = interval_s
        self._machine = MachineIdentityReader(metadata=subject.metadata)
        self._tree: ProcessTree | None = None
        self._job_devices: JobDevices | None = None
        if subject.pid is not None:
            number, mark = own_number(subject.pid), _mark(subject)
            self._tree = ProcessTree(number, mark, begun_s=subject.begun_s)
            self._job_devices = JobDevices(self._tree, chosen=subject.chosen)
        # Without a GPU the host's readings are the clock of the measurement.
        self._host = HostReader(self._tree, min(EVERY_S, interval_s) if gpus is None else EVERY_S)
        self._identities: dict[str, GpuIdentity] = {}
        # One clock: readings keep their distance where the system's time is set meanwhile.
        self._offset_s = time.time() - time.monotonic()
        self._looked_s = float("-inf")
        self._said: set[str] = set()
        self._device_notes: list[str] = []
        self._facts: dict[str, Json] = {}
        may_look = subject.pid is not None and os.environ.get(STACKS_VARIABLE) != "0"
        self._stacks = OutsideStacks() if may_look else None

    @property
    def now_s(self) -> float:
        """Seconds since 1970 UTC."""
        return time.monotonic() + self._offset_s

    @property
    def _devices(self) -> tuple[GpuIdentity, ...]:
        return self._gpus.identities if self._gpus is not None else ()

    @property
    def _pids(self) -> frozenset[int]:
        """The job's processes at the last reading of the host."""
        return frozenset() if self._tree is None else frozenset(self._tree.members)

    def begin(self) -> None:
        """Write what is measured, and on what."""
        self._facts = self._gather_facts()
        events = self._subject.events
        probe = {} if events is None else {"probe_folder": str(events.folder)}
        first: dict[str, Json] = {"job": self._subject.job, "interval_s": self._interval_s}
        first["run"] = run_here(os.environ)
        self._capture.begin(self.now_s, {**first, **probe, **self._facts})

    def record(
        self,
        ended: Callable[[float], bool],
        duration_s: float | None,
        on_tick: Callable[[], None] = lambda: None,
    ) -> None:
        """Read until the subject ended or the time is over.

        Args:
            ended: waits so many seconds at most, and tells whether the subject ended.
            duration_s: the longest time, None without a limit.
            on_tick: called after each reading.
        """
        begin_s = due_s = time.monotonic()
        while True:
            self.tick()
            on_tick()
            # A tick that came late is not made up for: readings stay on their grid.
            late = time.monotonic() - due_s
            due_s += self._interval_s * max(1.0, late // self._interval_s + 1.0)
            if duration_s is not None and due_s - begin_s > duration_s:
                ended(begin_s + duration_s - time.monotonic())
                return
            if self._wait(ended, due_s):
                return

    def tick(self, *, last: bool = False, ended: JobEnd | None = None) -> None:
        """Read once; after the job ended its counters alone: they reach to its end."""
        # First, since it finds the job's processes.
        host = self._host.read(time.monotonic(), last=last, ended=ended)
        self._look_around()
        t_s = self.now_s
        if self._gpus is not None:
            self._read(self._gpus, last=last)
        self._capture.row(t_s, None, host)
        self._drain(last=last)

    def end(self, ended: JobEnd | None = None) -> None:
        """Write the last readings and events and what they lack, and close the capture.

        Args:
            ended: how the job ended, where its parent says so.
        """
        self.tick(last=True, ended=ended)
        if self._subject.serving is not None:
            self._subject.serving.end()
            self._say(self._subject.serving.notes)
        if self._subject.events is not None:
            self._say(_shortcomings(self._subject.events))
        if self._stacks is not None:
            self._capture.lines(self._stacks.end(self.now_s))
            self._say(_how_seen(self._stacks))
            self._drain(last=True)  # a job that goes on without us told more meanwhile
        self._tell_facts()
        if self._job_devices is not None:
            self._say(self._job_devices.notes(self._devices))
        killed = self._host.killed_for_memory
        if killed:
            which = "a process" if killed == 1 else f"{killed} processes"
            sentence = f"the kernel killed {which} of the job's control group for want of memory."
            self._say([sentence])
        if ended is not None and ended.code:
            exit_event = {"event": "exit", "t_s": round(self.now_s, 3), "code": ended.code}
            self._capture.lines([json.dumps(exit_event, separators=(",", ":"))])
        if killed:
            event = {"event": "out-of-memory", "t_s": round(self.now_s, 3), "where": "host"}
            self._capture.lines([json.dumps(event)])
        self._capture.end(self.now_s)

    def _gather_facts(self) -> dict[str, Json]:
        """Return what is known of job and machine now."""
        gpus, serving, devices = self._gpus, self._subject.serving, self._devices
        facts: dict[str, Json] = {
            **self._machine.facts(),
            "cpu_cores": self._host.cpu_cores,
            "ram_gib": self._host.ram_gib,
            "machine_cores": self._host.machine_cores,
            "machine_ram_gib": round(self._host.machine_ram_gib, 3),
        }
        if devices and not self._subject.chosen:
            facts["machine_gpus"] = sum(gpu.partition is None for gpu in devices)
        if devices and self._job_devices is not None:
            self._job_devices.look(devices)
            facts |= self._job_devices.facts(devices)
        facts |= gpus.facts if gpus else {}
        return facts if serving is None else {**facts, SERVING: serving.readings()}

    def _tell_facts(self) -> None:
        """Write what became known, or changed, since it was last written."""
        facts = self._gather_facts()
        news = {name: value for name, value in facts.items() if self._facts.get(name) != value}
        if news:
            self._facts |= news
            self._capture.facts(news)

    def _read(self, gpus: GpuThread, *, last: bool) -> None:
        rows = gpus.read(self._pids, full=last)
        if len(gpus.identities) != len(self._identities):  # known once the driver has answered
            self._identities = {gpu.key: gpu for gpu in gpus.identities}
            self._tell_facts()
        for taken_s, answers in rows:
            for row in answers:
                if self._job_devices is not None and row.holders:
                    self._job_devices.saw(row.key, row.holders)
                who = self._identities[row.key]
                counts = {name: value for name, value in row.values.items() if name in COUNTERS}
                self._capture.row(taken_s + self._offset_s, who, counts if last else row.values)
        if (notes := gpus.notes) != self._device_notes:
            self._device_notes = notes
            self._capture.device_notes(notes)

    def _wait(self, ended: Callable[[float], bool], due_s: float) -> bool:
        while (left_s := due_s - time.monotonic()) > 0:
            if ended(min(left_s, _DRAIN_S)):
                return True
            if left_s > _DRAIN_S:
                self._drain()
        return ended(0.0)

    def _drain(self, *, last: bool = False) -> None:
        if self._subject.events is not None:
            lines = self._subject.events.new_lines()
            self._capture.lines(lines)
            if self._capture.problem is None:
                self._subject.events.free()
            if self._stacks is not None:
                self._stacks.take(lines)
        if self._stacks is not None and not last:
            busiest = None if self._tree is None else self._tree.busiest[0]
            program = busiest if busiest is not None and runs_python(busiest) else None
            self._capture.lines(self._stacks.look(program, self.now_s))

    def _look_around(self) -> None:
        """Check now and then which processes the job has, and which of them the probe missed."""
        now = time.monotonic()
        if now - self._looked_s < _LOOK_AROUND_S:
            return
        self._looked_s = now
        self._tell_facts()
        events = self._subject.events
        if events is not None:
            self._say(_full_disk(events.folder))
            missed = unreached(self._pids, events.reached(), self.now_s)
            self._say([_unreached(name) for name in missed])

    def _say(self, sentences: list[str]) -> None:
        for sentence in sentences:
            if sentence not in self._said:
                self._said.add(sentence)
                self._capture.note(sentence)


def _mark(subject: Subject) -> bytes | None:
    """Return what only the environment of the job's processes holds: where the probe writes."""
    events = subject.events
    return None if events is None else f"{FOLDER_VARIABLE}={events.folder.resolve()}".encode()


def _unreached(name: str) -> str:
    return (
        f"{name}: the probe is not in it, so its steps are not in this profile. Python was started "
        "without our path (-I, -E, -S, `env -i`, or PYTHONPATH set anew)."
    )


def _how_seen(stacks: OutsideStacks) -> list[str]:
    """Return what limits the places of the program, where py-spy could not look at it."""
    if stacks.problem is None or stacks.looked:
        return []
    sentence = (
        f"py-spy could not look at the program ({stacks.problem}); where its time goes was seen "
        "from inside alone, where Python code is seen late: such shares are rough."
    )
    return [sentence]


def _full_disk(folder: Path) -> list[str]:
    """Return why the probe cannot write into its folder, where it cannot."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(bytes(_ROOM_BYTES))
    except OSError as error:
        reason = error.strerror or error
        sentence = (
            f"{folder.parent}: nothing can be written there ({reason}), so steps are missing from "
            "then on. Free space, or name another folder with TMPDIR."
        )
        return [sentence]
    return []


def _shortcomings(events: EventTail) -> list[str]:
    """Return why there are no steps, where there are none."""
    if problem := _full_disk(events.folder):
        return problem
    kinds = events.kinds
    if "step" in kinds:
        return []
    if not events.reached():
        return [_NO_PROBE]
    return [_NO_STEPS if "hello" in kinds else _NO_FRAMEWORK]
