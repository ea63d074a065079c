"""How far a pool is, by what its provider shows of it and of its nodes."""

from collections.abc import Iterable

from providers.interface import Deployment, Resource
from providers.pools.node_pool import NODE, POOL
from providers.ssh.login import Status


def runs(pool: Resource, nodes: Iterable[Resource], count: int) -> bool:
    """Return whether a pool runs with that many nodes."""
    running = sum(one.state == "running" for one in nodes)
    return pool.state == "running" and running >= count


def is_pool(there: Iterable[Resource]) -> bool:
    """Return whether what is there of a run is a pool and its nodes."""
    return any(one.kind in (POOL, NODE) for one in there)


def pool_fault(one: Resource) -> str:
    """Return why a pool is good for nothing: it failed, or is being deleted; empty: it may run."""
    if one.kind != POOL or one.state not in ("failed", "ending"):
        return ""
    said = "it is being deleted" if one.state == "ending" else one.fault or "it failed"
    return f"{one.name}: {said}"


def pool_status(run: Deployment, there: tuple[Resource, ...]) -> Status:
    """Return how far the pool of a run is, of which everything that is there was listed.

    Pending where it runs with fewer nodes than it was launched with, which may be still starting.
    """
    pools = [one for one in there if one.kind == POOL]
    broken = next(filter(None, map(pool_fault, pools)), "")
    if broken:
        return Status(state="failed", reason=broken)
    nodes = [one for one in there if one.kind == NODE]
    least = run.count if run.pool is None or run.pool.min_nodes is None else run.pool.min_nodes
    if any(runs(one, nodes, least) for one in pools):
        return Status(state="ready")
    return Status(state="pending")
