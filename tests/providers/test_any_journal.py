"""Any prefix of a journal's writes, with any true state of the provider, recovers to one end."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from providers.in_memory import MemoryCloud
from providers.interface import LaunchSpec, Resource
from providers.lifecycle.end import end_run
from providers.lifecycle.journal import Journal
from providers.lifecycle.launch import launch
from providers.lifecycle.reap import carry_out, judge
from providers.lifecycle.session import Session
from providers.lifecycle.survey import survey
from providers.ownership_tags import Marks
from tests.providers.fakes.driven_time import driven_time
from tests.providers.launches import a_session, a_spec

_WRITES = ("open_run", "place_run", "mark_run", "intend", "record", "refuse", "gone", "note")
_STATES = ("starting", "running", "ending")
Write = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A launch of two machines and its end.

    Attributes:
        spec: the launch.
        writes: what the journal was told, in order.
        made: what was at the provider in between.
    """

    spec: LaunchSpec
    writes: tuple[Write, ...]
    made: tuple[Resource, ...]


@contextmanager
def _listened(writes: list[Write]) -> Iterator[None]:
    """Note every write of a journal, and do it."""

    def noting(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def write(self: Journal, *told: Any) -> Any:
            writes.append((name, told))
            return real(self, *told)

        return write

    found = {name: noting(name, getattr(Journal, name)) for name in _WRITES}
    with mock.patch.multiple(Journal, **found):
        yield


@cache
def _story() -> Story:
    cloud, writes = MemoryCloud(), list[Write]()
    spec = a_spec(count=2, regions=("here",))
    with TemporaryDirectory() as folder, driven_time(), _listened(writes):
        session = a_session(cloud, Path(folder))
        launch(session, spec, None)
        made = tuple(cloud.things.values())
        end_run(session, spec.marks, None)
    return Story(spec=spec, writes=tuple(writes), made=made)


def _reap(session: Session) -> None:
    for verdict in judge(session, survey(session), session_owner(), all_owners=False):
        carry_out(session, verdict)


def session_owner() -> str:
    """Who launches in these tests."""
    return _story().spec.marks.owner


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_any_prefix_and_any_world_recover_to_one_end(data: st.DataObject) -> None:
    """Nothing of the run is left, another's is untouched, the journal holds nothing open."""
    story = _story()
    writes = story.writes[: data.draw(st.integers(0, len(story.writes)), label="writes")]
    there = data.draw(st.lists(st.sampled_from(story.made), unique=True), label="there")
    state = data.draw(st.sampled_from(_STATES), label="state")
    twin = data.draw(st.booleans(), label="a machine was made twice")
    hidden = data.draw(st.booleans(), label="reads lag")
    cloud = MemoryCloud(hidden={one.id for one in there} if hidden else set())
    for one in there:
        cloud.things[one.kind, one.id] = replace(one, state=state if one.is_machine else one.state)
    machine = next((one for one in there if one.is_machine), None)
    if twin and machine is not None:
        cloud.things[machine.kind, "machine-99"] = replace(machine, id="machine-99")
    hers = Marks(run="evesrun1", deadline=story.spec.marks.deadline, owner="eve", plan="hers")
    foreign = replace(story.made[0], id="hers", marks=hers)
    cloud.things[foreign.kind, foreign.id] = foreign
    with TemporaryDirectory() as folder, driven_time() as time:
        session = a_session(cloud, Path(folder))
        for name, told in writes:
            getattr(session.journal, name)(*told)
        _reap(session)
        cloud.hidden.clear()
        time.sleep(timedelta(hours=2).total_seconds())
        _reap(session)
        _reap(session)
        assert list(cloud.things.values()) == [foreign]
        runs = session.journal.deployments()
        assert {run.state for run in runs} <= {"ended"}
        left = {one.state for run in runs for one in run.resources}
        assert left <= {"gone", "refused", "intended"}
        assert not any(one.state == "made" for run in runs for one in run.machines)
        assert all(one.billed_until for run in runs for one in run.machines if one.billed_from)
        calls = len(cloud.calls)
        _reap(session)
        assert len(cloud.calls) == calls
        session.journal.close()
