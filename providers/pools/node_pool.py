"""A node pool: what is added to a cluster, and the kinds of resource that it is made of.

A pool is made by one call and makes its nodes itself, so its nodes are billed and the pool is what
ends: a node that goes while its pool is there is replaced.
"""

import re
from dataclasses import dataclass

from pricing.errors import InputError
from providers.ownership_tags import PREFIX, OwnershipTags

POOL = "pool"
"""The kind of resource that makes nodes, and takes them with it when it ends."""

NODE = "node"
"""A machine that a pool makes; it is billed by time."""

ON_NODES = "nvidia.com/gpu"
"""Key of the taint that keeps pods without a GPU off the nodes."""

TAINT = "present"
"""Value of that taint, as the clouds' own GPU pools have it."""

_POOL_NAME = re.compile(rf"{PREFIX}-([a-z2-9]+)-{POOL}")
_NODE_NAME = re.compile(rf"{PREFIX}-([a-z2-9]+)-{POOL}-.+")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePool:
    """A node pool that is to be added to a cluster.

    Attributes:
        provider: row of the registry.
        cluster: its name, or its id, as the user named it.
        min_nodes, max_nodes: of the autoscaler; None, both: the number of nodes is fixed.
        cluster_id: by which calls name the cluster; empty until it was looked up.
        node_role: as whom nodes run; empty where the provider has no such thing.
        subnets: of the nodes; empty where the provider chooses.
    """

    provider: str
    cluster: str
    min_nodes: int | None = None
    max_nodes: int | None = None
    cluster_id: str = ""
    node_role: str = ""
    subnets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        low, high = self.min_nodes, self.max_nodes
        if (low is None) != (high is None):
            raise InputError("node pool: min and max go together.")
        if low is not None and high is not None and not 0 <= low <= high != 0:
            raise InputError(f"node pool: from {low} to {high} nodes cannot be.")

    @property
    def text(self) -> str:
        """Whose, and between which numbers of nodes: "prod-1, 1 to 3 nodes"."""
        if self.min_nodes is None:
            return f"{self.cluster}, a fixed number of nodes"
        return f"{self.cluster}, {self.min_nodes} to {self.max_nodes} nodes"


def pool_name(marks: OwnershipTags) -> str:
    """Return the name of the pool of a run, unique in its cluster."""
    return marks.name(POOL)


def run_of_pool(name: str) -> str:
    """Return the run in the name of a pool; empty: it is not named as ours are."""
    found = _POOL_NAME.fullmatch(name)
    return found[1] if found else ""


def run_of_node(name: str) -> str:
    """Return the run in the name of a node, which begins with its pool's; empty: it has none."""
    found = _NODE_NAME.fullmatch(name)
    return found[1] if found else ""
