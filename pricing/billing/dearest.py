"""The dearest known price of a part of a bill: what stands for a price that nobody states."""

from collections.abc import Callable, Iterable
from decimal import Decimal

from pricing.billing.lines import Charge
from pricing.billing.provider_rules import ProviderRules, rules_of
from pricing.billing.services import charge_services
from pricing.billing.storage import charge_storage
from pricing.billing.traffic import charge_traffic
from pricing.billing.usage import Usage
from pricing.catalog.offer import Offer

_CHARGES: dict[str, Callable[[Offer, Usage, ProviderRules], Charge]] = {
    **dict.fromkeys(("boot-disk", "disk", "snapshot", "object-storage"), charge_storage),
    "egress": charge_traffic,
    **dict.fromkeys(("address", "control-plane"), charge_services),
}


def dearest(what: str, usage: Usage, offers: Iterable[Offer]) -> Decimal | None:
    """Return the most that any provider asks for a part of a use, in dollars, exact.

    Args:
        what: kind of line; nothing of it may be of unknown price to count.
        usage: what is priced.
        offers: those whose providers and regions are asked.

    Returns:
        None where nobody's price is known.
    """
    charge = _CHARGES[what]
    amounts = []
    for offer in places(offers):
        found = charge(offer, usage, rules_of(offer.provider, usage.as_of, offer.instance_type))
        lines = [line.usd for line in found.lines if line.what == what]
        if lines and what not in found.unknown:
            amounts.append(sum(lines, Decimal(0)))
    return max(amounts, default=None)


def places(offers: Iterable[Offer]) -> tuple[Offer, ...]:
    """Return one offer for each provider, region and way of buying: its last."""
    return tuple({(one.provider, one.region, one.purchase): one for one in offers}.values())
