"""What is rented and what it costs, of a plan that was just made: rounded as it is written."""

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from textwrap import indent

from msgspec import UNSET, structs

from planner.actions.action import Action, Range
from planner.actions.settings import Settings
from planner.choice.option import Option as ChosenOption
from planner.fleet.fleet import Fleet as PackedFleet
from planner.fleet.fleet import Placement as PackedGpu
from planner.fleet.fleet import Together
from planner.models.costs import Benefit, WorkCost
from planner.models.document import encode, messages_in, messages_of, to_text
from planner.models.estimate import Interval, as_written, digits, digits_if_set, digits_of
from planner.plan.bill import CostRange, OptionCost, TodayCost, cost_lines, offer_on, that_start
from planner.plan.confidence import if_taken
from planner.plan.draft import JobDraft, PlanDraft
from planner.plan.job import Answer, Ended, JobPlan, Remedy, Way
from planner.plan.notes import core_limits, memory_limits, risks, roll_back, timetable
from planner.plan.option import Baseline, BilledShare, Option
from planner.plan.plan import Alternative, Fleet, Group, Placement, Plan, RecommendedTotal
from planner.plan.use import bill_use, job_uses, teams
from planner.profile.source import source_gpu
from planner.signals.finding import Saved
from planner.signals.signals import saw_one_instant
from pricing.billing.lines import QuoteLine
from pricing.catalog.price_age import sellers_of
from pricing.message import Message
from pricing.money import cents, in_cents, without_zeros


def baseline_document(job: JobDraft, as_of: date) -> Baseline:
    """Return how a job runs today, of a plan for a day."""
    baseline, bill, part = job.baseline, job.baseline.quote, job.baseline.tenancy
    return Baseline(
        assumed=baseline.assumed,
        breaks=baseline.broken,
        gpu=source_gpu(job.profile).name,
        gpu_count=job.profile.gpu_count,
        owned=bool(job.profile.hardware.owned),
        offer=offer_on(baseline.offer, as_of) if baseline.offer else None,
        count=baseline.count,
        replicas=baseline.replicas,
        share=BilledShare(held=part.held, of=part.of, beside=part.beside) if part else None,
        hours=as_written(baseline.hours),
        cost=TodayCost(
            total=in_cents(baseline.cost),
            lines=cost_lines(bill.lines) if bill else (),
            at_least=bill is not None and bill.at_least,
            unknown=tuple(bill.unknown) if bill else (),
        ),
        cost_per_work=_per_work(job.work_cost),
        energy=as_written(job.energy),
        power_cap=as_written(job.power_cap) if job.power_cap else None,
        machine=job.machine,
    )


def option_document(option: ChosenOption, job: JobDraft, as_of: date) -> Option:
    """Return one way to run a job."""
    sources = option.by_source
    return Option(
        id=option.id,
        offer=offer_on(option.offer, as_of),
        count=option.count,
        provisionable=option.provisionable,
        actions=option.actions,
        settings=option.settings,
        machine=option.machine,
        sharing=None,
        distribution=as_written(option.distribution) if option.distribution else None,
        speed=as_written(option.speed),
        hours=as_written(option.hours),
        cost=OptionCost(
            low=cents(option.usd_range.low),
            mid=cents(option.cost),
            high=cents(option.usd_range.high),
            lines=cost_lines(option.quote.lines),
            at_least=option.quote.at_least,
            unknown=tuple(option.quote.unknown),
            by_hours=as_written(option.by_hours),
            by_price=as_written(option.by_price),
            by_speed=as_written(sources["speed"]) if sources else UNSET,
            by_cure=as_written(sources["cure"]) if sources else UNSET,
            by_use=as_written(sources["use"]) if sources else UNSET,
            basis=_basis(option, as_of),
        ),
        cost_per_work=_per_work(option.work_cost),
        energy=as_written(option.energy),
        saves=as_written(option.saves),
        move=as_written(option.move) if option.move else None,
        benefit=_worth(option.benefit),
        confidence=if_taken(job.confidence.diagnosis, option, job.baseline, as_of).level,
        why=option.why,
        scaling=option.scaling or UNSET,
    )


def _basis(option: ChosenOption, as_of: date) -> str:
    """Return where the range of a bill comes from."""
    age = max(0, (as_of - option.offer.as_of).days)
    kind = sellers_of(option.offer.provider, option.offer.purchase)
    return Message("cost.basis", hours=option.hours.basis, days=age, kind=kind)


def _per_work(cost: WorkCost | None) -> WorkCost | None:
    """Return cents, or four significant digits of what is less than a dollar."""
    if cost is None or cost.mid >= 1:
        return cost and WorkCost(unit=cost.unit, mid=cents(cost.mid))
    return WorkCost(unit=cost.unit, mid=without_zeros(Decimal(f"{cost.mid:.4g}")))


def _worth(benefit: Benefit) -> Benefit:
    return structs.replace(as_written(benefit), periods=without_zeros(benefit.periods))


def job_document(job: JobDraft, as_of: date, placement: int | None = None) -> JobPlan:
    """Return what is planned for one job.

    Args:
        job: its plan.
        as_of: day of prices and rules.
        placement: the GPU that it is to share; None where it goes its own way.
    """
    document = JobPlan(
        name=job.name,
        kind=job.profile.job.kind,
        baseline=baseline_document(job, as_of),
        findings=job.findings,
        remedies=job.remedies,
        options=tuple(option_document(option, job, as_of) for option in job.options),
        rejected=job.rejected,
        recommended=job.recommended,
        smallest_change=job.named.smallest_change,
        cheapest=job.named.cheapest,
        first_launchable=job.named.first_launchable,
        confidence=job.confidence,
        placement=placement,
        busy_fraction=digits_if_set(
            None if saw_one_instant(job.profile) else job.profile.paid_busy_fraction
        ),
        ended=UNSET if job.remaining is None else _ended(job, job.remaining),
    )
    document = structs.replace(document, answer=_answer(document, job))
    return structs.replace(document, messages=messages_of(document))


def _ended(job: JobDraft, lines: Iterable[QuoteLine]) -> Ended:
    return Ended(
        gpus=job.profile.gpu_count * job.baseline.replicas,
        cost=in_cents(job.remaining_usd),
        lines=cost_lines(lines),
        leaving_first=job.leaving_first,
    )


def _answer(document: JobPlan, job: JobDraft) -> Answer:
    """Return what the plan answers: now, next, the cheapest, what proves it, why it stays."""
    choice, cheapest, now = job.choice, job.option(job.named.cheapest), job.now
    fails = document.verdict is not document.program_finding  # first another host, then its cures
    is_now = choice is not None and now is not None and now.option == choice.id
    moves = choice is not None and not is_now and (fails or not job.baseline.is_here(choice.offer))
    is_said = cheapest is None or cheapest is choice
    if now is not None and cheapest is not None and not is_said:
        is_same = cheapest.actions == now.actions and job.baseline.is_here(cheapest.offer)
        is_said = now.kind == "end" or is_same
    return Answer(
        now=now,
        next=_way(document.choice if moves else None, job),
        cheapest=None if is_said else _way(document.option(document.cheapest), job),
        proof=job.proof,
        reason=job.reason,
        steady=job.steady or UNSET,
        off_hours=job.off_hours or UNSET,
    )


def _way(option: Option | None, job: JobDraft) -> Way | None:
    """Return an option in the figures that decide."""
    if option is None:
        return None
    move, benefit, offer = option.move, option.benefit, option.offer
    factor, fixed = job.work.time_factor(option.hours.mid, option.actions), job.work.fixed_work
    return Way(
        option=option.id,
        usd=option.cost.ends,
        saves=option.saves,
        time_factor=digits_of(factor if fixed else None),
        purchase=offer.purchase,
        effort_hours=benefit.effort_hours if benefit else 0,
        move_usd=benefit.moving_usd if benefit else None,
        move_hours=move.hours if move else 0,
        pays_back_periods=benefit.pays_back_periods if benefit else None,
        price_age_days=None if offer.age_days is None else offer.age_days or 0,
        start=(*(("provision",) if option.provisionable else ()), *that_start(offer)),
    )


def remedy_documents(
    remedies: Iterable[Action], settings: Mapping[str, Settings], priced: Mapping[str, Saved]
) -> tuple[Remedy, ...]:
    """Return the actions on the job itself that apply to it, with what they would set and gain."""
    return tuple(
        Remedy(
            code=remedy.code,
            kind=remedy.kind,
            acts_on=remedy.part,
            effect=_effect(remedy.gain),
            rests_on=remedy.grade,
            settings=settings[remedy.code],
            effort_hours=remedy.effort_hours,
            saves=priced.get(remedy.code),
        )
        for remedy in remedies
    )


def _effect(gain: Range | None) -> Interval | None:
    if gain is None:
        return None
    low, mid, high = (round(speed, 3) for speed in gain)
    return Interval(low=low, mid=mid, high=high)


def packed_text(job: JobDraft, as_of: date) -> bytes:
    """Return the job as it would stand in plan.json if it shared no GPU (`LeftOut.text`)."""
    text = to_text(job_document(job, as_of))
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 1)


def plan_text(plan: Plan, drafts: Sequence[JobDraft]) -> Iterator[str]:
    """Yield the text of a plan in pieces, job by job, so that never all of it is in memory.

    Args:
        plan: the plan.
        drafts: its jobs, in order; of those that are summarized the packed text is taken.
    """
    before, after = to_text(structs.replace(plan, jobs=())).split('\n "jobs": []', 1)
    yield f'{before}\n "jobs": ['
    for number, (job, draft) in enumerate(zip(plan.jobs, drafts, strict=True)):
        text = to_text(job) if not draft.left_out.text else _whole_text(job, draft)
        yield f"{',' if number else ''}\n{indent(text.rstrip(), '  ')}"
    yield f"\n ]{after}"


def _whole_text(job: JobPlan, draft: JobDraft) -> str:
    """Return all of a job, with the GPU that it shares and how sure the advice is then."""
    text = zlib.decompress(draft.left_out.text).decode("utf-8", "surrogatepass")
    if job.placement is None and job.ended is UNSET:
        return text
    document = json.loads(text)
    document |= {"placement": job.placement, "confidence": encode(job.confidence)}
    if job.ended is not UNSET:
        names = ("recommended", "smallest_change", "cheapest", "first_launchable")
        document |= {name: getattr(job, name) for name in names}
        document |= {"answer": encode(job.answer), "ended": encode(job.ended)}
    messages = document.pop("messages") | encode(job.messages)
    return to_text({**document, "messages": messages_in(document, messages)})


def to_plan(plan: PlanDraft) -> Plan:
    """Return the values of plan.json: the same, field for field, as reading the file back gives."""
    shared = plan.shared_gpus
    uses = job_uses(plan.jobs)
    rows = teams(plan, uses)
    jobs = tuple(job_document(job, plan.as_of, shared.get(job.name)) for job in plan.jobs)
    around = Plan(
        as_of=plan.as_of,
        objective=plan.objective,
        period=plan.period,
        catalog=plan.catalog,
        jobs=(),
        fleet=_fleet(plan.fleet, plan) if plan.fleet else None,
        roi=plan.roi,
        assumptions=plan.assumptions,
        warnings=plan.warnings,
        recommended=_recommended(plan),
        history=plan.history or UNSET,
        actions=plan.titles,
        teams=tuple(as_written(share) for share in rows) or UNSET,
        use=bill_use(plan, uses, rows) or UNSET,
        clusters=plan.clusters or UNSET,
    )
    return structs.replace(around, jobs=jobs, messages=messages_of(around))


def _recommended(plan: PlanDraft) -> RecommendedTotal:
    total = plan.total
    return RecommendedTotal(
        cost_before=cents(total.before),
        cost=CostRange(low=cents(total.low), mid=cents(total.mid), high=cents(total.high)),
        saves=as_written(total.saving),
        packed=tuple(sorted(total.packed_jobs)),
        unknown=total.unknown,
        at_least=total.at_least,
        owed_usd=cents(sum((job.baseline.owed for job in plan.jobs), Decimal(0))),
    )


def _fleet(fleet: PackedFleet, plan: PlanDraft) -> Fleet:
    places = {job.name: index for index, job in enumerate(plan.jobs)}
    recommended = plan.recommended.alternative
    return Fleet(
        gpus_before=fleet.gpus_before,
        gpus_after=fleet.gpus_after,
        gpus_lower_bound=fleet.gpus_lower_bound,
        cost_before=cents(fleet.cost_before),
        cost_after=cents(fleet.cost_after),
        saves=as_written(fleet.saving),
        placements=tuple(_placement(placement, places, plan) for placement in fleet.placements),
        unmoved=fleet.unmoved,
        alternatives=tuple(
            Alternative(
                offer=offer_on(alternative.offer, plan.as_of),
                jobs=alternative.jobs,
                gpus_after=alternative.fleet.gpus_after,
                cost_after=cents(alternative.fleet.cost_after),
                saves=as_written(alternative.fleet.saving),
                placements=tuple(_placement(p, places, plan) for p in alternative.fleet.placements)
                if alternative is recommended
                else UNSET,
                groups=tuple(map(_group, alternative.fleet.together))
                if alternative is recommended
                else UNSET,
            )
            for alternative in fleet.alternatives
        ),
        gap_fraction=digits_of(fleet.gap_fraction),
        search_ended_early=fleet.search_ended_early,
        roll_back=roll_back(recommended.fleet if recommended else fleet) or UNSET,
        groups=tuple(map(_group, fleet.together)),
    )


def _group(group: Together) -> Group:
    return Group(
        jobs=group.jobs,
        placements=group.placements,
        cost=CostRange(low=cents(group.low), mid=cents(group.cost), high=cents(group.high)),
        effort_hours=digits(group.effort_hours),
        moving_usd=cents(group.moving_usd),
        lines=cost_lines(group.other_lines),
        free=cost_lines(group.free_lines),
    )


def _placement(placement: PackedGpu, places: Mapping[str, int], plan: PlanDraft) -> Placement:
    jobs = [plan.jobs[index] for index in sorted(places[name] for name in placement.jobs)]
    return Placement(
        id=placement.id,
        offer=offer_on(placement.offer, plan.as_of),
        gpu=placement.gpu,
        mode=placement.mode,
        slice=",".join(placement.slices) or None,
        jobs=placement.jobs,
        hours=digits(placement.hours),
        cost=cents(placement.cost),
        lines=cost_lines(placement.lines),
        relative_speed={name: as_written(placement.speed[name]) for name in placement.jobs},
        risks=risks(placement, jobs) or UNSET,
        busy_fraction=digits_if_set(placement.busy_fraction),
        memory_limit_mib=memory_limits(placement, jobs) or UNSET,
        core_limit_percent=core_limits(placement, jobs) or UNSET,
        timetable=timetable(placement, jobs) or UNSET,
    )
