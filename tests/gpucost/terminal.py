"""A command on a terminal of its own, and what a person would see there."""

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pyte

from gpucost.entry import main
from tests.waiting import CEILING_S

ROWS, COLUMNS = 24, 90
HERE = "gpucost"
_UNFOLDED = 1000  # columns in which nothing that we print is folded


class Terminal:
    """A command on a terminal of its own.

    Attributes:
        screen: what a person would see, with what scrolled away at the top.
        sent: the lines as the command sent them, none folded.
        views: the last lines, each time that they changed.

    Args:
        command: its words. Those that begin with HERE run in a fork of this process, where all is
            imported already: the same command line, for a fifth of the time.
        environment: its variables.
        awaited: once this stands on the screen, there is a file "seen" for the job.
        size: columns and lines.
    """

    def __init__(
        self,
        command: list[str],
        environment: Mapping[str, str],
        awaited: str = "",
        size: tuple[int, int] = (COLUMNS, ROWS),
    ) -> None:
        columns, rows = size
        self.screen = pyte.HistoryScreen(columns, rows, history=10_000)
        self.views: list[list[str]] = []
        self._unfolded = pyte.HistoryScreen(_UNFOLDED, rows, history=10_000)
        sized = {k: v for k, v in environment.items() if k not in ("COLUMNS", "LINES")}
        pid, handle = pty.fork()
        if pid == 0:  # sized before the command asks
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            if command[0] == HERE:
                _run_here(command, sized)
            os.execvpe(command[0], command, sized)  # noqa: S606 - our own command
        self._read(handle, awaited)
        self.code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(handle)
        self.sent = _lines(self._unfolded)

    @property
    def text(self) -> list[str]:
        """Every line, what scrolled away included."""
        return _lines(self.screen)

    @property
    def printed(self) -> list[str]:
        """Every line above the prompt's, what scrolled away included."""
        lines = self.text
        return lines[: len(lines) - self.screen.lines + self.screen.cursor.y]

    def _read(self, handle: int, awaited: str) -> None:
        streams = (pyte.ByteStream(self.screen), pyte.ByteStream(self._unfolded))
        ends_at = time.monotonic() + CEILING_S
        while time.monotonic() < ends_at:
            if not select.select([handle], [], [], 0.5)[0]:
                continue
            try:
                data = os.read(handle, 65_536)
            except OSError:
                return
            if not data:
                return
            for stream in streams:
                stream.feed(data)
            self.views.append([line.rstrip() for line in self.screen.display])
            if awaited and any(awaited in line for line in self.views[-1]):
                Path("seen").touch()


def _run_here(command: list[str], environment: Mapping[str, str]) -> NoReturn:
    """Run `gpucost` on the terminal of this fork, and end the fork with its exit code."""
    code = 1
    try:
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = command
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode) for n, mode in enumerate("rww"))
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        sys.stdout.flush()
    finally:
        os._exit(code)


def _lines(screen: pyte.HistoryScreen) -> list[str]:
    """Return every line of a screen, what scrolled away included."""
    columns = range(screen.columns)
    gone = ["".join(line[at].data for at in columns) for line in screen.history.top]
    return [line.rstrip() for line in (*gone, *screen.display)]
