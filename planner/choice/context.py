"""All that the checks of one job need: its host, and how many machines of a size it would take."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from planner.actions import Action, action
from planner.choice.baseline import Baseline, seconds, where
from planner.choice.offers import Market, OnSale
from planner.choice.requirements import Reason, Requirements
from planner.choice.workload import Workload
from planner.models.costs import WorkCost, work_cost
from planner.prediction.kernels import lacks_of
from planner.prediction.layout import GPUS_PER_NODE
from planner.prediction.predict import Predictions, Split
from planner.prediction.probes import fewer_gpus
from planner.profile.kinds import HOST_OUT_OF_MEMORY, JobKind
from planner.profile.model import Profile
from planner.profile.source import source_gpu
from planner.signals.compute_share import time_on_gpu
from planner.signals.condition import Signals
from planner.signals.finding import Finding
from planner.signals.signals import memory_need_gib
from planner.signals.thresholds import CPU_FULL, IDLE
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer
from pricing.catalog.regions import (
    continent_named,
    continent_of,
    countries_of,
    country_of,
    longest_trip_ms,
    placed,
    round_trip_ms,
)
from pricing.hardware import Gpu
from pricing.message import Message, join
from pricing.money import usd
from pricing.tables import read_csv

_THREADS = 2  # of a core, at most, on the hosts of x86 clouds
_ROUNDING = 1e-6
# What several jobs leave free of a host, for the system and for unmeasured peaks: our choice.
_SHARED_CORES = 0.9
_RESERVED_RAM_GIB = 1.0
_MOST_CORES_A_JOB = 4.0  # that a job which does not fill its host is taken to need; our choice


@dataclass(frozen=True, slots=True, kw_only=True)
class HostNeed:
    """What jobs keep busy of their host; None = not measured.

    Attributes:
        cores: busy most of the time (95 % of it), over all machines.
        ram_gib: the most memory held, over all machines, GiB.
    """

    cores: float | None
    ram_gib: float | None

    @property
    def is_known(self) -> bool:
        """Whether anything of it was measured."""
        return self.cores is not None or self.ram_gib is not None


_MORE_RAM = 1.1  # over a host that ran out; machines of one size are sold as 15.3 to 16 GiB


def host_need(profile: Profile) -> HostNeed:
    """Return what one job takes of its host: the cores' 95th percentile, the memory's maximum."""
    host, cores = profile.host, profile.hardware.cpu_cores
    used, ram = (host.cpu_util, host.ram_used_gib) if host else (None, None)
    share = None if used is None else used.p95 if used.p95 is not None else used.typical
    ram_gib = None if ram is None else ram.peak if ram.peak is not None else ram.typical
    if profile.job.ended == HOST_OUT_OF_MEMORY:
        ram_gib = max(ram_gib or 0.0, _MORE_RAM * (profile.hardware.ram_gib or 0.0)) or None
    busy = None if share is None or cores is None else share * cores
    return HostNeed(cores=busy, ram_gib=ram_gib)


def together(needs: Iterable[HostNeed]) -> HostNeed:
    """Return what several jobs take of one host, as far as they were measured."""
    complete = tuple(needs)
    cores = [need.cores for need in complete if need.cores is not None]
    ram = [need.ram_gib for need in complete if need.ram_gib is not None]
    return HostNeed(cores=sum(cores) if cores else None, ram_gib=sum(ram) if ram else None)


def host_lacks(
    need: HostNeed, vcpus: float | None, ram_gib: float | None
) -> tuple[Reason, str] | None:
    """Return why a host does not carry that; None where it does, or if it is unknown."""
    if need.cores is not None and vcpus is not None and need.cores > vcpus + _ROUNDING:
        return "capability", Message("no.cores", n=vcpus, busy=need.cores)
    if need.ram_gib is not None and ram_gib is not None and need.ram_gib > ram_gib + _ROUNDING:
        return "memory", Message("no.host-memory", gib=ram_gib, used=need.ram_gib)
    return None


def host_unknown(need: HostNeed, vcpus: float | None, ram_gib: float | None) -> str | None:
    """Return what of a host is unknown although the job was seen to need it; None otherwise."""
    missing = []
    if vcpus is None and need.cores is not None:
        missing.append(Message("why.host-cores", busy=need.cores))
    if ram_gib is None and need.ram_gib is not None:
        missing.append(Message("why.host-memory", used=need.ram_gib))
    return Message("why.host-unknown", what=join(missing, "and")) if missing else None


def crowded(
    profiles: Sequence[Profile], vcpus: float | None, ram_gib: float | None
) -> tuple[Reason, str] | None:
    """Return why jobs cannot stand on one host; None where nothing measured speaks against it.

    Busy cores and memory add up, as they are 95 % of the time, with a reserve left free.
    """
    if len(profiles) == 1:
        return None
    need = together(need_beside_others(profile) for profile in profiles)
    lack = host_lacks(need, *shared_host(vcpus, ram_gib))
    return lack and (lack[0], Message("share.host-reserve", lack=lack[1]))


def need_beside_others(profile: Profile) -> HostNeed:
    """Return what a job takes of a host that it shares.

    Runtimes that wait for the GPU spin on all the cores that they were given: a job that does not
    fill its host is taken to need a few of its busy cores, and `host_share` says what more may
    cost. Peaks of memory do not come together.
    """
    host, need = profile.host, host_need(profile)
    used, held = (host.cpu_util, host.ram_used_gib) if host else (None, None)
    full = used is not None and (used.typical or 0.0) >= CPU_FULL
    cores = need.cores if need.cores is None or full else min(need.cores, _MOST_CORES_A_JOB)
    ram = need.ram_gib if held is None else held.p95 or held.typical or held.peak
    return HostNeed(cores=cores, ram_gib=ram)


def shared_host(vcpus: float | None, ram_gib: float | None) -> tuple[float | None, float | None]:
    """Return the cores and the memory (GiB) of a host that several jobs may fill."""
    return (
        None if vcpus is None else vcpus * _SHARED_CORES,
        None if ram_gib is None else ram_gib - _RESERVED_RAM_GIB,
    )


def host_share(profiles: Sequence[Profile], vcpus: float | None) -> float:
    """Return the speed of jobs together if all cores that they keep busy do needed work, <= 1."""
    total = sum((p.cpu_fraction or 0.0) * (p.hardware.cpu_cores or 0.0) for p in profiles)
    return 1.0 if vcpus is None or len(profiles) == 1 or total <= vcpus else vcpus / total


USE_GPU = "use-gpu"
STAGES = frozenset(("prepare-before", "stage-on-cpu"))
"""Actions that put a part of a job on machines without a GPU, before the GPU is rented."""
CPU_MOVE_H = 2.0  # of engineering, to another kind of machine; our estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class _CpuMachine:
    """A machine without a GPU that carries a job.

    Attributes:
        usd: of the period, of as many as there are today.
        name: provider and type.
        vcpus: of one.
    """

    usd: Decimal
    name: str
    vcpus: str


@dataclass(frozen=True, kw_only=True)
class JobContext:
    """All that the checks of one job need.

    Attributes:
        profile: what was measured of the GPUs that work.
        measured: all that was measured.
        baseline: what runs today.
        work: the hours and data of the period.
        signals: every signal of the profile.
        parts: where the time goes.
        fixes: safe actions with a known effect.
        findings: the causes, as diagnosed.
        idle_share: share of the time that ending the machine when idle may save; None where none.
        catalog: offers and rules of the day.
        asked: limits and wishes.
        probes: the same job measured elsewhere.
        shared: what all jobs of the plan share; None: a plan of this job alone.
    """

    profile: Profile
    measured: Profile
    baseline: Baseline
    work: Workload
    findings: tuple[Finding, ...]
    signals: Signals
    parts: Split
    fixes: tuple[Action, ...]
    idle_share: float | None
    catalog: Catalog
    asked: Requirements
    probes: tuple[Profile, ...] = ()
    shared: Market | None = None

    @cached_property
    def gpu(self) -> Gpu:
        """The GPU that was profiled."""
        return source_gpu(self.profile)

    @cached_property
    def idle_cores(self) -> tuple[float, float] | None:
        """The threads that the job fills, and all of today's machines, where these have far more.

        None where other jobs may have them, and where a count of cores, not threads, says the same.
        """
        today, cores, count = self.baseline.offer, self.profile.hardware.cpu_cores, 0.0
        if today is not None and not self.baseline.assumed:
            count = (today.vcpus or 0.0) * self.baseline.count
        if today is None or cores is None or cores * _THREADS >= count:
            return None
        has_all = self.profile.gpu_count == today.gpu_count * self.baseline.count
        full = (self.profile.cpu_fraction or 0.0) >= CPU_FULL
        return (cores, count) if has_all and full else None

    @cached_property
    def cpu_architecture(self) -> str:
        """Of today's host, else of the hosts that the profiled GPU is sold on."""
        today = self.baseline.offer
        return today.cpu_architecture if today else self.gpu.host_architecture

    @cached_property
    def lacks(self) -> Callable[[Gpu], str | None]:
        """What the job uses of its GPU that another one lacks."""
        return lacks_of(self.profile, self.gpu)

    @cached_property
    def market(self) -> Market:
        """What all jobs of the plan share."""
        return self.shared or Market(catalog=self.catalog, asked=self.asked)

    @cached_property
    def periods(self) -> Decimal:
        """How many of the plan's periods the horizon holds: months, or runs.

        Those that fit into the hours of a month that the profile states; else the one run.
        """
        usage, run_h = self.profile.usage, self.work.hours.mid
        if self.work.storage_h is not None:
            return self.asked.horizon
        if usage is None or not usage.hours_per_month:
            return Decimal(1)
        runs_a_month = Decimal(repr(round(usage.hours_per_month / run_h, 3)))
        return max(Decimal(1), self.asked.horizon * runs_a_month)

    def sized(self, offer: Offer) -> OnSale:
        """Return what machines of an offer one copy of the job would take, and their GPUs."""
        gpus, today = self.profile.gpu_count, self.baseline.has_size(offer)
        each = self.baseline.count // self.baseline.replicas
        count = each if today else _machines(offer, gpus, each, self)
        idle = _idle(offer, gpus, self)
        used = gpus if today or idle else round(offer.gpu_count) * count
        return OnSale(offer, count, used, idle, today)

    def work_cost(self, cost: Decimal | None) -> WorkCost | None:
        """Return what an amount of the job's work costs, of a bill of the period."""
        unit = self.profile.work.unit if self.profile.work else "output token"  # of a service
        return work_cost(cost, self.work.units, unit)

    @cached_property
    def trial(self) -> tuple[str, ...]:
        """The change of the program that is tried here first, and goes along to other machines.

        Safe, the first that the first finding calls for, of unknown gain: no bill counts on it.
        None where a gain is known, where all of the waste would not pay its work, and where a
        machine keeps a limit that is broken here.
        """
        cause, rate = self.findings[0], self.asked.engineer_usd_per_hour
        called = [action(code, self.signals) for code in cause.actions]
        cures = [cure for cure in called if cure.kind != "structural"]
        is_open = bool(cures) and (cures[0].kind, cures[0].effect) == ("safe", None)
        if not is_open or cause.confidence == "possible" or self.baseline.must_change:
            return ()
        work_usd, waste_usd = Decimal(str(cures[0].effort_hours)) * rate, cause.waste_usd
        pays = waste_usd is None or waste_usd * self.periods > work_usd
        is_known = waste_usd is not None and any(cure.effect for cure in cures)
        return (cures[0].code,) if pays and not (is_known or cures[0].stays) else ()

    @cached_property
    def fewer_gpus(self) -> dict[int, float]:
        """The speed that fewer of today's GPUs were measured at, by their number."""
        return fewer_gpus(self.profile, self.probes)

    @cached_property
    def host(self) -> HostNeed:
        """What the job takes of its host today."""
        return host_need(self.profile)

    @cached_property
    def cpu_machine(self) -> _CpuMachine | None:
        """The cheapest machine without a GPU that carries the job, at today's provider if it can.

        None where the job uses a GPU, or none saves: it uses none where its first finding says so,
        or it prepares data with next to nothing on the GPU.
        """
        busy = self.profile.paid_busy_fraction
        is_idle = self.profile.job.kind is JobKind.DATA_PREPARATION and busy is not None
        says_so = bool(self.findings) and self.findings[0].actions == (USE_GPU,)
        if not says_so and not (is_idle and (busy or 0.0) < IDLE):
            return None
        return self._cpu_machine(1.0)

    @cached_property
    def cpu_stage(self) -> tuple[Finding, _CpuMachine] | None:
        """What shows that a part of the job needs no GPU, and the machine for that part's hours.

        None where nothing does, or no machine without a GPU does that part for less.
        """
        stages = (f for f in self.findings if STAGES & {*f.actions} and f.confidence != "possible")
        finding = next(stages, None)
        share = finding.waste_fraction if finding else None
        machine = self._cpu_machine(share) if share else None
        return (finding, machine) if finding and machine else None

    def _cpu_machine(self, share: float) -> _CpuMachine | None:
        """Return the cheapest machine without a GPU that carries a share of the job's hours."""
        today, bill, need = self.baseline.offer, self.baseline.quote, self.host
        count = self.baseline.count
        if today is None or bill is None or need.cores is None or self.baseline.tenancy:
            return None
        hours = seconds(self.work.hours.mid * share)
        machines = list[tuple[bool, _CpuMachine]]()
        for row in read_csv("cpu_nodes.csv"):
            cores, ram_gib = float(row["vcpus"]) * count, float(row["ram_gib"]) * count
            if cores >= need.cores and ram_gib >= (need.ram_gib or 0.0):
                cap = Decimal(row["usd_per_month"] or "Infinity")
                price = min(usd(row["usd_per_hour"]) * hours, cap) * count
                name = f"{row['provider']}/{row['instance_type']}"
                machine = _CpuMachine(usd=price, name=name, vcpus=row["vcpus"])
                machines.append((row["provider"] != today.provider, machine))
        _, best = min(machines, key=lambda at: (at[0], at[1].usd), default=(True, None))
        part_usd = bill.by_time * seconds(share)
        return best if best is not None and best.usd < part_usd else None

    @cached_property
    def memory_gib(self) -> float | None:
        """The most memory that one GPU held."""
        return memory_need_gib(self.profile)

    @cached_property
    def load(self) -> float | None:
        """The share of time in which requests keep the GPU busy; None where not measured.

        Kernels of one job run one after another, so it is their time that a slower GPU stretches.
        """
        return time_on_gpu(self.profile)

    @cached_property
    def latency_ms(self) -> float | None:
        """The most that the strictest measured percentile of the latency may be."""
        return self.profile.job.worst_latency_ms

    @cached_property
    def stays_on(self) -> str | None:
        """The continent that a service with a latency target stays on, unless regions were asked.

        That of its users where --egress-to says where they are. None for other jobs, and where
        today's machine is assumed or its place is not known.
        """
        today, job = self.baseline.offer, self.profile.job
        bound = job.kind.answers and job.latency_slo_ms is not None
        if bound and self.users_in and not self.asked.regions:
            return continent_named(self.users_in)
        if not bound or self.asked.regions or today is None or self.baseline.assumed:
            return None
        return continent_of(where(today, self.profile))

    @cached_property
    def users_in(self) -> str:
        """The country or continent of those who wait for answers; empty: not known.

        Where --egress-to does not say it and a latency target was measured, the country of today's
        machine, unless regions were asked for that leave it out.
        """
        if not self.profile.job.kind.answers or self.asked.egress_to:
            return country_of(self.asked.egress_to) if self.profile.job.kind.answers else ""
        today, is_bound = self.baseline.offer, math.isfinite(self.room_ms)
        if not is_bound or today is None or self.baseline.assumed:
            return ""
        home = where(today, self.profile)
        names = countries_of(home) if placed(home, self.asked.regions) else ()
        return next(iter(names), "") if len(names) == 1 else ""

    def farther_ms(self, offer: Offer) -> float:
        """Return how much longer a request's way is from its users than today, ms.

        0 where it is no longer, or only a continent is said. Where nobody published it, the longest
        that was published on their continent; infinite elsewhere.
        """
        today, users = self.baseline.offer, self.users_in
        if today is None or not users or continent_named(users) == users:
            return 0.0
        home = where(today, self.profile)
        if self.baseline.is_here(offer) or countries_of(offer) == countries_of(home):
            return 0.0
        trip_ms = round_trip_ms(offer, users)
        today_ms = 0.0 if self.baseline.assumed else round_trip_ms(home, users) or 0.0
        if trip_ms is None and (area := continent_of(offer)) == continent_named(users):
            trip_ms = longest_trip_ms(area)
        return math.inf if trip_ms is None else max(0.0, trip_ms - today_ms)

    @cached_property
    def room_ms(self) -> float:
        """How much longer the way from its users may be within the target, as fast as now."""
        target, latency_ms = self.profile.job.latency_slo_ms, self.latency_ms
        return target - latency_ms if target and latency_ms else math.inf

    def there(self, offer: Offer) -> Offer | None:
        """Return the offer in a region where the job may run; None where nothing shows one."""
        return self.market.there(offer, self.stays_on)

    @cached_property
    def predictions(self) -> Predictions:
        """How fast the job is elsewhere."""
        return Predictions(
            profile=self.profile, parts=self.parts, probes=self.probes, record=self.asked.history
        )


def measured_cores(offer: Offer, context: JobContext) -> float | None:
    """Return the threads of one machine of today's size that the job was seen to have, else None.

    They may be fewer than the size has: a container's, or those of one of several GPUs.
    """
    cores = context.profile.hardware.cpu_cores
    if cores is None or not context.baseline.has_size(offer):
        return None
    return cores / (context.profile.hardware.nodes or 1)


def _machines(offer: Offer, gpus: int, today: int, context: JobContext) -> int:
    """Return as many nodes as today, or whole large machines, of another size than today's.

    Where a provider sells a GPU by ones and by eights and the job wants a number between, training
    takes as many single ones as it wants; so does, anywhere, a job whose GPUs work apart.
    """
    nodes = context.profile.hardware.nodes or today
    if nodes > 1 and offer.gpu_count * nodes == gpus:
        return nodes
    if offer.gpu_count >= GPUS_PER_NODE and gpus % offer.gpu_count == 0:
        return max(1, int(gpus // offer.gpu_count))
    job = context.profile.job
    spreads = job.kind.trains and not job.splits_the_model  # else it needs the links of one machine
    is_apart = context.profile.works_apart or (spreads and _not_sold(offer, gpus, context))
    return gpus if offer.gpu_count == 1 and is_apart else 1


def _idle(offer: Offer, gpus: int, context: JobContext) -> int:
    if not _not_sold(offer, gpus, context):
        return 0
    larger = [n for n in context.catalog.gpu_counts(offer) if n > gpus]
    return round(offer.gpu_count) - gpus if larger and offer.gpu_count == larger[0] else 0


def _not_sold(offer: Offer, gpus: int, context: JobContext) -> bool:
    """Return whether the provider sells this GPU, but no machine with as many as the job wants."""
    return 1 < gpus < GPUS_PER_NODE and gpus not in context.catalog.gpu_counts(offer)
