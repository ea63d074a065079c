"""The live view on a real terminal: the job's output above, ours below, nothing lost."""

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time
from collections.abc import Callable, Mapping
from itertools import dropwhile
from pathlib import Path

import pyte
import pytest

from tests.fake_nvml.machines import h100, machine
from tests.fake_nvml.scenario import Scenario
from tests.gpucost.profiling.test_profile import GPUCOST, STEPPING
from tests.waiting import CEILING_S

ROWS, COLUMNS = 24, 90
JOB = (
    "import subprocess, sys\n"
    f"p = subprocess.Popen([sys.executable, {STEPPING!r}, '60', '0.05'])\n"
    "import time\n"
    "for i in range(60): print('line', i, flush=True); time.sleep(0.05)\n"
    "p.wait()\n"
    "import os\n"
    "while not os.path.exists('seen'): time.sleep(0.05)\n"
)
VERDICT = "75% of it waiting"


class Terminal:
    """A command on a terminal of its own.

    Attributes:
        screen: what a person would see, with what scrolled away at the top.
        views: the last lines, each time that they changed.

    Args:
        command: its words.
        environment: its variables.
        awaited: once this stands on the screen, there is a file "seen" for the job.
    """

    def __init__(self, command: list[str], environment: Mapping[str, str], awaited: str) -> None:
        self.screen = pyte.HistoryScreen(COLUMNS, ROWS, history=10_000)
        self.views: list[list[str]] = []
        sized = {k: v for k, v in environment.items() if k not in ("COLUMNS", "LINES")}
        pid, handle = pty.fork()
        if pid == 0:  # sized before the command asks
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            os.execvpe(command[0], command, sized)  # noqa: S606 - our own command
        self._read(handle, awaited)
        self.code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(handle)

    @property
    def text(self) -> list[str]:
        """Every line, what scrolled away included."""
        gone = ["".join(line[i].data for i in range(COLUMNS)) for line in self.screen.history.top]
        return [line.rstrip() for line in (*gone, *self.screen.display)]

    def _read(self, handle: int, awaited: str) -> None:
        stream = pyte.ByteStream(self.screen)
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
            stream.feed(data)
            self.views.append([line.rstrip() for line in self.screen.display])
            if any(awaited in line for line in self.views[-1]):
                Path("seen").touch()


@pytest.fixture
def terminal(fake_nvml: Callable[[Scenario], dict[str, str]]) -> Terminal:
    """A stepping job on two GPUs, measured in a terminal."""
    environment = {**fake_nvml(Scenario(devices=machine(2, h100))), "TERM": "xterm-256color"}
    command = [GPUCOST, "profile", "--interval", "0.2s", "--", sys.executable, "-c", JOB]
    return Terminal(command, environment, VERDICT)


def test_the_view_lies_below_the_jobs_output(terminal: Terminal) -> None:
    """GPUs, step time and verdict stand in the last lines while the job prints above them."""
    assert terminal.code == 0
    last = "\n".join(line for view in terminal.views for line in view[-5:])
    assert "GPU 0" in last
    assert "GPU 1" in last
    assert "62%" in last
    assert "step 50.0 ms, 75% of it waiting for data" in last
    below = (
        [*dropwhile(lambda line: "gpucost profile," not in line, view)] for view in terminal.views
    )
    drawn = [view for view in below if view]
    assert drawn
    assert all("line " not in line for view in drawn[2:] for line in view)


def test_nothing_of_the_jobs_output_is_lost(terminal: Terminal) -> None:
    """Every line of the job is on the screen or above it, once and in order."""
    lines = [line for line in terminal.text if line.startswith("line ")]
    assert lines == [f"line {i}" for i in range(60)]


def test_a_screen_that_is_full_already_loses_nothing(
    fake_nvml: Callable[[Scenario], dict[str, str]],
) -> None:
    """Where the job has printed to the last line before we draw, its lines move up."""
    job = "import os, time\nfor i in range(40): print('line', i, flush=True)\n"
    job += "while not os.path.exists('seen'): time.sleep(0.05)\n"
    job += "for i in range(40, 44): print('line', i, flush=True)\n"
    environment = {**fake_nvml(Scenario(devices=machine(2, h100))), "TERM": "xterm-256color"}
    words = [GPUCOST, "profile", "--interval", "0.2s", "--", sys.executable, "-c", job]
    full = Terminal(words, environment, "gpucost profile,")
    assert any("gpucost profile," in line for view in full.views for line in view)
    lines = [line for line in full.text if line.startswith("line ")]
    assert lines == [f"line {i}" for i in range(44)]


def test_the_terminal_is_left_as_it_was(terminal: Terminal) -> None:
    """After the job the view is gone, and the whole screen scrolls again."""
    assert not any("so far:" in line for line in terminal.screen.display)
    assert terminal.screen.margins is None or terminal.screen.margins.bottom == ROWS - 1
