"""What reap decides, rule by rule, and what it never touches."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from providers.interface import LaunchSpec
from providers.lifecycle.end import end_run
from providers.lifecycle.launch import launch
from providers.lifecycle.presence import survey, unknown_runs
from providers.lifecycle.reap import carry_out, judge
from providers.lifecycle.session import Clock, Session
from providers.ownership_tags import OwnershipTags
from providers.ssh.connection import Status
from tests.providers.fakes.memory import MemoryCloud
from tests.providers.launches import PENDING, READY, Said, a_session, a_spec, no_wait


@pytest.fixture
def cloud() -> MemoryCloud:
    """An empty provider."""
    return MemoryCloud()


@pytest.fixture
def session(cloud: MemoryCloud, tmp_path: Path) -> Session:
    """A session that never waits."""
    return a_session(cloud, tmp_path / "journal")


def _spec() -> LaunchSpec:
    return a_spec(regions=("here",))


def _later(session: Session) -> Session:
    """The same, two hours later: past every deadline."""
    now = session.clock.now
    late = Clock(now=lambda: now() + timedelta(hours=2), sleep=no_wait)
    return replace(session, clock=late)


def _only(session: Session, *, all_owners: bool = False) -> tuple[str, str]:
    (verdict,) = judge(session, survey(session), "ada", all_owners=all_owners)
    return verdict.action, verdict.why


def test_a_live_machine_is_kept(session: Session) -> None:
    """Inside its deadline and in the journal: nothing happens."""
    launch(session, _spec(), Said(READY))
    assert _only(session) == ("keep", "live inside its deadline")


def test_a_late_machine_is_removed(cloud: MemoryCloud, session: Session) -> None:
    """Past the deadline in its tag, in the journal or not, it goes with all that it has."""
    launch(session, _spec(), None)
    late = _later(session)
    (verdict,) = judge(late, survey(late), "ada", all_owners=False)
    assert verdict.action == "remove"
    assert carry_out(late, verdict) == 2
    assert cloud.things == {}


def test_side_resources_alone_are_removed(cloud: MemoryCloud, session: Session) -> None:
    """A key without a machine is an orphan, also with an empty journal."""
    spec = _spec()
    cloud.create(cloud.resources_to_create(spec, spec.places[0])[0])
    (verdict,) = judge(session, survey(session), "ada", all_owners=False)
    assert (verdict.action, verdict.why) == ("remove", "side resources without a machine")
    carry_out(session, verdict)
    assert cloud.things == {}


def test_nothing_young_is_reaped(cloud: MemoryCloud, session: Session, tmp_path: Path) -> None:
    """Another home sees a key whose machine no list shows yet: the launch may be going on."""
    spec = _spec()
    start = session.now()
    young = replace(spec.marks, started=start, deadline=start + timedelta(days=1))
    spec = replace(spec, marks=young)
    for creation in cloud.resources_to_create(spec, spec.places[0]):
        made = cloud.create(creation)
        cloud.hidden |= {made.id} if made.is_machine else set()
    elsewhere = a_session(cloud, tmp_path / "elsewhere")
    (verdict,) = judge(elsewhere, survey(elsewhere), "eve", all_owners=True)
    assert (verdict.action, verdict.why) == ("keep", "its launch may still be going on")
    carry_out(elsewhere, verdict)
    assert len(cloud.things) == 2
    (verdict,) = judge(_later(elsewhere), survey(_later(elsewhere)), "eve", all_owners=True)
    assert verdict.why == "side resources without a machine"


def test_an_intent_without_result_is_removed(cloud: MemoryCloud, session: Session) -> None:
    """A machine whose making was never recorded goes, with everything of its run."""
    spec = _spec()
    key, machine = cloud.resources_to_create(spec, spec.places[0])
    session.journal.open_run(spec, spec.max_usd, session.now())
    session.journal.record(cloud.create(key), session.now())
    session.journal.intend(spec.marks.run, machine, session.now())
    cloud.create(machine)
    (verdict,) = judge(session, survey(session), "ada", all_owners=False)
    assert (verdict.action, verdict.why) == ("remove", "an intent without a result")
    carry_out(session, verdict)
    assert cloud.things == {}
    run = session.journal.deployment(spec.marks.run)
    assert run is not None
    assert run.state == "ended"
    assert all(one.billed_until for one in run.machines)


@pytest.mark.parametrize(("count", "action"), [(1, "finish"), (2, "remove")])
def test_a_launch_that_broke_off_is_finished_or_removed(
    cloud: MemoryCloud, session: Session, count: int, action: str
) -> None:
    """All machines there: finished and kept. One missing: all or none, so it is removed."""
    spec = a_spec(count=count, regions=("here",))
    session.journal.open_run(spec, spec.max_usd, session.now())
    for creation in cloud.resources_to_create(spec, spec.places[0])[:2]:
        session.journal.intend(spec.marks.run, creation, session.now())
        session.journal.record(cloud.create(creation), session.now())
    session = replace(session, login=lambda _: Said(READY))
    (verdict,) = judge(session, survey(session), "ada", all_owners=False)
    assert verdict.action == action
    carry_out(session, verdict)
    run = session.journal.deployment(spec.marks.run)
    assert run is not None
    assert (run.state, bool(cloud.things)) == (("ready", True) if count == 1 else ("ended", False))


@pytest.mark.parametrize(
    ("login", "state"),
    [
        (None, "ended"),
        (Said(READY, faults=("no token", "no token")), "ended"),
        (Said(READY, faults=("no token",)), "ready"),
        (Said(READY, takes=False), "ended"),
        (Said(Status(state="failed", reason="7 GPUs")), "ended"),
        (Said(PENDING), "launching"),
        (Said(READY), "ready"),
    ],
    ids=["no key", "no proof", "handed over", "no token", "failed", "not set up yet", "armed"],
)
def test_a_launch_is_only_finished_with_a_proof(
    cloud: MemoryCloud, session: Session, login: Said | None, state: str
) -> None:
    """Killed before the token was handed over: reap delivers and sees the proof, or ends it."""
    spec = _spec()
    session.journal.open_run(spec, spec.max_usd, session.now())
    for creation in cloud.resources_to_create(spec, spec.places[0]):
        session.journal.intend(spec.marks.run, creation, session.now())
        session.journal.record(cloud.create(creation), session.now())
    session = replace(session, login=lambda _: login)
    (verdict,) = judge(session, survey(session), "ada", all_owners=False)
    carry_out(session, verdict)
    run = session.journal.deployment(spec.marks.run)
    assert run is not None
    assert run.state == state
    assert bool(cloud.things) == (state != "ended")


def test_leftovers_of_an_end_are_removed(cloud: MemoryCloud, session: Session) -> None:
    """A run that was being ended, or had ended, and is still listed, goes."""
    done = launch(session, _spec(), None)
    session.journal.mark_run(done.marks.run, "ending", session.now())
    assert _only(session) == ("remove", "left over from its end")
    session.journal.mark_run(done.marks.run, "ended", session.now())
    (verdict,) = judge(session, survey(session), "ada", all_owners=False)
    carry_out(session, verdict)
    assert cloud.things == {}


def test_a_run_that_went_by_itself_is_closed(cloud: MemoryCloud, session: Session) -> None:
    """Nothing of it at the provider: its entry ends, and so does its bill."""
    done = launch(session, _spec(), None)
    cloud.things.clear()
    late = _later(session)
    (verdict,) = judge(late, survey(late), "ada", all_owners=False)
    assert verdict.action == "close"
    carry_out(late, verdict)
    run = session.journal.deployment(done.marks.run)
    assert run is not None
    assert run.state == "ended"
    assert run.machines[0].billed_until is not None
    assert judge(late, survey(late), "ada", all_owners=False) == ()


def test_others_are_kept(cloud: MemoryCloud, session: Session) -> None:
    """Another owner's late machine goes with --all-owners only; a live one is never adopted."""
    spec = _spec()
    hers = replace(spec, marks=OwnershipTags(**{**_fields(spec.marks), "owner": "eve"}))
    for creation in cloud.resources_to_create(hers, hers.places[0]):
        cloud.create(creation)
    assert _only(session) == ("keep", "belongs to eve")
    assert _only(session, all_owners=True)[0] == "keep"
    late = _later(session)
    assert _only(late)[0] == "keep"
    (verdict,) = judge(late, survey(late), "ada", all_owners=True)
    assert verdict.action == "remove"
    carry_out(late, verdict)
    assert cloud.things == {}


def _fields(marks: OwnershipTags) -> dict[str, object]:
    return {name: getattr(marks, name) for name in ("run", "deadline", "owner", "plan")}


def test_what_another_process_works_on_is_kept(
    cloud: MemoryCloud, session: Session, tmp_path: Path
) -> None:
    """A run that is being launched elsewhere is left alone, between verdict and deed, too."""
    spec = _spec()
    session.journal.open_run(spec, spec.max_usd, session.now())
    cloud.create(cloud.resources_to_create(spec, spec.places[0])[0])
    (verdict,) = judge(session, survey(session), "ada", all_owners=False)
    other = a_session(cloud, tmp_path / "journal")
    with other.journal.working_on(spec.marks.run):
        assert _only(session) == ("keep", "another process is working on it")
        assert carry_out(session, verdict) == 0
    assert cloud.things
    assert carry_out(session, verdict) == 1


def test_a_survey_notes_what_went_and_what_is_unknown(
    cloud: MemoryCloud, session: Session, tmp_path: Path
) -> None:
    """A machine that is proved gone is no longer billed; a run that only it knows is named."""
    done = launch(session, _spec(), None)
    strange = launch(a_session(cloud, tmp_path / "another"), _spec(), None)
    cloud.things = {k: v for k, v in cloud.things.items() if v.marks.run == strange.marks.run}
    late = _later(session)
    seen = survey(late)
    run = session.journal.deployment(done.marks.run)
    assert run is not None
    assert run.machines[0].state == "gone"
    assert unknown_runs(late, seen.resources) == (strange.marks.run,)


def test_ending_an_unknown_run_ends_nothing_else(cloud: MemoryCloud, session: Session) -> None:
    """Only what carries the marks of the run is destroyed."""
    launch(session, _spec(), None)
    before = dict(cloud.things)
    assert end_run(session, _spec().marks, None) == 0
    assert cloud.things == before
