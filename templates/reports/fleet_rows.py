"""The rows and sentences of several jobs: what all of them cost, and what each kind is to do."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from templates import report_text
from templates.language.translate import _, join, translate_text, word
from templates.report_text import (
    beside,
    change,
    changes,
    dollars,
    other_currency,
    period_words,
    place,
    whole_dollars,
)
from templates.reports.decision import Row, level, paid_back, work_hours, year

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.plan.bill import CostRange
    from planner.plan.job import JobPlan
    from planner.plan.option import Option
    from planner.plan.plan import (
        Alternative,
        Fleet,
        Placement,
        Plan,
    )

_LONGEST_NAME = 60
_ZERO = Decimal(0)
_NAMES = 8  # of a list; the rest is counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Jobs that stand in one row; the first of them is told.

    Attributes:
        jobs: at least one, in the plan's order.
    """

    jobs: tuple[JobPlan, ...]

    @property
    def first(self) -> JobPlan:
        """The job whose figures are told."""
        return self.jobs[0]

    @property
    def title(self) -> str:
        """`infer-captions`, or `4 x like infer-captions`."""
        name = short(self.first.name)
        if len(self.jobs) == 1:
            return name
        return _("{n} jobs like {name}", n=len(self.jobs), name=name)

    @property
    def before(self) -> Decimal | None:
        """Today's bill of all of them; None where it is not known."""
        each = [job.baseline.cost.total for job in self.jobs]
        known = [usd for usd in each if usd is not None]
        return sum(known, _ZERO) if len(known) == len(each) else None

    @property
    def choices(self) -> tuple[Option, ...]:
        """What each is to do, where it is to do something on its own."""
        return tuple(job.choice for job in self.jobs if job.choice is not None)

    @property
    def at_stake(self) -> Decimal:
        """What their recommended options save in the period."""
        return sum((item.saves.usd or _ZERO for item in self.choices), _ZERO)


def short(name: str) -> str:
    """Return a name as it fits into a row."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def alike(plan: Plan) -> list[Alike]:
    """Return the jobs of a plan in groups of which the same is said, the largest saving first."""
    groups: dict[tuple[object, ...], list[JobPlan]] = {}
    for job in plan.jobs:
        groups.setdefault(_said(job, plan), []).append(job)
    found = [Alike(jobs=tuple(jobs)) for jobs in groups.values()]
    return sorted(found, key=lambda item: (-item.at_stake, -(item.before or _ZERO)))


def _said(job: JobPlan, plan: Plan) -> tuple[object, ...]:
    """Return what a row says of a job: where it runs, what it costs, why, and what to do."""
    today, option, shared = job.baseline, job.choice, plan.placement_of(job)
    advice: tuple[object, ...] = ()
    if option is not None:
        cost = option.cost
        where = place(option.offer, option.count)
        advice = (where, changes(option), cost.low, cost.mid, cost.high, option.confidence)
    return (
        job.kind,
        place(today.offer, today.count),
        today.assumed,
        today.cost.total,
        tuple(finding.code for finding in job.findings),
        shared is not None,
        shared is not None and len(shared.jobs) > 1,
        advice,
    )


def total(plan: Plan) -> str:
    """Return the one recommended total of several jobs, and how it comes about; else nothing."""
    found = plan.recommended
    if found is None:  # a plan of an earlier version
        return ""
    least = _("at least ") if found.at_least else ""
    sentence = _(
        "Recommended: {least}{usd} {period}",
        least=least,
        usd=dollars(found.cost.mid) + other_currency(found.cost.mid),
        period=period_words(plan),
    )
    if found.saves.fraction:
        sentence += _(
            " in place of {usd}, {less}",
            usd=dollars(found.cost_before),
            less=change(100.0 * found.saves.fraction),
        )
    else:
        sentence += _(", as today")
    if found.packed:
        more = len(found.packed) - _NAMES
        rest = _(" and {more} more", more=more) if more > 0 else ""
        taken = plan.fleet.taken if plan.fleet else None
        there = f" {_machine(taken)}" if taken else ""
        jobs = join(found.packed[:_NAMES])
        sentence += _("; {jobs}{rest} share{there}", jobs=jobs, rest=rest, there=there)
    if found.unknown:
        sentence += _("; excludes {jobs} (cost unknown)", jobs=join(found.unknown))
    return _("{step}.", step=sentence)


def alternative(found: Alternative, plan: Plan) -> str:
    """Return what all jobs cost with some of them on another machine type."""
    moved = len(found.jobs)
    who = _("all jobs") if moved == len(plan.jobs) else _("{n} of the jobs", n=moved)
    return _(
        "{who} on {machine}: {many} in total, {usd} {period}, plus the one-time cost of moving",
        who=who,
        machine=_machine(found),
        many=_("1 GPU") if found.gpus_after == 1 else _("{n} GPUs", n=found.gpus_after),
        usd=dollars(found.cost_after),
        period=period_words(plan),
    )


def _machine(found: Alternative) -> str:
    return _("{gpu} at {where}", gpu=found.offer.gpu, where=place(found.offer))


_LEVELS = ("good", "fair", "low")


def paid(plan: Plan, groups: Sequence[Alike]) -> str:
    """Return what several jobs cost today, and of how many kinds they are."""
    known = [job.baseline.cost for job in plan.jobs if job.baseline.cost.total is not None]
    before = sum((cost.total or _ZERO for cost in known), _ZERO)
    least = _("at least ") if any(cost.at_least for cost in known) else ""
    n = len(groups)
    kinds = _(" of {n} kinds", n=n) if n > 1 else _(" of 1 kind")
    kinds = kinds if n < len(plan.jobs) else ""
    unknown = len(plan.jobs) - len(known)
    without = _("; what {n} of them cost is unknown", n=unknown) if unknown else ""
    return _(
        "You pay {least}{usd} {period} for {n} jobs{kinds}{without}.",
        least=least,
        usd=report_text.beside(before),
        period=report_text.period_words(plan),
        n=len(plan.jobs),
        kinds=kinds,
        without=without,
    )


def held(fleet: Fleet) -> str:
    """Return how many GPUs are held, and how many are enough."""
    return _(
        "{before} GPUs are in use; {after} would be enough.",
        before=fleet.gpus_before,
        after=fleet.gpus_after,
    )


def sureness(plan: Plan) -> str:
    """Return how sure the advice is, as counts of jobs."""
    levels = Counter(job.confidence.level if job.confidence else "unknown" for job in plan.jobs)
    sentence = [
        _(
            "{level} for {n} of {all} jobs",
            level=word("level", level),
            n=levels[level],
            all=len(plan.jobs),
        )
        for level in (*_LEVELS, "unknown")
        if levels[level]
    ]
    return _("Confidence of the advice: {levels}.", levels=join(sentence))


def fleet_rows(plan: Plan) -> list[Row]:
    """Return what all jobs cost today, by sharing alone, and as recommended."""
    found, fleet = plan.recommended, plan.fleet
    if found is None:
        return []
    rows = [Row(title=_("today"), what="", cost=report_text.whole_dollars(found.cost_before))]
    if fleet is not None and fleet.gpus_after < fleet.gpus_before:
        saves = year(fleet.cost_before - fleet.cost_after, plan)
        cost = report_text.whole_dollars(fleet.cost_after)
        rows.append(Row(title=_("sharing today's GPUs"), what="", cost=cost, saves=saves))
    days = plan.roi.payback_days
    back = "-" if days is None else _("{n} days", n=f"{days:.0f}")
    row = Row(
        title=_("recommended"),
        what="",
        cost=_range(found.cost.low, found.cost.mid, found.cost.high, at_least=found.at_least),
        saves=year(found.cost_before - found.cost.mid, plan, at_most=found.at_least),
        work=work_hours(plan.roi.effort_hours),
        paid_back=back,
        chosen=True,
    )
    return [*rows, row]


def _range(*ends: Decimal, at_least: bool) -> str:
    low, mid, high = (report_text.whole_dollars(end) for end in ends)
    least = ">= " if at_least else ""
    return f"{least}{mid}" if low == high else f"{least}{mid} ({low}-{high.removeprefix('$')})"


def group_row(group: Alike, plan: Plan) -> Row:
    """Return the row of jobs that are alike: dollars and hours are of all of them together.

    The row's title is the cause.
    """
    job, n = group.first, len(group.jobs)
    cause = job.verdict.code if job.verdict else "unmeasured"
    sure = level(job.confidence.level if job.confidence else None)
    shared, option = plan.placement_of(job), job.choice
    if shared is not None and len(shared.jobs) > 1:
        what = _("share: {gpus}", gpus=_gpus(group, plan))
        return Row(title=cause, what=what, cost=_("shared"), sure=sure)
    if shared is not None:
        cost = report_text.whole_dollars(sum((p.cost for p in _places(group, plan)), _ZERO))
        what = _("run on {gpus}", gpus=_gpus(group, plan))
        return Row(title=cause, what=what, cost=cost, sure=sure)
    if option is None:
        cost = report_text.whole_dollars(group.before)
        return Row(title=cause, what=_("keep as is"), cost=cost, sure=sure)
    costs = [item.cost for item in group.choices]
    ends = (sum((getattr(cost, end) for cost in costs), _ZERO) for end in ("low", "mid", "high"))
    saves = None if option.saves.usd is None else group.at_stake
    worth = option.benefit
    how = report_text.changes(option, plan)
    return Row(
        title=cause,
        what=_(
            "{id}: {where}, {how}",
            id=option.id,
            where=report_text.place(option.offer, option.count),
            how=how,
        ),
        cost=_range(*ends, at_least=option.cost.at_least),
        saves=year(saves, plan, at_most=option.cost.at_least),
        work=work_hours(n * worth.effort_hours) if worth else _("unknown"),
        paid_back=paid_back(option, plan),
        price=report_text.read_on(option.offer),
        sure=level(option.confidence) if option.confidence else sure,
    )


def _gpus(group: Alike, plan: Plan) -> str:
    """Return on which GPUs jobs of a group are: `GPU 1`, `GPUs 1, 2, 3`."""
    ids = sorted(place.id for place in _places(group, plan))
    shown = join(map(str, ids[:_NAMES])) + (" ..." if len(ids) > _NAMES else "")
    return _("GPUs {ids}", ids=shown) if len(ids) > 1 else _("GPU {ids}", ids=shown)


def _places(group: Alike, plan: Plan) -> list[Placement]:
    """Return the GPUs that jobs of a group are on, each once."""
    each = [place for job in group.jobs if (place := plan.placement_of(job))]
    return list({place.id: place for place in each}.values())


def names(some: Sequence[str]) -> str:
    """Return names between commas, cut where long, those beyond a few counted."""
    shown = join(short(name) for name in some[:_NAMES])
    more = len(some) - _NAMES
    return shown + (_(" and {more} more", more=more) if more > 0 else "")


def speeds(placement: Placement) -> str:
    """Return how fast the slowest of the jobs on a GPU is expected to be, and at worst."""
    each = placement.relative_speed.values()
    mid, low = min(item.mid for item in each), min(item.low for item in each)
    return f"{mid:.2f} ({low:.2f})"


def risks(plan: Plan) -> list[tuple[str, str]]:
    """Return what may go wrong on shared GPUs, each sentence once, beside the GPUs it is of."""
    where: dict[str, list[str]] = {}
    for placement in plan.fleet.recommended if plan.fleet else ():
        for risk in placement.risks or ():
            where.setdefault(risk, []).append(str(placement.id))
    return [(names(tuple(ids)), translate_text(risk)) for risk, ids in where.items()]


def bottom_line(plan: Plan) -> str:
    """Return cost, work and payback of what is recommended; empty where the plan does not know."""
    if all(_is_left(job) for job in plan.jobs) and not _is_packed(plan):
        return _("Nothing needs to be done, so there is nothing to pay back.")
    if len(plan.jobs) == 1:
        return _of_job(plan.jobs[0], plan)
    return _of_all(plan)


def _is_left(job: JobPlan) -> bool:
    """Return whether a job whose bill is known stays as it is, and nothing is to be tried first."""
    today = job.baseline
    stays = job.choice is None and job.first_step is None and not today.breaks
    return stays and today.cost.total is not None and not today.assumed


def _is_packed(plan: Plan) -> bool:
    return plan.recommended is not None and bool(plan.recommended.packed)


def _of_job(job: JobPlan, plan: Plan) -> str:
    option = job.choice
    if option is None or option.benefit is None:
        return ""
    least = _("at least ") if option.cost.at_least else ""
    return _(
        "Expected: {cost} {period}. Work: {work} (our estimate). {payback}",
        cost=least + beside(option.cost.mid),
        period=period_words(plan),
        work=work_hours(option.benefit.effort_hours),
        payback=_payback(paid_back(option, plan)),
    )


def _of_all(plan: Plan) -> str:
    found = plan.recommended
    if found is None or not found.saves.fraction:
        return ""
    row = fleet_rows(plan)[-1]
    least = _("at least ") if found.at_least else ""
    return _(
        "Expected: {cost} {period}{range}. Work: {work} (our estimate). {payback}",
        cost=least + beside(found.cost.mid),
        period=period_words(plan),
        range=_bill_range(found.cost, plan),
        work=row.work,
        payback=_payback(_("unknown") if row.paid_back == "-" else row.paid_back),
    )


def _payback(time: str) -> str:
    """Return when a change has paid for itself as a sentence."""
    if time == _("does not pay back"):
        return _("It does not pay back.")
    return _("Payback: {time}.", time=time)


def _bill_range(cost: CostRange, plan: Plan) -> str:
    """Return between what the cost is expected, or that only today's machines and prices count."""
    if cost.low == cost.high:
        if plan.fleet is None or plan.fleet.taken is not None:
            return ""
        packed = set(plan.recommended.packed) if plan.recommended else set()
        if any(job.choice for job in plan.jobs if job.name not in packed):
            return ""
        return _(" (no range: fewer of today's machines at today's price)")
    return _(
        " ({low}-{high} in nine cases out of ten)",
        low=whole_dollars(cost.low),
        high=whole_dollars(cost.high).removeprefix("$"),
    )
