"""The rows and sentences of several jobs: what all of them cost, and what each kind is to do."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from msgspec import UNSET

from templates import report_text
from templates.language.translate import _, join, translate_text, word
from templates.report_text import changes, dollars, machine_name, money_range, period_words
from templates.reports.decision import Row, level, paid_back, staying, work_hours, year

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.plan.job import JobPlan
    from planner.plan.option import Option
    from planner.plan.plan import Alternative, Fleet, Placement, Plan

_LONGEST_NAME = 60
_ZERO = Decimal(0)
_RUN = re.compile(r"-\d[\d_\[\]]*$")  # the number of a run, behind the name of its job
_NAMES = 8  # of a list; the rest is counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Jobs that stand in one row; the first of them is told.

    Attributes:
        jobs: at least one, in the plan's order.
        repeated: the name of the job of which they are runs; empty: they are several jobs.
    """

    jobs: tuple[JobPlan, ...]
    repeated: str = ""

    @property
    def first(self) -> JobPlan:
        """The job whose figures are told."""
        return self.jobs[0]

    @property
    def title(self) -> str:
        """`infer-captions`, `4 jobs like infer-captions`, or `4 runs like infer`."""
        name = short(self.first.name)
        if len(self.jobs) == 1:
            return name
        if self.repeated:
            return _("{n} runs like {name}", n=len(self.jobs), name=short(self.repeated))
        return _("{n} jobs like {name}", n=len(self.jobs), name=name)

    @property
    def before(self) -> Decimal | None:
        """Today's bill of all of them; None where it is not priced."""
        return _sum([job.baseline.cost.total for job in self.jobs])

    @property
    def ended(self) -> Decimal | None:
        """What is still paid for those that end, by ending them alone; None where unknown."""
        return _sum([job.ended.cost for job in self.jobs if job.ended])

    def after(self, plan: Plan) -> Decimal | None:
        """Return what is still paid for those that end or stay as they are; None where unknown.

        Machines that are packed anew are paid by those that go on there, by their bills of today.
        """
        packed = set(plan.recommended.packed if plan.recommended else ())
        if not packed.intersection(job.name for job in self.jobs):
            return self.ended if self.first.ended else self.before
        return sum((_part(job, plan) for job in self.jobs if not job.ended), _ZERO)

    @property
    def choices(self) -> tuple[Option, ...]:
        """What each is to do, where it is to do something on its own."""
        return tuple(job.choice for job in self.jobs if job.choice is not None)

    @property
    def at_stake(self) -> Decimal:
        """What their recommended options save in the period."""
        return sum((item.saves.usd or _ZERO for item in self.choices), _ZERO)

    @property
    def wasted(self) -> Decimal:
        """What their first findings say that they waste."""
        first = (job.program_finding for job in self.jobs)
        return sum((f.waste_usd or _ZERO for f in first if f), _ZERO)


def _sum(costs: Sequence[Decimal | None]) -> Decimal | None:
    return None if None in costs else sum((usd for usd in costs if usd is not None), _ZERO)


def _part(job: JobPlan, plan: Plan) -> Decimal:
    """Return what a job pays of machines that are packed anew, on which it shares no GPU."""
    groups = plan.fleet.recommended_groups if plan.fleet else ()
    lines, names = next((g.lines, set(g.jobs)) for g in groups if job.name in g.jobs)
    staying = [j for j in plan.jobs if j.name in names and j.placement is None and not j.ended]
    bills = {peer.name: peer.baseline.cost.total or _ZERO for peer in staying}
    total, paid = sum(bills.values(), _ZERO), sum((line.usd for line in lines), _ZERO)
    return paid * bills[job.name] / total if total else paid / len(staying)


def short(text: str, longest: int = _LONGEST_NAME) -> str:
    """Return a text of at most so many characters, by default a name as it fits into a row."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def group_alike(plan: Plan) -> list[Alike]:
    """Return the jobs of a plan in groups of which the same is said, the largest saving first.

    Where none is, that which wastes most comes first.
    """
    owners: dict[str, tuple[str | None, ...]] = {}
    for team in () if plan.teams is UNSET else plan.teams:
        for name in team.jobs:
            owners[name] = (*owners.get(name, ()), team.name)
    groups: dict[tuple[object, ...], list[JobPlan]] = {}
    for job in plan.jobs:
        name = _RUN.sub("", job.name) if plan.period == "run" else ""
        group_key = (name, owners.get(job.name), job.ended, *_shown_facts(job, plan))
        groups.setdefault(group_key, []).append(job)
    kinds = [Alike(jobs=tuple(jobs), repeated=str(key[0])) for key, jobs in groups.items()]
    return sorted(kinds, key=lambda item: (-item.at_stake, -item.wasted, -(item.before or _ZERO)))


def _shown_facts(job: JobPlan, plan: Plan) -> tuple[object, ...]:
    """Return what a row says of a job: where it runs, what it costs, why, and what to do."""
    today, option, shared = job.baseline, job.choice, plan.placement_of(job)
    advice: tuple[object, ...] = ()
    if option is not None:
        cost = option.cost
        where = machine_name(option.offer, option.count)
        advice = (where, changes(option), cost.low, cost.mid, cost.high, option.confidence)
        advice = advice[:2] if plan.period == "run" else advice
    return (
        job.kind,
        machine_name(today.offer, today.count),
        today.assumed,
        None if plan.period == "run" else today.cost.total,
        tuple(finding.code for finding in job.findings),
        shared is not None,
        shared is not None and len(shared.jobs) > 1,
        advice,
    )


def alternative(packing: Alternative, plan: Plan) -> str:
    """Return what all jobs cost with some of them on another machine type."""
    moved = len(packing.jobs)
    who = _("all jobs") if moved == len(plan.jobs) else _("{n} of the jobs", n=moved)
    machine = _("{gpu} at {where}", gpu=packing.offer.gpu, where=machine_name(packing.offer))
    if moved < len(plan.jobs):
        machine = _("{machine}, the others on today's machines", machine=machine)
    return _(
        "{who} on {machine}: {many} in total, {usd} {period}, plus the one-time cost of moving",
        who=who,
        machine=machine,
        many=_("1 GPU") if packing.gpus_after == 1 else _("{n} GPUs", n=packing.gpus_after),
        usd=dollars(packing.cost_after),
        period=period_words(plan),
    )


_LEVELS = ("good", "fair", "low")


def gpus_sentence(fleet: Fleet, *, advised: bool = False) -> str:
    """Return how many GPUs are held, and how many are enough: at home, or as is advised."""
    return _(
        "{before} GPUs are in use; {after} would be enough.",
        before=fleet.gpus_before,
        after=((advised and fleet.taken) or fleet).gpus_after,
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


def group_row(group: Alike, plan: Plan) -> Row:
    """Return the row of jobs that are alike: dollars and hours are of all of them together.

    The row's title is the cause.
    """
    job, n = group.first, len(group.jobs)
    cause = job.verdict.code if job.verdict else "unmeasured"
    sure = level(job.confidence.level if job.confidence else None)
    shared, option = plan.placement_of(job), job.choice
    if job.ended:
        usd = group.after(plan)
        cost = _("nothing") if usd == 0 else report_text.whole_dollars(usd)
        step = staying(job, plan) if job.is_looked_at else _("stop, no kernel ran")
        return Row(title=cause, what=step, cost=cost, sure=sure)
    if shared is not None and len(shared.jobs) > 1:
        placement = _("share: {gpus}", gpus=_gpus(group, plan))
        return Row(title=cause, what=placement, cost=_("shared"), sure=sure)
    if shared is not None:
        cost = report_text.whole_dollars(sum((p.cost for p in _places(group, plan)), _ZERO))
        placement = _("run on {gpus}", gpus=_gpus(group, plan))
        return Row(title=cause, what=placement, cost=cost, sure=sure)
    if option is None:
        cost = report_text.whole_dollars(group.after(plan))
        return Row(title=cause, what=staying(job, plan), cost=cost, sure=sure)
    costs = [item.cost for item in group.choices]
    ends = (sum((getattr(cost, end) for cost in costs), _ZERO) for end in ("low", "mid", "high"))
    saves = None if option.saves.usd is None else group.at_stake
    gain = option.benefit
    how = report_text.changes(option, plan)
    return Row(
        title=cause,
        what=_(
            "{id}: {where}, {how}",
            id=option.id,
            where=report_text.where_it_runs(option),
            how=how,
        ),
        cost=money_range(*ends, at_least=option.cost.at_least),
        saves=year(saves, plan, at_most=option.cost.at_least),
        work=work_hours(n * gain.effort_hours) if gain else _("unknown"),
        paid_back=paid_back(option, plan),
        price=report_text.read_on(option.offer),
        sure=level(option.confidence) if option.confidence else sure,
    )


def _gpus(group: Alike, plan: Plan) -> str:
    """Return on which GPUs jobs of a group are: `GPU 1`, `GPUs 1, 2, 3`."""
    ids = sorted(placement.id for placement in _places(group, plan))
    shown = join(map(str, ids[:_NAMES])) + (" ..." if len(ids) > _NAMES else "")
    return _("GPUs {ids}", ids=shown) if len(ids) > 1 else _("GPU {ids}", ids=shown)


def _places(group: Alike, plan: Plan) -> list[Placement]:
    """Return the GPUs that jobs of a group are on, each once."""
    places = [placement for job in group.jobs if (placement := plan.placement_of(job))]
    return list({placement.id: placement for placement in places}.values())


def names(some: Sequence[str]) -> str:
    """Return names between commas, cut where long, those beyond a few counted."""
    shown = join(short(name) for name in some[:_NAMES])
    more = len(some) - _NAMES
    return shown + (_(" and {more} more", more=more) if more > 0 else "")


def speeds(placement: Placement) -> str:
    """Return how fast the slowest of the jobs on a GPU is expected to be, and at worst."""
    speeds = placement.relative_speed.values()
    mid, low = min(item.mid for item in speeds), min(item.low for item in speeds)
    return f"{mid:.2f} ({low:.2f})"


def risks(plan: Plan) -> list[tuple[str, str]]:
    """Return what may go wrong on shared GPUs, each sentence once, beside the GPUs it is of."""
    where: dict[str, list[str]] = {}
    for placement in plan.placements:
        for risk in placement.risks or ():
            where.setdefault(risk, []).append(str(placement.id))
    return [(names(tuple(ids)), translate_text(risk)) for risk, ids in where.items()]
