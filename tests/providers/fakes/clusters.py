"""The Kubernetes clusters of a DigitalOcean account: pools make nodes, which are Droplets.

A pool that is deleted drains first: it is shown, with nodes that are deleting, for some requests,
then it is gone, and its Droplets go. A node whose Droplet somebody deletes is replaced. By the
OpenAPI document: form of requests and answers; DELETE is followed by a drain. How long each takes,
and that a node's name begins with its pool's, is our own reading of what clusters show.
"""

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Request

from providers.interface import run_of_pool

if TYPE_CHECKING:
    from tests.providers.fakes.estate import Answer, Estate

Document = dict[str, Any]
CLUSTER = "5ba4518b-b9e2-4978-aa92-2d4c727e8824"
NAME = "prod-1"
DRAIN = timedelta(seconds=60)
"""A pool is gone after so long, whether anybody reads or not."""


@dataclass(kw_only=True)
class Pool:
    """A pool and its nodes, as the API prints them."""

    cluster: str
    told: Document
    born: datetime
    ended: datetime | None = None
    reads: int = 0


@dataclass(kw_only=True)
class Clusters:
    """The clusters of an account; there is one, in nyc2, with a pool of somebody else's.

    Attributes:
        estate: holds the Droplets.
        clusters: by id, without their pools.
        pools: by id.
        sizes: that pools take; None: every size.
        boot_reads: reads of a pool until its nodes run; None: they never do.
        end_reads: requests for which a pool that was ended is still shown.
        hides: a pool that was ended is shown no more, while its Droplets drain.
    """

    estate: "Estate"
    clusters: dict[str, Document] = field(default_factory=dict)
    pools: dict[str, Pool] = field(default_factory=dict)
    sizes: tuple[str, ...] | None = None
    boot_reads: int | None = 2
    end_reads: int = 2
    hides: bool = False
    _known: list[Document] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clusters[CLUSTER] = cluster_json(CLUSTER, NAME, "nyc2")
        theirs = node_pool("9e3c1ad4-0f4d-4f6e-8f0c-6a9c6a6f2a55", {"name": "web", "count": 1})
        self.pools[theirs["id"]] = Pool(cluster=CLUSTER, told=theirs, born=_now())

    @property
    def ours(self) -> dict[str, Pool]:
        """Pools that were made through the API and are not ended, by id."""
        made = {key: one for key, one in self.pools.items() if one.told["name"] != "web"}
        return {key: one for key, one in made.items() if one.ended is None}

    def answer(self, request: Request, sizes: list[Document]) -> "Answer":
        """The answer of the API to a request below /v2/kubernetes."""
        self._known = sizes
        words = request.path.removeprefix("/v2/kubernetes/").split("/")
        if words == ["options"]:
            slugs = [size["slug"] for size in sizes] if self.sizes is None else self.sizes
            return HTTPStatus.OK, {"options": {"sizes": [{"name": s, "slug": s} for s in slugs]}}
        if words == ["clusters"] and request.method == "GET":
            from tests.providers.fakes.estate import paged  # noqa: PLC0415 - they know each other

            shown = [] if self.estate.world.elsewhere else [*map(self._shown, self.clusters)]
            found = paged("kubernetes_clusters", shown, request, self.estate.world)
            return HTTPStatus.OK, found
        if words[0] != "clusters" or self.estate.world.elsewhere or words[1] not in self.clusters:
            return _not_found()
        return self._inside(request, words[1], words[2:])

    def _inside(self, request: Request, cluster: str, words: list[str]) -> "Answer":
        """The answer about one cluster, or one of its pools."""
        if not words and request.method == "GET":
            return HTTPStatus.OK, {"kubernetes_cluster": self._shown(cluster)}
        if words == ["node_pools"] and request.method == "POST":
            return self._make(cluster, request.get_json())
        if len(words) == 2 and words[0] == "node_pools":
            act = {"GET": self._read, "PUT": self._change, "DELETE": self._end}[request.method]
            pool = self.pools.get(words[1])
            young = pool is not None and _age_s(pool.born) < self.estate.world.read_lag_s
            if pool is None or self._is_hidden(pool) or (young and request.method == "GET"):
                return _not_found()
            return act(pool, request)
        return _not_found()

    def _is_hidden(self, pool: Pool) -> bool:
        return self.hides and pool.ended is not None

    def _shown(self, cluster: str) -> Document:
        lag_s = self.estate.world.list_lag_s
        mine = [one for one in self.pools.values() if one.cluster == cluster]
        there = [o for o in mine if not self._is_hidden(o) and _age_s(o.born) >= lag_s]
        return {**self.clusters[cluster], "node_pools": [self._told(one) for one in there]}

    def _told(self, pool: Pool) -> Document:
        """The pool as the world tells it now: its labels may be late, or lost."""
        late = _age_s(pool.born) < self.estate.world.tag_lag_s
        return {**pool.told, "labels": None} if late else pool.told

    def _make(self, cluster: str, body: Document) -> "Answer":
        names = {one.told["name"] for one in self.pools.values() if one.cluster == cluster}
        if body["name"] in names:
            return _refused("a node pool with this name already exists")
        if not any(size["slug"] == body["size"] for size in self._known):
            return _refused("invalid size")
        limit, there = self.estate.gpu_limit, len(self.estate.things["droplets"])
        if limit is not None and there + body["count"] > limit:
            return _refused("creating this/these droplet(s) will exceed your GPU limit")
        told = node_pool(str(uuid.uuid4()), body)
        told["tags"] = ["k8s", "k8s-worker", f"k8s:{cluster}", *(body.get("tags") or [])]
        pool = Pool(cluster=cluster, told=told, born=_now())
        self.pools[told["id"]] = pool
        self.scale(pool, body["count"])
        return HTTPStatus.CREATED, {"node_pool": told}

    def scale(self, pool: Pool, count: int) -> None:
        """Add or take nodes, as an autoscaler does."""
        nodes, pool.told["count"] = pool.told["nodes"], count
        while len(nodes) < count:
            nodes.append(self._new_node(pool))
        for node in nodes[count:]:
            self.estate.end_droplet(node["droplet_id"] or node["_droplet"], self.estate.world.now())
        del nodes[count:]

    def _new_node(self, pool: Pool) -> Document:
        size = next(one for one in self._known if one["slug"] == pool.told["size"])
        name = f"{pool.told['name']}-{uuid.uuid4().hex[:5]}"
        region = self.clusters[pool.cluster]["region"]
        body = {"name": name, "region": region, "image": "do-k8s", "tags": pool.told["tags"]}
        droplet = self.estate.make_node(body, size, run_of_pool(pool.told["name"]))
        return {
            "id": str(uuid.uuid4()),
            "name": name,
            "status": {"state": "provisioning"},
            "droplet_id": "",
            "created_at": droplet["created_at"],
            "updated_at": droplet["created_at"],
            "_droplet": str(droplet["id"]),
        }

    def replace_node(self, key: str) -> None:
        """Somebody deletes the Droplet of a node: its pool makes another."""
        for pool in self.pools.values():
            nodes = pool.told["nodes"]
            for at, node in enumerate(nodes):
                if node.get("_droplet") == key and pool.ended is None:
                    nodes[at] = self._new_node(pool)

    def _read(self, pool: Pool, _: Request) -> "Answer":
        self._boot(pool)
        return HTTPStatus.OK, {"node_pool": self._told(pool)}

    def _boot(self, pool: Pool) -> None:
        """A read of a pool brings its nodes on."""
        pool.reads += 1
        for node in pool.told["nodes"] if pool.ended is None else ():
            node["droplet_id"] = node["_droplet"]
            if self.boot_reads is not None and pool.reads >= self.boot_reads:
                node["status"] = {"state": "running"}
                self.estate.things["droplets"][node["_droplet"]]["status"] = "active"

    def _change(self, pool: Pool, request: Request) -> "Answer":
        body = request.get_json()
        pool.told |= {key: body[key] for key in ("name", "labels") if key in body}
        if "tags" in body:
            kept = [tag for tag in pool.told["tags"] if tag.startswith("k8s")]
            pool.told["tags"] = [*kept, *body["tags"]]
        for key in ("auto_scale", "min_nodes", "max_nodes", "taints"):
            pool.told[key] = body.get(key, [] if key == "taints" else 0)
        pool.told["auto_scale"] = bool(pool.told["auto_scale"])
        self.scale(pool, body["count"])
        return HTTPStatus.ACCEPTED, {"node_pool": pool.told}

    def _end(self, pool: Pool, _: Request) -> "Answer":
        if pool.ended is None:
            pool.ended, pool.reads = _now(), 0
            for node in pool.told["nodes"]:
                node["status"] = {"state": "deleting"}
        return HTTPStatus.NO_CONTENT, None

    def settle(self) -> None:
        """A pool that was ended goes after some requests, and not before its time."""
        for key, pool in list(self.pools.items()):
            if pool.ended is None:
                continue
            pool.reads += 1
            least = timedelta(seconds=self.estate.world.end_lag_s)
            past = _now() - pool.ended
            if past < least or (pool.reads <= self.end_reads and past < least + DRAIN):
                continue
            at = self.estate.world.now() - max(timedelta(), past - least - DRAIN)
            for node in pool.told["nodes"]:
                self.estate.end_droplet(node["_droplet"], at)
            del self.pools[key]


def node_pool(key: str, body: Document) -> Document:
    """A pool as the API prints it, without nodes."""
    return {
        "id": key,
        "name": body["name"],
        "size": body.get("size", "s-4vcpu-8gb"),
        "count": body["count"],
        "tags": list(body.get("tags") or []),
        "labels": body.get("labels"),
        "taints": list(body.get("taints") or []),
        "auto_scale": bool(body.get("auto_scale")),
        "min_nodes": body.get("min_nodes", 0),
        "max_nodes": body.get("max_nodes", 0),
        "nodes": [],
    }


def cluster_json(key: str, name: str, region: str) -> Document:
    """A cluster as the API prints it, without pools."""
    return {
        "id": key,
        "name": name,
        "region": region,
        "version": "1.34.1-do.0",
        "status": {"state": "running"},
    }


def _age_s(born: datetime) -> float:
    return (_now() - born).total_seconds()


def _now() -> datetime:
    return datetime.now(UTC)


def _not_found() -> "Answer":
    from tests.providers.fakes.estate import error  # noqa: PLC0415 - they know each other

    return error(HTTPStatus.NOT_FOUND, "not_found", "The resource was not found.")


def _refused(message: str) -> "Answer":
    from tests.providers.fakes.estate import error  # noqa: PLC0415 - the same

    return error(HTTPStatus.UNPROCESSABLE_ENTITY, "unprocessable_entity", message)
