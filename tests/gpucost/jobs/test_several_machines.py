"""A job on several machines: one log is shown, the first failure counts, the rest is ended."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from gpucost.jobs.request import JobFolder, JobRequest
from gpucost.jobs.stepping import RunningJob
from gpucost.jobs.steps import JobMachine, StepFailedError, TaskState
from gpucost.views.output import Output
from providers.journal.journal import Journal
from providers.lifecycle.session import Clock, Session
from tests.providers.fakes.memory import MemoryCloud

RUNNING = TaskState(word="running")


class Scripted:
    """A machine that says what the test says, an answer a look; each look takes ten seconds."""

    def __init__(self, rank: int, answers: list[tuple[TaskState, bytes]]) -> None:
        self.rank, self.name, self.answers = rank, f"m{rank}", answers
        self.stopped = False

    def read(self, step: str, seen: int, wait_s: int) -> tuple[TaskState, bytes]:
        """Return the next answer; the last one for ever."""
        assert (step, wait_s) == ("job", 1)
        _ = seen
        if self.stopped and self.answers[0][0] == RUNNING:
            return TaskState(word="ended", code=143), b""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def stop(self) -> None:
        """End it."""
        self.stopped = True


def _job(folder: Path, *machines: Scripted) -> RunningJob:
    ticks = iter(range(10**6))
    start = datetime(2026, 11, 22, tzinfo=UTC)
    clock = Clock(now=lambda: start + timedelta(seconds=10 * next(ticks)), sleep=lambda _: None)
    session = Session(cloud=MemoryCloud(), journal=Journal(folder / "state"), clock=clock)
    return RunningJob(
        run="k3f9xw2m",
        request=JobRequest(command="x", folder=str(folder)),
        machines=cast("tuple[JobMachine, ...]", machines),
        folder=JobFolder(path=folder / "state"),
        session=replace(session),
        output=Output(),
    )


def _ended(code: int) -> TaskState:
    return TaskState(word="ended", code=code)


def test_all_end_well(tmp_path: Path) -> None:
    """0 where each ended with 0; the log of the first is shown, with letters that were cut."""
    first = Scripted(
        0, [(RUNNING, "ä".encode()[:1]), (_ended(0), "ä".encode()[1:]), (_ended(0), b"")]
    )
    shown: list[str] = []
    assert _job(tmp_path, first, Scripted(1, [(_ended(0), b"")])).follow(shown.append) == 0
    assert "".join(shown) == "ä"


def test_one_fails_and_the_rest_is_ended(tmp_path: Path) -> None:
    """Its status is the job's; one that waits for it for ever is stopped a minute later."""
    waiting = Scripted(0, [(RUNNING, b"")])
    assert _job(tmp_path, waiting, Scripted(1, [(_ended(3), b"")])).follow(lambda _: None) == 3
    assert waiting.stopped


def test_an_end_that_nobody_knows_is_no_success(tmp_path: Path) -> None:
    """A machine that was restarted meanwhile: the step failed."""
    lost = Scripted(1, [(TaskState(word="lost"), b"")])
    job = _job(tmp_path, Scripted(0, [(_ended(0), b"")]), lost)
    with pytest.raises(StepFailedError, match="was killed, or its machine was"):
        job.follow(lambda _: None)
