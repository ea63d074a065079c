"""How each provider bills, read from `data/billing/<provider>.toml`; no provider's name in code.

Rules are found by name (data/README.md lists the names that quotes use). A rule marked "lead" names
no address at which it could be checked: every quote that uses it says so.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from types import MappingProxyType

from pricing.billing.billing_rule import (
    BYTES_PER_UNIT,
    CALENDAR,
    OPEN_END,
    BillingRule,
    all_rules,
    caveats,
)
from pricing.catalog.regions import country_of
from pricing.errors import InputError
from pricing.message import Message, join
from pricing.money import plain, price_text, quantity_text

__all__ = ["BYTES_PER_UNIT", "CALENDAR", "BillingRule", "Egress", "ProviderRules", "rules_of"]

_ADDRESS = re.compile(r"https://([^/\s]+)")
_TIME_RULES = ("granularity_s", "minimum_s", "minimum_usd")
_PERIODS = MappingProxyType({1: "second", 60: "minute", 3600: "hour"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Egress:
    """What traffic to the internet costs from one region.

    Attributes:
        unit: "GB" or "GiB", of every quantity here.
        free_per_month: of the account, before the first tier.
        tiers: rules with `tier_from` and `tier_until` counted beyond the free allowance and per
            month, contiguous from 0, the last without an end; none: traffic beyond what
            is free has no known price.
        rule: the terms in words.
        caveats: what must be said of the rules behind it.
    """

    unit: str
    free_per_month: Decimal
    tiers: tuple[BillingRule, ...]
    rule: str
    caveats: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProviderRules:
    """The rules of one provider that hold on one day, once for each day. None means unknown.

    Attributes:
        provider: such as "aws".
        day: the day.
        rules: all of them that are for the type, in file order, leads included.
        granularity_s: time is billed in whole multiples of it.
        minimum_s: shortest billed time of a machine.
        minimum_usd: least a machine is billed.
        stopped_billed: "yes", "no", or the provider's words for what else it depends on.
        transfer_full_after_h: included transfer grows by the second to its full size at this age
            in a month.
        free_if_ended_within_s: a spot machine that the provider ends before that age is free.
        gpu_monthly_cap_h: a GPU machine is billed for no more hours of a month.
        compute_text: granularity and minimum in words.
        compute_caveats: what must be said of the rules behind machine time.
    """

    provider: str
    day: date
    rules: tuple[BillingRule, ...]
    granularity_s: Decimal | None
    minimum_s: Decimal | None
    minimum_usd: Decimal | None
    stopped_billed: str | None
    transfer_full_after_h: Decimal | None
    free_if_ended_within_s: Decimal | None
    gpu_monthly_cap_h: Decimal | None
    compute_text: str
    compute_caveats: tuple[str, ...]

    def rule(self, name: str) -> BillingRule | None:
        """Return the first rule of that name, of the usual kind.

        One for the type beats one for all.
        """
        return _first(self.rules, name)

    def terms(
        self, name: str, *, region: str = "*", kind: str = "", purchase: str = ""
    ) -> tuple[BillingRule, ...]:
        """Return the price of a product as its tiers, in order; empty where it is unknown.

        Rows for the region itself beat patterns, rows for the way of buying beat those for all.
        """
        return _terms(self, name, region, kind, purchase)

    def kinds(self, name: str) -> tuple[str, ...]:
        """Return the kinds of a product with a known price, the usual one ("") left out."""
        return _kinds(self, name)

    def egress(self, region: str, destination: str = "") -> Egress | None:
        """Return what traffic to the internet costs from a region ("*" where it does not matter).

        Args:
            region: where it leaves.
            destination: a country in words or a region, where the provider has prices for it.
        """
        return _egress(self.provider, self.day, region, self.kind_of("egress", destination))

    def kind_of(self, name: str, destination: str) -> str:
        """Return the kind of traffic to a place, by its region or country; empty: it has none."""
        kinds = self.kinds(name)
        return next((p for p in (destination, country_of(destination)) if p in kinds), "")


@lru_cache(maxsize=4096)
def _kinds(rules: ProviderRules, name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(r.kind for r in rules.rules if r.name == name and r.kind))


@lru_cache(maxsize=4096)
def _terms(
    rules: ProviderRules, name: str, region: str, kind: str, purchase: str
) -> tuple[BillingRule, ...]:
    rules_found = [
        rule
        for rule in rules.rules
        if rule.name == name
        and rule.kind == kind
        and rule.purchase in ("", purchase)
        and rule.is_for(region)
    ]
    rules_found = _nearest(rules_found, region)
    rules_found = [rule for rule in rules_found if rule.purchase] or rules_found
    return tuple(sorted(rules_found, key=lambda rule: rule.tier_from))


@lru_cache(maxsize=4096)
def rules_of(provider: str, day: date, instance_type: str = "") -> ProviderRules:
    """Return the billing rules of a provider on a day; all unknown for a provider without a file.

    Args:
        provider: such as "oci".
        day: the day.
        instance_type: without it, rules that are for some types only are left out.
    """
    patterns = _type_patterns(provider)
    if patterns:
        patterns = tuple(pattern for pattern in patterns if fnmatchcase(instance_type, pattern))
    return _rules(provider, day, patterns)


@cache
def _type_patterns(provider: str) -> tuple[str, ...]:
    patterns = (pattern for rule in all_rules(provider) for pattern in rule.types)
    return tuple(dict.fromkeys(patterns))


@cache
def _rules(provider: str, day: date, fitting: tuple[str, ...]) -> ProviderRules:
    """Return the rules of the day, those for some types only where one of their patterns fits."""
    rules = tuple(
        rule
        for rule in all_rules(provider)
        if rule.holds_on(day) and (not rule.types or set(rule.types) & set(fitting))
    )
    stopped = _first(rules, "stopped_billed")
    granularity_s = _amount(rules, "granularity_s")
    minimum_s, minimum_usd = _amount(rules, "minimum_s"), _amount(rules, "minimum_usd")
    return ProviderRules(
        provider=provider,
        day=day,
        rules=rules,
        granularity_s=granularity_s,
        minimum_s=minimum_s,
        minimum_usd=minimum_usd,
        stopped_billed=None if stopped is None else str(stopped.value),
        transfer_full_after_h=_amount(rules, "transfer_full_after_h"),
        free_if_ended_within_s=_amount(rules, "free_if_ended_within_s"),
        gpu_monthly_cap_h=_amount(rules, "gpu_monthly_cap_h"),
        compute_text=_compute_text(_first(rules, "granularity_s"), minimum_s, minimum_usd),
        compute_caveats=caveats(filter(None, (_first(rules, name) for name in _TIME_RULES))),
    )


def _first(rules: Sequence[BillingRule], name: str) -> BillingRule | None:
    named = [rule for rule in rules if rule.name == name and not rule.kind]
    return next((rule for rule in named if rule.types), named[0] if named else None)


def _site(source: str) -> str:
    """Return the site of the first address in a source; the source itself without one."""
    address = _ADDRESS.search(source)
    return source if address is None else address[1]


def _nearest(candidates: list[BillingRule], region: str) -> list[BillingRule]:
    """Return those that name the region, else with a pattern for it, else for all regions."""
    named = [rule for rule in candidates if region in rule.regions]
    return named or [rule for rule in candidates if rule.regions] or candidates


def _amount(rules: Sequence[BillingRule], name: str) -> Decimal | None:
    rule = _first(rules, name)
    return None if rule is None else rule.amount


def _compute_text(
    granularity: BillingRule | None, minimum_s: Decimal | None, minimum_usd: Decimal | None
) -> str:
    if granularity is None:
        parts = [Message("bill.by-whole-hours")]
    else:
        period_s = granularity.amount
        word = _PERIODS.get(int(period_s), "steps")
        parts = [Message(f"bill.by-{word}", s=quantity_text(period_s))]
    if minimum_s is not None:
        parts.append(Message("bill.at-least-s", s=quantity_text(minimum_s)))
    if minimum_usd is not None:
        parts.append(Message("bill.at-least-usd", usd=price_text(minimum_usd)))
    text = join(parts, "phrases")
    if granularity is None:
        return text
    return Message(
        "bill.by-source", rule=text, source=_site(granularity.source), day=granularity.as_of
    )


@cache
def _egress(provider: str, day: date, region: str, kind: str) -> Egress | None:
    """Return the tiers of a region's own rows, else of the rules whose pattern it matches."""
    rules = rules_of(provider, day)
    tiers = rules.terms("egress", region=region, kind=kind)
    free = rules.rule("egress_free")
    terms = tiers if free is None else (*tiers, free)
    if not terms:
        return None
    _check_tiers(tiers, terms)
    free_per_month = Decimal(0) if free is None else free.amount
    return Egress(
        unit=terms[0].per,
        free_per_month=free_per_month,
        tiers=tiers,
        rule=_egress_text(tiers, free_per_month, terms[0].per),
        caveats=caveats(terms),
    )


def _check_tiers(tiers: Sequence[BillingRule], terms: Sequence[BillingRule]) -> None:
    """Raise InputError unless tiers follow one another from 0 without end, all in one unit."""
    provider, unit = terms[0].provider, terms[0].per
    ends = [Decimal(0), *(tier.tier_until for tier in tiers)]
    starts = [*(tier.tier_from for tier in tiers), OPEN_END if tiers else Decimal(0)]
    gaps = [end for end, start in zip(ends, starts, strict=True) if start != end]
    problems = [f"no price from {plain(end)} {unit} on, or two of them" for end in gaps]
    problems += [f"both {unit} and {term.per}" for term in terms if term.per != unit]
    if problems:
        raise InputError(
            f"billing rules of {provider}: egress has {problem}; "
            f"correct data/billing/{provider}.toml"
            for problem in problems
        )


def _egress_text(tiers: Sequence[BillingRule], free_per_month: Decimal, unit: str) -> str:
    size = f"{quantity_text(free_per_month)} {unit}"
    parts: list[str] = [Message("bill.free-a-month", size=size)] if free_per_month else []
    for tier in tiers:
        is_bounded = tier.tier_until < OPEN_END
        price = f"{price_text(tier.amount)} USD/{unit}"
        end = f"{quantity_text(tier.tier_until)} {unit}"
        parts.append(Message("bill.up-to", price=price, size=end) if is_bounded else price)
    text = join(parts, "tiers")
    binary = unit == "GiB" and any(tier.printed == "GB" for tier in tiers)
    return join((text, Message("bill.binary-gb"))) if binary else text
