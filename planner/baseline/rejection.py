"""Why something cannot be: an offer that a job cannot take, a limit that today's machine breaks."""

from dataclasses import dataclass
from typing import Literal

Reason = Literal[
    "memory",
    "latency",
    "deadline",
    "budget",
    "slowdown",
    "capability",
    "gpu-count",
    "region",
    "purchase",
    "unavailable",
    "stale-price",
    "unknown-gpu",
    "interconnect",
    "moves",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """An offer that cannot be taken, and why.

    Attributes:
        offer: `provider/type`, the least dear of those rejected alike.
        reason: one word.
        detail: one sentence with the figures.
        excess: how far over the limit it is, as a multiple of it; 1 where there is no degree.
    """

    offer: str
    reason: Reason
    detail: str
    excess: float = 1.0
