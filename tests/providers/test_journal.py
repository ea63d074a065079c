"""The journal: on the disk at each write, one version, and nothing lost on the way through it."""

import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from providers.interface import MACHINE, Creation, Deployment, Kept, Resource
from providers.lifecycle.journal import Journal, JournalError, set_aside
from providers.lifecycle.journal_rows import offer_from_text, offer_to_text
from providers.lifecycle.ledger import bill_machine, bill_run
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
    assert found.offer == offer_from_text(offer_to_text(spec.places[0].offer or an_offer()))
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


def _machine(lived_s: float | None) -> Kept:
    until = None if lived_s is None else AT + timedelta(seconds=lived_s)
    return Kept(
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
        ("nebius", 90, 3600, "35.28"),  # no documented step: whole hours
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
