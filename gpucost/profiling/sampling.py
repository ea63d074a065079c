"""The sampler as seen from outside: started, told, heard; the sampling itself is in `sampler`.

It is a process of its own, so that nothing of a measurement (a driver that hangs, a full disk, a
failure of ours) can hold up who started it: `gpucost profile`, which serves signals and waits for
the job, or a program that measures itself. Where one end of the connection between them closes, the
other side has gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import TYPE_CHECKING

from pricing.errors import InputError
from pricing.listing import as_typed
from telemetry.measure.command import inherited
from telemetry.readers.hints import Hints

if TYPE_CHECKING:
    from gpucost.profiling.profile_target import OutputName

CHANNEL = 3  # the sampler's end
END, HIDE, SHOW = "end", "hide", "show"
_ACKNOWLEDGE_S = 0.7
_BUSY_S = 10.0
_STOPPED, _IN_KERNEL = "Tt", "D"
_HELD_S = 0.25  # longer than a read from a busy disk keeps a process in the kernel
# Modules are found as here, whatever stands in the caller's PYTHONPATH or folder.
_START = "import sys; sys.path[:] = {path!r}; from gpucost.profiling.sampler import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What to measure, and where to.

    Attributes:
        command: the command that is run, empty where none is.
        pid: the process at the job's top, None for the whole machine.
        is_child: whether `pid` is a child of who asks, who will tell its end; else it is watched.
        begun_s: when who asks started it, by `time.monotonic`; None: it ran before.
        target: where the profile goes, capture and series beside it; None for `profile.json`, or
            a name beside another's.
        interval_s: seconds between readings.
        duration_s: the longest time, None until the command ends or Ctrl-C.
        gpus: the driver's indices, None for all that the job may use.
        no_gpu: measure the host and the steps alone.
        metadata: whether a cloud's metadata service may be asked which machine this is.
        metrics: the metrics pages of servers, to be read meanwhile.
        hints: what the measurement cannot see.
        probe_folder: where the probe writes; it is removed in the end. None without a probe.
        run_name: where the profile of the whole run goes, if this is a part of one.
        trace_steps: how many to run under the framework's own profiler, 0 for none.
        view: draw the live view on standard error, where that is our terminal.
        color: whether it may use colours.
    """

    command: tuple[str, ...] = ()
    pid: int | None = None
    is_child: bool = False
    begun_s: float | None = None
    target: Path | None = None
    interval_s: float = 1.0
    duration_s: float | None = None
    gpus: tuple[int, ...] | None = None
    no_gpu: bool = False
    metadata: bool = True
    metrics: tuple[str, ...] = ()
    hints: Hints = field(default_factory=Hints)
    probe_folder: str | None = None
    run_name: OutputName | None = None
    trace_steps: int = 0
    view: bool = False
    color: bool = False

    @property
    def job(self) -> str | None:
        """The job's name, as far as it is known before: the script's, else the program's.

        Never an argument, which may be a secret.
        """
        if self.hints.name:
            return self.hints.name
        script = next((word for word in self.command if word.endswith((".py", ".sh"))), None)
        return Path(script or self.command[0]).stem if self.command else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a measurement.

    Attributes:
        target: the profile; None where none was written.
        capture: where the readings lie; None once a profile holds them.
        notes: what a reader of the profile should know.
        changes: what `gpucost run` applied and left, or the table of a trace, in words.
        finding: its first finding in words, None without one.
        problems: why there is no profile, or what else went wrong.
        part: what is said instead of a finding where other parts of the run are still to come.
        cut_off: whether the sampler did not come to an end: it was killed, hangs, or was left.
    """

    target: Path | None = None
    capture: Path | None = None
    notes: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    finding: str | None = None
    problems: tuple[str, ...] = ()
    part: str | None = None
    cut_off: bool = False


class Sampling:
    """A sampler that was started; where it cannot be, `gone` is true and `lost` says why.

    Attributes:
        pid: its process.
        capture: where it writes the readings, once it has said so.
        ended: whether sampling is over, and the profile being written.
        outcome: what became of it, once that is known.
        gone: whether the process closed its end.
        drawn: lines at the bottom of the terminal that it keeps for its view.
        hidden: whether the view is away.
    """

    def __init__(self, task: Task) -> None:
        self.pid: int | None = None
        self.capture: Path | None = None
        self.ended = self.gone = False
        self.outcome: Outcome | None = None
        self.drawn = 0
        self.hidden = True
        self._draws = task.view
        self._held_from_s = float("inf")
        self._problem: str | None = None
        self._channel, far_end = Pipe()
        with far_end:
            try:
                self.pid = _started(far_end.fileno(), errors=task.view)
            except OSError as error:
                reason = error.strerror or error
                self._problem = f"could not be started ({sys.executable}: {reason})"
                self.gone = True
        self.tell(task)

    @property
    def handle(self) -> int:
        """The descriptor that is readable when there is something to hear."""
        return self._channel.fileno()

    def tell(self, item: object) -> None:
        """Say something to it; nothing happens where it is gone."""
        with contextlib.suppress(OSError):
            self._channel.send(item)

    def hear(self) -> list[str]:
        """Take in what it said; return the sentences that are for people."""
        sentences = []
        while not self.gone and self._channel.poll():
            try:
                name, value = self._channel.recv()
            except (OSError, EOFError):
                self.gone = True
                break
            if name == "said":
                sentences.append(str(value))
            else:
                setattr(self, name, value)
        return sentences

    def wait(self, timeout_s: float) -> None:
        """Wait until there is something to hear."""
        with contextlib.suppress(OSError):
            self._channel.poll(max(0.0, timeout_s))

    def hide(self, within_s: float) -> None:
        """Have the view taken away, and wait a little until it is.

        It may have been drawn just now, and that not yet said: so it is asked in any case.
        """
        if not self._draws:
            return
        self.hidden = False
        self.tell(HIDE)
        until_s = time.monotonic() + within_s
        while not (self.hidden or self.gone) and (left_s := until_s - time.monotonic()) > 0:
            self.wait(left_s)
            self.hear()

    def stuck(self, since_s: float) -> bool:
        """Return whether it will not answer any more, asked that many seconds ago."""
        if self.gone or since_s < _ACKNOWLEDGE_S:
            return self.gone
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            return True
        now = state.rpartition(")")[2].split()[0]
        self._held_from_s = min(self._held_from_s, since_s) if now in _IN_KERNEL else since_s
        is_held = since_s - self._held_from_s > _HELD_S
        return now in _STOPPED or is_held or since_s > _BUSY_S

    def finish(self) -> Outcome:
        """End sampling and wait for the profile: for who has nothing else to wait for.

        Returns:
            What became of it; with `problems`, and with the capture, where the sampler does not
            answer.
        """
        self.tell(END)
        told_s = time.monotonic()
        while self.outcome is None:
            self.hear()
            if not self.ended and self.stuck(time.monotonic() - told_s):
                break
            if self.gone:
                break
            self.wait(0.05 if not self.ended else 1.0)
        return self.outcome or self.lost()

    def lost(self, how: str | None = None) -> Outcome:
        """Return what there is to say where it did not come to an end."""
        silent = "ended unexpectedly" if self.gone else "does not answer"
        how = how or self._problem or silent
        problem = f"the sampler {how}, so there is no profile."
        return Outcome(capture=self.capture, problems=(problem,), cut_off=True)

    def close(self) -> None:
        """Let go of it, and collect it where it has ended; one that was given up is killed."""
        self._channel.close()
        if self.pid is not None:
            with contextlib.suppress(OSError):
                if self.outcome is None or self.outcome.cut_off:
                    os.killpg(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, os.WNOHANG)


def _started(channel: int, *, errors: bool) -> int:
    """Start the process: in a session of its own, with nothing of ours but the channel.

    Args:
        channel: its end of the sockets.
        errors: whether it keeps our standard error, to draw on.
    """
    actions = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1)]
    if not errors:
        actions.append((os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_RDWR, 0))
    closed = [(os.POSIX_SPAWN_CLOSE, number) for number in inherited() if number != CHANNEL]
    spare = fcntl.fcntl(channel, fcntl.F_DUPFD_CLOEXEC, CHANNEL + 1)
    try:
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-IB", "-c", _START.format(path=sys.path)],
            os.environ,
            file_actions=[*actions, *closed, (os.POSIX_SPAWN_DUP2, spare, CHANNEL)],
            setsid=True,
        )
    finally:
        os.close(spare)


def gpu_indices(text: str | None) -> tuple[int, ...] | None:
    """Return the GPUs that are the job's, as asked; None has them found.

    Raises:
        InputError: the text is not a list of indices.
    """
    if text is None:
        return None
    names = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() for word in names):
        raise InputError(f"--gpu-index {text}: give the driver's indices, such as 0,1.")
    return tuple(dict.fromkeys(int(word) for word in names))


def next_step(file: str, *, no_gpu: bool) -> str:
    """Return what to type next with a profile; without a GPU in it no plan can follow."""
    file = as_typed(file)
    if no_gpu:
        return (
            f"next: gpucost diagnose {file}. Dollars need the GPU: measure where it is, or say "
            f"what it is to run on: gpucost plan {file} --machine PROVIDER/TYPE"
        )
    return f"next: gpucost plan {file}"
