"""The values of plan.json (`gpucost.plan/v1`): one set of types to write, read back and show.

A `Plan` of the planner holds the measured profiles, which are not in the file, so it cannot be read
back. These are what both have: `from_plan` makes them of a plan made now, `read` of a file, and
`encode` writes them. Reports, tables, recipes, exports and launches take nothing else.

Fields are in the order of the file. Where a field has a default, plans of earlier versions lack it.
Money is exact as it stands in the file; numbers keep how they are written (8 or 8.0).
"""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from planner.fleet.tenant import Unmoved
from planner.models.costs import BillUse, Saving, TeamShare
from planner.models.document import Number, digest, encode, need
from planner.models.estimate import Estimate
from planner.models.track_record import TrackRecord
from planner.plan.bill import ClusterBill, CostLine, CostRange, RentedOffer, distinct, not_negative
from planner.plan.job import JobPlan
from pricing.message import Messages
from pricing.money import Amount

SCHEMA = "gpucost.plan/v1"
CONTAINER_PROVIDERS = frozenset(("runpod", "vast"))
"""Who rents containers, not machines: none becomes a node of a cluster (docs.runpod.io/pods,
docs.vast.ai/instances)."""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU after packing.

    Attributes:
        id: 1, 2 ... unique within the fleet.
        offer: the machine.
        gpu: index of the GPU in it.
        mode: how jobs share it; None for a job alone.
        slice: with the mode "mig" the profile of each job's slice, in the order of jobs, between
            commas; a single one is that of every job. None: all of the GPU.
        jobs: who runs there.
        hours: how long it is held; None in plans of versions that did not say.
        cost: dollars of the period.
        lines: its bill; empty in plans of versions that did not say.
        relative_speed: of each job, 1.0 = alone.
        risks: of sharing, a sentence each; left out where nothing is shared, or the plan does not
            say.
        busy_fraction: share of the time that kernels run there, of all jobs together while they
            run, 0-1; left out where it is not known of one of them.
        memory_limit_mib: what each job may take of the GPU's memory, which exports hold it to; its
            need with its part of what is left. Left out with MIG, and where a need is not known.
        core_limit_percent: the same of the GPU's time, by the 95th percentile of each job; left out
            where it was measured on another GPU, or they take more than all of it together.
        timetable: hours of the week (UTC) in which each job holds the GPU, as "Mon-Fri 9-12", with
            the mode "timetable": all at once would not fit. Left out with every other.
    """

    id: int
    offer: RentedOffer
    gpu: int
    mode: str | None
    slice: str | None = None
    jobs: tuple[str, ...]
    hours: Number | None = None
    cost: Amount
    lines: tuple[CostLine, ...] = ()
    relative_speed: Mapping[str, Estimate]
    risks: tuple[str, ...] | UnsetType = UNSET
    busy_fraction: Number | UnsetType = UNSET
    memory_limit_mib: Mapping[str, int] | UnsetType = UNSET
    core_limit_percent: Mapping[str, int] | UnsetType = UNSET
    timetable: Mapping[str, str] | UnsetType = UNSET

    def __post_init__(self) -> None:
        not_negative(cost=self.cost)
        need(bool(self.jobs), "no job is on it")
        missing = [name for name in self.jobs if name not in self.relative_speed]
        need(not missing, f"relative_speed lacks {', '.join(missing)}")

    @property
    def is_exportable(self) -> bool:
        """Whether jobs share it all the time, on a machine that can be a node of a cluster."""
        is_node = self.offer.provider not in CONTAINER_PROVIDERS
        return len(self.jobs) > 1 and is_node and self.timetable is UNSET


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that are packed all or none: on one GPU, or on machines whose bill they share.

    Attributes:
        jobs: their names.
        placements: ids of the GPUs.
        cost: dollars of the period.
        effort_hours: engineering time until they share, our estimate.
        moving_usd: to bring their data there, once; what is not known of it is left out.
        lines: of the bill beside that of the placements: of jobs that share a machine, but no GPU.
        free: of the bill: of the GPUs of these machines that nobody holds.
    """

    jobs: tuple[str, ...]
    placements: tuple[int, ...]
    cost: CostRange
    effort_hours: Number
    moving_usd: Amount
    lines: tuple[CostLine, ...] = ()
    free: tuple[CostLine, ...] = ()


class Alternative(msgspec.Struct, frozen=True, kw_only=True):
    """The fleet with every job that can on another machine type, the others packed at home.

    Attributes:
        offer: the machine.
        jobs: who moves to it.
        gpus_after: GPUs of the whole fleet.
        cost_after: the bill of the whole fleet; what moving costs once is not in it.
        saves: against today's bill.
        placements: who runs where, of the alternative that is recommended; None of the others.
        groups: who shares with whom there; None where placements is.
    """

    offer: RentedOffer
    jobs: tuple[str, ...]
    gpus_after: int
    cost_after: Amount
    saves: Saving
    placements: tuple[Placement, ...] | UnsetType = UNSET
    groups: tuple[Group, ...] | UnsetType = UNSET

    def __post_init__(self) -> None:
        not_negative(cost_after=self.cost_after)
        need(bool(self.jobs), "no job moves to it")


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs packed on fewer GPUs.

    Attributes:
        gpus_before: GPUs held now.
        gpus_after: GPUs after packing.
        gpus_lower_bound: no packing under these limits needs fewer.
        cost_before: today's bill of all jobs with a known price.
        cost_after: the bill after packing.
        saves: the difference.
        placements: who runs where.
        unmoved: whom a GPU is held for while others are.
        alternatives: other machine types on which the fleet would cost less, cheapest first.
        gap_fraction: GPUs above the bound, as a share of it: 0 is proven best; None in plans of
            versions that did not say, or without a bound.
        search_ended_early: a time limit ended the search.
        roll_back: how to go back to a machine for each job; None where nothing is shared.
        groups: who shares with whom on today's machines, recommended or not; left out in plans of
            versions that did not say.
    """

    gpus_before: int
    gpus_after: int
    gpus_lower_bound: int
    cost_before: Amount
    cost_after: Amount
    saves: Saving
    placements: tuple[Placement, ...]
    unmoved: tuple[Unmoved, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    gap_fraction: Number | None = None
    search_ended_early: bool = False
    roll_back: str | UnsetType = UNSET
    groups: tuple[Group, ...] | UnsetType = UNSET

    def __post_init__(self) -> None:
        not_negative(cost_before=self.cost_before, cost_after=self.cost_after)
        distinct((gpu.id for gpu in self.known), "placements")

    @property
    def taken(self) -> Alternative | None:
        """The machine type on which GPUs are recommended to be shared; None: at home."""
        return next((way for way in self.alternatives if way.placements is not UNSET), None)

    @property
    def recommended(self) -> tuple[Placement, ...]:
        """Who runs where, of the packing that the recommendation is made of."""
        used = self.taken
        return self.placements if used is None else used.placements or ()

    @property
    def recommended_groups(self) -> tuple[Group, ...]:
        """Who shares with whom, of the packing that the recommendation is made of."""
        groups = self.groups if self.taken is None else self.taken.groups
        return () if groups is UNSET else groups

    @property
    def known(self) -> tuple[Placement, ...]:
        """All placements with a number: at home, and where moving is recommended."""
        return self.placements if self.taken is None else (*self.placements, *self.recommended)


class CatalogSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The prices of a plan: how many offers, and when those in force were read.

    Attributes:
        offers: in force.
        newest: day on which the newest price was read.
        oldest: of the oldest one.
        published: when the published catalog was made that was used; left out where none was.
        sha256: of the prices that did not come with this version, in hex; left out where all did.
            The same version with the same hash has the same prices.
    """

    offers: int
    newest: date
    oldest: date
    published: datetime | UnsetType = UNSET
    sha256: str | UnsetType = UNSET


class Roi(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan saves in the period, the work it takes, and when that has paid off.

    Attributes:
        saves_usd: of the period.
        effort_hours: of engineering, our estimate.
        payback_days: until the saving has paid for the work and for moving data, as far as that is
            known; None: never, or unknown.
    """

    saves_usd: Amount
    effort_hours: Number
    payback_days: Number | None = None


class RecommendedTotal(msgspec.Struct, frozen=True, kw_only=True):
    """The one total of what all jobs are to do.

    Attributes:
        cost_before: of today.
        cost: of what is recommended.
        saves: the difference.
        packed: the jobs that share a GPU or a machine anew, and those that end on it.
        unknown: the jobs whose cost is not known; they are left out.
        at_least: whether a part of the bill has no known price.
        owed_usd: of today's cost, what is owed whatever runs: machines that are owned, or paid for.
    """

    cost_before: Amount
    cost: CostRange
    saves: Saving
    packed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    at_least: bool = False
    owed_usd: Amount = Decimal(0)


class Plan(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A plan as it is written, read back and shown.

    Attributes:
        schema: `gpucost.plan/v1`.
        as_of: day of prices and rules.
        currency: USD.
        objective: what was minimised.
        period: every dollar and hour is for it.
        catalog: the prices.
        jobs: in the plan's order.
        fleet: the jobs on fewer GPUs; None where they were not packed.
        roi: saving against effort.
        assumptions: what was assumed rather than stated.
        warnings: what a reader must know.
        recommended: the one total; None in plans of versions that did not say.
        history: what the user's own record did to the predictions; left out where none was given.
        actions: the title of every action code.
        teams: the bill by team, owner and cost centre; left out where no job has such a label.
        use: what the bill of all jobs is for; left out of a single job, and in plans of versions
            that did not say.
        clusters: the Kubernetes cluster that the jobs run in: as it is today, as recommended, and
            other ways; left out where they run in none.
        messages: what the sentences outside of jobs were made of; empty in plans of versions that
            did not say.
    """

    schema: str = SCHEMA
    as_of: date
    currency: Literal["USD"] = "USD"
    objective: str
    period: Literal["month", "run"]
    catalog: CatalogSummary
    jobs: tuple[JobPlan, ...]
    fleet: Fleet | None = None
    roi: Roi
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    recommended: RecommendedTotal | None = None
    history: TrackRecord | UnsetType = UNSET
    actions: Mapping[str, str]
    teams: tuple[TeamShare, ...] | UnsetType = UNSET
    use: BillUse | UnsetType = UNSET
    clusters: tuple[ClusterBill, ...] | UnsetType = UNSET
    messages: Messages = {}

    def __post_init__(self) -> None:
        need(self.schema == SCHEMA, f"schema is {self.schema}, not {SCHEMA}")
        distinct((job.name for job in self.jobs), "jobs")
        ids = {gpu.id for gpu in self.fleet.known} if self.fleet else set()
        for job in self.jobs:
            exists = job.placement is None or job.placement in ids
            need(exists, f"job {job.name} is on placement {job.placement}, which fleet lacks")

    @cached_property
    def id(self) -> str:
        """SHA-256 of the values of the file, as read; of a plan made now, as written."""
        return digest(encode(self))

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The GPUs of the packing that is recommended, without those that its jobs do not take."""
        taken = {job.placement for job in self.jobs}
        return tuple(p for p in (self.fleet.recommended if self.fleet else ()) if p.id in taken)

    def placement_of(self, job: JobPlan) -> Placement | None:
        """Return the GPU that a job is recommended to share; None where it goes its own way."""
        places = self.fleet.known if self.fleet else ()
        return next((gpu for gpu in places if gpu.id == job.placement), None)
