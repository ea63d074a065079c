"""The dearest known price of a part of a bill: what stands for a price that nobody states."""

from collections.abc import Iterable
from decimal import Decimal

from pricing.billing.beside import services
from pricing.billing.provider_rules import rules_of
from pricing.billing.storage import boot_disk, kept_data
from pricing.billing.traffic import charge_traffic
from pricing.billing.usage import Usage
from pricing.catalog.offer import Offer

_BESIDE = {
    "boot-disk": boot_disk,
    **dict.fromkeys(("disk", "snapshot", "object-storage"), kept_data),
    **dict.fromkeys(("address", "control-plane"), services),
}


def dearest(what: str, usage: Usage, offers: Iterable[Offer]) -> Decimal | None:
    """Return the most that any provider asks for a part of a use, in dollars, exact.

    Args:
        what: kind of line; nothing of it may be of unknown price to count.
        usage: what is priced.
        offers: one for each place that is asked (`places`).

    Returns:
        None where nobody's price is known.
    """
    amounts = (_usd(what, offer, usage) for offer in offers)
    return max((usd for usd in amounts if usd is not None), default=None)


def _usd(what: str, offer: Offer, usage: Usage) -> Decimal | None:
    """Return what a place asks for a part of a use; None where not all of it has a known price."""
    rules = rules_of(offer.provider, usage.as_of, offer.instance_type)
    found: list[Decimal | None]
    if what == "egress":
        charge = charge_traffic(offer, usage, rules)
        found = [line.usd for line in charge.lines] + [None for _ in charge.unknown]
    else:
        items = _BESIDE[what](offer, usage, rules)
        found = [item.usd(usage.life_s, usage.start) for item in items if item.what == what]
    known = [usd for usd in found if usd is not None]
    return sum(known, Decimal(0)) if known and len(known) == len(found) else None


def places(offers: Iterable[Offer]) -> tuple[Offer, ...]:
    """Return one offer for each provider, region and way of buying: its last."""
    return tuple({(one.provider, one.region, one.purchase): one for one in offers}.values())
