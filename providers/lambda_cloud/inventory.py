"""The calls of a Lambda launch as plain data, and what its items are; pure.

Machines carry their marks as tags. A deadline that was moved stands in the name, because tags
cannot be changed. A machine without tags is found by its name, if a key, a firewall or the journal
says whose run it is.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from pricing.errors import InputError, ProviderError
from providers.interface import MACHINE, Creation, LaunchSpec, MarksByRun, Place, Resource, State
from providers.ownership_tags import PREFIX, OwnershipTags, read_marks, read_text, until
from providers.token_api import JsonDocument

PROVIDER = "lambda"
FIREWALL, KEY = "firewall", "ssh-key"
PATHS: Mapping[str, str] = MappingProxyType(
    {MACHINE: "/instance-operations/launch", FIREWALL: "/firewall-rulesets", KEY: "/ssh-keys"}
)
"""Every kind that launches make, in the order of its removal, and where it is made."""

WITHOUT_FIREWALL = "us-south-1"
"""docs.lambda.ai/api/cloud: "Firewall rules do not apply to the us-south-1 region"."""

_IMAGE_ID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}")
_SSH_PORT = 22


def tags(marks: OwnershipTags) -> list[dict[str, str]]:
    """Return the tags of an instance; they cannot be changed once it is made."""
    return [{"key": f"{PREFIX}-{name}", "value": text} for name, text in marks.tags().items()]


def creations(spec: LaunchSpec, target: Place) -> Iterator[Creation]:
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
        public_key = " ".join((*spec.public_key.split()[:2], marks.text(".")))
        yield _creation(KEY, marks.name("key"), {"public_key": public_key})
    walled = target.region != WITHOUT_FIREWALL
    if walled:
        rules = [_rule(marks, network) for network in spec.ssh_from if ":" not in network]
        if not rules:
            raise InputError(
                f"--ssh-from {', '.join(spec.ssh_from)}: Lambda's firewall takes IPv4 networks."
            )
        body = {"region": target.region, "rules": rules}
        yield _creation(FIREWALL, marks.name("firewall"), body, target.region)
    for name in spec.machine_names:
        yield _creation(MACHINE, name, _instance(spec, target, walled=walled), target.region)


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


def _instance(spec: LaunchSpec, target: Place, *, walled: bool) -> dict[str, Any]:
    """Return the body of a launch; its firewall is named, for its id is known once it is made."""
    body: dict[str, Any] = {
        "region_name": target.region,
        "instance_type_name": target.instance_type,
        "ssh_key_names": [spec.marks.name("key") if spec.public_key else spec.ssh_key],
        "tags": tags(spec.marks),
        "user_data": target.user_data,
    }
    if walled:
        body["firewall_rulesets"] = [{"name": spec.marks.name("firewall")}]
    if spec.image:
        kind = "id" if _IMAGE_ID.fullmatch(spec.image) else "family"
        body["image"] = {kind: spec.image}
    return body


LISTS: Mapping[str, str] = {**PATHS, MACHINE: "/instances"}
_STATES: Mapping[str, State] = {
    "booting": "starting",
    "active": "running",
    "unhealthy": "starting",  # it is billed, and not usable yet
    "terminating": "ending",
    "terminated": "gone",
    "preempted": "gone",
}
_UNTIL = "-until-"
NAMED = re.compile(rf"({PREFIX}-([a-z0-9]+)-[0-9a-z]+)(?:{_UNTIL}(\d{{8}}T\d{{6}}Z))?")


def marks_of(kind: str, item: JsonDocument, marks_by_run: MarksByRun) -> OwnershipTags | None:
    """Return whose an item is: by what it carries itself, else by its name; None: not ours."""
    named = NAMED.fullmatch(str(item.get("name", "")))
    own = next(iter(_carried(kind, item)), None)
    if own is None and named:
        own = marks_by_run.get(named[2])
    if own is None or not named or named[3] is None:
        return own
    return until(own, named[3])


def _carried(kind: str, item: JsonDocument) -> Iterator[OwnershipTags]:
    """Yield the marks in its tags, in the comment of a key, in the description of a rule."""
    if kind == MACHINE:
        tags_by_key = {
            str(entry.get("key")): str(entry.get("value")) for entry in item.get("tags") or ()
        }
        plain = {name.removeprefix(f"{PREFIX}-"): text for name, text in tags_by_key.items()}
        texts = [read_marks(plain)] if f"{PREFIX}-run" in tags_by_key else []
    elif kind == KEY:
        texts = [read_text(word, ".") for word in str(item.get("public_key", "")).split()[2:]]
    else:
        rules = item.get("rules") or ()
        texts = [read_text(str(entry.get("description", "")), ".") for entry in rules]
    yield from filter(None, texts)


def name_until(name: str, marks: OwnershipTags) -> str:
    """Return the name of a machine whose deadline was moved: "gpucost-k3f9xw2m-1-until-..."."""
    return f"{name}{_UNTIL}{marks.tags()['deadline']}"


def resource(kind: str, item: JsonDocument, marks: OwnershipTags) -> Resource:
    """Return an item of the API that is of a run; Lambda does not say when it was made."""
    named = NAMED.fullmatch(str(item.get("name", "")))
    name = named[1] if named else str(item.get("name", ""))
    if kind != MACHINE:
        region = str((item.get("region") or {}).get("name", ""))
        return Resource(kind=kind, id=str(item["id"]), name=name, region=region, marks=marks)
    return Resource(
        kind=kind,
        id=str(item["id"]),
        name=name,
        region=str((item.get("region") or {}).get("name", "")),
        marks=marks,
        state=_STATES.get(str(item.get("status")), "running"),
        address=str(item.get("ip") or ""),
        private_address=str(item.get("private_ip") or ""),
        instance_type=str((item.get("instance_type") or {}).get("name", "")),
    )


def owner_of(events: Any) -> str:  # noqa: ANN401 - any JSON
    """Return the account that owns what a page of the audit log is about.

    A page is a list of events (version 1.10.0 of the API's document), or holds one (before).

    Raises:
        ProviderError: it says of none.
    """
    entries = events.get("events") if isinstance(events, dict) else events
    items = entries if isinstance(entries, list) else ()
    owners = [event.get("resource_owner_lrn") for event in items if isinstance(event, dict)]
    owner = next(filter(None, owners), None)
    if owner is None:
        raise ProviderError("Lambda: the audit log does not say whose account it is.")
    return str(owner)
