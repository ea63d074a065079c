"""What ends a job on a machine of one's own: its deadline, and `down`; nothing of it lives on."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from providers.interface import Resource
from providers.ssh import cloud
from providers.ssh.cloud import SshCloud
from templates.job_scripts import task_script
from tests.providers.launches import a_spec
from tests.waiting import CEILING_S, until

PAST, FUTURE = "20200101T000000Z", "20990101T000000Z"
HOUR = timedelta(hours=1)
VICTIMS = 20
# A tool before which some processes go: they were in the list of files, and cannot be read.
LATE = """#!/bin/sh
case "$*" in */proc/*/stat*)
  if mv {folder}/victims {folder}/dead 2>/dev/null; then
    read -r victims <{folder}/dead
    kill -KILL $victims
    for one in $victims; do while [ -e /proc/$one/stat ]; do sleep 0.01; done; done
  fi ;;
esac
exec {tool} "$@"
"""


@dataclass(frozen=True, slots=True)
class Own:
    """A machine of one's own, as far as jobs see it."""

    root: Path

    @property
    def tasks(self) -> Path:
        """Where its steps lie."""
        return self.root / "var/lib/gpucost/tasks"

    def mark(self, deadline: str | None) -> None:
        """Write the mark of its run whole; None: its file is empty, as in the middle of a write."""
        text = "" if deadline is None else f"gpucost-run:k3f9xw2m:{deadline}:ada--5hq2mzt8:none"
        new = self.root / "mark.new"
        new.write_text(text, encoding="ascii")
        new.replace(self.root / "var/lib/gpucost/run")

    def task(self, *words: str, given: str = "") -> str:
        """Ask the program that runs the steps."""
        done = subprocess.run(
            (self.tasks / "task", *words),
            input=given,
            capture_output=True,
            text=True,
            check=True,
            env=self.environment(),
        )
        return done.stdout

    def environment(self) -> dict[str, str]:
        """Return what every program there gets: this root, our shims first, and no patience."""
        path = f"{self.root}/bin:{os.environ['PATH']}"
        return {"PATH": path, "GPUCOST_ROOT": str(self.root), "GPUCOST_GRACE_S": "0"}

    def start(self, script: str) -> None:
        """Start the job."""
        self.task("start", "job", str(len(script)), "once", given=script)

    def state(self) -> str:
        """Return how far the job is."""
        return self.task("read", "job", "0", "0").splitlines()[0]

    def looks(self) -> int:
        """Return how often the guard has looked at the mark and gone to sleep."""
        log = self.root / "looks"
        return log.read_text(encoding="ascii").count("5\n") if log.exists() else 0

    def left(self) -> list[int]:
        """Return what lives and was started in this root's folder."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes() if entry.name.isdecimal() else b""
                alive = b" Z " not in (entry / "stat").read_bytes() if words else False
            except OSError:
                continue
            if alive and str(self.root / "job").encode() in words:
                found.append(int(entry.name))
        return found

    def shim(self, name: str, text: str) -> None:
        """Put a program before the system's."""
        path = self.root / "bin" / name
        path.write_text(text, encoding="ascii")
        path.chmod(0o755)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Own]:
    """A machine whose guard sleeps shortly and notes each of its looks."""
    machine = Own(tmp_path / "own")
    (machine.root / "bin").mkdir(parents=True)
    machine.tasks.mkdir(parents=True)
    (machine.tasks / "task").write_text(task_script(), encoding="utf-8")
    (machine.tasks / "task").chmod(0o755)
    sleep = shutil.which("sleep")
    log = f'[ "$1" != 5 ] || echo 5 >>{machine.root}/looks\n'
    machine.shim("sleep", f'#!/bin/sh\n{log}[ "$1" != 5 ] || set -- 0.1\nexec {sleep} "$@"\n')
    yield machine
    machine.task("stop")
    for pid in machine.left():
        os.kill(pid, signal.SIGKILL)


def _sleeper(own: Own, name: str) -> str:
    """Return a command that sleeps for ever and is seen by `left`."""
    path = own.root / f"job-{name}"
    path.write_text("while :; do sleep 1; done\n", encoding="ascii")
    return f"sh {path}"


def _family(own: Own) -> str:
    """Return a job that would like to live on: in four ways at once."""
    again = own.root / "job-again"
    # Each that is asked to end starts another in a session of its own.
    again.write_text(
        f"trap 'setsid sh {again} & exit' TERM\nwhile :; do sleep 0.05; done\n", encoding="ascii"
    )
    return "\n".join(
        (
            f"setsid {_sleeper(own, 'session')} &",
            f"env -i PATH=$PATH {_sleeper(own, 'bare')} &",
            f"(trap '' TERM; exec {_sleeper(own, 'deaf')}) &",
            f"setsid sh {again} &",
            f"exec {_sleeper(own, 'last')}",
        )
    )


def test_at_the_deadline_nothing_of_a_job_lives_on(own: Own) -> None:
    """Own sessions, cleared environments, deaf ones and ones that start others: all are ended."""
    own.mark(FUTURE)
    own.start(_family(own))
    until(lambda: len(own.left()) >= 5, "the job runs")
    own.mark(PAST)
    until(lambda: own.state().startswith("ended"), "the job has ended")
    until(lambda: not own.left(), "nothing of it lives on")
    assert "the deadline of this run has come" in own.task("read", "job", "0", "0")


def test_down_ends_what_a_job_left_behind(own: Own) -> None:
    """A command that has ended itself may have left processes; `down` finds them by their mark."""
    own.mark(FUTURE)
    own.start(f"setsid {_sleeper(own, 'behind')} & exit 0")
    until(lambda: own.state() == "ended 0" and own.left(), "the command has ended")
    own.task("stop")
    assert own.left() == []


def _victims() -> list[subprocess.Popen[bytes]]:
    return [subprocess.Popen(("sleep", "600")) for _ in range(VICTIMS)]


def test_a_process_that_goes_while_it_is_listed_hides_no_other(own: Own) -> None:
    """Some awks stop at a file that cannot be opened: what stands behind it is ended all the same.

    Forty processes, on both sides of the job's, go between the list of files and its reading.
    """
    for name in ("awk", "cat"):
        own.shim(name, LATE.format(folder=own.root, tool=shutil.which(name)))
    victims = _victims()
    try:
        own.start(f"exec {_sleeper(own, 'behind')}")
        until(own.left, "the job runs")
        victims += _victims()
        (own.root / "victims").write_text(f"{' '.join(str(v.pid) for v in victims)}\n", "ascii")
        with subprocess.Popen((own.tasks / "task", "stop"), env=own.environment()) as stop:
            for victim in victims:
                victim.wait(CEILING_S)  # what nobody waits for keeps its files
            assert stop.wait(CEILING_S) == 0
    finally:
        for victim in victims:
            victim.kill()
            victim.wait()
    assert (own.root / "dead").exists()
    assert own.left() == []


def test_a_mark_that_is_just_being_written_ends_nothing(own: Own) -> None:
    """An empty mark, and one cut short, say nothing: the deadline that was known counts on."""
    own.mark(FUTURE)
    own.start(f"exec {_sleeper(own, 'on')}")
    until(lambda: own.looks() >= 2, "the guard has read the deadline")
    for cut in (None, "", "2020010"):
        own.mark(cut)
        seen = own.looks()
        until(lambda seen=seen: own.looks() >= seen + 3, "the guard has looked")  # type: ignore[misc]
        assert own.state() == "running"
        assert len(own.left()) == 1
    own.mark(PAST)
    until(lambda: own.state().startswith("ended"), "the job has ended")


def test_a_machine_that_ends_itself_has_no_guard(own: Own) -> None:
    """Without a mark, as on every rented machine, nothing but its own end ends a job."""
    own.start("exit 3")
    until(lambda: own.state() == "ended 3", "the job has ended")
    assert not (own.tasks / "job" / "guarded").exists()


def test_a_file_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads a mark while it is rewritten sees the old one or the new one, never a part."""

    class Door:
        """Runs here what would run there."""

        def run(self, address: str, command: str, given: str = "") -> tuple[int, str]:
            """Run it."""
            _ = address
            done = subprocess.run(("/bin/sh", "-c", command), input=given, text=True, check=False)
            return done.returncode, ""

    monkeypatch.setattr(cloud, "own_door", lambda _: Door())
    monkeypatch.setenv("GPUCOST_ROOT", str(tmp_path))
    marks = a_spec().marks
    machine = Resource(kind="machine", id="ada@host", name="one", region="", marks=marks)
    there, later = SshCloud(state=tmp_path), replace(marks, deadline=marks.deadline + HOUR)
    path = tmp_path / "var/lib/gpucost/run"
    there.mark(machine, marks)
    with path.open(encoding="ascii") as reader:
        there.mark(machine, later)
        assert reader.read() == marks.text(":")
    assert path.read_text(encoding="ascii") == later.text(":")
    assert [one.name for one in path.parent.iterdir()] == ["run"]
