"""EKS: the real SDK, whose model checks each request, against our stand-in and moto's EC2."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from msgspec import structs

from pricing.errors import InputError, ProviderError
from providers.aws.cloud import connect as connect_aws
from providers.eks import inventory, is_used, note_region, seen_regions
from providers.eks.cloud import EksCloud, connect
from providers.interface import (
    NODE,
    Connection,
    LaunchSpec,
    Listing,
    NoCapacityError,
    NodePool,
    QuotaError,
)
from providers.lifecycle.end import end_run
from providers.lifecycle.launch import launch
from providers.lifecycle.presence import survey
from providers.lifecycle.reap import carry_out, judge
from providers.lifecycle.session import Clock, Patience, Session
from providers.ownership_tags import read_labels
from tests.providers.fakes.aws_account import AwsAccount, AwsFault
from tests.providers.fakes.driven_time import driven_time
from tests.providers.fakes.eks import NAME, REGION
from tests.providers.fakes.world import NEVER, Denied, World
from tests.providers.launches import a_session, a_spec, an_offer
from tests.providers.pools.contract import PoolContract

SHORT = {
    "code": "AsgInstanceLaunchFailures",
    "message": "Could not launch On-Demand Instances. InsufficientInstanceCapacity",
    "resourceIds": ["eks-asg"],
}


def a_group(count: int = 1, **changes: Any) -> LaunchSpec:
    """A node group for an hour."""
    pool = replace(NodePool(provider="eks", cluster=NAME), **changes)
    offer = an_offer("aws", instance_type="g6.xlarge", region=REGION, vcpus=4)
    return a_spec(
        offer, count=count, pool=pool, self_destroy=False, public_key="", image="", ssh_from=()
    )


@pytest.fixture
def cloud(aws_account: AwsAccount, tmp_path: Path) -> EksCloud:
    """A cluster without anything of ours."""
    assert aws_account.eks.ours == {}
    return connect(Connection(environment=os.environ, state=str(tmp_path / "state")))


@pytest.fixture
def session(cloud: EksCloud, tmp_path: Path) -> Session:
    """A session with it that never waits."""
    return a_session(cloud, tmp_path / "journal")


def launched(session: Session, spec: LaunchSpec) -> LaunchSpec:
    """The launch, made."""
    checked, _ = session.cloud.check(spec)
    launch(session, checked, None)
    return checked


class TestEks(PoolContract):
    """The contract of every provider of pools."""

    @pytest.fixture
    def cloud(self, aws_account: AwsAccount, tmp_path: Path) -> EksCloud:
        """With nothing of ours."""
        assert aws_account.eks.ours == {}
        return connect(Connection(environment=os.environ, state=str(tmp_path / "state")))

    @pytest.fixture(params=[1, 2])
    def spec(self, request: pytest.FixtureRequest) -> LaunchSpec:
        """One or two nodes."""
        return a_group(request.param)


def test_the_request_is_one_that_eks_takes(cloud: EksCloud, aws_account: AwsAccount) -> None:
    """Size, limits, marks as tags, a taint, and role and subnets of a group that is there."""
    spec, notes = cloud.check(a_group(2, min_nodes=0, max_nodes=4))
    (call,) = cloud.resources_to_create(spec, spec.places[0])
    cloud.create(call)
    (group,) = aws_account.eks.ours.values()
    told = group.told
    assert told["scalingConfig"] == {"minSize": 0, "maxSize": 4, "desiredSize": 2}
    assert told["tags"]["gpucost:run"] == spec.marks.run
    assert told["labels"] == {"gpucost-run": spec.marks.run, inventory.ACCELERATOR: "nvidia-l4"}
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
    assert told["taints"] == [taint]
    assert told["nodeRole"].endswith(":role/nodes")
    assert told["amiType"] == "AL2023_x86_64_NVIDIA"
    assert any("node group web" in note for note in notes)
    assert any("no autoscaler of its own" in note for note in notes)


@mock_aws
def test_moto_takes_the_same_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node group of ours is made, found with its tags, and deleted at others' EKS."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    eks = boto3.client("eks", region_name=REGION)
    role = "arn:aws:iam::123456789012:role/nodes"
    eks.create_cluster(name=NAME, roleArn=role, resourcesVpcConfig={"subnetIds": ["subnet-1"]})
    spec = a_group(2)
    pool = replace(spec.pool, node_role=role, subnets=("subnet-1",)) if spec.pool else None
    assert pool is not None
    asked = inventory.creation(spec, pool, spec.places[0]).arguments
    made = eks.create_nodegroup(**asked)["nodegroup"]
    assert inventory.parts(made["nodegroupArn"]) == (NAME, asked["nodegroupName"])
    told = eks.describe_nodegroup(clusterName=NAME, nodegroupName=asked["nodegroupName"])
    assert read_labels(told["nodegroup"]["tags"], inventory.TAG_SEPARATOR) == spec.marks
    eks.delete_nodegroup(clusterName=NAME, nodegroupName=asked["nodegroupName"])
    assert eks.list_nodegroups(clusterName=NAME)["nodegroups"] == []


def test_what_cannot_be_is_refused_before_anything_is_made(
    cloud: EksCloud, aws_account: AwsAccount
) -> None:
    """Spot, an unknown cluster, one without a usable group, a type of no zone, a quota."""
    spot = structs.replace(
        an_offer("aws", instance_type="g6.xlarge", region=REGION), purchase="spot"
    )
    asked = a_group()
    with pytest.raises(InputError, match="no highest price"):
        cloud.check(replace(asked, places=(replace(asked.places[0], offer=spot),)))
    with pytest.raises(InputError, match=f"no such cluster in {REGION}; it has: {NAME}"):
        cloud.check(a_group(cluster="prod-2"))
    aws_account.quota = 2.0
    with pytest.raises(QuotaError):
        cloud.check(a_group())
    unsold = structs.replace(an_offer("aws", region=REGION), instance_type="g9.none")
    with pytest.raises(NoCapacityError, match="in no zone"):
        cloud.check(replace(asked, places=(replace(asked.places[0], offer=unsold),)))
    aws_account.eks.lone = True
    with pytest.raises(InputError, match="eksctl create nodegroup"):
        cloud.check(a_group())
    assert "CreateNodegroup" not in aws_account.requests


def test_a_region_is_noted_before_the_call(session: Session, aws_account: AwsAccount) -> None:
    """Where none is noted EKS counts as unused; where nothing can be noted nothing is made."""
    cloud = session.cloud
    assert isinstance(cloud, EksCloud)
    assert seen_regions(cloud.state) == ()
    assert not is_used({}, cloud.state)
    assert cloud.list_owned(None) == Listing()
    aws_account.faults.append(AwsFault(action="CreateNodegroup", status=400, code="Nope"))
    with pytest.raises(ProviderError, match="Nope"):
        launched(session, a_group())
    assert seen_regions(cloud.state) == (REGION,)
    assert is_used({}, cloud.state)
    cloud.state = cloud.state / "eks-regions" / REGION
    with pytest.raises(ProviderError, match="nothing was made"):
        launched(session, a_group())
    assert aws_account.requests.count("CreateNodegroup") == 1


@pytest.mark.parametrize("fault", [{"drop": True}, {"after": True}], ids=str)
def test_a_lost_answer_is_found_by_name(
    session: Session, aws_account: AwsAccount, fault: dict[str, bool]
) -> None:
    """The call is sent once, and what it made is taken."""
    aws_account.faults.append(AwsFault(action="CreateNodegroup", **fault))
    launched(session, a_group())
    assert aws_account.requests.count("CreateNodegroup") == 1
    assert len(aws_account.eks.ours) == 1


def test_a_group_that_cannot_be_made_says_why_at_once(
    session: Session, aws_account: AwsAccount
) -> None:
    """CREATE_FAILED ends the launch with EKS' words, and leaves no group and no node."""
    aws_account.eks.issues = (SHORT,)
    with pytest.raises(ProviderError, match="InsufficientInstanceCapacity"):
        launched(session, a_group())
    assert aws_account.requests.count("DescribeNodegroup") < 20
    assert aws_account.eks.groups == {}
    assert aws_account.alive_ids() == []


@pytest.mark.parametrize(("status", "said"), [("CREATE_FAILED", "Could"), ("DELETING", "deleted")])
def test_reap_ends_what_is_good_for_nothing(
    session: Session, aws_account: AwsAccount, status: str, said: str
) -> None:
    """A group that failed, or is being deleted, is never called ready."""
    spec = launched(session, a_group())
    (group,) = aws_account.eks.ours.values()
    group.told |= {"status": status, "health": {"issues": [SHORT]}}
    if status == "DELETING":
        group.ended = datetime.now(UTC)
        aws_account.eks.end_reads = 30
    session.journal.mark_run(spec.marks.run, "launching", session.now())
    (verdict,) = judge(session, survey(session), "ada", all_owners=False)
    assert verdict.action == "remove"
    assert said in verdict.why
    carry_out(session, verdict)
    assert aws_account.eks.groups == {}
    assert aws_account.alive_ids() == []


def test_a_node_is_never_ended_alone(session: Session, aws_account: AwsAccount) -> None:
    """Its group would replace it; an instance is terminated only where its group is gone."""
    spec = launched(session, a_group())
    (node,) = [one for one in session.cloud.list_owned(None).resources if one.kind == NODE]
    assert session.cloud.destroy(node)
    assert aws_account.requests.count("DeleteNodegroup") == 1
    assert "TerminateInstances" not in aws_account.requests
    aws_account.eks.groups.clear()
    end_run(session, spec.marks, (REGION,))
    assert aws_account.alive_ids() == []
    assert "TerminateInstances" in aws_account.requests


@pytest.mark.parametrize(
    "world",
    [
        World(list_lag_s=60, read_lag_s=60),
        World(tag_lag_s=NEVER),
        World(end_lag_s=90),
    ],
    ids=str,
)
def test_worlds_that_lag_leave_nothing(
    cloud: EksCloud, aws_account: AwsAccount, tmp_path: Path, world: World
) -> None:
    """Late reads, lost tags, a slow end: ready all the same, and ended."""
    with driven_time() as time:
        clock = Clock(now=lambda: datetime.now(UTC), sleep=time.sleep)
        session = a_session(cloud, tmp_path / "journal", clock=clock, patience=Patience())
        checked, _ = cloud.check(a_group())
        aws_account.world = world
        assert launch(session, checked, None).state == "ready"
        end_run(session, checked.marks, (REGION,))
    assert aws_account.eks.groups == {}
    assert aws_account.alive_ids() == []


def test_a_part_that_fails_is_said(session: Session, aws_account: AwsAccount) -> None:
    """Node groups that cannot be listed are a doubt; their nodes are still found by the journal."""
    spec = launched(session, a_group())
    denied = Denied(kind="pool", calls="all", code="AccessDeniedException")
    aws_account.world = World(denied=(denied,))
    seen = survey(session)
    assert any("could not be asked" in one for one in seen.doubts)
    assert [one.kind for one in seen.resources] == [NODE]
    aws_account.world = World()
    end_run(session, spec.marks, (REGION,))
    assert aws_account.alive_ids() == []


def test_the_machines_of_the_account_are_others(session: Session, aws_account: AwsAccount) -> None:
    """The provider of instances sees nothing of ours in the nodes of a group."""
    launched(session, a_group())
    assert connect_aws(Connection()).list_owned(None) == Listing()
    assert aws_account.alive_ids()


def test_names_of_regions_alone_are_read(tmp_path: Path) -> None:
    """What else lies in the folder is passed over, and noting twice is noting once."""
    for region in ("eu-west-1", "us-east-1", "us-east-1"):
        note_region(tmp_path, region)
    (tmp_path / "eks-regions" / ".DS_Store").touch()
    assert seen_regions(tmp_path) == ("eu-west-1", "us-east-1")
