"""Jobs as the packing sees them, what they take by the hour, and how fast they run together.

Jobs that are busy at the same hours do not share a GPU that their means over the week would fit on:
in each hour they take at most `BUSIEST` of it, and as five-minute means no more than all of it in
all but `POINTS_ABOVE` of the time. Means and variances of jobs add up; the hour itself is what busy
times have in common, and within it jobs are taken as independent, their sum as normal.
"""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import NamedTuple

import msgspec

from planner.choice.baseline import Baseline, gpu_memory_gib
from planner.choice.context import host_share
from planner.choice.requirements import Requirements
from planner.choice.workload import DAY_H, hourly_demand, measured_requests_per_s
from planner.fleet.placements import Away, Home
from planner.models.estimate import Estimate
from planner.prediction.probes import speed_on_slice
from planner.prediction.sharing import partitioned, peak_share, shared_speed
from planner.prediction.slices import Probes, compute_of, cut, grown_need_gib, smallest, speeds_on
from planner.profile.model import Profile
from planner.profile.source import source_gpu
from planner.signals.compute_share import busy_there, compute_share, time_on_gpu
from planner.signals.signals import WEEK_H, too_little_read, turn_hours
from planner.signals.thresholds import BUSIEST, USABLE
from pricing.catalog.offer import Offer
from pricing.hardware import Gpu, MigProfile, gpus, partition_modes
from pricing.message import Message

CONTEXT_GIB = 0.6  # per process on a shared GPU: the contract's allowance

POINTS_ABOVE = 0.05
QUANTILE = NormalDist().inv_cdf(1.0 - POINTS_ABOVE)
_ROUNDING = 1e-9


class HourlyLoad(NamedTuple):
    """Shares of a GPU's time, hour by hour.

    Attributes:
        mean: of 24 or 168 hours, each at least 0.
        variance: of five-minute means in the hour; 0 where only the hour's mean is known.
    """

    mean: tuple[float, ...]
    variance: tuple[float, ...]

    def over(self, hours: int) -> "HourlyLoad":
        """Return the same of a week where it is of a day: every day is like that day."""
        times = hours // len(self.mean)
        return HourlyLoad(self.mean * times, self.variance * times)

    def of_a_day(self) -> "HourlyLoad":
        """Return the most that is taken in each hour of the day on any day."""
        mean, variance = (
            tuple(max(values[hour::DAY_H]) for hour in range(DAY_H)) for values in self
        )
        return HourlyLoad(mean, variance)


def hourly_load(profile: Profile, share: float | None) -> HourlyLoad | None:
    """Return what a job takes in each hour; None where that is not known.

    Stated demand goes before the hours of a recording: it is the measured share, times the demand
    of the hour over the requests that were measured.

    Args:
        profile: what was measured.
        share: of the GPU that it would share, mean; None: not known.
    """
    demand, measured = hourly_demand(profile), measured_requests_per_s(profile)
    if share is None:
        return None
    if demand is not None and measured:
        mean = tuple(share * rate / measured for rate in demand)
        return HourlyLoad(mean, (0.0,) * len(mean))
    use, measured_share = profile.by_hour, compute_share(profile)
    if use is None or not use.mean:
        return None
    factor = share / measured_share if measured_share else 1.0
    spread = use.spread if len(use.spread) == len(use.mean) else (0.0,) * len(use.mean)
    return HourlyLoad(
        tuple(factor * mean for mean in use.mean),
        tuple((factor * deviation) ** 2 for deviation in spread),
    )


def all_by_hour(jobs: Sequence[tuple[HourlyLoad | None, float]]) -> list[HourlyLoad]:
    """Return what each job takes in each hour of one day or week; none where no job's is known.

    Args:
        jobs: what each takes by the hour, and at any hour where that is not known.
    """
    hours = max((len(load.mean) for load, _ in jobs if load), default=0)
    if not hours:
        return []
    flat = (0.0,) * hours
    return [
        load.over(hours) if load else HourlyLoad((share,) * hours, flat) for load, share in jobs
    ]


def together(jobs: Sequence[HourlyLoad]) -> HourlyLoad:
    """Return what jobs take together, in hours of the same day or week."""
    return HourlyLoad(
        tuple(map(sum, zip(*(job.mean for job in jobs), strict=True))),
        tuple(map(sum, zip(*(job.variance for job in jobs), strict=True))),
    )


def peak_at(load: HourlyLoad, hour: int) -> float:
    """Return the share that is exceeded in an hour for `POINTS_ABOVE` of the time."""
    return load.mean[hour] + QUANTILE * math.sqrt(load.variance[hour])


def too_busy(jobs: Sequence[HourlyLoad]) -> int | None:
    """Return the busiest hour where jobs take too much of a GPU; None where none is too busy.

    What one job takes of an hour alone it may take beside others that take nothing then.
    """
    load = together(jobs)

    def excess(hour: int) -> float:
        mean = max(BUSIEST, *(job.mean[hour] for job in jobs))
        peak = max(1.0, *(peak_at(job, hour) for job in jobs))
        return max(load.mean[hour] / mean, peak_at(load, hour) / peak)

    hour = max(range(len(load.mean)), key=excess)
    return None if excess(hour) <= 1.0 + _ROUNDING else hour


class Room(NamedTuple):
    """A sum that says of jobs whether they fit, in place of mean and variance.

    The sum of `mean + weight x variance` is at most `most` only where the mean plus `QUANTILE`
    deviations is at most 1, for any weight: the root is concave. It is exact where the variance
    is that of an evenly filled GPU.
    """

    weight: float
    most: float


_MOST_WEIGHT = QUANTILE**2 / (4.0 * (1.0 - BUSIEST))  # at which `most` is BUSIEST


def room_for(load: HourlyLoad) -> Room:
    """Return the sum by which jobs that take so much together are packed best."""
    fullest, weight = 0.0, _MOST_WEIGHT
    for mean, variance in zip(*load, strict=True):
        # A GPU each of n: mean / n + QUANTILE x (variance / n)^0.5 = 1, solved for the root of n.
        deviations = QUANTILE * math.sqrt(variance)
        root = (deviations + math.sqrt(deviations**2 + 4.0 * mean)) / 2.0
        if root > fullest:
            fullest = root
            weight = QUANTILE**2 * root / (2.0 * deviations) if deviations else _MOST_WEIGHT
    weight = min(weight, _MOST_WEIGHT)
    return Room(weight, 1.0 - QUANTILE**2 / (4.0 * weight))


class Unmoved(msgspec.Struct, frozen=True, kw_only=True):
    """A job that a GPU is held for while others are, and why it cannot join them.

    Attributes:
        job: its name.
        reason: one word.
        detail: one sentence.
    """

    job: str
    reason: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """One job as the packing sees it.

    Attributes:
        profile: what was measured.
        baseline: what runs today.
        home: the machine whose GPU it would share; None where there is none.
        share: of a GPU's time, 0-1; None = not measured.
        memory_gib: the most that it held, with room to grow where less than a day of a service
            was recorded; None = not measured.
        on_slice: a slice that it was measured on too, and its speed there relative to the whole
            GPU; None where no probe tells.
    """

    profile: Profile
    baseline: Baseline
    home: Home | None
    share: float | None
    memory_gib: float | None
    on_slice: tuple[str, float] | None = None

    @property
    def name(self) -> str:
        """The job's name."""
        return self.profile.job.name

    def at(self, home: Home | None) -> "Tenant":
        """Return the same job on a machine; what it holds of memory is the same there."""
        share = compute_share(home.profile if home else self.profile)
        return replace(self, home=home, share=share)

    @property
    def is_isolated(self) -> bool:
        """Whether nobody else may share its memory and compute: a slice of its own, or alone."""
        return self.profile.job.trust == "isolated"

    @property
    def takes_turns(self) -> bool:
        """Whether those who share the home's GPU run on it one at a time."""
        return self.home is not None and side_by_side(self.home.offer) == "time-slicing"

    @property
    def gpu(self) -> Gpu | None:
        """The model of the home's GPU."""
        return gpus().get(self.home.offer.gpu) if self.home else None

    @property
    def profile_at_home(self) -> Profile:
        """What was measured, as it would be on the home's GPU."""
        return self.home.profile if self.home else self.profile

    @cached_property
    def time_on_gpu(self) -> float:
        """The share of the time in which the home's GPU runs anything of it."""
        return time_on_gpu(self.profile_at_home) or 0.0

    @cached_property
    def peak(self) -> float:
        """The share of the GPU's time that it takes at the 95th percentile, at most 1."""
        return min(1.0, peak_share(self.profile_at_home) or 0.0)

    @cached_property
    def by_hour(self) -> HourlyLoad | None:
        """What it takes of the home's GPU in each hour; None where that is not known."""
        return hourly_load(self.profile, self.share)

    @cached_property
    def turns(self) -> HourlyLoad | None:
        """Memory that it holds in each hour, GiB; None where it holds it always."""
        hours = frozenset(turn_hours(self.profile))
        if not hours or self.memory_gib is None:
            return None
        held_gib = self.memory_gib + CONTEXT_GIB
        mean = tuple(held_gib if hour in hours else 0.0 for hour in range(WEEK_H))
        return HourlyLoad(mean, (0.0,) * WEEK_H)

    @cached_property
    def latency_ms(self) -> float | None:
        """The worst measured latency, alone on the home's GPU; None where none was measured."""
        measured = self.profile.job.worst_latency_ms
        return measured / self.home.speed.low if measured and self.home else measured


@dataclass(kw_only=True)
class Packing:
    """The jobs of one machine type on its GPUs.

    Attributes:
        groups: who shares a GPU; no limit is broken.
        bound: GPUs that these jobs need in any packing.
        stopped: whether the search was ended before it was done.
        staying: jobs that could share but are not to be moved.
    """

    groups: list[list[Tenant]]
    bound: int
    stopped: bool = False
    staying: set[str] = field(default_factory=set)


@dataclass(kw_only=True)
class PackingCache:
    """What was searched for before, for packings in which most jobs stay where they are.

    Attributes:
        tenants: jobs on a machine, by the profile and the machine that they are of; on None as they
            were first seen.
        packings: by the jobs of a machine type.
        remote_homes: homes of the jobs that would move to a machine type, by its place.
        executor: packs machine types that do not depend on each other; None: here.
    """

    tenants: dict[tuple[int, int | None], Tenant] = field(default_factory=dict)
    packings: dict[tuple[int, ...], Packing] = field(default_factory=dict)
    remote_homes: dict[tuple[str, ...], Mapping[str, Away]] = field(default_factory=dict)
    executor: Executor | None = None

    def tenant(
        self,
        profile: Profile,
        baseline: Baseline,
        home: Home | None,
        requirements: Requirements,
        *,
        quick: bool,
    ) -> Tenant:
        """Return a job as the packing sees it, the one that is known where there is one.

        Those of a quick look are not kept: the machine that they are on is gone soon.
        """
        key = id(profile), id(home)
        cached = self.tenants.get(key)
        if cached is not None:
            return cached
        first = self.tenants.get((id(profile), None))
        if first is None:
            first = tenant(profile, baseline, None, requirements.probes)
            self.tenants[id(profile), None] = first
        moved = first.at(home)
        return moved if quick else self.tenants.setdefault(key, moved)


def by_hour_of(group: Sequence[Tenant]) -> list[HourlyLoad]:
    """Return what each job takes in each hour; none where no job's hours are known.

    A job whose hours are not known is always as busy as on average, a service as at its peak.
    """
    flat = (t.peak if t.profile.job.kind.answers else t.share or 0.0 for t in group)
    return all_by_hour(list(zip((t.by_hour for t in group), flat, strict=True)))


def memory_by_hour(group: Sequence[Tenant]) -> list[HourlyLoad]:
    """Return the memory that each job holds in each hour, GiB; none where all hold it always."""
    return all_by_hour([(t.turns, (t.memory_gib or 0.0) + CONTEXT_GIB) for t in group])


def room_gib(group: Sequence[Tenant]) -> float:
    """Return the memory of the GPU that jobs may fill, GiB."""
    return USABLE * min(gpu_memory_gib(t.home.offer) for t in group if t.home)


def by_timetable(group: Sequence[Tenant]) -> bool:
    """Return whether jobs that share a GPU fit on it only as some hold it at other hours."""
    return sum((t.memory_gib or 0.0) + CONTEXT_GIB for t in group) > room_gib(group)


def speeds(group: list[Tenant]) -> dict[str, Estimate]:
    """Return each job's speed in the busiest hour relative to running alone, by its name."""
    speed_of = _on_slices(group) or shared_speed(_at_busiest(group), in_turns=group[0].takes_turns)
    busy = host_share([tenant.profile for tenant in group], vcpus_of(group))
    return {
        tenant.name: speed if busy == 1.0 else msgspec.structs.replace(speed, low=speed.low * busy)
        for tenant, speed in zip(group, speed_of, strict=True)
    }


def _at_busiest(group: list[Tenant]) -> list[Profile]:
    """Return what was measured of each job, as in the hour in which all together take most."""
    by_hour = by_hour_of(group)
    if not by_hour:
        return [tenant.profile_at_home for tenant in group]
    peak = together(by_hour).mean
    hour = peak.index(max(peak))
    shares = [(t, load.mean[hour]) for t, load in zip(group, by_hour, strict=True)]
    return [busy_there(t.profile_at_home, now / t.share if t.share else 1.0) for t, now in shares]


def slices_of(group: list[Tenant]) -> tuple[MigProfile, ...] | str:
    """Return the slice of each job of a group that shares by slices, or why it cannot."""
    gpu = group[0].gpu
    if gpu is None:
        return Message("share.gpu-unknown")
    return cut(gpu, [tenant.profile_at_home for tenant in group], _probed(group, gpu))


def _probed(group: list[Tenant], gpu: Gpu) -> Probes:
    """Return the speeds on slices of this GPU that were measured, by job."""
    return {
        tenant.name: tenant.on_slice
        for tenant in group
        if tenant.on_slice is not None and source_gpu(tenant.profile).name == gpu.name
    }


def least_slice(tenant: Tenant) -> float:
    """Return the share of a GPU's compute that the smallest slice for a job takes, at most 1."""
    gpu = tenant.gpu
    slice_ = smallest(gpu, tenant.profile_at_home) if gpu is not None else None
    return 1.0 if gpu is None or slice_ is None else compute_of(gpu, slice_)


def by_slices(group: list[Tenant]) -> bool:
    """Return whether jobs share a GPU cut into slices, not one that is whole."""
    return len(group) > 1 and any(tenant.is_isolated for tenant in group)


def _on_slices(group: list[Tenant]) -> tuple[Estimate, ...] | None:
    gpu, pieces = group[0].gpu, slices_of(group) if by_slices(group) else ""
    if gpu is None or isinstance(pieces, str):
        return None
    return speeds_on(gpu, [tenant.profile_at_home for tenant in group], pieces, _probed(group, gpu))


def vcpus_of(group: list[Tenant]) -> float | None:
    """Return the cores of the host that a group would have; None if unknown.

    On a machine of several GPUs the hosts are looked at as a whole: `planner.fleet.consolidate`.
    """
    home = group[0].home
    if home is None or home.offer.gpu_count != 1:
        return None
    cores = [t.profile.hardware.cpu_cores for t in group if t.profile.hardware.cpu_cores]
    return home.offer.vcpus or min(cores, default=None)


def tenant(
    profile: Profile, baseline: Baseline, home: Home | None, probes: tuple[Profile, ...] = ()
) -> Tenant:
    """Return a job as the packing sees it, on the machine whose GPU it would share.

    Args:
        profile: what was measured.
        baseline: what runs it today.
        home: the machine.
        probes: jobs measured elsewhere; those on slices of the job's GPU tell how fast it is there.
    """
    return Tenant(
        profile=profile,
        baseline=baseline,
        home=None,
        share=None,
        memory_gib=grown_need_gib(profile),
        on_slice=speed_on_slice(profile, probes) if probes else None,
    ).at(home)


def why_alone(tenant: Tenant, requirements: Requirements) -> Unmoved | None:
    """Return why a job takes no part in packing at all."""
    home, copies = tenant.home, tenant.baseline.replicas
    is_remote = bool(
        requirements.providers
        or requirements.regions
        or requirements.gpus
        or requirements.purchases
    )
    shared = tenant.baseline.tenancy is not None
    limited = is_remote and tenant.baseline.offer is not None
    lacks = Message("share.no-machine" if limited else "share.no-price")
    part = home is not None and home.offer.gpu_count != 1 and not (shared and not home.moved)
    reasons = (
        (home is None, "unavailable", lacks),
        (tenant.profile.gpu_count > 1 or part, "gpu-count", Message("share.not-one-gpu")),
        (copies > 1, "gpu-count", Message("share.replicas", n=copies)),
        (too_little_read(tenant.profile), "slowdown", Message("share.too-little-read")),
        (
            tenant.is_isolated and not (tenant.gpu is not None and tenant.gpu.mig),
            "capability",
            Message("share.isolated", why=_uncut(tenant)),
        ),
    )
    reason = next(((reason, detail) for holds, reason, detail in reasons if holds), None)
    return Unmoved(job=tenant.name, reason=reason[0], detail=reason[1]) if reason else None


def _uncut(tenant: Tenant) -> str:
    """Return why a job gets no part of a GPU of its own; partitions were measured on nothing."""
    modes = partition_modes(tenant.gpu) if tenant.gpu is not None else ()
    if tenant.gpu is None or not modes:
        return Message("share.no-slices")
    pieces = partitioned(tenant.gpu, (tenant.profile_at_home, tenant.profile_at_home))
    if isinstance(pieces, str):
        return pieces
    return Message("share.partition-unmeasured", mode=pieces.name, memory=pieces.own_memory or "")


def side_by_side(offer: Offer) -> str:
    """Return how jobs share a whole GPU: by MPS, or in turns where it is not one of NVIDIA's."""
    gpu = gpus().get(offer.gpu)
    return "mps" if gpu is None or gpu.vendor == "NVIDIA" else "time-slicing"
