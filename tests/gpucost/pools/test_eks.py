"""`gpucost provision --kubernetes` at AWS: a managed node group from its preview to its end."""

import json

import pytest

from tests.gpucost.conftest import Call
from tests.providers.fakes.aws_account import AwsAccount, AwsFault
from tests.providers.fakes.eks import NAME
from tests.providers.pools.test_eks import SHORT

ONTO = ("provision", "--type", "aws/g6.xlarge/us-east-1", "--kubernetes", NAME, "--ttl", "2h")
END_ROLE = "arn:aws:iam::123456789012:role/gpucost-end"
POOL = (*ONTO, "--yes", "--allow-stale", "--no-self-destroy")


def test_the_preview_makes_nothing(call: Call, aws: AwsAccount) -> None:
    """It names the call, what nobody ends, and that nothing on a node ends its group."""
    ran = call(*ONTO)
    assert ran.code == 2
    assert "a node pool at Amazon EKS cannot end itself" in ran.err
    dry = call(*POOL, "--min", "0", "--max", "2", "--dry-run", "-f", "json")
    assert dry.code == 0, dry.err
    assert aws.requests == []
    (asked,) = dry.json["calls"]
    assert asked["call"] == "eks:CreateNodegroup"
    limits = {"minSize": 0, "maxSize": 2, "desiredSize": 1}
    assert asked["arguments"]["scalingConfig"] == limits


def test_a_group_its_later_deadline_and_its_end(call: Call, aws: AwsAccount) -> None:
    """Up, list, show, extend and down: group and nodes are named, billed, moved and gone."""
    ran = call(*POOL, "--count", "2", "-f", "json")
    assert ran.code == 0, ran.err
    run = ran.json["run"]
    assert (ran.json["state"], ran.json["machines"]) == ("ready", 2)
    assert [one["kind"] for one in ran.json["resources"]] == ["pool", "node", "node"]
    assert ran.json["resources"][0]["id"].startswith("arn:aws:eks:us-east-1:")
    listed = call("list", "-f", "json")
    assert (listed.code, listed.json["asked"]) == (0, ["eks"])
    before = ran.json["deadline"]
    assert call("extend", run, "1h", "--yes").code == 0
    (group,) = aws.eks.ours.values()
    assert group.told["tags"]["gpucost:deadline"] > before.replace("-", "").replace(":", "")[:16]
    group.told["health"] = {"issues": [SHORT]}
    shown = call("show", run, "-f", "json").json
    assert "InsufficientInstanceCapacity" in shown["resources"][0]["fault"]
    assert "fault" not in shown["resources"][1]
    down = call("down", run, "--yes")
    assert down.code == 0, down.err
    assert (aws.eks.groups, aws.alive_ids()) == ({}, [])


def test_a_schedule_ends_a_group_and_is_there_before_it(call: Call, aws: AwsAccount) -> None:
    """With --end-role the order for its end stands first, moves with `extend`, goes with `down`."""
    ends = (*(word for word in POOL if word != "--no-self-destroy"), "--end-role", END_ROLE)
    ran = call(*ends, "-f", "json")
    assert ran.code == 0, ran.err
    assert "has its order to end the pool before the pool is made" in ran.err
    made = [one for one in aws.requests if one in ("CreateNodegroup", "POST /schedules")]
    assert [one["kind"] for one in ran.json["resources"]] == ["schedule", "pool", "node"], made
    (schedule,) = aws.schedules()
    (group,) = aws.eks.ours.values()
    assert schedule.target["Arn"] == "arn:aws:scheduler:::aws-sdk:eks:deleteNodegroup"
    told = {"ClusterName": NAME, "NodegroupName": group.told["nodegroupName"]}
    assert json.loads(schedule.target["Input"]) == told
    before = schedule.schedule_expression
    extended = call("extend", ran.json["run"], "1h", "--yes")
    assert extended.code == 0, extended.err
    assert "do not end themselves" not in extended.err
    assert aws.schedules()[0].schedule_expression > before
    down = call("down", ran.json["run"], "--yes")
    assert down.code == 0, down.err
    assert (aws.eks.groups, aws.alive_ids(), aws.schedules()) == ({}, [], [])


def test_a_group_that_cannot_be_made_is_exit_5(call: Call, aws: AwsAccount) -> None:
    """The words of EKS are told, and nothing is left."""
    aws.eks.issues = (SHORT,)
    ran = call(*POOL)
    assert ran.code == 5
    assert "InsufficientInstanceCapacity" in ran.err
    assert "nothing is left" in ran.err
    assert (aws.eks.groups, aws.alive_ids()) == ({}, [])


def test_eks_is_named_only_where_something_of_ours_may_be(call: Call, aws: AwsAccount) -> None:
    """Before the first group nobody asks EKS; after it every look does, and says so."""
    listed, reaped = call("list", "-f", "json"), call("reap", "--yes")
    assert listed.json["asked"] == ["aws"]
    assert "you have no resources at aws." in reaped.err
    assert "ListClusters" not in aws.requests
    aws.faults.append(AwsFault(action="CreateNodegroup", status=400, code="Nope"))
    assert call(*POOL).code == 5
    assert call("list", "-f", "json").json["asked"] == ["aws", "eks"]
    assert "you have no resources at aws, eks." in call("reap", "--yes").err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--kubernetes", "prod-2"), "no such cluster in us-east-1; it has: prod-1"),
        (("--subnet", "subnet-1"), "--subnet: of machines of their own"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(
    call: Call, aws: AwsAccount, more: tuple[str, ...], said: str
) -> None:
    """Before anything is made."""
    ran = call(*POOL, *more)
    assert ran.code == 2, ran.err
    assert said in ran.err
    assert "CreateNodegroup" not in aws.requests


def test_a_cluster_without_a_usable_group_says_how_to_make_one(call: Call, aws: AwsAccount) -> None:
    """Role and subnets come from a group that is there."""
    aws.eks.lone = True
    ran = call(*POOL)
    assert ran.code == 2
    assert f"eksctl create nodegroup --cluster {NAME}" in ran.err
