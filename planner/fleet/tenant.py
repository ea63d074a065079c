"""Jobs as the packing sees them, and how fast they run together."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from planner.choice.baseline import Baseline
from planner.choice.context import host_share
from planner.choice.requirements import Reason, Requirements
from planner.fleet.placements import Away, Home
from planner.models.estimate import Estimate
from planner.prediction.probes import speed_on_slice
from planner.prediction.sharing import partitioned, peak_share, shared_speed
from planner.prediction.slices import Probes, compute_of, cut, memory_growth, smallest, speeds_on
from planner.profile.model import Profile
from planner.profile.source import source_gpu
from planner.signals.compute_share import compute_share, time_on_gpu
from planner.signals.signals import memory_need_gib, worst_latency_ms
from pricing.catalog.offer import Offer
from pricing.hardware import Gpu, MigProfile, gpus, partition_modes
from pricing.message import Message

if TYPE_CHECKING:
    from planner.fleet.packing import Packing

CONTEXT_GIB = 0.6  # per process on a shared GPU: the contract's allowance


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmoved:
    """A job that a GPU is held for while others are, and why it cannot join them."""

    job: str
    reason: Reason
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
    def there(self) -> Profile:
        """What was measured, as it would be on the home's GPU."""
        return self.home.profile if self.home else self.profile

    @cached_property
    def time_on_gpu(self) -> float:
        """The share of the time in which the home's GPU runs anything of it."""
        return time_on_gpu(self.there) or 0.0

    @cached_property
    def peak(self) -> float:
        """The share of the GPU's time that it takes at the 95th percentile, at most 1."""
        return min(1.0, peak_share(self.there) or 0.0)

    @cached_property
    def latency_ms(self) -> float | None:
        """The worst measured latency, alone on the home's GPU; None where none was measured."""
        measured = worst_latency_ms(self.profile)
        return measured / self.home.speed.low if measured and self.home else measured


@dataclass(kw_only=True)
class PackingCache:
    """What was searched for before, for packings in which most jobs stay where they are.

    Attributes:
        tenants: jobs on a machine, by the profile and the machine that they are of; on None as they
            were first seen.
        packings: by the jobs of a machine type.
        away: homes of the jobs that would move to a machine type, by its place.
        executor: packs machine types that do not depend on each other; None: here.
    """

    tenants: dict[tuple[int, int | None], Tenant] = field(default_factory=dict)
    packings: dict[tuple[int, ...], "Packing"] = field(default_factory=dict)
    away: dict[tuple[str, ...], Mapping[str, Away]] = field(default_factory=dict)
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
        place = id(profile), id(home)
        known = self.tenants.get(place)
        if known is not None:
            return known
        first = self.tenants.get((id(profile), None))
        if first is None:
            first = tenant(profile, baseline, None, requirements.probes)
            self.tenants[id(profile), None] = first
        moved = first.at(home)
        return moved if quick else self.tenants.setdefault(place, moved)

    def packed(
        self,
        pools: Sequence[list[Tenant]],
        requirements: Requirements,
        *,
        quick: bool,
        proves: bool,
    ) -> "list[Packing]":
        """Return the jobs of each machine type as they were packed before, else packed now.

        A quick packing is by first fit, and not kept.
        """
        from planner.fleet.packing import pack_all  # noqa: PLC0415 - numpy comes in with it

        keys = [tuple(id(tenant) for tenant in pool) for pool in pools]
        new = {key: pool for key, pool in zip(keys, pools, strict=True) if key not in self.packings}
        stop = _stop_now if quick else requirements.ends_search
        packings = pack_all(list(new.values()), requirements, stop, self.executor, proves=proves)
        known_packings = self.packings | dict(zip(new, packings, strict=True))
        if not quick:
            self.packings.update(known_packings)
        return [known_packings[key] for key in keys]


def _stop_now() -> bool:
    return True


def speeds(group: list[Tenant]) -> dict[str, Estimate]:
    """Return each job's speed relative to running alone, by its name."""
    speed_of = _on_slices(group) or shared_speed(
        [tenant.there for tenant in group], in_turns=group[0].takes_turns
    )
    busy = host_share([tenant.profile for tenant in group], vcpus_of(group))
    return {
        tenant.name: speed if busy == 1.0 else msgspec.structs.replace(speed, low=speed.low * busy)
        for tenant, speed in zip(group, speed_of, strict=True)
    }


def slices_of(group: list[Tenant]) -> tuple[MigProfile, ...] | str:
    """Return the slice of each job of a group that shares by slices, or why it cannot."""
    gpu = group[0].gpu
    if gpu is None:
        return Message("share.gpu-unknown")
    return cut(gpu, [tenant.there for tenant in group], _probed(group, gpu))


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
    slice_ = smallest(gpu, tenant.there) if gpu is not None else None
    return 1.0 if gpu is None or slice_ is None else compute_of(gpu, slice_)


def by_slices(group: list[Tenant]) -> bool:
    """Return whether jobs share a GPU cut into slices, not one that is whole."""
    return len(group) > 1 and any(tenant.is_isolated for tenant in group)


def _on_slices(group: list[Tenant]) -> tuple[Estimate, ...] | None:
    gpu, pieces = group[0].gpu, slices_of(group) if by_slices(group) else ""
    if gpu is None or isinstance(pieces, str):
        return None
    return speeds_on(gpu, [tenant.there for tenant in group], pieces, _probed(group, gpu))


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
    need_gib = memory_need_gib(profile)
    return Tenant(
        profile=profile,
        baseline=baseline,
        home=None,
        share=None,
        memory_gib=None if need_gib is None else need_gib * memory_growth(profile),
        on_slice=speed_on_slice(profile, probes) if probes else None,
    ).at(home)


def why_alone(tenant: Tenant, requirements: Requirements) -> Unmoved | None:
    """Return why a job takes no part in packing at all."""
    home, copies = tenant.home, tenant.baseline.replicas
    elsewhere = bool(
        requirements.providers
        or requirements.regions
        or requirements.gpus
        or requirements.purchases
    )
    shared = tenant.baseline.tenancy is not None
    limited = elsewhere and tenant.baseline.offer is not None
    lacks = Message("share.no-machine" if limited else "share.no-price")
    part = home is not None and home.offer.gpu_count != 1 and not (shared and not home.moved)
    reasons = (
        (home is None, "unavailable", lacks),
        (
            tenant.profile.gpu_count > 1 or part,
            "gpu-count",
            Message("share.not-one-gpu"),
        ),
        (
            copies > 1,
            "gpu-count",
            Message("share.replicas", n=copies),
        ),
        (
            tenant.is_isolated and not (tenant.gpu is not None and tenant.gpu.mig),
            "capability",
            Message("share.isolated", why=_uncut(tenant)),
        ),
    )
    reason = next(((reason, detail) for holds, reason, detail in reasons if holds), None)
    return Unmoved(job=tenant.name, reason=reason[0], detail=reason[1]) if reason else None  # type: ignore[arg-type]


def _uncut(tenant: Tenant) -> str:
    """Return why a job gets no part of a GPU of its own; partitions were measured on nothing."""
    modes = partition_modes(tenant.gpu) if tenant.gpu is not None else ()
    if tenant.gpu is None or not modes:
        return Message("share.no-slices")
    pieces = partitioned(tenant.gpu, (tenant.there, tenant.there))
    if isinstance(pieces, str):
        return pieces
    return Message("share.partition-unmeasured", mode=pieces.name, memory=pieces.own_memory or "")


def side_by_side(offer: Offer) -> str:
    """Return how jobs share a whole GPU: by MPS, or in turns where it is not one of NVIDIA's."""
    gpu = gpus().get(offer.gpu)
    return "mps" if gpu is None or gpu.vendor == "NVIDIA" else "time-slicing"
