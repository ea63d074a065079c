"""How many vCPUs of a family an AWS account may run, and whether a launch fits."""

import re
from typing import Any

from providers.aws.access import client
from providers.errors import QuotaError
from providers.interface import Place

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


def check_quota(session: Any, place: Place, count: int) -> str:  # noqa: ANN401 - boto3's
    """Return what the quota says, as a remark.

    Raises:
        QuotaError: the machines alone are more than the quota allows.
    """
    found = quota_code(place.instance_type, place.purchase)
    vcpus = None if place.offer is None else place.offer.vcpus
    if found is None or vcpus is None:
        return f"the quota for {place.instance_type} in {place.region} is not known"
    code, name = found
    needed = round(vcpus) * count
    try:
        service = client(session, "service-quotas", place.region)
        allowed = round(_value(service, code))
    except Exception as error:  # noqa: BLE001 - not being allowed to ask must not stop a launch
        return f"{name} in {place.region} could not be read ({type(error).__name__})"
    if needed > allowed:
        raise QuotaError(
            f"AWS: {name} in {place.region} ({code}) is {allowed} vCPUs, and {needed} are needed. "
            "Ask for more at console.aws.amazon.com/servicequotas, or take another region."
        )
    return f"{name} in {place.region}: {needed} of {allowed} vCPUs are needed, used ones unknown"


def quotas(session: Any, region: str) -> tuple[str, ...]:  # noqa: ANN401 - boto3's
    """Return every quota of machines with GPUs in a region, in a sentence each.

    Raises:
        Exception: the service cannot be asked, or the account may not ask it.
    """
    service = client(session, "service-quotas", region)
    return tuple(
        f"{name} in {region}: {_value(service, code):g} vCPUs"
        for code, name in dict.fromkeys(_CODES.values())
    )


def _value(service: Any, code: str) -> float:  # noqa: ANN401 - boto3's
    answer = service.get_service_quota(ServiceCode="ec2", QuotaCode=code)
    return float(answer["Quota"]["Value"])
