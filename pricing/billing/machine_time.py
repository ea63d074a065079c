"""What the life of machines costs: granularity, minima, terms, changes of price."""

from collections.abc import Sequence
from decimal import Decimal
from functools import reduce
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import structs

from pricing.billing.lines import SECONDS_PER_HOUR, Priced, QuoteLine, months_touched, stepped_s
from pricing.billing.provider_rules import ProviderRules
from pricing.billing.usage import Usage
from pricing.catalog.offer import TERMS_H, Offer
from pricing.message import Message, join
from pricing.money import EXACT, HOURS_PER_MONTH, quantity_text

UNKNOWN_GRANULARITY_S = Decimal(3600)
"""Where no granularity is documented, whole hours are billed, with a warning."""

_ZERO = Decimal(0)
_add, _multiply, _divide = EXACT.add, EXACT.multiply, EXACT.divide

_EXACT_TIME = "{0} s x {1:usd} USD/h / 3600"
_ROUNDED_TIME = Message("bill.rounded", s="{0}", ran="{2}", usd="{1:usd}")
_LEAST = Message("bill.least", usd="{1:usd}", ran="{0}")
_OWED = {
    "term": Message("bill.whole-term", h="{0}", usd="{1:usd}", ran="{2}"),
    "month": Message("bill.whole-month", h="{0}", usd="{1:usd}", ran="{2}"),
}
_ENDED = Message("bill.ended", s="{0}", least="{1}")
_DIFFERENCE = Message("bill.difference", s="{0}", before="{1}")


class Span(NamedTuple):
    """One price and the rules beside it, from a second of a machine's life on."""

    from_s: Decimal
    offer: Offer
    rules: ProviderRules


class _MachineBill(NamedTuple):
    """The bill of machines that lived for a while.

    Attributes:
        billed_s: seconds of each machine.
        usd: for all machines.
        spans_s: billed seconds of each machine in each span.
        is_minimum: whether it is the provider's least charge.
    """

    billed_s: Decimal
    usd: Decimal
    spans_s: tuple[Decimal, ...]
    is_minimum: bool


MachineTime = tuple[list[QuoteLine], tuple[str, ...], Decimal]
"""Its lines, their warnings, and how long each machine is billed, in seconds."""


def charge_machine_time(spans: Sequence[Span], usage: Usage) -> MachineTime:
    """Return the compute line, then a line for each kind of additional machine time.

    One bill runs through all of it: each additional line is what the bill grows by, so that the
    lines add up to the bill for the whole life however the provider rounds.
    """
    free_s = spans[0].rules.free_if_ended_within_s
    if usage.interrupted and free_s is not None and usage.life_s < free_s:
        return _ended_free(spans, usage, free_s)
    ran_s = Decimal(usage.duration_s)
    bill = bill_machines(ran_s, spans, usage)
    lines = [_compute_line(bill, spans, usage)]
    for category, more_s in usage.additional:
        ran_s += more_s
        before, bill = bill, bill_machines(ran_s, spans, usage)
        lines.append(_additional_line(category, before, bill, spans, usage))
    warnings = () if _owed_step_s(usage, spans[0].offer) else _warnings(bill, ran_s, spans)
    if usage.interrupted and free_s is None:
        warnings += (Message("bill.spot-ended", provider=spans[0].offer.provider),)
    return lines, warnings, bill.billed_s


def _owed_step_s(usage: Usage, offer: Offer) -> Decimal | None:
    """Return the seconds of a term or month that is owed whole; None where time is billed."""
    term_h = TERMS_H.get(offer.purchase) if usage.commitment else None
    if term_h is None:
        return None
    return (HOURS_PER_MONTH if usage.commitment == "month" else term_h) * SECONDS_PER_HOUR


def _ended_free(spans: Sequence[Span], usage: Usage, free_s: Decimal) -> MachineTime:
    """Bill nothing of spot machines that the provider ends while they are young."""
    rule = spans[0].rules.rule("free_if_ended_within_s")
    line = _line("compute", _ZERO, (_ENDED, (usage.life_s, free_s)), (), spans, usage)
    if rule is not None:
        rule_text = Message("bill.first-hour-free")
        line = structs.replace(line, rule=rule_text, source=rule.source, as_of=rule.as_of)
    return [line], (), _ZERO


def bill_machines(ran_s: Decimal, spans: Sequence[Span], usage: Usage) -> _MachineBill:
    """Return the bill of machines that ran so long: whole units, at least the minimum.

    Machines that are bought for a term are owed whole terms, or whole months of one; some
    providers bill no more than so many hours of a month.

    A unit (second, minute, hour) has the price that holds when it begins, and is billed whole; the
    minimum time is lived through like any other. Nothing is billed for a machine that never ran.
    """
    _, offer, rules = spans[0]
    if not ran_s:
        return _MachineBill(_ZERO, _ZERO, (_ZERO,) * len(spans), is_minimum=False)
    spans_s = _by_span(_owed_s(ran_s, offer, rules, usage), spans)
    rates = [_at_rate(s, span.offer, usage.count) for span, s in zip(spans, spans_s, strict=True)]
    billed_s, usd = sum(spans_s, _ZERO), reduce(_add, rates)
    if rules.minimum_usd is None:
        return _MachineBill(billed_s, usd, spans_s, is_minimum=False)
    least_usd = rules.minimum_usd * usage.count
    return _MachineBill(billed_s, max(usd, least_usd), spans_s, least_usd > usd)


def _owed_s(ran_s: Decimal, offer: Offer, rules: ProviderRules, usage: Usage) -> Decimal:
    """Return the time that is owed: minimum and term at least, a month's cap at most."""
    until_s, least_s = ran_s, rules.minimum_s
    if least_s is not None and least_s > until_s:
        until_s = least_s
    step_s = _owed_step_s(usage, offer)
    if step_s is not None and (usage.commitment == "term" or until_s < step_s):
        until_s = stepped_s(until_s, step_s)
    if rules.gpu_monthly_cap_h is not None:
        months = months_touched(until_s, usage.start)
        until_s = min(until_s, months * rules.gpu_monthly_cap_h * SECONDS_PER_HOUR)
    return until_s


def _by_span(until_s: Decimal, spans: Sequence[Span]) -> tuple[Decimal, ...]:
    """Return the billed seconds in each span; a unit belongs to the span in which it begins."""
    billed_s, spans_s = _ZERO, []
    ends_s = (*(span.from_s for span in spans[1:]), until_s)
    for span, end_s in zip(spans, ends_s, strict=True):
        left_s = max(_ZERO, min(end_s, until_s) - billed_s)
        spans_s.append(stepped_s(left_s, span.rules.granularity_s or UNKNOWN_GRANULARITY_S))
        billed_s += spans_s[-1]
    return tuple(spans_s)


def _at_rate(billed_s: Decimal, offer: Offer, count: int) -> Decimal:
    """Return dollars for all machines; divided last, so that whole cents stay whole."""
    machine_s = billed_s if count == 1 else _multiply(billed_s, Decimal(count))
    return _divide(_multiply(machine_s, offer.usd_per_hour), SECONDS_PER_HOUR)


def _compute_line(bill: _MachineBill, spans: Sequence[Span], usage: Usage) -> QuoteLine:
    ran_s = usage.duration_s
    if bill.is_minimum:
        minimum_charge = (_LEAST, (ran_s, spans[0].rules.minimum_usd))
        return _line("compute", bill.usd, minimum_charge, (), spans, usage)
    if _owed_step_s(usage, spans[0].offer) is not None:
        hours = (bill.billed_s / SECONDS_PER_HOUR, EXACT.divide(Decimal(ran_s), SECONDS_PER_HOUR))
        owed = (_OWED[usage.commitment], (hours[0], spans[0].offer.usd_per_hour, hours[1]))
        return _line("compute", bill.usd, owed, bill.spans_s, spans, usage)
    formula = _EXACT_TIME if bill.billed_s == ran_s else _ROUNDED_TIME
    charge = (formula, (bill.billed_s, spans[0].offer.usd_per_hour, ran_s))
    return _line("compute", bill.usd, charge, bill.spans_s, spans, usage)


def _additional_line(
    category: str, before: _MachineBill, bill: _MachineBill, spans: Sequence[Span], usage: Usage
) -> QuoteLine:
    """Return what the bill grew by."""
    added = EXACT.subtract(bill.usd, before.usd)
    if before.is_minimum or bill.is_minimum:
        ends = (bill.billed_s, before.billed_s)
        return _line(category, added, (_DIFFERENCE, ends), (), spans, usage)
    grown = tuple(now - then for now, then in zip(bill.spans_s, before.spans_s, strict=True))
    price = next((s.offer for s, span_s in zip(spans, grown, strict=True) if span_s), None)
    usd_per_hour = (price or spans[0].offer).usd_per_hour
    charge = (_EXACT_TIME, (bill.billed_s - before.billed_s, usd_per_hour))
    return _line(category, added, charge, grown, spans, usage)


def _line(  # noqa: PLR0913, PLR0917 - a line of a bill says all of it
    category: str,
    usd: Decimal,
    charge: tuple[str, tuple[Any, ...]],
    spans_s: Sequence[Decimal],
    spans: Sequence[Span],
    usage: Usage,
) -> QuoteLine:
    """Return a line at the hourly price of each span in which `spans_s` has seconds."""
    count, (formula, numbers) = usage.count, charge
    used = [(span, span_s) for span, span_s in zip(spans, spans_s, strict=False) if span_s]
    origin: tuple[str, ...] = _ORIGIN(used[0][0] if used else spans[0])
    if len(used) > 1:
        formula, numbers = _stretches(used)
        origins = zip(*(_ORIGIN(span) for span, _ in used), strict=True)
        origin = tuple(join(dict.fromkeys(texts), "stretches") for texts in origins)
    rule, source, as_of = origin
    return QuoteLine(
        what=category,
        usd=usd,
        formula=formula if count == 1 else Message("bill.machines", n=count, formula=formula),
        numbers=numbers,
        rule=rule,
        source=source,
        as_of=as_of,
        parts=tuple([_priced(span.offer, span_s, count) for span, span_s in used]),
    )


_ORIGIN = attrgetter("rules.compute_text", "offer.source", "offer.date_text")


def _priced(offer: Offer, billed_s: Decimal, count: int) -> Priced:
    return Priced(billed_s * count, "Hours", offer.usd_per_hour, SECONDS_PER_HOUR)


def _stretches(used: Sequence[tuple[Span, Decimal]]) -> tuple[str, tuple[Decimal, ...]]:
    """Return the formula of time in several spans, and its numbers."""
    places = range(0, 2 * len(used), 2)
    formula = " + ".join(f"{{{at}}} s x {{{at + 1}:usd}} USD/h / 3600" for at in places)
    return formula, tuple(n for span, s in used for n in (s, span.offer.usd_per_hour))


def _warnings(bill: _MachineBill, ran_s: Decimal, spans: Sequence[Span]) -> tuple[str, ...]:
    """Return what is to be said where the rounding of time is not documented."""
    if len(spans) == 1 and bill.billed_s == ran_s and spans[0].rules.granularity_s is not None:
        return spans[0].rules.compute_caveats
    warnings = dict.fromkeys(text for span in spans for text in span.rules.compute_caveats)
    for span, span_s in zip(spans, bill.spans_s, strict=True):
        unit_s = span.rules.granularity_s
        if not span_s and bill.billed_s:
            continue
        provider = span.offer.provider
        if unit_s is None:
            warnings[Message("bill.whole-hours", provider=provider)] = None
        elif unit_s > 1 and bill.billed_s != ran_s:
            s = quantity_text(unit_s)
            warnings[Message("bill.rounded-up", provider=provider, s=s)] = None
    return tuple(warnings)
