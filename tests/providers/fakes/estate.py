"""What a DigitalOcean account holds: Droplets, keys, firewalls, tags, volumes, snapshots.

Droplets become active after some reads, stay listed for a read after their end, and are seen as the
`World` says: late, without tags, in part. Deleting a tag takes it off every Droplet, as the API
documents. `bills` keeps the life of each.
"""

import itertools
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

from werkzeug.wrappers import Request

from providers.digitalocean.resources import fingerprint
from tests.providers.fakes.clusters import Clusters
from tests.providers.fakes.droplets import droplet_json
from tests.providers.fakes.world import NEVER, World

LARGEST_PAGE = 200
Document = dict[str, Any]
Answer = tuple[int, Document | None]

_LISTS = {
    "/v2/droplets": "droplets",
    "/v2/account/keys": "ssh_keys",
    "/v2/firewalls": "firewalls",
    "/v2/tags": "tags",
    "/v2/volumes": "volumes",
    "/v2/snapshots": "snapshots",
    "/v2/reserved_ips": "reserved_ips",
}
_SINGLE = {"ssh_keys": "ssh_key"}


@dataclass(kw_only=True)
class Estate:
    """The account's resources.

    Attributes:
        things: by list name and id, as the API prints them.
        droplet_limit: of the account.
        gpu_limit: GPU Droplets that may be; None: any number.
        closed: regions without the wanted sizes.
        boot_reads: reads of a Droplet until it is active.
        end_reads: reads for which an ended Droplet is still shown.
        world: how it misbehaves.
        user_data: what each Droplet was given, by id.
        clusters: the account's Kubernetes.
        bills: Droplet id -> [made, ended or None].
        account_id: of the team whose account it is.
        use: what the monitoring API answers about each Droplet's CPU, by id.
    """

    use: dict[str, Document] = field(default_factory=dict)

    things: dict[str, dict[str, Document]] = field(
        default_factory=lambda: {name: {} for name in _LISTS.values()}
    )
    droplet_limit: int = 25
    gpu_limit: int | None = None
    closed: set[str] = field(default_factory=set)
    boot_reads: int = 2
    end_reads: int = 1
    world: World = field(default_factory=World)
    user_data: dict[str, str] = field(default_factory=dict)
    bills: dict[str, list[datetime | None]] = field(default_factory=dict)
    account_id: str = "5df3e3004a17e242b7c20ca6c9fc25b701a47ece"
    clusters: "Clusters" = field(init=False)
    _reads: dict[str, int] = field(default_factory=dict)
    _born: dict[tuple[str, str], datetime] = field(default_factory=dict)
    _ending: dict[str, int] = field(default_factory=dict)
    _ids: Any = field(default_factory=lambda: itertools.count(1001))

    def __post_init__(self) -> None:
        self.clusters = Clusters(estate=self)

    def make_node(self, body: Document, size: Document, run: str) -> Document:
        """Make the Droplet of a node, which a pool asks for; its user data is the provider's."""
        key = str(next(self._ids))
        made = self.world.now().replace(microsecond=0)
        self.things["droplets"][key] = droplet_json(int(key), body, size, made)
        self._born["droplets", key] = datetime.now(UTC)
        self.user_data[key] = f"# a node for run {run}\n"
        self.bills[key] = [made, None]
        return self.things["droplets"][key]

    def answer(self, request: Request, sizes: list[Document]) -> Answer:
        """The answer of the API to a request."""
        if request.path == "/v2/account":
            return HTTPStatus.OK, {"account": self._account()}
        for path, many in _LISTS.items():
            if self.world.elsewhere and request.path == path:
                return HTTPStatus.OK, paged(many, [], request, self.world)
            if self.world.elsewhere and request.path.startswith(f"{path}/"):
                break
            if request.path == path:
                if request.method == "POST":
                    return self._make(many, request.get_json(), sizes)
                listed = self._listed(many, request)
                return HTTPStatus.OK, paged(many, listed, request, self.world)
            if request.path.startswith(f"{path}/"):
                key = request.path.removeprefix(f"{path}/")
                act = {"GET": self._read, "DELETE": self._end}.get(request.method)
                if act is not None and "/" not in key:
                    return act(many, key)
                if many == "tags" and key.endswith("/resources") and request.method == "POST":
                    return self._tag(key.removesuffix("/resources"), request.get_json())
        return error(HTTPStatus.NOT_FOUND, "not_found", "The resource was not found.")

    def watched(self, request: Request) -> Answer:
        """The answer of the monitoring API about a Droplet's CPU."""
        nothing: Document = {"resultType": "matrix", "result": []}
        data = self.use.get(request.args["host_id"], nothing)
        return HTTPStatus.OK, {"status": "success", "data": data}

    def _account(self) -> Document:
        return {
            "droplet_limit": self.droplet_limit,
            "floating_ip_limit": 3,
            "email": "test@example.com",
            "uuid": "b6fr89dbf6d9156cace5f3c78dc9851d957381ef",
            "team": {"uuid": "another" if self.world.elsewhere else self.account_id, "name": "T"},
            "email_verified": True,
            "status": "active",
            "status_message": "",
        }

    def _make(self, many: str, body: Document, sizes: list[Document]) -> Answer:
        makers = {
            "droplets": self._make_droplet,
            "ssh_keys": self._make_key,
            "firewalls": self._make_firewall,
            "tags": self._make_tag,
        }
        before = set(self.things[many])
        answer = makers[many](body, sizes)
        for key in set(self.things[many]) - before:
            self._born[many, key] = datetime.now(UTC)
        return answer

    def _make_droplet(self, body: Document, sizes: list[Document]) -> Answer:
        size = next((size for size in sizes if size["slug"] == body["size"]), None)
        if size is None or body["region"] in self.closed or body["region"] not in size["regions"]:
            return _refused("Region is not available")
        if self.gpu_limit is not None and len(self.things["droplets"]) >= self.gpu_limit:
            return _refused("creating this/these droplet(s) will exceed your GPU limit")
        known = {key["fingerprint"] for key in self.things["ssh_keys"].values()}
        if not set(body.get("ssh_keys", [])) <= known:
            return _refused("invalid key identifiers for Droplet creation.")
        for tag in body.get("tags") or []:
            self.things["tags"].setdefault(tag, _tag(tag))
        key = str(next(self._ids))
        made = self.world.now().replace(microsecond=0)
        self.things["droplets"][key] = droplet_json(int(key), body, size, made)
        self.user_data[key] = str(body.get("user_data") or "")
        self.bills[key] = [made, None]
        droplet = self.things["droplets"][key]
        return HTTPStatus.ACCEPTED, {"droplet": droplet, "links": {"actions": []}}

    def _make_key(self, body: Document, _: list[Document]) -> Answer:
        mark = fingerprint(body["public_key"])
        if any(key["fingerprint"] == mark for key in self.things["ssh_keys"].values()):
            return _refused("SSH Key is already in use on your account")
        key = int(next(self._ids))
        made = {"id": key, "fingerprint": mark, **body}
        self.things["ssh_keys"][mark] = made
        return HTTPStatus.CREATED, {"ssh_key": made}

    def _make_firewall(self, body: Document, _: list[Document]) -> Answer:
        unknown = set(body.get("tags") or []) - set(self.things["tags"])
        if unknown:
            return error(HTTPStatus.BAD_REQUEST, "bad_request", f"no such tags: {unknown}")
        key = str(uuid.uuid4())
        made = {"id": key, "status": "waiting", "created_at": _now(), "droplet_ids": [], **body}
        self.things["firewalls"][key] = {**made, "pending_changes": []}
        return HTTPStatus.ACCEPTED, {"firewall": self.things["firewalls"][key]}

    def _make_tag(self, body: Document, _: list[Document]) -> Answer:
        tag = self.things["tags"].setdefault(body["name"], _tag(body["name"]))
        return HTTPStatus.CREATED, {"tag": tag}

    def _tag(self, tag: str, body: Document) -> Answer:
        ids = [one["resource_id"] for one in body["resources"]]
        if tag not in self.things["tags"] or not set(ids) <= set(self.things["droplets"]):
            return error(HTTPStatus.NOT_FOUND, "not_found", "The resource was not found.")
        for key in ids:
            droplet = self.things["droplets"][key]
            droplet["tags"] = list(dict.fromkeys((*droplet["tags"], tag)))
        return HTTPStatus.NO_CONTENT, None

    def _age_s(self, many: str, key: str) -> float:
        born = self._born.get((many, key))
        return NEVER if born is None else (datetime.now(UTC) - born).total_seconds()

    def _told(self, many: str, key: str) -> Document:
        """The thing as the world tells it now: its tags may be late, or lost."""
        thing = self.things[many][key]
        if many == "droplets" and self._age_s(many, key) < self.world.tag_lag_s:
            return {**thing, "tags": []}
        return thing

    def _listed(self, many: str, request: Request) -> list[Document]:
        tag, name = request.args.get("tag_name"), request.args.get("name")
        for key in list(self.things[many]) if many == "droplets" else ():
            self._fade(key)
        lag_s = self.world.list_lag_s
        shown = [key for key in self.things[many] if self._age_s(many, key) >= lag_s]
        told = [self._told(many, key) for key in shown]
        named = [one for one in told if many != "droplets" or name in (None, one["name"])]
        return [one for one in named if tag is None or tag in one.get("tags", ())]

    def _read(self, many: str, key: str) -> Answer:
        if key in self.things[many] and many == "droplets":
            self._reads[key] = self._reads.get(key, 0) + 1
            if self._reads[key] >= self.boot_reads:
                self.things[many][key]["status"] = "active"
            self._fade(key)
        if key not in self.things[many] or self._age_s(many, key) < self.world.read_lag_s:
            return error(HTTPStatus.NOT_FOUND, "not_found", "The resource was not found.")
        return HTTPStatus.OK, {_SINGLE.get(many, many.removesuffix("s")): self._told(many, key)}

    def _fade(self, key: str) -> None:
        """A Droplet that was ended disappears after some reads, and not before its time."""
        if key in self._ending:
            self._ending[key] -= 1
            ended = self.bills[key][1]
            late_s = 0.0 if ended is None else (self.world.now() - ended).total_seconds()
            if self._ending[key] < 0 and late_s >= self.world.end_lag_s:
                self.things["droplets"].pop(key, None)

    def _end(self, many: str, key: str) -> Answer:
        if key not in self.things[many]:
            return error(HTTPStatus.NOT_FOUND, "not_found", "The resource was not found.")
        if many == "droplets":
            self.clusters.replace_node(key)
            if key in self._ending:
                return _refused("The Droplet is being destroyed")
            self._ending[key] = self.end_reads
            self.bills[key][1] = self.world.now()
        else:
            del self.things[many][key]
        if many == "tags":
            self.untag(key)
        return HTTPStatus.NO_CONTENT, None

    def end_droplet(self, key: str, at: datetime) -> None:
        """A node has gone with its pool at that time."""
        if key in self.things["droplets"] and key not in self._ending:
            self._ending[key] = self.end_reads
            self.bills[key][1] = at

    def untag(self, tag: str) -> None:
        """The API: "Deleting a tag also untags all the resources ... tagged by the Tag"."""
        for things in self.things.values():
            for thing in things.values():
                if tag in (thing.get("tags") or ()):
                    thing["tags"] = [one for one in thing["tags"] if one != tag]

    def end_itself(self, key: str, at: datetime) -> None:
        """A Droplet has ended by a call of its own at that time."""
        self._end("droplets", key)
        self.bills[key][1] = at + timedelta(seconds=self.world.skew_s)


def error(status: int, name: str, message: str) -> Answer:
    """An error as the API prints it."""
    return status, {"id": name, "message": message, "request_id": "4d9d8375-3c56-4925-a3e7"}


def _refused(message: str) -> Answer:
    return error(HTTPStatus.UNPROCESSABLE_ENTITY, "unprocessable_entity", message)


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _tag(name: str) -> Document:
    empty = {"count": 0}
    kinds = ("droplets", "images", "volumes", "volume_snapshots", "databases")
    return {"name": name, "resources": {**empty, **{kind: dict(empty) for kind in kinds}}}


def paged(name: str, items: list[Document], request: Request, world: World) -> Document:
    """A page of a list with its links, as every list of the API has them."""
    page, size = request.args.get("page", 1, int), request.args.get("per_page", 20, int)
    size = min(size, LARGEST_PAGE, world.page_size or LARGEST_PAGE)
    items = world.listed(items)
    last = max(1, -(-len(items) // size))
    address = f"{request.base_url}?per_page={size}&page="
    links = {"next": page + 1, "last": last} if page < last else {}
    links |= {"first": 1, "prev": page - 1} if page > 1 else {}
    return {
        name: items[(page - 1) * size : page * size],
        "links": {"pages": {key: f"{address}{number}" for key, number in links.items()}},
        "meta": {"total": len(items)},
    }
