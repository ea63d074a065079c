"""`gpucost provision` and the deadline: tried tokens, told clocks, SSH for the caller alone."""

import json
from datetime import datetime
from typing import Any

import pytest

from tests.gpucost.conftest import Call
from tests.gpucost.launching import AMAZON, OCEAN, Ready
from tests.providers.fakes.account import REAPER
from tests.providers.fakes.aws_account import AwsAccount
from tests.providers.fakes.digitalocean import DigitalOcean, Fault
from tests.providers.fakes.world import World

TOKEN = "GPUCOST_DIGITALOCEAN_REAPER_TOKEN"  # noqa: S105 - the name of the variable


pytestmark = pytest.mark.usefixtures("login")


def _made(ocean: DigitalOcean) -> list[str]:
    return [one for one in ocean.requests if one.startswith("POST")]


@pytest.mark.parametrize(
    ("token", "told"),
    [
        ("dop_v1_" + "0" * 64, (5, "HTTP 401")),
        (f" {REAPER}", (2, "holds blanks")),
        (f'{REAPER}"', (2, "holds blanks, quotes")),
        (f"{REAPER}\n-K/etc/passwd", (2, "holds blanks")),
        (f"{REAPER}é", (2, "other characters")),
    ],
    ids=["typo", "blank", "quote", "newline", "umlaut"],
)
def test_a_token_that_does_not_work_makes_no_machine(
    ocean: DigitalOcean,
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    token: str,
    told: tuple[int, str],
) -> None:
    """The reaper token is tried first: a typo or an odd character is found before anything is."""
    monkeypatch.setenv(TOKEN, token)
    ran = call(*OCEAN, "--ttl", "2h")
    assert ran.code == told[0]
    assert told[1] in ran.err
    assert token not in ran.err
    assert _made(ocean) == []


def test_a_token_that_may_not_end_machines_is_refused(ocean: DigitalOcean, call: Call) -> None:
    """A token that may not destroy ends nothing: it is asked for a machine that does not exist."""
    ocean.faults.append(Fault(path="/v2/droplets", below=True, method="DELETE", status=403))
    ran = call(*OCEAN, "--ttl", "2h")
    assert ran.code == 5
    assert "may not destroy Droplets" in ran.err
    assert _made(ocean) == []
    tried = [one for one in ocean.requests if one.startswith("DELETE")]
    assert tried == ["DELETE /v2/droplets/2147483647"]


def test_a_machine_that_is_not_armed_is_removed(
    ocean: DigitalOcean, call: Call, login: Ready
) -> None:
    """Without the machine's own proof nothing is called ready, and nothing stays."""
    login.fault = "nothing watches the deadline"
    ran = call(*OCEAN, "--ttl", "2h")
    assert ran.code == 5
    assert "nothing watches the deadline" in ran.err
    assert "is ready" not in ran.err
    assert ocean.estate.things["droplets"] == {}


def test_ssh_is_open_to_the_caller_alone(ocean: DigitalOcean, call: Call) -> None:
    """Port 22 takes the address from which the provider is reached; --ssh-from takes others."""
    assert call(*OCEAN, "--ttl", "2h").code == 0
    assert _sources(ocean) == ["127.0.0.1/32"]
    assert call("down", "--all", "--yes").code == 0
    assert call(*OCEAN, "--ttl", "2h", "--ssh-from", "203.0.113.7", "--ssh-from", "2001:db8::/32")
    assert _sources(ocean) == ["203.0.113.7/32", "2001:db8::/32"]
    assert call("down", "--all", "--yes").code == 0
    wrong = call(*OCEAN, "--ttl", "2h", "--ssh-from", "home", "--ssh-from", "10.0.0.0/99")
    assert wrong.code == 2
    assert "--ssh-from home is not a network" in wrong.err
    assert "--ssh-from 10.0.0.0/99 is not a network" in wrong.err


def _sources(ocean: DigitalOcean) -> list[str]:
    (firewall,) = ocean.estate.things["firewalls"].values()
    (ssh,) = [one for one in firewall["inbound_rules"] if one["ports"] == "22"]
    found: list[str] = ssh["sources"]["addresses"]
    return found


def test_ssh_at_aws_is_open_to_the_caller_alone(aws: AwsAccount, call: Call) -> None:
    """The security group of the run lets in the caller's address, and --ssh-from anywhere all."""
    assert call(*AMAZON, "--ttl", "2h").code == 0
    assert _cidrs(aws) == ["127.0.0.1/32"]
    assert call("down", "--all", "--yes").code == 0
    assert call(*AMAZON, "--ttl", "2h", "--ssh-from", "anywhere").code == 0
    assert _cidrs(aws) == ["0.0.0.0/0", "::/0"]


def _cidrs(aws: AwsAccount) -> list[str]:
    groups = [g for v in aws.backend("us-east-1").groups.values() for g in v.values()]
    (group,) = [one for one in groups if one.name.startswith("gpucost-")]
    ranges = [rule.ip_range for rule in group.ingress_rules if rule.ip_range]
    return [one.get("CidrIp") or one["CidrIpv6"] for one in ranges]


def test_a_subnet_of_the_users(aws: AwsAccount, call: Call) -> None:
    """With --subnet the machine and the run's group are in its network, with a public address."""
    backend = aws.backend("us-east-1")
    vpc = backend.create_vpc("10.9.0.0/16")
    subnet = backend.create_subnet(vpc.id, "10.9.1.0/24", availability_zone="us-east-1a")
    ran = call(*AMAZON, "--ttl", "2h", "--subnet", subnet.id, "-f", "json")
    assert ran.code == 0, ran.err
    (instance,) = [one for one in aws.instances() if one.state != "terminated"]
    assert instance.subnet_id == subnet.id
    assert [g.vpc_id for nic in instance.nics.values() for g in nic.group_set] == [vpc.id]
    assert call("down", "--all", "--yes").code == 0
    missing = call(*AMAZON, "--ttl", "2h", "--subnet", "subnet-0123456789abcdef0")
    assert missing.code == 5
    assert "there is no subnet subnet-0123456789abcdef0 in us-east-1" in missing.err


def test_an_account_without_a_default_network_is_told_what_to_say(
    aws: AwsAccount, call: Call
) -> None:
    """Where AWS has no default VPC, nothing is made, and --subnet is named."""
    for vpc in list(aws.backend("us-east-1").vpcs.values()):
        vpc.is_default = "false"
    ran = call(*AMAZON, "--ttl", "2h")
    assert ran.code == 5
    assert "no default VPC" in ran.err
    assert "--subnet" in ran.err
    assert "RunInstances" not in aws.requests


def test_the_preview_says_what_nobody_ends(call: Call) -> None:
    """What remains impossible is one sentence with its dollars a day, and what ends it anyway."""
    for arguments, told in (
        (OCEAN, "until the token is on the machine"),
        ((*OCEAN, "--no-self-destroy"), "nothing but gpucost ends it"),
        (AMAZON, "a machine whose system never starts cannot end itself"),
    ):
        ran = call(*arguments, "--ttl", "8h", "--dry-run")
        (line,) = [line for line in ran.out.splitlines() if told in line]
        assert "for each day until `gpucost reap` runs" in line
        assert "$" in line
        assert "`gpucost watch --install`" in ran.out


def test_the_policy_allows_the_first_spot_request(call: Call) -> None:
    """EC2 makes its service-linked role at the first spot request: the policy allows that alone."""
    policy: Any = json.loads(call("iam-policy").out)
    (statement,) = [s for s in policy["Statement"] if "iam:CreateServiceLinkedRole" in s["Action"]]
    assert statement["Condition"] == {"StringEquals": {"iam:AWSServiceName": "spot.amazonaws.com"}}


@pytest.mark.parametrize("hours", [-3, 3])
def test_the_deadline_goes_by_the_providers_clock(
    ocean: DigitalOcean, call: Call, hours: int
) -> None:
    """A computer whose clock is hours off makes machines that live as long as was asked."""
    ocean.world = World(skew_s=hours * 3600.0)
    ran = call(*OCEAN, "--ttl", "2h", "-f", "json")
    assert ran.code == 0, ran.err
    assert f"is 180 minutes {'ahead of' if hours > 0 else 'behind'} this computer's" in ran.err
    (droplet,) = ocean.estate.things["droplets"].values()
    born = datetime.fromisoformat(droplet["created_at"])
    deadline = datetime.fromisoformat(ran.json["deadline"])
    assert abs((deadline - born).total_seconds() - 2 * 3600) < 30


def test_a_launch_that_does_not_wait_is_not_ready(
    aws: AwsAccount, call: Call, login: Ready
) -> None:
    """--no-wait says not-proved; list and show ask for the proof, and with it the run is ready."""
    ran = call(*AMAZON, "--ttl", "2h", "--no-wait", "-f", "json")
    assert ran.code == 0, ran.err
    assert ran.json["state"] == "not-proved"
    assert "--no-wait: the machines are handed over before anything proves" in ran.err
    login.fault = "nothing watches the deadline"
    listed = call("list", "-f", "json")
    assert [one["state"] for one in listed.json["runs"]] == ["not-proved"]
    assert "nothing proves that" in listed.err
    assert "nothing watches the deadline" in listed.err
    login.fault = ""
    offline = call("list", "--offline", "-f", "json")
    assert [one["state"] for one in offline.json["runs"]] == ["not-proved"]
    assert call("show", ran.json["run"], "-f", "json").json["state"] == "ready"
    assert len(aws.alive_ids()) == 1
