"""The sampler as seen from outside: started, told, heard; the sampling itself is in `sampler`.

It is a process of its own, so that nothing of a measurement (a driver that hangs, a full disk, a
failure of ours) can hold up who started it: `gpucost profile`, which serves signals and waits for
the job, or a program that measures itself. Both talk in lines of JSON over a pair of sockets; where
one end closes, the other side has gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from telemetry.measure.command import inherited

if TYPE_CHECKING:
    from collections.abc import Mapping

CHANNEL = 3  # the sampler's end
END, HIDE, SHOW = "end", "hide", "show"
_CHUNK = 1 << 16
_ACKNOWLEDGE_S = 0.7
_BUSY_S = 10.0
_STOPPED, _IN_KERNEL = "Tt", "D"
_HELD_S = 0.25  # longer than a read from a busy disk keeps a process in the kernel
# Modules are found as here, whatever stands in the caller's PYTHONPATH or folder.
_START = "import sys; sys.path[:] = {path!r}; from gpucost.profiling.sampler import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What to sample, and where to.

    Attributes:
        target: where the profile goes; capture and series lie beside it.
        interval_s: seconds between readings.
        duration_s: the longest time, None without a limit.
        job: its name.
        pid: the process at its top, None for the whole machine.
        is_child: whether `pid` is a child of who asks, who will tell its end; else it is watched.
        probe_folder: where the probe writes; it is removed in the end. None without a probe.
        gpus: the driver's indices, None for all.
        no_gpu: read no GPU.
        metadata: ask a cloud's metadata service which machine this is.
        metrics: the metrics pages of the servers that are measured.
        hints: fields of `hints.Hints`, for the profile.
        run_name: fields of `profile_target.OutputName`; None where no run of several is looked for.
        trace_steps: how many were to be traced; the outcome says where none were.
        view: draw the live view on standard error, where that is our terminal.
        color: whether it may use colours.
    """

    target: str
    interval_s: float = 1.0
    duration_s: float | None = None
    job: str | None = None
    pid: int | None = None
    is_child: bool = False
    probe_folder: str | None = None
    gpus: tuple[int, ...] | None = None
    no_gpu: bool = False
    metadata: bool = True
    metrics: tuple[str, ...] = ()
    hints: Mapping[str, Any] = field(default_factory=dict)
    run_name: Mapping[str, Any] | None = None
    trace_steps: int = 0
    view: bool = False
    color: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a measurement.

    Attributes:
        target: the profile; None where none was written.
        capture: where the readings lie; None once a profile holds them.
        notes: what a reader of the profile should know.
        changes: what `gpucost run` applied and left, or the table of a trace, in words.
        verdict: its first finding: `code`, `cause`, `confidence`, `waste_fraction`.
        problems: why there is no profile, or what else went wrong.
        part: what is said instead of a verdict where other parts of the run are still to come.
        cut_off: whether the sampler did not come to an end: it was killed, hangs, or was left.
    """

    target: str | None = None
    capture: str | None = None
    notes: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    verdict: Mapping[str, Any] | None = None
    problems: tuple[str, ...] = ()
    part: str | None = None
    cut_off: bool = False

    @property
    def finding(self) -> str | None:
        """The verdict in words, None without one."""
        if not self.verdict:
            return None
        share = self.verdict["waste_fraction"]
        wastes = "" if share is None else f", wastes {share:.0%}"
        sure = f"({self.verdict['confidence']}{wastes})"
        return f"{self.verdict['code']}: {self.verdict['cause']} {sure}"


class Sampling:
    """A sampler that was started; where it cannot be, `gone` is true and `lost` says why.

    Attributes:
        pid: its process.
        capture: where it writes the readings, once it has said so.
        ended: whether sampling is over, and the profile being written.
        outcome: what became of it, once that is known.
        gone: whether the process closed its end.
        drawn: lines at the bottom of the terminal that it keeps for its view.
    """

    def __init__(self, task: Task) -> None:
        self.pid: int | None = None
        self.capture: str | None = None
        self.ended = False
        self.outcome: Outcome | None = None
        self.gone = False
        self.drawn = 0
        self._draws = task.view
        self._hidden = True
        self._held_from_s = float("inf")
        self._begun = b""
        self._problem: str | None = None
        self._socket, far_end = socket.socketpair()
        self._socket.settimeout(0.0)
        with far_end:
            try:
                self.pid = _started(far_end.fileno(), errors=task.view)
            except OSError as error:
                reason = error.strerror or error
                self._problem = f"could not be started ({sys.executable}: {reason})"
                self.gone = True
        self.tell(asdict(task))

    @property
    def handle(self) -> int:
        """The descriptor that is readable when there is something to hear."""
        return self._socket.fileno()

    def tell(self, item: object) -> None:
        """Say something to it; nothing happens where it is gone."""
        with contextlib.suppress(OSError):
            self._socket.sendall(json.dumps(item).encode() + b"\n")

    def hear(self) -> list[str]:
        """Take in what it said; return the sentences that are for people."""
        sentences = []
        for item in self._items():
            if "said" in item:
                sentences.append(str(item["said"]))
            self.capture = item.get("capture", self.capture)
            self.ended = self.ended or "ended" in item
            self.drawn = item.get("drawn", self.drawn)
            self._hidden = self._hidden or "hidden" in item
            if "outcome" in item:
                self.outcome = Outcome(**item["outcome"])
        return sentences

    def wait(self, timeout_s: float) -> None:
        """Wait until there is something to hear."""
        with contextlib.suppress(OSError):
            select.select([self._socket], [], [], max(0.0, timeout_s))

    def hide(self, within_s: float) -> None:
        """Have the view taken away, and wait a little until it is.

        It may have been drawn just now, and that not yet said: so it is asked in any case.
        """
        if not self._draws:
            return
        self._hidden = False
        self.tell(HIDE)
        until_s = time.monotonic() + within_s
        while not (self._hidden or self.gone) and (left_s := until_s - time.monotonic()) > 0:
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
        self._socket.close()
        if self.pid is not None:
            with contextlib.suppress(OSError):
                if self.outcome is None or self.outcome.cut_off:
                    os.killpg(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, os.WNOHANG)

    def _items(self) -> list[dict[str, Any]]:
        while not self.gone:
            try:
                data = self._socket.recv(_CHUNK)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            self.gone = not data
            self._begun += data
        *lines, self._begun = self._begun.split(b"\n")
        return [json.loads(line) for line in lines]


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
