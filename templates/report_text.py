"""The sentences and figures of a plan for people, from the values of plan.json.

Nothing is worked out here beyond rounding and percentages: what is said is in the values.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import TYPE_CHECKING

from planner.plan.option import Baseline
from pricing import money
from pricing.catalog.price_age import age_of, age_text
from pricing.money import show
from templates.language.translate import _, asked_rate, join, translate_text, word

if TYPE_CHECKING:  # the words need to know the values' types, not the planner
    from collections.abc import Iterable, Mapping
    from decimal import Decimal

    from planner.documents.plan_change import ChangeTotals, PlanChange
    from planner.models.estimate import Estimate
    from planner.plan.bill import OptionCost, RentedOffer, TodayCost
    from planner.plan.job import JobPlan, Remedy
    from planner.plan.option import Option
    from planner.plan.plan import Plan
    from planner.signals.finding import Finding, Reading

    Way = Baseline | Option

STAY = "o0"
CODES: Mapping[str, tuple[str, ...]] = {
    kind: tuple(codes.split())
    for kind, codes in tomllib.loads(
        (files("templates.reports") / "codes.toml").read_text(encoding="utf-8")
    ).items()
}
"""Codes that a report treats alike, by what they have in common."""

_PERIODS: Mapping[str, str] = {"month": "a month", "run": "a run"}
_HUNDRED = 100.0
_ONE_DIGIT = 1.2
_COMPARED = {"<": "under", "<=": "at most", ">": "over", ">=": "at least"}
_SHARE = "fraction"  # the unit of what is read in percent
# What an option does to where it runs is seen in "where" and "GPU"; the rest has to be done.
_SEEN_IN_WHERE = ("newer-gpu", "smaller-gpu", "more-gpus", "fewer-gpus", "move-provider")


def period_words(plan: Plan | PlanChange) -> str:
    """Return `a month` or `a run`."""
    return _(_PERIODS[plan.period])


def dollars(amount: Decimal | None) -> str:
    """Return `$1,234.56`; `unknown` for None."""
    return _("unknown") if amount is None else f"${show(amount)}"


def whole_dollars(amount: Decimal | None, *, at_least: bool = False) -> str:
    """Return `$1,235`, cents kept below $10; `at least $1,235` where a part has no known price."""
    usd = _("unknown") if amount is None else f"${money.whole_dollars(amount)}"
    return _("at least ") + usd if at_least and amount is not None else usd


def signed(usd: Decimal | None) -> str:
    """Return `+$12.00`, `-$3.50`; a dash for what is not known."""
    return "-" if usd is None else f"{'-' if usd < 0 else '+'}{dollars(abs(usd))}"


def causes(totals: ChangeTotals) -> tuple[tuple[str, Decimal], ...]:
    """Return what a bill moved by, cause by cause."""
    return (
        (_("price changes (same usage)"), totals.price_usd),
        (_("usage changes (same prices)"), totals.usage_usd),
        (_("other machines"), totals.machine_usd),
        (_("new jobs"), totals.new_jobs_usd),
        (_("jobs that ended"), totals.gone_jobs_usd),
    )


def moved_text(change: PlanChange) -> str:
    """Return `+$140.00; hours +20%, price of an hour -5%`: what finance asks first."""
    usd = signed(change.totals.after - change.totals.before)
    if change.hours_ratio is None or change.hour_price_ratio is None:
        return usd
    hours, price = (f"{part - 1:+.0%}" for part in (change.hours_ratio, change.hour_price_ratio))
    return _("{usd}; hours {hours}, price of an hour {price}", usd=usd, hours=hours, price=price)


def money_text(amount: Decimal | None, *, at_least: bool = False) -> str:
    """Return `$1,235`, where another currency is wanted with it: `$1,235 (CNY 8,769)`."""
    usd = whole_dollars(amount, at_least=at_least)
    return usd if amount is None else usd + other_currency(amount)


def other_currency(*amounts: Decimal) -> str:
    """Return ` (CNY 8,769)` of dollars, ` (CNY 980-2,046)` of two; empty if no rate was given."""
    rate = asked_rate()
    if rate is None:
        return ""
    changed = "-".join(money.whole_dollars(usd * rate.per_usd) for usd in amounts)
    return _(" ({currency} {amount})", currency=rate.currency, amount=changed)


def hours(estimate: Estimate) -> str:
    """Return `310 (270-365)`, or one figure where there is no width."""
    low, mid, high = map(_figure, _ends(estimate))
    return mid if low == high else f"{mid} ({low}-{high})"


def _ends(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.low, estimate.mid, estimate.high


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= _HUNDRED else f"{value:.3g}"


def times(estimate: Estimate) -> str:
    """Return `1.9x (1.3-2.6)`."""
    low, mid, high = (f"{end:.2g}" for end in _ends(estimate))
    return f"{mid}x" if low == high else f"{mid}x ({low}-{high})"


def machine_name(offer: RentedOffer | None, count: int = 1, *, is_manual: bool = True) -> str:
    """Return `2x provider/type, region`, or `provider (manual)` for names nobody can rent by.

    Where a tool rents it, `is_manual` is False, and the provider is all that is said of those.
    """
    if offer is None:
        return _("unknown")
    name = f"{offer.provider}/{offer.instance_type}"
    if offer.by_hand_at:
        community = _(", community") if offer.host == "community" else ""
        name = f"{offer.provider}{community}"
        name = _("{where} (manual)", where=name) if is_manual else name
    region = "" if offer.region == "*" else f", {offer.region}"
    return f"{count}x {name}{region}" if count > 1 else f"{name}{region}"


def where_it_runs(way: Way, *, is_manual: bool = True) -> str:
    """Return where an option runs, with its GPU where the place does not name the machine."""
    offer, where = way.offer, machine_name(way.offer, way.count, is_manual=is_manual)
    if offer is None or not offer.by_hand_at:
        return where
    gpus = round(offer.gpu_count * way.count)
    return _("{n}x {gpu} on {where}", n=gpus, gpu=offer.gpu, where=where)


def gpus_named(way: Way) -> str:
    """Return the GPUs of a machine; those that were measured where no price of it is known."""
    if way.offer is not None:
        return f"{way.offer.gpu_count}x {way.offer.gpu}"
    if isinstance(way, Baseline) and way.gpu:
        return f"{way.gpu_count}x {way.gpu}"
    return _("unknown")


def read_on(offer: RentedOffer | None) -> str:
    """Return the day on which a price was read, how old it is, and how little it is sure."""
    if offer is None:
        return _("unknown")
    sure = word("doubt", "low") if offer.confidence == "low" else ""
    if offer.age_days is None:
        day, old = "", translate_text(age_text(None))
    else:
        day, old = str(offer.as_of), translate_text(age_text(offer.age_days or 0))
        old = _("old") if offer.stale else old
    return " ".join(filter(None, (day, old, sure)))


def old_price(days: object) -> str:
    """Return that a price is over 60 days old, or of no stated day (None); else nothing."""
    if days is None:
        return _("price without a date")
    is_old = isinstance(days, int) and age_of(days) == "old"
    return _("price {days} d old", days=days) if is_old else ""


def percent(share: float) -> str:
    """Return `97 %`."""
    return _in_percent(f"{share * _HUNDRED:.0f}")


def _in_percent(number: str) -> str:
    return _("{n} %", n=number)


def today_cost(cost: TodayCost) -> str:
    """Return what is paid today: `$1,235`, `at least $1,235` where a part has no known price."""
    return money_text(cost.total, at_least=cost.at_least)


def cost_range(cost: OptionCost) -> str:
    """Return `$266 ($231-318)`."""
    ends = cost.low, cost.mid, cost.high
    return money_range(*ends, at_least=cost.at_least) + other_currency(cost.mid)


def money_range(*ends: Decimal, at_least: bool) -> str:
    """Return `$172 ($147-243)` of low, expected and high; `at least $172` of a bill in part."""
    low, mid, high = map(whole_dollars, ends)
    mid = whole_dollars(ends[1], at_least=at_least)
    return mid if at_least or low == high else f"{mid} ({low}-{high.removeprefix('$')})"


def share_saved(option: Option) -> str | None:
    """Return `57 %`, `max 92 %` where a part of its cost has no known price; None where unknown."""
    fraction = option.saves.fraction
    return None if fraction is None else most_words(percent(fraction), at_most=option.cost.at_least)


def most_words(amount: str, *, at_most: bool) -> str:
    """Return `57 %`, `max 57 %` of a saving against a bill of which a part has no known price."""
    return _("max {share}", share=amount) if at_most else amount


def missing(job: JobPlan) -> list[Finding]:
    """Return the findings that say what to measure next."""
    return [finding for finding in job.findings if finding.code == "unmeasured"]


def changes(option: Option, plan: Plan | None = None) -> str:
    """Return what has to be done besides moving; in titles where a plan gives them, else codes."""
    todo = [action(code, plan) if plan else code for code in own_changes(option)]
    return _("with changes: {changes}", changes=_(" + ").join(todo)) if todo else _("unchanged")


def own_changes(option: Option) -> list[str]:
    """Return the codes of what has to be done besides moving."""
    return [code for code in option.actions if code not in _SEEN_IN_WHERE]


def action(code: str, plan: Plan) -> str:
    """Return the title of an action; its code where the plan does not know it."""
    return translate_text(plan.actions.get(code, code))


def confidence(job: JobPlan) -> str:
    """Return how sure the advice is, and each part of it, in words."""
    sure = job.confidence
    if sure is None:
        return _("unknown (run gpucost plan again)")
    graded = (("diagnosis", sure.diagnosis), ("speed", sure.speed), ("price", sure.price))
    parts = [
        _(
            "{part} {level} ({why})",
            part=word("part", name),
            level=word("level", part.level),
            why=translate_text(part.why),
        )
        for name, part in graded
        if part
    ]
    return _("{level}: {parts}", level=word("level", sure.level), parts=_("; ").join(parts))


def benefit(option: Option, plan: Plan) -> str:
    """Return what a change is worth: `$227 in 6 months ($677 saved - $450 work - $0 move)`."""
    gain = option.benefit
    if gain is None or gain.net_usd is None:
        return _("unknown")
    over = _("{n} months", n=gain.periods)
    if plan.period == "run":
        over = _("a run") if gain.periods == 1 else _("{n} runs", n=f"{gain.periods:.0f}")
    if gain.net_usd <= 0:
        return _("none within {over}", over=over)
    moving = gain.moving_usd
    move = "" if moving == 0 else _(" - {usd} move", usd=whole_dollars(moving))
    return _(
        "{net} in {over} ({saved} saved - {work} work{move})",
        net=whole_dollars(gain.net_usd),
        over=over,
        saved=whole_dollars(gain.saves_usd),
        work=whole_dollars(gain.effort_usd),
        move=move,
    )


def evidence(finding: Finding) -> str:
    """Return the readings of a finding: `GPU busy 22 %, CPU 96 %`."""
    return _readings(finding.evidence)


def tested(finding: Finding) -> list[str]:
    """Return the readings of a finding beside the rule's limits: `GPU busy 22 % (under 50 %)`."""
    return [
        reading(e.name, e.value, e.unit)
        + (_(" ({rule})", rule=rule_text) if (rule_text := _limit(e)) else "")
        for e in finding.evidence
    ]


def _limit(evidence: Reading) -> str:
    """Return the comparison that held, a share in percent; empty for words, which are the test."""
    op, limit = (*evidence.test.split(" ", 1), "")[:2]
    try:
        share = float(limit)
    except ValueError:
        return ""
    amount = _in_percent(f"{share * _HUNDRED:g}") if evidence.unit == _SHARE else limit
    compared = word("compared", _COMPARED.get(op, op))
    return _("the rule: {compared} {amount}", compared=compared, amount=amount)


def _remedy(job: JobPlan, code: str) -> Remedy | None:
    return next((remedy for remedy in job.remedies if remedy.code == code), None)


def cures(job: JobPlan, finding: Finding) -> list[str]:
    """Return the actions of a finding, without those that surely gain nothing in this job."""
    effects = {code: remedy.effect for code in finding.actions if (remedy := _remedy(job, code))}
    return [c for c in finding.actions if not (e := effects.get(c)) or not e.low == e.high == 1.0]


def detail(job: JobPlan, code: str) -> str:
    """Return what an action would set and gain: `: num_workers 7; input x1.2-5`; else nothing.

    It would set that on the machine of the recommended option, else on today's.
    A gain is that of the part of the time that the action acts on, not of the whole job.
    """
    remedy = _remedy(job, code)
    if remedy is None:
        return ""
    option = job.choice
    settings = remedy.settings if option is None else (option.settings or {}).get(code, {})
    parts = [", ".join(f"{name} {value}" for name, value in settings.items())]
    if remedy.effect is not None and remedy.effect.high > 1.0:
        low, high = (f"{end:.3g}" for end in (remedy.effect.low, remedy.effect.high))
        part = word("acts_on", remedy.acts_on or "")
        parts.append(_("{part} x{low}-{high}", part=part, low=low, high=high))
    if remedy.kind == "numeric":
        parts.append(_("may change results"))
    more = _("; ").join(phrase for phrase in parts if phrase)
    return _(": {more}", more=more) if more else ""


def against(finding: Finding) -> str:
    """Return the readings that speak against a finding; empty where there are none."""
    return _readings(finding.against)


def _readings(evidence: Iterable[Reading]) -> str:
    return join(reading(e.name, e.value, e.unit) for e in evidence)


def reading(name: str, value: float | str, unit: str | None) -> str:
    """Return one reading for people, a share in percent: `GPU busy 22 %`."""
    name = word("reading", name)
    if isinstance(value, str):
        return f"{name} {translate_text(value)}"
    return f"{name} {percent(value) if unit == _SHARE else f'{value:.4g}'}"


def factor(value: float) -> str:
    """Return a factor as people say it: 1.5, a small one to the cent: 1.07."""
    return f"{value:.1f}" if value >= _ONE_DIGIT else f"{value:.2f}"


def risk(option: Option) -> str:
    """Return what could go wrong with an option."""
    risks = []
    if option.offer.purchase == "spot":
        risks.append(_("may be interrupted"))
    if option.offer.purchase.startswith("reserved"):
        risks.append(_("a commitment"))
    if option.hours.weak or (option.speed is not None and option.speed.weak):
        risks.append(_("weak prediction"))
    if option.offer.stale:
        risks.append(
            old_price(option.offer.age_days) or _("price read on {day}", day=option.offer.as_of)
        )
    return join(risks) or _("low")


def fastest(options: Iterable[Option]) -> Option | None:
    """Return the option with the fewest expected hours."""
    return min(options, key=lambda o: (o.hours.mid, o.cost.mid), default=None)


def energy(record: Way) -> str | None:
    """Return `384 kWh (279-521), 154 kg CO2e (112-208)`; None where it is unknown."""
    energy_use = record.energy
    if energy_use is None or energy_use.kwh is None:
        return None
    kwh, carbon = energy_use.kwh, energy_use.kgco2e
    return _with_unit(kwh, "kWh") + (f", {_with_unit(carbon, 'kg CO2e')}" if carbon else "")


def energy_basis(record: Way) -> str:
    """Return where the energy comes from and what it covers, carbon included; empty if unknown."""
    energy_use = record.energy
    energy = energy_use and (energy_use.kgco2e or energy_use.kwh)
    return energy.basis if energy else ""


def _with_unit(estimate: Estimate, unit: str) -> str:
    low, mid, high = map(_figure, _ends(estimate))
    return f"{mid} {unit}" if low == high else f"{mid} {unit} ({low}-{high})"


def per_work(record: Way) -> str:
    """Return `$2.68 per 1M image`; `unknown` without measured work."""
    per = record.cost_per_work
    if not per:
        return _("unknown")
    return _("${usd} per {unit}", usd=per.mid, unit=word("unit", per.unit))
