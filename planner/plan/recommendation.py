"""What a plan recommends as a whole, and its one total: every output takes it from here.

Each job is recommended once: it shares with others where that costs less than what each of them
would do singly, else it does what is best for it alone, which may be to stay. The GPUs that are
shared are today's, or those of one other machine type, whichever is worth more over the horizon.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from planner.fleet.fleet import Alternative, Fleet, Placement, Together
from planner.models.costs import Saving, saving
from pricing.money import usd

_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAlone:
    """What is best for one job alone; dollars of the period, exact.

    Attributes:
        job: its name.
        before: today's cost; None = unknown.
        low: at the low end of the hours; None = unknown, as `mid` and `high`.
        mid: expected.
        high: at the high end.
        at_least: whether a part of the bill has no known price.
        before_at_least: whether a part of today's has none.
        effort_hours: engineering time until it runs so, our estimate.
        moving_usd: to bring its data there, once; what is not known of it is left out.
    """

    job: str
    before: Decimal | None
    low: Decimal | None
    mid: Decimal | None
    high: Decimal | None
    at_least: bool = False
    before_at_least: bool = False
    effort_hours: float = 0.0
    moving_usd: Decimal = _ZERO


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingTerms:
    """How a way of running the jobs is weighed against another.

    Attributes:
        periods: of the plan, in the horizon.
        engineer_usd_per_hour: what an hour of work costs.
        by_cost: whether dollars decide, so that jobs are moved for them.
    """

    periods: Decimal
    engineer_usd_per_hour: Decimal
    by_cost: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The recommended way to run all jobs; dollars of the period, exact.

    Attributes:
        before: today's cost of the jobs with a known price.
        low: recommended, at the low end of the hours.
        mid: expected: the total.
        high: at the high end.
        packed: the groups of jobs that share.
        unknown: jobs whose cost is not known; they are in no figure.
        at_least: whether a part of a recommended bill has no known price.
        effort_hours: engineering time of all of it, our estimate.
        moving_usd: to bring data to other machines, once; what is not known of it is left out.
        alternative: the machine type on which jobs share GPUs; None: where they run today.
    """

    before: Decimal
    low: Decimal
    mid: Decimal
    high: Decimal
    packed: tuple[Together, ...] = ()
    unknown: tuple[str, ...] = ()
    at_least: bool = False
    effort_hours: float = 0.0
    moving_usd: Decimal = _ZERO
    alternative: Alternative | None = None

    @property
    def saves(self) -> Decimal:
        """Dollars saved in the period."""
        return self.before - self.mid

    @property
    def saving(self) -> Saving:
        """What is saved in the period, of what is paid today; no share of it where that is 0."""
        return saving(self.before, self.mid, of_nothing=0.0)

    @property
    def packed_jobs(self) -> frozenset[str]:
        """Names of the jobs that share."""
        return frozenset(name for group in self.packed for name in group.jobs)

    def placements(self, fleet: Fleet | None) -> dict[str, Placement]:
        """Return the GPU that a job is to share, by job; without those that go their own way.

        Args:
            fleet: packed where the jobs run today.
        """
        packing = self.alternative.fleet if self.alternative else fleet
        if packing is None:
            return {}
        packed = self.packed_jobs
        places = [(job, placement) for placement in packing.placements for job in placement.jobs]
        return {job: placement for job, placement in reversed(places) if job in packed}

    def net(self, terms: MovingTerms) -> Decimal:
        """Return what it surely saves over the horizon, less the work and the move."""
        effort = usd(str(self.effort_hours)) * terms.engineer_usd_per_hour
        return (self.before - self.high) * terms.periods - effort - self.moving_usd


def recommend(
    jobs_alone: Iterable[JobAlone], fleet: Fleet | None, terms: MovingTerms
) -> Recommendation:
    """Return the cheaper of sharing and going singly, group by group, and the total.

    Args:
        jobs_alone: what is best for each job alone.
        fleet: the packing; None where none was asked for.
        terms: how moving all to another machine type is weighed.
    """
    jobs = {job.job: job for job in jobs_alone}
    best = _with(jobs, fleet, terms=terms)
    if fleet is None or not terms.by_cost:
        return best
    for alternative in fleet.alternatives:
        result = _with(jobs, alternative.fleet, alternative, terms=terms)
        moved = result.packed_jobs.intersection(alternative.jobs)
        if moved and result.mid < best.mid and result.net(terms) > best.net(terms):
            best = result
    return best


def _with(
    jobs: Mapping[str, JobAlone],
    fleet: Fleet | None,
    alternative: Alternative | None = None,
    *,
    terms: MovingTerms,
) -> Recommendation:
    groups = fleet.together if fleet else ()
    packed = tuple(group for group in groups if _pays(group, jobs, terms))
    shared = {name for group in packed for name in group.jobs}
    singly = [job for job in jobs.values() if job.job not in shared and job.mid is not None]
    done: list[JobAlone | Together] = [*singly, *packed]
    return Recommendation(
        before=sum((job.before or _ZERO for job in jobs.values()), _ZERO),
        low=sum((job.low or _ZERO for job in singly), sum((g.low for g in packed), _ZERO)),
        mid=sum((job.mid or _ZERO for job in singly), sum((g.cost for g in packed), _ZERO)),
        high=sum((job.high or _ZERO for job in singly), sum((g.high for g in packed), _ZERO)),
        packed=packed,
        unknown=tuple(sorted(job.job for job in jobs.values() if job.mid is None)),
        at_least=any(job.at_least for job in singly)
        or (alternative is None and any(jobs[name].before_at_least for name in shared)),
        effort_hours=sum(job.effort_hours for job in done),
        moving_usd=sum((job.moving_usd for job in done), _ZERO),
        alternative=alternative,
    )


def _pays(group: Together, jobs: Mapping[str, JobAlone], terms: MovingTerms) -> bool:
    """Return whether sharing costs less than what is best for each job alone, its work paid."""
    singly = [jobs[name] for name in group.jobs]
    costs = [job.mid for job in singly if job.mid is not None]
    saves = sum(costs, _ZERO) - group.cost
    if len(costs) < len(singly) or saves <= 0:
        return False
    more_h = group.effort_hours - sum(job.effort_hours for job in singly)
    moving = group.moving_usd - sum((job.moving_usd for job in singly), _ZERO)
    return saves * terms.periods > usd(str(more_h)) * terms.engineer_usd_per_hour + moving
