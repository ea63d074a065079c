"""The network of an AWS launch: the default VPC, or a subnet that the user names."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from pricing.json_value import elements, objects
from providers.aws.failures import DENIED, code_of
from providers.errors import NoCapacityError
from providers.interface import Place

_ID = "sg-"
_PUBLIC = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")


def place(
    ec2: Any,  # noqa: ANN401 - boto3's
    subnet: str,
    here: Place,
    zones: tuple[str, ...],
) -> tuple[Place, tuple[str, ...], str]:
    """Return where machines can be made, as the network allows it.

    Args:
        ec2: client of the region.
        subnet: that the user named; empty: the default VPC.
        here: the place, without a zone.
        zones: that offer the type.

    Returns:
        The place with its network, the zones that are left, and why there are none.
    """
    if not subnet:
        return here, zones, _without_default(ec2, here)
    try:
        found = ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]
    except Exception as error:
        if not code_of(error).startswith("InvalidSubnet"):
            raise
        return here, (), f"there is no subnet {subnet} in {here.region}"
    left = tuple(zone for zone in zones if zone == found["AvailabilityZone"])
    if not left:
        where = found["AvailabilityZone"]
        return here, (), f"{here.instance_type} is not offered in {where}, where {subnet} is"
    return replace(here, network=str(found["VpcId"])), left, ""


def _without_default(ec2: Any, here: Place) -> str:  # noqa: ANN401 - boto3's
    """Return what to say of a region without a default VPC.

    Empty where there is one, or none may ask.
    """
    wanted = [{"Name": "is-default", "Values": ["true"]}]
    try:
        if ec2.describe_vpcs(Filters=wanted)["Vpcs"]:
            return ""
    except Exception as error:
        if code_of(error) != DENIED:
            raise
        return ""
    return (
        f"{here.region} has no default VPC in this account: name a subnet with a way to the "
        "internet by --subnet subnet-ID (and, if you like, --security-group sg-ID)"
    )


def with_group_ids(ec2: Any, arguments: Mapping[str, object]) -> dict[str, object]:  # noqa: ANN401 - boto3's
    """Return the network interfaces of a launch with the ids of groups in place of their names.

    Raises:
        NoCapacityError: there is no such group in the subnet's network.
    """
    interfaces = [dict(one) for one in objects(arguments.get("NetworkInterfaces", ()))]
    for one in interfaces:
        one["Groups"] = [_id_of(ec2, str(name)) for name in elements(one["Groups"])]
    return {"NetworkInterfaces": interfaces} if interfaces else {}


def _id_of(ec2: Any, name: str) -> str:  # noqa: ANN401 - boto3's
    if name.startswith(_ID):
        return name
    wanted = [{"Name": "group-name", "Values": [name]}]
    found = ec2.describe_security_groups(Filters=wanted)["SecurityGroups"]
    if not found:
        raise NoCapacityError(f"AWS: the group {name} is not there.")
    return str(found[0]["GroupId"])


def private_endpoint(ec2: Any) -> str | None:  # noqa: ANN401 - boto3's
    """Return the endpoint of a client where it is not AWS' public one."""
    host = urlsplit(ec2.meta.endpoint_url).hostname or ""
    return None if host.endswith(_PUBLIC) else str(ec2.meta.endpoint_url)
