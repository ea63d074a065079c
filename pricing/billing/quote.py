"""The bill of one use of one offer: lines that add up, each with its formula and source."""

from collections.abc import Sequence
from decimal import Decimal
from functools import cached_property

from msgspec import Struct, structs

from pricing.billing.beside import beside
from pricing.billing.lines import KINDS, Charge, QuoteLine, together
from pricing.billing.machine_time import Span, charge_machine_time
from pricing.billing.provider_rules import ProviderRules, rules_of
from pricing.billing.traffic import charge_traffic
from pricing.billing.usage import Usage
from pricing.catalog.offer import Offer
from pricing.money import EXACT, cents

__all__ = ["Quote", "QuoteLine", "Usage", "quote"]

SCHEMA = "gpucost.quote/v1"

_ORDER = {what: place for place, what in enumerate(KINDS)}
OF_THE_DATA = ("disk", "snapshot", "object-storage", "egress")
"""Lines that are billed for a job's data, whoever else uses the machine."""

_START = Decimal(0)
_add = EXACT.add


class Quote(Struct, frozen=True, kw_only=True, dict=True):
    """What one use of one offer costs.

    Attributes:
        offer: what is priced.
        usage: for what.
        billed_s: billed seconds of each machine, additional machine time included.
        lines: in the contract's order; they add up to `exact`.
        warnings: what a reader must know: age of the price, unknown rules, what is left out.
        unknown: kinds of line of which something was asked for and has no known price.
    """

    offer: Offer
    usage: Usage
    billed_s: int
    lines: tuple[QuoteLine, ...]
    warnings: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    @cached_property
    def exact(self) -> Decimal:
        """Sum of the lines, not rounded."""
        total = self.lines[0].usd
        for line in self.lines[1:]:
            total = _add(total, line.usd)
        return total

    @property
    def at_least(self) -> bool:
        """Whether something that was asked for has no known price, so that it costs more."""
        return bool(self.unknown)

    @property
    def total(self) -> Decimal:
        """Sum of the lines, rounded half up to cents once."""
        return cents(self.exact)


def quote(offer: Offer, usage: Usage) -> Quote:
    """Return the bill for one use of one offer under the billing rules of `usage.as_of`.

    The price is the offer's throughout; the caller picks the offer that holds on the day
    (`pricing.catalog.catalog`). Whatever has no known price is left out and named in a warning,
    never guessed.

    Raises:
        InputError: the provider's billing rules contradict each other.
    """
    rules = rules_of(offer.provider, usage.as_of, offer.instance_type)
    return quote_spans((Span(_START, offer, rules),), usage)


def quote_spans(spans: Sequence[Span], usage: Usage, warnings: tuple[str, ...] = ()) -> Quote:
    """Return the bill of machines whose price or rules change while they live.

    Machine time is billed by span; whatever else is asked for by the rules of the first day.

    Args:
        spans: one or more, the first from second 0 on, in order.
        usage: what is priced.
        warnings: what must be said about the spans.
    """
    offer, rules = spans[0].offer, spans[0].rules
    time = charge_machine_time(spans, usage)
    unknown: tuple[str, ...] = ()
    lines, said = time.lines, offer.warnings(usage.as_of) + warnings + time.warnings
    if usage.beside:
        more = _beside(offer, usage, rules)
        lines += more.lines
        said += more.warnings
        unknown = more.unknown
    if len(lines) > 1:
        lines.sort(key=lambda line: _ORDER[line.what])
    return Quote(
        offer=offer,
        usage=usage,
        billed_s=int(time.billed_s),
        lines=tuple(lines),
        warnings=said,
        unknown=unknown,
    )


def _beside(offer: Offer, usage: Usage, rules: ProviderRules) -> Charge:
    """Return what is asked for beside machine time."""
    place = beside(offer, usage, rules)
    life_s, start = usage.life_s, usage.start
    charges = [item.charge(offer, life_s, start) for item in place.storage]
    if usage.traffic:
        charges.append(charge_traffic(offer, usage, rules))
    charges += [item.charge(offer, life_s, start) for item in place.services]
    return together(charges)


def part_of(whole: Quote, held: int, of: int) -> Quote:
    """Return the part of a bill that one of several tenants of the machines bears.

    What is billed for the machines is split; storage and traffic are the tenant's own already.

    Args:
        whole: the bill of the machines, with the tenant's storage and traffic.
        held: what the tenant holds of them, >= 0.
        of: what all tenants hold, >= 1.
    """
    return structs.replace(whole, lines=tuple(_part(line, held, of) for line in whole.lines))


def _part(line: QuoteLine, held: int, of: int) -> QuoteLine:
    if line.what in OF_THE_DATA:
        return line
    return structs.replace(
        line,
        usd=EXACT.divide(EXACT.multiply(line.usd, Decimal(held)), Decimal(of)),
        formula=f"({line.formula}) x {held}/{of} of the GPUs held",
        parts=tuple(
            p._replace(counted=EXACT.multiply(p.counted, Decimal(held)), per=p.per * of)
            for p in line.parts
        ),
    )
