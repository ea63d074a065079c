"""`gpucost list` over a journal that has grown for years."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from providers.journal.journal import Journal
from tests.gpucost.conftest import Call
from tests.providers.launches import a_spec

AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Seventy runs that ended, the oldest but one excepted."""
    monkeypatch.setenv("GPUCOST_STATE_DIR", str(tmp_path / "state"))
    journal, found = Journal(tmp_path / "state"), []
    for number in range(70):
        spec = a_spec(regions=("here",))
        journal.open_run(spec, Decimal(1), AT + timedelta(hours=number))
        if number != 1:
            journal.mark_run(spec.marks.run, "ended", AT + timedelta(hours=number))
        found.append(spec.marks.run)
    journal.close()
    return found


def test_a_table_shows_the_newest_runs_and_every_open_one(names: list[str], call: Call) -> None:
    """Fifty that ended and the open one, in their order; the rest is counted, and where it is."""
    ran = call("list", "--all", "--offline")
    assert ran.code == 0, ran.err
    assert [name for name in names if name in ran.out] == [names[1], *names[-50:]]
    assert "and 19 more that ended" in ran.err


@pytest.mark.parametrize("form", ["json", "csv", "md"])
def test_what_programs_read_has_all_runs(names: list[str], call: Call, form: str) -> None:
    """Other formats leave nothing out."""
    ran = call("list", "--all", "--offline", "-f", form)
    assert all(name in ran.out for name in names)
    assert "more that ended" not in ran.err


@pytest.mark.usefixtures("names")
def test_offline_asks_nobody(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUCOST_OFFLINE is heeded as --offline is, whatever credentials are set."""
    monkeypatch.setenv("GPUCOST_OFFLINE", "1")
    monkeypatch.setenv("DIGITALOCEAN_TOKEN", "t")
    monkeypatch.setattr("gpucost.commands.machines.runs.sessions", pytest.fail)
    ran = call("list")
    assert ran.code == 0, ran.err
