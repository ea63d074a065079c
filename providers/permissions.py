"""The least that launches need: an IAM policy for AWS, token scopes for DigitalOcean."""

from typing import Any

from providers.ownership_tags import PREFIX

_READS = (
    *("ec2:DescribeAddresses", "ec2:DescribeImages", "ec2:DescribeInstanceTypeOfferings"),
    *("ec2:DescribeInstanceTypes", "ec2:DescribeInstances", "ec2:DescribeKeyPairs"),
    *("ec2:DescribeRegions", "ec2:DescribeSecurityGroups", "ec2:DescribeSnapshots"),
    *("ec2:DescribeSpotInstanceRequests", "ec2:DescribeSpotPriceHistory", "ec2:DescribeTags"),
    *("ec2:DescribeVolumes", "pricing:GetProducts", "servicequotas:GetServiceQuota"),
    "ssm:GetParameters",
)
_MAKES = ("ec2:CreateSecurityGroup", "ec2:ImportKeyPair", "ec2:RunInstances")
_ON_OURS = (
    *("ec2:AuthorizeSecurityGroupIngress", "ec2:CancelSpotInstanceRequests"),
    *("ec2:DeleteKeyPair", "ec2:DeleteSecurityGroup", "ec2:DeleteSnapshot", "ec2:DeleteVolume"),
    *("ec2:ReleaseAddress", "ec2:TerminateInstances"),
)
_TAGGED = ("instance", "volume", "key-pair", "security-group", "spot-instances-request")
_USED = ("image", "network-interface", "placement-group", "subnet", "vpc")
_RUN = f"{PREFIX}:run"

_READ_DROPLETS = ("droplet:read", "regions:read", "sizes:read", "actions:read", "image:read")

DIGITALOCEAN_SCOPES: tuple[tuple[str, str], ...] = (
    ("account:read", "limit of Droplets, before a launch"),
    ("sizes:read", "prices and regions"),
    ("regions:read", "required by droplet:read"),
    ("actions:read", "required by droplet:read"),
    ("image:read", "required by droplet:read; the image of the size"),
    ("droplet:create", "machines"),
    ("droplet:read", "their state"),
    ("droplet:delete", "their end"),
    ("ssh_key:create", "the key of a run"),
    ("ssh_key:read", "finding it again, and --ssh-key"),
    ("ssh_key:delete", "its end"),
    ("firewall:create", "only SSH comes in"),
    ("firewall:read", "finding it again"),
    ("firewall:delete", "its end"),
    ("tag:create", "owner, plan, run and deadline"),
    ("tag:read", "finding what is ours"),
    ("tag:delete", "the end of a run's own tag"),
    ("block_storage:read", "volumes with our tags"),
    ("block_storage:delete", "their end"),
    ("block_storage_snapshot:read", "snapshots with our tags"),
    ("block_storage_snapshot:delete", "their end"),
    ("snapshot:read", "snapshots with our tags"),
    ("snapshot:delete", "their end"),
)
"""Custom scopes of the token in DIGITALOCEAN_TOKEN, and what each is for.

Names and requirements: docs.digitalocean.com/reference/api/scopes, edited 2025-08-28.
"""

REAPER_SCOPES: tuple[tuple[str, str], ...] = (
    *((scope, "required by droplet:delete") for scope in _READ_DROPLETS),
    ("droplet:delete", "a machine's own end; reaches every Droplet of the account"),
)
"""Custom scopes of the token in GPUCOST_DIGITALOCEAN_REAPER_TOKEN."""


def aws_policy(*, launches: bool = True) -> dict[str, Any]:
    """The IAM policy: reading always; making only with our tags, changing only what has them."""
    statements: list[dict[str, Any]] = [
        {"Sid": "Read", "Effect": "Allow", "Action": list(_READS), "Resource": "*"}
    ]
    if launches:
        statements += _changing()
    return {"Version": "2012-10-17", "Statement": statements}


def _changing() -> list[dict[str, Any]]:
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
                *("arn:aws:ec2:*::image/*", "arn:aws:ec2:*::snapshot/*"),
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
            "Sid": "ChangeAndEndWhatIsOurs",
            "Effect": "Allow",
            "Action": list(_ON_OURS),
            "Resource": "arn:aws:ec2:*:*:*/*",
            "Condition": {"Null": {f"aws:ResourceTag/{_RUN}": "false"}},
        },
    ]
