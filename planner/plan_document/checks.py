"""What must hold for a value of plan.json, whoever builds it; the reader adds where it lies."""

from collections.abc import Iterable
from decimal import Decimal


def need(holds: bool, problem: str) -> None:  # noqa: FBT001 - a condition is what it is about
    """Check a condition.

    Raises:
        ValueError: it does not hold; `problem` says so.
    """
    if not holds:
        raise ValueError(problem)


def not_negative(**amounts: Decimal | None) -> None:
    """Check that dollars are at least 0 where they are known.

    Raises:
        ValueError: one is below; it is named.
    """
    for name, amount in amounts.items():
        need(amount is None or amount >= 0, f"{name} is {amount}, below 0")


def in_order(low: Decimal, mid: Decimal, high: Decimal) -> None:
    """Check that the ends of a range of dollars are in order.

    Raises:
        ValueError: they are not, or it begins below 0.
    """
    need(0 <= low <= mid <= high, f"low, mid and high are not in order: {low}, {mid}, {high}")


def distinct(names: Iterable[object], what: str) -> None:
    """Check that names do not repeat.

    Raises:
        ValueError: one does.
    """
    seen: set[object] = set()
    for name in names:
        need(name not in seen, f"two {what} are called {name}")
        seen.add(name)
