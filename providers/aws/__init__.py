"""Amazon Web Services, through boto3."""

from pricing.tables import JsonObject
from providers.ownership_tags import PREFIX
from providers.provider import Permissions, Provider, SelfEnd, SpotNotices, Variable

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
_SPOT = "spot.amazonaws.com"
"""Whose service-linked role EC2 makes at the first spot request of an account."""


def policy(*, launches: bool = True) -> JsonObject:
    """Return the IAM policy: read always; make only with our tags, change only what has them."""
    statements: list[JsonObject] = [
        {"Sid": "Read", "Effect": "Allow", "Action": list(_READS), "Resource": "*"}
    ]
    if launches:
        statements += _changing()
    return {"Version": "2012-10-17", "Statement": statements}


def _changing() -> list[JsonObject]:
    marked = {"Null": {f"aws:RequestTag/{_RUN}": "false"}}
    return [
        {
            "Sid": "MakeWithOurTags",
            "Effect": "Allow",
            "Action": list(_MAKES),
            "Resource": [f"arn:aws:ec2:*:*:{kind}/*" for kind in _TAGGED],
            "Condition": marked,
        },
        {
            "Sid": "UseWhatIsThere",
            "Effect": "Allow",
            "Action": ["ec2:RunInstances", "ec2:CreateSecurityGroup"],
            "Resource": [
                *(f"arn:aws:ec2:*:*:{kind}/*" for kind in _USED),
                "arn:aws:ec2:*::image/*",
                "arn:aws:ec2:*::snapshot/*",
            ],
        },
        {
            "Sid": "UseOurKeyAndGroup",
            "Effect": "Allow",
            "Action": "ec2:RunInstances",
            "Resource": ["arn:aws:ec2:*:*:key-pair/*", "arn:aws:ec2:*:*:security-group/*"],
        },
        {
            "Sid": "TagOnlyWhatIsBeingMade",
            "Effect": "Allow",
            "Action": "ec2:CreateTags",
            "Resource": "arn:aws:ec2:*:*:*/*",
            "Condition": {"StringEquals": {"ec2:CreateAction": [m[4:] for m in _MAKES]}},
        },
        {
            "Sid": "EndFromOutside",
            "Effect": "Allow",
            "Action": [
                "scheduler:CreateSchedule",
                "scheduler:DeleteSchedule",
                "scheduler:GetSchedule",
                "scheduler:UpdateSchedule",
            ],
            "Resource": f"arn:aws:scheduler:*:*:schedule/default/{PREFIX}-*",
        },
        {
            "Sid": "FindSchedules",
            "Effect": "Allow",
            "Action": "scheduler:ListSchedules",
            "Resource": "*",
        },
        {
            "Sid": "HandTheRoleToTheScheduler",
            "Effect": "Allow",
            "Action": "iam:PassRole",
            "Resource": _ROLES,
            "Condition": {"StringEquals": {"iam:PassedToService": _SCHEDULER}},
        },
        {
            "Sid": "MoveTheDeadlineOfWhatIsOurs",
            "Effect": "Allow",
            "Action": "ec2:CreateTags",
            "Resource": "arn:aws:ec2:*:*:instance/*",
            "Condition": {
                "Null": {f"aws:ResourceTag/{_RUN}": "false"},
                "ForAllValues:StringEquals": {"aws:TagKeys": [f"{PREFIX}:deadline"]},
            },
        },
        {
            "Sid": "FirstSpotRequestOfTheAccount",
            "Effect": "Allow",
            "Action": "iam:CreateServiceLinkedRole",
            "Resource": f"arn:aws:iam::*:role/aws-service-role/{_SPOT}/AWSServiceRoleForEC2Spot",
            "Condition": {"StringEquals": {"iam:AWSServiceName": _SPOT}},
        },
        {
            "Sid": "ChangeAndEndWhatIsOurs",
            "Effect": "Allow",
            "Action": list(_ON_OURS),
            "Resource": "arn:aws:ec2:*:*:*/*",
            "Condition": {"Null": {f"aws:ResourceTag/{_RUN}": "false"}},
        },
    ]


def end_role() -> JsonObject:
    """Return the role of --end-role: who may take it, what it may do; its name has our prefix.

    It ends instances with our tag and nothing else.
    """
    return {
        "TrustPolicy": {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": _SCHEDULER},
                    "Action": "sts:AssumeRole",
                }
            ],
        },
        "Policy": {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Action": "ec2:TerminateInstances",
                    "Resource": "arn:aws:ec2:*:*:instance/*",
                    "Condition": {"Null": {f"aws:ResourceTag/{_RUN}": "false"}},
                }
            ],
        },
    }


_METADATA = "http://169.254.169.254/latest"

PROVIDER = Provider(
    name="aws",
    title="AWS",
    cloud="providers.aws.cloud",
    prices="providers.aws.prices",
    user="ubuntu",  # of the Deep Learning AMIs on Ubuntu
    end=SelfEnd(
        kind="poweroff",  # launched with shutdown behaviour "terminate"
        outside="EventBridge Scheduler",
        outside_s=LATE_S,
    ),
    # EC2 User Guide, "Spot Instance interruption notices" and "rebalance recommendations": two
    # minutes before, and as soon as the risk is elevated; IMDSv2 alone is on (HttpTokens).
    notices=SpotNotices(
        token_url=f"{_METADATA}/api/token",
        token_life="X-aws-ec2-metadata-token-ttl-seconds: 60",  # noqa: S106 - a header
        token_header="X-aws-ec2-metadata-token: ",  # noqa: S106 - a header
        taken_url=f"{_METADATA}/meta-data/spot/instance-action",
        at_risk_url=f"{_METADATA}/meta-data/events/recommendations/rebalance",
    ),
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
