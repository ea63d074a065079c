"""Signals around `gpucost profile`: each reaches the job once, whoever it was sent to."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.gpucost.profiling.test_profile import FAST, GPUCOST, PATIENCE_S
from tests.waiting import until

LOG = str(Path(__file__).parent / "signal_log.py")
JOB = (sys.executable, LOG, "signals.txt")
WORDS = (GPUCOST, "profile", *FAST, "--", *JOB)
CATCHABLE = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGRTMIN})


@dataclass(frozen=True, slots=True)
class Job:
    """A job that logs its signals, below a process that we started.

    Attributes:
        top: that process, the leader of its session.
        pid: the job's own.
        terminal: the other end of its terminal, None without one.
    """

    top: int
    pid: int
    terminal: int | None = None

    @property
    def front(self) -> int:
        """The process of gpucost that the job is a child of."""
        return int(_fields(self.pid)[1])

    def got(self) -> Counter[int]:
        """Return the signals that it got until now."""
        lines = Path("signals.txt").read_text(encoding="ascii").splitlines()
        return Counter(int(line.split()[0]) for line in lines if line[0].isdigit())

    def session(self) -> list[int]:
        """Return every process that belongs to this measurement."""
        pids = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]
        family = {self.front}
        for _ in range(3):
            family |= {pid for pid in pids if (f := _fields(pid)) and int(f[1]) in family}
        return sorted(family)


def _fields(pid: int) -> list[str]:
    """State, parent, group, session ... of a process; nothing where it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return stat.rpartition(")")[2].split()


@pytest.fixture
def start() -> Iterator[Callable[..., Job]]:
    """Start a command that ends in the logging job; nothing of it outlives the test."""
    tops: list[tuple[int, int | None]] = []

    def started(*words: str, terminal: bool = False) -> Job:
        handle = None
        if terminal:
            top, handle = pty.fork()
            if top == 0:
                os.execv(words[0], words)  # noqa: S606 - our own command
        else:
            quiet = [(os.POSIX_SPAWN_OPEN, n, os.devnull, os.O_RDWR, 0) for n in range(3)]
            top = os.posix_spawn(
                words[0],
                words,
                os.environ,
                file_actions=quiet,
                setsid=True,
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
            )
        tops.append((top, handle))
        return Job(top, _logger(), handle)

    yield started
    for top, handle in tops:
        for pid in (int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()):
            if (fields := _fields(pid)) and int(fields[3]) == top:
                os.kill(pid, signal.SIGKILL)
        os.waitpid(top, 0)
        if handle is not None:
            os.close(handle)


def _logger() -> int:
    """Wait until the job is there, and the sampler beside it; return its process."""
    ends_at = time.monotonic() + PATIENCE_S
    log = Path("signals.txt")
    while not (log.exists() and log.read_text(encoding="ascii").endswith("\n")):
        assert time.monotonic() < ends_at, "the job did not start"
        time.sleep(0.02)
    time.sleep(0.5)
    return int(log.read_text(encoding="ascii").split()[1])


def _settled(job: Job, *awaited: int) -> Counter[int]:
    """Return what the job has got once these have come, and nothing more comes."""
    until(lambda: all(job.got()[number] for number in awaited), "a signal")
    before, quiet_s = job.got(), 0.0
    while quiet_s < 0.6:
        time.sleep(0.1)
        now = job.got()
        quiet_s = quiet_s + 0.1 if now == before else 0.0
        before = now
    return before


def test_every_signal_sent_to_us_alone_is_passed_on_once(start: Callable[..., Job]) -> None:
    """`kill -N PID` for every N that can be caught: the job gets it, and we live on."""
    job = start(*WORDS)
    for number in CATCHABLE:
        os.kill(job.front, number)
        until(lambda number=number: job.got()[number], "a signal")  # type: ignore[misc]
    assert _settled(job, *CATCHABLE) == Counter(map(int, CATCHABLE))


def test_every_signal_of_the_group_arrives_once(start: Callable[..., Job]) -> None:
    """`kill -N -- -PGID` for every N that can be caught: the job has it already."""
    job = start(*WORDS)
    numbers = [n for n in CATCHABLE if n != signal.SIGCHLD]
    for number in numbers:
        os.killpg(job.top, number)
        time.sleep(0.06)  # longer than what counts as one act
    assert _settled(job, *numbers) - Counter((signal.SIGCHLD,)) == Counter(map(int, numbers))


@pytest.mark.parametrize(("key", "number"), [(b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT)])
def test_a_key_arrives_once(start: Callable[..., Job], key: bytes, number: int) -> None:
    """Ctrl-C and Ctrl-Backslash at a terminal reach the job from there, and only from there."""
    job = start(*WORDS, terminal=True)
    assert job.terminal is not None
    os.write(job.terminal, key)
    got = _settled(job, number)
    assert got == Counter((int(number),))


def test_an_interrupt_of_the_foreground_process_arrives(start: Callable[..., Job]) -> None:
    """`kill -INT PID` is for the job also where a terminal could have sent it."""
    job = start(*WORDS, terminal=True)
    os.kill(job.front, signal.SIGINT)
    assert _settled(job, signal.SIGINT) == Counter((int(signal.SIGINT),))


def test_a_hang_up_arrives_once(start: Callable[..., Job]) -> None:
    """The terminal goes away: the kernel tells the leader of the session, who passes it on."""
    job = start(*WORDS, terminal=True)
    assert job.terminal is not None
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, job.terminal)
    os.close(null)
    got = _settled(job, signal.SIGHUP)
    assert got[signal.SIGHUP] == 1
    assert set(got) <= {signal.SIGHUP, signal.SIGCONT}


@pytest.mark.parametrize("more", [(), ("--foreground",)])
def test_timeout_ends_the_job_once(start: Callable[..., Job], more: tuple[str, ...]) -> None:
    """`timeout` signals us and then its whole group, or us alone: one TERM arrives."""
    job = start("/usr/bin/timeout", *more, "600", *WORDS)
    os.kill(job.top, signal.SIGALRM)  # as its own timer does
    assert _settled(job, signal.SIGTERM)[signal.SIGTERM] == 1


def test_a_service_manager_ends_the_job_once(start: Callable[..., Job]) -> None:
    """Every process of a control group is signalled one by one, as systemd does: one arrives."""
    job = start(*WORDS)
    for pid in job.session():
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGCONT)
    both = (int(signal.SIGTERM), int(signal.SIGCONT))
    assert _settled(job, *both) == Counter(both)


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(("-f", "signal_log.py"), id="the script"),
        pytest.param(("gpucost",), id="our name"),
        pytest.param(("-f", "gpucost profile"), id="our command line"),
        pytest.param(("python",), id="the program"),
    ],
)
def test_a_signal_by_name_arrives_once(start: Callable[..., Job], pattern: tuple[str, ...]) -> None:
    """`pkill` by what our command line or the job's says."""
    job = start(*WORDS)
    subprocess.run(["pkill", "-USR1", "-s", str(job.top), *pattern], check=True)
    assert _settled(job, signal.SIGUSR1) == Counter((int(signal.SIGUSR1),))


def test_a_timer_that_the_caller_set_is_the_jobs(start: Callable[..., Job]) -> None:
    """`alarm` before `exec` ends a command after some seconds: it rings in the job."""
    code = f"import os, signal; signal.alarm(6); os.execv({GPUCOST!r}, {WORDS!r})"
    job = start(sys.executable, "-c", code)
    assert _settled(job, signal.SIGALRM) == Counter((int(signal.SIGALRM),))
