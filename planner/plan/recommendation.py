"""What a plan recommends as a whole, and its one total: every output takes it from here.

Each job is recommended once: it shares with others where that costs less than what each of them
would do singly, else it does what is best for it alone, which may be to stay.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from planner.fleet.consolidate import Fleet, Together
from planner.models.saving import Saving, saving

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
    """

    job: str
    before: Decimal | None
    low: Decimal | None
    mid: Decimal | None
    high: Decimal | None
    at_least: bool = False


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
    """

    before: Decimal
    low: Decimal
    mid: Decimal
    high: Decimal
    packed: tuple[Together, ...] = ()
    unknown: tuple[str, ...] = ()
    at_least: bool = False

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


def recommend(jobs_alone: Iterable[JobAlone], fleet: Fleet | None) -> Recommendation:
    """Return the cheaper of sharing and going singly, group by group, and the total.

    Args:
        jobs_alone: what is best for each job alone.
        fleet: the packing; None where none was asked for.
    """
    jobs = {one.job: one for one in jobs_alone}
    packed = tuple(group for group in (fleet.together if fleet else ()) if _saves(group, jobs))
    shared = {name for group in packed for name in group.jobs}
    alone = [one for one in jobs.values() if one.job not in shared and one.mid is not None]
    together = sum((group.cost for group in packed), _ZERO)
    return Recommendation(
        before=sum((one.before or _ZERO for one in jobs.values()), _ZERO),
        low=sum((one.low or _ZERO for one in alone), together),
        mid=sum((one.mid or _ZERO for one in alone), together),
        high=sum((one.high or _ZERO for one in alone), together),
        packed=packed,
        unknown=tuple(sorted(one.job for one in jobs.values() if one.mid is None)),
        at_least=any(one.at_least for one in jobs.values()),
    )


def _saves(group: Together, jobs: dict[str, JobAlone]) -> bool:
    singly = [jobs[name].mid for name in group.jobs]
    known = [cost for cost in singly if cost is not None]
    return len(known) == len(singly) and group.cost < sum(known, _ZERO)
