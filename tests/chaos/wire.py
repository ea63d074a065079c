"""gpucost commands in forked processes: their calls come here, no socket is opened, nobody waits.

The parent holds the accounts and the machines and answers a child over a pipe, so a child that is
killed at any point leaves them as they are.
"""

import itertools
import os
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from multiprocessing.connection import Connection, Pipe
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import parse_qs

from gpucost import cli
from providers.journal.journal import Journal
from tests.chaos.exchange import Answer, Call, answered
from tests.chaos.surroundings import patched
from tests.providers.fakes.driven_time import DrivenTime

Command = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What happens to a command.

    Attributes:
        kill_at: number of the point at which it is killed; None: never.
        skew_s: by how much this computer's clock is wrong.
        file_limit: bytes that a file may have; None: any number.
    """

    kill_at: int | None = None
    skew_s: float = 0.0
    file_limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended.

    Attributes:
        code: exit code; that of a signal is negative.
        steps: calls and writes that it came by, before and after each; none of a killed one.
        output: what it printed, errors included.
    """

    code: int
    steps: tuple[str, ...]
    output: str

    @property
    def points(self) -> int:
        """How many places there are to kill it at."""
        return len(self.steps)

    @property
    def was_killed(self) -> bool:
        """Whether the trouble came."""
        return self.code == -signal.SIGKILL


def run(
    commands: tuple[tuple[Command, Trouble], ...],
    answer: Callable[[tuple[Any, ...]], Any],
    time: DrivenTime,
    log: Path,
) -> list[Ended]:
    """Run commands, each in a process of its own, all at the same time.

    Args:
        commands: what is run, and what happens to it.
        answer: answers a message of a command.
        time: of all.
        log: file that gets what they print.
    """
    children = [_start(command, trouble, time, log) for command, trouble in commands]
    pipes = {pipe: at for at, (_, pipe, _) in enumerate(children)}
    steps: list[tuple[str, ...]] = [()] * len(children)
    while pipes:
        for pipe in wait_for(list(pipes)):
            assert isinstance(pipe, Connection)
            try:
                message = pipe.recv()
                time.sync()
                if message[0] == "steps":
                    steps[pipes[pipe]] = message[1]
                else:
                    pipe.send(answer(message))
            except (EOFError, OSError):
                pipe.close()
                del pipes[pipe]
    found = []
    for at, (child, _, out) in enumerate(children):
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        text = out.read_text(encoding="utf-8", errors="replace")
        with log.open("a", encoding="utf-8") as stream:
            stream.write(f"{text}= {code}\n")
        out.unlink()
        found.append(Ended(code=code, steps=steps[at], output=text))
    time.sync()
    return found


def run_here(
    command: Command, answer: Callable[[tuple[Any, ...]], Any], time: DrivenTime, log: Path
) -> Ended:
    """Run a command in this process; nothing happens to it. As `run` else."""
    steps: list[str] = []
    turn, out = threading.RLock(), StringIO()

    def ask(*message: Any) -> Any:
        with turn:  # regions are asked at once, and the account knows no threads
            return answer(message)

    with redirect_stdout(out), redirect_stderr(out), surrounded(time, ask, steps.append):
        code = cli.run(command)
    with log.open("a", encoding="utf-8") as stream:
        stream.write(f"$ gpucost {' '.join(command)}\n{out.getvalue()}= {code}\n")
    return Ended(code=code, steps=tuple(steps), output=out.getvalue())


def _start(
    command: Command, trouble: Trouble, time: DrivenTime, log: Path
) -> tuple[int, Connection, Path]:
    ours, theirs = Pipe()
    out = log.with_name(f"{log.name}.{next(_NUMBERS)}")
    child = os.fork()
    if child == 0:
        ours.close()
        _be_child(command, trouble, time, theirs, out)
    theirs.close()
    return child, ours, out


_NUMBERS = itertools.count()


def _be_child(
    command: Command, trouble: Trouble, time: DrivenTime, pipe: Connection, out: Path
) -> None:
    """Run the command here, and never return."""
    code = 99
    try:
        with out.open("w") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        sys.stdout, sys.stderr = (os.fdopen(at, "w", buffering=1) for at in (1, 2))
        sys.stdout.write(f"$ gpucost {' '.join(command)}  # {trouble}\n")
        sys.stdout.flush()
        steps: list[str] = []
        turn = threading.RLock()  # regions are asked at once, and there is one pipe

        def reach(what: str) -> None:
            if len(steps) == trouble.kill_at:
                sys.stdout.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            steps.append(what)

        def ask(*message: Any) -> Any:
            with turn:
                pipe.send(message)
                answer = pipe.recv()
                time.sync()
            return answer

        if trouble.file_limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (trouble.file_limit, trouble.file_limit))
        if trouble.skew_s:
            time.skew(trouble.skew_s)
        with surrounded(time, ask, reach):
            code = cli.run(command)
        pipe.send(("steps", tuple(steps)))
    except BaseException:  # noqa: BLE001 - a forked process must not return
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


@contextmanager
def surrounded(
    time: DrivenTime, ask: Callable[..., Any], reach: Callable[[str], None]
) -> Iterator[None]:
    """The surroundings of a command of this process, and the way to its account."""
    with patched(time, ask, reach), _wired(ask, reach):
        yield


@contextmanager
def _wired(ask: Callable[..., Any], reach: Callable[[str], None]) -> Iterator[None]:
    """Every call of an SDK goes through the pipe; `reach` is before and after calls and writes."""
    writing = Journal._writing  # noqa: SLF001 - where it writes

    def call(told: Call) -> Answer:
        what = _named(told[0], told[2], told[4])
        reach(f"before {what}")
        answer: Answer = ask("call", *told)
        reach(f"after {what}")
        return answer

    @contextmanager
    def write(self: Any) -> Iterator[None]:
        reach("before a write")
        with writing(self):
            yield
        reach("after a write")

    with (
        answered(call),
        mock.patch.object(Journal, "_writing", write),
    ):
        yield


def _named(method: str, url: str, body: Any) -> str:
    """A call for people: "POST /v2/droplets", "RunInstances"."""
    text = body.decode() if isinstance(body, bytes | bytearray) else str(body or "")
    form = parse_qs(text)
    return form["Action"][0] if "Action" in form else f"{method} {url.partition('?')[0]}"
