"""What there is of ours in DOKS clusters: pools by their labels, nodes by their pool or name.

A cluster lists its pools with their nodes. A pool that was deleted is no longer listed while its
nodes are drained; they are Droplets, and are found as such by the name that begins with the pool's.
Nobody asks for Droplets where neither the journal nor a cluster has a pool of ours.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pricing.tables import elements, members, objects
from providers import interface
from providers.digitalocean.access import DigitalOceanApi
from providers.digitalocean.resources import region_of
from providers.doks.ender import UNTIL
from providers.ownership_tags import PREFIX, OwnershipTags, read_labels
from providers.token_api import JsonDocument

PROVIDER = "doks"
PATH = "/v2/kubernetes/clusters"
_SEPARATOR = "/"
ENDER, WANTED, ARMED = f"{PREFIX}-ender", "wanted", "armed"
"""The label by which a pool and what ends it from inside its cluster (`ender.py`) know it."""
LABEL_SEPARATOR = "-"  # Kubernetes allows no colon in a label


def pool_path(cluster_id: str) -> str:
    """Return where the pools of a cluster are."""
    return f"{PATH}/{cluster_id}/node_pools"


def creation(
    spec: interface.LaunchSpec, pool: interface.NodePool, target: interface.Place
) -> interface.Creation:
    """Return the call of a launch: a pool of as many nodes as it begins with."""
    body: dict[str, Any] = {
        "name": interface.pool_name(spec.marks),
        "size": target.instance_type,
        "count": spec.count,
        "labels": spec.marks.labels(LABEL_SEPARATOR),
        "tags": [f"{UNTIL}{spec.marks.tags()['deadline']}"],
    }
    if spec.self_destroy:
        body["labels"] = {**body["labels"], ENDER: WANTED}
    if pool.min_nodes is not None:
        body |= {"auto_scale": True, "min_nodes": pool.min_nodes, "max_nodes": pool.max_nodes}
    cluster = pool.cluster_id or pool.cluster
    return interface.Creation(
        kind=interface.POOL,
        name=interface.pool_name(spec.marks),
        region=target.region,
        call=f"POST {pool_path(cluster)}",
        arguments={"cluster_id": cluster, **body},
    )


def cluster_of(id_: str) -> str:
    """Return the cluster in the id of a pool."""
    return id_.partition(_SEPARATOR)[0]


def own_path(id_: str) -> str:
    """Return where a pool is, by the ids of its cluster and its own, as the journal keeps them."""
    cluster, _, own = id_.partition(_SEPARATOR)
    return f"{pool_path(cluster)}/{own}"


_STATES: Mapping[str, interface.State] = {
    "provisioning": "starting",
    "running": "running",
    "draining": "running",  # it computes, and is billed
    "deleting": "ending",
    "new": "starting",
    "active": "running",
}
_CLUSTER = "k8s:"
"""Before the id of its cluster in a tag that the API puts on every node."""

CLUSTERS = "kubernetes_clusters"


@dataclass(kw_only=True)
class _PoolSearch(interface.ListingDraft):
    """A listing, and the ids of the clusters that were looked into."""

    clusters: set[str] = field(default_factory=set)

    def add(self, resource: interface.Resource) -> None:
        """Take a resource by its id alone: a node that two answers show is one."""
        self.resources["", "", resource.id] = resource


def listing(
    api: DigitalOceanApi,
    kinds: tuple[str, ...],
    marks_by_run: interface.MarksByRun,
    also: Collection[str] = (),
) -> interface.Listing:
    """Return the pools of ours and their nodes, as far as they are shown.

    A token that may not look into clusters has made no pool; where the journal knows none either,
    nothing is missing of that.

    Args:
        api: of the account.
        kinds: of `pool` and `node`.
        marks_by_run: of what the journal knows.
        also: ids of clusters that are asked for where the list leaves them out.
    """
    search = _PoolSearch(provider=PROVIDER, runs=dict(marks_by_run))
    with search.asking(interface.POOL):
        try:
            for cluster in api.pages(PATH, CLUSTERS, _LISTING):
                _look_into(cluster, search)
            _look_into_each(api, also, search)
        except interface.ForbiddenError:
            if marks_by_run:
                raise
    if interface.NODE in kinds and (marks_by_run or search.resources):
        with search.asking(interface.NODE):
            _look_for_nodes(api, search)
    return search.listing(kinds)


_LISTING = "listing Kubernetes clusters"


def read_cluster(api: DigitalOceanApi, id_: str) -> JsonDocument:
    """Return a cluster by its id; empty where the API knows no such one."""
    answer = api.find(f"{PATH}/{id_}", _LISTING) or {}
    return answer.get("kubernetes_cluster") or {}


def _look_into_each(api: DigitalOceanApi, ids: Collection[str], search: _PoolSearch) -> None:
    """Look into clusters that a list has left out."""
    for id_ in ids:
        cluster = {} if id_ in search.clusters else read_cluster(api, id_)
        if cluster:
            _look_into(cluster, search)


def _look_into(cluster: JsonDocument, search: _PoolSearch) -> None:
    """Take the pools of ours in a cluster, with their nodes."""
    search.clusters.add(str(cluster["id"]))
    for pool in objects(cluster.get("node_pools") or ()):
        run = interface.run_of_pool(str(pool.get("name")))
        marks = search.owner_of_pool(run, read_labels(pool.get("labels"), LABEL_SEPARATOR))
        if marks is None and run:
            label = f"pool {pool['name']} of cluster {cluster.get('name')}"
            search.leave(label, "at cloud.digitalocean.com/kubernetes")
        if marks is None:
            continue
        owned = pool_resource(str(cluster["id"]), str(cluster.get("region", "")), pool, marks)
        for resource in (owned, *_nodes(pool, owned)):
            search.add(resource)


def _look_for_nodes(api: DigitalOceanApi, search: _PoolSearch) -> None:
    """Take Droplets that are nodes of ours and that no pool shows."""
    unlisted, shown = dict[str, None](), {owned.id for owned in search.resources.values()}
    doing = "listing the nodes' Droplets"
    for droplet in api.pages("/v2/droplets", "droplets", doing, {"type": "gpus"}):
        marks = search.runs.get(interface.run_of_node(str(droplet.get("name"))))
        if marks is not None and str(droplet["id"]) not in shown:
            search.add(droplet_node(droplet, marks))
            unlisted |= dict.fromkeys(_clusters_of(droplet))
    _look_into_each(api, tuple(unlisted), search)


def pool_resource(
    cluster_id: str, region: str, pool: Mapping[str, Any], marks: OwnershipTags
) -> interface.Resource:
    """Return a pool of the API that is of a run."""
    return interface.Resource(
        kind=interface.POOL,
        id=f"{cluster_id}{_SEPARATOR}{pool['id']}",
        name=str(pool.get("name", "")),
        region=region,
        marks=marks,
        state=_state(pool),
        instance_type=str(pool.get("size", "")),
        fault="" if pool.get("labels") else "somebody took its labels away; its tag ends it",
    )


def _state(pool: Mapping[str, Any]) -> interface.State:
    """Return how far a pool is: the API says it of its nodes alone."""
    states = [
        str(members(n.get("status") or {}).get("state")) for n in objects(pool.get("nodes") or ())
    ]
    if states and all(word == "deleting" for word in states):
        return "ending"
    running = sum(word == "running" for word in states)
    return "running" if running >= int(str(pool.get("count") or 0)) > 0 else "starting"


def _nodes(pool: Mapping[str, Any], owned: interface.Resource) -> Iterator[interface.Resource]:
    """Yield the nodes of a pool that have a Droplet already."""
    for node in objects(pool.get("nodes") or ()):
        if node.get("droplet_id"):
            yield interface.Resource(
                kind=interface.NODE,
                id=str(node["droplet_id"]),
                name=str(node.get("name", "")),
                region=owned.region,
                marks=owned.marks,
                state=_STATES.get(str(members(node.get("status") or {}).get("state")), "running"),
                created_at=_time(node.get("created_at")),
                instance_type=owned.instance_type,
            )


def droplet_node(droplet: Mapping[str, Any], marks: OwnershipTags) -> interface.Resource:
    """Return a node as the Droplet that it is."""
    return interface.Resource(
        kind=interface.NODE,
        id=str(droplet["id"]),
        name=str(droplet.get("name", "")),
        region=region_of(droplet),
        marks=marks,
        state=_STATES.get(str(droplet.get("status")), "running"),
        created_at=_time(droplet.get("created_at")),
        instance_type=str(droplet.get("size_slug", "")),
    )


def _time(text: object) -> datetime | None:
    return None if not text else datetime.fromisoformat(str(text))


def look_at_pool(
    api: DigitalOceanApi, id_: str, region: str, marks: OwnershipTags
) -> interface.ExistenceCheck:
    """Return what the API answers about a pool of the journal.

    Raises:
        ProviderError: no answer that says whether it is there.
    """
    pool = read_pool(api, id_)
    if pool is None:
        return interface.ExistenceCheck.not_shown("DigitalOcean: no such node pool")
    owned = pool_resource(cluster_of(id_), region, pool, marks)
    return replace(_identified(owned, pool), nodes=tuple(_nodes(pool, owned)))


def _identified(owned: interface.Resource, pool: JsonDocument) -> interface.ExistenceCheck:
    return interface.ExistenceCheck.identified(
        owned, read_labels(pool.get("labels"), LABEL_SEPARATOR)
    )


def read_pool(api: DigitalOceanApi, id_: str) -> JsonDocument | None:
    """Return a pool as the API has it; None where it knows no such id.

    Raises:
        ProviderError: no answer that says whether it is there.
    """
    answer = api.find(own_path(id_), f"looking at node pool {id_}")
    return None if answer is None else dict(members(answer["node_pool"]))


def look_at_node(api: DigitalOceanApi, id_: str, marks: OwnershipTags) -> interface.ExistenceCheck:
    """Return what the API answers about a node's Droplet: it is what is billed.

    Raises:
        ProviderError: no answer that says whether it is there.
    """
    answer = api.find(f"/v2/droplets/{id_}", f"looking at node {id_}")
    if answer is None:
        return interface.ExistenceCheck.not_shown("DigitalOcean: no such Droplet")
    droplet = dict(members(answer["droplet"]))
    run = interface.run_of_node(str(droplet.get("name")))
    if run and run != marks.run:
        return interface.ExistenceCheck.not_asked(f"it is a node of run {run}")
    for pool in _pools_of(api, droplet):
        check = _identified(pool_resource("", "", pool, marks), pool)
        if not check.is_ours:
            return replace(check, why=f"it is a node of a pool, and {check.why}")
    return interface.ExistenceCheck.present(droplet_node(droplet, marks))


def _pools_of(api: DigitalOceanApi, droplet: JsonDocument) -> list[JsonDocument]:
    """Return the pool that has a Droplet as its node, as its cluster shows it; or none.

    A node that is young has no id of a Droplet yet, and the name of its Droplet.
    """
    return [
        dict(pool)
        for id_ in _clusters_of(droplet)
        for pool in objects(read_cluster(api, id_).get("node_pools") or ())
        for node in objects(pool.get("nodes") or ())
        if str(droplet["id"]) == str(node.get("droplet_id")) or droplet["name"] == node.get("name")
    ]


def _clusters_of(droplet: Mapping[str, Any]) -> list[str]:
    """Return the ids of clusters in the tags of a Droplet."""
    tags = (str(tag) for tag in elements(droplet.get("tags") or ()))
    return [tag.removeprefix(_CLUSTER) for tag in tags if tag.startswith(_CLUSTER)]
