"""The rows and sentences of several jobs: what all of them cost, and what each kind is to do."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING

from templates import report_text
from templates.language.speech import join, say, told, word
from templates.reports.alike import Alike, short
from templates.reports.decision import Row, level, paid_back, year

if TYPE_CHECKING:  # the words need to know the values' types, not the planner
    from collections.abc import Sequence

    from planner.plan_document.document import FleetDocument, PlacementDocument, PlanDocument

_NAMES = 8  # of a list; the rest is counted
_LEVELS = ("good", "fair", "low")
_ZERO = Decimal(0)


def paid(plan: PlanDocument, groups: Sequence[Alike]) -> str:
    """Return what several jobs cost today, and of how many kinds they are."""
    known = [job.baseline.cost for job in plan.jobs if job.baseline.cost.total is not None]
    before = sum((cost.total or _ZERO for cost in known), _ZERO)
    least = say("at least ") if any(cost.at_least for cost in known) else ""
    n = len(groups)
    kinds = say(" of {n} kinds", n=n) if n > 1 else say(" of 1 kind")
    kinds = kinds if n < len(plan.jobs) else ""
    unknown = len(plan.jobs) - len(known)
    without = say("; what {n} of them cost is unknown", n=unknown) if unknown else ""
    return say(
        "You pay {least}{usd} {period} for {n} jobs{kinds}{without}.",
        least=least,
        usd=report_text.beside(before),
        period=report_text.period_words(plan),
        n=len(plan.jobs),
        kinds=kinds,
        without=without,
    )


def held(fleet: FleetDocument) -> str:
    """Return how many GPUs are held, and how many are enough."""
    many = {"before": fleet.gpus_before, "after": fleet.gpus_after}
    if fleet.gpus_after == 1:
        return say("{before} GPUs are held; {after} is enough.", **many)
    return say("{before} GPUs are held; {after} are enough.", **many)


def sureness(plan: PlanDocument) -> str:
    """Return how sure the advice is, as counts of jobs."""
    levels = Counter(job.confidence.level if job.confidence else "unknown" for job in plan.jobs)
    said = [
        say(
            "{level} for {n} of {all} jobs",
            level=word("level", level),
            n=levels[level],
            all=len(plan.jobs),
        )
        for level in (*_LEVELS, "unknown")
        if levels[level]
    ]
    return say("Confidence of the advice: {levels}.", levels=join(said))


def fleet_rows(plan: PlanDocument) -> list[Row]:
    """Return what all jobs cost today, by sharing alone, and as recommended."""
    found, fleet = plan.recommended, plan.fleet
    if found is None:
        return []
    rows = [Row(title=say("today"), what="", cost=report_text.whole_dollars(found.cost_before))]
    if fleet is not None and fleet.gpus_after < fleet.gpus_before:
        saves = year(fleet.cost_before - fleet.cost_after, plan)
        cost = report_text.whole_dollars(fleet.cost_after)
        rows.append(Row(title=say("sharing today's GPUs"), what="", cost=cost, saves=saves))
    days = plan.roi.payback_days
    back = "-" if days is None else say("{n} days", n=f"{days:.0f}")
    row = Row(
        title=say("recommended"),
        what="",
        cost=_range(found.cost.low, found.cost.mid, found.cost.high, at_least=found.at_least),
        saves=year(found.cost_before - found.cost.mid, plan, at_most=found.at_least),
        work=f"{plan.roi.effort_hours:g} h",
        paid_back=back,
        chosen=True,
    )
    return [*rows, row]


def _range(*ends: Decimal, at_least: bool) -> str:
    low, mid, high = (report_text.whole_dollars(end) for end in ends)
    least = ">= " if at_least else ""
    return f"{least}{mid}" if low == high else f"{least}{mid} ({low}-{high.removeprefix('$')})"


def group_row(group: Alike, plan: PlanDocument) -> Row:
    """Return the row of jobs that are alike: dollars and hours are of all of them together.

    The row's title is the cause.
    """
    job, n = group.first, len(group.jobs)
    cause = job.verdict.code if job.verdict else "unmeasured"
    sure = level(job.confidence.level if job.confidence else None)
    shared, option = plan.placement_of(job), job.choice
    if shared is not None and len(shared.jobs) > 1:
        what = say("share: {gpus}", gpus=_gpus(group, plan))
        return Row(title=cause, what=what, cost=say("shared"), sure=sure)
    if shared is not None:
        cost = report_text.whole_dollars(sum((p.cost for p in _places(group, plan)), _ZERO))
        what = say("run on {gpus}", gpus=_gpus(group, plan))
        return Row(title=cause, what=what, cost=cost, sure=sure)
    if option is None:
        cost = report_text.whole_dollars(group.before)
        return Row(title=cause, what=say("leave it"), cost=cost, sure=sure)
    costs = [one.cost for one in group.choices]
    ends = (sum((getattr(cost, end) for cost in costs), _ZERO) for end in ("low", "mid", "high"))
    saves = None if option.saves.usd is None else group.at_stake
    worth = option.benefit
    how = report_text.changes(option, plan)
    return Row(
        title=cause,
        what=say(
            "{id}: {where}, {how}",
            id=option.id,
            where=report_text.place(option.offer, option.count),
            how=how,
        ),
        cost=_range(*ends, at_least=option.cost.at_least),
        saves=year(saves, plan, at_most=option.cost.at_least),
        work=f"{n * worth.effort_hours:g} h" if worth else say("unknown"),
        paid_back=paid_back(option, plan),
        price=report_text.read_on(option.offer),
        sure=level(option.confidence) if option.confidence else sure,
    )


def _gpus(group: Alike, plan: PlanDocument) -> str:
    """Return on which GPUs jobs of a group are: `GPU 1`, `GPUs 1, 2, 3`."""
    ids = sorted(place.id for place in _places(group, plan))
    shown = join(map(str, ids[:_NAMES])) + (" ..." if len(ids) > _NAMES else "")
    return say("GPUs {ids}", ids=shown) if len(ids) > 1 else say("GPU {ids}", ids=shown)


def _places(group: Alike, plan: PlanDocument) -> list[PlacementDocument]:
    """Return the GPUs that jobs of a group are on, each once."""
    each = [place for job in group.jobs if (place := plan.placement_of(job))]
    return list({place.id: place for place in each}.values())


def names(some: Sequence[str]) -> str:
    """Return names between commas, cut where long, those beyond a few counted."""
    shown = join(short(name) for name in some[:_NAMES])
    more = len(some) - _NAMES
    return shown + (say(" and {more} more", more=more) if more > 0 else "")


def speeds(placement: PlacementDocument) -> str:
    """Return how fast the slowest of the jobs on a GPU is expected to be, and at worst."""
    each = placement.relative_speed.values()
    mid, low = min(one.mid for one in each), min(one.low for one in each)
    return f"{mid:.2f} ({low:.2f})"


def risks(plan: PlanDocument) -> list[tuple[str, str]]:
    """Return what may go wrong on shared GPUs, each sentence once, beside the GPUs it is of."""
    where: dict[str, list[str]] = {}
    for placement in plan.fleet.recommended if plan.fleet else ():
        for risk in placement.risks or ():
            where.setdefault(risk, []).append(str(placement.id))
    return [(names(tuple(ids)), told(risk)) for risk, ids in where.items()]
