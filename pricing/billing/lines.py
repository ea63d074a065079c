"""One line of a bill, and what a part of the bill hands back."""

from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

from msgspec import Struct

from pricing.money import EXACT, price_text, quantity_text

KINDS = (
    "compute",
    "boot",
    "boot-disk",
    "disk",
    "snapshot",
    "object-storage",
    "egress",
    "address",
    "control-plane",
    "lost-work",
    "checkpoint",
    "idle-tail",
    "move",
)
"""What a line can be for, in the order of a bill."""

_ONE = Decimal(1)
_TRILLIONTH = Decimal("1e-12")


class Priced(NamedTuple):
    """A quantity at one unit price, as a price list or an invoice states it.

    Attributes:
        counted: how much, >= 0, as it was counted: seconds, GB-hours.
        unit: what the price is for: "Hours", "GB", "GiB-Months" (FOCUS unit format).
        unit_usd: list price of one unit.
        per: what was counted for each unit: 3600 seconds an hour.
    """

    counted: Decimal
    unit: str
    unit_usd: Decimal
    per: Decimal = _ONE

    @property
    def quantity(self) -> Decimal:
        """In units, to 12 decimals: worked out when it is asked for, as few lines are exported."""
        return EXACT.divide(self.counted, self.per).quantize(_TRILLIONTH, context=EXACT)


class QuoteLine(Struct, frozen=True, kw_only=True):
    """One amount on the bill.

    Attributes:
        what: one of KINDS.
        usd: exact, not rounded.
        formula: how it is computed, with a place for each number; `{0:usd}` is a price.
        numbers: what goes there.
        rule: the billing rule in words.
        source: where the price was read.
        as_of: date of the price as the source prints it.
        parts: the same amount as quantities at unit prices; empty where it is not such a product (a
            least charge, a difference of two charges).
    """

    what: str
    usd: Decimal
    formula: str
    numbers: tuple[Decimal | int | str, ...]
    rule: str
    source: str
    as_of: str
    parts: tuple[Priced, ...] = ()

    @property
    def how(self) -> str:
        """The formula with its numbers: "90 s x 35.28 USD/h / 3600"."""
        return self.formula.format(*map(_Figure, self.numbers))


class _Figure:
    """A number of a formula as people write it: a price with its cents, a quantity rounded."""

    __slots__ = ("value",)

    def __init__(self, value: Decimal | int | str) -> None:
        self.value = value

    def __format__(self, spec: str) -> str:
        value = self.value
        if isinstance(value, str):
            return value
        amount = value if isinstance(value, Decimal) else Decimal(value)
        return price_text(amount) if spec == "usd" else quantity_text(amount)


class Charge(NamedTuple):
    """Lines of one kind of cost, and what must be said beside them."""

    lines: tuple[QuoteLine, ...]
    warnings: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    """Kinds of line of which some was asked for and has no known price."""


NOTHING = Charge((), ())


def together(charges: Iterable[Charge]) -> Charge:
    """Return several charges as one."""
    found = tuple(charges)
    if len(found) == 1:
        return found[0]
    lines: list[QuoteLine] = []
    warnings: list[str] = []
    unknown: list[str] = []
    for charge in found:
        lines += charge.lines
        warnings += charge.warnings
        unknown += charge.unknown
    return Charge(tuple(lines), tuple(warnings), tuple(dict.fromkeys(unknown)))
