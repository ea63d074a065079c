"""What every provider of node pools must do: one class that each one's test inherits."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from pricing.errors import ProviderError
from providers.interface import (
    NODE,
    OUTSIDE,
    POOL,
    Cloud,
    JournaledResource,
    LaunchSpec,
    Listing,
    pool_name,
)
from providers.lifecycle.end import end_run
from providers.lifecycle.launch import launch
from providers.lifecycle.presence import survey
from providers.lifecycle.reap import carry_out, judge
from providers.ownership_tags import OwnershipTags
from tests.providers.launches import a_session


class PoolContract:
    """Inherit it and give two fixtures: `cloud`, without pools of ours, and `spec`, a launch."""

    @pytest.fixture
    def cloud(self) -> Cloud:
        """The provider, with a cluster and nothing of ours in it."""
        raise NotImplementedError

    @pytest.fixture
    def spec(self) -> LaunchSpec:
        """A node pool that the provider can make."""
        raise NotImplementedError

    def test_it_is_a_cloud(self, cloud: Cloud) -> None:
        """It has all that the lifecycle calls; pools end before their nodes are looked for."""
        assert isinstance(cloud, Cloud)
        assert cloud.kinds[:2] == (POOL, NODE)
        assert cloud.account() == cloud.account()

    def test_a_launch_is_one_call(self, cloud: Cloud, spec: LaunchSpec) -> None:
        """It makes the pool under the run's name; nothing exists yet, and nothing is said to."""
        checked, _ = cloud.check(spec)
        (call,) = cloud.resources_to_create(checked, checked.places[0])
        assert (call,) == cloud.resources_to_create(checked, checked.places[0])
        assert (call.kind, call.name) == (POOL, pool_name(spec.marks))
        assert cloud.list_owned(None) == Listing()
        assert cloud.termination_steps(checked)

    def test_what_is_made_is_found_by_its_marks(self, cloud: Cloud, spec: LaunchSpec) -> None:
        """The pool carries the run's marks, under the name and region of its creation."""
        checked, _ = cloud.check(spec)
        (call,) = cloud.resources_to_create(checked, checked.places[0])
        made = cloud.create(call)
        assert (made.kind, made.name, made.region) == (call.kind, call.name, call.region)
        assert made.marks == spec.marks
        (listed,) = cloud.list_owned(None, (POOL,)).resources
        assert (listed.id, listed.marks) == (made.id, spec.marks)
        assert (listed.name, listed.region) == (call.name, call.region)

    def test_up_and_down(self, cloud: Cloud, spec: LaunchSpec, tmp_path: Path) -> None:
        """Ready means that the nodes run; the end leaves no pool, no node and a bill of each."""
        session = a_session(cloud, tmp_path)
        checked, _ = cloud.check(spec)
        done = launch(session, checked, None)
        assert done.state == "ready"
        assert len(done.machines) == spec.count
        assert all(one.billed_from for one in done.machines)
        assert done.pool is not None
        end_run(session, done.marks, None)
        assert cloud.list_owned(None, None, {spec.marks.run: spec.marks}) == Listing()
        ended = session.journal.deployment(spec.marks.run)
        assert ended is not None
        assert ended.state == "ended"
        assert {one.state for one in ended.resources} == {"gone"}
        assert all(one.billed_until for one in ended.machines)
        assert end_run(session, spec.marks, None) == 0

    def test_a_look_is_only_at_our_own(
        self, cloud: Cloud, spec: LaunchSpec, tmp_path: Path
    ) -> None:
        """An id that another run's resource has is not ours; one that nothing has is not there."""
        checked, _ = cloud.check(spec)
        done = launch(a_session(cloud, tmp_path), checked, None)
        stranger = replace(spec.marks, run="stranger")
        for one in done.resources:
            assert _state(cloud, one, spec.marks) == "present"
            assert _state(cloud, one, stranger) != "present"
            assert _state(cloud, replace(one, id=_absent(one)), spec.marks) != "present"

    def test_a_later_deadline_is_what_others_see(
        self, cloud: Cloud, spec: LaunchSpec, tmp_path: Path
    ) -> None:
        """Marks with a later deadline count for the pool and its nodes, asked for twice, too."""
        session = a_session(cloud, tmp_path)
        checked, _ = cloud.check(spec)
        launch(session, checked, None)
        before = cloud.list_owned(None).resources
        later = replace(spec.marks, deadline=spec.marks.deadline + timedelta(hours=2))
        for one in (*before, *before):
            assert cloud.mark(one, later) == ()
        found = cloud.list_owned(None).resources
        assert {one.marks.deadline for one in found} == {later.deadline}
        assert {one.id for one in found} == {one.id for one in before}

    def test_reap_with_an_empty_journal_adopts_what_lives(
        self, cloud: Cloud, spec: LaunchSpec, tmp_path: Path
    ) -> None:
        """A pool inside its deadline that no journal knows is kept and written down with nodes."""
        checked, _ = cloud.check(spec)
        launch(a_session(cloud, tmp_path / "lost"), checked, None)
        session = a_session(cloud, tmp_path / "empty")
        (verdict,) = judge(session, survey(session), "ada", all_owners=False)
        assert verdict.action == "adopt"
        carry_out(session, verdict)
        adopted = session.journal.deployment(spec.marks.run)
        assert adopted is not None
        assert adopted.state == ("not-proved" if OUTSIDE in cloud.kinds else "ready")
        assert len(adopted.machines) == spec.count
        end_run(session, spec.marks, None)
        assert cloud.list_owned(None, None, {spec.marks.run: spec.marks}) == Listing()


def _state(cloud: Cloud, one: JournaledResource, marks: OwnershipTags) -> str:
    """What a look at an id says; not-asked where there is no answer."""
    try:
        return cloud.look(one, marks).state
    except ProviderError:
        return "not-asked"


def _absent(one: JournaledResource) -> str:
    """An id of the same form that nothing has."""
    last = "0" if one.id[-1] != "0" else "1"
    return "9" * len(one.id) if one.id.isdigit() else one.id[:-1] + last
