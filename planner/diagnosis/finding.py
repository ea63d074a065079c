"""A finding: one cause of waste, with the evidence that says so and what to do about it."""

from dataclasses import dataclass
from decimal import Decimal

from planner.diagnosis.rules.rule import Confidence, Severity
from planner.signals.condition import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One cause.

    Attributes:
        code: one of the finding codes.
        severity: how much of the bill is at stake.
        confidence: `measured` when the cause itself was timed, `likely` when counters point to it,
            `possible` when they allow it.
        cause: one sentence for a person.
        evidence: the readings that led here.
        against: the readings that speak against it.
        actions: codes of what would help, best first.
        waste_fraction: share of the bill that this cause wastes, 0-1; None where unknown.
        waste_usd: the same in dollars of the plan's period; None without a price.
    """

    code: str
    severity: Severity
    confidence: Confidence
    cause: str
    evidence: tuple[Evidence, ...] = ()
    against: tuple[Evidence, ...] = ()
    actions: tuple[str, ...] = ()
    waste_fraction: float | None = None
    waste_usd: Decimal | None = None
