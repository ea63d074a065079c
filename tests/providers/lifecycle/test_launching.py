"""A launch on the provider in memory: whatever fails, all machines are there or none is."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pricing.errors import InterruptedByUserError, PartialError, ProviderError
from providers.interface import (
    Creation,
    ExistenceCheck,
    NoCapacityError,
    QuotaError,
    Resource,
    ThrottledError,
    UncertainError,
)
from providers.journal.journal import Journal, JournalError
from providers.lifecycle.end import end_run
from providers.lifecycle.launch import launch
from providers.lifecycle.session import Session
from providers.ssh.connection import Status
from tests.providers.fakes.memory import Fault, MemoryCloud
from tests.providers.launches import PENDING, READY, Said, a_session, a_spec, an_offer

BOTH = ("here", "there")


@pytest.fixture
def cloud() -> MemoryCloud:
    """An empty provider."""
    return MemoryCloud()


@pytest.fixture
def session(cloud: MemoryCloud, tmp_path: Path) -> Session:
    """A session that never waits."""
    return a_session(cloud, tmp_path)


def test_the_intent_is_written_before_the_call(
    cloud: MemoryCloud, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the moment of each create call the journal already names what it makes."""
    create, spec = cloud.create, a_spec(count=2, regions=BOTH)
    seen: list[str] = []

    def watched(creation: Creation) -> Resource:
        run = session.journal.deployment(spec.marks.run)
        assert run is not None
        (kept,) = [one for one in run.resources if one.name == creation.name]
        assert (kept.state, kept.id) == ("intended", "")
        seen.append(creation.name)
        return create(creation)

    monkeypatch.setattr(cloud, "create", watched)
    launch(session, spec, None)
    assert len(seen) == 3


FAILURES = (
    (QuotaError("no quota"), QuotaError, "nothing is left"),
    (ProviderError("no such image"), ProviderError, "nothing is left"),
    (UncertainError("no answer"), PartialError, "gpucost reap"),
    (NoCapacityError("sold out"), NoCapacityError, "none is left"),
)


@pytest.mark.parametrize("failure", FAILURES, ids=str)
@pytest.mark.parametrize("after", [1, 2])
def test_all_or_none(
    cloud: MemoryCloud,
    session: Session,
    failure: tuple[ProviderError, type[Exception], str],
    after: int,
) -> None:
    """Whatever the first or second machine fails of, nothing is left, and the message says so."""
    error, raised, told = failure
    fault = Fault(call="create", kind="machine", error=error, times=9)
    cloud.faults.append(fault)
    if after == 2:
        _let_one_pass(cloud)
    spec = a_spec(count=2, regions=("here",))
    with pytest.raises(raised) as caught:
        launch(session, spec, None)
    assert told in str(caught.value)
    assert cloud.things == {}
    run = session.journal.deployment(spec.marks.run)
    assert run is not None
    assert run.state == "ended"


def _let_one_pass(cloud: MemoryCloud) -> None:
    """Take the faults away until one machine was made."""
    faults, create = list(cloud.faults), cloud.create
    cloud.faults.clear()

    def once(creation: Creation) -> Resource:
        made = create(creation)
        if creation.kind == "machine":
            cloud.faults.extend(faults)
            del cloud.create
        return made

    cloud.create = once  # type: ignore[method-assign]


def test_places_are_tried_in_order_and_cleaned_up(cloud: MemoryCloud, session: Session) -> None:
    """A place without capacity leaves nothing behind, and the next one gets all machines."""
    sold_out = NoCapacityError("sold out")
    cloud.faults.append(Fault(call="create", kind="machine", error=sold_out, region="here"))
    done = launch(session, a_spec(count=2, regions=BOTH), None)
    assert done.region == "there"
    assert {one.region for one in cloud.things.values()} == {"there"}
    assert done.state == "not-proved"


def test_a_machine_of_a_first_attempt_keeps_its_bill(cloud: MemoryCloud, session: Session) -> None:
    """What was made in a zone that then had no more is gone, and stays in the ledger."""
    sold_out = NoCapacityError("sold out")
    cloud.faults.append(Fault(call="create", kind="machine", error=sold_out))
    _let_one_pass(cloud)
    spec = a_spec(count=2)
    zones = tuple(replace(spec.places[0], region="here", zone=zone) for zone in ("a", "b"))
    done = launch(session, replace(spec, places=zones), None)
    states = sorted((one.name[-1], one.state) for one in done.machines)
    assert states == [("1", "gone"), ("1", "made"), ("2", "made"), ("2", "refused")]
    lives = [one for one in done.machines if one.billed_from is not None]
    assert len({one.id for one in lives}) == 3
    assert [one.state for one in lives if one.billed_until] == ["gone"]


def test_a_place_above_the_cap_is_not_tried(session: Session) -> None:
    """A fallback that would cost more than the cap by the deadline is passed over."""
    spec = a_spec(regions=BOTH, max_usd=Decimal(4))
    dear = replace(spec.places[0], offer=an_offer(usd_per_hour=Decimal(5)))
    spec = replace(spec, places=(dear, spec.places[1]))
    assert launch(session, spec, None).region == "there"


def test_a_machine_that_dies_while_starting_is_no_capacity(
    cloud: MemoryCloud, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the provider takes away before it runs counts as want of capacity: next place."""
    look = cloud.look

    def lost(kept: Any, marks: Any) -> ExistenceCheck:
        found = look(kept, marks).resource
        if found is not None and found.region == "here":
            del cloud.things[found.kind, found.id]
        return look(kept, marks)

    monkeypatch.setattr(cloud, "look", lost)
    assert launch(session, a_spec(regions=BOTH), None).region == "there"


@pytest.mark.parametrize("after", [True, False])
def test_a_lost_answer_is_looked_for_and_never_repeated(
    cloud: MemoryCloud, session: Session, *, after: bool
) -> None:
    """Made all the same: adopted. Not made: a maybe, exit 6. One call in both cases."""
    lost = UncertainError("no answer")
    cloud.faults.append(Fault(call="create", kind="machine", error=lost, after=after))
    spec = a_spec(regions=("here",))
    if after:
        assert launch(session, spec, None).state == "not-proved"
    else:
        with pytest.raises(PartialError):
            launch(session, spec, None)
    assert sum(call.startswith("create machine") for call in cloud.calls) == 1


def test_throttling_is_repeated_after_the_wait(cloud: MemoryCloud, session: Session) -> None:
    """Where nothing was made the call is made again, after at most the longest wait."""
    throttled = ThrottledError("slow down")
    throttled.wait_s = 9999
    waits: list[float] = []
    cloud.faults.append(Fault(call="create", error=throttled, times=2))
    clock = replace(session.clock, sleep=waits.append)
    assert launch(replace(session, clock=clock), a_spec(regions=BOTH), None).state == "not-proved"
    assert waits[:2] == [5.0, 5.0]


def test_ready_waits_for_every_bootstrap(cloud: MemoryCloud, session: Session) -> None:
    """Each machine gets the end token before its bootstrap is done, and is asked until it is."""
    login = Said(PENDING, PENDING, READY, faults=("not yet",))
    done = launch(session, a_spec(count=2, regions=BOTH), login)
    one, two = (machine.name for machine in done.machines)
    assert login.delivered == [one, two, one]
    told = [what for _, what in session.journal.events(done.marks.run)]
    assert sum("is armed: it ends itself at" in what for what in told) == 2
    armed = next(at for at, what in enumerate(told) if "is armed" in what)
    assert armed < next(at for at, what in enumerate(told) if "is ready" in what)
    assert cloud.things


def test_a_machine_that_need_not_end_itself_is_not_asked(
    cloud: MemoryCloud, session: Session
) -> None:
    """With --no-self-destroy there is nothing to prove."""
    login = Said(READY, faults=("nothing ends it",) * 99)
    spec = a_spec(regions=BOTH, self_destroy=False)
    assert launch(session, spec, login).state == "ready"
    assert cloud.things


@pytest.mark.parametrize(
    ("login", "told"),
    [
        (Said(Status(state="failed", reason="7 GPUs")), "not usable: 7 GPUs"),
        (Said(PENDING), "no word from the bootstrap"),
        (Said(READY, takes=False), "could not be written"),
        (Said(READY, faults=("nothing watches",) * 99), "-1: nothing watches"),
    ],
    ids=["failed", "silent", "without the token", "not armed"],
)
def test_a_machine_that_is_not_usable_is_removed(
    cloud: MemoryCloud, session: Session, login: Said, told: str
) -> None:
    """A failed or silent bootstrap ends the run, with the reason: nobody pays for it."""
    with pytest.raises(ProviderError, match=told):
        launch(session, a_spec(regions=BOTH), login)
    assert cloud.things == {}


def test_an_interrupt_leaves_a_consistent_journal(
    cloud: MemoryCloud, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C between two calls is exit 130; what exists is in the journal, and down ends it."""
    create = cloud.create

    def interrupted(creation: Creation) -> Resource:
        if creation.kind == "machine":
            raise KeyboardInterrupt
        return create(creation)

    monkeypatch.setattr(cloud, "create", interrupted)
    spec = a_spec(regions=BOTH)
    with pytest.raises(InterruptedByUserError) as caught:
        launch(session, spec, None)
    assert caught.value.exit_code == 130
    assert cloud.things
    end_run(session, spec.marks, None)
    assert cloud.things == {}


@pytest.mark.parametrize("write", ["open_run", "intend", "record"])
def test_without_a_journal_nothing_stays(
    cloud: MemoryCloud, session: Session, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    """A journal that cannot be written stops the launch (exit 4), and what was made is removed."""
    monkeypatch.setattr(session.journal, write, _full)
    with pytest.raises(JournalError) as caught:
        launch(session, a_spec(regions=BOTH), None)
    assert caught.value.exit_code == 4
    assert cloud.things == {}


def _full(*_: object) -> None:
    raise JournalError("the disk is full")


def test_an_end_that_fails_names_what_is_left(cloud: MemoryCloud, session: Session) -> None:
    """Where the provider does not let go, exit 6 names the machine and the command to go on."""
    done = launch(session, a_spec(regions=BOTH), None)
    refused = Fault(call="destroy", kind="machine", error=ProviderError("locked"), times=999)
    cloud.faults.append(refused)
    with pytest.raises(PartialError, match=f"machine gpucost-{done.marks.run}-1") as caught:
        end_run(session, done.marks, None)
    assert "locked" in str(caught.value)
    cloud.faults.clear()
    assert end_run(session, done.marks, None) == 2


def test_machines_go_before_what_they_use(cloud: MemoryCloud, session: Session) -> None:
    """Side resources are removed only when no machine is left."""
    done = launch(session, a_spec(count=2, regions=BOTH), None)
    end_run(session, done.marks, None)
    ends = [call for call in cloud.calls if call.startswith("destroy")]
    assert [call.split()[1] for call in ends] == ["machine", "machine", "key"]


def test_two_processes_do_not_share_a_run(session: Session, tmp_path: Path) -> None:
    """A run that one process holds is not held by another, and is free when the first ends."""
    other = Journal(tmp_path)
    with session.journal.working_on("r") as first, other.working_on("r") as second:
        assert (first, second) == (True, False)
    with other.working_on("r") as third:
        assert third


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"places": ()}, "no place"),
        ({"count": 0}, "count is 0"),
        ({"ttl_s": Decimal(0)}, "ttl_s is 0"),
    ],
    ids=str,
)
def test_an_impossible_launch_is_refused(changes: dict[str, Any], told: str) -> None:
    """A launch without place, machine or time cannot be stated."""
    with pytest.raises(Exception, match=told):
        a_spec(regions=BOTH, **changes)
