"""What the user asks of a plan: the objective, hard limits, and what may be offered."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal, get_args

import msgspec

from planner.actions import ACTIONS
from planner.models.interruption import CHECKPOINTS, Availability, CheckpointCosts
from planner.models.track_record import TrackRecord
from planner.profile import fields as ranges
from planner.profile.model import Profile
from pricing.catalog.catalog import Catalog, unknown_names
from pricing.catalog.offer import BOUGHT, PURCHASES, Offer, parse_place
from pricing.catalog.regions import known_regions
from pricing.errors import InputError
from pricing.hardware import matching
from pricing.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What the user knows of the place where the machines stand; None = unknown, left out.

    Attributes:
        grid_g_per_kwh: grams of CO2 equivalent for each kWh, >= 0.
        pue: energy of the site over that of its machines, >= 1.
        host_fraction: share of a node's power that is not its GPU boards', 0 to below 1 (0.2 to 0.4
            is usual).

    Raises:
        InputError: a value is outside its range.
    """

    grid_g_per_kwh: float | None = None
    pue: float | None = None
    host_fraction: float | None = None

    def __post_init__(self) -> None:
        stated = (
            ("grid intensity (g/kWh)", self.grid_g_per_kwh, ranges.GRID_G_PER_KWH),
            ("PUE", self.pue, ranges.PUE),
            ("the host's share", self.host_fraction, ranges.HOST_FRACTION),
        )
        wrong = [
            f"{what}: {value:g} {refusal}."
            for what, value, allowed in stated
            if value is not None and (refusal := allowed.refusal(value))
        ]
        if wrong:
            raise InputError(wrong)

    @property
    def factor(self) -> float:
        """Return energy of the site over that of the GPU boards, as far as it was given."""
        return (self.pue or 1.0) / (1.0 - (self.host_fraction or 0.0))

    @property
    def covers(self) -> str:
        """Return what the energy is of."""
        if self.host_fraction is None and self.pue is None:
            return Message("energy.boards-alone")
        host = Message("energy.boards" if self.host_fraction is None else "energy.boards-and-host")
        return host if self.pue is None else Message("energy.pue", what=host, pue=self.pue)


UNKNOWN_SITE = Site()
"""Nothing is known of the place: energy is of the boards alone, carbon unknown."""


Reason = Literal[
    "memory",
    "latency",
    "deadline",
    "budget",
    "slowdown",
    "capability",
    "gpu-count",
    "region",
    "purchase",
    "unavailable",
    "stale-price",
    "unknown-gpu",
    "interconnect",
    "moves",
]


class Rejected(msgspec.Struct, frozen=True, kw_only=True):
    """An offer that cannot be taken, or today's machine that breaks a limit, and why.

    Attributes:
        offer: `provider/type`, the least dear of those rejected alike; empty in plans of versions
            that did not say it of today's machine.
        reason: one word.
        detail: one sentence with the figures.
        excess: how far over the limit it is, as a multiple of it; 1 where there is no degree.
    """

    offer: str = ""
    reason: Reason
    detail: str
    excess: float = 1.0


class _NodePool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nodes of one size: so many, or as many as the autoscaler starts."""

    type: str
    count: int | None = None
    min: int = 0
    max: int = 0
    usd_per_hour: Decimal | None = None

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the most nodes."""
        return (self.min, self.max) if self.count is None else (self.count, self.count)


CLUSTER_PROVIDERS = {"doks": "digitalocean", "eks": "aws"}


class Cluster(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The managed Kubernetes cluster that the jobs run in.

    Attributes:
        kind: `doks` or `eks`.
        region: the provider's name for it; where an EKS cluster says none, us-east-1 is taken.
        control_plane: its kind, as `gpucost quote --control-plane` takes it.
        cpu_nodes: pools without GPUs.
        gpu_nodes: pools with GPUs; none: as many nodes as the jobs use.
    """

    kind: Literal["doks", "eks"]
    region: str = ""
    control_plane: str = "standard"
    cpu_nodes: tuple[_NodePool, ...] = ()
    gpu_nodes: tuple[_NodePool, ...] = ()

    @property
    def provider(self) -> str:
        """Who bills it."""
        return CLUSTER_PROVIDERS[self.kind]


Objective = Literal["cost", "time", "cost-per-work"]
Period = Literal["run", "month"]

# What a change must earn its work back in, and what an hour of that work costs: our choice of round
# figures, listed under the plan's assumptions.
HORIZON_MONTHS = Decimal(6)
ENGINEER_USD_PER_HOUR = Decimal(100)

BOOT_DISK_GIB = 100
"""Disk that a machine is taken to boot from where nobody says: what dstack and nodes of GKE have by
default (100 GB: dstack.ai/docs, cloud.google.com/kubernetes-engine, 2026-11)."""

OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
INCLUDABLE = ("community", "any-vendor", "any-arch")
_RANGES: dict[str, ranges.NumberRange] = {
    "deadline_h": ranges.HOURS,
    "budget_usd": ranges.DOLLARS,
    "hours_per_month": ranges.HOURS_A_MONTH,
    "work_total": ranges.WORK,
    "egress_bytes": ranges.BYTES,
    "storage_bytes": ranges.BYTES,
    "boot_disk_bytes": ranges.BYTES,
    "slo_ms": ranges.MILLISECONDS,
    "max_slowdown": ranges.SLOWDOWN,
    "price_usd_per_hour": ranges.DOLLARS,
    "engineer_usd_per_hour": ranges.DOLLARS,
    "horizon_months": ranges.MONTHS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """The wishes of one `plan`; every default is the contract's.

    Attributes:
        objective: what is minimised.
        deadline_h: a job's hours must stay under it, at the 95 % end of their interval.
        budget_usd: a job's cost for the period must stay under it, at the same end.
        providers: only these, when any are named; a named provider's community hosts count.
        regions: only these, when any are named; an offer with one price everywhere fits all.
        gpus: only these GPU models, when any are named; a family ("H100") stands for its models.
        gpu_counts: least and most GPUs; None = chosen from the job.
        purchases: ways of buying to consider; none named = on demand, and as today.
        hours_per_month: held hours of every job, in place of the profiles' own.
        work_total: units of one run; makes the period a run.
        egress_bytes: data sent out in the period; None = the profile's own.
        egress_to: country or continent that they are sent to, in words, where prices differ by it.
        storage_bytes: data kept for the period; None = the profile's own.
        boot_disk_bytes: disk that each machine boots from, on every bill; 0 leaves it out.
        public_address: each machine has a public IPv4 address, on every bill.
        slo_ms: latency target of every job, in place of the profiles' own.
        consolidate: put several jobs on one GPU; None = when there is more than one job.
        max_moves: the most jobs that may be moved to share a GPU; None = any number.
        ends_search: says when the search for a better packing is to end with the best found so
            far; by itself it ends after the same work on any machine.
        max_slowdown: the most a job may slow down: by sharing, on a smaller GPU while it is held,
            or in the hours of its work on a cheaper machine.
        accepts_slower: whether work may take longer than that on a cheaper machine, as for someone
            who asked for the lowest cost; where there is a deadline, it alone counts.
        current: `provider/type[/region]` that runs the jobs today.
        price_usd_per_hour: what one of today's machines costs an hour, in place of the list price.
        owned: today's machines are paid for already, whatever runs on them.
        paid_until: the last day for which they are; None: not said.
        actions: codes of actions that every option has.
        without: codes of actions that none has.
        whole_machine: a job on part of a machine bears all of its bill.
        machine_only: boot disks, addresses and the disk of a job's data set are left out of every
            bill.
        include: of INCLUDABLE, what is left out by default.
        engineer_usd_per_hour: rate of the people who apply actions.
        horizon_months: over which a change must pay for itself; None = HORIZON_MONTHS. A plan per
            run counts one run, or those that the hours of a month in the profile hold.
        launchable: providers on which this version can launch; None: not said, so none is known.
            `gpucost.make_plan` fills it in.
        launchable_only: every option must be one that this version can launch; today's machine,
            which runs already, stays the alternative.
        spot_trace: availability of spot capacity, for lost work, wall time and deadlines.
        checkpoints: what surviving an interruption costs.
        site: grid, PUE and host share, for energy and carbon.
        probes: profiles of the planned jobs elsewhere, by job.name; never jobs of their own.
        history: what became of earlier predictions: it centres and widens new ones.
        cluster: of Kubernetes, that the jobs run in; None: as the profiles say it.

    Raises:
        InputError: a word is not known, or a number out of its range; all such problems are listed.
            Providers and regions are held against a catalog by `check_sold`.
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
    egress_to: str = ""
    storage_bytes: int | None = None
    boot_disk_bytes: int = BOOT_DISK_GIB * 2**30
    public_address: bool = True
    slo_ms: float | None = None
    consolidate: bool | None = None
    max_moves: int | None = None
    ends_search: Callable[[], bool] = bool  # False: nothing ends it
    max_slowdown: float = 1.2
    accepts_slower: bool = False
    current: str | None = None
    price_usd_per_hour: Decimal | None = None
    owned: bool = False
    paid_until: date | None = None
    actions: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    whole_machine: bool = False
    machine_only: bool = False
    include: frozenset[str] = frozenset()
    engineer_usd_per_hour: Decimal = ENGINEER_USD_PER_HOUR
    horizon_months: Decimal | None = None
    launchable: frozenset[str] | None = None
    launchable_only: bool = False
    spot_trace: Availability | None = None
    checkpoints: CheckpointCosts = CHECKPOINTS
    site: Site = UNKNOWN_SITE
    probes: tuple[Profile, ...] = ()
    history: TrackRecord | None = None
    cluster: Cluster | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant; write GPU models and regions as the catalog does."""
        models, problems = _models(self.gpus)
        problems += [*_unknown_words(self), *_out_of_range(self)]
        if problems:
            raise InputError(problems)
        object.__setattr__(self, "gpus", models)
        object.__setattr__(self, "regions", tuple(region.lower() for region in self.regions))

    def can_launch(self, offer: Offer) -> bool:
        """Return whether a launch can buy an offer: terms and contracts are bought by hand."""
        bought = offer.purchase in BOUGHT and not offer.contract_only
        return bought and offer.provider in (self.launchable or ())

    @property
    def most_time_factor(self) -> float:
        """How much longer work may take than today and be recommended: no limit if so asked."""
        waits = self.accepts_slower or self.deadline_h is not None
        return math.inf if waits else self.max_slowdown

    @property
    def limits_a_job(self) -> bool:
        """Whether a job's hours or its cost must stay under something."""
        return self.deadline_h is not None or self.budget_usd is not None

    @property
    def horizon(self) -> Decimal:
        """Months over which a change of a monthly plan must pay for itself."""
        return HORIZON_MONTHS if self.horizon_months is None else self.horizon_months


def check_sold(requirements: Requirements, catalog: Catalog) -> None:
    """Check the providers and regions that were asked for against what is sold.

    Raises:
        InputError: names every unknown one, with the nearest known ones.
    """
    problems: list[str] = []
    if requirements.providers:
        sellers = (offer.provider for offer in catalog.offers)
        problems += unknown_names("--provider", requirements.providers, sellers)
    if requirements.regions:
        problems += unknown_names("--region", requirements.regions, known_regions(catalog.offers))
    if problems:
        raise InputError(problems)


def _models(names: Iterable[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the canonical models that are meant, and a sentence for each name that means none."""
    models: list[str] = []
    problems: list[str] = []
    for name in names:
        try:
            models += (gpu.name for gpu in matching(name))
        except InputError as error:
            problems += error.problems
    return tuple(dict.fromkeys(models)), problems


def _unknown_words(requirements: Requirements) -> Iterator[str]:
    fields = (
        ("objective", (requirements.objective,), OBJECTIVES),
        ("purchases", requirements.purchases, PURCHASES),
        ("include", sorted(requirements.include), INCLUDABLE),
        ("--action", requirements.actions, tuple(ACTIONS)),
        ("--without", requirements.without, tuple(ACTIONS)),
    )
    for field, given, valid in fields:
        for word in given:
            if word not in valid:
                yield f"{field}: {word!r} is not one of {', '.join(valid)}."
    if requirements.current is not None:
        try:
            parse_place(requirements.current)
        except InputError as error:
            yield from error.problems


def _out_of_range(requirements: Requirements) -> Iterator[str]:
    for field, allowed in _RANGES.items():
        value = getattr(requirements, field)
        refusal = None if value is None else allowed.refusal(value)
        if refusal is not None:
            yield f"{field}: {value:g} {refusal}."
    if requirements.price_usd_per_hour == 0:
        yield "--price 0: nothing is saved on a free machine; give its price an hour."
    if requirements.gpu_counts is not None:
        (low, high), sold = requirements.gpu_counts, ranges.GPUS
        if sold.refusal(low) or sold.refusal(high) or low > high:
            bounds = f"each {sold.low:g} to {sold.high:g}"
            yield f"gpu_counts: {requirements.gpu_counts} is not (least, most), {bounds}."
