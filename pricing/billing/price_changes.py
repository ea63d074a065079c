"""The bill of a run that lives through a change of price or of billing rules."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from pricing.billing.billing_rule import all_rules
from pricing.billing.machine_time import Span
from pricing.billing.provider_rules import ProviderRules, rules_of
from pricing.billing.quote import Quote, quote_spans
from pricing.billing.usage import Usage
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer
from pricing.errors import InputError
from pricing.money import price_text

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
    spans, said = [_span(rows, usage.as_of, region, Decimal(0))], []
    for day in _change_days(history, usage.as_of, _last_day(start, usage)):
        at_s = Decimal(int((datetime.combine(day, time(), UTC) - start).total_seconds()))
        before = spans[-1]
        try:
            now = _span(rows, day, region, at_s)
        except InputError:
            now = before._replace(from_s=at_s, rules=_rules_of(before.offer, day))
            said.append(
                f"{before.offer.place}: the price of {price_text(before.offer.usd_per_hour)} USD/h "
                f"ended on {day - _DAY} and no later one is known; it is used to the end of the run"
            )
        if now.offer.usd_per_hour != before.offer.usd_per_hour:
            prices = (price_text(span.offer.usd_per_hour) for span in (before, now))
            said.append(
                f"{now.offer.place}: the price goes from {' to '.join(prices)} USD/h on {day}, "
                "from 00:00 UTC; each stretch is billed at its own price"
            )
        elif now.rules.granularity_s == before.rules.granularity_s:
            continue
        spans.append(now)
    if usage.committed:
        return quote_spans(spans[:1], usage)
    return quote_spans(spans, usage, tuple(said))


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
    windows: list[tuple[date | None, date | None]]
    windows = [(row.starts, row.valid_until) for row in history]
    windows += [(rule.valid_from, rule.valid_until) for rule in all_rules(history[0].provider)]
    days = {begins for begins, _ in windows if begins is not None}
    days |= {ends + _DAY for _, ends in windows if ends is not None and ends < _LAST_DAY}
    return sorted(day for day in days if first < day <= last)
