"""Amazon EKS, as the rest of gpucost needs to know it."""

from pricing.json_value import JsonObject
from providers.eks.seen_regions import is_used
from providers.ownership_tags import PREFIX
from providers.provider import Permissions, Provider, SelfEnd

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
