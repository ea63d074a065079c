"""The sampler's process: reads devices, host and events until the job ends, then has it written.

It ends with who started it: where that process is killed, what was measured stays a capture.

It draws the live view, too: the last lines of the terminal, below the job's own output, which
scrolls in the lines above, as a scroll region keeps the two apart. Each drawing is one write that
saves and restores the cursor.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gpucost.profiling.sampling import CHANNEL, END, HIDE, SHOW, Outcome, Task
from pricing.listing import counted
from telemetry.measure.capture_events import EventTail
from telemetry.measure.capture_file import CaptureFile
from telemetry.measure.command import ALL
from telemetry.measure.host import JobEnd
from telemetry.measure.recorder import GpuThread, Recorder, Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def main() -> None:
    """Do one task, which comes over the channel."""
    # Signals are for who started us, and for the job.
    signal.pthread_sigmask(signal.SIG_BLOCK, ALL)
    channel = _Channel(Connection(CHANNEL))
    task = channel.task()
    try:
        outcome = _Sampler(task, channel).run()
    except OSError as error:  # the system's limits are not our fault
        outcome = Outcome(problems=(f"measuring failed: {error.strerror or error}.",))
    except Exception as error:  # noqa: BLE001 - said by who started us
        outcome = Outcome(problems=(f"measuring failed, a bug: {error!r}.",))
    if outcome is not None:
        channel.say("outcome", outcome)
    os._exit(0)  # a driver's call that hangs in a thread would hold us


class _Channel:
    """The sampler's end of the connection.

    Attributes:
        abandoned: whether the other end has gone.
        words: what it told us.
        job_end: how the job ended, once that is known.
    """

    def __init__(self, end: Connection) -> None:
        self._end = end
        self.abandoned = False
        self.words: set[str] = set()
        self.job_end: JobEnd | None = None

    def task(self) -> Task:
        """Wait for the task."""
        try:
            task: Task = self._end.recv()
        except (OSError, EOFError):
            os._exit(0)
        return task

    def say(self, name: str, value: object) -> None:
        """Say something to who started us."""
        try:
            self._end.send((name, value))
        except OSError:
            self.abandoned = True

    def listen(self, timeout_s: float, *more: int) -> bool:
        """Wait for a word, for another descriptor, or for the time; return whether one is ready."""
        ready = wait([self._end, *more], max(0.0, timeout_s))
        try:
            while self._end.poll():
                item = self._end.recv()
                if isinstance(item, str):
                    self.words.add(item)
                else:
                    self.job_end = JobEnd(**item)
        except (OSError, EOFError):
            self.abandoned = True
        return any(handle in ready for handle in more)


class _Sampler:
    """The parts of one measurement."""

    def __init__(self, task: Task, channel: _Channel) -> None:
        self._task = task
        self._channel = channel
        self._begun_s = time.monotonic()
        self._watched = None if task.is_child or task.pid is None else _watch(task.pid)
        self._events = None if task.probe_folder is None else EventTail(Path(task.probe_folder))
        self._gpus = None if task.no_gpu else GpuThread(task.gpus)
        self._view: _LiveView | None = None
        self._drawn = 0
        self._judging: threading.Thread | None = None
        self._finding = "…"

    def run(self) -> Outcome | None:
        """Sample until the end, and write the profile; None where nobody waits for it."""
        # Who starts us has settled the name.
        target = self._target = (self._task.target or Path("profile.json")).absolute()
        try:
            target, self._capture = self._opened(target)
        except OSError as error:
            reason = error.strerror or error
            problem = f"{target}: nothing can be written there, nor in /tmp: {reason}."
            return Outcome(problems=(problem,))
        self._channel.say("capture", self._capture.path)
        self._record()
        self._channel.say("ended", value=True)
        if self._task.probe_folder is not None:
            shutil.rmtree(Path(self._task.probe_folder).parent, ignore_errors=True)
        return None if self._channel.abandoned else self._finish(target)

    def _opened(self, target: Path) -> tuple[Path, CaptureFile]:
        """Return where the profile goes, and the capture beside it.

        Where nothing can be written, that is a folder of its own for temporary files: a job that
        runs for hours is not measured in vain.
        """
        capture = f"{target.stem}.capture.jsonl"
        try:
            return target, CaptureFile(target.with_name(capture))
        except OSError as error:
            fallback = Path(tempfile.mkdtemp(prefix="gpucost-")) / target.name
            opened = CaptureFile(fallback.with_name(capture))
            reason = error.strerror or error
            self._channel.say(
                "said",
                f"{target.parent}: cannot be written to ({reason}); the profile goes to "
                f"{fallback}.",
            )
            return fallback, opened

    def _record(self) -> None:
        serving = None
        if self._task.metrics:
            from telemetry.measure.serving_thread import ServingThread  # noqa: PLC0415 - HTTP

            serving = ServingThread(self._task.metrics, self._task.interval_s)
        subject = Subject(
            job=self._task.job,
            pid=self._task.pid,
            events=self._events,
            chosen=self._task.gpus is not None,
            metadata=self._task.metadata,
            serving=serving,
            begun_s=self._task.begun_s,
        )
        recorder = Recorder(self._capture, self._gpus, subject, self._task.interval_s)
        recorder.begin()
        threading.Thread(target=_load_writer, daemon=True).start()
        if self._task.view:
            parent = os.getppid()
            self._view = _LiveView(
                self._snapshot, self._verdict, lambda: in_foreground(parent), color=self._task.color
            )
        try:
            recorder.record(self._ended, self._task.duration_s, self._draw)
        finally:
            if self._view is not None:
                self._view.hide()
                self._channel.say("drawn", 0)
        recorder.end(self._channel.job_end)

    def _finish(self, target: Path) -> Outcome:
        task = self._task
        if target != self._target:  # elsewhere, where no other part of the run writes
            task = replace(task, run_name=None)
        capture = self._capture.path
        try:
            from gpucost.profiling import profile_writer  # noqa: PLC0415 - `_load_writer` did

            outcome = profile_writer.written(capture, target, task)
        except Exception as error:  # noqa: BLE001 - said by who asked; the capture is there
            problem = f"writing the profile failed, a bug: {error!r}."
            outcome = Outcome(capture=capture, problems=(problem,))
        if self._capture.problem is not None:
            lost = counted(self._capture.lost, "line")
            sentence = (
                f"{lost} could not be written ({self._capture.problem}); "
                "the profile is of the others."
            )
            self._channel.say("said", sentence)
        return outcome

    def _ended(self, timeout_s: float) -> bool:
        """Wait; return whether the job has ended, or who started us has."""
        until_s = time.monotonic() + timeout_s
        handles = () if self._watched is None else (self._watched,)
        while True:
            over = self._channel.listen(until_s - time.monotonic(), *handles)
            self._follow()
            if over or self._channel.abandoned or END in self._channel.words:
                return True
            if time.monotonic() >= until_s:
                return False

    def _follow(self) -> None:
        """Show or hide the view as we are told."""
        messages = self._channel.words
        if HIDE in messages:
            if self._view is not None:
                self._view.hide()
            self._channel.say("hidden", value=True)
        if self._view is not None and SHOW in messages:
            self._view.show()
        messages -= {HIDE, SHOW}

    def _draw(self) -> None:
        if self._view is not None and (drawn := self._view.draw()) != self._drawn:
            self._drawn = drawn
            self._channel.say("drawn", drawn)

    def _snapshot(self) -> _LiveSnapshot:
        latest = self._capture.latest
        gpus = self._gpus.identities if self._gpus is not None else ()
        labels = {
            g.key: f"GPU {g.index}" + (f" {g.partition}" if g.partition else "") for g in gpus
        }
        return _LiveSnapshot(
            gpus={label: latest[key] for key, label in labels.items() if key in latest},
            host=latest.get("", {}),
            step=self._events.recent_step() if self._events is not None else {},
            elapsed_s=time.monotonic() - self._begun_s,
        )

    def _verdict(self) -> str:
        """Return the first finding of the last minutes; what was asked the time before."""
        if self._judging is None or not self._judging.is_alive():
            lines = self._capture.recent()
            self._judging = threading.Thread(target=self._judge, args=(lines,), daemon=True)
            self._judging.start()
        return self._finding

    def _judge(self, lines: list[str]) -> None:
        from gpucost.profiling import profile_writer  # noqa: PLC0415 - `_load_writer` did

        self._finding = profile_writer.finding_so_far(lines, self._task.hints)


# Behind the job, but ready in time where every core is busy: it is half a second of work, once.
_NICE = 5


def _load_writer() -> None:
    """Load what a profile needs; the job goes first, wherever a core is asked for by both."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # else numpy starts one a core, and each spins a while
    import gpucost.profiling.profile_writer  # noqa: F401, PLC0415 - pandas, DuckDB


def _watch(pid: int) -> int | None:
    """Return a handle that becomes readable when the process ends; None where it has ended."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


_MOST_GPUS = 8
_LEAST_ABOVE = 8
_REDRAW_S = 0.5
_VERDICT_S = 10.0
_BAR_WIDTH = 20
_GIB_SLOT, _BUSY_SLOT, _POWER_SLOT = "mem.used_gib", "util.kernel_time", "power.board_w"


@dataclass(frozen=True, slots=True, kw_only=True)
class _LiveSnapshot:
    """What the view shows.

    Attributes:
        gpus: readings of each device by its label, slots in slot units.
        host: readings of the host, as `model.Host` names them.
        step: mean seconds of the last steps: `step_s`, `data_wait_s`; empty where none are seen.
        elapsed_s: since the measurement began.
    """

    gpus: Mapping[str, Mapping[str, float]]
    host: Mapping[str, float]
    step: Mapping[str, float]
    elapsed_s: float


class _LiveView:
    """Draws a snapshot now and then, on standard error.

    Args:
        snapshot: returns what to show.
        verdict: returns the finding so far, in a few words; asked every ten seconds.
        terminal: returns whether we may draw now: whether the job is in the foreground.
        color: whether colours may be used.
    """

    def __init__(
        self,
        snapshot: Callable[[], _LiveSnapshot],
        verdict: Callable[[], str],
        terminal: Callable[[], bool],
        *,
        color: bool,
    ) -> None:
        self._snapshot = snapshot
        self._verdict = verdict
        self._terminal = terminal
        self._color = color
        self._height = 0
        self._size = os.terminal_size((0, 0))
        self._drawn_s = self._judged_s = float("-inf")
        self._words = "…"
        self._hidden = False

    def hide(self) -> None:
        """Take the view away, and give the lines back, until it is shown again."""
        self._hidden = True
        self._clear()

    def show(self) -> None:
        """Draw again."""
        self._hidden = False

    def draw(self) -> int:
        """Draw, unless that was done just now; return the lines that are ours now."""
        now = time.monotonic()
        if self._hidden or now - self._drawn_s < _REDRAW_S:
            return self._height
        self._drawn_s = now
        if not self._terminal():
            self._height = 0  # the lines are the shell's again, and so is their clearing
            return 0
        snapshot = self._snapshot()
        if now - self._judged_s >= _VERDICT_S and snapshot.elapsed_s >= _VERDICT_S / 2:
            self._judged_s, self._words = now, self._verdict()
        lines = self._lines(snapshot)
        if self._reserve(len(lines)):
            top = self._size.lines - self._height + 1
            drawn = "".join(f"\x1b[{top + i};1H\x1b[2K{line}" for i, line in enumerate(lines))
            _write(f"\x1b7{drawn}\x1b8")
        return self._height

    def _clear(self) -> None:
        if self._height:
            top = self._size.lines - self._height + 1
            clear = "".join(f"\x1b[{top + i};1H\x1b[2K" for i in range(self._height))
            _write(f"\x1b7\x1b[r{clear}\x1b8")
        self._height, self._size = 0, os.terminal_size((0, 0))

    def _reserve(self, height: int) -> bool:
        """Keep the last lines of the terminal for us; False where it is too small."""
        try:
            size = os.get_terminal_size(sys.stderr.fileno())
        except OSError:
            return False
        if size.lines < height + _LEAST_ABOVE:
            return False
        if (size, height) != (self._size, self._height):
            more = max(0, height - self._height)
            back = f"\x1b[{more}A" if more else ""
            room = "\n" * more
            # Back up first: some terminals keep a restored cursor inside the region.
            _write(f"{room}{back}\x1b7\x1b[1;{size.lines - height}r\x1b8")
            self._size, self._height = size, height
        return True

    def _lines(self, snapshot: _LiveSnapshot) -> list[str]:
        from rich.console import Console  # noqa: PLC0415 - only where a view is drawn
        from rich.progress_bar import ProgressBar  # noqa: PLC0415 - the same
        from rich.table import Table  # noqa: PLC0415 - the same

        text = io.StringIO()
        try:
            width = os.get_terminal_size(sys.stderr.fileno()).columns
        except OSError:
            return []
        system: Literal["standard"] | None = "standard" if self._color else None
        console = Console(
            file=text, force_terminal=True, width=width, color_system=system, highlight=False
        )
        console.rule(f"gpucost profile, {snapshot.elapsed_s:.0f} s", style="dim", align="left")
        grid = Table.grid(padding=(0, 2))
        for name, readings in list(snapshot.gpus.items())[:_MOST_GPUS]:
            busy = readings.get(_BUSY_SLOT)
            bar = ProgressBar(total=1.0, completed=busy or 0.0, width=_BAR_WIDTH)
            grid.add_row(name, bar, *_cells(readings))
        if snapshot.gpus:
            console.print(grid)
        if len(snapshot.gpus) > _MOST_GPUS:
            console.print(f"and {len(snapshot.gpus) - _MOST_GPUS} more GPUs")
        console.print(_summary(snapshot), markup=False, overflow="ellipsis", no_wrap=True)
        console.print(f"so far: {self._words}", markup=False, overflow="ellipsis", no_wrap=True)
        return text.getvalue().splitlines()


def _cells(readings: Mapping[str, float]) -> tuple[str, str, str]:
    busy, memory, power = (readings.get(s) for s in (_BUSY_SLOT, _GIB_SLOT, _POWER_SLOT))
    return (
        "busy ?" if busy is None else f"busy {busy:4.0%}",
        "" if memory is None else f"{memory:5.1f} GiB",
        "" if power is None else f"{power:4.0f} W",
    )


def _summary(snapshot: _LiveSnapshot) -> str:
    cpu, ram = snapshot.host.get("cpu_util"), snapshot.host.get("ram_used_gib")
    parts = [] if cpu is None else [f"CPU {cpu:.0%}"]
    parts += [] if ram is None else [f"RAM {ram:.1f} GiB"]
    step_s = snapshot.step.get("step_s")
    if step_s:
        waiting = snapshot.step.get("data_wait_s", 0.0) / step_s
        parts.append(f"step {step_s * 1000:.1f} ms, {waiting:.0%} of it waiting for data")
    else:
        parts.append("no step seen yet")
    return "   ".join(parts)


def _write(text: str) -> None:
    try:
        os.write(sys.stderr.fileno(), text.encode())
    except OSError:
        return  # the terminal has gone; the measurement goes on


def in_foreground(pid: int) -> bool:
    """Return whether a process may draw on our standard error: its terminal, and its turn.

    The terminal's own calls answer only to processes of its session, which we need not be.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        device = os.fstat(sys.stderr.fileno()).st_rdev
    except OSError:
        return False
    group, _, terminal, foreground = stat.rpartition(")")[2].split()[2:6]
    major, minor = os.major(device), os.minor(device)
    number = (minor & 0xFF) | (major << 8) | ((minor & ~0xFF) << 12)  # as /proc writes it
    return int(terminal) == number and group == foreground
