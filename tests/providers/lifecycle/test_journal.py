"""The journal: on the disk at each write, one version, and nothing lost on the way through it."""

import itertools
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from providers.interface import MACHINE, Creation, Deployment, JournaledResource, Resource
from providers.journal.journal import Journal, JournalError, set_aside
from providers.journal.journal_file import DamagedJournalError, HeldJournalError
from providers.journal.ledger import bill_machine, bill_run
from providers.private_files import NotOursError
from tests.providers.disks import fill_up
from tests.providers.launches import a_spec, an_offer

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """An empty journal."""
    return Journal(tmp_path / "state")


def test_each_write_is_on_the_disk(journal: Journal) -> None:
    """Write-ahead log and full synchronisation, so that a crash loses nothing that was written."""
    base = journal._base  # noqa: SLF001 - what SQLite was told
    assert base.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert base.execute("PRAGMA synchronous").fetchone()[0] == 2
    assert journal.folder.stat().st_mode & 0o077 == 0


def test_another_version_is_refused(journal: Journal) -> None:
    """A journal of a later gpucost is not touched."""
    journal.close()
    with sqlite3.connect(journal.path) as base:
        base.execute("PRAGMA user_version = 9")
    base.close()
    with pytest.raises(JournalError, match="format 9"):
        Journal(journal.folder)


def test_a_run_comes_back_as_it_was_written(journal: Journal) -> None:
    """Marks, price, places, resources, times and reasons survive."""
    spec = a_spec(an_offer(usd_per_hour=Decimal("3.1415926")), regions=("here",))
    creation = Creation(kind=MACHINE, name="m", region="here", call="c", arguments={})
    made = Resource(
        kind=MACHINE,
        id="7",
        name="m",
        region="here",
        marks=spec.marks,
        created_at=AT,
        address="192.0.2.1",
    )
    journal.open_run(spec, Decimal("3.1415926"), AT)
    journal.intend(spec.marks.run, creation, AT)
    journal.record(made, AT)
    journal.mark_run(spec.marks.run, "ended", AT + timedelta(hours=1), "why")
    found = Journal(journal.folder).deployment(spec.marks.run)
    assert found is not None
    assert (found.marks, found.count, found.region) == (spec.marks, 1, "here")
    assert found.offer == spec.places[0].offer
    assert found.predicted_usd == Decimal("3.1415926")
    assert (found.state, found.reason, found.ended_at) == ("ended", "why", AT + timedelta(hours=1))
    (machine,) = found.machines
    assert (machine.id, machine.billed_from, machine.address) == ("7", AT, "192.0.2.1")
    events = [what for _, what in journal.events(spec.marks.run)]
    assert events[1:3] == ["about to make machine m", "machine m is 7"]


def test_a_failed_write_changes_nothing(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event that cannot be written takes its change with it."""
    spec = a_spec(regions=("here",))
    journal.open_run(spec, Decimal(1), AT)
    monkeypatch.setattr(journal, "_event", _no_space)
    with pytest.raises(JournalError, match="no space"):
        journal.mark_run(spec.marks.run, "ready", AT)
    found = journal.deployment(spec.marks.run)
    assert found is not None
    assert found.state == "launching"


def _no_space(*_: object) -> None:
    raise sqlite3.OperationalError("no space")


def test_no_secret_gets_into_the_file(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a provider's answer says, names, reasons and events are written without secrets."""
    secret = 'it\'s-a-"sécret"%\nof-two-lines'  # noqa: S105 - a planted one
    monkeypatch.setenv("GPUCOST_DIGITALOCEAN_REAPER_TOKEN", secret)
    spec = a_spec(regions=("here",))
    run, half = spec.marks.run, secret[: len(secret) // 2]
    journal.open_run(spec, Decimal(1), AT)
    creation = Creation(kind=MACHINE, name=f"m-{secret}", region="", call="c", arguments={})
    journal.intend(run, creation, AT)
    journal.refuse(run, creation, AT, f"token {secret!r} is not allowed")
    journal.note(run, AT, f"half of it: {half}")
    journal.mark_run(run, "failed", AT, f"told {secret}")
    journal.close()
    written = b"".join(file.read_bytes() for file in journal.folder.iterdir() if file.is_file())
    assert b"[secret]" in written
    assert half.encode() not in written
    assert secret[len(secret) // 2 :].encode() not in written


def test_all_files_are_their_owners_alone(tmp_path: Path) -> None:
    """Folders 0700 and files 0600 from the first moment, whatever the umask; old ones too."""
    before = os.umask(0)
    try:
        journal = Journal(tmp_path / "state")
        with journal.working_on("k3f9xw2m"):
            paths = [journal.folder, *journal.folder.rglob("*")]
            modes = {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_file()}
            folders = {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_dir()}
        assert len(paths) >= 5  # the journal, its log and index, and the lock
    finally:
        os.umask(before)
    assert (modes, folders) == ({0o600}, {0o700})
    journal.close()
    journal.path.chmod(0o644)
    Journal(journal.folder).close()
    assert stat.S_IMODE(journal.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["journal.sqlite", "journal.sqlite-wal", "locks"])
def test_a_link_in_place_of_a_file_is_not_followed(name: str, tmp_path: Path) -> None:
    """What a link points at is neither read nor written."""
    Journal(tmp_path / "state").close()
    target = tmp_path / "target"
    target.write_bytes(b"theirs")
    (tmp_path / "state" / name).unlink(missing_ok=True)
    (tmp_path / "state" / name).symlink_to(target)
    with pytest.raises((NotOursError, JournalError)), Journal(tmp_path / "state").working_on("run"):
        pytest.fail("the link was followed")
    assert target.read_bytes() == b"theirs"


def test_a_journal_that_another_process_holds_is_read_and_not_touched(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer elsewhere stops no reader; writing says that it is held, first late, then soon."""
    monkeypatch.setattr("providers.journal.journal_file.BUSY_MS", 50)
    monkeypatch.setattr("providers.journal.journal.BUSY_AGAIN_MS", 1)
    spec = a_spec(regions=("here",))
    journal.open_run(spec, Decimal(1), AT)
    with _held(journal.path, "BEGIN EXCLUSIVE"):
        other = Journal(journal.folder)
        assert [one.marks.run for one in other.open_deployments()] == [spec.marks.run]
        for _ in range(2):
            with pytest.raises(HeldJournalError, match="another process holds"):
                other.note(spec.marks.run, AT, "x")
        assert other._base.execute("PRAGMA busy_timeout").fetchone()[0] == 1  # noqa: SLF001 - it waits
    other.note(spec.marks.run, AT, "x")


def test_a_journal_that_is_held_against_readers_is_called_held(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where not even reading is possible the file is said to be held, and is as it was after."""
    monkeypatch.setattr("providers.journal.journal_file.BUSY_MS", 50)
    journal.close()
    with (
        _held(journal.path, "PRAGMA locking_mode = EXCLUSIVE", "BEGIN IMMEDIATE"),
        pytest.raises(HeldJournalError, match="left as it is"),
    ):
        Journal(journal.folder)
    assert Journal(journal.folder).deployments() == ()


@contextmanager
def _held(path: Path, *statements: str) -> Iterator[None]:
    base = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        base.execute(statement)
    try:
        yield
    finally:
        base.close()


@pytest.mark.parametrize("damage", ["no database", "cut", "no tables", "a line"])
def test_damage_is_called_damage(damage: str, journal: Journal) -> None:
    """Bytes that are not a database, a cut file, missing tables, a date that is none."""
    for _ in range(50):
        journal.open_run(a_spec(regions=("here",)), Decimal(1), AT)
    journal.close()
    if damage == "no database":
        journal.path.write_bytes(b"no database" * 1000)
    elif damage == "cut":
        data = bytearray(journal.path.read_bytes())
        data[4096:] = b"\xff" * (len(data) - 4096)
        journal.path.write_bytes(data)
    else:
        with closing(sqlite3.connect(journal.path, isolation_level=None)) as base:
            statement = {"no tables": "DROP TABLE runs", "a line": "UPDATE runs SET document='x'"}
            base.execute(statement[damage])
    with pytest.raises(DamagedJournalError, match="damaged"):
        Journal(journal.folder).deployments()


@pytest.mark.parametrize("end", ["closed", "killed"])
def test_a_journal_on_a_full_disk_is_read(end: str, small_disk: Path) -> None:
    """Without a free byte the runs are still there, and what cannot be written is said so."""
    spec = a_spec(regions=("here",))
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            journal = Journal(small_disk / "state")
            journal.open_run(spec, Decimal(1), AT)
            if end == "closed":
                journal.close()  # takes log and index with it
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    fill_up(small_disk)
    journal = Journal(small_disk / "state")
    assert [one.marks.run for one in journal.open_deployments()] == [spec.marks.run]
    with journal.working_on(spec.marks.run) as mine:
        assert mine
    with pytest.raises(JournalError, match="end machines all the same"):
        journal.note(spec.marks.run, AT, "x" * 600_000)  # the log may have a page to spare
    journal.close()


def test_a_journal_in_memory_stands_in(tmp_path: Path) -> None:
    """It begins empty, keeps what it is told, holds runs where it can, and makes no file."""
    journal = Journal(tmp_path / "state", lost="the disk is gone")
    spec = a_spec(regions=("here",))
    journal.open_run(spec, Decimal(1), AT)
    assert [one.marks for one in journal.deployments()] == [spec.marks]
    (tmp_path / "state").write_text("no folder")
    with journal.working_on(spec.marks.run) as mine:
        assert mine
    assert journal.lost == "the disk is gone"


def test_only_open_runs_are_read_where_only_they_are_asked_for(journal: Journal) -> None:
    """Runs that ended are left out of the open ones, each with its own resources."""
    specs = [a_spec(regions=("here",)) for _ in range(4)]
    for at, spec in enumerate(specs):
        journal.open_run(spec, Decimal(1), AT + timedelta(minutes=at))
        creation = Creation(kind=MACHINE, name=f"m{at}", region="", call="c", arguments={})
        journal.intend(spec.marks.run, creation, AT)
    for spec in specs[1:3]:
        journal.mark_run(spec.marks.run, "ended", AT)
    told = [(one.marks.run, one.machines[0].name) for one in journal.open_deployments()]
    assert told == [(specs[0].marks.run, "m0"), (specs[3].marks.run, "m3")]
    assert [one.machines[0].name for one in journal.deployments()] == ["m0", "m1", "m2", "m3"]
    found = journal.deployment(specs[1].marks.run)
    assert found is not None
    assert found.state == "ended"
    assert journal.deployment("nothere") is None


def test_the_work_of_a_read_follows_what_is_asked_for(journal: Journal) -> None:
    """With a hundred times the ended runs, SQLite steps as far for one run as with few."""

    def steps(read: Callable[[], object]) -> int:
        counted = itertools.count()
        journal._base.set_progress_handler(lambda: next(counted) * 0, 1)  # noqa: SLF001 - counted there
        read()
        journal._base.set_progress_handler(None, 1)  # noqa: SLF001 - the same
        return next(counted)

    def grow(runs: int) -> None:
        for _ in range(runs):
            spec = a_spec(regions=("here",))
            journal.open_run(spec, Decimal(1), AT)
            journal.mark_run(spec.marks.run, "ended", AT)

    journal._base.execute("PRAGMA synchronous = OFF")  # noqa: SLF001 - only to be quick
    spec = a_spec(regions=("here",))
    journal.open_run(spec, Decimal(1), AT)
    grow(9)
    few = steps(lambda: journal.deployment(spec.marks.run))
    few_open = steps(journal.open_deployments)
    grow(990)
    assert steps(lambda: journal.deployment(spec.marks.run)) < few * 2
    assert steps(journal.open_deployments) < few_open * 200  # it looks at each run, and no further


def test_an_unreadable_journal_is_kept_aside(journal: Journal) -> None:
    """The file is moved, not deleted; a new journal begins empty."""
    journal.close()
    journal.path.write_bytes(b"no database" * 1000)
    with pytest.raises(JournalError, match="gpucost reap"):
        Journal(journal.folder)
    aside = set_aside(journal.folder, AT)
    assert aside is not None
    assert aside.read_bytes().startswith(b"no database")
    assert Journal(journal.folder).deployments() == ()
    assert set_aside(journal.folder / "none", AT) is None


def _machine(lived_s: float | None) -> JournaledResource:
    until = None if lived_s is None else AT + timedelta(seconds=lived_s)
    return JournaledResource(
        kind=MACHINE,
        name="m",
        region="",
        id="7",
        state="made" if until is None else "gone",
        intended_at=AT,
        billed_from=AT,
        billed_until=until,
    )


@pytest.mark.parametrize(
    ("provider", "lived_s", "billed_s", "usd"),
    [
        ("digitalocean", 0, 60, "0.588"),  # at least a minute
        ("digitalocean", 90, 90, "0.882"),
        ("digitalocean", 3600, 3600, "35.28"),
        ("aws", 30, 60, "0.588042"),  # at least a minute; the address by the second
        ("aws", 61, 61, "0.597885"),
        ("crusoe", 90, 3600, "35.28"),  # no documented step: whole hours
    ],
)
def test_the_bill_follows_the_providers_rule(
    provider: str, lived_s: float, billed_s: int, usd: str
) -> None:
    """Billed seconds and dollars are those of pricing's rules, not of a stop-watch."""
    offer = an_offer(provider, usd_per_hour=Decimal("35.28"))
    seconds, dollars = bill_machine(_machine(lived_s), offer, AT + timedelta(days=9))
    assert dollars is not None
    assert (seconds, round(dollars, 6)) == (billed_s, Decimal(usd))


def test_a_run_burns_while_it_lives() -> None:
    """What is there is billed until now and has a rate; without a price, only its seconds count."""
    marks = a_spec().marks
    run = Deployment(
        marks=marks,
        provider="digitalocean",
        offer=an_offer("digitalocean", usd_per_hour=Decimal(36)),
        region="nyc2",
        count=2,
        state="ready",
        started_at=AT,
        ended_at=None,
        predicted_usd=None,
        resources=(_machine(None), replace(_machine(1800), name="n")),
    )
    bill = bill_run(run, AT + timedelta(hours=1))
    assert (bill.machines, bill.billed_s) == (1, 5400)
    assert (bill.usd, bill.usd_per_hour) == (Decimal(54), Decimal(36))
    unknown = bill_run(replace(run, offer=None), AT + timedelta(hours=1))
    assert (unknown.usd, unknown.usd_per_hour, unknown.billed_s) == (None, None, 5400)


@pytest.mark.parametrize("known", ["an intent", "nothing"])
def test_a_machine_whose_birth_nobody_tells_is_billed(known: str, journal: Journal) -> None:
    """Its bill begins with the intent, else with the launch of its marks, and ends with its end."""
    spec = a_spec(an_offer(), regions=("here",))
    marks = replace(spec.marks, started=AT - timedelta(minutes=9))
    name, later = "m", AT + timedelta(minutes=5)
    journal.open_run(replace(spec, marks=marks), Decimal(1), AT)
    if known == "an intent":
        wanted = Creation(kind=MACHINE, name=name, region="here", call="c", arguments={})
        journal.intend(marks.run, wanted, AT)
    made = Resource(kind=MACHINE, id="7", name=name, region="here", marks=marks)
    journal.record(made, later)
    found = JournaledResource(
        kind=MACHINE, name=name, region="here", id="7", state="made", intended_at=later
    )
    journal.mark_gone(marks.run, found, later)
    run = journal.deployment(marks.run)
    assert run is not None
    (machine,) = run.machines
    assert machine.billed_from == (AT if known == "an intent" else marks.started)
    assert machine.billed_until == later
