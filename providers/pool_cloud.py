"""What providers of node pools have in common: a pool makes its nodes, and takes them with it."""

from abc import abstractmethod
from dataclasses import dataclass

from pricing.errors import InputError, ProviderError
from providers.deployment import NODE, POOL, NodePool
from providers.interface import Cloud, LaunchSpec, Resource


def pool_of(spec: LaunchSpec, title: str) -> NodePool:
    """Return the pool of a launch.

    Args:
        spec: the launch.
        title: of the provider.

    Raises:
        InputError: it has none.
    """
    if spec.pool is None:
        raise InputError(f"{title} makes node pools: name a cluster.")
    return spec.pool


@dataclass(kw_only=True)
class PoolCloud(Cloud):
    """The managed Kubernetes clusters of an account."""

    kinds: tuple[str, ...] = (POOL, NODE)

    def destroy(self, resource: Resource) -> bool:
        """Make one call by id; False where the provider knows no such id.

        A node ends with its pool, for that would replace it; the node itself is ended only where
        no pool of its run is there.
        """
        if resource.kind == POOL:
            return self._end_pool(resource)
        run = resource.marks.run
        listing = self.list_owned((resource.region,), (POOL,), {run: resource.marks})
        pools = [pool for pool in listing.resources if pool.marks.run == run]
        if listing.unasked:
            raise ProviderError(f"{resource.name} ends with its pool: {listing.unasked[0].why}")
        if pools:
            ended = [self._end_pool(pool) for pool in pools]
            return all(ended)
        return self._end_node(resource)

    @abstractmethod
    def _end_pool(self, pool: Resource) -> bool:
        """Ask for the end of a pool; False where the provider knows no such one."""

    @abstractmethod
    def _end_node(self, node: Resource) -> bool:
        """Ask for the end of a node that its pool has left behind."""
