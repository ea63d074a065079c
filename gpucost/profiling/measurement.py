"""The front of a measurement: the command runs, signals are served, the sampler works beside.

Nothing heavy is imported here, for the command waits for it; and nothing that can hang is called.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucost.profiling.profile_target import reserve_name
from gpucost.profiling.sampling import END, SHOW, Outcome, Sampling, Task, next_step
from gpucost.views.output import Output
from pricing.errors import GpucostError, InputError
from telemetry.measure import command
from telemetry.measure.driver import driver_problem
from telemetry.probe import APPLY, RUN_EVENTS, callers_environment, child_environment, events_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from planner.documents.application import Application


AROUND_CHILD = 125
_ENDING = frozenset((signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM))
# Where no command runs: its end is asked for, or its stop; the sampler says something.
_SERVED = _ENDING | {signal.SIGTSTP, command.MESSAGE}
_HIDE_S = 1.0
_LOOK_S = 0.05


def measure(task: Task, output: Output, applied: Application | None = None) -> int:
    """Measure and write the profile; where a command ran, end as it ended.

    Args:
        task: what to measure.
        output: where it is told.
        applied: what is applied to the command; None where it runs as it is.

    Returns:
        The exit code, where no command was asked for or it ended with one.

    Raises:
        GpucostError: nothing could be measured; a command was not started.
        CommandError: the command cannot be started.
    """
    if not task.no_gpu and (problem := driver_problem()) is not None:
        last = "Without a GPU, --no-gpu measures the host and the steps alone."
        code = AROUND_CHILD if task.command else InputError.exit_code
        raise GpucostError([problem, last], code)
    reserved = reserve_name(task.target, task.job, os.environ, task.command)
    if reserved.reason:
        output.say(reserved.reason)
    try:
        task = replace(
            task,
            target=reserved.path,
            run_name=reserved.run_name,
            view=not output.quiet and os.isatty(sys.__stderr__.fileno() if sys.__stderr__ else -1),
            color=output.color,
        )
        return _around_command(task, output, applied) if task.command else _observe(task, output)
    finally:
        reserved.release()


def _around_command(task: Task, output: Output, applied: Application | None) -> int:
    folder = _folder(output)
    environ = _environment(task, applied, folder)
    relay = command.Relay(task.command)
    begun_s = time.monotonic()
    try:
        child = command.Child(task.command, environ, relay.mask)
    except command.CommandError:
        relay.cancel()
        if folder is not None:
            _remove(folder)
        raise
    relay.begun(child)
    try:
        command.let_go()
        task = replace(task, pid=child.pid, is_child=True, begun_s=begun_s, probe_folder=folder)
        front = _Front(task, output)
    except Exception as error:  # noqa: BLE001 - the job runs already, and needs us for its signals
        front = None
        Output.insist(f"gpucost: measuring failed ({error!r}); the job runs on without it.")
    while child.code is None:
        relay.serve(child)
        if front is not None:
            front.hear()
        if front is not None and child.stopped_by is not None:
            front.stop(child.stopped_by)
        child.stopped_by = None
    try:
        return child.code if front is None else front.finish(relay.after, child.code)
    finally:
        relay.close()
        if folder is not None and not (front is not None and front.left_capture):
            _remove(folder)


def _observe(task: Task, output: Output) -> int:
    """Measure what runs already, until it ends, the time is over, or Ctrl-C."""
    if task.pid is not None and not Path(f"/proc/{task.pid}").exists():
        raise InputError(f"--pid {task.pid}: no such process; `ps` or `nvidia-smi` list them.")
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SERVED)
    front = _Front(task, output)
    try:
        while not front.sampling.ended and not front.sampling.gone:
            got = command.take_signals(_SERVED, None)
            if got & _ENDING:
                break
            if signal.SIGTSTP in got:
                front.stop(signal.SIGTSTP)
            front.hear()
        return front.finish(lambda timeout_s: command.take_signals(_SERVED, timeout_s), None)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class _Front:
    """What the front does with what the sampler says.

    Attributes:
        sampling: the sampler.
    """

    def __init__(self, task: Task, output: Output) -> None:
        self.sampling = sampling = Sampling(task)
        self._task = task
        self._output = output
        self._told: Outcome | None = None
        # The kernel signals us when there is something to hear.
        fcntl.fcntl(sampling.handle, fcntl.F_SETOWN, os.getpid())
        flags = fcntl.fcntl(sampling.handle, fcntl.F_GETFL)
        fcntl.fcntl(sampling.handle, fcntl.F_SETFL, flags | os.O_ASYNC)
        self.hear()

    @property
    def left_capture(self) -> bool:
        """Whether no profile was written: who imports the capture reads the probe's folder, too."""
        outcome = self.sampling.outcome
        return outcome is not None and outcome.capture is not None

    def hear(self) -> None:
        """Take in what the sampler said, and pass on what is for people."""
        for sentence in self.sampling.hear():
            self._output.say(sentence)
        if self.sampling.outcome is not None and self._told is None:
            self._tell(self.sampling.outcome)

    def stop(self, number: int) -> None:
        """Stop with the command; the terminal is the shell's meanwhile."""
        self.sampling.hide(_HIDE_S)
        command.stop(number)
        self.sampling.tell(SHOW)

    def finish(self, signals: Callable[[float], Collection[int]], code: int | None) -> int:
        """End sampling, wait for the profile and return the exit code.

        Args:
            signals: waits so many seconds at most and returns what came; Ctrl-C ends the waiting.
            code: the command's; None where there is none.

        Raises:
            InputError: no profile could be written, and there was no command.
        """
        sampling, told_s = self.sampling, time.monotonic()
        if self._task.command:
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu_s = used.ru_utime + used.ru_stime
            sampling.tell({"moment_s": told_s, "cpu_s": cpu_s, "code": code})
        sampling.tell(END)
        while sampling.outcome is None and not sampling.gone:
            if not sampling.ended and sampling.stuck(time.monotonic() - told_s):
                break
            if _ENDING.intersection(signals(_LOOK_S)):
                sampling.outcome = sampling.lost("was told to end before the profile was written")
            self.hear()
        if sampling.outcome is None:
            self._clear_view()
            sampling.outcome = sampling.lost()
        self.hear()
        sampling.close()
        return self._exit_code(sampling.outcome, code)

    def _exit_code(self, outcome: Outcome, code: int | None) -> int:
        problems = [*outcome.problems]
        if outcome.capture is not None and problems:
            path = outcome.capture
            problems.append(f"what was measured is in {path}: gpucost import {path}")
        if code is None:
            if problems:
                raise InputError(problems)
            return 0
        for problem in problems:
            Output.insist(f"gpucost: {problem}")
        return code

    def _tell(self, outcome: Outcome) -> None:
        """Say what was found, and where it lies."""
        self._told = outcome
        if outcome.part is not None:
            self._output.say(outcome.part)
            return
        for note in outcome.notes:
            self._output.say(f"note: {note}")
        for change in outcome.changes:
            self._output.say(change)
        if outcome.target is None:
            return
        if outcome.finding:
            self._output.say(outcome.finding)
        target = self._task.target
        if target is None or target.absolute() != outcome.target:
            target = outcome.target
        self._output.say(f"wrote {target}; {next_step(str(target), no_gpu=self._task.no_gpu)}")

    def _clear_view(self) -> None:
        """Give back the lines of a view whose drawer is gone."""
        if self.sampling.drawn:
            with contextlib.suppress(OSError):
                os.write(2, b"\x1b7\x1b[r\x1b8\x1b[J")


def _folder(output: Output) -> str | None:
    try:
        return events_folder(os.environ)
    except OSError as error:
        why = error.strerror or error
        output.say(f"no folder for the steps can be made ({why}), so they are not measured.")
        return None


def _environment(task: Task, applied: Application | None, folder: str | None) -> dict[str, str]:
    """Return the command's environment: the caller's, and what recipe and probe need."""
    environ = callers_environment(os.environ, _read(Path("/proc/self/environ")))
    if applied is not None:
        environ |= applied.environment
    if folder is not None:
        environ |= child_environment(environ, Path(folder))
        if applied is not None:
            _hand_over(applied, Path(folder))
        elif task.trace_steps:
            _write_words(Path(folder) / APPLY, {"actions": {}, "trace": task.trace_steps})
    return environ


def _hand_over(applied: Application, folder: Path) -> None:
    """Tell the probe what to apply, and the profile what is settled already.

    Raises:
        GpucostError: nothing can be written, so nothing would be applied.
    """
    from msgspec.structs import asdict  # noqa: PLC0415 - lazy

    events: list[dict[str, Any]] = [{"event": "asked", "actions": list(applied.in_process)}]
    events += [{"event": "change", **asdict(change)} for change in applied.changes]
    _write_words(folder / RUN_EVENTS, *({"t_s": time.time(), **event} for event in events))
    if applied.in_process:
        orders = {"actions": dict(applied.in_process), "experiment": applied.experiment}
        _write_words(folder / APPLY, orders)


def _write_words(path: Path, *messages: Mapping[str, Any]) -> None:
    """Write what the probe, or the profile, is told.

    Raises:
        GpucostError: nothing can be written.
    """
    import json  # noqa: PLC0415 - where something is told

    try:
        path.write_text("".join(json.dumps(word) + "\n" for word in messages), encoding="utf-8")
    except OSError as error:
        _remove(str(path.parent))
        reason = error.strerror or error
        problem = f"{path}: the probe cannot be told what to do: {reason}."
        raise GpucostError(problem, AROUND_CHILD) from error


def _remove(folder: str) -> None:
    import shutil  # noqa: PLC0415 - only where no sampler does it

    shutil.rmtree(Path(folder).parent, ignore_errors=True)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
