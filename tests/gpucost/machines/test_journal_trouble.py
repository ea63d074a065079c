"""Commands whose journal is held, newer, damaged, lost or on a full disk: machines end."""

import os
import signal
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gpucost.cli import interruptible
from gpucost.machines import state
from providers.interface import Resource
from providers.lifecycle.session import Clock
from providers.ssh.connection import Status
from tests.gpucost.conftest import Call
from tests.gpucost.launching import Ready
from tests.providers.disks import a_small_disk, fill_up
from tests.providers.fakes.digitalocean import DigitalOcean
from tests.providers.launches import no_wait

LAUNCH = (
    "provision",
    "--type",
    "digitalocean/gpu-h100x8-640gb",
    "--ttl",
    "2h",
    "--yes",
    "--allow-stale",
    "-f",
    "json",
)
ENDS = (("down", "RUN", "--yes"), ("down", "--all", "--yes"), ("reap", "--yes"))


pytestmark = pytest.mark.usefixtures("login")


@pytest.fixture
def run(ocean: DigitalOcean, call: Call) -> str:
    """A run with one machine."""
    ran = call(*LAUNCH)
    assert ran.code == 0, ran.err
    assert len(ocean.estate.things["droplets"]) == 1
    return str(ran.json["run"])


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a journal that is held for a moment only."""
    monkeypatch.setattr("providers.journal.journal_file.BUSY_MS", 50)
    monkeypatch.setattr("providers.journal.journal.BUSY_AGAIN_MS", 1)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Where the journal is."""
    return tmp_path / "state" / "journal.sqlite"


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch, run: str) -> None:
    """Three hours after the launch, past the deadline."""
    assert run
    now = lambda: datetime.now(UTC) + timedelta(hours=3)  # noqa: E731 - a clock
    monkeypatch.setattr(state, "CLOCK", Clock(now=now, sleep=no_wait))


def _aside(journal: Path) -> list[str]:
    return [path.name for path in journal.parent.iterdir() if "unreadable" in path.name]


@pytest.mark.usefixtures("late")
@pytest.mark.parametrize("words", ENDS, ids=" ".join)
def test_a_journal_that_another_process_writes_keeps_no_machine_alive(
    words: tuple[str, ...],
    run: str,
    ocean: DigitalOcean,
    call: Call,
    journal: Path,
) -> None:
    """While another process holds it for writing, machines end; the file is never set aside."""
    with closing(sqlite3.connect(journal, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        ran = call(*(run if word == "RUN" else word for word in words))
    assert ran.code == 0, ran.err
    assert "another process holds the journal" in ran.err
    assert ocean.estate.things["droplets"] == {}
    assert _aside(journal) == []


@pytest.mark.usefixtures("late")
@pytest.mark.parametrize("words", ENDS, ids=" ".join)
def test_a_journal_that_cannot_even_be_read_keeps_no_machine_alive(
    words: tuple[str, ...],
    run: str,
    ocean: DigitalOcean,
    call: Call,
    journal: Path,
) -> None:
    """What the provider lists ends; that the journal was not read is exit 6, and it stays."""
    before = journal.stat().st_ino
    with closing(sqlite3.connect(journal, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        ran = call(*(run if word == "RUN" else word for word in words))
    assert ran.code == 6, ran.err
    assert "another process holds the journal" in ran.err
    assert ocean.estate.things["droplets"] == {}
    assert (_aside(journal), journal.stat().st_ino) == ([], before)


@pytest.mark.parametrize("words", [*ENDS, ("list",), ("watch",), LAUNCH], ids=" ".join)
@pytest.mark.usefixtures("ocean")
def test_a_newer_versions_journal_is_left_as_it_is(
    words: tuple[str, ...], run: str, call: Call, journal: Path
) -> None:
    """Every command refuses (exit 4), says what to do, and changes not a byte."""
    with closing(sqlite3.connect(journal, isolation_level=None)) as base:
        base.execute("PRAGMA user_version = 9")
    before = journal.read_bytes()
    ran = call(*(run if word == "RUN" else word for word in words))
    assert ran.code == 4
    assert "update gpucost" in ran.err
    assert (_aside(journal), journal.read_bytes()) == ([], before)


@pytest.mark.parametrize("words", ENDS, ids=" ".join)
def test_a_full_disk_keeps_no_machine_alive(
    words: tuple[str, ...],
    ocean: DigitalOcean,
    call: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a real disk without a free byte, machines end and what was not written down is said."""
    with a_small_disk(tmp_path / "disk") as disk:
        if disk is None:
            pytest.skip("no file system can be mounted here")
        monkeypatch.setenv("GPUCOST_STATE_DIR", str(disk / "state"))
        monkeypatch.setattr(state, "CLOCK", Clock(sleep=no_wait))
        launched = call(*LAUNCH)
        assert launched.code == 0, launched.err
        fill_up(disk)
        later = lambda: datetime.now(UTC) + timedelta(hours=3)  # noqa: E731 - a clock
        monkeypatch.setattr(state, "CLOCK", Clock(now=later, sleep=no_wait))
        ran = call(*(launched.json["run"] if word == "RUN" else word for word in words))
        assert ran.code in (0, 6), ran.err
        assert "not written down" in ran.err
        assert ocean.estate.things["droplets"] == {}
        assert list((disk / "state").glob("*unreadable*")) == []


def test_with_the_journal_lost_list_asks_before_it_says_that_nothing_burns(
    run: str, ocean: DigitalOcean, call: Call, journal: Path
) -> None:
    """A machine that no journal knows is listed."""
    for path in journal.parent.glob("journal.sqlite*"):
        path.unlink()
    asked = len(ocean.requests)
    ran = call("list")
    assert len(ocean.requests) > asked
    assert run in ran.out + ran.err
    assert "no machines running" not in ran.err


@pytest.mark.parametrize("damage", [b"no database" * 1000, b"SQLite format 3\0" + b"\xff" * 9000])
def test_with_the_journal_damaged_list_asks_too(
    damage: bytes, run: str, ocean: DigitalOcean, call: Call, journal: Path
) -> None:
    """It says that the journal is damaged (exit 6), leaves it, and lists what the provider has."""
    for path in journal.parent.glob("journal.sqlite-*"):
        path.unlink()
    journal.write_bytes(damage)
    asked = len(ocean.requests)
    ran = call("list")
    assert ran.code == 6
    assert "damaged" in ran.err
    assert len(ocean.requests) > asked
    assert run in ran.out + ran.err
    assert journal.read_bytes() == damage


class _Signalled(Ready):
    """Machines that are looked at while this process is told to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def status(self, machine: Resource) -> Status:
        """Be told."""
        os.kill(os.getpid(), self.number)
        return super().status(machine)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_signal_speaks_as_control_c_does(
    number: int, ocean: DigitalOcean, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told to end in the middle of a launch: exit 130, what there is, and how to end it."""
    monkeypatch.setattr("gpucost.launch.provisioning.open_login", lambda _: _Signalled(number))
    handled = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    before = signal.signal(number, handled)  # whoever started the tests may have ignored it
    try:
        ran = call(*LAUNCH)
    finally:
        signal.signal(number, before)
    assert ran.code == 130
    (run,) = (one["run"] for one in call("list", "-f", "json").json["runs"])
    assert f"interrupted while {run} was launched" in ran.err
    assert f"gpucost down {run}" in ran.err
    assert call("down", run, "--yes").code == 0
    assert ocean.estate.things["droplets"] == {}


@pytest.mark.parametrize("before", [signal.SIG_IGN, signal.SIG_DFL])
def test_what_nohup_ignores_stays_ignored(before: signal.Handlers) -> None:
    """A hang-up that is to be ignored interrupts nothing; handlers are back afterwards."""
    old = signal.signal(signal.SIGHUP, before)
    try:
        with interruptible():
            assert (signal.getsignal(signal.SIGHUP) is signal.SIG_IGN) == (before is signal.SIG_IGN)
        assert signal.getsignal(signal.SIGHUP) is before
    finally:
        signal.signal(signal.SIGHUP, old)
