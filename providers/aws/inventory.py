"""What there is of ours at AWS: listed kind by kind in each region, or asked for by id.

Machines are found by their tags, and by the security group of their run: tags that somebody takes
off hide none. A region or a kind that the account may not list is said, and hides nothing else.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any

from pricing.errors import ProviderError
from providers.aws.calls import GROUP, KINDS, PROVIDER, RUN_TAG, is_named
from providers.aws.failures import is_not_found, launch_errors
from providers.interface import MACHINE, Resource, State
from providers.lifecycle.presence import Listing, Presence, Unasked
from providers.ownership_tags import PREFIX, Marks, read_marks

_STATES: Mapping[str, State] = {
    "pending": "starting",
    "running": "running",
    "stopping": "running",
    "stopped": "running",
    "shutting-down": "ending",
}
_TAGGED = {"Name": "tag-key", "Values": [RUN_TAG]}
_GROUPED = {"Name": "instance.group-name", "Values": [f"{PREFIX}-*-{GROUP}"]}
_FILTERS: Mapping[str, tuple[dict[str, Any], ...]] = {MACHINE: (_TAGGED, _GROUPED)}
_OF_GROUP = re.compile(rf"{PREFIX}-([a-z0-9]+)-{GROUP}")
_Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """What reading an account needs.

    Attributes:
        ec2: a client of a region, which repeats what fails.
        secrets: what no sentence may hold.
    """

    ec2: Callable[[str], Any]
    secrets: tuple[str, ...]


def listing(
    reader: Reader,
    regions: tuple[str, ...] | None,
    kinds: tuple[str, ...],
    known: Mapping[str, Marks],
) -> Listing:
    """Everything of ours of these kinds that is not gone.

    Args:
        reader: of the account.
        regions: there; None: in every enabled region in which anything has our tag.
        kinds: rows of `KINDS`.
        known: marks by run, for machines whose tags are missing.
    """
    unasked: list[Unasked] = []
    places = marked_regions(reader, unasked) if regions is None else regions
    runs, found, strangers = dict(known), dict[tuple[str, str], Resource](), dict[str, str]()
    for region in places:
        for kind in sorted(kinds, key=lambda one: one == MACHINE):  # side resources name their run
            for filters in _FILTERS.get(kind, (_TAGGED,)):
                with (
                    _part(unasked, kind, region),
                    launch_errors(f"listing {kind}s", reader.secrets),
                ):
                    for item in _items(reader.ec2(region), kind, {"Filters": [filters]}):
                        one = resource(kind, item, region, runs)
                        if one is None or not is_named(kind, one.name, one.marks):
                            strangers |= _stranger(kind, item, region)
                        elif one.state != "gone":
                            runs.setdefault(one.marks.run, one.marks)
                            found[kind, one.id] = one
    return Listing(
        resources=tuple(found.values()),
        unasked=tuple(unasked),
        strangers=tuple(strangers.values()),
    )


@contextmanager
def _part(unasked: list[Unasked], kind: str, region: str) -> Iterator[None]:
    """Note a part that cannot be asked, and go on."""
    try:
        yield
    except ProviderError as error:
        why = error.problems[0]
        unasked.append(Unasked(provider=PROVIDER, kind=kind, region=region, why=why))


def _stranger(kind: str, item: _Json, region: str) -> dict[str, str]:
    """What looks like ours and is not provably so, by id; nothing where it is over."""
    key = str(item[KINDS[kind].id])
    if kind == MACHINE and _state_name(item) in KINDS[kind].dead:
        return {}
    told = f"{kind} {key} in {region} looks like one of ours, and nothing proves whose it is"
    return {key: f"{told}; it is left alone. End it in the AWS console if it is yours."}


def marked_regions(reader: Reader, unasked: list[Unasked]) -> tuple[str, ...]:
    """Enabled regions in which anything has our tag: one call each; what fails is noted."""
    names: list[str] = []
    with _part(unasked, "", ""), launch_errors("listing regions", reader.secrets):
        answer = reader.ec2("").describe_regions()
        names = sorted(str(region["RegionName"]) for region in answer["Regions"])
    wanted = [{"Name": "key", "Values": [RUN_TAG]}]
    found = []
    for name in names:
        with _part(unasked, "", name), launch_errors("listing tags", reader.secrets):
            if reader.ec2(name).describe_tags(Filters=wanted)["Tags"]:
                found.append(name)
    return tuple(found)


def look(reader: Reader, kind: str, id_: str, region: str, marks: Marks) -> Presence:
    """What EC2 answers about an id; the journal knows it, so tags do not matter.

    Raises:
        ProviderError: no answer that says whether it is there.
    """
    with launch_errors(f"looking at {kind} {id_}", reader.secrets):
        try:
            items = list(_items(reader.ec2(region), kind, {KINDS[kind].ids: [id_]}))
        except Exception as error:
            if not is_not_found(error):
                raise
            items = []
    if not items:
        return Presence(state="not-shown", why=f"AWS knows no such id in {region}")
    told = resource(kind, items[0], region, {})
    if told is not None and told.marks.run != marks.run:
        return Presence(state="not-asked", why=f"it carries the marks of run {told.marks.run}")
    found = _with(kind, items[0], region, marks)
    if found.state == "gone":
        return Presence(state="gone", why=f"AWS calls it {_state_name(items[0])}")
    return Presence(state="present", resource=found)


def _items(ec2: Any, kind: str, options: _Json) -> Iterator[_Json]:  # noqa: ANN401 - boto3's
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


def resource(kind: str, item: _Json, region: str, known: Mapping[str, Marks]) -> Resource | None:
    """What an item of the API is of ours; None where nothing says whose it is."""
    tags = _tags(item)
    short = {k.removeprefix(f"{PREFIX}:"): v for k, v in tags.items() if k.startswith(PREFIX)}
    marks = read_marks(short) or known.get(_run_of_group(item))
    return None if marks is None else _with(kind, item, region, marks)


def _tags(item: _Json) -> dict[str, str]:
    return {str(tag["Key"]): str(tag["Value"]) for tag in item.get("Tags") or ()}


def _run_of_group(item: _Json) -> str:
    """The run whose security group a machine is in; empty where it is in none of ours."""
    groups = (str(one.get("GroupName", "")) for one in item.get("SecurityGroups") or ())
    return next((named[1] for named in map(_OF_GROUP.fullmatch, groups) if named), "")


def _state_name(item: _Json) -> str:
    state = item.get("State", "")
    return str(state.get("Name", "") if isinstance(state, dict) else state)


def _with(kind: str, item: _Json, region: str, marks: Marks) -> Resource:
    row, state = KINDS[kind], _state_name(item)
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
        created_at=None if born is None else born.astimezone(UTC),
        address=str(item.get("PublicIpAddress") or ""),
        private_address=str(item.get("PrivateIpAddress") or ""),
        instance_type=str(item.get("InstanceType", "")),
        purchase="spot" if item.get("InstanceLifecycle") == "spot" else "on_demand",
    )
