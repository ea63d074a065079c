"""One answer of a provider about its prices, before anybody believes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from pricing.catalog.offer import Offer
from pricing.catalog.offer_rows import COLUMNS, PUBLISHED

Row = Mapping[str, str]
"""A price as text under the columns COLUMNS and PUBLISHED; an empty cell is unknown."""

_CELLS = frozenset((*COLUMNS, *PUBLISHED))


def new_row(**cells: str) -> Row:
    """Return a row of the given cells; what is not given is unknown, `status` is current.

    Raises:
        TypeError: a cell is in no column.
    """
    strange = sorted(set(cells) - _CELLS)
    if strange:
        raise TypeError(f"no columns: {', '.join(strange)}")
    unknown = dict.fromkeys((*COLUMNS, *PUBLISHED), "")
    return {**unknown, "status": "current", "host": "provider", "confidence": "high", **cells}


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceReading:
    """What one source said about one provider on one day.

    Attributes:
        provider: such as "digitalocean".
        source: who said it, the same text in every row.
        read_on: the day.
        rows: the prices.
        regions: regions that the answer covers completely; None: all of them.
        purchases: ways of buying that it covers completely. What is sold so, in those regions, and
            not named, is no longer sold. Empty: the answer is not a complete list of anything.
        notes: what was left out, for people.
    """

    provider: str
    source: str
    read_on: date
    rows: tuple[Row, ...]
    regions: tuple[str, ...] | None = None
    purchases: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def covers(self, offer: Offer) -> bool:
        """Return whether the offer would be in the answer if it were still sold."""
        return (
            offer.provider == self.provider
            and offer.purchase in self.purchases
            and (self.regions is None or offer.region in self.regions)
        )
