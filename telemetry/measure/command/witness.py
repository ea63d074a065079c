"""Tells a signal that was sent to this process alone from one that the command got, too.

A terminal, `timeout`, a shell's `kill %1` and a service manager send a signal to a whole group of
processes; `kill PID` sends it to one. Both look the same to the one who gets it. So a witness
stands beside us: a process of our group that does nothing, blocks every signal, and so keeps each
one that reached it where `/proc` shows it. What the witness has, the command has got itself.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ALL = frozenset(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}
_COMM_BYTES = 15
_NOBODY = -1
_ARGUMENTS = slice(45, 47)  # begin and end in memory: of /proc/PID/stat, counted after the name
_PENDING = (b"SigPnd:", b"ShdPnd:")


class Witness:
    """A process beside us that keeps the signals it got.

    It ends when we do, however we end. It bears the command's name, so that `pkill NAME` reaches it
    just when it reaches the command.

    Args:
        command: the program and its arguments.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self._end, self._hold = os.pipe()
        self.pid = self._forked()

    def seen(self) -> frozenset[int]:
        """Return the signals that reached it since it was renewed; none where it is gone."""
        try:
            with open(f"/proc/{self.pid}/status", "rb") as stream:  # noqa: PTH123 - quick
                lines = stream.read().splitlines()
        except OSError:
            return frozenset()
        masks = [int(line.split()[1], 16) for line in lines if line.startswith(_PENDING)]
        return frozenset(n for n in ALL if any(mask >> (n - 1) & 1 for mask in masks))

    def renew(self) -> None:
        """Start again, with nothing seen."""
        before, self.pid = self.pid, self._forked()
        _end(before)

    def close(self) -> None:
        """End it."""
        _end(self.pid)

    def _forked(self) -> int:
        try:
            pid = os.fork()
        except OSError:
            return _NOBODY  # no process may be added: every signal is passed on then
        if pid:
            return pid
        try:
            os.close(self._hold)
            let_go(errors=True)
            _take_name(self._command)
            os.read(self._end, 1)  # until we are gone
        finally:
            os._exit(0)


def _end(pid: int) -> None:
    if pid != _NOBODY:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def let_go(*, errors: bool = False) -> None:
    """Let go of what the caller handed to the command: who waits for its end, waits for it alone.

    Args:
        errors: let go of standard error, too.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2) if errors else (0, 1):
        with contextlib.suppress(OSError):
            os.fstat(number)  # what was closed stays closed
            os.dup2(nothing, number)
    os.close(nothing)
    for number in inherited():
        os.close(number)


def inherited() -> list[int]:
    """Return the open descriptors above 2 that a program started now would get."""
    found = []
    for word in os.listdir("/proc/self/fd"):  # noqa: PTH208 - numbers, no paths
        with contextlib.suppress(OSError):  # the listing's own
            if int(word) > 2 and os.get_inheritable(int(word)):  # noqa: PLR2004 - standard error
                found.append(int(word))
    return found


def _take_name(command: tuple[str, ...]) -> None:
    """Look like the command in lists of processes; where that cannot be, we look like ourselves."""
    words = [os.fsencode(word) for word in command]
    with contextlib.suppress(OSError, ValueError, IndexError):
        Path("/proc/self/comm").write_bytes(os.path.basename(words[0])[:_COMM_BYTES])  # noqa: PTH119 - bytes
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        start, end = (int(field) for field in fields[_ARGUMENTS])
        text = b"\0".join(words)[: end - start - 1]
        with open("/proc/self/mem", "r+b", buffering=0) as memory:  # noqa: PTH123 - no path to speak of
            memory.seek(start)
            memory.write(text.ljust(end - start, b"\0"))
