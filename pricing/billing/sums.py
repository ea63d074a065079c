"""What the bill of a use comes to, without its lines: many are compared before a few are written.

The amounts are those of the lines of `quote`, digit for digit; they share its arithmetic.
"""

from decimal import Decimal
from typing import NamedTuple

from pricing.billing.beside import beside
from pricing.billing.machine_time import bill_at_one_price
from pricing.billing.provider_rules import ProviderRules, rules_of
from pricing.billing.quote import Quote, quote
from pricing.billing.traffic import charge_traffic
from pricing.billing.usage import Usage
from pricing.catalog.offer import Offer
from pricing.money import EXACT

Part = tuple[str, Decimal]
"""The kind of a line, and its dollars."""

Found = tuple[str, Decimal | None]
"""The same; None: something of it has no known price."""

_add = EXACT.add


class Sums(NamedTuple):
    """The amounts of a bill.

    Attributes:
        exact: all of it, not rounded.
        parts: what its lines come to, in their order.
        unknown: kinds of line of which something was asked for and has no known price.
    """

    exact: Decimal
    parts: tuple[Part, ...]
    unknown: tuple[str, ...] = ()


def sums_of(offer: Offer, usage: Usage, life_s: Decimal | None = None) -> Sums:
    """Return what `quote` comes to for one use of one offer.

    Args:
        offer: what is priced.
        usage: for what.
        life_s: how long its machines live instead, without additional time; None: as it says.
    """
    if usage.additional or usage.interrupted or usage.object_storage_bytes:
        whole = usage if life_s is None else usage.lasting(life_s)
        return in_sums(quote(offer, whole))  # each of these may be several lines
    life_s = usage.life_s if life_s is None else life_s
    rules = rules_of(offer.provider, usage.as_of, offer.instance_type)
    exact = bill_at_one_price(life_s, offer, rules, usage).usd
    parts: list[Part] = [("compute", exact)]
    unknown: list[str] = []
    for what, usd in _beside(offer, usage, rules, life_s) if usage.beside else ():
        if usd is None:
            unknown.append(what)
        else:
            exact = _add(exact, usd)
            parts.append((what, usd))
    return Sums(exact, tuple(parts), tuple(dict.fromkeys(unknown)) if unknown else ())


def in_sums(bill: Quote) -> Sums:
    """Return the amounts of a whole bill."""
    return Sums(bill.exact, tuple((line.what, line.usd) for line in bill.lines), bill.unknown)


def _beside(offer: Offer, usage: Usage, rules: ProviderRules, life_s: Decimal) -> list[Found]:
    """Return what stands beside machine time."""
    storage, services = beside(offer, usage, rules)
    start = usage.start
    if not usage.traffic:
        return [(item.what, item.usd(life_s, start)) for item in storage + services]
    whole = usage if life_s == usage.life_s else usage.lasting(life_s)
    traffic = charge_traffic(offer, whole, rules)
    return [
        *((item.what, item.usd(life_s, start)) for item in storage),
        *((line.what, line.usd) for line in traffic.lines),
        *((what, None) for what in traffic.unknown),
        *((item.what, item.usd(life_s, start)) for item in services),
    ]
