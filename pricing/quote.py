"""The bill of one use of one offer: lines that add up, each with its formula and source."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pricing.billing import rules
from pricing.lines import QuoteLine
from pricing.machine_time import bill_seconds, charge_machine_time, life_s
from pricing.money import EXACT, cents, plain
from pricing.offer import Offer
from pricing.storage import charge_storage
from pricing.traffic import charge_egress
from pricing.usage import Usage

__all__ = ["Quote", "QuoteLine", "Usage", "quote", "to_json"]

SCHEMA = "gpucost.quote/v1"

_ORDER = {
    what: place
    for place, what in enumerate(("compute", "boot", "disk", "egress", "lost-work", "checkpoint"))
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """What one use of one offer costs.

    Attributes:
        offer: what is priced.
        usage: for what.
        billed_s: billed seconds of each machine, additional machine time included.
        lines: in the contract's order; they add up to `exact`.
        warnings: what a reader must know: age of the price, unknown rules, what is left out.
    """

    offer: Offer
    usage: Usage
    billed_s: int
    lines: tuple[QuoteLine, ...]
    warnings: tuple[str, ...]

    @property
    def exact(self) -> Decimal:
        """Sum of the lines, not rounded."""
        total = Decimal(0)
        for line in self.lines:
            total = EXACT.add(total, line.usd)
        return total

    @property
    def total(self) -> Decimal:
        """Sum of the lines, rounded half up to cents once."""
        return cents(self.exact)


def quote(offer: Offer, usage: Usage) -> Quote:
    """The bill for one use of one offer under the billing rules of `usage.as_of`.

    The price is the offer's throughout; the caller picks the offer that holds on the day
    (`pricing.catalog`). Whatever has no known price is left out and named in a warning, never
    guessed.

    Raises:
        InputError: the provider's billing rules contradict each other.
    """
    held = rules(offer.provider, usage.as_of)
    time = charge_machine_time(offer, usage, held)
    storage = charge_storage(offer, usage, held)
    egress = charge_egress(offer, usage, held)
    lines = time.lines + storage.lines + egress.lines
    if len(lines) > 1:
        lines = tuple(sorted(lines, key=lambda line: _ORDER[line.what]))
    return Quote(
        offer=offer,
        usage=usage,
        billed_s=int(bill_seconds(life_s(usage), held)),
        lines=lines,
        warnings=offer.warnings(usage.as_of) + time.warnings + storage.warnings + egress.warnings,
    )


def offer_json(offer: Offer) -> dict[str, Any]:
    """The offer as a quote and a plan carry it."""
    return {
        "provider": offer.provider,
        "region": offer.region,
        "instance_type": offer.instance_type,
        "gpu": offer.gpu,
        "gpu_count": _number(offer.gpu_count),
        "purchase": offer.purchase,
        "usd_per_hour": plain(offer.usd_per_hour),
        "as_of": offer.as_of.isoformat(),
        "source": offer.source,
    }


def to_json(quote: Quote) -> dict[str, Any]:
    """The quote as `gpucost.quote/v1`: money as strings, times in seconds."""
    offer, usage = quote.offer, quote.usage
    return {
        "schema": SCHEMA,
        "as_of": usage.as_of.isoformat(),
        "currency": "USD",
        "total": str(quote.total),
        "offer": offer_json(offer),
        "count": usage.count,
        "duration_s": _number(usage.duration_s),
        "billed_s": quote.billed_s,
        "lines": [
            {
                "what": line.what,
                "usd": plain(line.usd),
                "how": line.how,
                "rule": line.rule,
                "source": line.source,
                "as_of": line.as_of,
            }
            for line in quote.lines
        ],
        "warnings": list(quote.warnings),
    }


def _number(value: Decimal | float) -> int | float:
    """A JSON number, without a decimal point where it is whole."""
    return int(value) if value == int(value) else float(value)
