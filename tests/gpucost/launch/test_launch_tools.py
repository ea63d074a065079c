"""`gpucost doctor` and `iam-policy`: what is there, what is needed, and what is left behind."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from providers.aws.calls import KINDS as AWS_KINDS
from providers.digitalocean.resources import KINDS, tags
from providers.ownership_tags import OwnershipTags
from providers.provider import permissions
from tests.gpucost.conftest import Call
from tests.gpucost.launching import Ready, prepare
from tests.providers.fakes.account import TOKEN, a_digitalocean, an_aws
from tests.providers.fakes.droplets import droplet_json


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ready:
    """Reach this machine only."""
    return prepare(monkeypatch, tmp_path)


def _checks(call: Call) -> dict[str, tuple[str, str]]:
    ran = call("doctor", "-f", "json")
    assert ran.code == 0, ran.err
    assert TOKEN not in ran.out + ran.err
    return {one["check"]: (one["state"], one["detail"]) for one in ran.json}


def test_without_credentials_nobody_is_asked(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """No network: what is missing is named, and the journal is said to be none."""
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("network"))
    checks = _checks(call)
    assert checks["DIGITALOCEAN_TOKEN"][0] == "not set"
    assert checks["journal"][0] == "none"
    assert not any("orphans" in name for name in checks)


def test_an_orphan_is_found(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits, clock and a machine past its deadline, from the provider itself."""
    with a_digitalocean(tmp_path, monkeypatch) as fake:
        assert _checks(call)["digitalocean orphans"][0] == "ok"
        past = (datetime.now(UTC) - timedelta(hours=1)).replace(microsecond=0)
        marks = OwnershipTags(run="k3f9xw2m", deadline=past, owner="ada", plan="none")
        body = {"name": "x", "region": "nyc2", "image": "i", "tags": tags(marks)}
        made = droplet_json(7, body, fake.sizes[-1], past)
        fake.estate.things["droplets"]["7"] = made
        checks = _checks(call)
    assert checks["digitalocean orphans"] == (
        "fail",
        "1 machine of ours, 1 run past their deadline; gpucost reap removes them",
    )
    assert "1 of 25 Droplets" in checks["digitalocean quota"][1]
    assert checks["digitalocean clock"][0] == "ok"


def test_a_wrong_token_is_a_failed_check(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider's refusal is told in the check, without the token."""
    with a_digitalocean(tmp_path, monkeypatch) as fake:
        fake.token = "another"  # noqa: S105 - the fake's
        state, detail = _checks(call)["digitalocean"]
    assert state == "fail"
    assert "401" in detail


def test_quotas_of_aws_are_told(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every quota of machines with GPUs, by name."""
    with an_aws(tmp_path, monkeypatch):
        ran = call("doctor", "-f", "json")
    told = [one["detail"] for one in ran.json if one["check"] == "aws quota"]
    assert len(told) == 5
    assert any("Running On-Demand P instances in us-east-1: 1000 vCPUs" in one for one in told)


def test_the_aws_policy_changes_only_what_is_ours(call: Call) -> None:
    """Making needs our tag in the request, changing needs it on the resource; reading is free."""
    policy = call("iam-policy").json
    by_name = {one["Sid"]: one for one in policy["Statement"]}
    assert all(
        action.partition(":")[2].startswith(("Describe", "Get"))
        for action in by_name["Read"]["Action"]
    )
    made = by_name["MakeWithOurTags"]["Condition"]
    assert made == {"Null": {"aws:RequestTag/gpucost:run": "false"}}
    changed = by_name["ChangeAndEndWhatIsOurs"]
    assert changed["Condition"] == {"Null": {"aws:ResourceTag/gpucost:run": "false"}}
    assert "ec2:TerminateInstances" in changed["Action"]
    reading = call("iam-policy", "--read-only").json
    assert [one["Sid"] for one in reading["Statement"]] == ["Read"]


def test_the_policy_has_every_call_that_is_made() -> None:
    """Each operation by which a kind of resource is listed, made or ended is allowed."""
    allowed = {
        action.partition(":")[2].lower()
        for statement in permissions()["aws"]["Statement"]
        for action in (
            [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
        )
    }
    used = {row.paginator for row in AWS_KINDS.values()} | {r.destroy for r in AWS_KINDS.values()}
    used |= {"describe_regions", "describe_tags", "run_instances", "import_key_pair"}
    used |= {"create_security_group", "authorize_security_group_ingress", "create_tags"}
    assert {one.replace("_", "") for one in used} <= allowed


def test_the_scopes_have_every_kind(call: Call) -> None:
    """Each kind of resource at DigitalOcean can be read and ended with the scopes listed."""
    out = call("iam-policy", "--provider", "digitalocean").out
    names = {"machine": "droplet", "volume": "block_storage", "ssh-key": "ssh_key"}
    for kind in KINDS:
        name = names.get(kind, kind)
        assert f"{name}:read" in out
        assert f"{name}:delete" in out
    reaper = call("iam-policy", "--provider", "digitalocean-reaper").out
    assert "droplet:delete" in reaper
    assert "droplet:create" not in reaper
    assert os.environ.get("DIGITALOCEAN_TOKEN") is None


@mock_aws
def test_one_command_makes_the_role_that_ends_machines(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At moto's IAM: EventBridge may take it, it ends what is ours alone; twice is no error."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    made = [call("iam-policy", "--provider", "aws-end-role", "--make") for _ in range(2)]
    assert [ran.code for ran in made] == [0, 0], made[0].err
    assert made[0].out == made[1].out == "arn:aws:iam::123456789012:role/gpucost-end\n"
    iam = boto3.client("iam", region_name="us-east-1")
    trust = iam.get_role(RoleName="gpucost-end")["Role"]["AssumeRolePolicyDocument"]
    assert trust["Statement"][0]["Principal"] == {"Service": "scheduler.amazonaws.com"}
    (name,) = iam.list_role_policies(RoleName="gpucost-end")["PolicyNames"]
    policy = iam.get_role_policy(RoleName="gpucost-end", PolicyName=name)["PolicyDocument"]
    allowed = [part["Action"] for part in policy["Statement"]]
    assert allowed == ["ec2:TerminateInstances", "eks:DeleteNodegroup"]
    assert call("iam-policy", "--make").code == 2
