"""What has happened to others, played here: each incident by its number."""

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from tests.chaos.trials import DOWN, LAUNCHES, LIST, REAP, Stage, stage
from tests.chaos.truth import Count, runs_of
from tests.chaos.wire import Ended, Trouble
from tests.providers.fakes.world import Denied, World

_LATE = World(list_lag_s=60, read_lag_s=60)
_MADE = {"digitalocean": "after POST /v2/droplets", "aws": "after RunInstances"}


@pytest.fixture(scope="module", params=["digitalocean", "aws"])
def here(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """An account of each provider, in a time of its own."""
    with stage(request.param) as one:
        yield one


def _launch(here: Stage, trouble: Trouble | None = None, kind: str = "1x GPU") -> Ended:
    return here.run(LAUNCHES[here.kind][kind], trouble)


def _just_made(here: Stage, world: World, kind: str = "1x GPU") -> Trouble:
    """Killed when the first machine was made, and before its answer was written down."""
    with here.trial(world):
        steps = _launch(here, kind=kind).steps
    return Trouble(kill_at=steps.index(_MADE[here.kind]))


def _clean(here: Stage) -> None:
    """The documented recovery ends all, says nothing untrue, and touches nothing else."""
    count = Count()
    here.recover(count)
    assert count.told == []


def test_a_failed_end_is_no_end_dstack_1551(here: Stage) -> None:
    """dstack#1551: an instance whose termination fails was marked as terminated."""
    with here.trial(World()):
        _launch(here)
        refused = Denied(kind="machine", calls="change", status=500, code="InternalError")
        here.account.app.world = World(denied=(refused,))
        assert here.run(DOWN).code != 0
        assert {run.state for run in runs_of(here.state)} != {"ended"}
        assert "0 machines" not in here.run(LIST).output
        here.account.app.world = World()
        _clean(here)


def test_a_machine_not_shown_yet_is_not_forgotten_skypilot_4431(here: Stage) -> None:
    """skypilot#4431: killed after the create call, refreshed before it shows, and leaked."""
    with_machine = _just_made(here, _LATE)
    with here.trial(_LATE):
        assert _launch(here, with_machine).was_killed
        count = Count()
        here.look(here.run(LIST), count)
        here.look(here.run(REAP), count)
        assert count.told == []
        here.time.sleep(120)
        _clean(here)


def test_an_accepted_end_that_does_nothing_skypilot_4433(here: Stage) -> None:
    """skypilot#4433, beside #4431 and #4443: a termination that silently fails was believed."""
    if here.kind != "digitalocean":
        pytest.skip("the stand-in of EC2 cannot accept an end and do nothing")
    with here.trial(World()):
        _launch(here)
        here.account.fault(path="/v2/droplets", method="DELETE", below=True, status=204)
        count = Count()
        here.look(here.run(DOWN), count)
        assert count.told == []
        _clean(here)


def test_the_first_of_two_machines_has_its_deadline_skypilot_2768(here: Stage) -> None:
    """skypilot#2768: the end was only set once every machine was up."""
    if here.kind != "aws":
        pytest.skip("a Droplet needs its token first; the preview says so")
    first = _just_made(here, World(), "two nodes")
    with here.trial(World()):
        assert _launch(here, first, "two nodes").was_killed
        count = Count()
        here.nobody(count, may_stay=False)
        assert count.told == []
        _clean(here)


def test_two_owners_are_two_skypilot_826(here: Stage, tmp_path: Path) -> None:
    """skypilot#826: identities of two computers collided, and so did what they owned."""
    with here.trial(World()):
        theirs = {"GPUCOST_OWNER": "王", "GPUCOST_STATE_DIR": str(tmp_path)}
        with mock.patch.dict("os.environ", theirs):
            assert _launch(here).code == 0
        before, _ = here.account.left()
        with mock.patch.dict("os.environ", {"GPUCOST_OWNER": "李"}):
            here.run(DOWN)
            here.run(REAP)
        assert here.account.left()[0] == before
        with mock.patch.dict("os.environ", theirs):
            assert here.run(DOWN).code == 0
        assert here.account.left() == ([], [])


@pytest.mark.parametrize("lag_s", [30, 60])
def test_no_second_machine_is_made_capa_2915(here: Stage, lag_s: int) -> None:
    """A new, healthy machine is "not found" by its id: neither given up nor made a second time.

    cluster-api-provider-aws#2915 made two, terraform-provider-digitalocean#378 gave it up.
    """
    with here.trial(World(list_lag_s=lag_s, read_lag_s=lag_s)):
        assert _launch(here).code == 0
        assert len(here.account.lives()) == 1
        assert len(here.account.left()[0]) == 1
        _clean(here)


def test_another_home_reaps_nothing_young_pydo_468(here: Stage, tmp_path: Path) -> None:
    """pydo#468: a new Droplet is missing from lists by tag, so its run looked like leftovers."""
    world = World(list_lag_s=60)
    trouble = _just_made(here, world)
    with here.trial(world):
        assert _launch(here, trouble).was_killed
        _, side = here.account.left()
        with mock.patch.dict("os.environ", {"GPUCOST_STATE_DIR": str(tmp_path)}):
            here.run(REAP)
            here.run((*REAP, "--all-owners"))
        machines, kept = here.account.left()
        assert len(machines) == 1
        assert kept == side
        _clean(here)


def test_a_region_denied_by_policy_cloud_resource_estimator_51(here: Stage) -> None:
    """cloud-resource-estimator#51: one region that a policy denies ended the whole run."""
    if here.kind != "aws":
        pytest.skip("DigitalOcean lists account-wide")
    denied = World(denied=(Denied(region="eu-west-1", calls="all"),))
    with here.trial(denied):
        assert _launch(here).code == 0
        ended = here.run(DOWN)
        assert here.account.left()[0] == []
        assert "eu-west-1" in ended.output or ended.code == 0
