"""The ranges of what a plan may be asked for: every way to ask refuses the same numbers."""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberRange:
    """Which numbers can be meant.

    Attributes:
        low: the least.
        high: the greatest, which is allowed.
        inclusive: whether the least is allowed, too.
    """

    low: float = 0.0
    high: float
    inclusive: bool = True

    def refusal(self, value: float | Decimal) -> str | None:
        """Return why a number cannot be meant: `is not at least 0 and at most 744`; else None."""
        enough = value >= self.low if self.inclusive else value > self.low
        if enough and value <= self.high:
            return None
        least = "at least" if self.inclusive else "more than"
        return f"is not {least} {self.low:g} and at most {self.high:g}"


_MOST_WORK = 1e18
HOURS_A_MONTH = NumberRange(high=744.0, inclusive=False)
HOURS = NumberRange(high=1e12 / 3600.0)
WORK = NumberRange(high=_MOST_WORK, inclusive=False)
MILLISECONDS = NumberRange(high=_MOST_WORK, inclusive=False)
BYTES = NumberRange(high=1e18)
DOLLARS = NumberRange(high=1e15)
SLOWDOWN = NumberRange(low=1.0, high=1000.0)
MONTHS = NumberRange(high=120.0, inclusive=False)
GRID_G_PER_KWH = NumberRange(high=5000.0)
PUE = NumberRange(low=1.0, high=10.0)
HOST_FRACTION = NumberRange(high=0.9)
GPUS = NumberRange(low=1.0, high=100_000.0)
