"""What stands beside machine time at one place, looked up but for its time: disks, services.

Services are what is billed by its time: addresses, address translation, control planes. Traffic is
not among them: what of it is free depends on the machines' life in more than one way.
"""

from typing import NamedTuple

from pricing.billing.amount import ByHour, by_month
from pricing.billing.billing_rule import BillingRule
from pricing.billing.items import Item, Timed, Unpriced
from pricing.billing.provider_rules import ProviderRules
from pricing.billing.storage import boot_disk, kept_data
from pricing.billing.usage import Usage
from pricing.catalog.offer import Offer

USUAL_PLANE = "standard"
"""The control plane that a provider sells without a further name."""


class _Service(NamedTuple):
    """One service: its line, how many are asked for, its price's rule and kind, and its name."""

    what: str
    wanted: int
    rule: str
    kind: str
    words: str


def services(offer: Offer, usage: Usage, rules: ProviderRules) -> list[Item]:
    """Return the services that live as long as the machines; only what was asked for."""
    asked = []
    if usage.addresses:
        asked.append(_Service("address", usage.addresses, "ipv4", "", "public IPv4 address"))
    if usage.nat_gateways:
        asked.append(_Service("address", usage.nat_gateways, "nat_gateway_hour", "", "NAT gateway"))
    if usage.control_plane:
        kind = "" if usage.control_plane == USUAL_PLANE else usage.control_plane
        words = f"{usage.control_plane} Kubernetes control plane"
        asked.append(_Service("control-plane", 1, "k8s_control_plane", kind, words))
    return [_item(service, offer, usage, rules) for service in asked]


def _item(service: _Service, offer: Offer, usage: Usage, rules: ProviderRules) -> Item:
    terms = rules.terms(
        service.rule, region=offer.region, kind=service.kind, purchase=offer.purchase
    )
    if not terms:
        kinds = rules.kinds(service.rule)
        others = f"; kinds with a known price: {', '.join(kinds)}" if kinds else ""
        text = f"the price of a {service.words} at {offer.provider} is not known; it is left out"
        return Unpriced(service.what, f"{service.what}: {text}{others}")
    price = _for_so_many(terms, usage.count)
    wanted = service.wanted * (usage.count if price.per_machine else 1)
    rate = by_month(price, wanted) if price.unit == "USD/month" else ByHour(price, wanted)
    return Timed(service.what, rate, price.product or service.words, (price,))


def _for_so_many(terms: tuple[BillingRule, ...], count: int) -> BillingRule:
    """Return the price that holds for so many machines; tiers of a service count them."""
    fitting = (term for term in terms if term.tier_from < count <= term.tier_until)
    return next(fitting, terms[0])


class Beside(NamedTuple):
    """What is asked for beside machine time and traffic, in the order of a bill."""

    storage: list[Item]
    services: list[Item]


def beside(offer: Offer, usage: Usage, rules: ProviderRules) -> Beside:
    """Return what a use asks for, but for its time."""
    boot, kept = boot_disk(offer, usage, rules), kept_data(offer, usage, rules)
    return Beside(boot + kept, services(offer, usage, rules))
