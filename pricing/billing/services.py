"""What is billed by its time beside machines: addresses, address translation, control planes."""

from typing import NamedTuple

from pricing.billing.amount import by_hour, by_month, words_of
from pricing.billing.billing_rule import BillingRule, caveats
from pricing.billing.lines import NOTHING, Charge, together
from pricing.billing.provider_rules import ProviderRules
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


def charge_services(offer: Offer, usage: Usage, rules: ProviderRules) -> Charge:
    """Return the lines of services that live as long as the machines; only what was asked for."""
    if not (usage.addresses or usage.nat_gateways or usage.control_plane):
        return NOTHING
    plane = "" if usage.control_plane == USUAL_PLANE else usage.control_plane
    asked = (
        _Service("address", usage.addresses, "ipv4", "", "public IPv4 address"),
        _Service("address", usage.nat_gateways, "nat_gateway_hour", "", "NAT gateway"),
        _Service(
            "control-plane",
            int(bool(usage.control_plane)),
            "k8s_control_plane",
            plane,
            f"{usage.control_plane} Kubernetes control plane",
        ),
    )
    return together(_charge(service, offer, usage, rules) for service in asked if service.wanted)


def _charge(service: _Service, offer: Offer, usage: Usage, rules: ProviderRules) -> Charge:
    terms = rules.terms(
        service.rule, region=offer.region, kind=service.kind, purchase=offer.purchase
    )
    if not terms:
        kinds = rules.kinds(service.rule)
        others = f"; kinds with a known price: {', '.join(kinds)}" if kinds else ""
        text = f"the price of a {service.words} at {offer.provider} is not known; it is left out"
        return Charge((), (f"{service.what}: {text}{others}",), (service.what,))
    price = of_machines(terms, usage.count)
    wanted = service.wanted * (usage.count if price.per_machine else 1)
    time_s = usage.life_s
    if price.unit == "USD/month":
        amount = by_month(price, wanted, time_s, usage.start)
    else:
        amount = by_hour(price, wanted, time_s)
    line = amount.line(service.what, price, words_of(price, price.product or service.words))
    said = tuple(f"{service.what}: {offer.provider}: {text}" for text in amount.warnings)
    return Charge((line,), said + caveats((price,)))


def of_machines(terms: tuple[BillingRule, ...], count: int) -> BillingRule:
    """Return the price that holds for so many machines; tiers of a service count them."""
    fitting = (term for term in terms if term.tier_from < count <= term.tier_until)
    return next(fitting, terms[0])
