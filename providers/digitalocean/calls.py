"""The calls of a DigitalOcean launch as plain data, and the kinds of resource it makes; pure."""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from pricing.catalog.sizes import sizes
from pricing.errors import InputError
from pricing.tables import Json, JsonObject
from providers.interface import ANYWHERE, MACHINE, Creation, LaunchSpec, Place
from providers.ownership_tags import PREFIX, OwnershipTags

PROVIDER = "digitalocean"
BASE_TAG = PREFIX
"""On every machine of ours, so that one list call finds them."""

_SSH_PORT = "22"
_EVERY_PROTOCOL = ("tcp", "udp", "icmp")


class DropletKind(NamedTuple):
    """How a kind of resource is listed, read and removed.

    Attributes:
        group: attribute of the client.
        many: key of a list of them.
        one: key of a single one.
        id: field that calls take.
        destroy: method that removes one.
        path: of the API, for people.
    """

    group: str
    many: str
    one: str
    id: str
    destroy: str
    path: str


KINDS: Mapping[str, DropletKind] = MappingProxyType(
    {
        MACHINE: DropletKind("droplets", "droplets", "droplet", "id", "destroy", "/v2/droplets"),
        "firewall": DropletKind(
            "firewalls", "firewalls", "firewall", "id", "delete", "/v2/firewalls"
        ),
        "ssh-key": DropletKind(
            "ssh_keys", "ssh_keys", "ssh_key", "fingerprint", "delete", "/v2/account/keys"
        ),
        "tag": DropletKind("tags", "tags", "tag", "name", "delete", "/v2/tags"),
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


def creations(spec: LaunchSpec, place: Place) -> Iterator[Creation]:
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
        yield _creation(MACHINE, name, _droplet(spec, place, name), place.region)


def _creation(kind: str, name: str, body: JsonObject, region: str = "") -> Creation:
    call = f"POST {KINDS[kind].path}"
    return Creation(kind=kind, name=name, region=region, call=call, arguments=body)


def _droplet(spec: LaunchSpec, place: Place, name: str) -> dict[str, Json]:
    body: dict[str, Json] = {
        "name": name,
        "region": place.region,
        "size": place.instance_type,
        "image": spec.image or image_of(place.instance_type),
        "tags": tags(spec.marks),
        "monitoring": False,
        "backups": False,
        "ipv6": False,
        "user_data": place.user_data,
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


def _firewall(spec: LaunchSpec) -> dict[str, Json]:
    """Let only SSH in, machines of one run reach each other, and everything out."""
    among = {"sources": {"tags": [run_tag(spec.marks)]}}
    anywhere, allowed = list(ANYWHERE), list(spec.ssh_from)
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
