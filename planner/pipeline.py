"""The whole story: measured jobs in, a costed plan out. Read this file first."""

from datetime import date

from planner.baseline import find_baseline, with_gpu
from planner.candidates import candidates
from planner.case import Case
from planner.choose import choose
from planner.confidence import assure
from planner.consolidate import consolidate
from planner.diagnose import diagnose
from planner.first_step import first_step
from planner.naming import name_apart
from planner.plan import JobPlan, Plan
from planner.predict import split
from planner.probes import match, of_job
from planner.profile.model import Profile
from planner.proposal import propose
from planner.remarks import assumptions, warnings
from planner.remedies import fixes, reclaimable
from planner.requirements import Period, Requirements
from planner.roi import recommended, roi
from planner.shapes import shapes
from planner.signals import measure
from planner.workload import apply, check_horizon, choose_period, workload
from pricing.catalog import Catalog
from pricing.errors import InputError


def make_plan(
    profiles: tuple[Profile, ...], catalog: Catalog, requirements: Requirements, *, as_of: date
) -> Plan:
    """Return the cheapest, fastest or best-value way to run the jobs, with every reason.

    Args:
        profiles: what was measured, in any order.
        catalog: every known price.
        requirements: the objective, the limits, what may be offered.
        as_of: day of prices and rules.

    Raises:
        InputError: a profile names no known GPU, a stated machine is not in the catalog, or a probe
            belongs to no job; all such problems of all jobs are listed.
    """
    today = catalog.at(as_of)
    if not today.offers:
        raise InputError(f"no price in the catalog holds on {as_of}; choose another --as-of.")
    jobs = name_apart(apply(profile, requirements) for profile in profiles)
    match(jobs, requirements.probes)
    period = choose_period(jobs, requirements)
    check_horizon(period, requirements)
    planned = plan_jobs(jobs, today, requirements, period)
    together = len(planned) > 1 if requirements.consolidate is None else requirements.consolidate
    fleet = (
        consolidate([(j.profile, j.baseline) for j in planned], requirements) if together else None
    )
    return Plan(
        as_of=as_of,
        objective=requirements.objective,
        period=period,
        offers=catalog.count,
        newest=today.newest,
        oldest=today.oldest,
        jobs=planned,
        fleet=fleet,
        roi=roi(
            tuple((j.baseline, j.choice) for j in planned),
            fleet,
            period,
            requirements.engineer_usd_per_hour,
        ),
        assumptions=assumptions(planned, period, requirements),
        warnings=warnings(planned, today, period),
        site=requirements.site,
    )


def plan_jobs(
    jobs: tuple[Profile, ...], catalog: Catalog, asked: Requirements, period: Period
) -> tuple[JobPlan, ...]:
    """Return the plan of every job; the problems of all jobs are raised together."""
    planned: list[JobPlan] = []
    problems: list[str] = []
    for job in jobs:
        try:
            planned.append(plan_job(job, catalog, asked, period))
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError(problems)
    return tuple(planned)


def plan_job(profile: Profile, catalog: Catalog, asked: Requirements, period: Period) -> JobPlan:
    """Return the plan of one job."""
    case = assess(profile, catalog, asked, period)
    drafts, rejected = candidates(case)
    choice = choose(case, drafts)
    best = recommended(choice.options, choice.recommended)
    return JobPlan(
        profile=case.profile,
        baseline=case.baseline,
        work=case.work,
        findings=case.findings,
        options=choice.options,
        rejected=rejected,
        recommended=choice.recommended,
        named=choice.named,
        assurance=assure(case.profile, case.findings, case.baseline, best, catalog.as_of),
        first_step=first_step(case.findings, asked) if best is None else None,
        shapes=shapes(case, best.offer if best else case.baseline.offer),
        probe=propose(case, choice.options, choice.recommended),
    )


def assess(profile: Profile, catalog: Catalog, asked: Requirements, period: Period) -> Case:
    """Return what one job runs on today, why it is slow, and what may help."""
    work = workload(profile, asked, period)
    baseline = find_baseline(profile, work, catalog, asked)
    profile = with_gpu(profile, baseline)
    findings = diagnose(profile, cost=baseline.cost)
    return Case(
        profile=profile,
        baseline=baseline,
        work=work,
        findings=findings,
        parts=split(findings),
        fixes=fixes(findings, measure(profile)),
        idle_share=reclaimable(findings, profile),
        catalog=catalog,
        asked=asked,
        probes=of_job(profile, asked.probes),
    )
