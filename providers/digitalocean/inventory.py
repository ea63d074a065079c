"""What there is of ours at DigitalOcean: listed kind by kind, or asked for by id.

Machines are found by their base tag, and by their name among the GPU Droplets: deleting a tag, or
a tag that comes late, hides none. Lists of Droplets leave GPU Droplets out unless they are asked
for by tag or by type. A 404 does not raise in the SDK: every answer is looked at.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from pricing.errors import ProviderError
from pricing.tables import elements, members, objects
from providers.digitalocean import calls
from providers.digitalocean.access import PydoClient, sdk_errors
from providers.digitalocean.calls import KINDS, PROVIDER
from providers.interface import (
    MACHINE,
    ExistenceCheck,
    Listing,
    ListingDraft,
    Resource,
    State,
)
from providers.ownership_tags import PREFIX, OwnershipTags, latest, read_text
from providers.token_access import TokenAccess

_PER_PAGE = 200
_MOST_PAGES = 50
_STATES: Mapping[str, State] = {"new": "starting", "active": "running"}
_NAMED = re.compile(rf"{PREFIX}-([a-z0-9]+)-[0-9]+")
_Json = dict[str, object]


def pages(call: PydoClient, many: str, filters: Mapping[str, str]) -> Iterator[_Json]:
    """Yield every item that a call lists under a key, page by page.

    Raises:
        ProviderError: a page is not a list, or there is no end.
    """
    for page in range(1, _MOST_PAGES + 1):
        answer = call(per_page=_PER_PAGE, page=page, **filters)
        items = answer.get(many) if isinstance(answer, Mapping) else None
        if not isinstance(items, list):
            raise ProviderError(f"DigitalOcean: page {page} of {many} is not a list.")
        yield from items
        if not ((answer.get("links") or {}).get("pages") or {}).get("next"):
            return
    raise ProviderError(f"DigitalOcean: more than {_MOST_PAGES} pages of {many}.")


_FILTERS: Mapping[str, tuple[dict[str, str], ...]] = {
    MACHINE: ({"tag_name": calls.BASE_TAG}, {"type": "gpus"}),
}
_EVERYTHING: tuple[dict[str, str], ...] = ({},)


def listing(
    client: PydoClient,
    access: TokenAccess,
    kinds: tuple[str, ...],
    marks_by_run: Mapping[str, OwnershipTags],
) -> Listing:
    """Return everything of ours of these kinds; a kind that cannot be listed hides no other.

    Args:
        client: that repeats what fails.
        access: whose token no sentence may hold.
        kinds: rows of `KINDS`.
        marks_by_run: for machines that have only their name.
    """
    draft = ListingDraft(provider=PROVIDER, runs=dict(marks_by_run))
    items: dict[str, dict[str, _Json]] = {kind: {} for kind in kinds}
    for kind in kinds:
        row = KINDS[kind]
        for filters in _FILTERS.get(kind, _EVERYTHING):
            with draft.asking(kind), sdk_errors(access, f"listing {row.many}"):
                listed = pages(getattr(client, row.group).list, row.many, filters)
                items[kind] |= {str(item[row.id]): item for item in listed}
    for kind in sorted(items, key=lambda kind: kind == MACHINE):  # names of others say whose it is
        for item in items[kind].values():
            _take(kind, item, draft)
    return draft.listing(kinds)


def _take(kind: str, item: _Json, draft: ListingDraft) -> None:
    marks = marks_of(kind, item, draft.runs)
    if marks is not None:
        draft.runs[marks.run] = latest((marks, draft.runs.get(marks.run, marks)))
        draft.add(resource(kind, item, marks))
    elif kind == MACHINE and _NAMED.fullmatch(str(item.get("name"))):
        draft.leave(f"machine {item['name']} ({item['id']})", "at cloud.digitalocean.com")


def marks_of(
    kind: str, item: _Json, marks_by_run: Mapping[str, OwnershipTags]
) -> OwnershipTags | None:
    """Return whose an item is: by its run tag or whole name, a machine also by its short name."""
    name = str(item.get("name", ""))
    if kind != MACHINE:
        return read_text(name, ":" if kind == "tag" else ".")
    tagged = tuple(
        filter(None, (read_text(str(word), ":") for word in elements(item.get("tags") or ())))
    )
    if tagged:
        return latest(tagged)
    named = _NAMED.fullmatch(name)
    return marks_by_run.get(named[1]) if named else None


def look(
    client: PydoClient, access: TokenAccess, kind: str, id_: str, marks: OwnershipTags
) -> ExistenceCheck:
    """Return what the API answers about an id; the journal knows it, so tags do not matter.

    Raises:
        ProviderError: no answer that says whether it is there.
    """
    row, doing = KINDS[kind], f"looking at {kind} {id_}"
    with sdk_errors(access, doing):
        item = read_item(getattr(client, row.group).get(call_id(kind, id_)), row.one, doing)
    if item is None:
        return ExistenceCheck.not_shown("DigitalOcean: no such id")
    return ExistenceCheck.identified(resource(kind, item, marks), marks_of(kind, item, {}))


def read_item(answer: object, key: str, doing: str) -> dict[str, Any] | None:
    """Return what an answer holds under a key; None where the API knows no such id.

    Raises:
        ProviderError: it cannot be read.
    """
    if is_not_found(answer):
        return None
    item = answer.get(key) if isinstance(answer, Mapping) else None
    if not isinstance(item, dict):
        raise ProviderError(f"DigitalOcean: {doing}: the answer cannot be read.")
    return item


def is_not_found(answer: object) -> bool:
    """Return whether an answer is the API's own 404, which the SDK does not raise."""
    return isinstance(answer, Mapping) and answer.get("id") == "not_found"


def call_id(kind: str, text: str) -> int | str:
    """Return an id as calls take it."""
    return int(text) if kind == MACHINE else text


def resource(kind: str, item: _Json, marks: OwnershipTags) -> Resource:
    """Return an item of the API that is of a run."""
    machine = kind == MACHINE
    created = item.get("created_at") if machine else None
    size = str(item.get("size_slug", "")) if machine else ""
    return Resource(
        kind=kind,
        id=str(item[KINDS[kind].id]),
        name=str(item.get("name", "")),
        region=str(members(item.get("region") or {}).get("slug", "")) if machine else "",
        marks=marks,
        state=_STATES.get(str(item.get("status")), "running") if machine else "running",
        created_at=None if created is None else datetime.fromisoformat(str(created)),
        address=_address(item, "public") if machine else "",
        private_address=_address(item, "private") if machine else "",
        instance_type=size,
        purchase="spot" if size.endswith("-spot") else "on_demand",
    )


def _address(item: _Json, kind: str) -> str:
    networks = objects(members(item.get("networks") or {}).get("v4") or ())
    return next((str(n["ip_address"]) for n in networks if n.get("type") == kind), "")
