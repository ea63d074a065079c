"""One line of a bill, and what a part of the bill hands back."""

from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from pricing.money import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteLine:
    """One amount on the bill.

    Attributes:
        what: compute, boot, disk, egress, lost-work or checkpoint.
        usd: exact, not rounded.
        formula: how it is computed, with a place for each number.
        numbers: what goes there.
        rule: the billing rule in words.
        source: where the price was read.
        as_of: date of the price as the source prints it.
    """

    what: str
    usd: Decimal
    formula: str
    numbers: tuple[Decimal | int | str, ...]
    rule: str
    source: str
    as_of: str

    @property
    def how(self) -> str:
        """The formula with its numbers: "90 s x 35.28 USD/h / 3600"."""
        return self.formula.format(
            *(plain(value) if isinstance(value, Decimal) else value for value in self.numbers)
        )


class Charge(NamedTuple):
    """Lines of one kind of cost, and what must be said beside them."""

    lines: tuple[QuoteLine, ...]
    warnings: tuple[str, ...]
