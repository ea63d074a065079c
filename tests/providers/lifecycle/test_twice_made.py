"""Machines that were made twice: a 429 after the work, a proxy that doubles, lists that lag."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pricing.errors import PartialError
from providers.interface import (
    Creation,
    ExistenceCheck,
    JournaledResource,
    Listing,
    Resource,
    ThrottledError,
)
from providers.lifecycle.end import duplicates, end_run
from providers.lifecycle.launch import launch
from providers.lifecycle.presence import survey
from providers.lifecycle.reap import carry_out, judge
from providers.lifecycle.session import Session
from providers.ownership_tags import OwnershipTags
from tests.providers.fakes.memory import Fault, MemoryCloud
from tests.providers.launches import a_session, a_spec


@pytest.fixture
def cloud() -> MemoryCloud:
    """An empty provider."""
    return MemoryCloud()


@pytest.fixture
def session(cloud: MemoryCloud, tmp_path: Path) -> Session:
    """A session that never waits."""
    return a_session(cloud, tmp_path)


def _machines(cloud: MemoryCloud) -> list[str]:
    return [one.id for one in cloud.things.values() if one.is_machine]


def _known(session: Session, run: str) -> list[str]:
    deployment = session.journal.deployment(run)
    assert deployment is not None
    return [machine.id for machine in deployment.machines if machine.state == "made"]


def test_a_429_after_the_work_is_looked_into(cloud: MemoryCloud, session: Session) -> None:
    """What the throttled call has made is taken, and nothing is made again."""
    cloud.faults.append(Fault(call="create", kind="machine", error=_busy(), times=1, after=True))
    spec = a_spec(regions=("here",))
    launch(session, spec, None)
    assert _known(session, spec.marks.run) == _machines(cloud)
    assert len(_machines(cloud)) == 1


@pytest.mark.parametrize("shown_after", [1, 3])
def test_a_429_after_the_work_that_is_shown_late(
    cloud: MemoryCloud, session: Session, monkeypatch: pytest.MonkeyPatch, shown_after: int
) -> None:
    """The list shows the first one after the second was made: before `ready` one of them ends."""
    cloud.faults.append(Fault(call="create", kind="machine", error=_busy(), times=1, after=True))
    looks, listed = [0], cloud.list_owned

    def late(*words: Any) -> Listing:
        looks[0] += 1
        cloud.hidden = {"machine-2"} if looks[0] <= shown_after else set()
        return listed(*words)

    monkeypatch.setattr(cloud, "list_owned", late)
    spec = a_spec(regions=("here",))
    launch(session, spec, None)
    for _ in range(3):
        for verdict in judge(session, survey(session), "ada", all_owners=False):
            carry_out(session, verdict)
    assert len(_machines(cloud)) == 1
    assert _machines(cloud)[0] in _known(session, spec.marks.run)


def test_throttled_to_the_end_leaves_nothing(cloud: MemoryCloud, session: Session) -> None:
    """Each call was refused and did its work, out of sight for a while: all of them end."""
    cloud.faults.append(Fault(call="create", kind="machine", error=_busy(), times=9, after=True))
    cloud.hidden = {f"machine-{number}" for number in range(9)}
    spec = a_spec(regions=("here",))

    def shown(_: float) -> None:
        cloud.hidden = set()

    with pytest.raises(ThrottledError):
        launch(replace(session, clock=replace(session.clock, sleep=_after(8, shown))), spec, None)
    assert _machines(cloud) == []


def _after(count: int, act: object) -> object:
    calls = [0]

    def sleep(seconds: float) -> None:
        calls[0] += 1
        if calls[0] > count:
            act(seconds)  # type: ignore[operator]

    return sleep


def test_a_doubled_call_is_told_and_ended(
    cloud: MemoryCloud, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy sends each create twice: the one that the journal knows stays, and it alone."""
    create = cloud.create

    def twice(creation: Creation) -> Resource:
        if creation.kind == "machine":
            create(creation)
        return create(creation)

    monkeypatch.setattr(cloud, "create", twice)
    spec = a_spec(regions=("here",))
    launch(session, spec, None)
    assert _machines(cloud) == ["machine-3"], "the first is the older, and nobody knows its id"
    survey(session)  # sees that the end of the other one is done
    assert _known(session, spec.marks.run)[0] == "machine-3"


def test_a_second_machine_burns_in_the_list(cloud: MemoryCloud, session: Session) -> None:
    """One that appears after the launch is written down as it is seen, so `list` counts it."""
    spec = a_spec(regions=("here",))
    launch(session, spec, None)
    ((key, first),) = [(k, one) for k, one in cloud.things.items() if one.is_machine]
    second = replace(first, id="machine-9", created_at=None)
    cloud.things[key[0], second.id] = second
    survey(session)
    assert _known(session, spec.marks.run) == [first.id, "machine-9"]
    deployment = session.journal.deployment(spec.marks.run)
    assert [one.id for one in duplicates((second, first), deployment)] == ["machine-9"]


def test_what_somebody_took_over_is_asked_about(
    cloud: MemoryCloud, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal's id with another's name and no mark of ours: left; ended once that is said."""
    spec = a_spec(regions=("here",))
    launch(session, spec, None)

    def renamed(entry: JournaledResource, _: OwnershipTags) -> ExistenceCheck:
        thing = cloud.things.get((entry.kind, entry.id))
        if thing is None:
            return ExistenceCheck.not_shown("no such id")
        return ExistenceCheck.identified(replace(thing, name="prod-db-2"), None)

    monkeypatch.setattr(cloud, "look", renamed)
    monkeypatch.setattr(cloud, "_list", lambda *_: Listing())
    asked: list[str] = []
    with pytest.raises(PartialError, match="prod-db-2"):
        end_run(session, spec.marks, None)
    assert len(_machines(cloud)) == 1

    def yes(machine: str) -> bool:
        asked.append(machine)
        return True

    end_run(replace(session, may_end=yes), spec.marks, None)
    assert "it is called 'prod-db-2' now and carries no mark" in asked[0]
    assert _machines(cloud) == []


def _busy() -> ThrottledError:
    return ThrottledError("HTTP 429")
