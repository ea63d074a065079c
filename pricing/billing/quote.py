"""The bill of one use of one offer: lines that add up, each with its formula and source."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property

from msgspec import Struct, structs

from pricing.billing.ancillary import boot_disk, kept_data, services
from pricing.billing.billing_rule import all_rules
from pricing.billing.lines import BY_TIME, KINDS, NOTHING, Charge, QuoteLine, together
from pricing.billing.machine_time import Span, charge_machine_time
from pricing.billing.provider_rules import ProviderRules, rules_of
from pricing.billing.traffic import charge_traffic
from pricing.billing.usage import Usage
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import TERMS_H, Offer
from pricing.errors import InputError
from pricing.message import Message
from pricing.money import EXACT, cents, price_text, sum_exactly

__all__ = ["Quote", "QuoteLine", "Usage", "quote"]

SCHEMA = "gpucost.quote/v1"

_ORDER = {category: rank for rank, category in enumerate(KINDS)}
OF_THE_DATA = ("disk", "snapshot", "object-storage", "egress")
"""Lines that are billed for a job's data, whoever else uses the machine."""

_START = Decimal(0)


class Quote(Struct, frozen=True, kw_only=True, dict=True):
    """What one use of one offer costs.

    Attributes:
        offer: what is priced.
        usage: for what.
        billed_s: billed seconds of each machine, additional machine time included.
        lines: in the contract's order; they add up to `exact`.
        warnings: what a reader must know: age of the price, unknown rules, what is left out.
        unknown: kinds of line of which something was asked for and has no known price.
    """

    offer: Offer
    usage: Usage
    billed_s: int
    lines: tuple[QuoteLine, ...]
    warnings: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    @cached_property
    def exact(self) -> Decimal:
        """Sum of the lines, not rounded."""
        return sum_exactly(line.usd for line in self.lines)

    @property
    def at_least(self) -> bool:
        """Whether something that was asked for has no known price, so that it costs more."""
        return bool(self.unknown)

    @property
    def by_time(self) -> Decimal:
        """Sum of the lines that the hourly price of its machines makes."""
        return sum((line.usd for line in self.lines if line.what in BY_TIME), Decimal(0))

    @property
    def total(self) -> Decimal:
        """Sum of the lines, rounded half up to cents once."""
        return cents(self.exact)


def quote(offer: Offer, usage: Usage) -> Quote:
    """Return the bill for one use of one offer under the billing rules of `usage.as_of`.

    The price is the offer's throughout; the caller picks the offer that holds on the day
    (`pricing.catalog.catalog`). Whatever has no known price is left out and named in a warning,
    never guessed.

    Raises:
        InputError: the provider's billing rules contradict each other.
    """
    return quote_spans((Span(_START, offer, _rules_of(offer, usage.as_of)),), usage)


def quote_spans(spans: Sequence[Span], usage: Usage, warnings: tuple[str, ...] = ()) -> Quote:
    """Return the bill of machines whose price or rules change while they live.

    Machine time is billed by span; whatever else is asked for by the rules of the first day.

    Args:
        spans: one or more, the first from second 0 on, in order.
        usage: what is priced.
        warnings: what must be said about the spans.
    """
    offer, rules = spans[0].offer, spans[0].rules
    lines, time_warnings, billed_s = charge_machine_time(spans, usage)
    more = _ancillary(offer, usage, rules) if usage.extras else NOTHING
    lines += more.lines
    if len(lines) > 1:
        lines.sort(key=lambda line: _ORDER[line.what])
    return Quote(
        offer=offer,
        usage=usage,
        billed_s=int(billed_s),
        lines=tuple(lines),
        warnings=offer.warnings(usage.as_of) + warnings + time_warnings + more.warnings,
        unknown=more.unknown,
    )


def _ancillary(offer: Offer, usage: Usage, rules: ProviderRules) -> Charge:
    """Return what is asked for beside machine time."""
    disks = [*boot_disk(offer, usage, rules), *kept_data(offer, usage, rules)]
    traffic = [charge_traffic(offer, usage, rules)] if usage.traffic else []
    return together([*disks, *traffic, *services(offer, usage, rules)])


def part_of(bill: Quote, gpus: int, of: int) -> Quote:
    """Return the part of a bill that one of several tenants of the machines bears.

    What is billed for the machines is split; storage and traffic are the tenant's own already.

    Args:
        bill: the bill of the machines, with the tenant's storage and traffic.
        gpus: what the tenant holds of them, >= 0.
        of: what all tenants hold, >= 1.
    """
    return structs.replace(bill, lines=tuple(_part(line, gpus, of) for line in bill.lines))


def _part(line: QuoteLine, gpus: int, of: int) -> QuoteLine:
    if line.what in OF_THE_DATA:
        return line
    return structs.replace(
        line,
        usd=EXACT.divide(EXACT.multiply(line.usd, Decimal(gpus)), Decimal(of)),
        formula=Message("bill.part", formula=line.formula, held=gpus, of=of),
        parts=tuple(
            p._replace(counted=EXACT.multiply(p.counted, Decimal(gpus)), per=p.per * of)
            for p in line.parts
        ),
    )


_CHARGES_OF = {
    "boot-disk": boot_disk,
    **dict.fromkeys(("disk", "snapshot", "object-storage"), kept_data),
    **dict.fromkeys(("address", "control-plane"), services),
}

_PRICES_OF = {
    "boot-disk": ("boot_disk", "volume_storage"),
    "address": ("ipv4", "nat_gateway_hour"),
}


def dearest(category: str, usage: Usage, offers: Iterable[Offer]) -> Decimal | None:
    """Return the most that any provider asks for a part of a use, in dollars, exact.

    Args:
        category: kind of line; nothing of it may be of unknown price to count.
        usage: what is priced.
        offers: one for each place that is asked (`places`).

    Returns:
        None where nobody's price is known.
    """
    named = _PRICES_OF.get(category, ()) if usage.boot_disk_h is None else ()
    places: dict[object, tuple[Offer, ProviderRules]] = {}
    for offer in offers:  # places at the same prices ask alike
        rules, region = _rules_of(offer, usage.as_of), offer.region
        prices = [rules.terms(name, region=region, purchase=offer.purchase) for name in named]
        key = (offer.provider, offer.boot_disk_gib, *prices) if named else len(places)
        places[key] = offer, rules
    amounts = (_usd_of_part(category, offer, usage, rules) for offer, rules in places.values())
    return max((usd for usd in amounts if usd is not None), default=None)


def _usd_of_part(category: str, offer: Offer, usage: Usage, rules: ProviderRules) -> Decimal | None:
    """Return what a place asks for a part of a use; None where not all of it has a known price."""
    if category == "egress":
        charges = [charge_traffic(offer, usage, rules)]
    else:
        charges = _CHARGES_OF[category](offer, usage, rules)
    charges = [charge for charge in charges if not charge.lines or charge.lines[0].what == category]
    priced = [line.usd for charge in charges for line in charge.lines]
    is_known = priced and not any(category in charge.unknown for charge in charges)
    return sum(priced, Decimal(0)) if is_known else None


_DAY = timedelta(days=1)
_LAST_DAY = date(9999, 12, 31)


def quote_over(history: Sequence[Offer], usage: Usage, region: str | None = None) -> Quote:
    """Return the bill of machines from `usage.start` on, each stretch at the price that holds then.

    A billing unit (second, minute, hour) has the price of the instant at which it begins; days
    begin at 00:00 UTC. Where a price ends in the run and no later one is known, it is kept, with a
    warning. Storage, traffic and services follow the rules of the first day.

    Args:
        history: every known row of one provider, type and purchase, as `Catalog.history` has them.
        usage: what is priced; with its start.
        region: may be left out where the price is the same in all regions of the type.

    Raises:
        InputError: the history is empty, the usage has no start, or no price holds on its day.
    """
    if not history or usage.start is None:
        raise InputError("a bill over time needs the known prices and the instant of the start")
    start = usage.start.astimezone(UTC)
    rows = Catalog(as_of=usage.as_of, rows=tuple(history))
    spans, warnings = [_span(rows, usage.as_of, region, Decimal(0))], []
    for day in _change_days(history, usage.as_of, _last_day(start, usage)):
        at_s = Decimal(int((datetime.combine(day, time(), UTC) - start).total_seconds()))
        before = spans[-1]
        try:
            now = _span(rows, day, region, at_s)
        except InputError:
            now = before._replace(from_s=at_s, rules=_rules_of(before.offer, day))
            warnings.append(
                Message(
                    "bill.price-ended",
                    offer=before.offer.place,
                    usd=price_text(before.offer.usd_per_hour),
                    day=str(day - _DAY),
                )
            )
        if now.offer.usd_per_hour != before.offer.usd_per_hour:
            usd, then = (price_text(span.offer.usd_per_hour) for span in (before, now))
            offer_name = now.offer.place
            warnings.append(
                Message("bill.price-changes", offer=offer_name, usd=usd, then=then, day=str(day))
            )
        elif now.rules.granularity_s == before.rules.granularity_s:
            continue
        spans.append(now)
    if usage.commitment == "term" and history[0].purchase in TERMS_H:
        return quote_spans(spans[:1], usage)
    return quote_spans(spans, usage, tuple(warnings))


def _span(rows: Catalog, day: date, region: str | None, from_s: Decimal) -> Span:
    first = rows.rows[0]
    offer = rows.at(day).find(first.provider, first.instance_type, region, first.purchase)
    return Span(from_s, offer, _rules_of(offer, day))


def _rules_of(offer: Offer, day: date) -> ProviderRules:
    return rules_of(offer.provider, day, offer.instance_type)


def _last_day(start: datetime, usage: Usage) -> date:
    """Return the day on which the life of the machines ends.

    Far off for a life beyond the calendar.
    """
    try:
        return (start + timedelta(seconds=float(usage.life_s))).date()
    except OverflowError:
        return _LAST_DAY


def _change_days(history: Sequence[Offer], first: date, last: date) -> list[date]:
    """Return the days after the first, up to the last, on which a price or rule begins or ends."""
    windows: list[tuple[date | None, date | None]] = [(o.starts, o.valid_until) for o in history]
    windows += [(rule.valid_from, rule.valid_until) for rule in all_rules(history[0].provider)]
    days = {begins for begins, _ in windows if begins is not None}
    days |= {ends + _DAY for _, ends in windows if ends is not None and ends < _LAST_DAY}
    return sorted(day for day in days if first < day <= last)
