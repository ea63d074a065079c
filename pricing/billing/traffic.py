"""What traffic costs: to the internet with its allowances and tiers, and every other kind.

Traffic is taken to be even over the life of the machines. Each month that they live in has an
allowance and tiers of its own, which belong to the account, whoever else uses them.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from pricing.billing import lines
from pricing.billing.billing_rule import BYTES_PER_UNIT, BillingRule, caveats
from pricing.billing.provider_rules import Egress, ProviderRules
from pricing.billing.usage import Usage
from pricing.catalog.offer import Offer
from pricing.message import Message
from pricing.money import EXACT, quantity_text, sum_exactly

_ZERO = Decimal(0)
_WITHIN = Message("traffic.within-free", size="{0} {1}", free="{2} {1}")
_LESS_FREE = Message("traffic.less-free", size="{0} {1}", free="{2} {1}")


class _Traffic(NamedTuple):
    """One kind of traffic at one price: what asks for it, its rule, how often a byte is billed."""

    field: str
    rule: str
    label: str
    times: int = 1
    free: str = ""


_OTHER = (
    _Traffic("ingress_bytes", "ingress", Message("traffic.in")),
    _Traffic("inter_zone_bytes", "inter_zone_each_way", Message("traffic.zones"), times=2),
    _Traffic("inter_region_bytes", "inter_region", Message("traffic.regions")),
    _Traffic("nat_bytes", "nat_gateway_traffic", Message("traffic.nat")),
    _Traffic(
        "object_egress_bytes",
        "object_storage_egress",
        Message("traffic.objects"),
        free="object_storage_egress_free",
    ),
)


def charge_traffic(offer: Offer, usage: Usage, rules: ProviderRules) -> lines.Charge:
    """Return the lines of traffic: the internet first, then every other kind asked for."""
    internet = charge_egress(offer, usage, rules) if usage.egress_bytes else lines.NOTHING
    requested = [kind for kind in _OTHER if getattr(usage, kind.field)]
    if not requested:
        return internet
    return lines.together(
        (internet, *(_charge_other(kind, offer, usage, rules) for kind in requested))
    )


def _charge_other(kind: _Traffic, offer: Offer, usage: Usage, rules: ProviderRules) -> lines.Charge:
    """Bill traffic at one price a unit; across zones it is billed where it leaves and arrives."""
    to = rules.kind_of(kind.rule, usage.egress_to)
    terms = rules.terms(kind.rule, region=offer.region, kind=to, purchase=offer.purchase)
    terms = terms or rules.terms(kind.rule, region=offer.region, purchase=offer.purchase)
    if not terms:
        text = Message("traffic.no-price", what=kind.label, place=offer.place)
        return lines.Charge((), (lines.about("egress", text),), ("egress",))
    price = terms[0]
    quantity = EXACT.divide(Decimal(getattr(usage, kind.field)), price.bytes_per_unit)
    free_rule = rules.rule(kind.free) if kind.free else None
    free = _ZERO if free_rule is None else free_rule.amount
    months = _months(usage)
    once = sum_exactly(_over(quantity, month, free) for month in months)
    paid = once * kind.times
    if quantity and not once:
        formula, free = _WITHIN, free * len(months)
    else:
        free = EXACT.subtract(quantity, once)
        size = Message("traffic.paid", paid=_LESS_FREE) if free else "{0} {1}"
        formula = Message("traffic.times", size=size, price="{3:usd} USD/{1}")
        if kind.times > 1:
            formula = Message("traffic.ways", formula=formula, n=kind.times)
    rule_text = Message("bill.at", what=kind.label, price=price.price_words)
    line = lines.QuoteLine(
        what="egress",
        usd=EXACT.multiply(paid, price.amount),
        formula=formula,
        numbers=(quantity, price.per, free, price.amount),
        rule=rule_text if kind.times == 1 else Message("traffic.both-ends", rule=rule_text),
        source=price.source,
        as_of=price.as_of,
        parts=(lines.Priced(paid, price.per, price.amount),),
    )
    return lines.Charge((line,), caveats(filter(None, (price, free_rule))))


def charge_egress(offer: Offer, usage: Usage, rules: ProviderRules) -> lines.Charge:
    """Return the egress line, if traffic was asked for and something of its price is known."""
    if not usage.egress_bytes:
        return lines.Charge((), ())
    price = rules.egress(offer.region, usage.egress_to)
    if price is None:
        text = Message("traffic.no-egress-price", place=offer.place)
        return lines.Charge((), (lines.about("egress", text),), ("egress",))
    quantity = EXACT.divide(Decimal(usage.egress_bytes), BYTES_PER_UNIT[price.unit])
    a_month, warnings = _included(offer, usage, rules, price)
    if usage.egress_to and not rules.kind_of("egress", usage.egress_to):
        text = Message("traffic.one-price", provider=offer.provider, to=usage.egress_to)
        warnings += (lines.about("egress", text),)
    warnings += price.caveats
    months = _months(usage)
    allowed = [EXACT.add(price.free_per_month, _earned(a_month, rules, m)) for m in months]
    paid = [_over(quantity, month, free) for month, free in zip(months, allowed, strict=True)]
    if any(paid) and not price.tiers:
        text = Message("traffic.no-egress-price", place=offer.place)
        return lines.Charge((), (*warnings, lines.about("egress", text)), ("egress",))
    parts = _split(paid, price.tiers)
    free = EXACT.subtract(quantity, sum_exactly(paid)) if any(paid) else sum_exactly(allowed)
    return lines.Charge(
        (_line(price, parts, _wholly(parts, price, quantity, free), rules),), warnings
    )


def _months(usage: Usage) -> tuple[lines.MonthPart, ...]:
    """Return the months that the machines' life lies in."""
    return lines.month_parts(usage.life_s, usage.start)


def _over(quantity: Decimal, month: lines.MonthPart, free: Decimal) -> Decimal:
    """Return what of the traffic of a month is beyond its allowance."""
    return max(_ZERO, EXACT.subtract(EXACT.multiply(quantity, month.fraction), free))


def _included(
    offer: Offer, usage: Usage, rules: ProviderRules, price: Egress
) -> tuple[Decimal, tuple[str, ...]]:
    """Return the traffic that a full month of all machines includes, in the unit of the price."""
    if offer.included_transfer_gib is None:
        if rules.transfer_full_after_h is None:
            return _ZERO, ()
        text = Message("traffic.included-unknown", machine=offer.name)
        return _ZERO, (lines.about("egress", text),)
    included_bytes = Decimal(str(offer.included_transfer_gib)) * BYTES_PER_UNIT["GiB"]
    a_month = EXACT.divide(included_bytes, BYTES_PER_UNIT[price.unit])
    return EXACT.multiply(a_month, Decimal(usage.count)), ()


def _earned(a_month: Decimal, rules: ProviderRules, month: lines.MonthPart) -> Decimal:
    """Return the included traffic of one month.

    Where it grows by the second, its full size is reached after `transfer_full_after_h`.
    """
    full_after_h = rules.transfer_full_after_h
    if not a_month or full_after_h is None:
        return a_month
    return EXACT.divide(EXACT.multiply(a_month, min(month.hours, full_after_h)), full_after_h)


_TierPart = tuple[Decimal, BillingRule]
"""Traffic that falls into one tier."""
_Words = tuple[str, tuple[Decimal | int | str, ...]]
"""A formula and its numbers."""


def _split(paid: Sequence[Decimal], tiers: Sequence[BillingRule]) -> list[_TierPart]:
    """Return the paid traffic by tier; each month has tiers of its own."""
    parts = []
    for tier in tiers:
        by_month = (max(_ZERO, min(month, tier.tier_until) - tier.tier_from) for month in paid)
        parts.append((sum_exactly(by_month), tier))
    return [part for part in parts if part[0] > 0]


def _wholly(parts: Sequence[_TierPart], price: Egress, quantity: Decimal, free: Decimal) -> _Words:
    """Return how all of the traffic is priced."""
    size_text = _LESS_FREE if free else "{0} {1}"
    numbers = (quantity, price.unit, free)
    if not parts:
        return _WITHIN, numbers
    if len(parts) == 1:
        size = Message("traffic.paid", paid=size_text) if free else size_text
        formula = Message("traffic.times", size=size, price="{3:usd} USD/{1}")
        return formula, (*numbers, parts[0][1].amount)
    formula = Message("traffic.steps", steps=_steps(len(parts)), size=size_text)
    return formula, (*numbers, *_pairs(parts))


def _steps(tiers: int) -> str:
    places = range(3, 3 + 2 * tiers, 2)
    return " + ".join(f"{{{slot}}} {{1}} x {{{slot + 1}:usd}} USD/{{1}}" for slot in places)


def _pairs(parts: Sequence[_TierPart]) -> tuple[Decimal, ...]:
    return tuple(number for quantity, tier in parts for number in (quantity, tier.amount))


def _line(
    price: Egress, parts: Sequence[_TierPart], pricing: _Words, rules: ProviderRules
) -> lines.QuoteLine:
    """Return the line; traffic within what is free is all of it at nothing."""
    formula, numbers = pricing
    origin = parts[0][1] if parts else (rules.rule("egress_free") or price.tiers[0])
    priced = [lines.Priced(quantity, price.unit, tier.amount) for quantity, tier in parts]
    full_after_h, rule = rules.transfer_full_after_h, price.rule
    if full_after_h is not None:
        rule = Message("traffic.earned", h=quantity_text(full_after_h), rule=rule)
    return lines.QuoteLine(
        what="egress",
        usd=sum_exactly(EXACT.multiply(quantity, tier.amount) for quantity, tier in parts),
        formula=formula,
        numbers=numbers,
        rule=rule,
        source=origin.source,
        as_of=origin.as_of,
        parts=tuple(priced) or (lines.Priced(Decimal(numbers[0]), price.unit, _ZERO),),
    )
