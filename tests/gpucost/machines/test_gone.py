"""`list`, `down`, `reap` where a provider is silent, lags or has lost its tags."""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.gpucost.conftest import Call
from tests.gpucost.launching import prepare
from tests.providers.fakes.account import REAPER, a_digitalocean, an_aws
from tests.providers.fakes.aws_account import AwsAccount, AwsFault
from tests.providers.fakes.digitalocean import DigitalOcean, Fault
from tests.providers.fakes.world import NEVER, World

SIZE = "gpu-h100x8-640gb"
LAUNCH = ("provision", "--type", f"digitalocean/{SIZE}", "--ttl", "2h", "--yes", "--allow-stale")
ON_AWS = ("provision", "--type", "aws/g6.xlarge/us-east-1", "--ttl", "2h", "--yes", "-f", "json")


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Reach this machine only."""
    prepare(monkeypatch, tmp_path)


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DigitalOcean]:
    """A DigitalOcean that sells the size, and a token for its machines."""
    monkeypatch.setenv("GPUCOST_DIGITALOCEAN_REAPER_TOKEN", REAPER)
    with a_digitalocean(tmp_path, monkeypatch) as fake:
        for size in fake.sizes:
            if size["slug"] == SIZE:
                size["regions"] = ["nyc2", "tor1"]
        yield fake


@pytest.fixture
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsAccount]:
    """An account that may have 400 vCPUs, and today's price."""
    with an_aws(tmp_path, monkeypatch) as fake:
        fake.quota = 400.0
        fake.prices.on_demand = [("g6.xlarge", "us-east-1", "0.8048000000")]
        yield fake


def _run(call: Call, *launch: str) -> str:
    ran = call(*(launch or (*LAUNCH, "-f", "json")))
    assert ran.code == 0, ran.err
    return str(ran.json["run"])


BROKEN = (
    ("AWS_PROFILE", "no-such-profile"),
    ("AWS_CA_BUNDLE", "/no/such/ca.pem"),
    ("AWS_ACCESS_KEY_ID", "half-a-pair"),
)


@pytest.mark.parametrize(("name", "value"), BROKEN, ids=[name for name, _ in BROKEN])
def test_a_broken_neighbour_does_not_concern_a_down(
    cloud: DigitalOcean, call: Call, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """A run of the journal is ended at its own provider; AWS is not even opened."""
    run = _run(call)
    monkeypatch.setenv(name, value)
    ran = call("down", run, "--yes")
    assert ran.code == 0, ran.err
    assert cloud.estate.things["droplets"] == {}


@pytest.mark.parametrize("command", [("down", "--all", "--yes"), ("list",), ("reap", "--yes")])
def test_a_broken_neighbour_is_said_and_hinders_nothing(
    cloud: DigitalOcean, call: Call, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """A profile that is not there is told; the DigitalOcean machine is ended, listed, kept."""
    _run(call)
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    ran = call(*command)
    ended = command[0] == "down"
    assert (len(cloud.estate.things["droplets"]) == 0) is ended
    if command[0] == "list":  # it asks the providers of open runs only
        assert ran.code == 0, ran.err
        assert "1 machine running at $3" in ran.err
    else:
        assert ran.code == 6, ran.err
        assert "aws is not asked" in ran.err
        assert "no-such-profile" in ran.err


def test_a_missing_ca_file_of_digitalocean_does_not_concern_aws(
    aws: AwsAccount, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor the other way round."""
    run = _run(call, *ON_AWS)
    monkeypatch.setenv("DIGITALOCEAN_TOKEN", "dop_v1_x")
    monkeypatch.setenv("GPUCOST_DIGITALOCEAN_CA", "/no/such/file.pem")
    assert call("down", run, "--yes").code == 0
    assert aws.alive_ids() == []


@pytest.mark.parametrize("path", ["/v2/firewalls", "/v2/account/keys", "/v2/tags"])
@pytest.mark.parametrize("status", [403, 500])
def test_a_kind_that_cannot_be_listed_keeps_no_machine(
    cloud: DigitalOcean, call: Call, path: str, status: int
) -> None:
    """403 or 500 for ever on firewalls, keys or tags: the Droplet ends; the rest is said."""
    run = _run(call)
    cloud.faults.append(Fault(path=path, method="GET", status=status, times=10**6))
    ran = call("down", run, "--yes")
    assert ran.code == 6
    assert "could not be asked" in ran.err
    assert cloud.estate.things["droplets"] == {}
    cloud.faults.clear()
    assert call("down", run, "--yes").code == 0
    assert cloud.estate.things["firewalls"] == {}


def test_a_region_denied_by_policy_keeps_no_machine(aws: AwsAccount, call: Call) -> None:
    """Where the list of regions is denied, a machine still ends by its id in its own region."""
    run = _run(call, *ON_AWS)
    for action in ("DescribeRegions", "DescribeTags", "DescribeSpotInstanceRequests"):
        aws.faults.append(
            AwsFault(action=action, status=403, code="UnauthorizedOperation", times=10**6)
        )
    ran = call("down", run, "--yes")
    assert aws.alive_ids() == []
    assert ran.code == 6  # spot requests of its region could not be listed
    assert "spot-request in us-east-1 could not be asked" in ran.err


def test_a_machine_without_its_tags_is_listed_and_ended(cloud: DigitalOcean, call: Call) -> None:
    """Somebody removed every tag: the machine burns in the list, and down ends it by its id."""
    run = _run(call)
    for droplet in cloud.estate.things["droplets"].values():
        droplet["tags"] = []
    cloud.estate.things["tags"].clear()
    assert "1 machine running at $3" in call("list").err
    ran = call("down", run, "--yes")
    assert ran.code == 0, ran.err
    assert cloud.estate.things["droplets"] == {}


@pytest.mark.parametrize("with_marks", [True, False], ids=["key and firewall left", "nothing left"])
def test_a_machine_without_tags_and_journal(
    cloud: DigitalOcean, call: Call, tmp_path: Path, *, with_marks: bool
) -> None:
    """By its name it belongs to the run of its key; with nothing left it is told, not touched."""
    _run(call)
    for droplet in cloud.estate.things["droplets"].values():
        droplet["tags"] = []
    cloud.estate.things["tags"].clear()
    if not with_marks:
        cloud.estate.things["ssh_keys"].clear()
        cloud.estate.things["firewalls"].clear()
    (tmp_path / "state" / "journal.sqlite").unlink()
    listed = call("list")
    ran = call("down", "--all", "--yes")
    if with_marks:
        assert "1 machine running at $3" in listed.err
        assert cloud.estate.things["droplets"] == {}
    else:
        assert (listed.code, ran.code) == (6, 6)
        assert "named like one of ours" in ran.err
        assert len(cloud.estate.things["droplets"]) == 1


@pytest.mark.parametrize("knows_id", [True, False], ids=["id", "intent"])
def test_an_instance_without_its_tags_is_ended(
    aws: AwsAccount, call: Call, *, knows_id: bool
) -> None:
    """By its id; by its security group and client token where the journal has only the intent."""
    run = _run(call, *ON_AWS)
    if not knows_id:
        _forget_ids(Path(os.environ["GPUCOST_STATE_DIR"]))
    backend = aws.backend("us-east-1")
    (instance,) = aws.instances()
    backend.delete_tags([instance.id], dict.fromkeys(backend.tags[instance.id]))
    assert "1 machine running" in call("list").err
    assert call("down", run, "--yes").code == 0
    assert aws.alive_ids() == []


def test_snapshots_and_volumes_with_copied_tags_are_never_touched(
    aws: AwsAccount, call: Call
) -> None:
    """A user's snapshot, volume, key and group that carry our tags stay: their names are theirs."""
    run = _run(call, *ON_AWS)
    backend = aws.backend("us-east-1")
    (instance,) = aws.instances()
    tags = dict(backend.tags[instance.id])
    volume = backend.create_volume(size=1, zone_name="us-east-1a")
    snapshot = backend.create_snapshot(volume.id, "mine")
    group = backend.create_security_group("office", "theirs")
    for one in (volume, snapshot, group):
        backend.create_tags([one.id], tags)
    ran = call("down", run, "--yes")
    assert aws.alive_ids() == []
    assert volume.id in backend.volumes
    assert snapshot.id in backend.snapshots
    assert "office" in aws.side_resources()
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("has_journal", [True, False], ids=["journal", "no journal"])
def test_one_more_like_this_is_told_and_left_alone(
    aws: AwsAccount, call: Call, tmp_path: Path, *, has_journal: bool
) -> None:
    """Tags, name, group and key are copied, the client token is not: ours ends, the copy stays."""
    run = _run(call, *ON_AWS)
    copy = _copied(aws)
    if not has_journal:
        (tmp_path / "state" / "journal.sqlite").unlink()
    ran = call("down", "--all", "--yes")
    assert ran.code == 6
    assert f"machine {copy} in us-east-1 looks like one of ours" in ran.err
    assert aws.alive_ids() == [copy]
    aws.end_itself(copy, datetime.now(UTC))
    ran = call("down", run, "--yes")
    assert ran.code == 0, ran.err
    assert aws.side_resources() == []


def _copied(aws: AwsAccount) -> str:
    """Somebody starts one more like the only machine in the console."""
    (one,) = aws.instances()
    backend = aws.backend("us-east-1")
    made = backend.run_instances(
        one.image_id,
        1,
        one.user_data,
        [group.name for group in one.security_groups],
        instance_type=one.instance_type,
        is_instance_type_default=False,
        key_name=one.key_name,
        tags={"instance": dict(backend.tags[one.id])},
        client_token="the-console's",  # noqa: S106 - no secret
        instance_initiated_shutdown_behavior="terminate",
    )
    return str(made.instances[0].id)


@pytest.mark.parametrize("with_machine", [True, False])
def test_a_spot_request_is_ours_by_the_machine_that_it_was_for(
    aws: AwsAccount, call: Call, *, with_machine: bool
) -> None:
    """One with copied tags, for no machine or for another's, is told and not cancelled."""
    _run(call, *ON_AWS)
    (one,) = aws.instances()
    backend = aws.backend("us-east-1")
    (request,) = backend.request_spot_instances(
        price="1",
        image_id=one.image_id,
        count=1,
        spot_instance_type="one-time",
        valid_from=None,
        valid_until=None,
        launch_group=None,
        availability_zone_group=None,
        key_name=one.key_name,
        security_groups=["default"],
        user_data="",
        instance_type="g6.xlarge",
        placement="",
        kernel_id=None,
        ramdisk_id=None,
        monitoring_enabled=False,
        subnet_id=None,
    )
    request.add_tags(dict(backend.tags[one.id]))
    request.state, request.instance = "active", one if with_machine else None
    ran = call("down", "--all", "--yes")
    assert (request.id in backend.spot_instance_requests) is not with_machine, ran.err
    assert (ran.code == 6) is not with_machine


def test_keys_and_groups_without_tags_are_ended_by_their_names(aws: AwsAccount, call: Call) -> None:
    """A launch killed before it knew any id, whose tags never come, leaves no key and no group."""
    backend = aws.backend("us-east-1")
    launch = tuple(word for word in ON_AWS if word not in ("-f", "json"))
    aws.world = World(tag_lag_s=NEVER)
    aws.faults.append(AwsFault(action="RunInstances", status=400, code="VcpuLimitExceeded"))
    for action in ("DeleteKeyPair", "DeleteSecurityGroup"):
        aws.faults.append(AwsFault(action=action, status=500, times=10**6))
    assert call(*launch).code != 0
    assert len(aws.side_resources()) == 2
    aws.faults.clear()
    _forget_ids(Path(os.environ["GPUCOST_STATE_DIR"]))
    ran = call("down", "--all", "--yes")
    assert ran.code == 0, ran.err
    assert aws.side_resources() == []
    assert backend.key_pairs == {}


def test_a_machine_without_its_tags_is_one_machine(aws: AwsAccount, call: Call) -> None:
    """Launched while tags are late, it has one line in the journal, one bill, and its name."""
    aws.world = World(tag_lag_s=NEVER)
    run = _run(call, *ON_AWS)
    (told,) = call("list", "-f", "json").json["runs"]
    assert told["machines"] == 1
    names = [one["name"] for one in told["resources"] if one["kind"] == "machine"]
    assert names == [f"gpucost-{run}-1"]
    assert call("down", run, "--yes").code == 0
    assert "no machines running" in call("list", "--all").err


def _forget_ids(state: Path) -> None:
    """Leave of each resource in the journal what a killed process leaves: the intent."""
    with contextlib.closing(sqlite3.connect(state / "journal.sqlite")) as base:
        for run, text in base.execute("SELECT run, document FROM runs").fetchall():
            document = json.loads(text)
            for entry in document["resources"]:
                entry |= {"id": "", "state": "intended", "billed_from": None}
            base.execute("UPDATE runs SET document=? WHERE run=?", (json.dumps(document), run))
        base.commit()


def test_credentials_of_another_account_end_nothing_and_say_so(
    cloud: DigitalOcean, call: Call
) -> None:
    """Every id is 404 there: `down`, `list` and `reap` name both accounts and call nothing gone."""
    run = _run(call)
    cloud.world = World(elsewhere=True)
    for command in (("down", run, "--yes"), ("list",), ("reap", "--yes")):
        ran = call(*command)
        assert ran.code == 6, ran.err
        assert f"it is in account {cloud.estate.account_id} of digitalocean" in ran.err
        assert "another account, another;" in ran.err
    (told,) = call("list", "-f", "json").json["runs"]
    assert told["machines"] == 1
    cloud.world = World()
    assert call("down", run, "--yes").code == 0
    assert cloud.estate.things["droplets"] == {}


def test_another_account_of_aws(aws: AwsAccount, call: Call) -> None:
    """The same by the number that STS tells."""
    run = _run(call, *ON_AWS)
    aws.world = World(elsewhere=True)
    ran = call("down", run, "--yes")
    assert ran.code == 6
    assert "another account, 999999999999; use those of 123456789012" in ran.err
    aws.world = World()
    assert len(aws.alive_ids()) == 1
    assert call("down", run, "--yes").code == 0


def test_nothing_burns_is_only_said_after_asking(
    cloud: DigitalOcean, call: Call, tmp_path: Path
) -> None:
    """With the journal lost the machine is still in the list, with its price."""
    run = _run(call)
    assert len(cloud.estate.things["droplets"]) == 1
    (tmp_path / "state" / "journal.sqlite").unlink()
    listed = call("list")
    assert run in listed.out
    assert "1 machine running at $3" in listed.err
    assert "providers not contacted" in call("list", "--offline").err


def test_a_silent_provider_is_no_empty_one(
    cloud: DigitalOcean, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list that gets no answer shows the machine as burning, says so, and exits 6."""
    _run(call)
    monkeypatch.setattr("providers.digitalocean.access.RETRIES", 0)  # they wait in real time
    cloud.faults.append(Fault(path="/v2", method="GET", status=500, below=True, times=10**6))
    listed = call("list")
    assert listed.code == 6
    assert "1 machine running at $3" in listed.err
    assert "1 (1 not asked)" in listed.out
    reaped = call("reap", "--yes")
    assert reaped.code == 6
    assert "you have no resources" not in reaped.err
