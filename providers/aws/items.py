"""An item of EC2's answers as a resource of ours, and what proves that it is.

Tags prove nothing by themselves: "Launch more like this" copies them, and security group and user
data with them. A machine is ours by its client token, a key pair or a group by its whole name, a
spot request by the machine that it was for.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pricing.json_value import members, objects
from providers.aws.calls import GROUP, KEY, KINDS, client_token
from providers.aws.failures import is_not_found
from providers.interface import MACHINE, Resource, State
from providers.ownership_tags import PREFIX, OwnershipTags, read_marks

Item = dict[str, object]
_STATES: Mapping[str, State] = {
    "pending": "starting",
    "running": "running",
    "stopping": "running",
    "stopped": "running",
    "shutting-down": "ending",
}
_NAMED = re.compile(rf"{PREFIX}-([a-z0-9]+)-(?:{GROUP}|{KEY})")
_MOST_NODES = 256
"""Machines of a launch whose tokens are tried; the tag with the name may be gone, or a copy."""


def items(ec2: Any, kind: str, options: Mapping[str, Any]) -> Iterator[Item]:  # noqa: ANN401 - boto3's
    """Yield every item of a kind that a list call tells, page by page."""
    row = KINDS[kind]
    if ec2.can_paginate(row.paginator):
        pages = ec2.get_paginator(row.paginator).paginate(**options)
    else:
        pages = (getattr(ec2, row.paginator)(**options),)
    for page in pages:
        if kind == MACHINE:
            for reservation in page["Reservations"]:
                yield from reservation["Instances"]
        else:
            yield from page[row.many]


def by_id(ec2: Any, kind: str, key: str) -> Item | None:  # noqa: ANN401 - boto3's
    """Return the item of an id; None where EC2 does not show it."""
    try:
        return next(items(ec2, kind, {KINDS[kind].ids: [key]}), None) if key else None
    except Exception as error:
        if not is_not_found(error):
            raise
        return None


def resource(
    kind: str, item: Item, region: str, known: Mapping[str, OwnershipTags]
) -> Resource | None:
    """Return what an item is by its tags or a run's name; None where nothing says whose it is.

    Args:
        kind: of the item.
        item: of the API.
        region: where it is.
        known: marks by run, for what has lost its tags.
    """
    tags = _tags(item)
    short = {k.removeprefix(f"{PREFIX}:"): v for k, v in tags.items() if k.startswith(PREFIX)}
    marks = read_marks(short) or known.get(_run_in_names(kind, item))
    return None if marks is None else as_resource(kind, item, region, marks)


def as_resource(kind: str, item: Item, region: str, marks: OwnershipTags) -> Resource:
    """Return an item that is known to be of a run."""
    row, state = KINDS[kind], state_name(item)
    found = Resource(
        kind=kind,
        id=str(item[row.id]),
        name=str(item.get(row.name) or _tags(item).get("Name", "")),
        region=region,
        marks=marks,
        state="gone" if state in row.dead else _STATES.get(state, "running"),
    )
    if kind != MACHINE:
        return found
    born = item.get("LaunchTime")
    return replace(
        found,
        created_at=born.astimezone(UTC) if isinstance(born, datetime) else None,
        address=str(item.get("PublicIpAddress") or ""),
        private_address=str(item.get("PrivateIpAddress") or ""),
        instance_type=str(item.get("InstanceType", "")),
        purchase=_purchase(item),
    )


def proved(kind: str, item: Item, found: Resource, ec2: Any) -> Resource | None:  # noqa: ANN401 - boto3's
    """Return what the run in its marks made, a machine by the name that it gave; else None.

    Args:
        kind: of the item.
        item: of the API.
        found: what it is by its marks, which anybody may have copied.
        ec2: client of its region; of a spot request the machine is asked for.
    """
    if kind == MACHINE:
        name = _launched_as(found, item)
        return replace(found, name=name) if name else None
    if kind == "spot-request":
        made = by_id(ec2, MACHINE, str(item.get("InstanceId") or ""))
        return found if made is not None and _launched_as(found, made) else None
    proper = {"key-pair": found.marks.name(KEY), "security-group": found.marks.name(GROUP)}
    return found if found.name == proper.get(kind, found.name) else None


def _launched_as(found: Resource, machine: Item) -> str:
    """Return the name in the launch call that its client token is of; empty: of none."""
    zone = str(members(machine.get("Placement") or {}).get("AvailabilityZone", ""))
    kind, purchase = str(machine.get("InstanceType", "")), _purchase(machine)
    names = (found.marks.name(str(node)) for node in range(1, _MOST_NODES + 1))
    tokens = (
        (name, client_token(name, kind, purchase, f"{found.region}{where}"))
        for name in names
        for where in (zone, "")
    )
    return next((name for name, token in tokens if token == machine.get("ClientToken")), "")


def state_name(item: Item) -> str:
    """Return the state as the API calls it; empty where the kind has none."""
    state = item.get("State", "")
    return str(state.get("Name", "") if isinstance(state, dict) else state)


def _purchase(machine: Item) -> str:
    return "spot" if machine.get("InstanceLifecycle") == "spot" else "on_demand"


def _tags(item: Item) -> dict[str, str]:
    return {str(tag["Key"]): str(tag["Value"]) for tag in objects(item.get("Tags") or ())}


def _run_in_names(kind: str, item: Item) -> str:
    """Return the run whose name a key or group has, or whose security group a machine is in."""
    groups = objects(item.get("SecurityGroups") or () if kind == MACHINE else ())
    names = [str(one.get("GroupName", "")) for one in groups]
    names.append(str(item.get(KINDS[kind].name, "")))
    return next((found[1] for found in map(_NAMED.fullmatch, names) if found), "")
