"""Launching on DigitalOcean through pydo.

The API has no idempotency token and its SDK repeats POST, so calls that make something go through a
client that repeats nothing; a lost answer is reconciled by name. A 400 of some calls does not raise
in the SDK: every answer is looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pricing.errors import InputError, ProviderError
from pricing.tables import elements
from providers.digitalocean import REAPER_TOKEN, calls, inventory
from providers.digitalocean.access import (
    PydoClient,
    read_access,
    sdk_errors,
    try_token,
    what_was_made,
)
from providers.digitalocean.access import connect as open_client
from providers.digitalocean.calls import KINDS, PROVIDER
from providers.interface import (
    MACHINE,
    Cloud,
    Connection,
    Creation,
    ExistenceCheck,
    JournaledResource,
    LaunchSpec,
    Listing,
    NoCapacityError,
    Place,
    QuotaError,
    Resource,
    UncertainError,
    in_regions,
)
from providers.ownership_tags import OwnershipTags
from providers.ssh.address import with_caller
from providers.token_access import TokenAccess

_LAG_S = 180.0
"""Reads may miss a new Droplet: "a couple of seconds" were seen, and no figure is documented; ours.

github.com/digitalocean/api-v2/issues/202
"""

_Json = dict[str, Any]


def connect(connection: Connection) -> "DigitalOceanCloud":
    """Return the account that the environment names.

    Raises:
        MissingCredentialsError, InputError: the environment names none, or wrongly.
    """
    reaper = connection.environment.get(REAPER_TOKEN, "")
    return DigitalOceanCloud(access=read_access(connection.environment), reaper=reaper)


@dataclass(kw_only=True)
class DigitalOceanCloud(Cloud):
    """An account.

    Attributes:
        access: where and as whom.
        reaper: the token with which machines end themselves; empty: none was given.
        name: as in offers.
    """

    access: TokenAccess
    reaper: str = field(default="", repr=False)
    name: str = PROVIDER
    lag_s: float = _LAG_S
    kinds: tuple[str, ...] = tuple(KINDS)
    _clients: dict[str, Any] = field(default_factory=dict, repr=False)
    _account_id: str = ""

    def _client(self, *, repeats: bool) -> PydoClient:
        key = "patient" if repeats else "once"
        if key not in self._clients:
            options = {} if repeats else {"retries": 0}
            self._clients[key] = open_client(self.access, on_date=self.note_clock, **options)
        return self._clients[key]

    @staticmethod
    def resources_to_create(spec: LaunchSpec, place: Place) -> tuple[Creation, ...]:
        """Return the calls of a launch; pure."""
        return tuple(calls.creations(spec, place))

    @staticmethod
    def termination_steps(spec: LaunchSpec) -> tuple[str, ...]:
        """Return what ends it: our calls, and the machine's own where it has a token; pure."""
        paths = [*(f"{KINDS[MACHINE].path}/ID" for _ in range(spec.count))]
        paths += [f"{KINDS[kind].path}/ID" for kind in ("firewall", "ssh-key", "tag")]
        own = (
            "at the deadline each machine calls DELETE /v2/droplets/ID with the reaper token"
            if spec.self_destroy
            else "at the deadline nothing happens by itself: gpucost reap must run"
        )
        return (*(f"DELETE {path}" for path in paths), own)

    def check(self, spec: LaunchSpec) -> tuple[LaunchSpec, tuple[str, ...]]:
        """Return the launch with the regions that offer the size and the key's id, and notes.

        Where machines must end themselves, the token for that is tried; whether there must be one
        is the front door's to say.
        """
        if spec.self_destroy and self.reaper:
            try_token(self.access, self.reaper)
        spec = with_caller(spec, self.access.endpoint)
        account, used = self._account()
        with sdk_errors(self.access, "reading the sizes"):
            regions = {
                str(size["slug"]): tuple(
                    str(region) for region in elements(size.get("regions") or ())
                )
                for size in inventory.pages(self._client(repeats=True).sizes.list, "sizes", {})
                if size.get("available") is not False
            }
        notes = self._quota(account, used, spec.count)
        places = in_regions(spec, regions)
        if not places:
            places_text = " or ".join(dict.fromkeys(place.text for place in spec.places))
            raise NoCapacityError(
                f"DigitalOcean does not offer {places_text} to this account now (the size has no "
                "region in its answer); GPU sizes appear once the account has GPU quota."
            )
        key = self._key_id(spec.ssh_key) if spec.ssh_key else ""
        return replace(spec, places=places, ssh_key=key), notes

    def account(self) -> str:
        """Return the id of the team that the token is of, else of its user; asked once."""
        if not self._account_id:
            with sdk_errors(self.access, "asking whose account it is"):
                answer = self._client(repeats=True).account.get()
            account = _part(answer, "account", "the account")
            self._account_id = str((account.get("team") or account)["uuid"])
        return self._account_id

    def limits(self) -> tuple[str, ...]:
        """Return the droplets that are used and allowed; the GPU limit cannot be read."""
        return self._quota(*self._account(), 0)

    def _account(self) -> tuple[_Json, int]:
        with sdk_errors(self.access, "checking the account"):
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
        with sdk_errors(self.access, "reading the SSH keys"):
            listed = self._client(repeats=True).ssh_keys.list
            keys = list(inventory.pages(listed, "ssh_keys", {}))
        for key in keys:
            if name in (str(key.get("id")), key.get("name"), key.get("fingerprint")):
                return str(key["fingerprint"])
        names = ", ".join(str(key.get("name")) for key in keys) or "none"
        raise InputError(f"--ssh-key {name}: no such key in the account; it has: {names}.")

    def create(self, creation: Creation) -> Resource:
        """Send one POST, never repeated."""
        kind, doing = KINDS[creation.kind], f"making {creation.kind} {creation.name}"
        with sdk_errors(self.access, doing):
            group = getattr(self._client(repeats=False), kind.group)
            answer = group.create(body=dict(creation.arguments))
        created = what_was_made(answer, kind.one, doing)
        marks = None if created is None else inventory.marks_of(creation.kind, created, {})
        if created is None or marks is None:
            raise UncertainError(f"DigitalOcean: {doing}: the answer does not say what was made.")
        return inventory.resource(creation.kind, created, marks)

    def _list(
        self,
        regions: tuple[str, ...] | None,
        kinds: tuple[str, ...],
        marks_by_run: Mapping[str, OwnershipTags],
    ) -> Listing:
        """Return everything with our marks or names; account-wide lists, kind by kind."""
        _ = regions
        client = self._client(repeats=True)
        return inventory.listing(client, self.access, kinds, marks_by_run)

    def look(self, entry: JournaledResource, marks: OwnershipTags) -> ExistenceCheck:
        """Return what the API answers about that id."""
        client = self._client(repeats=True)
        return inventory.look(client, self.access, entry.kind, entry.id, marks)

    def mark(self, resource: Resource, marks: OwnershipTags) -> tuple[Resource, ...]:
        """Make a run tag with the deadline and put it on the Droplet; a tag cannot be changed."""
        tag, client = calls.run_tag(marks), self._client(repeats=True)
        body = {"resources": [{"resource_id": resource.id, "resource_type": "droplet"}]}
        with sdk_errors(self.access, f"marking {resource.name} with its deadline"):
            created = client.tags.get(tag)
            if inventory.is_not_found(created):
                created = client.tags.create(body={"name": tag})
            if not (isinstance(created, Mapping) and "tag" in created):
                raise ProviderError(f"DigitalOcean: the tag {tag} could not be made.")
            refusal_body = client.tags.assign_resources(tag, body=body)
            if refusal_body is not None:
                raise ProviderError(f"DigitalOcean: {tag} could not be put on {resource.name}.")
        return (inventory.resource("tag", created["tag"], marks),)

    def destroy(self, resource: Resource) -> bool:
        """Send one DELETE by id; False for a 404."""
        kind = KINDS[resource.kind]
        with sdk_errors(self.access, f"ending {resource.kind} {resource.name}"):
            group = getattr(self._client(repeats=False), kind.group)
            answer = getattr(group, kind.destroy)(inventory.call_id(resource.kind, resource.id))
        return not inventory.is_not_found(answer)


def _part(answer: object, key: str, subject: str) -> _Json:
    part = answer.get(key) if isinstance(answer, Mapping) else None
    if not isinstance(part, dict):
        raise ProviderError(f"DigitalOcean: the answer about {subject} cannot be read.")
    return part


CLOUD = DigitalOceanCloud
