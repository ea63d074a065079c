"""The whole story: measured jobs in, a costed plan out. Read this file first."""

import pickle
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import date
from functools import lru_cache, partial

from msgspec import UNSET

from planner.actions import ACTIONS, action
from planner.actions.settings import Settings
from planner.choice.baseline import as_copies, find_baseline, find_today, with_machine
from planner.choice.context import JobContext
from planner.choice.offers import Market
from planner.choice.option import energy_today, how_it_runs_today
from planner.choice.ranking import STAY, rank_candidates
from planner.choice.requirements import Period, Requirements, check_sold
from planner.choice.search import find_candidates, price_cures, spare_copies
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
from planner.diagnosis.diagnose import diagnose, fixes, reclaimable, without_actions
from planner.fleet.executor import map_on
from planner.fleet.placements import find_elsewhere, find_home
from planner.models.power import cap_that_saves
from planner.plan.advice import cheaper_for_target, close_at_night, cure_now, find_proof, steady_use
from planner.plan.answer import answer, with_sharing
from planner.plan.cluster import cluster_of, plan_cluster
from planner.plan.confidence import rate_confidence
from planner.plan.draft import JobDraft, PlanDraft, leave_together, roi, summarize
from planner.plan.ending import end_idle
from planner.plan.job import Remedy
from planner.plan.making import packed_text, remedy_documents
from planner.plan.notes import assumptions, unknown_moves, warnings
from planner.plan.plan import CatalogSummary
from planner.prediction.predict import split_time
from planner.prediction.probes import check_probes, probes_of, scaling_signals
from planner.profile.model import Profile
from planner.profile.source import at_work, name_apart, with_unused_gpus
from planner.signals.finding import Saved
from planner.signals.signals import read_signals
from pricing.catalog.catalog import Catalog
from pricing.errors import InputError


def draft_plan(  # noqa: PLR0913 - three of them say how the work is done
    profiles: tuple[Profile, ...],
    catalog: Catalog,
    requirements: Requirements,
    *,
    as_of: date,
    executor: Executor | None = None,
    summarizes: bool = False,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> PlanDraft:
    """Return the plan before it is rounded, with the profiles and all that it was made of.

    Args:
        profiles: what was measured, in any order.
        catalog: every known price.
        requirements: the objective, the limits, what may be offered.
        as_of: day of prices and rules.
        executor: plans and packs the jobs in parts; the plan is the same. None: this process does.
        summarizes: whether of each job only its summary and its text are kept, for a large fleet
            (`planner.plan.draft.LeftOut`).
        on_progress: is called with the number of jobs that are planned, and of all.

    Raises:
        InputError: a GPU or a stated machine is not known, or a probe is of no job; of all jobs.
    """
    today = _prices(catalog, requirements, as_of)
    cluster = cluster_of(profiles, requirements)

    planned_before: dict[tuple[str, ...], tuple[JobDraft, ...]] = {}

    def draft(limits: Requirements, change: Callable[[JobDraft], JobDraft] | None) -> PlanDraft:
        jobs, period = _check_jobs(profiles, today, limits)
        shared = _Shared(
            catalog=today,
            requirements=limits,
            period=period,
            is_fleet=len(jobs) > 1,
            summarizes=summarizes and cluster is None,
        )
        planned = planned_before.get(limits.providers)
        if planned is None:
            planned = plan_jobs(jobs, shared, executor, on_progress)
            planned_before[limits.providers] = planned
        planned = tuple(map(change, planned)) if change else planned
        return _draft(end_idle(planned), shared, executor)

    if cluster is None:
        return draft(requirements, None)
    return plan_cluster(cluster, draft, today, requirements)


def _check_jobs(
    profiles: tuple[Profile, ...], catalog: Catalog, requirements: Requirements
) -> tuple[tuple[Profile, ...], Period]:
    """Return the jobs under the user's limits, each with a name of its own, and the period."""
    limited = _with_whole_machines(
        [apply_requirements(profile, requirements) for profile in profiles], requirements
    )
    jobs = name_apart(as_copies(profile, catalog, requirements) for profile in limited)
    check_probes(jobs, requirements.probes)
    period = choose_period(jobs, requirements)
    check_horizon(period, requirements)
    check_asked(jobs, period, requirements)
    return jobs, period


def _with_whole_machines(
    profiles: Sequence[Profile], requirements: Requirements
) -> Iterator[Profile]:
    """Yield the jobs; who was alone on a stated machine has all of its GPUs, used or not."""
    stands = Counter(profile.hardware.machine for profile in profiles)
    for profile in profiles:
        is_stated = requirements.current or profile.hardware.instance_type
        is_alone = profile.hardware.machine is None or stands[profile.hardware.machine] == 1
        yield with_unused_gpus(profile) if is_stated and is_alone else profile


def _prices(catalog: Catalog, requirements: Requirements, as_of: date) -> Catalog:
    """Return the catalog of a day, on which something is sold of what was asked for."""
    today = catalog.at(as_of)
    if not today.offers:
        raise InputError(f"no price in the catalog holds on {as_of}; choose another --as-of.")
    check_sold(requirements, today)
    return today


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """What all jobs of a plan are planned with.

    Attributes:
        catalog: offers and rules of the day.
        requirements: the objective and the limits.
        period: every dollar and hour is for it.
        is_fleet: whether there are several jobs.
        summarizes: whether only a summary of each job is kept.
    """

    catalog: Catalog
    requirements: Requirements
    period: Period
    is_fleet: bool
    summarizes: bool

    @property
    def packs(self) -> bool:
        """Whether jobs are going to be packed together."""
        return self.is_fleet and self.requirements.consolidate is not False


def _draft(planned: tuple[JobDraft, ...], shared: _Shared, executor: Executor | None) -> PlanDraft:
    """Return the plan of jobs, each of which is planned alone."""
    requirements, today, period = shared.requirements, shared.catalog, shared.period
    together = len(planned) > 1 if requirements.consolidate is None else requirements.consolidate
    result = answer(planned, requirements, today, period, packs=together, executor=executor)
    return PlanDraft(
        as_of=today.as_of,
        objective=requirements.objective,
        period=period,
        catalog=CatalogSummary(
            offers=today.count,
            newest=today.newest,
            oldest=today.oldest,
            published=today.published or UNSET,
            sha256=today.sha256 or UNSET,
        ),
        jobs=with_sharing(planned, result, today.as_of),
        fleet=result.fleet,
        recommended=result.recommended,
        roi=roi(result.recommended, period, requirements.engineer_usd_per_hour),
        assumptions=(*assumptions(planned, period, requirements), *result.notes),
        warnings=(*warnings(planned, today, period), *unknown_moves(result.recommended)),
        history=requirements.history,
    )


Group = tuple[tuple[Profile, Tenancy | None], ...]
"""Jobs that stand on one machine together, each with its part in the bill; most stand alone."""
Outcome = tuple[JobDraft, ...] | InputError
_GROUPS_A_PART = 16
"""Groups that an executor plans at a time: few enough that all of its processes end together, and
so many that the catalog, which goes with each part, is a small part of the work."""


def plan_jobs(
    jobs: tuple[Profile, ...],
    shared: _Shared,
    executor: Executor | None,
    on_progress: Callable[[int, int], None],
) -> tuple[JobDraft, ...]:
    """Return the plan of every job; the problems of all jobs are raised together."""
    groups = _groups(jobs, shared)
    work = (
        partial(_plan_part, zlib.compress(pickle.dumps(shared), 1))
        if executor
        else partial(
            _plan_groups, shared, Market(catalog=shared.catalog, asked=shared.requirements)
        )
    )
    size = _GROUPS_A_PART if executor else 1
    parts = [groups[at : at + size] for at in range(0, len(groups), size)]
    problems: list[str] = []
    planned: dict[str, JobDraft] = {}
    for outcomes in map_on(executor, work, parts):
        for outcome in outcomes:
            if isinstance(outcome, InputError):
                problems.extend(outcome.problems)
            else:
                planned.update((job.name, job) for job in outcome)
        on_progress(len(planned), len(jobs))
    if problems:
        raise InputError(problems)
    return tuple(planned[job.job.name] for job in jobs)


def _plan_part(packed: bytes, groups: Sequence[Group]) -> list[Outcome]:
    shared, market = _unpacked(packed)
    return _plan_groups(shared, market, groups)


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> tuple[_Shared, Market]:
    """Return what the jobs are planned with; parts that one process plans share it."""
    shared: _Shared = pickle.loads(zlib.decompress(packed))  # noqa: S301 - of the plan's own process
    return shared, Market(catalog=shared.catalog, asked=shared.requirements)


def _plan_groups(shared: _Shared, market: Market, groups: Sequence[Group]) -> list[Outcome]:
    """Return the plans of the jobs of each group, or what is wrong with them."""
    outcomes: list[Outcome] = []
    for group in groups:
        planned: list[JobDraft] = []
        problems: list[str] = []
        for profile, part in group:
            try:
                planned.append(plan_job(profile, market, shared.period, part, packs=shared.packs))
            except InputError as error:
                problems.extend(error.problems)
        if problems:
            outcomes.append(InputError(problems))
            continue
        together = leave_together(planned, is_fleet=shared.is_fleet)
        if shared.summarizes:
            day = shared.catalog.as_of
            together = tuple(summarize(job, packed_text(job, day)) for job in together)
        outcomes.append(together)
    return outcomes


def _groups(jobs: tuple[Profile, ...], shared: _Shared) -> list[Group]:
    """Return the jobs, those that stand on one machine together."""
    requirements = shared.requirements
    standing = residents(jobs, shared.catalog, requirements, shared.period)
    parts = tenancies(standing, whole_machine=requirements.whole_machine)
    groups: dict[tuple[str, ...], list[tuple[Profile, Tenancy | None]]] = {}
    for job in jobs:
        name = job.job.name
        part = parts.get(name)
        neighbors = part.beside if part else ()
        groups.setdefault(tuple(sorted((name, *neighbors))), []).append((job, part))
    return [tuple(group) for group in groups.values()]


def residents(
    jobs: tuple[Profile, ...], catalog: Catalog, requirements: Requirements, period: Period
) -> Iterator[Resident]:
    """Yield the jobs that stand on one machine of a stated type each, or on an assumed one."""
    for job in jobs:
        try:
            offer, assumed, _ = find_today(job, catalog, requirements)
        except InputError:
            continue  # planning the job says what is wrong
        if offer is None:
            continue
        fits = (job.hardware.nodes or 1) == 1 and gpus_held(job, offer) <= offer.gpu_count
        if assumed or fits:
            hours = workload(job, requirements, period).hours.mid
            yield Resident(profile=job, offer=offer, hours=hours, assumed=assumed)


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
    context = assess(profile, market.catalog, market.asked, period, tenancy, shared=market)
    candidates, rejected = find_candidates(context)
    ranking = rank_candidates(context, candidates)
    (machine, settings), baseline = how_it_runs_today(context), context.baseline
    home = find_home(context, candidates)
    remedies, priced = _remedies(context, settings)
    now = cure_now(context, priced, ranking.best, ranking.options)
    now, best = cheaper_for_target(now, ranking.best, baseline)
    recommended = best.id if best else STAY
    return JobDraft(
        profile=context.measured,
        baseline=context.baseline,
        work=context.work,
        findings=context.findings,
        options=ranking.options,
        rejected=rejected,
        recommended=recommended,
        named=ranking.named,
        confidence=rate_confidence(context, best),
        machine=machine,
        remedies=remedies,
        priced=priced,
        work_cost=context.work_cost(baseline.cost),
        energy=energy_today(context.measured, baseline.hours, market.asked.site, baseline.replicas),
        power_cap=cap_that_saves(context.profile),
        now=now,
        reason=ranking.reason,
        proof=find_proof(context, ranking.options, (recommended, ranking.named.cheapest), now),
        steady=steady_use(context, best),
        off_hours=close_at_night(context, priced),
        home=home,
        elsewhere=find_elsewhere(context, candidates, home) if packs else (),
    )


def _remedies(
    context: JobContext, settings: Mapping[str, Settings]
) -> tuple[tuple[Remedy, ...], dict[str, Saved]]:
    """Return the actions on the job itself that apply today, and what each saves alone there."""
    remedies = [action(code, context.signals) for code in settings]
    called = {code for finding in context.findings for code in finding.actions}
    idle = (ACTIONS[code] for code in called if code == "idle-shutdown")
    priced = price_cures(context, (*remedies, *idle))
    return remedy_documents(remedies, settings, priced), priced


def assess(  # noqa: PLR0913 - what a job is planned from
    profile: Profile,
    catalog: Catalog,
    requirements: Requirements,
    period: Period,
    tenancy: Tenancy | None = None,
    *,
    shared: Market | None = None,
) -> JobContext:
    """Return what one job runs on today, why it is slow, and what may help."""
    work = workload(profile, requirements, period)
    baseline = find_baseline(profile, work, catalog, requirements, tenancy)
    profile = with_machine(profile, baseline.offer, assumed=baseline.assumed)
    working, probes = at_work(profile), probes_of(profile, requirements.probes)
    scaling = scaling_signals(working, probes)

    def diagnosed(spare: float | None) -> JobContext:
        machine = {**scaling, **baseline.signals(profile), "serving.spare_copies": spare}
        signals = read_signals(profile, machine)
        causes = diagnose(profile, cost=baseline.machine_cost, signals=signals)
        findings = without_actions(causes, requirements.without)
        return JobContext(
            profile=working,
            measured=profile,
            baseline=baseline,
            work=work,
            findings=findings,
            parts=split_time(working, findings if working is profile else None),
            signals=signals,
            fixes=fixes(findings, signals),
            idle_share=reclaimable(findings, profile),
            catalog=catalog,
            asked=requirements,
            probes=probes,
            shared=shared,
        )

    context = diagnosed(None)
    spare = spare_copies(context)
    return context if spare is None else diagnosed(spare)
