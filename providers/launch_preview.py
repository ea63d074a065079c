"""A launch before anything is done: what its user is asked to confirm."""

from dataclasses import dataclass

from pricing.billing.quote import Quote
from providers.interface import Creation, LaunchSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a launch would do and cost, before anything is done.

    Attributes:
        spec: the launch.
        calls: the changing calls at the first place, in order.
        ends: what ends it, in words.
        total: the bill of all machines at the TTL; None for the user's own.
        most: the same when their bill ends at worst, which the cap is held against.
        notes: of quota, region and permissions, as the provider told them.
        warnings: what the user must know before saying yes.
        refusals: why it would be refused; empty: it may go ahead.
    """

    spec: LaunchSpec
    calls: tuple[Creation, ...]
    ends: tuple[str, ...]
    total: Quote | None
    most: Quote | None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
