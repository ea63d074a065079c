"""Runs the measured command: started, waited for and signalled, its outcome passed on unchanged."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Self

from pricing.errors import GpucostError

_NOT_FOUND, _NOT_RUNNABLE = 127, 126
_SIGNALLED = 128
_LOOK_S = 0.05
# What others send to a job; the terminal sends Ctrl-C to the child by itself.
_FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")


class CommandError(GpucostError):
    """The command could not be started; the exit code is the shell's for that."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


class Child:
    """The command as a process of ours; a context manager that passes signals on.

    Raises:
        CommandError: there is no such program, or it may not be run.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        try:
            self._process = subprocess.Popen(command, env=dict(environment))  # noqa: S603 - the user's command
        except FileNotFoundError as error:
            raise CommandError(f"{command[0]}: no such program.", _NOT_FOUND) from error
        except OSError as error:
            sentence = f"{command[0]}: cannot be run: {error.strerror}."
            raise CommandError(sentence, _NOT_RUNNABLE) from error
        self.pid = self._process.pid
        self._watch = _watch(self.pid)
        self._before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}
        self.interrupted = False

    def __enter__(self) -> Self:
        for name in _FORWARDED:
            number = getattr(signal, name, None)
            if number is not None:
                self._before[number] = signal.signal(number, self._pass_on)
        self._before[signal.SIGINT] = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._watch is not None:
            os.close(self._watch)

    def ended(self, timeout_s: float) -> bool:
        """Wait until the command ends, or the time is over; return whether it ended."""
        until = time.monotonic() + max(0.0, timeout_s)
        while self._process.poll() is None:
            left = until - time.monotonic()
            if left <= 0:
                return False
            if self._watch is not None:
                _readable(self._watch, left)
            else:
                time.sleep(min(_LOOK_S, left))
        return True

    @property
    def exit_code(self) -> int:
        """The command's own code; 128 + N where signal N ended it, as shells say it."""
        code = self._process.returncode
        return code if code >= 0 else _SIGNALLED - code

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        self._process.send_signal(number)

    def _interrupt(self, number: int, _: FrameType | None) -> None:
        self.interrupted = True
        if not _in_terminal():  # else the terminal has sent it to the whole group
            self._process.send_signal(number)


def _watch(pid: int) -> int | None:
    """A handle that becomes readable when the process ends; None where the system has none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _readable(handle: int, timeout_s: float) -> None:
    import select  # noqa: PLC0415 - not on every system

    select.select([handle], [], [], timeout_s)


def _in_terminal() -> bool:
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError, AttributeError):
        return False
