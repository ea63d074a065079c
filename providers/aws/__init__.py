"""Amazon Web Services, through boto3."""

from pricing.tables import Json, JsonObject
from providers.ownership_tags import PREFIX
from providers.provider import Permissions, Provider, SelfEnd, Variable

LATE_S = 120
"""A schedule names a minute, and comes within sixty seconds of it: so much later at most.

docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html ("60 second precision")
"""

_READS = (
    "ec2:DescribeImages",
    "ec2:DescribeInstanceAttribute",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeKeyPairs",
    "ec2:DescribeRegions",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSpotInstanceRequests",
    "ec2:DescribeSpotPriceHistory",
    "ec2:DescribeSubnets",
    "ec2:DescribeTags",
    "ec2:DescribeVpcs",
    "pricing:GetProducts",
    "servicequotas:GetServiceQuota",
    "ssm:GetParameters",
)
_MAKES = ("ec2:CreateSecurityGroup", "ec2:ImportKeyPair", "ec2:RunInstances")
_ON_OURS = (
    "ec2:AuthorizeSecurityGroupIngress",
    "ec2:CancelSpotInstanceRequests",
    "ec2:DeleteKeyPair",
    "ec2:DeleteSecurityGroup",
    "ec2:TerminateInstances",
)
_TAGGED = ("instance", "volume", "key-pair", "security-group", "spot-instances-request")
_USED = ("image", "network-interface", "placement-group", "subnet", "vpc")
_RUN = f"{PREFIX}:run"
_SCHEDULER = "scheduler.amazonaws.com"
_ROLES = f"arn:aws:iam::*:role/{PREFIX}-*"
GROUPS = f"arn:aws:eks:*:*:nodegroup/*/{PREFIX}-*/*"
"""Node groups that are named as ours are."""

SCHEDULES = "EventBridge Scheduler"
_SPOT = "spot.amazonaws.com"
"""Whose service-linked role EC2 makes at the first spot request of an account."""


def allow(
    sid: str, actions: Json, resource: Json, condition: JsonObject | None = None
) -> JsonObject:
    """Return a statement of an IAM policy; without `sid` it has no name."""
    named = {"Sid": sid} if sid else {}
    limited = {"Condition": condition} if condition else {}
    return {**named, "Effect": "Allow", "Action": actions, "Resource": resource, **limited}


def iam_policy(*statements: JsonObject) -> JsonObject:
    """Return an IAM policy of these statements."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


def policy(*, launches: bool = True) -> JsonObject:
    """Return the IAM policy: read always; make only with our tags, change only what has them."""
    return iam_policy(allow("Read", list(_READS), "*"), *(_changing() if launches else ()))


def _changing() -> list[JsonObject]:
    tagged: JsonObject = {"Null": {f"aws:ResourceTag/{_RUN}": "false"}}
    one_tag: JsonObject = {"aws:TagKeys": [f"{PREFIX}:deadline"]}
    made_by = {"StringEquals": {"ec2:CreateAction": [action[4:] for action in _MAKES]}}
    used = [f"arn:aws:ec2:*:*:{kind}/*" for kind in _USED]
    return [
        allow(
            "MakeWithOurTags",
            list(_MAKES),
            [f"arn:aws:ec2:*:*:{kind}/*" for kind in _TAGGED],
            {"Null": {f"aws:RequestTag/{_RUN}": "false"}},
        ),
        allow(
            "UseWhatIsThere",
            ["ec2:RunInstances", "ec2:CreateSecurityGroup"],
            [*used, "arn:aws:ec2:*::image/*", "arn:aws:ec2:*::snapshot/*"],
        ),
        allow(
            "UseOurKeyAndGroup",
            "ec2:RunInstances",
            ["arn:aws:ec2:*:*:key-pair/*", "arn:aws:ec2:*:*:security-group/*"],
        ),
        allow("TagOnlyWhatIsBeingMade", "ec2:CreateTags", "arn:aws:ec2:*:*:*/*", made_by),
        *scheduling(),
        allow(
            "MoveTheDeadlineOfWhatIsOurs",
            "ec2:CreateTags",
            "arn:aws:ec2:*:*:instance/*",
            {**tagged, "ForAllValues:StringEquals": one_tag},
        ),
        allow(
            "FirstSpotRequestOfTheAccount",
            "iam:CreateServiceLinkedRole",
            f"arn:aws:iam::*:role/aws-service-role/{_SPOT}/AWSServiceRoleForEC2Spot",
            {"StringEquals": {"iam:AWSServiceName": _SPOT}},
        ),
        allow("ChangeAndEndWhatIsOurs", list(_ON_OURS), "arn:aws:ec2:*:*:*/*", tagged),
    ]


def scheduling() -> list[JsonObject]:
    """Return what an identity must be allowed to order an end from outside."""
    return [
        allow(
            "EndFromOutside",
            [f"scheduler:{verb}Schedule" for verb in ("Create", "Delete", "Get", "Update")],
            f"arn:aws:scheduler:*:*:schedule/default/{PREFIX}-*",
        ),
        allow("FindSchedules", "scheduler:ListSchedules", "*"),
        allow(
            "HandTheRoleToTheScheduler",
            "iam:PassRole",
            _ROLES,
            {"StringEquals": {"iam:PassedToService": _SCHEDULER}},
        ),
    ]


def end_role() -> JsonObject:
    """Return the role of --end-role: who may take it, what it may do; its name has our prefix.

    It ends instances with our tag and node groups with our name, and nothing else.
    """
    trusted: JsonObject = {
        "Effect": "Allow",
        "Principal": {"Service": _SCHEDULER},
        "Action": "sts:AssumeRole",
    }
    tagged: JsonObject = {"Null": {f"aws:ResourceTag/{_RUN}": "false"}}
    ends = allow("", "ec2:TerminateInstances", "arn:aws:ec2:*:*:instance/*", tagged)
    groups = allow("", "eks:DeleteNodegroup", GROUPS)
    return {"TrustPolicy": iam_policy(trusted), "Policy": iam_policy(ends, groups)}


_METADATA = "http://169.254.169.254/latest"

PROVIDER = Provider(
    name="aws",
    address="https://ec2.us-east-1.amazonaws.com",
    endpoint="AWS_ENDPOINT_URL",
    title="AWS",
    cloud="providers.aws.cloud",
    prices="providers.aws.prices",
    user="ubuntu",  # of the Deep Learning AMIs on Ubuntu
    end=SelfEnd(
        kind="poweroff",  # launched with shutdown behaviour "terminate"
        outside=SCHEDULES,
        outside_s=LATE_S,
    ),
    # EC2 User Guide, "Spot Instance interruption notices" and "rebalance recommendations": two
    # minutes before, and as soon as the risk is elevated; IMDSv2 alone is on (HttpTokens).
    notices={
        "token_url": f"{_METADATA}/api/token",
        "token_life": "X-aws-ec2-metadata-token-ttl-seconds: 60",
        "token_header": "X-aws-ec2-metadata-token: ",
        "taken_url": f"{_METADATA}/meta-data/spot/instance-action",
        "at_risk_url": f"{_METADATA}/meta-data/events/recommendations/rebalance",
    },
    page="https://console.aws.amazon.com/ec2",
    variables=(
        Variable(
            name="AWS_ACCESS_KEY_ID",
            use="AWS: the SDK's own chain; needed to refresh prices and launch",
        ),
    ),
    asked_with=("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    permissions=(
        Permissions(name="aws", reading=policy(launches=False), launching=policy(launches=True)),
        Permissions(name="aws-end-role", reading=end_role(), launching=end_role()),
    ),
    not_in_total="the root volume, whose size the image sets, and traffic are not in the total",
)
