"""What there is of ours at AWS: listed kind by kind in each region, or asked for by id.

Machines are found by their tags, and by the security group of their run; keys and groups by their
tags, and by their names: tags that come late, or that somebody takes off, hide none. A region or a
kind that the account may not list is said, and hides nothing else.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pricing.tables import members, objects
from providers.aws.access import AwsClient, AwsClients, if_known, sdk_errors
from providers.aws.calls import GROUP, KEY, KINDS, PROVIDER, RUN_TAG, client_token
from providers.interface import (
    MACHINE,
    ExistenceCheck,
    JournaledResource,
    Listing,
    ListingDraft,
    MarksByRun,
    Regions,
    Resource,
    State,
)
from providers.ownership_tags import PREFIX, OwnershipTags, read_marks
from providers.provider import in_each

_TAGGED = {"Name": "tag-key", "Values": [RUN_TAG]}
_NAME_FILTERS: Mapping[str, dict[str, object]] = {
    MACHINE: {"Name": "instance.group-name", "Values": [f"{PREFIX}-*-{GROUP}"]},
    "security-group": {"Name": "group-name", "Values": [f"{PREFIX}-*-{GROUP}"]},
    "key-pair": {"Name": "key-name", "Values": [f"{PREFIX}-*-{KEY}"]},
}


def listing(
    clients: AwsClients, regions: Regions, kinds: tuple[str, ...], marks_by_run: MarksByRun
) -> Listing:
    """Return everything of ours of these kinds that is not gone.

    Args:
        clients: of the account.
        regions: there; None: in every enabled region in which anything has our tag.
        kinds: rows of `KINDS`.
        marks_by_run: for what has lost its tags.
    """
    draft = ListingDraft(provider=PROVIDER)
    places = marked_regions(clients, draft) if regions is None else regions
    answers = in_each(places, lambda region: _listed(clients, region, kinds, marks_by_run))
    join_regions(draft, answers)
    return draft.listing(kinds)


def join_regions(draft: ListingDraft, answers: Mapping[str, ListingDraft | None]) -> None:
    """Take the answer of each region into a draft; a region without one did not answer in time."""
    for region, part in answers.items():
        if part is None:
            draft.miss(_SILENT, region=region)
        else:
            draft.join(part)


def _listed(
    clients: AwsClients, region: str, kinds: tuple[str, ...], marks_by_run: MarksByRun
) -> ListingDraft:
    """Return what there is of ours in a region; side resources first, which name their run."""
    part = ListingDraft(provider=PROVIDER, runs=dict(marks_by_run))
    for kind in sorted(kinds, key=lambda kind: kind == MACHINE):
        for options in _options_of(kind, marks_by_run):
            with part.asking(kind, region), sdk_errors(f"listing {kind}s"):
                ec2 = clients.get("ec2", region)
                for item in _shown(ec2, kind, options):
                    if state_name(item) in KINDS[kind].dead:
                        continue
                    claimed = resource(kind, item, region, part.runs)
                    owned = None if claimed is None else proved(kind, item, claimed, ec2)
                    if owned is not None:
                        part.runs.setdefault(owned.marks.run, owned.marks)
                        part.add(owned)
                    else:
                        key = str(item[KINDS[kind].id])
                        text = _STRANGER.format(kind=kind, key=key, region=region)
                        part.strangers[text] = None
    return part


def _options_of(kind: str, marks_by_run: MarksByRun) -> Iterator[Mapping[str, Any]]:
    """Yield what is asked for: our tags, our names, and the key of the one run that is looked for.

    A key is called by its name, so that an incomplete list hides none of a run that is ended.
    """
    yield {"Filters": [_TAGGED]}
    if kind in _NAME_FILTERS:
        yield {"Filters": [_NAME_FILTERS[kind]]}
    if kind == "key-pair" and len(marks_by_run) == 1:
        yield from ({KINDS[kind].ids: [marks.name(KEY)]} for marks in marks_by_run.values())


def _shown(ec2: AwsClient, kind: str, options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a list shows; a name that nothing has is an empty list."""
    yield from if_known(lambda: list(items(ec2, kind, options))) or ()


_STRANGER = (
    "{kind} {key} in {region} looks like one of ours, and nothing proves whose it is (whoever "
    "starts one more like it copies tags and name); it is left alone. End it in the AWS console if "
    "it is yours."
)


_SILENT = "AWS: no answer in time"


def enabled_regions(clients: AwsClients) -> tuple[str, ...]:
    """Return the regions that the account may use, by name.

    Raises:
        ProviderError: AWS does not say.
    """
    with sdk_errors("listing regions"):
        answer = clients.get("ec2", "").describe_regions()
    return tuple(sorted(str(region["RegionName"]) for region in answer["Regions"]))


def marked_regions(clients: AwsClients, draft: ListingDraft) -> tuple[str, ...]:
    """Return enabled regions in which anything has our tag: one call each; failures are noted."""
    names: tuple[str, ...] = ()
    with draft.asking():
        names = enabled_regions(clients)
    answers = in_each(names, lambda name: _is_marked(clients, name))
    join_regions(draft, {name: answer and answer[1] for name, answer in answers.items()})
    return tuple(name for name, answer in answers.items() if answer is not None and answer[0])


def _is_marked(clients: AwsClients, region: str) -> tuple[bool, ListingDraft]:
    """Return whether anything in a region has our tag, and what keeps us from knowing."""
    part = ListingDraft(provider=PROVIDER)
    filters = [{"Name": "key", "Values": [RUN_TAG]}]
    with part.asking(region=region), sdk_errors("listing tags"):
        return bool(clients.get("ec2", region).describe_tags(Filters=filters)["Tags"]), part
    return False, part


def look(clients: AwsClients, entry: JournaledResource, marks: OwnershipTags) -> ExistenceCheck:
    """Return what EC2 answers about an id; the journal knows it, so tags do not matter.

    Raises:
        ProviderError: no answer that says whether it is there.
    """
    kind, region = entry.kind, entry.region
    with sdk_errors(f"looking at {kind} {entry.id}"):
        item = by_id(clients.get("ec2", region), kind, entry.id)
    if item is None:
        return ExistenceCheck.not_shown(f"AWS knows no such id in {region}")
    tagged, shown = resource(kind, item, region, {}), as_resource(kind, item, region, marks)
    if shown.state == "gone":
        return ExistenceCheck.ended(f"AWS calls it {state_name(item)}")
    check = ExistenceCheck.identified(shown, None if tagged is None else tagged.marks)
    named = ExistenceCheck.present(replace(shown, name=entry.name))
    return named if check.is_ours else check


Item = dict[str, object]
STATES: Mapping[str, State] = {
    "pending": "starting",
    "running": "running",
    "stopping": "running",
    "stopped": "running",  # its disk is billed
    "shutting-down": "ending",
}
_RUN_IN_NAME = re.compile(rf"{PREFIX}-([a-z0-9]+)-(?:{GROUP}|{KEY})")
_MOST_NODES = 256
"""Machines of a launch whose tokens are tried; the tag with the name may be gone, or a copy."""


def items(ec2: AwsClient, kind: str, options: Mapping[str, Any]) -> Iterator[Item]:
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


def by_id(ec2: AwsClient, kind: str, key: str) -> Item | None:
    """Return the item of an id; None where EC2 does not show it."""
    ids = {KINDS[kind].ids: [key]}
    return if_known(lambda: next(items(ec2, kind, ids), None)) if key else None


def resource(kind: str, item: Item, region: str, marks_by_run: MarksByRun) -> Resource | None:
    """Return what an item is by its tags or a run's name; None where nothing says whose it is.

    Args:
        kind: of the item.
        item: of the API.
        region: where it is.
        marks_by_run: for what has lost its tags.
    """
    tags = tags_of(item)
    short = {k.removeprefix(f"{PREFIX}:"): v for k, v in tags.items() if k.startswith(PREFIX)}
    marks = read_marks(short) or marks_by_run.get(_run_in_names(kind, item))
    return None if marks is None else as_resource(kind, item, region, marks)


def as_resource(kind: str, item: Item, region: str, marks: OwnershipTags) -> Resource:
    """Return an item that is known to be of a run."""
    row, state = KINDS[kind], state_name(item)
    owned = Resource(
        kind=kind,
        id=str(item[row.id]),
        name=str(item.get(row.name) or tags_of(item).get("Name", "")),
        region=region,
        marks=marks,
        state="gone" if state in row.dead else STATES.get(state, "running"),
    )
    if kind != MACHINE:
        return owned
    born = item.get("LaunchTime")
    return replace(
        owned,
        created_at=born.astimezone(UTC) if isinstance(born, datetime) else None,
        address=str(item.get("PublicIpAddress") or ""),
        private_address=str(item.get("PrivateIpAddress") or ""),
        instance_type=str(item.get("InstanceType", "")),
        purchase=_purchase(item),
    )


def proved(kind: str, item: Item, claimed: Resource, ec2: AwsClient) -> Resource | None:
    """Return what the run in its marks made, a machine by the name that it gave; else None.

    Args:
        kind: of the item.
        item: of the API.
        claimed: what it is by its marks, which anybody may have copied.
        ec2: client of its region; of a spot request the machine is asked for.
    """
    if kind == MACHINE:
        name = _launched_as(claimed, item)
        return replace(claimed, name=name) if name else None
    if kind == "spot-request":
        machine = by_id(ec2, MACHINE, str(item.get("InstanceId") or ""))
        return claimed if machine is not None and _launched_as(claimed, machine) else None
    proper = {"key-pair": claimed.marks.name(KEY), "security-group": claimed.marks.name(GROUP)}
    return claimed if claimed.name == proper.get(kind, claimed.name) else None


def _launched_as(claimed: Resource, machine: Item) -> str:
    """Return the name in the launch call that its client token is of; empty: of none."""
    zone = str(members(machine.get("Placement") or {}).get("AvailabilityZone", ""))
    kind, purchase = str(machine.get("InstanceType", "")), _purchase(machine)
    names = (claimed.marks.name(str(node)) for node in range(1, _MOST_NODES + 1))
    tokens = (
        (name, client_token(name, kind, purchase, f"{claimed.region}{where}"))
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


def tags_of(item: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags of an item by name."""
    return {str(tag["Key"]): str(tag["Value"]) for tag in objects(item.get("Tags") or ())}


def _run_in_names(kind: str, item: Item) -> str:
    """Return the run whose name a key or group has, or whose security group a machine is in."""
    groups = objects(item.get("SecurityGroups") or () if kind == MACHINE else ())
    names = [str(group.get("GroupName", "")) for group in groups]
    names.append(str(item.get(KINDS[kind].name, "")))
    return next((match[1] for match in map(_RUN_IN_NAME.fullmatch, names) if match), "")
