"""The calls of an AWS launch as plain data, and the kinds of resource it makes; pure."""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, NamedTuple

from pricing.money import plain
from providers.interface import MACHINE, Creation, LaunchSpec, Place
from providers.lifecycle.ledger import price_within
from providers.ownership_tags import PREFIX, Marks

PROVIDER = "aws"
RUN_TAG = f"{PREFIX}:run"

KEY, GROUP = "key", "ssh"
"""What the names of a run's key pair and security group end in."""

VOLUME = "volume"
"""What a machine's volumes are called in TagSpecifications."""

_IMAGE = (
    "resolve:ssm:/aws/service/deeplearning/ami/{architecture}/"
    "base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"
)
"""AWS' own image with NVIDIA driver, named by its public parameter; EC2 looks the id up itself."""

_ANYWHERE = "0.0.0.0/0"  # who may reach port 22; only the run's key opens it
_SSH_PORT = 22
_TOKEN_LETTERS = 64


class Kind(NamedTuple):
    """How a kind of resource is listed and removed.

    Attributes:
        paginator: operation that lists them.
        many: key of the list; of machines, within reservations.
        id: field of the id.
        name: field of the name; empty: its Name tag.
        destroy: operation that removes one.
        argument: of that operation; its value is a list where it ends in "s".
        ids: argument of the paginator that names ids.
        tagged: what a tag of it is called in TagSpecifications.
        dead: states in which it is gone.
    """

    paginator: str
    many: str
    id: str
    name: str
    destroy: str
    argument: str
    ids: str
    tagged: str
    dead: tuple[str, ...] = ()


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        MACHINE: Kind(
            "describe_instances",
            "Instances",
            "InstanceId",
            "",
            "terminate_instances",
            "InstanceIds",
            "InstanceIds",
            "instance",
            ("terminated",),
        ),
        "spot-request": Kind(
            "describe_spot_instance_requests",
            "SpotInstanceRequests",
            "SpotInstanceRequestId",
            "",
            "cancel_spot_instance_requests",
            "SpotInstanceRequestIds",
            "SpotInstanceRequestIds",
            "spot-instances-request",
            ("closed", "cancelled", "failed", "disabled"),
        ),
        "security-group": Kind(
            "describe_security_groups",
            "SecurityGroups",
            "GroupId",
            "GroupName",
            "delete_security_group",
            "GroupId",
            "GroupIds",
            "security-group",
        ),
        "key-pair": Kind(
            "describe_key_pairs",
            "KeyPairs",
            "KeyName",
            "KeyName",
            "delete_key_pair",
            "KeyName",
            "KeyNames",
            "key-pair",
        ),
    }
)
"""Every kind that launches make, in the order of its removal.

Root volumes go with their machine. Other volumes, snapshots and addresses are never made here, so
one with our tags is a copy that somebody made: it is not looked for.
"""


def is_named(kind: str, name: str, marks: Marks) -> bool:
    """Whether a side resource has the name that its run gives it; tags alone can be copied."""
    proper = {"key-pair": marks.name(KEY), "security-group": marks.name(GROUP)}
    return proper.get(kind, name) == name


def tag_specification(kind: str, marks: Marks, name: str) -> dict[str, Any]:
    """The tags of a resource, in the form of a create call."""
    told = {"Name": name, **{f"{PREFIX}:{key}": value for key, value in marks.tags().items()}}
    tags = [{"Key": key, "Value": value} for key, value in told.items()]
    return {"ResourceType": kind, "Tags": tags}


def creations(spec: LaunchSpec, place: Place) -> Iterator[Creation]:
    """A key pair and a security group, then one call for each machine."""
    marks = spec.marks
    if spec.public_key and not spec.ssh_key:
        name = marks.name(KEY)
        yield Creation(
            kind="key-pair",
            name=name,
            region=place.region,
            call="ec2:ImportKeyPair",
            arguments={
                "KeyName": name,
                "PublicKeyMaterial": spec.public_key,
                "TagSpecifications": [tag_specification("key-pair", marks, name)],
            },
        )
    name = marks.name(GROUP)
    yield Creation(
        kind="security-group",
        name=name,
        region=place.region,
        call="ec2:CreateSecurityGroup, ec2:AuthorizeSecurityGroupIngress (port 22)",
        arguments={
            "GroupName": name,
            "Description": "gpucost: SSH in, and the machines of the run among themselves",
            "TagSpecifications": [tag_specification("security-group", marks, name)],
        },
    )
    for name in spec.machine_names:
        yield Creation(
            kind=MACHINE,
            name=name,
            region=place.region,
            call="ec2:RunInstances",
            arguments=_instance(spec, place, name),
        )


def ingress(group_id: str) -> list[dict[str, Any]]:
    """What may come in: SSH, and everything from machines of the same run."""
    ssh = {"IpProtocol": "tcp", "FromPort": _SSH_PORT, "ToPort": _SSH_PORT}
    return [
        {**ssh, "IpRanges": [{"CidrIp": _ANYWHERE}]},
        {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group_id}]},
    ]


def _instance(spec: LaunchSpec, place: Place, name: str) -> dict[str, Any]:
    marks = spec.marks
    kinds = [KINDS[MACHINE].tagged, VOLUME]
    body: dict[str, Any] = {
        "ImageId": spec.image or _image_of(place),
        "InstanceType": place.instance_type,
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": _token(name, place),
        "SecurityGroups": [marks.name(GROUP)],
        "UserData": _user_data(spec, place),
        "InstanceInitiatedShutdownBehavior": "terminate",
        "MetadataOptions": {"HttpTokens": "required", "HttpEndpoint": "enabled"},
    }
    if place.zone:
        body["Placement"] = {"AvailabilityZone": place.zone}
    key = spec.ssh_key or (marks.name(KEY) if spec.public_key else "")
    if key:
        body["KeyName"] = key
    if place.purchase == "spot":
        kinds.append(KINDS["spot-request"].tagged)
        body["InstanceMarketOptions"] = _spot(spec, place)
    body["TagSpecifications"] = [tag_specification(kind, marks, name) for kind in kinds]
    return body


def _user_data(spec: LaunchSpec, place: Place) -> str:
    """The bootstrap; where another key pair is named, the run's own key comes with it."""
    if not (spec.ssh_key and spec.public_key and place.user_data):
        return place.user_data
    return f'{place.user_data.rstrip()}\nssh_authorized_keys: ["{spec.public_key}"]\n'


def _spot(spec: LaunchSpec, place: Place) -> dict[str, Any]:
    """One-time, ended when interrupted, and never so dear an hour that the run exceeds its cap."""
    options = {
        "SpotInstanceType": "one-time",
        "InstanceInterruptionBehavior": "terminate",
    }
    if place.offer is not None:
        start = spec.marks.deadline - timedelta(seconds=float(spec.ttl_s))
        most = price_within(place.offer, spec.count, spec.ttl_s, start, spec.max_usd)
        options["MaxPrice"] = plain(most)
    return {"MarketType": "spot", "SpotOptions": options}


def _image_of(place: Place) -> str:
    return _IMAGE.format(architecture=place.cpu_architecture)


def _token(name: str, place: Place) -> str:
    """The token of one launch attempt: the same machine at another place gets another one."""
    attempt = f"{name}/{place.instance_type}/{place.purchase}/{place.region}{place.zone}"
    return hashlib.sha256(attempt.encode()).hexdigest()[:_TOKEN_LETTERS]
