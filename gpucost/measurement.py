"""One measurement from end to end: devices opened, command run, series and profile written."""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from gpucost.live_view import Glance, LiveView
from gpucost.output import Output
from gpucost.writing import write_file
from pricing.errors import GpucostError, InputError

if TYPE_CHECKING:
    from planner.profile.model import Profile
    from planner.telemetry.hints import Hints
    from planner.telemetry.measure.capture_file import CaptureFile
    from planner.telemetry.measure.child import Child
    from planner.telemetry.measure.event_tail import EventTail
    from planner.telemetry.measure.recorder import GpuReader, Subject

AROUND_CHILD = 125


class AroundChildError(GpucostError):
    """We failed around the user's command; the code is one that few commands have."""

    exit_code = AROUND_CHILD


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to measure.

    Attributes:
        command: the command to run, empty where none is run.
        pid: a process that runs already.
        target: where the profile goes.
        interval_s: seconds between readings.
        duration_s: the longest time, None until the command ends or Ctrl-C.
        gpus: the driver's indices, None for all that the command may use.
        no_gpu: measure the host and the steps alone.
        hints: what the measurement cannot see.
    """

    command: tuple[str, ...]
    pid: int | None
    target: Path
    interval_s: float
    duration_s: float | None
    gpus: tuple[int, ...] | None
    no_gpu: bool
    hints: "Hints"


def measure(asked: Asked, output: Output) -> int:
    """Measure, write the profile, and return the exit code: the command's own where one ran.

    Raises:
        InputError: nothing could be measured, and no command was to run.
        AroundChildError: the same, with a command; it was not started, or ended well itself.
        CommandError: the command cannot be started.
    """
    try:
        with _gpus(asked) as gpus, _events(asked) as events:
            return _Measurement(asked, gpus, events, output).run()
    except InputError as error:
        if not asked.command:
            raise
        raise AroundChildError(error.problems) from error


@contextlib.contextmanager
def _gpus(asked: Asked) -> Iterator["GpuReader | None"]:
    if asked.no_gpu:
        yield None
        return
    from planner.telemetry.measure.nvml import GpuUnavailableError, NvmlReader  # noqa: PLC0415

    try:
        reader = NvmlReader(asked.gpus)
    except GpuUnavailableError as error:
        last = "Without a GPU, --no-gpu measures the host and the steps alone."
        raise InputError([*error.problems, last]) from error
    with reader:
        yield reader


@contextlib.contextmanager
def _events(asked: Asked) -> Iterator["EventTail | None"]:
    """A folder for the probe's events, where a command is run."""
    from planner.telemetry.measure.event_tail import EventTail  # noqa: PLC0415 - lazy

    if not asked.command:
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="gpucost-probe-"))
    try:
        yield EventTail(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Measurement:
    """The steps of one measurement, which share its parts."""

    def __init__(
        self,
        asked: Asked,
        gpus: "GpuReader | None",
        events: "EventTail | None",
        output: Output,
    ) -> None:
        self._asked = asked
        self._gpus = gpus
        self._events = events
        self._output = output
        self._capture = _capture(asked.target)
        self._begun_s = time.monotonic()

    def run(self) -> int:
        """Run the command or watch, then write what was measured."""
        if self._asked.command:
            return self._around_command()
        with _Watched(self._asked.pid) as watched:
            self._record(watched.ended, _subject(self._asked, self._asked.pid, None))
        self._finish()
        return 0

    def _around_command(self) -> int:
        from planner.telemetry.measure.child import Child, CommandError  # noqa: PLC0415 - lazy

        events = self._events
        try:
            child = Child(self._asked.command, _environment(events) if events else os.environ)
        except CommandError:
            self._capture.remove()
            raise
        problems: tuple[str, ...] = ()
        with child:
            try:
                self._record(child.ended, _subject(self._asked, child.pid, events))
                self._finish()
            except GpucostError as error:
                problems = error.problems
            except Exception as error:  # noqa: BLE001 - the user's command goes on, whatever we do
                problems = (f"measuring failed, a bug: {error!r}; {self._where()}.",)
            _wait(child)
        if problems and child.exit_code == 0:
            raise AroundChildError(problems)
        for sentence in problems:
            self._output.say(f"gpucost: {sentence}")
        return child.exit_code

    def _record(self, ended: Callable[[float], bool], subject: "Subject") -> None:
        from planner.telemetry.measure.recorder import Recorder  # noqa: PLC0415 - lazy

        recorder = Recorder(self._capture, self._gpus, subject, self._asked.interval_s)
        recorder.begin(self._facts())
        if self._output.quiet:
            recorder.record(ended, self._asked.duration_s)
        else:
            with LiveView(self._glance, self._verdict, color=self._output.color) as view:
                recorder.record(ended, self._asked.duration_s, view.draw)
        recorder.end()

    def _facts(self) -> dict[str, Any]:
        if self._gpus is None:
            return {}
        return {"interconnect": self._gpus.interconnect, "driver": self._gpus.driver}

    def _finish(self) -> None:
        """Write series and profile; what was measured stays in the capture until both are there."""
        if self._capture.problem is not None:
            self._output.say(
                f"{self._capture.lost} lines could not be written ({self._capture.problem}); the "
                "profile is of the others."
            )
        try:
            profile = self._write()
        except InputError as error:
            raise InputError([*error.problems, f"{self._where()}."]) from error
        self._capture.remove()
        for note in profile.provenance.notes:
            self._output.say(f"note: {note}")
        self._output.say(f"wrote {self._asked.target}; next: gpucost plan {self._asked.target}")

    def _where(self) -> str:
        path = self._capture.path
        return f"what was measured until then is in {path}: gpucost import {path}"

    def _write(self) -> "Profile":
        from gpucost.series_files import write_series  # noqa: PLC0415 - pandas
        from planner.profile.codec import dump  # noqa: PLC0415 - lazy
        from planner.telemetry import capture, jobs  # noqa: PLC0415 - pandas
        from planner.telemetry.payload import Stream  # noqa: PLC0415 - lazy

        with Stream(str(self._capture.path)) as stream:
            recording = capture.read(stream.load(), self._asked.hints)
        (profile,) = jobs.profiles([recording], self._asked.hints)
        profile = write_series(profile, recording, self._asked.target)
        write_file(str(self._asked.target), dump((profile,)))
        return profile

    def _glance(self) -> Glance:
        latest: Mapping[str, Mapping[str, Any]] = self._capture.latest
        gpus = self._gpus.identities if self._gpus is not None else ()
        labels = {
            g.key: f"GPU {g.index}" + (f" {g.partition}" if g.partition else "") for g in gpus
        }
        return Glance(
            gpus={label: latest[key] for key, label in labels.items() if key in latest},
            host=latest.get("", {}),
            step=self._events.recent_step() if self._events is not None else {},
            elapsed_s=time.monotonic() - self._begun_s,
        )

    def _verdict(self) -> str:
        """The first finding of the last minutes, through the same door as a finished capture."""
        from planner.diagnose import diagnose  # noqa: PLC0415 - lazy
        from planner.telemetry import capture, jobs  # noqa: PLC0415 - pandas
        from planner.telemetry.payload import Payload  # noqa: PLC0415 - lazy

        data = "\n".join(self._capture.recent()).encode()
        payload = Payload(name="so far", data=data, sha256="")
        try:
            recording = capture.read(payload, self._asked.hints)
            (profile,) = jobs.profiles([recording], self._asked.hints)
        except GpucostError:
            return "too little measured yet"
        first = diagnose(profile)[0]
        return f"{first.code}: {first.cause}"


class _Watched:
    """A process, or the machine, that is looked at until it ends or Ctrl-C."""

    def __init__(self, pid: int | None) -> None:
        import psutil  # noqa: PLC0415 - lazy

        self.interrupted = False
        try:
            self._process = None if pid is None else psutil.Process(pid)
        except psutil.Error as error:
            raise InputError(
                f"--pid {pid}: no such process; `ps` or `nvidia-smi` list them."
            ) from error

    def __enter__(self) -> Self:
        import signal  # noqa: PLC0415 - lazy

        self._signal = signal
        numbers = (signal.SIGINT, signal.SIGTERM)
        self._before = {number: signal.signal(number, self._stop) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            self._signal.signal(number, handler)

    def ended(self, timeout_s: float) -> bool:
        """Wait; return whether it ended."""
        until = time.monotonic() + max(0.0, timeout_s)
        while True:
            if self.interrupted or self._gone():
                return True
            left = until - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(left, 0.2))

    def _gone(self) -> bool:
        """Whether the process ended; one that only waits to be collected has."""
        import psutil  # noqa: PLC0415 - lazy

        try:
            return self._process is not None and self._process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    def _stop(self, *_: object) -> None:
        self.interrupted = True


def _subject(asked: Asked, pid: int | None, events: "EventTail | None") -> "Subject":
    from planner.telemetry.measure.recorder import Subject  # noqa: PLC0415 - lazy

    return Subject(job=_name(asked), pid=pid, events=events)


def _name(asked: Asked) -> str | None:
    """The script's name, else the program's; never an argument, which may be a secret."""
    script = next((w for w in asked.command if w.endswith((".py", ".sh"))), None)
    return Path(script or asked.command[0]).stem if asked.command else None


def _capture(target: Path) -> "CaptureFile":
    from planner.telemetry.measure.capture_file import CaptureFile  # noqa: PLC0415 - lazy

    try:
        return CaptureFile(target.with_name(f"{target.stem}.capture.jsonl"))
    except OSError as error:
        raise InputError(
            f"{target}: nothing can be written beside it: {error.strerror or error}."
        ) from error


def _environment(events: "EventTail") -> dict[str, str]:
    from planner.telemetry.probe import child_environment  # noqa: PLC0415 - lazy

    return child_environment(os.environ, events.folder)


def _wait(child: "Child") -> None:
    while not child.ended(3600.0):
        pass
