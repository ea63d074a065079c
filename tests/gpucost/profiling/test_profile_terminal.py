"""`gpucost profile` in a shell: Ctrl-C, Ctrl-Z, the background, a reader that left."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.gpucost.profiling.test_profile import FAST, GPUCOST, PATIENCE_S
from tests.waiting import until

PROFILE = " ".join((GPUCOST, "profile", *FAST))
STATE = re.compile(r"\) (\S) ")


class Shell:
    """bash at a terminal, as a person has it.

    Attributes:
        pid: its process.
        seen: all that has appeared.
    """

    def __init__(self, *words: str) -> None:
        self.pid, self._handle = pty.fork()
        if self.pid == 0:
            environ = {**os.environ, "PS1": "READY> ", "TERM": "xterm"}
            os.execvpe("bash", ["bash", "--norc", *words], environ)  # noqa: S606 - ours
        size = struct.pack("HHHH", 30, 100, 0, 0)
        fcntl.ioctl(self._handle, termios.TIOCSWINSZ, size)
        self.seen = self._text = ""

    def type(self, keys: str) -> None:
        """Type."""
        os.write(self._handle, keys.encode())

    def shows(self, pattern: str, within_s: float = PATIENCE_S) -> bool:
        """Wait until a pattern has appeared after what was looked for before; return whether."""
        ends_at = time.monotonic() + within_s
        while (found := re.search(pattern, self._text)) is None:
            left_s = ends_at - time.monotonic()
            if left_s <= 0 or not select.select([self._handle], [], [], left_s)[0]:
                return False
            try:
                data = os.read(self._handle, 65_536)
            except OSError:
                return False
            self._text += (new := data.decode(errors="replace"))
            self.seen += new
        self._text = self._text[found.end() :]
        return True

    def close(self) -> None:
        """End it and all below it."""
        os.close(self._handle)
        subprocess.run(["pkill", "-KILL", "-s", str(self.pid)], check=False)
        os.waitpid(self.pid, 0)


@pytest.fixture
def shell() -> Iterator[Callable[..., Shell]]:
    """Start a shell at a terminal of its own."""
    started: list[Shell] = []

    def start(*words: str) -> Shell:
        started.append(Shell(*words))
        return started[-1]

    yield start
    for one in started:
        one.close()


def _state(pid: int) -> str:
    """R, S, T ... as the kernel says it."""
    found = STATE.search(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8"))
    return found[1] if found else ""


@pytest.mark.parametrize("front", ["", f"{PROFILE} -q --"])
def test_a_loop_ends_at_ctrl_c(shell: Callable[..., Shell], front: str) -> None:
    """A shell's loop around the job ends with it, as it does without us."""
    ready = "echo START$i; exec sleep 30"
    loop = f"for i in 1 2 3; do {front} sh -c 'i='$i'; {ready}'; done; echo WENT ON"
    bash = shell("-c", loop)
    assert bash.shows("START1")
    bash.type("\x03")
    _, status = os.waitpid(bash.pid, os.WUNTRACED)
    bash.pid = os.fork() or os._exit(0)  # nothing is left for `close` to collect
    assert os.waitstatus_to_exitcode(status) == -signal.SIGINT
    assert not bash.shows("START2|WENT ON", 0.5)


def test_ctrl_z_stops_job_and_us_and_fg_goes_on(shell: Callable[..., Shell]) -> None:
    """The shell gets its prompt back, a whole screen of it, and `fg` continues the job."""
    bash = shell("-i")
    assert bash.shows("READY> ")
    Path("job.py").write_text(
        "import os, pathlib, time\n"
        "pathlib.Path('pid').write_text(str(os.getpid()))\n"
        "while not pathlib.Path('go').exists(): time.sleep(0.05)\n"
        "print('DONE')\n",
        encoding="utf-8",
    )
    bash.type(f"{PROFILE} -- {sys.executable} job.py\n")
    assert bash.shows("so far:")
    until(lambda: Path("pid").exists() and Path("pid").read_text(encoding="utf-8"), "the job")
    pid = int(Path("pid").read_text(encoding="utf-8"))
    bash.type("\x1a")
    assert bash.shows(r"\x1b\[r")  # the whole screen is the shell's again
    assert bash.shows("Stopped")
    assert bash.shows("READY> ")
    until(lambda: _state(pid) == "T", "the stop of the job")
    Path("go").touch()
    bash.type("fg\n")
    assert bash.shows("DONE")
    assert bash.shows("wrote profile.json")


@pytest.mark.parametrize("tostop", ["-tostop", "tostop"])
def test_the_background_is_left_in_peace(shell: Callable[..., Shell], tostop: str) -> None:
    """`profile CMD &` draws nothing over the shell, and no terminal stops it."""
    bash = shell("-i")
    assert bash.shows("READY> ")
    bash.type(f"stty {tostop}; {PROFILE} -- sleep 3 & sleep 2; jobs; wait; echo CODE $?\n")
    assert bash.shows(r"CODE \d")
    assert "wrote profile.json" in bash.seen
    assert "\x1b7" not in bash.seen
    assert "Stopped" not in bash.seen


def test_a_reader_that_left_ends_nothing(tmp_path: Path) -> None:
    """Standard error and standard output are closed pipes: the job does not notice through us."""
    done = tmp_path / "done"
    command = f"{PROFILE} -- sh -c 'sleep 2; touch {done}; exit 7'"
    script = f"{{ {command} 2>&1; echo $? >{tmp_path}/code; }} | true"
    subprocess.run(["bash", "-c", script], check=True, timeout=60)
    code = tmp_path / "code"
    until(lambda: code.exists() and code.read_text(encoding="ascii"), "the end of the job")
    assert done.exists()
    assert code.read_text(encoding="ascii").strip() == "7"


def test_a_reader_waits_for_the_job_alone(tmp_path: Path) -> None:
    """When the job closes its output, whoever reads it sees the end: we do not hold it open."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    job = "echo out; exec >&- 9>&-; sleep 20"
    command = f"{PROFILE} -q -- sh -c '{job}' 9>{fifo}"
    with subprocess.Popen(
        ["bash", "-c", f"exec {command}"], stdout=subprocess.PIPE, start_new_session=True
    ) as front:
        assert front.stdout is not None
        with fifo.open("rb") as other:
            assert front.stdout.read() == b"out\n"
            assert other.read() == b""
        assert front.poll() is None
        os.killpg(front.pid, signal.SIGKILL)
