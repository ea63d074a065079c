"""What an amount of work costs: a million, a thousand or one unit, whichever the period holds."""

from dataclasses import dataclass
from decimal import Decimal

_LEAST_UNITS = 1e-6  # less is not an amount of work that has a price
_LARGE_UNITS = ((1_000_000, "1M "), (1_000, "1k "), (1, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCost:
    """What an amount of work costs.

    Attributes:
        unit: the amount, such as `1M image`.
        usd: exact.
    """

    unit: str
    usd: Decimal


def work_cost(cost: Decimal | None, units: float | None, unit: str | None) -> WorkCost | None:
    """Return what a readable amount of work costs; None where cost or work is unknown.

    Args:
        cost: of the period.
        units: work of the period.
        unit: what is counted, such as `image`.
    """
    if cost is None or unit is None or not units or units < _LEAST_UNITS:
        return None
    size, prefix = next((s, p) for s, p in _LARGE_UNITS if units >= s or s == 1)
    return WorkCost(unit=f"{prefix}{unit}", usd=cost * size / Decimal(str(units)))
