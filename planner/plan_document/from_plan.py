"""The values of plan.json, of a plan that was just made: rounded as they are written."""

from collections.abc import Mapping

import msgspec
from msgspec import UNSET

from planner.fleet.fleet import Fleet, Placement, Together
from planner.models.costs import TeamShare
from planner.plan.plan import Plan
from planner.plan.recommendation import Recommendation
from planner.plan.risks import risks, roll_back
from planner.plan.teams import teams
from planner.plan_document.bill import CostRange
from planner.plan_document.document import (
    AlternativeDocument,
    CatalogSummary,
    FleetDocument,
    GroupDocument,
    KeepsOwnGpu,
    PlacementDocument,
    PlanDocument,
    RecommendedTotal,
    ReturnOnEffort,
)
from planner.plan_document.from_job import job_document
from planner.plan_document.from_option import (
    cost_lines,
    digits,
    digits_if_set,
    digits_of,
    offer_document,
    rounded,
    saved,
)
from pricing.money import cents


def plan_document(plan: Plan) -> PlanDocument:
    """Return the values of plan.json: the same, field for field, as reading the file back gives."""
    shared = plan.shared_gpus
    return PlanDocument(
        as_of=plan.as_of,
        objective=plan.objective,
        period=plan.period,
        catalog=CatalogSummary(offers=plan.offers, newest=plan.newest, oldest=plan.oldest),
        jobs=tuple(job_document(job, plan.as_of, shared.get(job.name)) for job in plan.jobs),
        fleet=_fleet(plan.fleet, plan) if plan.fleet else None,
        roi=ReturnOnEffort(
            saves_usd=cents(plan.roi.saves_usd),
            effort_hours=digits(plan.roi.effort_hours),
            payback_days=digits_of(plan.roi.payback_days),
        ),
        assumptions=plan.assumptions,
        warnings=plan.warnings,
        recommended=_recommended(plan.recommended),
        history=plan.history or UNSET,
        actions=plan.titles,
        teams=tuple(_team(one) for one in teams(plan)) or UNSET,
    )


def _team(one: TeamShare) -> TeamShare:
    held, idle = digits(one.gpu_hours), digits(one.idle_gpu_hours)
    return msgspec.structs.replace(one, gpu_hours=held, idle_gpu_hours=idle)


def _recommended(one: Recommendation) -> RecommendedTotal:
    return RecommendedTotal(
        cost_before=cents(one.before),
        cost=CostRange(low=cents(one.low), mid=cents(one.mid), high=cents(one.high)),
        saves=saved(one.saving),
        packed=tuple(sorted(one.packed_jobs)),
        unknown=one.unknown,
        at_least=one.at_least,
    )


def _fleet(fleet: Fleet, plan: Plan) -> FleetDocument:
    places = {job.name: place for place, job in enumerate(plan.jobs)}
    taken = plan.recommended.alternative
    return FleetDocument(
        gpus_before=fleet.gpus_before,
        gpus_after=fleet.gpus_after,
        gpus_lower_bound=fleet.gpus_lower_bound,
        cost_before=cents(fleet.cost_before),
        cost_after=cents(fleet.cost_after),
        saves=saved(fleet.saving),
        placements=tuple(_placement(placement, places, plan) for placement in fleet.placements),
        unmoved=tuple(
            KeepsOwnGpu(job=u.job, reason=u.reason, detail=u.detail) for u in fleet.unmoved
        ),
        alternatives=tuple(
            AlternativeDocument(
                offer=offer_document(one.offer, plan.as_of),
                jobs=one.jobs,
                gpus_after=one.fleet.gpus_after,
                cost_after=cents(one.fleet.cost_after),
                saves=saved(one.fleet.saving),
                placements=tuple(_placement(p, places, plan) for p in one.fleet.placements)
                if one is taken
                else UNSET,
                groups=_groups(one.fleet) if one is taken else UNSET,
            )
            for one in fleet.alternatives
        ),
        gap_fraction=digits_of(fleet.gap_fraction),
        search_ended_early=fleet.search_ended_early,
        roll_back=roll_back(taken.fleet if taken else fleet) or UNSET,
        groups=_groups(fleet),
    )


def _groups(fleet: Fleet) -> tuple[GroupDocument, ...]:
    return tuple(_group(one) for one in fleet.together)


def _group(one: Together) -> GroupDocument:
    return GroupDocument(
        jobs=one.jobs,
        placements=one.placements,
        cost=CostRange(low=cents(one.low), mid=cents(one.cost), high=cents(one.high)),
        effort_hours=digits(one.effort_hours),
        moving_usd=cents(one.moving_usd),
        lines=cost_lines(one.others),
    )


def _placement(placement: Placement, places: Mapping[str, int], plan: Plan) -> PlacementDocument:
    there = [plan.jobs[place] for place in sorted(places[name] for name in placement.jobs)]
    return PlacementDocument(
        id=placement.id,
        offer=offer_document(placement.offer, plan.as_of),
        gpu=placement.gpu,
        mode=placement.mode,
        slice=",".join(placement.slices) or None,
        jobs=placement.jobs,
        hours=digits(placement.hours),
        cost=cents(placement.cost),
        lines=cost_lines(placement.lines),
        relative_speed={name: rounded(placement.speed[name]) for name in placement.jobs},
        risks=risks(placement, there) or UNSET,
        busy_fraction=digits_if_set(placement.busy_fraction),
    )
