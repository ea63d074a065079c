"""The calls of an AWS launch as plain data, and the kinds of resource it makes; pure."""

import hashlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from email import message_from_string
from email.mime.text import MIMEText
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from pricing.money import plain
from pricing.tables import Json, JsonObject
from providers.interface import MACHINE, Creation, LaunchSpec, Place
from providers.journal.ledger import price_within
from providers.ownership_tags import PREFIX, OwnershipTags

PROVIDER = "aws"
RUN_TAG, DEADLINE_TAG = f"{PREFIX}:run", f"{PREFIX}:deadline"

KEY, GROUP = "key", "ssh"
"""What the names of a run's key pair and security group end in."""

VOLUME = "volume"
"""What a machine's volumes are called in TagSpecifications."""

_IMAGE = (
    "resolve:ssm:/aws/service/deeplearning/ami/{architecture}/"
    "base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"
)
"""AWS' own image with NVIDIA driver, named by its public parameter; EC2 looks the id up itself."""

SSH_FROM = "SshFrom"
"""Argument of a group's creation that belongs to its second call."""

_SSH_PORT = 22
_TOKEN_LETTERS = 64


class _AwsKind(NamedTuple):
    """How a kind of resource is listed and removed.

    Attributes:
        paginator: operation that lists them.
        many: key of the list; of machines, within reservations.
        id: field of the id.
        destroy: operation that removes one.
        argument: of that operation; its value is a list where it ends in "s".
        ids: argument of the paginator that names ids.
        tagged: what a tag of it is called in TagSpecifications.
        name: field of the name; empty: its Name tag.
        dead: states in which it is gone.
    """

    paginator: str
    many: str
    id: str
    destroy: str
    argument: str
    ids: str
    tagged: str
    name: str = ""
    dead: Sequence[str] = ()


_TABLE = tomllib.loads(Path(__file__).with_name("kinds.toml").read_text(encoding="utf-8"))
KINDS: Mapping[str, _AwsKind] = MappingProxyType(
    {kind: _AwsKind(**row) for kind, row in _TABLE.items()}
)
"""Every kind that launches make, in the order of its removal.

Root volumes go with their machine. Other volumes, snapshots and addresses are never made here, so
one with our tags is a copy that somebody made: it is not looked for.
"""


def tag_specification(kind: str, marks: OwnershipTags, name: str) -> dict[str, Json]:
    """Return the tags of a resource, in the form of a create call."""
    tags_by_key = {"Name": name, **marks.labels(":")}
    tags = [{"Key": key, "Value": value} for key, value in tags_by_key.items()]
    return {"ResourceType": kind, "Tags": tags}


def creations(spec: LaunchSpec, target: Place) -> Iterator[Creation]:
    """Yield a key pair and a security group, then one call for each machine."""
    marks = spec.marks
    if spec.public_key and not spec.ssh_key:
        name = marks.name(KEY)
        yield Creation(
            kind="key-pair",
            name=name,
            region=target.region,
            call="ec2:ImportKeyPair",
            arguments={
                "KeyName": name,
                "PublicKeyMaterial": spec.public_key,
                "TagSpecifications": [tag_specification("key-pair", marks, name)],
            },
        )
    if not spec.security_group:
        yield _group(spec, target)
    for name in spec.machine_names:
        yield Creation(
            kind=MACHINE,
            name=name,
            region=target.region,
            call="ec2:RunInstances",
            arguments=_instance(spec, target, name),
        )


def _group(spec: LaunchSpec, target: Place) -> Creation:
    """Return the run's own group; who may reach port 22 is set by a second call."""
    name = spec.marks.name(GROUP)
    arguments: dict[str, Json] = {
        "GroupName": name,
        "Description": "gpucost: SSH in, and the machines of the run among themselves",
        "TagSpecifications": [tag_specification("security-group", spec.marks, name)],
        SSH_FROM: list(spec.ssh_from),
    }
    return Creation(
        kind="security-group",
        name=name,
        region=target.region,
        call="ec2:CreateSecurityGroup, ec2:AuthorizeSecurityGroupIngress (port 22)",
        arguments=arguments | ({"VpcId": target.network} if target.network else {}),
    )


def ssh_from(creation: Creation) -> tuple[str, ...]:
    """Return the networks from which machines behind a group are reached over SSH."""
    networks = creation.arguments[SSH_FROM]
    if not isinstance(networks, list):
        raise TypeError(f"{creation.name}: {SSH_FROM} is not a list of networks")
    return tuple(str(network) for network in networks)


def ingress(group_id: str, ssh_from: tuple[str, ...]) -> list[JsonObject]:
    """Return what may come in: SSH from those networks, everything from the run's machines."""
    rule: dict[str, Json] = {"IpProtocol": "tcp", "FromPort": _SSH_PORT, "ToPort": _SSH_PORT}
    four = [{"CidrIp": network} for network in ssh_from if ":" not in network]
    six = [{"CidrIpv6": network} for network in ssh_from if ":" in network]
    rule |= ({"IpRanges": four} if four else {}) | ({"Ipv6Ranges": six} if six else {})
    return [rule, {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group_id}]}]


def _instance(spec: LaunchSpec, target: Place, name: str) -> dict[str, Json]:
    marks = spec.marks
    kinds = [KINDS[MACHINE].tagged, VOLUME]
    body: dict[str, Json] = {
        "ImageId": spec.image or _IMAGE.format(architecture=target.cpu_architecture),
        "InstanceType": target.instance_type,
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": client_token(
            name, target.instance_type, target.purchase, f"{target.region}{target.zone}"
        ),
        **_network(spec),
        "UserData": _user_data(spec, target),
        "InstanceInitiatedShutdownBehavior": "terminate",
        "MetadataOptions": {"HttpTokens": "required", "HttpEndpoint": "enabled"},
    }
    if target.volumes:
        body["BlockDeviceMappings"] = [
            {"DeviceName": name, "Ebs": {"DeleteOnTermination": True}} for name in target.volumes
        ]
    if target.zone:
        body["Placement"] = {"AvailabilityZone": target.zone}
    key = spec.ssh_key or (marks.name(KEY) if spec.public_key else "")
    if key:
        body["KeyName"] = key
    if target.purchase == "spot":
        kinds.append(KINDS["spot-request"].tagged)
        body["InstanceMarketOptions"] = _spot(spec, target)
    body["TagSpecifications"] = [tag_specification(kind, marks, name) for kind in kinds]
    return body


def _network(spec: LaunchSpec) -> dict[str, Json]:
    """Return where the machine is reached: the default network by the group's name, or a subnet.

    In a subnet only ids of groups are taken; the run's own group stands there by its name until it
    is made.
    """
    if spec.subnet:
        group = spec.security_group or spec.marks.name(GROUP)
        interface: dict[str, Json] = {
            "DeviceIndex": 0,
            "SubnetId": spec.subnet,
            "AssociatePublicIpAddress": True,
        }
        return {"NetworkInterfaces": [interface | {"Groups": [group]}]}
    if spec.security_group:
        return {"SecurityGroupIds": [spec.security_group]}
    return {"SecurityGroups": [spec.marks.name(GROUP)]}


def _user_data(spec: LaunchSpec, target: Place) -> str:
    """Return the bootstrap; where another key pair is named, it brings the run's own key, too."""
    document = message_from_string(target.user_data)
    if not (spec.ssh_key and spec.public_key and document.is_multipart()):
        return target.user_data
    text = f'#cloud-config\nssh_authorized_keys: ["{spec.public_key}"]\n'
    document.attach(MIMEText(text, "cloud-config", "us-ascii"))
    return document.as_string()


def _spot(spec: LaunchSpec, target: Place) -> dict[str, Json]:
    """Return spot options: one-time, ended when interrupted, at a price within the run's cap."""
    options = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
    if target.offer is not None:
        start = spec.marks.deadline - timedelta(seconds=float(spec.ttl_s))
        max_price = price_within(target.offer, spec.count, spec.most_s, start, spec.max_usd)
        options["MaxPrice"] = plain(max_price)
    return {"MarketType": "spot", "SpotOptions": options}


def client_token(name: str, instance_type: str, purchase: str, where: str) -> str:
    """Return the token of one launch attempt: the machine gets another one at another place.

    EC2 tells it of every instance and copies it to none, so it also proves whose an instance is.

    Args:
        name: of the machine.
        instance_type: such as "g6.xlarge".
        purchase: "spot" or "on_demand".
        where: region and zone, one behind the other.
    """
    attempt = f"{name}/{instance_type}/{purchase}/{where}"
    return hashlib.sha256(attempt.encode()).hexdigest()[:_TOKEN_LETTERS]
