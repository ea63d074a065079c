"""The sampler's process: reads devices, host and events until the job ends, then has it written.

It ends with who started it: where that process is killed, what was measured stays a capture.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from gpucost.profiling.live_view import LiveSnapshot, LiveView, in_foreground
from gpucost.profiling.profile_writer import Writer
from gpucost.profiling.sampling import CHANNEL, END, HIDE, SHOW, Outcome, Task
from pricing.listing import counted
from telemetry.measure.capture_events import EventTail
from telemetry.measure.capture_file import CaptureFile
from telemetry.measure.command import ALL
from telemetry.measure.recorder import GpuThread, Recorder, Subject
from telemetry.measure.serving_thread import ServingThread


def main() -> None:
    """Do one task, which comes over the channel."""
    # Signals are for who started us, and for the job.
    signal.pthread_sigmask(signal.SIG_BLOCK, ALL)
    channel = Channel(socket.socket(fileno=CHANNEL))
    task = channel.task()
    try:
        outcome = _Sampler(task, channel).run()
    except OSError as error:  # the system's limits are not our fault
        outcome = Outcome(problems=(f"measuring failed: {error.strerror or error}.",))
    except Exception as error:  # noqa: BLE001 - said by who started us
        outcome = Outcome(problems=(f"measuring failed, a bug: {error!r}.",))
    if outcome is not None:
        channel.say(outcome=asdict(outcome))
    os._exit(0)  # a driver's call that hangs in a thread would hold us


class Channel:
    """The sampler's end of the sockets.

    Attributes:
        left: whether the other end has gone.
        words: what it told us.
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._begun = b""
        self._items: list[Any] = []
        self.left = False
        self.words: set[str] = set()

    def task(self) -> Task:
        """Wait for the task."""
        while not self._items and not self.left:
            self._hear()
        if self.left:
            os._exit(0)
        fields = self._items.pop(0)
        gpus = fields.pop("gpus")
        metrics = tuple(fields.pop("metrics"))
        return Task(gpus=None if gpus is None else tuple(gpus), metrics=metrics, **fields)

    def say(self, **item: object) -> None:
        """Say something to who started us."""
        with contextlib.suppress(OSError):
            self._socket.sendall(json.dumps(item).encode() + b"\n")

    def listen(self, timeout_s: float, *more: int) -> list[int]:
        """Wait for a word, for another descriptor, or for the time; return the descriptors."""
        own = self._socket.fileno()
        ready, _, _ = select.select([own, *more], [], [], max(0.0, timeout_s))
        if own in ready:
            self._hear()
            ready.remove(own)
        self.words |= {item for item in self._items if isinstance(item, str)}
        self._items.clear()
        return ready

    def _hear(self) -> None:
        try:
            data = self._socket.recv(1 << 16)
        except OSError:
            data = b""
        self.left = not data
        *lines, self._begun = (self._begun + data).split(b"\n")
        self._items += [json.loads(line) for line in lines]


class _Sampler:
    """The parts of one measurement."""

    def __init__(self, task: Task, channel: Channel) -> None:
        self._task = task
        self._channel = channel
        self._begun_s = time.monotonic()
        self._watched = None if task.is_child or task.pid is None else _watch(task.pid)
        self._events = None if task.probe_folder is None else EventTail(Path(task.probe_folder))
        self._gpus = None if task.no_gpu else GpuThread(task.gpus)
        self._view: LiveView | None = None
        self._drawn = 0

    def run(self) -> Outcome | None:
        """Sample until the end, and have the profile written; None where nobody waits for it."""
        target = Path(self._task.target)
        try:
            target, self._capture = self._opened(target)
        except OSError as error:
            reason = error.strerror or error
            problem = f"{target}: nothing can be written there, nor in /tmp: {reason}."
            return Outcome(problems=(problem,))
        self._channel.say(capture=str(self._capture.path))
        with Writer() as self._writer:
            self._record()
            self._channel.say(ended=True)
            if self._task.probe_folder is not None:
                shutil.rmtree(Path(self._task.probe_folder).parent, ignore_errors=True)
            return None if self._channel.left else self._finish(target)

    def _opened(self, target: Path) -> tuple[Path, CaptureFile]:
        """Return where the profile goes, and the capture beside it.

        Where nothing can be written, that is a folder of its own for temporary files: a job that
        runs for hours is not measured in vain.
        """
        capture = f"{target.stem}.capture.jsonl"
        try:
            return target, CaptureFile(target.with_name(capture))
        except OSError as error:
            elsewhere = Path(tempfile.mkdtemp(prefix="gpucost-")) / target.name
            opened = CaptureFile(elsewhere.with_name(capture))
            reason = error.strerror or error
            self._channel.say(
                said=f"{target.parent}: cannot be written to ({reason}); the profile goes to "
                f"{elsewhere}."
            )
            return elsewhere, opened

    def _record(self) -> None:
        metrics = self._task.metrics
        subject = Subject(
            job=self._task.job,
            pid=self._task.pid,
            events=self._events,
            chosen=self._task.gpus is not None,
            metadata=self._task.metadata,
            serving=ServingThread(metrics, self._task.interval_s) if metrics else None,
        )
        recorder = Recorder(self._capture, self._gpus, subject, self._task.interval_s)
        recorder.begin()
        if self._task.view:
            parent = os.getppid()
            self._view = LiveView(
                self._snapshot,
                self._verdict,
                lambda: in_foreground(parent),
                color=self._task.color,
            )
        try:
            recorder.record(self._ended, self._task.duration_s, self._draw)
        finally:
            if self._view is not None:
                self._view.hide()
                self._channel.say(drawn=0)
        recorder.end()

    def _finish(self, target: Path) -> Outcome:
        task = self._task
        if target != Path(task.target):  # somewhere else, where no other part of the run writes
            task = replace(task, run_name=None)
        outcome = self._writer.write(str(self._capture.path), str(target), task)
        if self._capture.problem is not None:
            lost = counted(self._capture.lost, "line")
            sentence = (
                f"{lost} could not be written ({self._capture.problem}); "
                "the profile is of the others."
            )
            self._channel.say(said=sentence)
        return outcome

    def _ended(self, timeout_s: float) -> bool:
        """Wait; return whether the job has ended, or who started us has."""
        until_s = time.monotonic() + timeout_s
        handles = () if self._watched is None else (self._watched,)
        while True:
            over = bool(self._channel.listen(until_s - time.monotonic(), *handles))
            self._follow()
            if over or self._channel.left or END in self._channel.words:
                return True
            if time.monotonic() >= until_s:
                return False

    def _follow(self) -> None:
        """Show or hide the view as we are told."""
        words = self._channel.words
        if HIDE in words:
            if self._view is not None:
                self._view.hide()
            self._channel.say(hidden=True)
        if self._view is not None and SHOW in words:
            self._view.show()
        words -= {HIDE, SHOW}

    def _draw(self) -> None:
        if self._view is not None and (drawn := self._view.draw()) != self._drawn:
            self._drawn = drawn
            self._channel.say(drawn=drawn)

    def _snapshot(self) -> LiveSnapshot:
        latest = self._capture.latest
        gpus = self._gpus.identities if self._gpus is not None else ()
        labels = {
            g.key: f"GPU {g.index}" + (f" {g.partition}" if g.partition else "") for g in gpus
        }
        return LiveSnapshot(
            gpus={label: latest[key] for key, label in labels.items() if key in latest},
            host=latest.get("", {}),
            step=self._events.recent_step() if self._events is not None else {},
            elapsed_s=time.monotonic() - self._begun_s,
        )

    def _verdict(self) -> str:
        """Return the first finding of the last minutes; what was asked the time before."""
        return self._writer.so_far(self._capture.recent(), self._task.hints)


def _watch(pid: int) -> int | None:
    """Return a handle that becomes readable when the process ends; None where it has ended."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
