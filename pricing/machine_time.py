"""What the life of machines costs: granularity, minimum time, minimum charge."""

from decimal import Decimal
from typing import NamedTuple

from pricing.billing import ProviderRules
from pricing.lines import Charge, QuoteLine
from pricing.money import EXACT, plain
from pricing.offer import Offer
from pricing.usage import Usage

SECONDS_PER_HOUR = Decimal(3600)
UNKNOWN_GRANULARITY_S = Decimal(3600)
"""Where no granularity is documented, whole hours are billed, with a warning."""

_ADDITIONAL = (("boot", "boot_s"), ("lost-work", "lost_work_s"), ("checkpoint", "checkpoint_s"))
_ZERO = Decimal(0)

# Numbers of every formula: 0 billed s, 1 USD/h, 2 s that ran, 3 least USD, 4 s billed before.
_EXACT_TIME = "{0} s x {1} USD/h / 3600"
_ROUNDED_TIME = "{0} s (ran {2} s) x {1} USD/h / 3600"
_LEAST = "least charge {3} USD (ran {2} s)"
_DIFFERENCE = "charge for {0} s less charge for {4} s"


def charge_machine_time(offer: Offer, usage: Usage, held: ProviderRules) -> Charge:
    """The compute line, then a line for each kind of additional machine time.

    One bill runs through all of it: each additional line is what the bill grows by, so that the
    lines add up to the bill for the whole life however the provider rounds.
    """
    ran_s = Decimal(usage.duration_s)
    billed_s = bill_seconds(ran_s, held)
    usd = _charge(billed_s, offer, usage, held)
    lines = [_line(offer, usage, held, _compute_step(usage, held, billed_s, usd))]
    for what, name in _ADDITIONAL:
        more_s = Decimal(getattr(usage, name))
        if not more_s:
            continue
        ran_s += more_s
        before_s, before_usd = billed_s, usd
        billed_s = bill_seconds(ran_s, held)
        usd = _charge(billed_s, offer, usage, held)
        added = EXACT.subtract(usd, before_usd)
        at_rate = _charges_rate(before_s, before_usd, offer, usage)
        step = _Step(
            what=what,
            usd=added,
            formula=_EXACT_TIME if at_rate else _DIFFERENCE,
            billed_s=billed_s - before_s if at_rate else billed_s,
            ran_s=more_s,
            before_s=before_s,
        )
        lines.append(_line(offer, usage, held, step))
    return Charge(tuple(lines), _warnings(offer, ran_s, held))


def life_s(usage: Usage) -> Decimal:
    """How long each machine lives, additional time included."""
    extra = Decimal(usage.boot_s) + Decimal(usage.lost_work_s) + Decimal(usage.checkpoint_s)
    return Decimal(usage.duration_s) + extra


def bill_seconds(ran_s: Decimal, held: ProviderRules) -> Decimal:
    """Billed seconds of a machine that ran so long: up to whole units, at least the minimum.

    Nothing is billed for a machine that never ran.
    """
    if not ran_s:
        return _ZERO
    unit_s = held.granularity_s or UNKNOWN_GRANULARITY_S
    units, rest = divmod(ran_s, unit_s)
    billed_s = (units + 1) * unit_s if rest else ran_s
    return billed_s if held.minimum_s is None else max(billed_s, held.minimum_s)


def _at_rate(billed_s: Decimal, offer: Offer, usage: Usage) -> Decimal:
    """Dollars for all machines; divided last, so that whole cents stay whole."""
    machine_s = EXACT.multiply(billed_s, Decimal(usage.count))
    return EXACT.divide(EXACT.multiply(machine_s, offer.usd_per_hour), SECONDS_PER_HOUR)


def _charge(billed_s: Decimal, offer: Offer, usage: Usage, held: ProviderRules) -> Decimal:
    """Dollars for all machines: billed time at the hourly price, at least the minimum each."""
    usd = _at_rate(billed_s, offer, usage)
    if held.minimum_usd is None or not billed_s:
        return usd
    return max(usd, held.minimum_usd * usage.count)


def _charges_rate(billed_s: Decimal, usd: Decimal, offer: Offer, usage: Usage) -> bool:
    """Whether the bill so far is time at the hourly price, not a least charge."""
    return usd == _at_rate(billed_s, offer, usage)


class _Step(NamedTuple):
    """One line of the running bill."""

    what: str
    usd: Decimal
    formula: str
    billed_s: Decimal
    ran_s: Decimal
    before_s: Decimal


def _compute_step(usage: Usage, held: ProviderRules, billed_s: Decimal, usd: Decimal) -> _Step:
    ran_s = Decimal(usage.duration_s)
    if billed_s == ran_s:
        formula = _EXACT_TIME
    elif held.minimum_usd is not None and usd == held.minimum_usd * usage.count:
        formula = _LEAST
    else:
        formula = _ROUNDED_TIME
    return _Step("compute", usd, formula, billed_s, ran_s, _ZERO)


def _line(offer: Offer, usage: Usage, held: ProviderRules, step: _Step) -> QuoteLine:
    formula = step.formula if usage.count == 1 else f"{usage.count} x ({step.formula})"
    least_usd = held.minimum_usd or _ZERO
    return QuoteLine(
        what=step.what,
        usd=step.usd,
        formula=formula,
        numbers=(step.billed_s, offer.usd_per_hour, step.ran_s, least_usd, step.before_s),
        rule=held.compute_text,
        source=offer.source,
        as_of=offer.date_text,
    )


def _warnings(offer: Offer, ran_s: Decimal, held: ProviderRules) -> tuple[str, ...]:
    """Where the rounding of time is not documented."""
    unit_s = held.granularity_s
    text = ""
    if unit_s is None:
        text = "the billing granularity is not documented; whole hours are billed"
    elif unit_s > 1 and ran_s % unit_s:
        text = f"how a part of {plain(unit_s)} s is rounded is not documented; it is rounded up"
    return (f"{offer.provider}: {text}",) if text else ()
