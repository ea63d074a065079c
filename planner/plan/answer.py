"""Packing and moving as one answer: the best of jobs alone, packed at home, packed elsewhere."""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from planner.choice.requirements import Period, Requirements
from planner.fleet.alternatives import find_alternatives, searched
from planner.fleet.consolidate import drafts
from planner.fleet.fleet import Fleet, Placement
from planner.fleet.placements import Movable, ended_jobs
from planner.fleet.tenant import PackingCache
from planner.models.estimate import Estimate, exactly, product
from planner.plan.confidence import if_shared
from planner.plan.draft import JobDraft
from planner.plan.job import Confidence
from planner.plan.recommendation import MovingTerms, Recommendation, recommend
from pricing.catalog.catalog import Catalog
from pricing.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class _OneAnswer:
    """What all jobs are to do.

    Attributes:
        fleet: packed at home, with its alternatives; None where nothing is packed.
        recommended: what is to be done, and its one total.
    """

    fleet: Fleet | None
    recommended: Recommendation

    @property
    def notes(self) -> tuple[str, ...]:
        """What happens to machines in the packing that the recommendation is made of."""
        taken = self.recommended.alternative
        fleet = taken.fleet if taken else self.fleet
        return fleet.notes if fleet else ()


def answer(  # noqa: PLR0913 - one answer for all of it
    jobs: tuple[JobDraft, ...],
    needs: Requirements,
    catalog: Catalog,
    period: Period,
    *,
    packs: bool,
    executor: Executor | None = None,
) -> _OneAnswer:
    """Return the best of each job alone, packed at home, and packed on another machine type.

    Args:
        jobs: what is planned for each.
        needs: the limits, and what a change must earn its work back in.
        catalog: for the day.
        period: of the plan.
        packs: whether jobs may share; else there is no fleet.
        executor: packs machine types that do not depend on each other; None: here.
    """
    solo = [job.alone for job in jobs]
    terms = MovingTerms(
        periods=needs.horizon if period == "month" else Decimal(1),
        engineer_usd_per_hour=needs.engineer_usd_per_hour,
        by_cost=needs.objective != "time",
    )
    if not packs:
        return _OneAnswer(fleet=None, recommended=recommend(solo, None, terms))
    movable, cache = [_movable(job) for job in jobs], PackingCache(executor=executor)
    fleet = _pack(movable, needs, catalog, cache)
    best = recommend(solo, fleet, terms)
    if best.alternative is not None:
        better = searched(best.alternative, movable, needs, catalog, cache)
        fleets = [better if way is best.alternative else way for way in fleet.alternatives]
        fleet = replace(fleet, alternatives=tuple(fleets))
        best = recommend(solo, fleet, terms)
    return _OneAnswer(fleet=fleet, recommended=best)


def with_sharing(jobs: tuple[JobDraft, ...], result: _OneAnswer, day: date) -> tuple[JobDraft, ...]:
    """Return what is planned for each job, as sure as it is where the job is to share.

    Args:
        jobs: each as it would be alone.
        result: what all of them are to do.
        day: of the plan.
    """
    places = result.recommended.placements(result.fleet)
    return tuple(
        replace(job, confidence=_if_shared(job, places[job.name], day))
        if job.name in places
        else job
        for job in jobs
    )


def _if_shared(job: JobDraft, placement: Placement, day: date) -> Confidence:
    speed = product(_alone_there(job, placement), placement.speed[job.name])
    moves_to = None if placement.offer == job.baseline.offer else placement.offer
    return if_shared(job.confidence, speed, job.baseline, moves_to, day)


def _alone_there(job: JobDraft, placement: Placement) -> Estimate:
    """Return the speed of a job alone where it is to share, relative to today."""
    speeds = (machine.speed for machine in job.elsewhere if machine.offer == placement.offer)
    home = job.home.speed if job.home else exactly(1.0, Message("speed.today"))
    return next(speeds, home)


def _movable(job: JobDraft) -> Movable:
    return Movable(
        profile=job.profile,
        baseline=job.baseline,
        work=job.work,
        home=job.home,
        elsewhere=job.elsewhere,
        remaining_usd=None if job.remaining is None else job.remaining_usd or Decimal(0),
    )


def _pack(
    jobs: Sequence[Movable], needs: Requirements, catalog: Catalog, cache: PackingCache
) -> Fleet:
    pairs, homes = [(job.profile, job.baseline) for job in jobs], {j.name: j.home for j in jobs}
    ended = ended_jobs(jobs)
    (draft,) = drafts(pairs, needs, [homes], catalog, quick=False, packed_before=cache, ended=ended)
    fleet = draft.fleet()
    if not any(job.elsewhere for job in jobs):
        return fleet
    return replace(fleet, alternatives=find_alternatives(jobs, fleet, needs, catalog, cache))
