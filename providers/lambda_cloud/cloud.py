"""Launching on Lambda over its HTTP API.

The API has no idempotency token, so what makes something is sent once; a lost answer is reconciled
by name. An instance ends itself with a key that it is handed, where one was given for that.
"""

from dataclasses import dataclass, field, replace

from pricing.errors import ProviderError
from providers.interface import (
    MACHINE,
    NOT_BY_ITSELF,
    Connection,
    Creation,
    LaunchSpec,
    Place,
    Resource,
    UncertainError,
)
from providers.lambda_cloud import REAPER_KEY, inventory
from providers.lambda_cloud.access import VARIABLES, LambdaApi
from providers.lambda_cloud.inventory import FIREWALL, KEY, LISTS, NAMED, PATHS, PROVIDER
from providers.ownership_tags import OwnershipTags
from providers.ssh.connection import with_caller
from providers.token_api import JsonDocument, RefusedCallError, TokenCloud

_LAG_S = 180.0
"""Reads may miss what was just made; no figure is documented, so it is as at DigitalOcean: ours."""

_TERMINATE = "/api/v1/instance-operations/terminate"
_EVERYWHERE = "0.0.0.0/0"


def connect(connection: Connection) -> "LambdaCloud":
    """Return the account that the environment names.

    Raises:
        MissingCredentialsError, InputError: the environment names none, or wrongly.
    """
    reaper = connection.environment.get(REAPER_KEY, "").strip()
    return LambdaCloud(access=VARIABLES.read(connection.environment), reaper=reaper)


@dataclass(kw_only=True)
class LambdaCloud(TokenCloud):
    """An account.

    Attributes:
        reaper: the key with which machines end themselves; empty: none was given.
        name: as in offers.
    """

    title = "Lambda"
    page = "cloud.lambda.ai"

    reaper: str = field(default="", repr=False)
    name: str = PROVIDER
    lag_s: float = _LAG_S
    kinds: tuple[str, ...] = tuple(PATHS)
    _api: LambdaApi = field(init=False, repr=False)
    _account_id: str = ""
    _firewalls: dict[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._api = LambdaApi(access=self.access, on_date=self.note_clock)

    @staticmethod
    def resources_to_create(spec: LaunchSpec, target: Place) -> tuple[Creation, ...]:
        """Return the calls of a launch; pure."""
        return tuple(inventory.creations(spec, target))

    @staticmethod
    def termination_steps(spec: LaunchSpec) -> tuple[str, ...]:
        """Return our calls, and the machine's own where it has a key; pure."""
        own = f"at the deadline each machine calls POST {_TERMINATE} with its key"
        return (
            *(f"POST {_TERMINATE}" for _ in range(spec.count)),
            f"DELETE /api/v1{PATHS[FIREWALL]}/ID",
            f"DELETE /api/v1{PATHS[KEY]}/ID",
            own if spec.self_destroy else NOT_BY_ITSELF,
        )

    def check(self, spec: LaunchSpec) -> tuple[LaunchSpec, tuple[str, ...]]:
        """Return the launch in the regions that have capacity for the type now, and notes."""
        if spec.self_destroy and self.reaper:
            access = replace(self.access, token=self.reaper)
            LambdaApi(access=access).get("/instances", f"trying {REAPER_KEY}")
        spec = with_caller(spec, self.access.endpoint)
        types = self._api.get("/instance-types", "reading the instance types")
        spec = self._placed(spec, _regions(types), "in any such region")
        return spec, tuple(self._remarks(spec))

    def _remarks(self, spec: LaunchSpec) -> list[str]:
        remarks = list(self.limits())
        doing = "reading the account's firewall rules"
        rules = self._api.get(f"{PATHS[FIREWALL]}/global", doing).get("rules") or ()
        if any(r.get("source_network") == _EVERYWHERE and _reaches_ssh(r) for r in rules):
            remarks.append(
                "the account's own firewall rules open port 22 to every address, beside those of "
                "the run: change them at cloud.lambda.ai, Firewall"
            )
        images = self._api.get("/images", "looking at the images") if spec.image else ()
        if images and not any(spec.image in (i.get("id"), i.get("family")) for i in images):
            remarks.append(f"Lambda shows no image {spec.image}, neither an id nor a family of one")
        if spec.count > 1:
            remarks.append("Lambda does not document whether a run's machines reach each other")
        return remarks

    def account(self) -> str:
        """Return the account that the audit log says the resources belong to; asked once."""
        if not self._account_id:
            events = self._api.get("/audit-events", "asking whose account it is")
            self._account_id = inventory.owner_of(events)
        return self._account_id

    def limits(self) -> tuple[str, ...]:
        """Return nothing: no limit can be read."""
        return ("Lambda's quota cannot be read before the launch, which says so",)

    def create(self, creation: Creation) -> Resource:
        """Send one POST, never repeated."""
        doing = f"making {creation.kind} {creation.name}"
        body = dict(creation.arguments)
        if "firewall_rulesets" in body:
            named = body["firewall_rulesets"]
            body["firewall_rulesets"] = [self._ruleset(str(ruleset["name"])) for ruleset in named]
        created = self._api.change("POST", PATHS[creation.kind], body, doing)
        if creation.kind == MACHINE:
            return self._launched(creation, body, created, doing)
        if not isinstance(created, dict) or "id" not in created:
            raise UncertainError(f"Lambda: {doing}: the answer does not say what was made.")
        marks = inventory.marks_of(creation.kind, {**body, **created}, {})
        if marks is None:
            raise UncertainError(f"Lambda: {doing}: the answer does not say whose it is.")
        if creation.kind == FIREWALL:
            self._firewalls[creation.name] = str(created["id"])
        return inventory.resource(creation.kind, created, marks)

    def _launched(
        self, creation: Creation, body: JsonDocument, answer: object, doing: str
    ) -> Resource:
        """Return the instance of a launch, whose answer has its id alone."""
        ids = answer.get("instance_ids") if isinstance(answer, dict) else None
        marks = inventory.marks_of(MACHINE, body, {})
        if not isinstance(ids, list) or len(ids) != 1 or marks is None:
            raise UncertainError(f"Lambda: {doing}: the answer does not say what was made.")
        return Resource(
            kind=MACHINE,
            id=str(ids[0]),
            name=creation.name,
            region=creation.region,
            marks=marks,
            state="starting",
            instance_type=str(body["instance_type_name"]),
        )

    def _ruleset(self, name: str) -> JsonDocument:
        """Return a firewall as a launch takes it: by its id."""
        if name not in self._firewalls:
            rulesets = self._items(FIREWALL)
            self._firewalls |= {str(ruleset["name"]): str(ruleset["id"]) for ruleset in rulesets}
        if name not in self._firewalls:
            raise ProviderError(f"Lambda: it does not show the firewall {name} yet.")
        return {"id": self._firewalls[name]}

    def _items(self, kind: str) -> list[JsonDocument]:
        """Return every item of a kind; the API has no pages."""
        answer = self._api.get(LISTS[kind], f"listing {LISTS[kind][1:]}")
        if not isinstance(answer, list) or not all(isinstance(item, dict) for item in answer):
            raise ProviderError(f"Lambda: the answer of {LISTS[kind]} is not a list.")
        return answer

    def _item(self, kind: str, id_: str) -> JsonDocument | None:
        """Return an item by id; keys have no call of their own."""
        if kind == KEY:
            return next((item for item in self._items(kind) if item.get("id") == id_), None)
        return self._api.find(f"{LISTS[kind]}/{id_}", f"looking at {kind} {id_}")

    _marks_of = staticmethod(inventory.marks_of)
    _resource = staticmethod(inventory.resource)

    @staticmethod
    def _is_named(kind: str, item: JsonDocument) -> bool:
        _ = kind
        return NAMED.fullmatch(str(item.get("name", ""))) is not None

    def mark(self, resource: Resource, marks: OwnershipTags) -> tuple[Resource, ...]:
        """Rename the instance: its tags cannot be changed."""
        body = {"name": inventory.name_until(resource.name, marks)}
        doing = f"marking {resource.name} with its deadline"
        self._api.change("POST", f"/instances/{resource.id}", body, doing)
        return ()

    def destroy(self, resource: Resource) -> bool:
        """Make one call by id; False where Lambda knows no such id."""
        doing = f"ending {resource.kind} {resource.name}"
        try:
            if resource.kind == MACHINE:
                return self._terminate(resource.id, doing)
            return self._api.delete(f"{PATHS[resource.kind]}/{resource.id}", doing)
        except RefusedCallError as error:
            if self._api.is_unknown(error) or self._item(resource.kind, resource.id) is None:
                return False
            raise

    def _terminate(self, id_: str, doing: str) -> bool:
        body = {"instance_ids": [id_]}
        answer = self._api.change("POST", "/instance-operations/terminate", body, doing)
        ended = answer.get("terminated_instances") if isinstance(answer, dict) else None
        if not any(instance.get("id") == id_ for instance in ended or ()):
            raise ProviderError(f"Lambda: {doing}: the answer does not name it.")
        return True


def _regions(types: object) -> dict[str, tuple[str, ...]]:
    """Return the regions with capacity, by type.

    Raises:
        ProviderError: the answer cannot be read.
    """
    if not isinstance(types, dict):
        raise ProviderError("Lambda: the answer about instance types cannot be read.")
    return {
        str(name): tuple(str(region["name"]) for region in row["regions_with_capacity_available"])
        for name, row in types.items()
    }


def _reaches_ssh(rule: JsonDocument) -> bool:
    low, high = rule.get("port_range") or (0, 0)
    return rule.get("protocol") in ("tcp", "all") and (low <= 22 <= high or (low, high) == (0, 0))  # noqa: PLR2004 - the port


CLOUD = LambdaCloud
