"""DOKS over https, each exchange held against DigitalOcean's OpenAPI document."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pricing.errors import InputError, ProviderError
from providers.digitalocean.cloud import connect as connect_digitalocean
from providers.doks.cloud import DoksCloud, connect
from providers.interface import (
    NODE,
    Connection,
    LaunchSpec,
    Listing,
    NoCapacityError,
    NodePool,
    QuotaError,
    as_kept,
)
from providers.lifecycle.end import end_run
from providers.lifecycle.launch import launch
from providers.lifecycle.presence import survey
from providers.lifecycle.reap import judge
from providers.lifecycle.session import Clock, Patience, Session
from tests.providers.fakes.account import digitalocean_environment
from tests.providers.fakes.clusters import NAME
from tests.providers.fakes.digitalocean import DigitalOcean, Fault
from tests.providers.fakes.driven_time import driven_time
from tests.providers.fakes.world import NEVER, Denied, World
from tests.providers.launches import a_session, a_spec, an_offer
from tests.providers.pools.contract import PoolContract

SIZE = "gpu-b200x8-1440gb"


def a_pool(count: int = 1, **changes: Any) -> LaunchSpec:
    """A pool of GPU nodes for an hour."""
    pool = replace(NodePool(provider="doks", cluster=NAME), **changes)
    offer = an_offer("digitalocean", instance_type=SIZE)
    return a_spec(
        offer, count=count, pool=pool, self_destroy=False, public_key="", image="", ssh_from=()
    )


@pytest.fixture
def cloud(digitalocean: DigitalOcean) -> Iterator[DoksCloud]:
    """An account with a cluster, without anything of ours."""
    yield connect(Connection(environment=digitalocean_environment()))
    assert digitalocean.violations == []


@pytest.fixture
def session(cloud: DoksCloud, tmp_path: Path) -> Session:
    """A session with it that never waits."""
    return a_session(cloud, tmp_path / "state")


def launched(session: Session, spec: LaunchSpec) -> LaunchSpec:
    """The launch, made."""
    checked, _ = session.cloud.check(spec)
    launch(session, checked, None)
    return checked


class TestDoks(PoolContract):
    """The contract of every provider of pools."""

    @pytest.fixture
    def cloud(self, digitalocean: DigitalOcean) -> DoksCloud:
        """With nothing of ours."""
        assert digitalocean.estate.clusters.ours == {}
        return connect(Connection(environment=digitalocean_environment()))

    @pytest.fixture(params=[1, 2])
    def spec(self, request: pytest.FixtureRequest) -> LaunchSpec:
        """One or two nodes."""
        return a_pool(request.param)


def test_the_request_is_the_documented_one(cloud: DoksCloud, digitalocean: DigitalOcean) -> None:
    """The body has the size, the count, the autoscaler's limits, and marks as labels alone."""
    spec, notes = cloud.check(a_pool(2, min_nodes=1, max_nodes=4))
    (call,) = cloud.resources_to_create(spec, spec.places[0])
    made = cloud.create(call)
    (pool,) = digitalocean.estate.clusters.ours.values()
    told = pool.told
    assert (told["name"], told["size"], told["count"]) == (made.name, SIZE, 2)
    assert (told["auto_scale"], told["min_nodes"], told["max_nodes"]) == (True, 1, 4)
    assert told["labels"]["gpucost-run"] == spec.marks.run
    assert told["labels"]["gpucost-owner"] == "ada"
    assert [tag[:13] for tag in told["tags"] if "gpucost" in tag] == ["gpucost-until"]
    assert any("Droplets of the account are used" in note for note in notes)


def test_a_cluster_is_named_by_name_or_id(cloud: DoksCloud) -> None:
    """Both lead to the same call; another name is refused with those that there are."""
    spec, _ = cloud.check(a_pool())
    assert spec.pool is not None
    again, _ = cloud.check(a_pool(cluster=spec.pool.cluster_id))
    assert again.pool == spec.pool
    assert {place.region for place in spec.places} == {"nyc2"}
    with pytest.raises(InputError, match=r"no such cluster.*prod-1 \(nyc2\)"):
        cloud.check(a_pool(cluster="prod-2"))


def test_what_cannot_be_is_refused_before_anything_is_made(
    cloud: DoksCloud, digitalocean: DigitalOcean
) -> None:
    """No autoscaler to zero, no size that pools do not take, no more Droplets than are allowed."""
    with pytest.raises(InputError, match="--min 1"):
        cloud.check(a_pool(min_nodes=0, max_nodes=2))
    digitalocean.estate.droplet_limit = 0
    with pytest.raises(QuotaError):
        cloud.check(a_pool())
    digitalocean.estate.clusters.sizes = ("s-4vcpu-8gb",)
    with pytest.raises(NoCapacityError, match="takes no nodes of size"):
        cloud.check(a_pool())
    assert not [one for one in digitalocean.requests if not one.startswith("GET")]


@pytest.mark.parametrize("fault", [Fault(drop=True), Fault(status=502, after=True)], ids=str)
def test_a_lost_answer_is_found_by_name(
    session: Session, digitalocean: DigitalOcean, fault: Fault
) -> None:
    """The POST is sent once, and what it made is taken."""
    path = "/v2/kubernetes/clusters"
    digitalocean.faults.append(replace(fault, path=path, method="POST", below=True))
    launched(session, a_pool())
    posts = [one for one in digitalocean.requests if one.startswith("POST")]
    assert len(posts) == 1
    assert len(digitalocean.estate.clusters.ours) == 1


def test_nodes_that_never_start_leave_nothing(session: Session, digitalocean: DigitalOcean) -> None:
    """A pool whose nodes wait for ever is removed, and the message says how far it came."""
    digitalocean.estate.clusters.boot_reads = None
    with pytest.raises(ProviderError, match="0 of 1 nodes run"):
        launched(session, a_pool())
    assert digitalocean.estate.clusters.ours == {}
    assert all(died for _, died in digitalocean.estate.bills.values())


@pytest.mark.parametrize("hides", [False, True])
def test_the_end_is_proved_by_the_nodes(
    session: Session, digitalocean: DigitalOcean, *, hides: bool
) -> None:
    """A pool that is not shown any more is no proof: its Droplets are looked at until they go."""
    clusters = digitalocean.estate.clusters
    clusters.hides, clusters.end_reads = hides, 12
    spec = launched(session, a_pool(2))
    end_run(session, spec.marks, None)
    assert clusters.ours == {}
    assert all(died for _, died in digitalocean.estate.bills.values())


def scaled_to_three(session: Session, digitalocean: DigitalOcean) -> LaunchSpec:
    """A launch of one node, whose autoscaler has added two."""
    spec = launched(session, a_pool(1, min_nodes=1, max_nodes=3))
    clusters = digitalocean.estate.clusters
    (pool,) = clusters.ours.values()
    clusters.scale(pool, 3)
    return spec


def billed(session: Session, spec: LaunchSpec) -> int:
    """How many machines of the run have a bill in the journal."""
    run = session.journal.deployment(spec.marks.run)
    assert run is not None
    return len([machine for machine in run.machines if machine.billed_from])


def test_nodes_of_an_autoscaler_are_written_down_and_end(
    session: Session, digitalocean: DigitalOcean
) -> None:
    """A node that was added later gets its bill with the next survey, and goes with the pool."""
    spec = scaled_to_three(session, digitalocean)
    survey(session)
    assert billed(session, spec) == 3
    end_run(session, spec.marks, None)
    assert all(died for _, died in digitalocean.estate.bills.values())


def test_nodes_that_only_their_pool_shows_are_written_down(
    session: Session, digitalocean: DigitalOcean
) -> None:
    """Where no list shows anything yet, what the pool answers by its id has a bill all the same."""
    spec = scaled_to_three(session, digitalocean)
    digitalocean.world = World(list_lag_s=3600)
    seen = survey(session)
    assert len([owned for owned in seen.resources if owned.kind == NODE]) == 3
    assert billed(session, spec) == 3


def test_a_node_is_never_ended_alone(session: Session, digitalocean: DigitalOcean) -> None:
    """Its pool would replace it; the Droplet is deleted only where no pool of its run is there."""
    launched(session, a_pool())
    (node,) = [one for one in session.cloud.list_owned(None).resources if one.kind == NODE]
    assert session.cloud.destroy(node)
    ends = [one for one in digitalocean.requests if one.startswith("DELETE")]
    assert len(ends) == 1
    assert "/node_pools/" in ends[0]


def test_a_droplet_without_its_pool_is_found_and_ended(
    session: Session, digitalocean: DigitalOcean
) -> None:
    """A node that its pool has left behind has its bill ended by its own id."""
    spec = launched(session, a_pool())
    clusters = digitalocean.estate.clusters
    (key,) = clusters.ours
    del clusters.pools[key]
    end_run(session, spec.marks, None)
    assert all(died for _, died in digitalocean.estate.bills.values())


def test_a_young_node_of_a_pool_that_somebody_took_over_is_left(
    session: Session, digitalocean: DigitalOcean
) -> None:
    """It has no id of a Droplet yet, and its pool another name: by its own name it is theirs."""
    spec = launched(session, a_pool())
    (node,) = [one for one in session.cloud.list_owned(None).resources if one.kind == NODE]
    clusters = digitalocean.estate.clusters
    (key,) = clusters.ours
    clusters.pools[key].told |= {"name": "prod-2", "labels": {"env": "prod"}}
    for told in clusters.pools[key].told["nodes"]:
        told["droplet_id"] = ""
    entry = as_kept(node, datetime.now(UTC))
    answer = session.cloud.look(entry, spec.marks)
    assert not answer.is_ours
    assert "it is a node of a pool" in answer.why


@pytest.mark.parametrize(
    "world",
    [
        World(list_lag_s=60, read_lag_s=60),
        World(tag_lag_s=NEVER),
        World(end_lag_s=90),
        World(page_size=1, lost_page=1),
    ],
    ids=str,
)
def test_worlds_that_lag_leave_nothing(
    cloud: DoksCloud, digitalocean: DigitalOcean, tmp_path: Path, world: World
) -> None:
    """Late reads, lost labels, a page that no list tells: ready all the same, and ended."""
    with driven_time() as time:
        clock = Clock(now=lambda: datetime.now(UTC), sleep=time.sleep)
        session = a_session(cloud, tmp_path / "state", clock=clock, patience=Patience())
        checked, _ = cloud.check(a_pool())
        digitalocean.world = world
        assert launch(session, checked, None).state == "ready"
        end_run(session, checked.marks, None)
    assert digitalocean.estate.clusters.ours == {}
    assert all(died for _, died in digitalocean.estate.bills.values())


def test_a_foreign_pool_is_told_and_left(session: Session, digitalocean: DigitalOcean) -> None:
    """Named like ours, marked by nobody: a sentence, and no call that changes it."""
    pools = digitalocean.estate.clusters.pools
    (web,) = pools.values()
    told = web.told | {"id": str(uuid.uuid4()), "name": "gpucost-abcdefgh-pool"}
    pools[told["id"]] = replace(web, told=told)
    seen = survey(session)
    assert "left alone" in seen.strangers[0]
    assert judge(session, seen, "ada", all_owners=True) == ()


def test_a_token_without_the_right_sees_no_gap(
    cloud: DoksCloud, digitalocean: DigitalOcean, session: Session
) -> None:
    """Who may not look into clusters has made no pool; with one in the journal it is a gap."""
    digitalocean.world = World(denied=(Denied(kind="pool", calls="all"),))
    assert cloud.list_owned(None) == Listing()
    digitalocean.world = World()
    launched(session, a_pool())
    digitalocean.world = World(denied=(Denied(kind="pool", calls="all"),))
    seen = survey(session)
    assert any("could not be asked" in one for one in seen.doubts)
    assert [one.kind for one in seen.resources] == [NODE]


def test_reap_ends_a_pool_past_its_deadline(session: Session, digitalocean: DigitalOcean) -> None:
    """A pool cannot end itself, so whoever reaps does; a live one is kept."""
    spec = launched(session, a_pool())
    (kept,) = judge(session, survey(session), "ada", all_owners=False)
    assert kept.action == "keep"
    (pool,) = digitalocean.estate.clusters.ours.values()
    early = replace(spec.marks, deadline=spec.marks.deadline - timedelta(days=1))
    pool.told["labels"] = {f"gpucost-{name}": text for name, text in early.tags().items()}
    session.journal.extend_run(spec.marks.run, early.deadline, None, None, session.now())
    (late,) = judge(session, survey(session), "ada", all_owners=False)
    assert (late.action, late.why[:4]) == ("remove", "past")


def test_the_machines_of_the_account_are_others(
    session: Session, digitalocean: DigitalOcean
) -> None:
    """The provider of Droplets sees no machine of ours in the nodes of a pool."""
    launched(session, a_pool())
    droplets = connect_digitalocean(Connection(environment=digitalocean_environment()))
    assert droplets.list_owned(None) == Listing()
    assert digitalocean.estate.bills
