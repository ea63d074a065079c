"""The call that adds a node pool to a DOKS cluster, as plain data; pure.

A pool carries its marks as labels, which can be changed and which no other resource shares: a tag
would be made for the whole account, stay behind, and be copied to Droplets that are not ours.
"""

from collections.abc import Mapping
from typing import Any

from providers.interface import Creation, LaunchSpec, Place
from providers.ownership_tags import PREFIX, OwnershipTags, read_marks
from providers.pools.node_pool import POOL, NodePool, pool_name

PROVIDER = "doks"
PATH = "/v2/kubernetes/clusters"
_SEPARATOR = "/"


def pool_path(cluster_id: str) -> str:
    """Return where the pools of a cluster are."""
    return f"{PATH}/{cluster_id}/node_pools"


def labels(marks: OwnershipTags) -> dict[str, str]:
    """Return the marks as labels of a pool, which its nodes get, too."""
    return {f"{PREFIX}-{name}": text for name, text in marks.tags().items()}


def read_labels(told: object) -> OwnershipTags | None:
    """Return the marks among labels; None where they are not complete."""
    if not isinstance(told, Mapping):
        return None
    ours = f"{PREFIX}-"
    return read_marks({str(k).removeprefix(ours): str(v) for k, v in told.items() if ours in k})


def creation(spec: LaunchSpec, pool: NodePool, place: Place) -> Creation:
    """Return the call of a launch: a pool of as many nodes as it begins with."""
    body: dict[str, Any] = {
        "name": pool_name(spec.marks),
        "size": place.instance_type,
        "count": spec.count,
        "labels": labels(spec.marks),
    }
    if pool.min_nodes is not None:
        body |= {"auto_scale": True, "min_nodes": pool.min_nodes, "max_nodes": pool.max_nodes}
    cluster = pool.cluster_id or pool.cluster
    return Creation(
        kind=POOL,
        name=pool_name(spec.marks),
        region=place.region,
        call=f"POST {pool_path(cluster)}",
        arguments={"cluster_id": cluster, **body},
    )


def changed(found: Mapping[str, Any], marks: OwnershipTags) -> dict[str, Any]:
    """Return the body of the call that gives a pool other marks: all else stays as it is."""
    kept = {
        name: found[name]
        for name in ("name", "count", "auto_scale", "min_nodes", "max_nodes", "taints")
        if found.get(name) not in (None, [])
    }
    own = [str(tag) for tag in found.get("tags") or () if not str(tag).startswith("k8s")]
    told = {**(found.get("labels") or {}), **labels(marks)}
    return {**kept, **({"tags": own} if own else {}), "labels": told}


def pool_id(cluster_id: str, id_: str) -> str:
    """Return the id of a pool as the journal keeps it: a call needs that of its cluster, too."""
    return f"{cluster_id}{_SEPARATOR}{id_}"


def parts(id_: str) -> tuple[str, str]:
    """Return the ids of a pool's cluster and of the pool."""
    cluster, _, own = id_.partition(_SEPARATOR)
    return cluster, own
