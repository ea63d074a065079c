"""A node pool: what is added to a cluster, and the kinds of resource that it is made of.

A pool is made by one call and makes its nodes itself, so its nodes are billed and the pool is what
ends: a node that goes while its pool is there is replaced.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from pricing.catalog.offer import Offer
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
    match = _POOL_NAME.fullmatch(name)
    return match[1] if match else ""


def run_of_node(name: str) -> str:
    """Return the run in the name of a node, which begins with its pool's; empty: it has none."""
    match = _NODE_NAME.fullmatch(name)
    return match[1] if match else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a launch was confirmed with.

    Attributes:
        self_destroy: whether its machines were to end themselves.
        max_usd: the cap, where one was named; None: it was the previewed total.
        most_usd_per_hour: the highest price that the provider may ask for a machine; None for the
            user's own.
        idle_s: its machines end themselves once no GPU has worked for so long; None: no such rule.
        pool: its machines are nodes of this pool, of which role and subnets are not kept; None:
            they are machines of their own.
    """

    self_destroy: bool
    max_usd: Decimal | None
    most_usd_per_hour: Decimal | None
    idle_s: int | None = None
    pool: NodePool | None = None


MACHINE = "machine"
"""The kind of resource that computes and is billed by time; a node is one that a pool makes."""

BILLED = (MACHINE, NODE)
"""Kinds that are billed by time; every other kind is a side resource, or a pool of nodes."""

COMPUTING = (POOL, *BILLED)
"""Kinds that end first, in that order: nodes end with their pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A run as the journal knows it.

    Attributes:
        marks: run, deadline, owner, plan.
        provider: where it is.
        offer: what is rented, at which price.
        region: where; empty before a place was found.
        count: machines.
        state: launching; not-proved: the machines run, and nothing has proved that they end
            themselves; ready; failed; ending; ended.
        started_at: when it was written down.
        ended_at: when the last resource was gone; None before.
        predicted_usd: the total at the TTL that was confirmed; None for what was adopted.
        resources: with the state in which each was last seen.
        reason: why it failed or ended.
        account: at the provider that it is in; empty: not known.
        terms: what its launch was confirmed with; None: it was not launched from here.
    """

    marks: OwnershipTags
    provider: str
    offer: Offer | None
    region: str
    count: int
    state: str
    started_at: datetime
    ended_at: datetime | None
    predicted_usd: Decimal | None
    resources: tuple["JournaledResource", ...] = ()
    reason: str = ""
    account: str = ""
    terms: Terms | None = None

    @property
    def self_destroy(self) -> bool | None:
        """Whether its machines were to end themselves; None where that is not known."""
        return None if self.terms is None else self.terms.self_destroy

    @property
    def pool(self) -> NodePool | None:
        """The node pool that it was launched as; None: machines, or it is not known."""
        return None if self.terms is None else self.terms.pool

    @property
    def machines(self) -> tuple["JournaledResource", ...]:
        """The machines among its resources, nodes included."""
        return tuple(entry for entry in self.resources if entry.kind in BILLED)

    @property
    def computing(self) -> tuple["JournaledResource", ...]:
        """What must be gone before it has ended: machines, and pools, which make them."""
        return tuple(entry for entry in self.resources if entry.kind in COMPUTING)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournaledResource:
    """A resource as the journal knows it.

    Attributes:
        kind, name, region: as in `Creation`.
        id: the provider's; empty while there is only the intent.
        state: intended, made, gone, refused.
        intended_at: when the intent was written, before the call.
        billed_from: start of billing, by the provider's clock; None while unknown.
        billed_until: when the provider said that it was gone; None while it is there.
        address: of a machine.
    """

    kind: str
    name: str
    region: str
    id: str
    state: str
    intended_at: datetime
    billed_from: datetime | None = None
    billed_until: datetime | None = None
    address: str = ""
