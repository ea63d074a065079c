"""`gpucost provision` on AWS: on demand and spot, zones in turn, live prices, no key told."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.gpucost.conftest import Call
from tests.gpucost.launching import Ready, prepare
from tests.providers.fakes.account import KEY, SECRET, an_aws
from tests.providers.fakes.aws_account import AwsAccount, AwsFault
from tests.providers.launches import PUBLIC_KEY

VISUAL_SEARCH = ROOT / "examples" / "visual-search.json"
PLACE = "aws/g6.xlarge/us-east-1"
LAUNCH = ("provision", "--type", PLACE, "--ttl", "2h", "--yes", "-f", "json")
NO_CAPACITY = "InsufficientInstanceCapacity"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ready:
    """Reach this machine only."""
    return prepare(monkeypatch, tmp_path)


@pytest.fixture
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsAccount]:
    """An account that may have 400 vCPUs, and today's prices."""
    with an_aws(tmp_path, monkeypatch) as fake:
        fake.quota = 400.0
        fake.prices.on_demand = [
            ("g6.xlarge", "us-east-1", "0.8048000000"),
            ("p5.48xlarge", "us-east-1", "55.0400000000"),
        ]
        fake.prices.spot = [("p5.48xlarge", "us-east-1a", "17.500000")]
        yield fake


def _zones(fake: AwsAccount) -> list[str]:
    return [instance.placement for instance in fake.instances()]


@pytest.mark.parametrize(
    "bought",
    [
        (PLACE, "on_demand", 0.8048),
        ("aws/p5.48xlarge/us-east-1", "on_demand", 55.04),
        ("aws/p5.48xlarge/us-east-1", "spot", 17.5),
    ],
    ids=["1x GPU", "8x GPU", "8x GPU, spot"],
)
@pytest.mark.parametrize("count", [1, 2])
def test_plan_to_ready_to_down(
    aws: AwsAccount, call: Call, bought: tuple[str, str, float], count: int
) -> None:
    """Made at the live price, ready, and gone with key, group, volumes and spot requests."""
    place, purchase, usd_an_hour = bought  # and an address at 0.005 USD/h
    launch = [place if one == PLACE else one for one in LAUNCH]
    ran = call(*launch, "--purchase", purchase, "--count", str(count), "--allow-stale")
    assert ran.code == 0, ran.err
    assert ran.json["state"] == "ready"
    assert float(ran.json["predicted_usd"]) == pytest.approx(
        (usd_an_hour + 0.005) * 2 * count, abs=0.006
    )
    assert len(aws.alive_ids()) == count
    lifecycles = {instance.lifecycle for instance in aws.instances()}
    assert lifecycles == ({"spot"} if purchase == "spot" else {None})
    assert call("down", ran.json["run"], "--yes").code == 0
    assert aws.alive_ids() == []
    assert aws.side_resources() == []


def test_an_option_of_a_plan_to_ready_to_down(
    aws: AwsAccount, call: Call, empty_folder: Path
) -> None:
    """The machine that the plan names is made at the plan's price, ready, and gone."""
    aws.prices.on_demand.append(("g4dn.2xlarge", "us-east-1", "0.7520000000"))
    asked = ("--provider", "aws", "--region", "us-east-1", "--as-of", "2026-11-21", "-q")
    assert call("plan", str(VISUAL_SEARCH), *asked, "-o", "plan.json").code == 0
    (job,) = json.loads((empty_folder / "plan.json").read_text(encoding="utf-8"))["jobs"]
    option = next(o for o in job["options"] if o["offer"]["instance_type"] == "g4dn.2xlarge")
    named = ("--option", f"{job['name']}/{option['id']}")
    ran = call("provision", "plan.json", *named, "--ttl", "2h", "--yes", "-f", "json")
    assert ran.code == 0, ran.err
    assert ran.json["state"] == "ready"
    assert [instance.instance_type for instance in aws.instances()] == ["g4dn.2xlarge"]
    assert call("down", ran.json["run"], "--yes").code == 0
    assert (aws.alive_ids(), aws.side_resources()) == ([], [])


def test_zones_are_tried_in_turn(aws: AwsAccount, call: Call) -> None:
    """A zone without capacity is left and cleaned up; RunInstances is not repeated there."""
    for zone in ("us-east-1a", "us-east-1b"):
        aws.faults.append(AwsFault(action="RunInstances", code=NO_CAPACITY, zone=zone))
    ran = call(*LAUNCH)
    assert ran.code == 0, ran.err
    assert "no capacity: g6.xlarge in us-east-1a" in ran.err
    assert aws.requests.count("RunInstances") == 3
    assert len(aws.alive_ids()) == 1


def test_no_capacity_anywhere_leaves_nothing(aws: AwsAccount, call: Call) -> None:
    """Exit 5, each zone named, and neither machine nor group nor key is left."""
    aws.faults.append(AwsFault(action="RunInstances", code=NO_CAPACITY, times=99))
    ran = call(*LAUNCH)
    assert ran.code == 5
    assert "us-east-1a" in ran.err
    assert "none is left" in ran.err
    assert aws.alive_ids() == []
    assert aws.side_resources() == []


def test_a_quota_is_told_before_anything_is_made(aws: AwsAccount, call: Call) -> None:
    """More vCPUs than the account may have: exit 5 with the code of the quota, no changing call."""
    aws.quota = 2.0
    ran = call(*LAUNCH)
    assert ran.code == 5
    assert "L-DB2E81BA" in ran.err
    assert not {"RunInstances", "ImportKeyPair", "CreateSecurityGroup"} & set(aws.requests)


def test_a_quota_that_may_not_be_read_stops_nothing(aws: AwsAccount, call: Call) -> None:
    """Without permission for Service Quotas the launch goes on and says so."""
    aws.quota = None
    ran = call(*LAUNCH)
    assert ran.code == 0, ran.err
    assert "could not be read" in ran.err


@pytest.mark.parametrize("fault", [{"drop": True}, {"after": True}], ids=str)
def test_a_lost_answer_makes_no_second_machine(
    aws: AwsAccount, call: Call, fault: dict[str, bool]
) -> None:
    """The instance is found by its tags; there is one, and one call."""
    aws.faults.append(AwsFault(action="RunInstances", **fault))
    ran = call(*LAUNCH)
    assert ran.code == 0, ran.err
    assert len(aws.alive_ids()) == 1
    assert aws.requests.count("RunInstances") == 1


def test_each_attempt_has_a_token_of_its_own(aws: AwsAccount, call: Call) -> None:
    """Machines and zones never share a ClientToken."""
    aws.faults.append(AwsFault(action="RunInstances", code=NO_CAPACITY))
    ran = call(*LAUNCH, "--count", "2")
    assert ran.code == 0, ran.err
    assert len(aws.tokens) == 2
    assert aws.requests.count("RunInstances") == 3


def test_no_key_is_told(aws: AwsAccount, call: Call, tmp_path: Path) -> None:
    """Neither the key id nor the secret is in output, journal, user data or any file."""
    everything = call(*LAUNCH, "-v")
    aws.faults.append(AwsFault(action="RunInstances", status=403, code="UnauthorizedOperation"))
    failed = call(*LAUNCH)
    assert failed.code == 5
    told = everything.out + everything.err + failed.out + failed.err
    told += json.dumps([str(instance.user_data) for instance in aws.instances()])
    for path in tmp_path.rglob("*"):
        if path.is_file():
            told += path.read_bytes().decode("latin-1")
    assert KEY not in told
    assert SECRET not in told


def test_another_key_pair_comes_beside_the_runs_own(aws: AwsAccount, call: Call) -> None:
    """With --ssh-key the named pair opens the machine, and the run's key comes with user data."""
    aws.backend("us-east-1").import_key_pair("laptop", PUBLIC_KEY.encode(), {})
    ran = call(*LAUNCH, "--ssh-key", "laptop")
    assert ran.code == 0, ran.err
    (instance,) = aws.instances()
    assert instance.key_name == "laptop"
    user_data = base64.b64decode(str(instance.user_data)).decode()
    assert 'ssh_authorized_keys: ["ssh-ed25519 ' in user_data
    assert call("down", ran.json["run"], "--yes").code == 0
    assert aws.side_resources() == ["laptop"]


@pytest.mark.parametrize("fault", [{"drop": True}, {"after": True}, {}], ids=str)
def test_a_group_gets_its_rules_or_is_removed(
    aws: AwsAccount, call: Call, fault: dict[str, bool]
) -> None:
    """Rules may be set twice, so the SDK repeats that call; a machine never lacks them."""
    aws.faults.append(AwsFault(action="AuthorizeSecurityGroupIngress", **fault))
    ran = call(*LAUNCH)
    assert ran.code == 0, ran.err
    assert aws.requests.count("AuthorizeSecurityGroupIngress") == 2
    assert aws.requests.count("CreateSecurityGroup") == 1
