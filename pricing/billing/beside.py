"""What stands beside machine time at one place: storage and services, looked up but for their time.

Traffic is not among them: what of it is free depends on the machines' life in more than one way.
"""

from typing import NamedTuple

from pricing.billing.items import Item
from pricing.billing.provider_rules import ProviderRules
from pricing.billing.services import services
from pricing.billing.storage import boot_disk, kept_data
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
        boot, served = _of_machines(offer, usage, rules)
        known = Beside(boot + kept_data(offer, usage, rules), served, rules)
        usage.looked_up[key] = known
    return known


def _of_machines(offer: Offer, usage: Usage, rules: ProviderRules) -> tuple[list[Item], list[Item]]:
    """Return boot disks and services: most uses ask for the same, so it is kept with the rules."""
    key = (
        offer.region,
        offer.purchase,
        offer.boot_disk_gib,
        usage.boot_disk_bytes,
        usage.count,
        usage.addresses,
        usage.nat_gateways,
        usage.control_plane,
    )
    known = rules.looked_up.get(key)
    if known is None:
        known = boot_disk(offer, usage, rules), services(offer, usage, rules)
        rules.looked_up[key] = known
    return known
