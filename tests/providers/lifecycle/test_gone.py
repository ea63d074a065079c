"""Nothing is called gone that is not: reads that lag, lists with holes, parts that are silent."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pricing.errors import PartialError, ProviderError
from providers.interface import MACHINE, Creation, Deployment, Resource, UncertainError
from providers.lifecycle.end import end_run
from providers.lifecycle.launch import launch
from providers.lifecycle.presence import survey
from providers.lifecycle.reap import carry_out, judge
from providers.lifecycle.session import Clock, Session
from tests.providers.fakes.memory import Fault, MemoryCloud
from tests.providers.launches import HASTY, a_session, a_spec


class Time:
    """A clock that only pauses move, and what happens when it comes to a moment."""

    def __init__(self) -> None:
        self.passed_s = 0.0
        self.start = datetime.now(UTC).replace(microsecond=0)
        self.plans: list[tuple[float, Callable[[], None]]] = []

    def now(self) -> datetime:
        """The time."""
        return self.start + timedelta(seconds=self.passed_s)

    def sleep(self, seconds: float) -> None:
        """Let it pass."""
        self.passed_s += seconds
        for plan in [one for one in self.plans if one[0] <= self.passed_s]:
            self.plans.remove(plan)
            plan[1]()

    def after(self, seconds: float, does: Callable[[], None]) -> None:
        """Plan something."""
        self.plans.append((self.passed_s + seconds, does))


@pytest.fixture
def time() -> Time:
    """From now on."""
    return Time()


@pytest.fixture
def cloud() -> MemoryCloud:
    """An empty provider whose reads lag for up to two minutes."""
    return MemoryCloud(lag_s=120.0)


@pytest.fixture
def session(cloud: MemoryCloud, time: Time, tmp_path: Path) -> Session:
    """A session in that time."""
    return a_session(cloud, tmp_path / "journal", clock=Clock(now=time.now, sleep=time.sleep))


def _hide_what_is_made(cloud: MemoryCloud, time: Time, seconds: float) -> None:
    """No read shows a machine for so long after it was made."""
    create = cloud.create

    def hidden(creation: Creation) -> Resource:
        made = create(creation)
        if made.is_machine:
            cloud.hidden.add(made.id)
            time.after(seconds, lambda: cloud.hidden.discard(made.id))
        return made

    cloud.create = hidden  # type: ignore[method-assign]


@pytest.mark.parametrize("lag_s", [0, 30, 60, 115])
def test_a_machine_that_is_not_shown_yet_is_waited_for(
    cloud: MemoryCloud, session: Session, time: Time, lag_s: float
) -> None:
    """A launch makes one machine at one place, however late reads show it; no other is tried."""
    _hide_what_is_made(cloud, time, lag_s)
    done = launch(session, a_spec(regions=("here", "there")), None)
    assert (done.state, done.region) == ("not-proved", "here")
    assert [one.kind for one in cloud.things.values()].count(MACHINE) == 1


def test_a_machine_that_reads_never_show_is_ended_by_its_id(
    cloud: MemoryCloud, session: Session, time: Time
) -> None:
    """The next place is tried only after the first machine's end was accepted by its id."""
    _hide_what_is_made(cloud, time, 1e9)
    patient = replace(session, patience=replace(HASTY, running_s=900.0))
    with pytest.raises(ProviderError):
        launch(patient, a_spec(regions=("here", "there")), None)
    assert cloud.things == {}
    made = [c.split()[0] for c in cloud.calls if "machine" in c]
    assert made == ["create", "destroy", "create", "destroy"]


def _ready(session: Session) -> Deployment:
    return launch(session, a_spec(regions=("here",)), None)


def test_down_of_a_machine_that_is_not_shown_ends_it(cloud: MemoryCloud, session: Session) -> None:
    """Reads that leave it out for ever do not make it gone: it is ended by its id."""
    done = _ready(session)
    cloud.hidden |= {one.id for one in done.resources}
    end_run(session, done.marks, None)
    assert cloud.things == {}


def test_down_without_the_tags_ends_it(cloud: MemoryCloud, session: Session) -> None:
    """A list that knows nothing of the run does not matter: ids of the journal are asked."""
    done = _ready(session)
    cloud.list_owned = lambda *_: type(MemoryCloud().list_owned(None))()  # type: ignore[method-assign]
    end_run(session, done.marks, None)
    assert cloud.things == {}


def test_a_machine_that_is_refused_its_end_is_not_gone(
    cloud: MemoryCloud, session: Session, time: Time
) -> None:
    """Hidden from reads and refusing to end: after all patience it is said to be left."""
    done = _ready(session)
    (machine,) = done.machines
    cloud.hidden.add(machine.id)
    time.passed_s = 0
    locked = Fault(call="destroy", kind=MACHINE, error=ProviderError("locked"), times=10**6)
    unread = Fault(call="look", kind=MACHINE, error=ProviderError("HTTP 500"), times=10**6)
    cloud.faults += [locked, unread]
    with pytest.raises(PartialError, match=machine.id):
        end_run(session, done.marks, None)
    assert (MACHINE, machine.id) in cloud.things
    run = session.journal.deployment(done.marks.run)
    assert run is not None
    assert run.machines[0].state == "made"
    assert run.machines[0].billed_until is None


@pytest.mark.parametrize("lag_s", [0, 20, 60, 115])
def test_an_intent_is_looked_for_as_long_as_reads_lag(
    cloud: MemoryCloud, session: Session, time: Time, lag_s: float
) -> None:
    """Killed between the call and its answer: the machine is found once it is shown, and ended."""
    spec = a_spec(regions=("here",))
    _, machine = cloud.resources_to_create(spec, spec.places[0])
    session.journal.open_run(spec, spec.max_usd, session.now())
    session.journal.intend(spec.marks.run, machine, session.now())
    _hide_what_is_made(cloud, time, lag_s)
    cloud.create(machine)
    end_run(session, spec.marks, ("here",))
    assert cloud.things == {}


@pytest.mark.parametrize("kind", [MACHINE, "key"])
def test_a_list_that_fails_for_ever_keeps_no_known_machine(
    cloud: MemoryCloud, session: Session, time: Time, kind: str
) -> None:
    """Every known id ends; what could not be listed is said (6), and the run is not ended yet."""
    done = _ready(session)
    fault = Fault(
        call="list_owned", kind=kind, error=ProviderError("HTTP 403: forbidden"), times=10**6
    )
    cloud.faults.append(fault)
    before_s = time.passed_s
    with pytest.raises(PartialError, match="forbidden"):
        end_run(session, done.marks, None)
    assert cloud.things == {}
    assert time.passed_s - before_s < 120
    run = session.journal.deployment(done.marks.run)
    assert run is not None
    assert run.state != "ended"
    cloud.faults.clear()
    end_run(session, done.marks, None)
    run = session.journal.deployment(done.marks.run)
    assert run is not None
    assert run.state == "ended"


def test_one_machine_that_refuses_stops_no_other(cloud: MemoryCloud, session: Session) -> None:
    """Of two machines the one that can be ended is; the key stays while a machine uses it."""
    done = launch(session, a_spec(count=2, regions=("here",)), None)
    destroy, stuck = cloud.destroy, done.machines[0].id

    def one_refuses(resource: Resource) -> bool:
        if resource.id == stuck:
            raise ProviderError("locked")
        return destroy(resource)

    cloud.destroy = one_refuses  # type: ignore[method-assign]
    with pytest.raises(PartialError, match=stuck):
        end_run(session, done.marks, None)
    assert [(k, i) for k, i in cloud.things if k == MACHINE] == [(MACHINE, stuck)]
    assert any(kind == "key" for kind, _ in cloud.things)


@pytest.mark.parametrize("lost", [1, 5, 10, 20])
@pytest.mark.parametrize("call", ["look", "list_owned"])
def test_lost_answers_in_a_row_end_no_launch(
    cloud: MemoryCloud, session: Session, call: str, lost: int
) -> None:
    """Two good machines stay, however many answers about them are lost on the way."""
    gone = UncertainError("connection reset")
    cloud.faults.append(Fault(call=call, kind=MACHINE, error=gone, times=lost))
    if call == "list_owned":  # which is asked after a lost answer to the create call
        cloud.faults.append(Fault(call="create", kind=MACHINE, error=gone, after=True))
    done = launch(session, a_spec(count=2, regions=("here", "there")), None)
    assert (done.state, done.region) == ("not-proved", "here")
    assert [one.kind for one in cloud.things.values()].count(MACHINE) == 2


def test_two_machines_of_one_name_are_told_and_the_second_ends(
    cloud: MemoryCloud, session: Session
) -> None:
    """An SDK that repeats the call makes two: the older stays, the other goes, both are written."""
    create, said = cloud.create, list[str]()

    def twice(creation: Creation) -> Resource:
        made = create(creation)
        if made.is_machine:
            create(creation)
            raise UncertainError("HTTP 503")
        return made

    cloud.create = twice  # type: ignore[method-assign]
    done = launch(replace(session, say=said.append), a_spec(regions=("here",)), None)
    assert [one.kind for one in cloud.things.values()].count(MACHINE) == 1
    assert any("made twice" in one for one in said)
    assert len({one.id for one in done.machines}) == 2


def test_reap_ends_the_second_machine_of_a_name(cloud: MemoryCloud, session: Session) -> None:
    """A live run with two machines of one name keeps the first."""
    done = _ready(session)
    (machine,) = done.machines
    twin = replace(cloud.things[MACHINE, machine.id], id="machine-9")
    cloud.things[MACHINE, twin.id] = twin
    (verdict,) = judge(session, survey(session), "ada", all_owners=False)
    carry_out(session, verdict)
    assert [key for kind, key in cloud.things if kind == MACHINE] == [machine.id]


@pytest.mark.parametrize("hours", [0, 0.5])
def test_a_survey_keeps_what_is_not_shown(
    cloud: MemoryCloud, session: Session, time: Time, hours: float
) -> None:
    """A young machine that reads do not show still burns; an old one is proved gone first."""
    done = _ready(session)
    (machine,) = done.machines
    time.passed_s += hours * 3600
    cloud.hidden.add(machine.id)
    seen = survey(session)
    run = session.journal.deployment(done.marks.run)
    assert run is not None
    if hours:  # so long after it was made a 404 again and again is the truth
        assert run.machines[0].state == "gone"
    else:
        assert run.machines[0].state == "made"
        assert "not shown" in seen.doubts[0]


def test_reap_keeps_what_is_not_shown(cloud: MemoryCloud, session: Session) -> None:
    """A live run whose machine no read shows is not closed, and its key is not an orphan."""
    done = _ready(session)
    cloud.hidden |= {one.id for one in done.machines}
    (verdict,) = judge(session, survey(session), "ada", all_owners=False)
    assert verdict.action == "keep"
    carry_out(session, verdict)
    assert len(cloud.things) == 2


def test_side_resources_stay_where_machines_could_not_be_listed(
    cloud: MemoryCloud, session: Session
) -> None:
    """A key without a listed machine is not an orphan while the machines cannot be listed."""
    spec = a_spec(regions=("here",))
    for creation in cloud.resources_to_create(spec, spec.places[0]):
        cloud.create(creation)
    fault = Fault(call="list_owned", kind=MACHINE, error=ProviderError("HTTP 500"), times=9)
    cloud.faults.append(fault)
    (verdict,) = judge(session, survey(session), "ada", all_owners=False)
    assert (verdict.action, verdict.why) == ("keep", "its machines could not be asked about")


def test_down_again_mends_a_journal_that_called_a_live_machine_gone(
    cloud: MemoryCloud, session: Session
) -> None:
    """What a journal says of an ended run is asked for once more: the machine ends."""
    done = _ready(session)
    (machine,) = done.machines
    session.journal.mark_gone(done.marks.run, machine, session.now())
    session.journal.mark_run(done.marks.run, "ended", session.now())
    cloud.hidden.add(machine.id)
    end_run(session, done.marks, None)
    assert cloud.things == {}
