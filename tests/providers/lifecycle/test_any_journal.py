"""Any prefix of a journal's writes, with any true state of the provider, recovers to one end."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pricing.errors import GpucostError, ProviderError
from providers.interface import (
    MACHINE,
    LaunchSpec,
    NoCapacityError,
    Resource,
    ThrottledError,
    UncertainError,
)
from providers.journal.journal import Journal
from providers.lifecycle.end import end_run
from providers.lifecycle.extend import extend, plan_extension
from providers.lifecycle.launch import launch
from providers.lifecycle.presence import survey
from providers.lifecycle.reap import carry_out, judge
from providers.lifecycle.session import Session
from providers.ownership_tags import OwnershipTags
from tests.providers.fakes.driven_time import driven_time
from tests.providers.fakes.memory import Fault, MemoryCloud
from tests.providers.launches import a_session, a_spec

_WRITES = (
    "open_run",
    "adopt_run",
    "place_run",
    "extend_run",
    "mark_run",
    "intend",
    "record",
    "refuse",
    "mark_gone",
    "note",
)
_STATES = ("starting", "running", "ending")
_NO_ROOM = NoCapacityError("no capacity")
_LOST = UncertainError("connection reset")
FAULTS: dict[str, tuple[Fault, ...]] = {
    "all goes well": (),
    "the second place": (Fault(call="create", kind=MACHINE, error=_NO_ROOM, region="here"),),
    "no place": (Fault(call="create", kind=MACHINE, error=_NO_ROOM, times=9),),
    "a lost answer": (Fault(call="create", kind=MACHINE, error=_LOST, after=True),),
    "an answer lost for nothing": (Fault(call="create", kind=MACHINE, error=_LOST),),
    "a refused key": (Fault(call="create", kind="key", error=ProviderError("HTTP 422")),),
    "throttled": (Fault(call="create", kind=MACHINE, error=ThrottledError("HTTP 429")),),
    "an end that fails once": (Fault(call="destroy", error=ProviderError("HTTP 500")),),
}
"""What goes wrong in each story of a launch of two machines and its end."""

Write = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A launch of two machines, its later deadline, and its end by another computer's journal.

    Attributes:
        spec: the launch.
        writes: what the journal was told, in order.
        made: whatever was at the provider on the way.
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
def _story(name: str, *, is_adopted: bool) -> Story:
    cloud, writes = MemoryCloud(faults=list(FAULTS[name])), list[Write]()
    spec, made = a_spec(count=2, regions=("here", "there")), dict[str, Resource]()
    create = cloud.create

    def kept(creation: Any) -> Resource:
        try:
            return create(creation)
        finally:
            made.update((one.id, one) for one in cloud.things.values())

    cloud.create = kept  # type: ignore[method-assign]
    with TemporaryDirectory() as folder, driven_time():
        session = a_session(cloud, Path(folder) / "first")
        with _listened([] if is_adopted else writes), suppress(GpucostError):
            run = launch(session, spec, None)
            half = plan_extension(session, run, Decimal(1800), Decimal(0), ends_itself=False)
            extend(session, half, None)
        if is_adopted:
            session = a_session(cloud, Path(folder) / "second")
        with _listened(writes):
            if is_adopted:
                _reap(session, spec.marks.owner)
            end_run(session, spec.marks, None)
    return Story(spec=spec, writes=tuple(writes), made=tuple(made.values()))


def _reap(session: Session, owner: str) -> None:
    for verdict in judge(session, survey(session), owner, all_owners=False):
        carry_out(session, verdict)


def test_every_write_of_a_journal_is_in_a_story() -> None:
    """What writes is in the list above, and each of them happens in some story."""
    does = ("self._writing(", "self._add(", "self._change(", "self._change_lines(")
    public = (one for one in vars(Journal).items() if not one[0].startswith("_"))
    writing = {
        name
        for name, value in public
        if inspect.isfunction(value) and any(word in inspect.getsource(value) for word in does)
    }
    assert writing == set(_WRITES)
    stories = (_story(name, is_adopted=adopted) for name in FAULTS for adopted in (False, True))
    assert {write for story in stories for write, _ in story.writes} == writing


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A true state of the provider, as whoever recovers finds it.

    Attributes:
        there: of what the story made.
        state: of its machines.
        has_twin: a machine was made twice.
        is_hidden: no read shows anything yet.
        faults: of the calls of the first recovery.
    """

    there: tuple[Resource, ...]
    state: str
    has_twin: bool
    is_hidden: bool
    faults: tuple[Fault, ...]


@st.composite
def _founds(draw: st.DrawFn, made: tuple[Resource, ...]) -> Found:
    broken = st.builds(
        Fault,
        call=st.sampled_from(("list_owned", "look", "destroy", "account")),
        error=st.sampled_from((ProviderError("HTTP 403"), _LOST)),
        kind=st.sampled_from(("", MACHINE, "key")),
        after=st.booleans(),
        times=st.integers(1, 20),
    )
    return Found(
        there=tuple(draw(st.lists(st.sampled_from(made), unique=True))) if made else (),
        state=draw(st.sampled_from(_STATES)),
        has_twin=draw(st.booleans()),
        is_hidden=draw(st.booleans()),
        faults=tuple(draw(st.lists(broken, max_size=3))),
    )


def _as_found(found: Found, spec: LaunchSpec) -> tuple[MemoryCloud, Resource]:
    """The provider in that state, and what there is of somebody else's."""
    cloud = MemoryCloud(faults=list(found.faults))
    for one in found.there:
        cloud.things[one.kind, one.id] = (
            replace(one, state=found.state) if one.is_machine else one  # type: ignore[arg-type] # one of State
        )
    machine = next((one for one in found.there if one.is_machine), None)
    if found.has_twin and machine is not None:
        cloud.things[machine.kind, "machine-99"] = replace(machine, id="machine-99")
    if found.is_hidden:
        cloud.hidden.update(one.id for one in found.there)
    hers = OwnershipTags(run="evesrun1", deadline=spec.marks.deadline, owner="eve", plan="hers")
    foreign = Resource(kind=MACHINE, id="hers", name=hers.name("1"), region="here", marks=hers)
    cloud.things[foreign.kind, foreign.id] = foreign
    return cloud, foreign


@pytest.mark.parametrize("is_adopted", [False, True], ids=["own journal", "adopted"])
@pytest.mark.parametrize("name", FAULTS)
@settings(max_examples=settings().max_examples // 4, deadline=None)
@given(data=st.data())
def test_any_prefix_and_any_world_recover_to_one_end(
    data: st.DataObject, name: str, *, is_adopted: bool
) -> None:
    """Nothing of the run is left, another's is untouched, the journal holds nothing open."""
    story = _story(name, is_adopted=is_adopted)
    owner = story.spec.marks.owner
    writes = story.writes[: data.draw(st.integers(0, len(story.writes)), label="writes")]
    found = data.draw(_founds(story.made), label="found")
    cloud, foreign = _as_found(found, story.spec)
    with TemporaryDirectory() as folder, driven_time() as time:
        session = a_session(cloud, Path(folder))
        for write, told in writes:
            getattr(session.journal, write)(*told)
        with suppress(GpucostError):
            _reap(session, owner)
        assert cloud.things[foreign.kind, foreign.id] == foreign
        cloud.hidden.clear()
        cloud.faults.clear()
        time.sleep(timedelta(hours=2).total_seconds())
        _reap(session, owner)
        _reap(session, owner)
        assert list(cloud.things.values()) == [foreign]
        runs = session.journal.deployments()
        assert {run.state for run in runs} <= {"ended"}
        left = {one.state for run in runs for one in run.resources}
        assert left <= {"gone", "refused"}
        assert all(one.billed_until for run in runs for one in run.machines if one.billed_from)
        calls = len(cloud.calls)
        _reap(session, owner)
        assert len(cloud.calls) == calls
        session.journal.close()
