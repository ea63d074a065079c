"""The terms of a launch, which its user confirmed."""

from dataclasses import dataclass
from decimal import Decimal

from providers.pools.node_pool import NodePool


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
