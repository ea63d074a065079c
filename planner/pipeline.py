"""The whole story: measured jobs in, a costed plan out. Read this file first."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from planner.actions import action
from planner.choice.baseline import find_baseline, find_today, with_gpu
from planner.choice.changes import first_step
from planner.choice.context import JobContext
from planner.choice.machine_sizes import machine_sizes
from planner.choice.offers import Market
from planner.choice.option import energy_today, how_it_runs_today
from planner.choice.ranking import rank_candidates
from planner.choice.requirements import Period, Requirements, check_sold
from planner.choice.search import find_candidates
from planner.choice.workload import (
    Resident,
    Tenancy,
    apply_requirements,
    check_asked,
    check_horizon,
    choose_period,
    gpus_held,
    tenancies,
    workload,
)
from planner.diagnosis.diagnose import diagnose, fixes, reclaimable
from planner.fleet.at_once import AtOnce, in_turn
from planner.fleet.placements import find_elsewhere, find_home
from planner.models.power import cap_that_saves
from planner.plan.answer import answer, with_sharing
from planner.plan.confidence import rate_confidence
from planner.plan.draft import JobDraft, PlanDraft, leave_together, roi
from planner.plan.experiment import suggest_experiment
from planner.plan.making import to_plan
from planner.plan.notes import assumptions, unknown_moves, warnings
from planner.plan.plan import Plan
from planner.prediction.predict import split_time
from planner.prediction.probes import check_probes, probes_of
from planner.profile.model import Profile
from planner.profile.source import name_apart
from planner.signals.signals import read_signals
from pricing.catalog.catalog import Catalog
from pricing.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """The jobs of a plan, in groups that can be planned apart from each other.

    Attributes:
        groups: places of jobs; those that stand on one machine together.
        plan: plans a group, in its order; raises the problems of all of its jobs.
        shared: values that plans refer to and that are never changed: the jobs, and every offer.
    """

    groups: tuple[tuple[int, ...], ...]
    plan: Callable[[tuple[int, ...]], tuple[JobDraft, ...]]
    shared: tuple[object, ...] = ()


Outcome = tuple[JobDraft, ...] | InputError
Spread = Callable[[Planning], Iterable[Outcome]]
"""Plans the groups, wherever it does so; yields what became of each, in their order."""


def one_by_one(planning: Planning) -> Iterator[Outcome]:
    """Yield what becomes of each group, planned here and now."""
    for group in planning.groups:
        try:
            yield planning.plan(group)
        except InputError as error:
            yield error


def make_plan(  # noqa: PLR0913 - two of them say where the work is done
    profiles: tuple[Profile, ...],
    catalog: Catalog,
    requirements: Requirements,
    *,
    as_of: date,
    spread: Spread = one_by_one,
    at_once: AtOnce = in_turn,
) -> Plan:
    """Return the cheapest, fastest or best-value way to run the jobs, as it is written and read.

    Arguments and errors are those of `draft_plan`.
    """
    return to_plan(
        draft_plan(profiles, catalog, requirements, as_of=as_of, spread=spread, at_once=at_once)
    )


def draft_plan(  # noqa: PLR0913 - two of them say where the work is done
    profiles: tuple[Profile, ...],
    catalog: Catalog,
    requirements: Requirements,
    *,
    as_of: date,
    spread: Spread = one_by_one,
    at_once: AtOnce = in_turn,
) -> PlanDraft:
    """Return the plan before it is rounded, with the profiles and all that it was made of.

    Args:
        profiles: what was measured, in any order.
        catalog: every known price.
        requirements: the objective, the limits, what may be offered.
        as_of: day of prices and rules.
        spread: plans the groups of jobs; another one may do so in several processes.
        at_once: packs machine types that do not depend on each other; the same of it.

    Raises:
        InputError: a GPU or a stated machine is not known, or a probe is of no job; of all jobs.
    """
    today = _prices(catalog, requirements, as_of)
    jobs = name_apart(apply_requirements(profile, requirements) for profile in profiles)
    check_probes(jobs, requirements.probes)
    period = choose_period(jobs, requirements)
    check_horizon(period, requirements)
    check_asked(jobs, period, requirements)
    planned = plan_jobs(jobs, today, requirements, period, spread)
    together = len(planned) > 1 if requirements.consolidate is None else requirements.consolidate
    found = answer(planned, requirements, today, period, packs=together, at_once=at_once)
    return PlanDraft(
        as_of=as_of,
        objective=requirements.objective,
        period=period,
        offers=catalog.count,
        newest=today.newest,
        oldest=today.oldest,
        jobs=with_sharing(planned, found, as_of),
        fleet=found.fleet,
        recommended=found.recommended,
        roi=roi(found.recommended, period, requirements.engineer_usd_per_hour),
        assumptions=(*assumptions(planned, period, requirements), *found.notes),
        warnings=(*warnings(planned, today, period), *unknown_moves(found.recommended)),
        history=requirements.history,
    )


def _prices(catalog: Catalog, asked: Requirements, as_of: date) -> Catalog:
    """Return the catalog of a day, on which something is sold of what was asked for."""
    today = catalog.at(as_of)
    if not today.offers:
        raise InputError(f"no price in the catalog holds on {as_of}; choose another --as-of.")
    check_sold(asked, today)
    return today


def plan_jobs(
    jobs: tuple[Profile, ...],
    catalog: Catalog,
    asked: Requirements,
    period: Period,
    spread: Spread = one_by_one,
) -> tuple[JobDraft, ...]:
    """Return the plan of every job; the problems of all jobs are raised together."""
    parts = tenancies(residents(jobs, catalog, asked, period), whole_machine=asked.whole_machine)
    market = Market(catalog=catalog, asked=asked)
    packs = len(jobs) > 1 and asked.consolidate is not False

    def plan_group(places: tuple[int, ...]) -> tuple[JobDraft, ...]:
        planned: list[JobDraft] = []
        problems: list[str] = []
        for place in places:
            job = jobs[place]
            try:
                part = parts.get(job.job.name)
                planned.append(plan_job(job, market, period, part, packs=packs))
            except InputError as error:
                problems.extend(error.problems)
        if problems:
            raise InputError(problems)
        return leave_together(planned)

    groups = _groups(jobs, parts)
    shared = (*jobs, *catalog.offers)
    outcomes = list(spread(Planning(groups=groups, plan=plan_group, shared=shared)))
    problems = [text for one in outcomes if isinstance(one, InputError) for text in one.problems]
    if problems:
        raise InputError(problems)
    found = {job.name: job for one in outcomes if isinstance(one, tuple) for job in one}
    return tuple(found[job.job.name] for job in jobs)


def _groups(jobs: tuple[Profile, ...], parts: Mapping[str, Tenancy]) -> tuple[tuple[int, ...], ...]:
    """Return the places of the jobs, those that stand on one machine together."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, job in enumerate(jobs):
        name = job.job.name
        beside = parts[name].beside if name in parts else ()
        groups.setdefault(tuple(sorted((name, *beside))), []).append(place)
    return tuple(tuple(group) for group in groups.values())


def residents(
    jobs: tuple[Profile, ...], catalog: Catalog, asked: Requirements, period: Period
) -> Iterator[Resident]:
    """Yield the jobs that stand on one machine of a stated type each."""
    for job in jobs:
        try:
            offer, assumed, _ = find_today(job, catalog, asked)
        except InputError:
            continue  # planning the job says what is wrong
        if offer is None or assumed or (job.hardware.nodes or 1) > 1:
            continue
        if gpus_held(job, offer) <= offer.gpu_count:
            hours = workload(job, asked, period).hours.mid
            yield Resident(profile=job, offer=offer, hours=hours)


def plan_job(
    profile: Profile,
    market: Market,
    period: Period,
    tenancy: Tenancy | None = None,
    *,
    packs: bool = False,
) -> JobDraft:
    """Return the plan of one job.

    Args:
        profile: what was measured.
        market: what all jobs of the plan share.
        period: every dollar and hour is for it.
        tenancy: its part in the bill of a shared machine.
        packs: whether it is going to be packed with others.
    """
    catalog, asked = market.catalog, market.asked
    context = assess(profile, catalog, asked, period, tenancy, shared=market)
    candidates, rejected = find_candidates(context)
    ranking = rank_candidates(context, candidates)
    best = ranking.best
    machine, baseline = how_it_runs_today(context), context.baseline
    home = find_home(context, candidates)
    return JobDraft(
        profile=context.profile,
        baseline=context.baseline,
        work=context.work,
        findings=context.findings,
        options=ranking.options,
        rejected=rejected,
        recommended=ranking.recommended,
        named=ranking.named,
        confidence=rate_confidence(
            context.profile, context.findings, context.baseline, best, catalog.as_of
        ),
        machine=machine,
        remedies=tuple(action(code, context.signals) for code in machine.values),
        work_cost=context.work_cost(baseline.cost),
        energy=energy_today(context.profile, baseline.hours, asked.site, baseline.replicas),
        power_cap=cap_that_saves(context.profile),
        first_step=first_step(context) if best is None else None,
        machine_sizes=machine_sizes(context, best.offer if best else context.baseline.offer),
        probe=suggest_experiment(context, ranking.options, ranking.recommended),
        home=home,
        elsewhere=find_elsewhere(context, candidates, home) if packs else (),
    )


def assess(  # noqa: PLR0913 - what a job is planned from
    profile: Profile,
    catalog: Catalog,
    asked: Requirements,
    period: Period,
    tenancy: Tenancy | None = None,
    *,
    shared: Market | None = None,
) -> JobContext:
    """Return what one job runs on today, why it is slow, and what may help."""
    work = workload(profile, asked, period)
    baseline = find_baseline(profile, work, catalog, asked, tenancy)
    profile = with_gpu(profile, baseline)
    signals = read_signals(profile)
    findings = diagnose(profile, cost=baseline.machine_cost, signals=signals)
    return JobContext(
        profile=profile,
        baseline=baseline,
        work=work,
        findings=findings,
        parts=split_time(findings),
        signals=signals,
        fixes=fixes(findings, signals),
        idle_share=reclaimable(findings, profile),
        catalog=catalog,
        asked=asked,
        probes=probes_of(profile, asked.probes),
        shared=shared,
    )
