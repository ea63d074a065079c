"""What stands beside machine time at one place: storage and services, looked up but for their time.

Traffic is not among them: what of it is free depends on the machines' life in more than one way.
"""

from typing import NamedTuple

from pricing.billing.items import Item
from pricing.billing.provider_rules import ProviderRules
from pricing.billing.services import services
from pricing.billing.storage import storage
from pricing.billing.usage import Usage
from pricing.catalog.offer import Offer


class Beside(NamedTuple):
    """What is asked for beside machine time and traffic, in the order of a bill."""

    storage: list[Item]
    services: list[Item]
    rules: ProviderRules
    """Held, so that no others get their id."""


def beside(offer: Offer, usage: Usage, rules: ProviderRules) -> Beside:
    """Return what a use asks for; uses that differ by their time alone share it, place by place."""
    key = (id(rules), offer.region, offer.purchase, offer.boot_disk_gib)
    known: Beside | None = usage.looked_up.get(key)
    if known is None or known.rules is not rules:
        found = Beside(storage(offer, usage, rules), services(offer, usage, rules), rules)
        known = usage.looked_up[key] = found
    return known
