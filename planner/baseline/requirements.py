"""What the user asks of a plan: the objective, hard limits, and what may be offered."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from planner.baseline.site import UNKNOWN_SITE, Site
from planner.models.interruption import CHECKPOINTS, Availability, Checkpoints
from planner.profile.model import Profile

Objective = Literal["cost", "time", "cost-per-work"]
Period = Literal["run", "month"]

# What a change must earn its work back in, and what an hour of that work costs: our choice of round
# figures, listed under the plan's assumptions.
HORIZON_MONTHS = Decimal(6)
ENGINEER_USD_PER_HOUR = Decimal(100)

INCLUDABLE = ("community", "any-vendor", "any-arch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """The wishes of one `plan`; every default is the contract's.

    Attributes:
        objective: what is minimised.
        deadline_h: a job's hours must stay under it, at the 95 % end of their interval.
        budget_usd: a job's cost for the period must stay under it, at the same end.
        providers: only these, when any are named; a named provider's community hosts count.
        regions: only these, when any are named; an offer with one price everywhere fits all.
        gpus: only these canonical GPU models, when any are named.
        gpu_counts: least and most GPUs; None = chosen from the job.
        purchases: ways of buying to consider; none named = on demand, and as today.
        hours_per_month: held hours of every job, in place of the profiles' own.
        work_total: units of one run; makes the period a run.
        egress_bytes: data sent out in the period; None = the profile's own.
        storage_bytes: data kept for the period; None = the profile's own.
        slo_ms: latency target of every job, in place of the profiles' own.
        consolidate: put several jobs on one GPU; None = when there is more than one job.
        max_slowdown: the most a job may slow down by sharing, or on a smaller GPU while it is held.
        current: `provider/type[/region]` that runs the jobs today.
        price_usd_per_hour: what one of today's machines costs an hour, in place of the list price.
        whole_machine: a job on part of a machine bears all of its bill.
        include: of INCLUDABLE, what is left out by default.
        engineer_usd_per_hour: rate of the people who apply actions.
        horizon_months: over which a change must pay for itself; None = HORIZON_MONTHS. A plan per
            run counts one run.
        launchable: providers on which this version can launch.
        spot_trace: availability of spot capacity, for lost work, wall time and deadlines.
        checkpoints: what surviving an interruption costs.
        site: grid, PUE and host share, for energy and carbon.
        probes: profiles of the planned jobs elsewhere, by job.name; never jobs of their own.
    """

    objective: Objective = "cost"
    deadline_h: float | None = None
    budget_usd: Decimal | None = None
    providers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    gpu_counts: tuple[int, int] | None = None
    purchases: tuple[str, ...] = ()
    hours_per_month: float | None = None
    work_total: float | None = None
    egress_bytes: int | None = None
    storage_bytes: int | None = None
    slo_ms: float | None = None
    consolidate: bool | None = None
    max_slowdown: float = 1.2
    current: str | None = None
    price_usd_per_hour: Decimal | None = None
    whole_machine: bool = False
    include: frozenset[str] = frozenset()
    engineer_usd_per_hour: Decimal = ENGINEER_USD_PER_HOUR
    horizon_months: Decimal | None = None
    launchable: frozenset[str] = frozenset()
    spot_trace: Availability | None = None
    checkpoints: Checkpoints = CHECKPOINTS
    site: Site = UNKNOWN_SITE
    probes: tuple[Profile, ...] = ()

    @property
    def horizon(self) -> Decimal:
        """Months over which a change of a monthly plan must pay for itself."""
        return HORIZON_MONTHS if self.horizon_months is None else self.horizon_months
