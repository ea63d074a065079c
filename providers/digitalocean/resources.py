"""The calls of a DigitalOcean launch as plain data, and what its items are; pure.

Machines are found by their base tag, and by their name among the GPU Droplets: deleting a tag, or
a tag that comes late, hides none.
"""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from pricing.catalog.sizes import sizes
from pricing.errors import InputError
from pricing.tables import Json, JsonObject, elements, members, objects
from providers import interface
from providers.ownership_tags import PREFIX, OwnershipTags, latest, read_text
from providers.token_api import JsonDocument

PROVIDER = "digitalocean"
BASE_TAG = PREFIX
"""On every machine of ours, so that one list call finds them."""

_SSH_PORT = "22"
_EVERY_PROTOCOL = ("tcp", "udp", "icmp")


class _ItemKind(NamedTuple):
    """How the API has a kind of resource.

    Attributes:
        path: of the list, and before the id of one.
        many: key of a list of them.
        singular: key of a single one.
        id: field that paths take.
    """

    path: str
    many: str
    singular: str
    id: str


KINDS: Mapping[str, _ItemKind] = MappingProxyType(
    {
        interface.MACHINE: _ItemKind("/v2/droplets", "droplets", "droplet", "id"),
        "firewall": _ItemKind("/v2/firewalls", "firewalls", "firewall", "id"),
        "ssh-key": _ItemKind("/v2/account/keys", "ssh_keys", "ssh_key", "fingerprint"),
        "tag": _ItemKind("/v2/tags", "tags", "tag", "name"),
    }
)
"""Every kind that launches make, in the order of its removal; the tag last, for it is a mark."""


def run_tag(marks: OwnershipTags) -> str:
    """Return the tag that is the run's own: run, deadline, owner and plan in one."""
    return marks.text(":")


def tags(marks: OwnershipTags) -> list[str]:
    """Return the tags of a machine; all but the first run tag are shared with other runs."""
    return [
        run_tag(marks),
        BASE_TAG,
        f"{PREFIX}-owner:{marks.owner}",
        f"{PREFIX}-plan:{marks.plan}",
    ]


def creations(spec: interface.LaunchSpec, target: interface.Place) -> Iterator[interface.Creation]:
    """Yield a tag, a key and a firewall, then one call for each machine.

    Raises:
        InputError: no image is known for the size.
    """
    marks = spec.marks
    yield _creation("tag", run_tag(marks), {"name": run_tag(marks)})
    if spec.public_key:
        name = marks.text(".")
        yield _creation("ssh-key", name, {"name": name, "public_key": spec.public_key})
    yield _creation("firewall", marks.text("."), _firewall(spec))
    for name in spec.machine_names:
        yield _creation(interface.MACHINE, name, _droplet(spec, target, name), target.region)


def _creation(kind: str, name: str, body: JsonObject, region: str = "") -> interface.Creation:
    call = f"POST {KINDS[kind].path}"
    return interface.Creation(kind=kind, name=name, region=region, call=call, arguments=body)


def _droplet(spec: interface.LaunchSpec, target: interface.Place, name: str) -> dict[str, Json]:
    body: dict[str, Json] = {
        "name": name,
        "region": target.region,
        "size": target.instance_type,
        "image": spec.image or image_of(target.instance_type),
        "tags": tags(spec.marks),
        "monitoring": False,
        "backups": False,
        "ipv6": False,
        "user_data": target.user_data,
    }
    keys = [fingerprint(spec.public_key)] if spec.public_key else []
    return body | {"ssh_keys": [*keys, *filter(None, (spec.ssh_key,))]}


def image_of(size: str) -> str:
    """Return the image that DigitalOcean makes for a size.

    Raises:
        InputError: none is known.
    """
    size_facts = sizes().get((PROVIDER, size))
    if size_facts is None or not size_facts.image:
        raise InputError(f"no image is known for {PROVIDER}/{size}; name one with --image SLUG.")
    return size_facts.image


def _firewall(spec: interface.LaunchSpec) -> dict[str, Json]:
    """Let only SSH in, machines of one run reach each other, and everything out."""
    among = {"sources": {"tags": [run_tag(spec.marks)]}}
    anywhere, allowed = list(interface.ANYWHERE), list(spec.ssh_from)
    inbound: list[JsonObject] = [
        {"protocol": "tcp", "ports": _SSH_PORT, "sources": {"addresses": allowed}}
    ]
    if spec.count > 1:
        inbound += [{"protocol": p, "ports": "0", **among} for p in _EVERY_PROTOCOL]
    outbound: list[JsonObject] = [
        {"protocol": protocol, "ports": "0", "destinations": {"addresses": anywhere}}
        for protocol in _EVERY_PROTOCOL
    ]
    return {
        "name": spec.marks.text("."),
        "tags": [run_tag(spec.marks)],
        "inbound_rules": inbound,
        "outbound_rules": outbound,
    }


def fingerprint(public_key: str) -> str:
    """Return the MD5 fingerprint of a public key, by which the API names keys: "3b:16:..."."""
    digest = hashlib.md5(base64.b64decode(public_key.split()[1]), usedforsecurity=False).hexdigest()
    return ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))


_STATES: Mapping[str, interface.State] = {"new": "starting", "active": "running"}
NAMED = re.compile(rf"{PREFIX}-([a-z0-9]+)-[0-9]+")
"""The name of a machine of ours, with its run."""


def marks_of(
    kind: str, item: JsonDocument, marks_by_run: interface.MarksByRun
) -> OwnershipTags | None:
    """Return whose an item is: by its run tag or whole name, a machine also by its short name."""
    name = str(item.get("name", ""))
    if kind != interface.MACHINE:
        return read_text(name, ":" if kind == "tag" else ".")
    tagged = tuple(
        filter(None, (read_text(str(word), ":") for word in elements(item.get("tags") or ())))
    )
    if tagged:
        return latest(tagged)
    named = NAMED.fullmatch(name)
    return marks_by_run.get(named[1]) if named else None


def resource(kind: str, item: JsonDocument, marks: OwnershipTags) -> interface.Resource:
    """Return an item of the API that is of a run."""
    machine = kind == interface.MACHINE
    created = item.get("created_at") if machine else None
    size = str(item.get("size_slug", "")) if machine else ""
    return interface.Resource(
        kind=kind,
        id=str(item[KINDS[kind].id]),
        name=str(item.get("name", "")),
        region=region_of(item) if machine else "",
        marks=marks,
        state=_STATES.get(str(item.get("status")), "running") if machine else "running",
        created_at=None if created is None else datetime.fromisoformat(str(created)),
        address=_address(item, "public") if machine else "",
        private_address=_address(item, "private") if machine else "",
        instance_type=size,
        purchase="spot" if size.endswith("-spot") else "on_demand",
    )


def region_of(item: Mapping[str, object]) -> str:
    """Return the region of a Droplet, a volume or an address; empty where the answer has none."""
    return str(members(item.get("region") or {}).get("slug", ""))


def _address(item: JsonDocument, kind: str) -> str:
    networks = objects(members(item.get("networks") or {}).get("v4") or ())
    return next((str(n["ip_address"]) for n in networks if n.get("type") == kind), "")
