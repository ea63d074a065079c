"""What is saved: the difference of two bills, and its share of the first."""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """What is paid less than before.

    Attributes:
        usd: dollars, exact; below 0 where it costs more; None where one of the bills is unknown.
        fraction: of the bill before, to four digits; None where that is unknown or nothing.
    """

    usd: Decimal | None
    fraction: float | None = None


def saving(before: Decimal | None, after: Decimal, *, of_nothing: float | None = None) -> Saving:
    """Return what is saved by paying `after` in place of `before`; None where that is unknown.

    `of_nothing` is the share of a bill of nothing.
    """
    if before is None:
        return Saving(usd=None, fraction=None)
    saves = before - after
    return Saving(usd=saves, fraction=round(float(saves / before), 4) if before else of_nothing)
