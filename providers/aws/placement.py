"""The network of an AWS launch: the default VPC, or a subnet that the user names."""

import re
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from pricing.tables import elements, objects
from providers.aws.access import DENIED, AwsClient, client, code_of
from providers.interface import NoCapacityError, Place, QuotaError

_GROUP_ID = "sg-"
_PUBLIC = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")


def place_in_network(
    ec2: AwsClient, subnet: str, target: Place, zones: tuple[str, ...]
) -> tuple[Place, tuple[str, ...], str]:
    """Return where machines can be made, as the network allows it.

    Args:
        ec2: client of the region.
        subnet: that the user named; empty: the default VPC.
        target: without a zone.
        zones: that offer the type.

    Returns:
        The place with its network, the zones that are left, and why there are none.
    """
    if not subnet:
        return target, zones, _without_default(ec2, target)
    try:
        network = ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]
    except Exception as error:
        if not code_of(error).startswith("InvalidSubnet"):
            raise
        return target, (), f"there is no subnet {subnet} in {target.region}"
    fitting = tuple(zone for zone in zones if zone == network["AvailabilityZone"])
    if not fitting:
        where = network["AvailabilityZone"]
        return target, (), f"{target.instance_type} is not offered in {where}, where {subnet} is"
    return replace(target, network=str(network["VpcId"])), fitting, ""


def _without_default(ec2: AwsClient, target: Place) -> str:
    """Return what to say of a region without a default VPC.

    Empty where there is one, or none may ask.
    """
    filters = [{"Name": "is-default", "Values": ["true"]}]
    try:
        if ec2.describe_vpcs(Filters=filters)["Vpcs"]:
            return ""
    except Exception as error:
        if code_of(error) != DENIED:
            raise
        return ""
    return (
        f"{target.region} has no default VPC in this account: name a subnet with a way to the "
        "internet by --subnet subnet-ID (and, if you like, --security-group sg-ID)"
    )


def with_group_ids(ec2: AwsClient, arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the network interfaces of a launch with the ids of groups in place of their names.

    Raises:
        NoCapacityError: there is no such group in the subnet's network.
    """
    interfaces = [dict(interface) for interface in objects(arguments.get("NetworkInterfaces", ()))]
    for interface in interfaces:
        interface["Groups"] = [_id_of(ec2, str(name)) for name in elements(interface["Groups"])]
    return {"NetworkInterfaces": interfaces} if interfaces else {}


def _id_of(ec2: AwsClient, name: str) -> str:
    if name.startswith(_GROUP_ID):
        return name
    filters = [{"Name": "group-name", "Values": [name]}]
    groups = ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
    if not groups:
        raise NoCapacityError(f"AWS: the group {name} is not there.")
    return str(groups[0]["GroupId"])


def private_endpoint(ec2: AwsClient) -> str | None:
    """Return the endpoint of a client where it is not AWS' public one."""
    host = urlsplit(ec2.meta.endpoint_url).hostname or ""
    return None if host.endswith(_PUBLIC) else str(ec2.meta.endpoint_url)


_IMAGE_ID = "ami-"


def volumes_that_stay(ec2: AwsClient, image: str, region: str) -> tuple[tuple[str, ...], str, bool]:
    """Return the devices of an image whose volumes outlive their machine, as EC2 has it.

    Args:
        ec2: client of the region.
        image: id of it; empty: the provider's own, whose volumes go with the machine.
        region: where.

    Returns:
        The devices, what to say of it (empty: nothing), and whether it is there at all.
    """
    if not image:
        return (), "", True
    unseen = f"{image} was not looked at, so a volume of it may stay without its machine"
    if not image.startswith(_IMAGE_ID):
        return (), unseen, True
    try:
        images = ec2.describe_images(ImageIds=[image])["Images"]
    except Exception as error:
        code = code_of(error)
        if code == DENIED:
            return (), f"{unseen} (ec2:DescribeImages is not allowed)", True
        if not code.startswith("InvalidAMIID"):
            raise
        images = []
    if not images:
        return (), f"there is no image {image} in {region}", False
    stay = tuple(
        str(mapping["DeviceName"])
        for mapping in images[0].get("BlockDeviceMappings", ())
        if mapping.get("Ebs", {}).get("DeleteOnTermination") is False
    )
    remark = f"{image} keeps {', '.join(stay)} when its machine ends; it is made to go with it"
    return stay, remark if stay else "", True


# "Amazon EC2 endpoints and quotas", AWS General Reference, read 2026-11-21. The quota of P6 spot
# requests is not named there.
_CODES = {
    ("g", "on_demand"): ("L-DB2E81BA", "Running On-Demand G and VT instances"),
    ("p", "on_demand"): ("L-417A185B", "Running On-Demand P instances"),
    ("g", "spot"): ("L-3819A6DF", "All G and VT Spot Instance Requests"),
    ("p", "spot"): ("L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests"),
    ("p5", "spot"): ("L-C4BD4855", "All P5 Spot Instance Requests"),
}
_UNKNOWN = ("p6",)
_FAMILY = re.compile(r"(gr|g|p)(\d+)")


def quota_code(instance_type: str, purchase: str) -> tuple[str, str] | None:
    """Return code and name of the quota that an instance type is under; None where unknown."""
    match = _FAMILY.match(instance_type)
    if match is None:
        return None
    family, generation = match[1][0], f"{match[1][0]}{match[2]}"
    if purchase == "spot" and generation in _UNKNOWN:
        return None
    return _CODES.get((generation, purchase)) or _CODES.get((family, purchase))


def check_quota(session: AwsClient, target: Place, count: int) -> str:
    """Return what the quota says, as a remark.

    Raises:
        QuotaError: the machines alone are more than the quota allows.
    """
    quota = quota_code(target.instance_type, target.purchase)
    vcpus = None if target.offer is None else target.offer.vcpus
    if quota is None or vcpus is None:
        return f"the quota for {target.instance_type} in {target.region} is not known"
    code, name = quota
    needed = round(vcpus) * count
    try:
        service = client(session, "service-quotas", target.region)
        allowed = round(_value(service, code))
    except Exception as error:  # noqa: BLE001 - not being allowed to ask must not stop a launch
        return f"{name} in {target.region} could not be read ({type(error).__name__})"
    if needed > allowed:
        raise QuotaError(
            f"AWS: {name} in {target.region} ({code}) is {allowed} vCPUs, and {needed} are needed. "
            "Ask for more at console.aws.amazon.com/servicequotas, or take another region."
        )
    return f"{name} in {target.region}: {needed} of {allowed} vCPUs are needed, used ones unknown"


def quotas(session: AwsClient, region: str) -> tuple[str, ...]:
    """Return every quota of machines with GPUs in a region, in a sentence each.

    Raises:
        Exception: the service cannot be asked, or the account may not ask it.
    """
    service = client(session, "service-quotas", region)
    return tuple(
        f"{name} in {region}: {_value(service, code):g} vCPUs"
        for code, name in dict.fromkeys(_CODES.values())
    )


def _value(service: AwsClient, code: str) -> float:
    answer = service.get_service_quota(ServiceCode="ec2", QuotaCode=code)
    return float(answer["Quota"]["Value"])
