"""Launching on DigitalOcean through pydo.

The API has no idempotency token and its SDK repeats POST, so calls that make something go through a
client that repeats nothing; a lost answer is reconciled by name. A 404 does not raise in the SDK,
and neither does a 400 of some calls: every answer is looked at.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pricing.errors import InputError, ProviderError
from providers.digitalocean import calls
from providers.digitalocean.access import Access, read_access
from providers.digitalocean.access import connect as open_client
from providers.digitalocean.calls import KINDS, PROVIDER
from providers.digitalocean.failures import classified, refusal
from providers.errors import NoCapacityError, QuotaError, UncertainError
from providers.interface import (
    MACHINE,
    Connection,
    Creation,
    Kept,
    LaunchSpec,
    Place,
    Resource,
    State,
)
from providers.lifecycle.waiting import skew_s
from providers.ownership_tags import Marks, read_text

_PER_PAGE = 200
_MOST_PAGES = 50
_STATES: Mapping[str, State] = {"new": "starting", "active": "running"}
_Json = dict[str, Any]


def connect(connection: Connection) -> "DigitalOceanCloud":
    """The account that the environment names.

    Raises:
        MissingCredentialsError, InputError: the environment names none, or wrongly.
    """
    return DigitalOceanCloud(access=read_access(connection.environment))


@dataclass(kw_only=True)
class DigitalOceanCloud:
    """An account.

    Attributes:
        access: where and as whom.
        name: as in offers.
        skew_s: by how much its clock is ahead of ours.
    """

    access: Access
    name: str = PROVIDER
    skew_s: float = 0.0
    _clients: dict[str, Any] = field(default_factory=dict, repr=False)

    def _client(self, *, repeats: bool) -> Any:  # noqa: ANN401 - pydo's client has no types
        key = "patient" if repeats else "once"
        if key not in self._clients:
            options = {} if repeats else {"retries": 0}
            self._clients[key] = open_client(self.access, on_date=self._on_date, **options)
        return self._clients[key]

    def _on_date(self, text: str) -> None:
        ahead_s = skew_s(text)
        self.skew_s = self.skew_s if ahead_s is None else ahead_s

    def creations(self, spec: LaunchSpec, place: Place) -> tuple[Creation, ...]:
        """The calls of a launch; pure."""
        return tuple(calls.creations(spec, place))

    def ends(self, spec: LaunchSpec) -> tuple[str, ...]:
        """What ends it: ours, and the machine's own call where it has a token; pure."""
        paths = [*(f"{KINDS[MACHINE].path}/ID" for _ in range(spec.count))]
        paths += [f"{KINDS[kind].path}/ID" for kind in ("firewall", "ssh-key", "tag")]
        own = (
            "at the deadline each machine calls DELETE /v2/droplets/ID with the reaper token"
            if spec.self_destroy
            else "at the deadline nothing happens by itself: gpucost reap must run"
        )
        return (*(f"DELETE {path}" for path in paths), own)

    def check(self, spec: LaunchSpec) -> tuple[LaunchSpec, tuple[str, ...]]:
        """The launch with the regions that the size is offered in and the key's id, and remarks."""
        account, used = self._account()
        with classified(self.access, "reading the sizes"):
            regions = {
                str(size["slug"]): tuple(size.get("regions") or ())
                for size in self._pages("sizes", "sizes")
                if size.get("available") is not False
            }
        remarks = self._quota(account, used, spec.count)
        places = tuple(
            replace(place, region=region)
            for place in spec.places
            for region in regions.get(place.instance_type, ())
            if place.region in ("", region)
        )
        if not places:
            wanted = " or ".join(dict.fromkeys(place.text for place in spec.places))
            raise NoCapacityError(
                f"DigitalOcean does not offer {wanted} to this account now (the size has no region "
                "in its answer); GPU sizes appear once the account has GPU quota."
            )
        key = self._key_id(spec.ssh_key) if spec.ssh_key else ""
        return replace(spec, places=places, ssh_key=key), remarks

    def limits(self) -> tuple[str, ...]:
        """Droplets that are used and allowed; the GPU limit cannot be read."""
        return self._quota(*self._account(), 0)

    def _account(self) -> tuple[_Json, int]:
        with classified(self.access, "checking the account"):
            client = self._client(repeats=True)
            account = _part(client.account.get(), "account", "the account")
            used = client.droplets.list(per_page=1).get("meta", {}).get("total", 0)
        return account, int(used)

    def _quota(self, account: _Json, used: int, count: int) -> tuple[str, ...]:
        if account.get("status") == "locked":
            raise ProviderError(f"DigitalOcean: the account is locked: {account['status_message']}")
        limit = int(account["droplet_limit"])
        if used + count > limit:
            raise QuotaError(
                f"DigitalOcean: {used} of {limit} Droplets are used, and {count} more are wanted; "
                "raise the limit at cloud.digitalocean.com, Settings."
            )
        used_text = f"{used} of {limit} Droplets of the account are used"
        return (f"{used_text}; its GPU limit cannot be read before the launch, which says so",)

    def _key_id(self, name: str) -> str:
        with classified(self.access, "reading the SSH keys"):
            keys = list(self._pages("ssh_keys", "ssh_keys"))
        for key in keys:
            if name in (str(key.get("id")), key.get("name"), key.get("fingerprint")):
                return str(key["fingerprint"])
        known = ", ".join(str(key.get("name")) for key in keys) or "none"
        raise InputError(f"--ssh-key {name}: no such key in the account; it has: {known}.")

    def create(self, creation: Creation) -> Resource:
        """One POST, never repeated."""
        kind, doing = KINDS[creation.kind], f"making {creation.kind} {creation.name}"
        with classified(self.access, doing):
            group = getattr(self._client(repeats=False), kind.group)
            answer = group.create(body=dict(creation.arguments))
        if isinstance(answer, Mapping) and "message" in answer and kind.one not in answer:
            text = str(answer["message"])  # some refusals do not raise
            raise refusal(None, text, f"DigitalOcean: {doing} failed: {text[:200]}")
        made = answer.get(kind.one) if isinstance(answer, Mapping) else None
        found = None if made is None else _resource(creation.kind, made)
        if found is None:
            raise UncertainError(f"DigitalOcean: {doing}: the answer does not say what was made.")
        return found

    def ours(self, regions: tuple[str, ...] | None) -> tuple[Resource, ...]:
        """Everything with our marks; one account-wide list for each kind."""
        _ = regions
        with classified(self.access, "listing what there is"):
            return tuple(
                found
                for name, kind in KINDS.items()
                for item in self._pages(kind.group, kind.many, _filters(name))
                if (found := _resource(name, item)) is not None
            )

    def _pages(
        self, group: str, many: str, filters: Mapping[str, str] | None = None
    ) -> Iterator[_Json]:
        client = getattr(self._client(repeats=True), group)
        for page in range(1, _MOST_PAGES + 1):
            answer = client.list(per_page=_PER_PAGE, page=page, **(filters or {}))
            items = answer.get(many) if isinstance(answer, Mapping) else None
            if not isinstance(items, list):
                raise ProviderError(f"DigitalOcean: page {page} of {many} is no list.")
            yield from items
            if not ((answer.get("links") or {}).get("pages") or {}).get("next"):
                return
        raise ProviderError(f"DigitalOcean: more than {_MOST_PAGES} pages of {many}.")

    def look(self, kept: Kept, marks: Marks) -> Resource | None:
        """The resource of that id, if it is there and the run's."""
        kind = KINDS[kept.kind]
        with classified(self.access, f"looking at {kept.kind} {kept.name}"):
            group = getattr(self._client(repeats=True), kind.group)
            answer = group.get(_id(kept.kind, kept.id))
        item = answer.get(kind.one) if isinstance(answer, Mapping) else None
        found = None if item is None else _resource(kept.kind, item)
        return found if found is not None and found.marks == marks else None

    def destroy(self, resource: Resource) -> None:
        """One DELETE; 404 is as good."""
        kind = KINDS[resource.kind]
        with classified(self.access, f"ending {resource.kind} {resource.name}"):
            group = getattr(self._client(repeats=False), kind.group)
            getattr(group, kind.destroy)(_id(resource.kind, resource.id))


def _filters(kind: str) -> dict[str, str]:
    return {"tag_name": calls.BASE_TAG} if kind == MACHINE else {}


def _part(answer: object, key: str, what: str) -> _Json:
    part = answer.get(key) if isinstance(answer, Mapping) else None
    if not isinstance(part, dict):
        raise ProviderError(f"DigitalOcean: the answer about {what} cannot be read.")
    return part


def _id(kind: str, text: str) -> int | str:
    return int(text) if kind == MACHINE else text


def _resource(kind: str, item: _Json) -> Resource | None:
    """What an item of the API is of ours; None where it does not carry our marks."""
    words = item.get("tags") or () if kind in (MACHINE, "volume", "snapshot") else ()
    name = str(item.get("name", ""))
    separator = ":" if kind == "tag" or words else "."
    marks = next(filter(None, (read_text(w, separator) for w in words or (name,))), None)
    if marks is None:
        return None
    machine = kind == MACHINE
    created = item.get("created_at") if machine else None
    return Resource(
        kind=kind,
        id=str(item[KINDS[kind].id]),
        name=name,
        region=str((item.get("region") or {}).get("slug", "")) if machine else "",
        marks=marks,
        state=_STATES.get(str(item.get("status")), "running") if machine else "running",
        created_at=None if created is None else datetime.fromisoformat(str(created)),
        address=_address(item) if machine else "",
        instance_type=str(item.get("size_slug", "")) if machine else "",
        purchase="spot" if str(item.get("size_slug", "")).endswith("-spot") else "on_demand",
    )


def _address(item: _Json) -> str:
    networks = (item.get("networks") or {}).get("v4") or ()
    return next((str(n["ip_address"]) for n in networks if n.get("type") == "public"), "")


CLOUD = DigitalOceanCloud
