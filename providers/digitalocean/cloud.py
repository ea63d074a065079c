"""Launching on DigitalOcean; a lost answer is reconciled by name.

Lists of Droplets leave GPU Droplets out unless they are asked for by tag or by type.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from pricing.catalog.sizes import sizes
from pricing.errors import InputError, ProviderError
from pricing.tables import elements
from providers import interface
from providers.digitalocean import REAPER_TOKEN, resources
from providers.digitalocean.access import VARIABLES, DigitalOceanApi, try_token
from providers.digitalocean.resources import BASE_TAG, KINDS, NAMED, PROVIDER
from providers.ownership_tags import OwnershipTags
from providers.ssh.connection import with_caller
from providers.token_api import JsonDocument, TokenCloud

_LAG_S = 180.0
"""Reads may miss a new Droplet: "a couple of seconds" were seen, and no figure is documented; ours.

github.com/digitalocean/api-v2/issues/202
"""

_FILTERS: dict[str, tuple[dict[str, str], ...]] = {
    interface.MACHINE: ({"tag_name": BASE_TAG}, {"type": "gpus"})
}


def connect(connection: interface.Connection) -> "DigitalOceanCloud":
    """Return the account that the environment names.

    Raises:
        MissingCredentialsError, InputError: the environment names none, or wrongly.
    """
    reaper = connection.environment.get(REAPER_TOKEN, "")
    return DigitalOceanCloud(access=VARIABLES.read(connection.environment), reaper=reaper)


@dataclass(kw_only=True)
class DigitalOceanCloud(TokenCloud):
    """An account.

    Attributes:
        reaper: the token with which machines end themselves; empty: none was given.
        name: as in offers.
    """

    title = "DigitalOcean"
    page = "cloud.digitalocean.com"

    reaper: str = field(default="", repr=False)
    name: str = PROVIDER
    lag_s: float = _LAG_S
    kinds: tuple[str, ...] = tuple(KINDS)
    api: DigitalOceanApi = field(init=False, repr=False)
    _account_id: str = ""

    def __post_init__(self) -> None:
        self.api = DigitalOceanApi(access=self.access, on_date=self.note_clock)

    @staticmethod
    def resources_to_create(
        spec: interface.LaunchSpec, target: interface.Place
    ) -> tuple[interface.Creation, ...]:
        """Return the calls of a launch; pure."""
        return tuple(resources.creations(spec, target))

    @staticmethod
    def termination_steps(spec: interface.LaunchSpec) -> tuple[str, ...]:
        """Return what ends it: our calls, and the machine's own where it has a token; pure."""
        kinds = [*(interface.MACHINE for _ in range(spec.count)), "firewall", "ssh-key", "tag"]
        own = (
            "at the deadline each machine calls DELETE /v2/droplets/ID with the reaper token"
            if spec.self_destroy
            else "at the deadline nothing happens by itself: gpucost reap must run"
        )
        return (*(f"DELETE {KINDS[kind].path}/ID" for kind in kinds), own)

    def check(self, spec: interface.LaunchSpec) -> tuple[interface.LaunchSpec, tuple[str, ...]]:
        """Return the launch with the regions that offer the size and the key's id, and notes.

        Where machines must end themselves, the token for that is tried; whether there must be one
        is the front door's to say.
        """
        if spec.self_destroy and self.reaper:
            try_token(self.access, self.reaper)
        spec = with_caller(spec, self.access.endpoint)
        account, used = self._account()
        regions = {
            str(size["slug"]): tuple(str(region) for region in elements(size.get("regions") or ()))
            for size in self.api.pages("/v2/sizes", "sizes", "reading the sizes")
            if size.get("available") is not False
        }
        notes = self._quota(account, used, spec.count)
        why = (
            "(the size has no region in its answer); GPU sizes appear once the account has GPU "
            "quota"
        )
        spec = self._placed(spec, regions, why)
        notes += tuple(self._image_doubts(spec))
        return replace(spec, ssh_key=self._key_id(spec.ssh_key) if spec.ssh_key else ""), notes

    def _image_doubts(self, spec: interface.LaunchSpec) -> Iterator[str]:
        """Yield a note of each image that this account is not shown; who is not told has none."""
        facts = {sizes().get((PROVIDER, target.instance_type)) for target in spec.places}
        images = {spec.image} if spec.image else {size.image for size in facts if size}
        for image in sorted(filter(None, images)):
            with suppress(ProviderError):
                if self.api.find(f"/v2/images/{quote(image, safe='')}", "looking at the image"):
                    continue
                yield f"DigitalOcean shows no image {image}; where it refuses it, give --image"

    def account(self) -> str:
        """Return the id of the team that the token is of, else of its user; asked once."""
        if not self._account_id:
            answer = self.api.get("/v2/account", "asking whose account it is")
            account = self._part(answer, "account", "the account")
            self._account_id = str((account.get("team") or account)["uuid"])
        return self._account_id

    def limits(self) -> tuple[str, ...]:
        """Return the droplets that are used and allowed; the GPU limit cannot be read."""
        return self._quota(*self._account(), 0)

    def _account(self) -> tuple[JsonDocument, int]:
        doing = "checking the account"
        account = self._part(self.api.get("/v2/account", doing), "account", "the account")
        used = self.api.get("/v2/droplets", doing, per_page=1).get("meta", {}).get("total", 0)
        return account, int(used)

    def _quota(self, account: JsonDocument, used: int, count: int) -> tuple[str, ...]:
        if account.get("status") == "locked":
            raise ProviderError(f"DigitalOcean: the account is locked: {account['status_message']}")
        limit = int(account["droplet_limit"])
        if used + count > limit:
            raise interface.QuotaError(
                f"DigitalOcean: {used} of {limit} Droplets are used, and {count} more are wanted; "
                "raise the limit at cloud.digitalocean.com, Settings."
            )
        used_text = f"{used} of {limit} Droplets of the account are used"
        return (f"{used_text}; its GPU limit cannot be read before the launch, which says so",)

    def _key_id(self, name: str) -> str:
        keys = list(self._items("ssh-key"))
        for key in keys:
            if name in (str(key.get("id")), key.get("name"), key.get("fingerprint")):
                return str(key["fingerprint"])
        names = ", ".join(str(key.get("name")) for key in keys) or "none"
        raise InputError(f"--ssh-key {name}: no such key in the account; it has: {names}.")

    def create(self, creation: interface.Creation) -> interface.Resource:
        """Send one POST, never repeated."""
        kind, doing = KINDS[creation.kind], f"making {creation.kind} {creation.name}"
        answer = self.api.change("POST", kind.path, creation.arguments, doing)
        created = answer.get(kind.singular) if isinstance(answer, dict) else None
        marks = None if created is None else self._marks_of(creation.kind, created, {})
        if created is None or marks is None:
            raise interface.UncertainError(
                f"DigitalOcean: {doing}: the answer does not say what was made."
            )
        return self._resource(creation.kind, created, marks)

    def _items(self, kind: str) -> Iterator[JsonDocument]:
        """Yield every item of a kind, a machine by its tag and among the GPU Droplets, once."""
        row, ids = KINDS[kind], set[str]()
        for filters in _FILTERS.get(kind, ({},)):
            for item in self.api.pages(row.path, row.many, f"listing {row.many}", filters):
                if str(item[row.id]) not in ids:
                    ids.add(str(item[row.id]))
                    yield item

    def _item(self, kind: str, id_: str) -> JsonDocument | None:
        doing = f"looking at {kind} {id_}"
        answer = self.api.find(_path(kind, id_), doing)
        return None if answer is None else self._part(answer, KINDS[kind].singular, f"{kind} {id_}")

    _marks_of = staticmethod(resources.marks_of)
    _resource = staticmethod(resources.resource)

    @staticmethod
    def _is_named(kind: str, item: JsonDocument) -> bool:
        return kind == interface.MACHINE and NAMED.fullmatch(str(item.get("name"))) is not None

    def mark(
        self, resource: interface.Resource, marks: OwnershipTags
    ) -> tuple[interface.Resource, ...]:
        """Make a run tag with the deadline and put it on the Droplet; a tag cannot be changed."""
        tag, doing = resources.run_tag(marks), f"marking {resource.name} with its deadline"
        answer = self.api.find(_path("tag", tag), doing)
        if answer is None:
            answer = self.api.change("POST", KINDS["tag"].path, {"name": tag}, doing)
        body = {"resources": [{"resource_id": resource.id, "resource_type": "droplet"}]}
        self.api.change("POST", f"{_path('tag', tag)}/resources", body, doing)
        return (self._resource("tag", self._part(answer, "tag", tag), marks),)

    def destroy(self, resource: interface.Resource) -> bool:
        """Send one DELETE by id; False for a 404."""
        doing = f"ending {resource.kind} {resource.name}"
        return self.api.delete(_path(resource.kind, resource.id), doing)


def _path(kind: str, id_: str) -> str:
    return f"{KINDS[kind].path}/{quote(id_, safe='')}"


CLOUD = DigitalOceanCloud
