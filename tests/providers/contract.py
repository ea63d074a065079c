"""What every provider must do, whichever it is: one class that each provider's test inherits."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from pricing.errors import ProviderError
from providers.interface import MACHINE, Cloud, JournaledResource, LaunchSpec, Listing
from providers.lifecycle.end import end_run
from providers.lifecycle.launch import launch
from providers.lifecycle.presence import survey
from providers.lifecycle.reap import carry_out, judge
from providers.ownership_tags import OwnershipTags
from tests.providers.launches import a_session


class CloudContract:
    """Inherit it and give two fixtures: `cloud`, an empty account, and `spec`, a launch on it."""

    @pytest.fixture
    def cloud(self) -> Cloud:
        """The provider, with nothing of ours on it."""
        raise NotImplementedError

    @pytest.fixture
    def spec(self) -> LaunchSpec:
        """A launch that the provider can do."""
        raise NotImplementedError

    def test_it_is_a_cloud(self, cloud: Cloud) -> None:
        """It has all that the lifecycle calls."""
        assert isinstance(cloud, Cloud)
        assert cloud.skew_s == pytest.approx(0.0, abs=5)
        assert cloud.account() == cloud.account()

    def test_the_calls_of_a_launch_are_pure_and_unique(
        self, cloud: Cloud, spec: LaunchSpec
    ) -> None:
        """Each creation has a name of its own; the last are the machines; nothing exists yet."""
        checked, _ = cloud.check(spec)
        found = cloud.resources_to_create(checked, checked.places[0])
        assert found == cloud.resources_to_create(checked, checked.places[0])
        assert len({(one.kind, one.name) for one in found}) == len(found)
        assert [one.name for one in found if one.kind == MACHINE] == list(spec.machine_names)
        assert found[-1].kind == MACHINE
        assert cloud.list_owned(None) == Listing()
        assert cloud.termination_steps(checked)

    def test_what_is_made_is_found_by_its_marks(self, cloud: Cloud, spec: LaunchSpec) -> None:
        """Every resource carries the run's marks, under the name and region of its creation."""
        checked, _ = cloud.check(spec)
        creations = cloud.resources_to_create(checked, checked.places[0])
        made = [cloud.create(creation) for creation in creations]
        listed = cloud.list_owned(None).resources
        assert {one.marks for one in listed} == {spec.marks}
        wanted = {(one.kind, one.name, one.region) for one in creations}
        assert wanted <= {(one.kind, one.name, one.region) for one in listed}
        assert wanted == {(one.kind, one.name, one.region) for one in made}
        assert {one.id for one in made} <= {one.id for one in listed}

    def test_a_look_is_only_at_our_own(
        self, cloud: Cloud, spec: LaunchSpec, tmp_path: Path
    ) -> None:
        """An id that another run's resource has is not ours; one that nothing has is not there."""
        done = launch(a_session(cloud, tmp_path), spec, None)
        stranger = OwnershipTags(**{**_fields(spec.marks), "run": "stranger"})
        for one in done.resources:
            assert _state(cloud, one, spec.marks) == "present"
            assert _state(cloud, one, stranger) != "present"
            assert _state(cloud, replace(one, id=_absent(one)), spec.marks) != "present"

    def test_plan_to_ready_to_down(self, cloud: Cloud, spec: LaunchSpec, tmp_path: Path) -> None:
        """A launch has all its machines, of which nothing is proved, and its end leaves nothing."""
        session = a_session(cloud, tmp_path)
        checked, _ = cloud.check(spec)
        done = launch(session, checked, None)
        assert done.state == "not-proved"
        assert len(done.machines) == spec.count
        rented = checked.places[0].offer is not None
        assert all(one.address for one in done.machines)
        assert all(one.billed_from for one in done.machines if rented)
        end_run(session, done.marks, None)
        assert cloud.list_owned(None) == Listing()
        ended = session.journal.deployment(spec.marks.run)
        assert ended is not None
        assert ended.state == "ended"
        assert {one.state for one in ended.resources} == {"gone"}
        assert all(one.billed_until for one in ended.machines if rented)

    def test_ending_twice_is_ending_once(
        self, cloud: Cloud, spec: LaunchSpec, tmp_path: Path
    ) -> None:
        """What is gone can be destroyed again without an error; no yes is told for a side resource.

        A yes is taken for the proof of an end, so an id that is unknown must not get one.
        """
        session = a_session(cloud, tmp_path)
        checked, _ = cloud.check(spec)
        launch(session, checked, None)
        there = cloud.list_owned(None).resources
        end_run(session, spec.marks, None)
        for one in there:
            assert not cloud.destroy(one) or one.is_machine
        assert end_run(session, spec.marks, None) == 0

    def test_a_later_deadline_is_what_others_see(
        self, cloud: Cloud, spec: LaunchSpec, tmp_path: Path
    ) -> None:
        """Marks with a later deadline count, asked for twice, too; all of them go with the run."""
        session = a_session(cloud, tmp_path)
        checked, _ = cloud.check(spec)
        launch(session, checked, None)
        later = replace(spec.marks, deadline=spec.marks.deadline + timedelta(hours=2))
        for machine in cloud.list_owned(None, (MACHINE,)).resources:
            for made in (*cloud.mark(machine, later), *cloud.mark(machine, later)):
                session.journal.record(made, session.now())
        found = cloud.list_owned(None, (MACHINE,)).resources
        assert {one.marks.deadline for one in found} == {later.deadline}
        assert {cloud.self_termination_problem(one) for one in found} == {""}
        end_run(session, spec.marks, None)
        assert cloud.list_owned(None) == Listing()

    def test_reap_with_an_empty_journal_adopts_what_lives(
        self, cloud: Cloud, spec: LaunchSpec, tmp_path: Path
    ) -> None:
        """A live machine inside its deadline that no journal knows is kept and written down."""
        checked, _ = cloud.check(spec)
        launch(a_session(cloud, tmp_path / "lost"), checked, None)
        session = a_session(cloud, tmp_path / "empty")
        (verdict,) = judge(session, survey(session), "ada", all_owners=False)
        assert verdict.action == "adopt"
        carry_out(session, verdict)
        adopted = session.journal.deployment(spec.marks.run)
        assert adopted is not None
        assert len(adopted.machines) == spec.count
        end_run(session, spec.marks, None)
        assert cloud.list_owned(None) == Listing()


def _fields(marks: OwnershipTags) -> dict[str, object]:
    return {name: getattr(marks, name) for name in ("run", "deadline", "owner", "plan")}


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
