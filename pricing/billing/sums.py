"""What the bill of a use comes to, without its lines: many are compared before a few are written.

The amounts are those of the lines of `quote`, digit for digit; they share its arithmetic.
"""

from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from pricing.billing.amount import by_hour, by_month, size_usd
from pricing.billing.billing_rule import BYTES_PER_UNIT, BillingRule
from pricing.billing.machine_time import Span, bill_machines
from pricing.billing.provider_rules import ProviderRules, rules_of
from pricing.billing.quote import Quote, quote
from pricing.billing.services import of_machines
from pricing.billing.storage import charge_boot_disk, charge_disk, kept_s
from pricing.billing.traffic import charge_egress
from pricing.billing.usage import Usage
from pricing.catalog.offer import Offer
from pricing.money import EXACT

Part = tuple[str, Decimal]
"""The kind of a line, and its dollars."""

_ZERO = Decimal(0)
_GIB = BYTES_PER_UNIT["GiB"]
_ALL_IN_LINES = attrgetter(
    "additional",
    "interrupted",
    "committed",
    "start",
    "storage_kind",
    "snapshot_bytes",
    "object_storage_bytes",
    "object_egress_bytes",
    "ingress_bytes",
    "inter_zone_bytes",
    "inter_region_bytes",
    "nat_gateways",
    "nat_bytes",
    "control_plane",
)
"""What is asked for seldom; then the whole bill is made."""


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


def sums_of(offer: Offer, usage: Usage) -> Sums:
    """Return what `quote` comes to for one use of one offer."""
    if any(_ALL_IN_LINES(usage)):
        return in_sums(quote(offer, usage))
    rules = rules_of(offer.provider, usage.as_of, offer.instance_type)
    time = bill_machines(usage.life_s, (Span(_ZERO, offer, rules),), usage)
    exact, parts = time.usd, [("compute", time.usd)]
    unknown: tuple[str, ...] = ()
    if usage.beside:
        more, unknown = _beside(offer, usage, rules)
        for part in more:
            exact = EXACT.add(exact, part[1])
        parts += more
    return Sums(exact, tuple(parts), unknown)


def in_sums(bill: Quote) -> Sums:
    """Return the amounts of a whole bill."""
    return Sums(bill.exact, tuple((line.what, line.usd) for line in bill.lines), bill.unknown)


def _beside(
    offer: Offer, usage: Usage, rules: ProviderRules
) -> tuple[tuple[Part, ...], tuple[str, ...]]:
    """Return what stands beside machine time; offers of one place share it for a use."""
    key = (
        "sums",
        id(rules),
        offer.region,
        offer.purchase,
        offer.boot_disk_gib,
        offer.included_transfer_gib,
        offer.instance_type if usage.traffic else None,
    )
    known = usage.charged.get(key)
    if known is None or known[0] is not rules:
        found = (
            *_boot_disk(offer, usage, rules),
            *_disk(offer, usage, rules),
            *_egress(offer, usage, rules),
            *_addresses(offer, usage, rules),
        )
        parts = tuple((what, usd) for what, usd in found if usd is not None)
        unknown = tuple(what for what, usd in found if usd is None)
        known = usage.charged[key] = (rules, (parts, unknown))
    whole: tuple[tuple[Part, ...], tuple[str, ...]] = known[1]
    return whole


Found = Iterator[tuple[str, Decimal | None]]
"""Kinds of line with their dollars; None: something of it has no known price."""


def _boot_disk(offer: Offer, usage: Usage, rules: ProviderRules) -> Found:
    size_bytes = usage.boot_disk_bytes
    if not size_bytes:
        return
    if size_bytes <= _included_bytes(offer.boot_disk_gib):
        yield "boot-disk", _ZERO
        return
    place = {"region": offer.region, "purchase": offer.purchase}
    terms = rules.terms("boot_disk", **place) or rules.terms("volume_storage", **place)
    if terms and terms[0].each_gib is None:
        size = EXACT.divide(Decimal(size_bytes) * usage.count, terms[0].bytes_per_unit)
        yield "boot-disk", size_usd(terms, size, usage.life_s, None)
        return
    charge = charge_boot_disk(offer, usage, rules)
    yield from ((line.what, line.usd) for line in charge.lines)
    yield from ((what, None) for what in charge.unknown)


@lru_cache(maxsize=256)
def _included_bytes(gib: float | None) -> Decimal:
    return Decimal(str(gib or 0)) * _GIB


def _disk(offer: Offer, usage: Usage, rules: ProviderRules) -> Found:
    if not usage.storage_bytes:
        return
    terms = rules.terms("volume_storage", region=offer.region, purchase=offer.purchase)
    if terms and terms[0].each_gib is None:
        size = EXACT.divide(Decimal(usage.storage_bytes), terms[0].bytes_per_unit)
        yield "disk", size_usd(terms, size, kept_s(usage), None)
        return
    charge = charge_disk(offer, usage, rules)
    yield from ((line.what, line.usd) for line in charge.lines)
    yield from ((what, None) for what in charge.unknown)


def _egress(offer: Offer, usage: Usage, rules: ProviderRules) -> Found:
    if usage.egress_bytes:
        charge = charge_egress(offer, usage, rules)
        yield from ((line.what, line.usd) for line in charge.lines)
        yield from ((what, None) for what in charge.unknown)


def _addresses(offer: Offer, usage: Usage, rules: ProviderRules) -> Found:
    if not usage.addresses:
        return
    terms = rules.terms("ipv4", region=offer.region, purchase=offer.purchase)
    yield "address", _address_usd(terms, usage) if terms else None


def _address_usd(terms: tuple[BillingRule, ...], usage: Usage) -> Decimal:
    price = of_machines(terms, usage.count)
    wanted = usage.addresses * (usage.count if price.per_machine else 1)
    if price.unit == "USD/month":
        return by_month(price, wanted, usage.life_s, None).usd
    return by_hour(price, wanted, usage.life_s).usd
