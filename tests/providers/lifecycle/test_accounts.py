"""Credentials of another account know none of our ids, which is no end of anything."""

from dataclasses import replace
from pathlib import Path

import pytest

from pricing.errors import PartialError, ProviderError
from providers.interface import Deployment
from providers.lifecycle.end import end_run
from providers.lifecycle.launch import launch
from providers.lifecycle.presence import survey
from providers.lifecycle.reap import carry_out, judge
from providers.lifecycle.session import Session
from tests.providers.fakes.driven_time import driven_time
from tests.providers.fakes.memory import Fault, MemoryCloud
from tests.providers.launches import a_session, a_spec


@pytest.fixture
def cloud() -> MemoryCloud:
    """The account that is launched in."""
    return MemoryCloud(account_id="111", lag_s=0.0)


@pytest.fixture
def session(cloud: MemoryCloud, tmp_path: Path) -> Session:
    """Work in it."""
    return a_session(cloud, tmp_path)


@pytest.fixture
def run(session: Session) -> Deployment:
    """A run of two machines."""
    return launch(session, a_spec(count=2, regions=("here",)), None)


@pytest.fixture
def other(session: Session, run: Deployment) -> Session:
    """The same journal with the credentials of another, empty account."""
    assert run.account == "111"
    return replace(session, cloud=MemoryCloud(account_id="222", lag_s=0.0))


def _nothing_is_gone(session: Session, run: Deployment) -> None:
    found = session.journal.deployment(run.marks.run)
    assert found is not None
    assert found.state != "ended"
    assert {one.state for one in found.resources} == {"made"}


def test_down_says_so_and_calls_nothing_gone(other: Session, run: Deployment) -> None:
    """Not ended (6), with both accounts named; with the right ones it ends."""
    with pytest.raises(PartialError, match=r"in account 111 of memory.* another account, 222"):
        end_run(other, run.marks, None)
    _nothing_is_gone(other, run)


def test_a_mistake_about_the_account_keeps_no_machine(
    cloud: MemoryCloud, session: Session, run: Deployment
) -> None:
    """Where the ids are known all the same they end, whatever the account is called now."""
    cloud.account_id = "111-renamed"
    assert survey(session).doubts == ()
    end_run(session, run.marks, None)
    assert cloud.things == {}


def test_list_and_reap_doubt_it_and_keep_it(other: Session, run: Deployment) -> None:
    """The machines still count; a reap hours after the deadline removes nothing of it."""
    with driven_time() as time:
        time.sleep(5 * 3600.0)
        seen = survey(other)
        (verdict,) = judge(other, seen, "ada", all_owners=False)
        assert any("another account, 222" in one for one in seen.doubts)
        with pytest.raises(PartialError, match="another account"):
            carry_out(other, replace(verdict, action="remove"))
        if verdict.action != "remove":
            carry_out(other, verdict)
        _nothing_is_gone(other, run)


@pytest.mark.parametrize("before", ["launching", "ready"])
def test_a_run_without_machines_is_not_closed_elsewhere(
    session: Session, other: Session, run: Deployment, before: str
) -> None:
    """An intent and a key of the journal are no empty run where nobody can see them."""
    session.journal.mark_run(run.marks.run, before, session.now())
    for verdict in judge(other, survey(other), "ada", all_owners=False):
        if verdict.action != "keep":
            with pytest.raises(PartialError, match="another account"):
                carry_out(other, verdict)
    _nothing_is_gone(other, run)


def test_an_account_that_cannot_be_asked_proves_no_end(
    cloud: MemoryCloud, session: Session, run: Deployment
) -> None:
    """An unknown id stays; a machine whose end was accepted is gone all the same."""
    silent = Fault(call="account", error=ProviderError("HTTP 403"), times=10**6)
    cloud.faults.append(silent)
    first, *_ = run.machines
    hidden = cloud.things.pop(("machine", first.id))
    with pytest.raises(PartialError, match="whose account"):
        end_run(session, run.marks, None)
    assert not any(one.is_machine for one in cloud.things.values())
    found = session.journal.deployment(run.marks.run)
    assert found is not None
    assert [one.state for one in found.machines] == ["made", "gone"]
    cloud.things["machine", first.id] = hidden
    cloud.faults.clear()
    end_run(session, run.marks, None)
    assert cloud.things == {}


def test_a_run_that_notes_no_account_ends_as_before(cloud: MemoryCloud, session: Session) -> None:
    """A journal of an older version: an id that is unknown again and again is gone."""
    spec = a_spec(regions=("here",))
    cloud.faults.append(Fault(call="account", error=ProviderError("HTTP 403")))
    done = launch(session, spec, None)
    assert done.account == ""
    cloud.things.clear()
    with driven_time() as time:
        time.sleep(3600.0)
        end_run(session, done.marks, None)
    found = session.journal.deployment(spec.marks.run)
    assert found is not None
    assert found.state == "ended"


def test_what_is_adopted_notes_its_account(
    cloud: MemoryCloud, run: Deployment, tmp_path: Path
) -> None:
    """A lost journal that finds a run again knows where it was found."""
    again = a_session(cloud, tmp_path / "new")
    for verdict in judge(again, survey(again), run.marks.owner, all_owners=False):
        carry_out(again, verdict)
    found = again.journal.deployment(run.marks.run)
    assert found is not None
    assert found.account == "111"
