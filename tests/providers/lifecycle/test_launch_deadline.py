"""A launch stays inside its deadline and its cap, whatever the clocks say."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pricing.errors import RefusedError
from providers.interface import Creation, NoCapacityError, Resource, ThrottledError
from providers.journal.ledger import usd_for
from providers.lifecycle.launch import launch
from providers.lifecycle.session import Clock, Session
from providers.ownership_tags import new_run
from tests.providers.fakes.memory import Fault, MemoryCloud
from tests.providers.launches import PENDING, READY, Said, a_session, a_spec

BOTH = ("here", "there")


@pytest.fixture
def cloud() -> MemoryCloud:
    """An empty provider."""
    return MemoryCloud()


@pytest.fixture
def session(cloud: MemoryCloud, tmp_path: Path) -> Session:
    """A session that never waits."""
    return a_session(cloud, tmp_path)


def _late(session: Session, sleeps: int) -> Session:
    """A computer that sleeps for three hours at its so many-th pause."""
    asleep: list[float] = []

    def sleep(_: float) -> None:
        asleep.append(3 * 3600 if len(asleep) + 1 == sleeps else 0)

    def now() -> datetime:
        return datetime.now(UTC) + timedelta(seconds=sum(asleep))

    return replace(session, clock=Clock(now=now, sleep=sleep))


@pytest.mark.parametrize("sleeps", [1, 2, 3, 4])
def test_a_computer_that_slept_makes_nothing_after_the_deadline(
    cloud: MemoryCloud, session: Session, sleeps: int
) -> None:
    """Wherever it sleeps, it makes no machine when it wakes too late, and ends what it made."""
    slow = ThrottledError("slow down")
    cloud.faults.append(Fault(call="create", kind="machine", error=slow, times=2))
    with pytest.raises(RefusedError, match="did this computer sleep"):
        launch(_late(session, sleeps), a_spec(regions=BOTH), Said(PENDING, PENDING, READY))
    assert cloud.things == {}
    assert sum(call.startswith("create machine") for call in cloud.calls) <= 3


def test_what_failed_places_cost_counts_towards_the_cap(
    cloud: MemoryCloud, session: Session
) -> None:
    """A machine that was made and had to go is on the bill; the next place must fit beside it."""
    full = NoCapacityError("nothing here")
    fault = Fault(call="create", kind="machine", error=full, region="here")
    spec = a_spec(count=2, regions=BOTH)
    cap = usd_for(spec.places[0].offer, 2, spec.ttl_s, session.now())
    create, calls = cloud.create, []

    def second_fails(creation: Creation) -> Resource:
        calls.append(creation.kind)
        if calls.count("machine") == 2 and creation.region == "here":
            raise fault.error
        return create(creation)

    cloud.create = second_fails  # type: ignore[method-assign]
    with pytest.raises(NoCapacityError, match="places before it have cost"):
        launch(session, replace(spec, max_usd=cap), None)
    assert cloud.things == {}
    calls.clear()
    again = replace(spec, marks=replace(spec.marks, run=new_run()), max_usd=cap + 4)
    assert launch(session, again, None).region == "there"


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_creation_time_by_another_clock_is_no_bill(
    cloud: MemoryCloud, session: Session, hours: int
) -> None:
    """A machine dated three hours off is billed from the intent on, and that is said."""
    create = cloud.create

    def dated(creation: Creation) -> Resource:
        made = create(creation)
        born = made.created_at
        return made if born is None else replace(made, created_at=born + timedelta(hours=hours))

    cloud.create = dated  # type: ignore[method-assign]
    said: list[str] = []
    done = launch(replace(session, say=said.append), a_spec(regions=("here",)), None)
    assert any("its own clock says" in text for text in said)
    (machine,) = done.machines
    assert machine.billed_from == machine.intended_at
