"""Managed node groups of Amazon EKS clusters, through boto3."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pricing.tables import JsonObject
from providers.ownership_tags import PREFIX
from providers.provider import Permissions, Provider, SelfEnd

_FOLDER = "eks-regions"
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d+")


def seen_regions(state: Path) -> tuple[str, ...]:
    """Return the regions that were noted, by name; a folder that cannot be read has none."""
    try:
        names = [file.name for file in (state / _FOLDER).iterdir()]
    except OSError:
        return ()
    return tuple(sorted(name for name in names if _REGION.fullmatch(name)))


def note_region(state: Path, region: str) -> None:
    """Note a region, on the disk when this returns.

    Raises:
        OSError: it cannot be written.
    """
    folder = state / _FOLDER
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(folder / region, os.O_WRONLY | os.O_CREAT, 0o600))
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_used(_: Mapping[str, str], state: Path) -> bool:
    """Return whether a node group was ever made from this state folder."""
    return bool(seen_regions(state))


_READS = (
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstances",
    "ec2:DescribeSubnets",
    "eks:DescribeCluster",
    "eks:DescribeNodegroup",
    "eks:ListClusters",
    "eks:ListNodegroups",
    "servicequotas:GetServiceQuota",
)
_RUN = f"{PREFIX}:run"


def _policy(*, launches: bool) -> JsonObject:
    """Return the IAM policy: read always; make with our tags alone, change only what has them."""
    statements: list[JsonObject] = [
        {"Sid": "Read", "Effect": "Allow", "Action": list(_READS), "Resource": "*"}
    ]
    if launches:
        statements += [
            {
                "Sid": "MakeWithOurTags",
                "Effect": "Allow",
                "Action": ["eks:CreateNodegroup", "eks:TagResource"],
                "Resource": "*",
                "Condition": {"Null": {f"aws:RequestTag/{_RUN}": "false"}},
            },
            {
                "Sid": "ChangeOurs",
                "Effect": "Allow",
                "Action": ["eks:DeleteNodegroup", "eks:TagResource"],
                "Resource": f"arn:aws:eks:*:*:nodegroup/*/{PREFIX}-*/*",
            },
            {
                "Sid": "EndNodesLeftBehind",
                "Effect": "Allow",
                "Action": ["ec2:TerminateInstances"],
                "Resource": "*",
                "Condition": {
                    "StringLike": {"ec2:ResourceTag/eks:nodegroup-name": f"{PREFIX}-*-pool"}
                },
            },
            {
                "Sid": "HandTheRoleToNodes",
                "Effect": "Allow",
                "Action": ["iam:GetRole", "iam:ListAttachedRolePolicies", "iam:PassRole"],
                "Resource": "*",
                "Condition": {"StringEqualsIfExists": {"iam:PassedToService": "eks.amazonaws.com"}},
            },
        ]
    return {"Version": "2012-10-17", "Statement": statements}


PROVIDER = Provider(
    name="eks",
    title="Amazon EKS",
    cloud="providers.eks.cloud",
    offered=False,
    end=SelfEnd(
        kind="none",
        lacks=(
            "a node that powers off is replaced by its group, and no node is given the right to "
            "delete groups"
        ),
    ),
    page="https://console.aws.amazon.com/eks",
    permissions=(
        Permissions(
            name="aws-eks", reading=_policy(launches=False), launching=_policy(launches=True)
        ),
    ),
    pools_of="aws",
    is_used=is_used,
    not_in_total="the nodes' disks, load balancers and traffic are not in the total",
)
