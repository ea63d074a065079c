"""Cut anywhere and taken up again: each step runs on the machine once, and the end is the same."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpucost.files.writing import state_folder
from gpucost.jobs import driving
from providers.journal.journal import Journal
from providers.ssh.shell import LostConnectionError, RemoteShell, Transfer
from tests.gpucost.conftest import Call, Ran
from tests.gpucost.jobs.test_job_run import OURS, provision, results
from tests.providers.fakes.sshd import Machine

ONCE = ["code", "gpucost", "job"]
CALLS = ((RemoteShell, "run"), (Transfer, "send"), (Transfer, "fetch"))


class KilledError(BaseException):
    """This computer died here."""


class Cuts:
    """What happens around each call to a machine.

    Attributes:
        before: called with the number of the call, from 1 on, before it is made.
        after: the same once it was made, and its answer is lost.
        count: calls so far.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.before: Callable[[int], None] = lambda _: None
        self.after: Callable[[int], None] = lambda _: None
        self.count = 0
        for kind, name in CALLS:
            monkeypatch.setattr(kind, name, self._around(getattr(kind, name)))

    def _around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def cut(*words: Any, **more: Any) -> Any:
            self.count += 1
            number = self.count
            self.before(number)
            answer = call(*words, **more)
            self.after(number)
            return answer

        return cut


@pytest.fixture
def started(quick_machine: Machine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What ran on the machine, in order, as it stood there before the machine was ended."""
    steps: list[str] = []
    end = driving.end

    def look(*words: Any) -> Any:
        text = (quick_machine.root / "var/lib/gpucost/tasks/steps").read_text(encoding="utf-8")
        steps[:] = [line.split()[1] for line in text.splitlines()]
        return end(*words)

    monkeypatch.setattr(driving, "end", look)
    return steps


def _the_run() -> str:
    journal = Journal(state_folder())
    try:
        (run,) = journal.deployments()
        return run.marks.run
    finally:
        journal.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioned:
    """A job on a machine whose gpucost is a stub."""

    machine: Machine
    project: Path
    call: Call

    @property
    def words(self) -> tuple[str, ...]:
        """The command line that launches it."""
        return provision(self.machine, self.project, "python3 train.py")

    def start(self) -> Ran:
        """Launch it."""
        return self.call(*self.words)

    def check_end(self) -> None:
        """Its results are here, and nothing of ours is there."""
        assert (results() / "outputs" / "Gewichte für später.txt").is_file()
        assert (results() / "after.json").is_file()
        assert [path for path in OURS if (self.machine.root / path).exists()] == []


@pytest.fixture
def provisioned(quick_machine: Machine, project: Path, call: Call) -> Provisioned:
    """The job."""
    return Provisioned(machine=quick_machine, project=project, call=call)


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> Cuts:
    """No cut so far."""
    return Cuts(monkeypatch)


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_connection_breaks_at_every_call(
    provisioned: Provisioned, started: list[str], cuts: Cuts, when: str
) -> None:
    """Each call is cut once, before it arrives or before its answer does: nothing runs twice."""

    def every_other(number: int) -> None:
        if number % 2:
            raise LostConnectionError("the line is cut")

    setattr(cuts, when, every_other)
    ran = provisioned.start()
    assert ran.code == 0, ran.err
    assert started == ONCE
    assert ran.out.count("trains in") == 1
    assert "Trying again" in ran.err
    provisioned.check_end()


def test_this_computer_dies_at_every_call(
    provisioned: Provisioned, call: Call, started: list[str], cuts: Cuts
) -> None:
    """The n-th process dies once its n-th call was made, until one comes to the end."""

    def die_at(last: int) -> Callable[[int], None]:
        def die(number: int) -> None:
            if number == last:
                raise KilledError

        return die

    words: tuple[str, ...] = provisioned.words
    deaths = 0
    while True:
        cuts.count = 0
        cuts.after = die_at(deaths + 1)
        try:
            ran = call(*words)
        except KilledError:
            deaths += 1
            words = ("logs", _the_run(), "-f")
            continue
        break
    assert ran.code == 0, ran.err
    assert deaths >= 12
    assert started == ONCE
    provisioned.check_end()


def test_a_job_outlives_the_process_that_started_it(
    provisioned: Provisioned, call: Call, started: list[str]
) -> None:
    """The launching process is killed with SIGKILL; the job goes on, and is taken up to its end."""
    (provisioned.project / "train.py").write_text(
        "import pathlib, time\nprint('begins', flush=True)\n"
        "go = pathlib.Path('go')\nwhile not go.exists(): time.sleep(0.1)\n"
        "pathlib.Path('outputs').mkdir(exist_ok=True)\n"
        "pathlib.Path('outputs/Gewichte für später.txt').write_text('w')\nprint('ends')\n",
        encoding="utf-8",
    )
    program = str(Path(sys.executable).with_name("gpucost"))
    with subprocess.Popen((program, *provisioned.words), stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"begins\n"
        os.kill(first.pid, signal.SIGKILL)
    run = _the_run()
    there = call("logs", run)
    assert (there.code, there.out) == (0, "begins\n")
    assert (provisioned.machine.root / "scratch/gpucost/code/train.py").is_file()
    (provisioned.machine.root / "scratch/gpucost/code/go").touch()
    ran = call("logs", run, "-f")
    assert ran.code == 0, ran.err
    assert ran.out == "begins\nends\n"
    assert started == ONCE
    provisioned.check_end()


def test_ctrl_c_detaches_and_says_how_to_come_back(
    provisioned: Provisioned, call: Call, started: list[str], cuts: Cuts
) -> None:
    """Exit 130 with what goes on and the two ways from there; taken up it ends as any other."""

    def interrupt(number: int) -> None:
        if number == 6:
            raise KeyboardInterrupt

    cuts.after = interrupt
    ran = provisioned.start()
    assert ran.code == 130
    run = _the_run()
    assert f"{run} keeps running without this computer" in ran.err
    assert f"`gpucost down {run}` ends it now" in ran.err
    cuts.after = lambda _: None
    assert call("logs", run, "-f").code == 0
    assert started == ONCE
    provisioned.check_end()
