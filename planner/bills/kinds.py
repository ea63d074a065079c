"""What a line of a bill is for, read from the words that providers use."""

import re
from typing import NamedTuple

from planner.bills.bill import MACHINE, RESERVED


class UsageType(NamedTuple):
    """What an AWS usage type says."""

    kind: str
    instance_type: str | None
    purchase: str | None


# AWS usage types, without their region prefix ("USE2-BoxUsage:p5.48xlarge"); AWS CUR user guide.
_MACHINES = {
    "BoxUsage": "on_demand",
    "DedicatedUsage": "on_demand",
    "SpotUsage": "spot",
    "HeavyUsage": RESERVED,
    "UnusedBox": "on_demand",
}
_MACHINE_TYPE = re.compile(rf"(?:^|-)({'|'.join(_MACHINES)})(?::([\w.-]+))?$")
_AWS = (
    (re.compile(r"EBS:Snapshot"), "snapshot"),
    (re.compile(r"EBS:Volume"), "disk"),
    (re.compile(r"TimedStorage"), "object-storage"),
    (re.compile(r"(?:^|-)DataTransfer-Out-Bytes$"), "egress"),
    (re.compile(r"PublicIPv4:|ElasticIP:"), "address"),
    (re.compile(r"AmazonEKS-Hours"), "control-plane"),
)

# Words of descriptions and product names, tried in order.
_WORDS = (
    (re.compile(r"\btax(es)?\b|\bvat\b|\bgst\b"), "tax"),
    (re.compile(r"\bcredits?\b|\bdiscounts?\b|\bpromo|\badjustment|\brefund"), "credit"),
    (re.compile(r"snapshot|backup"), "snapshot"),
    (re.compile(r"data transfer in\b|regional data transfer|data transfer from|ingress"), "other"),
    (re.compile(r"data transfer to (?!the internet)"), "other"),
    (re.compile(r"data transfer out|bandwidth|egress|outbound|transfer overage"), "egress"),
    (
        re.compile(
            r"\bvolumes?\b|block storage|provisioned storage|gp[23]\b|\bdisks?\b|persistent"
        ),
        "disk",
    ),
    (re.compile(r"\bspaces\b|object storage|\bs3\b|\bbucket|simple storage"), "object-storage"),
    (re.compile(r"ipv4|(floating|reserved|elastic|public) ip"), "address"),
    (re.compile(r"control plane|highly available|\beks\b|per cluster"), "control-plane"),
    (re.compile(r"droplet|instance hour|virtual machine|\bboxusage|\bspotusage"), MACHINE),
)
# "$0.34 per On Demand Linux c5.2xlarge Instance Hour", of AWS price lists and FOCUS exports.
_DESCRIBED = re.compile(
    r"\b([a-z][a-z0-9-]*\d[a-z0-9-]*\.[a-z0-9-]+)\b.*instance[ -]hour", re.IGNORECASE
)
# "droplet name (c-2-4GiB)" of DigitalOcean; its name may have parentheses, too.
_SLUG = re.compile(r"\(([a-z][a-z0-9]*(?:-[a-z0-9.]+)+)\)\s*$", re.IGNORECASE)

# What the providers call an address that nothing uses: "PublicIPv4:IdleAddress" (AWS), "Unused
# Floating IP" (DigitalOcean). "Static Ip Charge" of Google Cloud is billed in use, too: not here.
_IDLE = re.compile(r"idle ?address|idle public ip|\b(?:unused|unassigned) (?:floating|reserved) ip")
# Capacity that is reserved and that no machine runs on (AWS CUR user guide).
_UNUSED_BOX = re.compile(r"(?:^|-)Unused(?:Box|Ded)(?::|$)")
_IN_USE = re.compile(r"in-?use ?(?:address|public ip)|in use\b|on a (?:standard|spot)")
# What may have a disk, or an address, attached without being named a machine.
_HOSTS = (
    r"\binstances?\b|\bnodes?\b|kubernetes|\bcompute\b|\bvms?\b|virtual machine|droplet|"
    r"\bcores?\b|\bram\b|\bgpus?\b|notebook|workspace|container|\bservers?\b|boxusage"
)
_ADDRESSED = r"load ?balanc|gateway|\bnat\b|firewall|\bvpn\b|bastion|forwarding|front door|\bapp"
_MAY_HOST = {"disk": re.compile(_HOSTS), "address": re.compile(f"{_HOSTS}|{_ADDRESSED}")}


def of_usage_type(text: str) -> UsageType:
    """Return what an AWS usage type is for; a BoxUsage without a size is m1.small, as AWS says."""
    machine = _MACHINE_TYPE.search(text)
    if machine is not None:
        return UsageType(MACHINE, machine[2] or "m1.small", _MACHINES[machine[1]])
    kind = next((kind for pattern, kind in _AWS if pattern.search(text)), "other")
    return UsageType(kind, None, None)


def of_words(*texts: str | None) -> str:
    """Return the kind that the words of a line name; "other" where none does."""
    said = " ".join(text for text in texts if text).lower()
    return next((kind for pattern, kind in _WORDS if pattern.search(said)), "other")


def described_size(description: str) -> str | None:
    """Return the instance type in an AWS description of machine hours."""
    match = _DESCRIBED.search(description)
    return match[1] if match else None


def size_in_parentheses(description: str) -> str | None:
    """Return the size at the end of a DigitalOcean description."""
    match = _SLUG.search(description)
    return match[1] if match else None


def says_idle(kind: str, *texts: str | None) -> bool | None:
    """Return whether the provider's words say that nobody used it; None where they do not say.

    Only of addresses: what else has such a word in its line may be named so by its owner.
    """
    if kind != "address":
        return None
    said = " ".join(text for text in texts if text).lower()
    if _IDLE.search(said):
        return True
    return False if _IN_USE.search(said) else None


def is_unused_capacity(usage_type: str) -> bool:
    """Return whether an AWS usage type is of reserved capacity that no machine runs on."""
    return _UNUSED_BOX.search(usage_type) is not None


def may_host(kind: str, text: str) -> bool:
    """Return whether words may be of something that has disks or addresses attached."""
    return _MAY_HOST[kind].search(text.lower()) is not None
