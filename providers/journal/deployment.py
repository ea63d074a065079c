"""A run and what it made, as the journal knows them."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from pricing.catalog.offer import Offer
from providers.ownership_tags import OwnershipTags
from providers.pools.node_pool import NODE, POOL, NodePool
from providers.terms import Terms

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
        return tuple(one for one in self.resources if one.kind in BILLED)

    @property
    def computing(self) -> tuple["JournaledResource", ...]:
        """What must be gone before it has ended: machines, and pools, which make them."""
        return tuple(one for one in self.resources if one.kind in COMPUTING)


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
