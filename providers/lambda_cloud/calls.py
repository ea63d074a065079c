"""The calls of a Lambda launch as plain data, and the kinds of resource it makes; pure."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from pricing.errors import InputError
from providers.interface import MACHINE, Creation, LaunchSpec, Place
from providers.ownership_tags import PREFIX, OwnershipTags

PROVIDER = "lambda"
FIREWALL, KEY = "firewall", "ssh-key"
PATHS: Mapping[str, str] = MappingProxyType(
    {
        MACHINE: "/instance-operations/launch",
        FIREWALL: "/firewall-rulesets",
        KEY: "/ssh-keys",
    }
)
"""Every kind that launches make, in the order of its removal, and where it is made."""

WITHOUT_FIREWALL = "us-south-1"
"""docs.lambda.ai/api/cloud: "Firewall rules do not apply to the us-south-1 region"."""

_IMAGE_ID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}")
_SSH_PORT = 22


def tags(marks: OwnershipTags) -> list[dict[str, str]]:
    """Return the tags of an instance; they cannot be changed once it is made."""
    return [{"key": f"{PREFIX}-{name}", "value": text} for name, text in marks.tags().items()]


def creations(spec: LaunchSpec, place: Place) -> Iterator[Creation]:
    """Yield a key and a firewall, then one call for each machine.

    A key has no tags and a short name, so its marks are the comment of its public half; those of a
    firewall are the description of its rules.

    Raises:
        InputError: a key of the account and the run's own, of which an instance takes one; or no
            IPv4 network may reach it.
    """
    if spec.public_key and spec.ssh_key:
        raise InputError(
            f"--ssh-key {spec.ssh_key}: a Lambda instance takes one key, which is the run's own. "
            "Leave it out, and add yours to ~/.ssh/authorized_keys there."
        )
    marks = spec.marks
    if spec.public_key:
        words = " ".join((*spec.public_key.split()[:2], marks.text(".")))
        yield _creation(KEY, marks.name("key"), {"public_key": words})
    walled = place.region != WITHOUT_FIREWALL
    if walled:
        rules = [_rule(marks, network) for network in spec.ssh_from if ":" not in network]
        if not rules:
            raise InputError(
                f"--ssh-from {', '.join(spec.ssh_from)}: Lambda's firewall takes IPv4 networks."
            )
        body = {"region": place.region, "rules": rules}
        yield _creation(FIREWALL, marks.name("firewall"), body, place.region)
    for name in spec.machine_names:
        yield _creation(MACHINE, name, _instance(spec, place, walled=walled), place.region)


def _creation(kind: str, name: str, body: Mapping[str, Any], region: str = "") -> Creation:
    arguments = {"name": name, **body}
    call = f"POST /api/v1{PATHS[kind]}"
    return Creation(kind=kind, name=name, region=region, call=call, arguments=arguments)


def _rule(marks: OwnershipTags, network: str) -> dict[str, Any]:
    return {
        "protocol": "tcp",
        "port_range": [_SSH_PORT, _SSH_PORT],
        "source_network": network,
        "description": marks.text("."),
    }


def _instance(spec: LaunchSpec, place: Place, *, walled: bool) -> dict[str, Any]:
    """Return the body of a launch; its firewall is named, for its id is known once it is made."""
    body: dict[str, Any] = {
        "region_name": place.region,
        "instance_type_name": place.instance_type,
        "ssh_key_names": [spec.marks.name("key") if spec.public_key else spec.ssh_key],
        "tags": tags(spec.marks),
        "user_data": place.user_data,
    }
    if walled:
        body["firewall_rulesets"] = [{"name": spec.marks.name("firewall")}]
    if spec.image:
        kind = "id" if _IMAGE_ID.fullmatch(spec.image) else "family"
        body["image"] = {kind: spec.image}
    return body
