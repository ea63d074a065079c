"""Puts jobs of one machine type together on its GPUs, within every limit of sharing."""

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from planner.choice.context import crowded, need_beside_others, shared_host
from planner.choice.requirements import Reason, Requirements
from planner.fleet.executor import map_on
from planner.fleet.search import Packed, StopSearch, pack_rows, plain_bound
from planner.fleet.sizes import Sizes, spread
from planner.fleet.tenant import (
    CONTEXT_GIB,
    HourlyLoad,
    Packing,
    PackingCache,
    Room,
    Tenant,
    Unmoved,
    by_hour_of,
    by_slices,
    least_slice,
    memory_by_hour,
    peak_at,
    room_for,
    room_gib,
    slices_of,
    speeds,
    together,
    too_busy,
    vcpus_of,
)
from planner.models.copies import busiest, on_gpu_ms, stretch
from planner.prediction.sharing import most_beside
from planner.prediction.slices import memory_growth
from planner.signals.signals import PARTS
from planner.signals.thresholds import BUSIEST
from pricing.message import Message

_ROUNDING = 1e-9
_SHARE = 1  # the column of a job's row that is its share of the GPU's time


def refuses(group: list[Tenant], requirements: Requirements) -> tuple[Reason, str] | None:
    """Return why these jobs cannot share one GPU; None when they can."""
    checks = _ON_SLICES if by_slices(group) else _ON_ONE
    return next((refusal for check in checks if (refusal := check(group, requirements))), None)


def _slices(group: list[Tenant], _: Requirements) -> tuple[Reason, str] | None:
    """Refuse slices to jobs that need none, and what the GPU cannot be cut into."""
    isolated = sorted(t.name for t in group if t.is_isolated)
    if len(isolated) < len(group):
        return "capability", Message("share.must-be-isolated", jobs=isolated)
    pieces = slices_of(group)
    return (
        ("capability", Message("share.jobs", n=len(group), why=pieces))
        if isinstance(pieces, str)
        else None
    )


def _beside_training(group: list[Tenant], _: Requirements) -> tuple[Reason, str] | None:
    """Keep services of unknown latency away from training: its long kernels delay each answer."""
    services = sorted(t.name for t in group if t.profile.job.is_unmeasured_service)
    trainings = sorted(t.name for t in group if t.profile.job.kind.trains)
    if not services or not trainings:
        return None
    return "latency", Message("share.beside-training", jobs=services, trainings=trainings)


def _memory(group: list[Tenant], _: Requirements) -> tuple[Reason, str] | None:
    unmeasured = [t.name for t in group if t.memory_gib is None]
    if unmeasured:
        return "memory", Message("share.memory-unmeasured", jobs=sorted(unmeasured))
    need, room = _memory_at_once(group), room_gib(group)
    if need <= room:
        return None
    grows = any(memory_growth(t.profile) > 1.0 for t in group)
    code = "share.memory-and-growth" if grows else "share.memory"
    return "memory", Message(code, n=len(group), need=need, room=room)


def _memory_at_once(group: list[Tenant]) -> float:
    """Return the most that jobs hold of a GPU's memory at any hour, GiB."""
    if loads := memory_by_hour(group):
        return max(together(loads).mean)
    return sum((t.memory_gib or 0.0) + CONTEXT_GIB for t in group)


def _host(group: list[Tenant], _: Requirements) -> tuple[Reason, str] | None:
    home = group[0].home
    if home is None or home.offer.gpu_count != 1:
        return None
    return crowded([t.profile for t in group], vcpus_of(group), home.offer.ram_gib)


def _latency(group: list[Tenant], _: Requirements) -> tuple[Reason, str] | None:
    with_target = [t for t in group if t.profile.job.latency_slo_ms is not None]
    speed_of = speeds(group) if with_target else {}
    for tenant in sorted(with_target, key=lambda t: t.name):
        target, measured = tenant.profile.job.latency_slo_ms or 0.0, tenant.latency_ms
        if measured is None:
            return "latency", Message("share.no-latency", job=tenant.name, ms=target)
        joint = _peak_on_slice(tenant, speed_of[tenant.name].low) if tenant.is_isolated else None
        longer = stretch(tenant.peak, sum(t.peak for t in group) if joint is None else joint) - 1.0
        queued = measured + _queueing_ms(tenant, measured) * longer
        worst = max(measured / speed_of[tenant.name].low, queued)
        if worst > target * (1.0 + _ROUNDING):
            return "latency", Message("share.latency", job=tenant.name, ms=worst, target=target)
    return None


def _queueing_ms(tenant: Tenant, measured_ms: float) -> float:
    return on_gpu_ms(
        measured_ms, tenant.profile.job.requests_per_s, tenant.share or 0.0, tenant.peak
    )


def _peaks(group: list[Tenant], _: Requirements) -> tuple[Reason, str] | None:
    if by_hour := by_hour_of(group):
        return _busiest_hour(by_hour)
    peaks = sum(t.peak for t in group)
    if not any(t.profile.job.kind.answers for t in group) or peaks <= 1.0 + _ROUNDING:
        return None
    return "slowdown", Message("share.peaks", share=peaks)


def _busiest_hour(jobs: list[HourlyLoad]) -> tuple[Reason, str] | None:
    hour = too_busy(jobs)
    if hour is None:
        return None
    load = together(jobs)
    mean, peak = load.mean[hour], peak_at(load, hour)
    return "slowdown", Message("share.busiest-hour", hour=hour, share=mean, peak=peak)


def _peak_on_slice(tenant: Tenant, speed: float) -> float:
    """Return the share of its slice's time that a job takes at the 95th percentile.

    Its rate of requests stays; the time that the GPU is busy with it grows.
    """
    share = tenant.share or 0.0
    return tenant.peak * (1.0 + (1.0 / speed - 1.0) / share) if share else 0.0


def _peaks_on_slices(group: list[Tenant], _: Requirements) -> tuple[Reason, str] | None:
    speed_of = speeds(group)
    peaks = {t.name: _peak_on_slice(t, speed_of[t.name].mid) for t in group}
    full = sorted(
        t.name for t in group if t.profile.job.kind.answers and peaks[t.name] > 1.0 + _ROUNDING
    )
    if not full:
        return None
    return "slowdown", Message("share.slice-full", jobs=full)


def _other_parts(group: list[Tenant], _: Requirements) -> tuple[Reason, str] | None:
    for title, part in PARTS:
        together = sum(part(t.profile) or 0.0 for t in group)
        if together > BUSIEST + _ROUNDING:
            return "slowdown", Message("share.busy", part=title, share=together, limit=BUSIEST)
    return None


def _unmeasured(group: list[Tenant], _: Requirements) -> tuple[Reason, str] | None:
    names = sorted(t.name for t in group if t.share is None)
    return ("slowdown", Message("share.use-unmeasured", jobs=names)) if names else None


def _busy(group: list[Tenant], _: Requirements) -> tuple[Reason, str] | None:
    total = sum(t.share or 0.0 for t in group)
    if total <= BUSIEST:
        return None
    return "slowdown", Message("share.busy", part="GPU", share=total, limit=BUSIEST)


def _slowest(group: list[Tenant], requirements: Requirements) -> tuple[Reason, str] | None:
    slowest = min(s.mid for s in speeds(group).values())
    if slowest < 1.0 / requirements.max_slowdown:
        return "slowdown", Message("share.slowest", speed=slowest)
    return None


_ON_ONE = (
    _beside_training,
    _memory,
    _host,
    _unmeasured,
    _latency,
    _busy,
    _slowest,
    _peaks,
    _other_parts,
)
_ON_SLICES = (_slices, _host, _latency, _slowest, _peaks_on_slices)
"""A slice has its own memory, bandwidth and compute; cores and RAM of the host are everybody's."""


def shares_with_nobody(tenant: Tenant) -> bool:
    """Return whether no limit could hold beside any other job."""
    if tenant.memory_gib is None or tenant.share is None:
        return True
    target, measured = tenant.profile.job.latency_slo_ms, tenant.latency_ms
    late = target is not None and (measured is None or measured > target)
    if tenant.is_isolated:
        return late or isinstance(slices_of([tenant, tenant]), str)
    beside_gib = CONTEXT_GIB if tenant.turns is None else -CONTEXT_GIB
    held_gib = tenant.memory_gib + CONTEXT_GIB + beside_gib
    return late or tenant.share > BUSIEST or held_gib > room_gib([tenant])


MOST_HOURS = 20_000
"""Hours of all jobs together from which the days of the week are packed as one. 300 jobs by the 168
hours of the week took 86 s, by the 24 of the day 39 s, and without hours 28 s."""


def sizes_of(group: list[Tenant], requirements: Requirements, *, by_means: bool = False) -> Sizes:
    """Return jobs of one machine type that may share as rows: memory, compute, host RAM, cores.

    Args:
        group: the jobs.
        requirements: the most that they may be slowed down.
        by_means: whether the hours' means alone count: what no packing can do without.
    """
    room = room_gib(group)
    by_hour, memory, vcpus = by_hour_of(group), memory_by_hour(group), vcpus_of(group)
    fits = Room(0.0, BUSIEST) if by_means else room_for(together(by_hour)) if by_hour else None
    if not by_means and sum(len(load.mean) for load in by_hour) > MOST_HOURS:
        by_hour, memory = ([load.of_a_day() for load in loads] for loads in (by_hour, memory))
    rows = [_row(tenant, vcpus, room, requirements.max_slowdown) for tenant in group]
    for row, tenant, load, hourly_gib in zip_longest(rows, group, by_hour, memory):
        if hourly_gib is not None:
            row.extend((min(gib, room), room) for gib in hourly_gib.mean)
            row[0] = (0.0 if tenant.turns else row[0][0], room)
        if fits is None or load is None:
            peak = _most_at_peak(tenant)
            row.append((min(tenant.peak, peak), peak))
        else:
            row.extend(_at_each_hour(load, fits))
    return Sizes(
        takes=np.array([[takes for takes, _ in row] for row in rows]),
        limits=np.array([[limit for _, limit in row] for row in rows]),
        hours=np.array([tenant.home.hours if tenant.home else 0.0 for tenant in group]),
    )


def _row(
    tenant: Tenant, vcpus: float | None, room: float, slowdown: float
) -> list[tuple[float, float]]:
    """Return what a job takes of each resource, and the most for it and those beside it.

    Args:
        tenant: the job.
        vcpus: cores of the host; None: not known.
        room: memory of the GPU that may be filled, GiB.
        slowdown: the most that is expected of any job.
    """
    share = tenant.share or 0.0
    # A job on the GPU for a time t is expected to take max(1, t + what others take) as long.
    most = min(
        BUSIEST, share + _most_beside(tenant), share + max(0.0, slowdown - tenant.time_on_gpu)
    )
    cores, ram = (math.inf, math.inf)
    home = tenant.home
    if home is not None and home.offer.gpu_count == 1:
        cores, ram = (
            math.inf if most is None else most for most in shared_host(vcpus, home.offer.ram_gib)
        )
    need, job = need_beside_others(tenant.profile), tenant.profile.job
    takes_and_most = [
        ((tenant.memory_gib or 0.0) + CONTEXT_GIB, room),
        (share, most),
        # A job that needs the reserve, too, stands alone.
        (min(need.ram_gib or 0.0, ram), ram),
        (min(need.cores or 0.0, cores), cores),
        *((part(tenant.profile) or 0.0, BUSIEST) for _, part in PARTS),
        # A service of unknown latency has room for no training beside it.
        (float(job.kind.trains), 0.0 if job.is_unmeasured_service else math.inf),
    ]
    # What a job takes beyond its limit alone does not forbid it a GPU of its own.
    return [(min(takes, limit), limit) for takes, limit in takes_and_most]


def _at_each_hour(load: HourlyLoad, room: Room) -> Iterator[tuple[float, float]]:
    """Yield what a job takes of each hour, a resource each; alone it may take what it does."""
    for mean, variance in zip(*load, strict=True):
        takes = mean + room.weight * variance
        yield min(takes, room.most), room.most


def _most_beside(tenant: Tenant) -> float:
    """Return the share of a GPU that others may take before a latency target is missed."""
    target, measured = tenant.profile.job.latency_slo_ms, tenant.latency_ms
    if target is None or not measured:
        return math.inf
    return most_beside(measured / target, in_turns=tenant.takes_turns)


def _most_at_peak(tenant: Tenant) -> float:
    """Return the share that all may want at their peaks: 1 beside a service, less for a target."""
    target, measured = tenant.profile.job.latency_slo_ms, tenant.latency_ms
    limit = 1.0 if tenant.profile.job.kind.answers else math.inf
    queued = _queueing_ms(tenant, measured) if measured else 0.0
    if target is None or not measured or not queued:
        return limit
    longest = 1.0 + (target - measured) / queued
    return min(limit, busiest(tenant.peak, longest))


Groups = list[list[Tenant]]

FEWEST_JOBS = 500
"""Fewer are packed sooner than handed over to another process."""


def pack_cached(
    pools: Sequence[list[Tenant]],
    cache: PackingCache,
    requirements: Requirements,
    *,
    quick: bool,
    proves: bool,
) -> list[Packing]:
    """Return the jobs of each machine type as they were packed before, else packed now.

    A quick packing is by first fit, and not kept.
    """
    keys = [tuple(id(tenant) for tenant in pool) for pool in pools]
    new = {key: pool for key, pool in zip(keys, pools, strict=True) if key not in cache.packings}
    stop = _stop_now if quick else requirements.ends_search
    packings = pack_all(list(new.values()), requirements, stop, cache.executor, proves=proves)
    packed = cache.packings | dict(zip(new, packings, strict=True))
    if not quick:
        cache.packings.update(packed)
    return [packed[key] for key in keys]


def _stop_now() -> bool:  # a function of its own, which other processes can be sent
    return True


def pack_all(
    pools: Sequence[list[Tenant]],
    requirements: Requirements,
    stop: StopSearch,
    executor: Executor | None,
    *,
    proves: bool,
) -> list[Packing]:
    """Return the packing of the jobs of each machine type.

    Where most jobs are of one type its search is spread over the executor, else the types are, the
    largest first.
    """
    if sum(map(len, pools)) < FEWEST_JOBS:
        executor = None
    divided = [_divide(pool, requirements) for pool in pools]
    sizes = {
        n: sizes_of(pool.shared, requirements) for n, pool in enumerate(divided) if pool.shared
    }
    largest_first = sorted(sizes, key=lambda number: -len(pools[number]))
    larger = [n for n in largest_first if 2 * len(pools[n]) > sum(map(len, pools))]
    rows = {n: pack_rows(sizes[n], stop, executor, proves=proves) for n in larger}
    smaller = [n for n in largest_first if n not in rows]
    work = partial(pack_rows, stop=stop, proves=proves)
    rows.update(zip(smaller, map_on(executor, work, [sizes[n] for n in smaller]), strict=True))
    for n, packed in rows.items():
        rows[n] = packed = replace(packed, bins=spread(sizes[n], packed.bins, _SHARE))  # noqa: PLW2901
        if by_hour_of(divided[n].shared):  # the sum that is packed by is stricter than the limits
            needs = plain_bound(sizes_of(divided[n].shared, requirements, by_means=True))
            rows[n] = replace(packed, bound=min(needs, packed.bound))
    return [_packing(pool, rows.get(n), requirements) for n, pool in enumerate(divided)]


class _Divided(NamedTuple):
    """The jobs of one machine type.

    Attributes:
        shared: that may share a GPU by MPS or in turns.
        alone: the groups of all others, whose GPUs are known without a search.
        bound: GPUs that the others need at least.
    """

    shared: list[Tenant]
    alone: Groups
    bound: int


def _divide(group: list[Tenant], requirements: Requirements) -> _Divided:
    isolated = _pack_slices([t for t in group if t.is_isolated], requirements)
    jobs = sorted((t for t in group if not t.is_isolated), key=lambda t: t.name)
    single = [[t] for t in jobs if shares_with_nobody(t)]
    return _Divided(
        shared=[t for t in jobs if not shares_with_nobody(t)],
        alone=[*single, *isolated.groups],
        bound=len(single) + isolated.bound,
    )


def _packing(pool: _Divided, packed: Packed | None, requirements: Requirements) -> Packing:
    if packed is None:
        return Packing(groups=pool.alone, bound=pool.bound)
    movable = pool.shared
    together = list(
        _that_hold([[movable[row] for row in rows] for rows in packed.bins], requirements)
    )
    groups = [sorted(members, key=lambda t: t.name) for members in (*together, *pool.alone)]
    groups.sort(key=lambda members: (-len(members), members[0].name))
    bound = min(packed.bound, len(together)) + pool.bound
    return Packing(groups=groups, bound=bound, stopped=packed.stopped)


def _pack_slices(group: list[Tenant], requirements: Requirements) -> Packing:
    """Put jobs that must be isolated on GPUs cut into slices, the largest memory first."""
    largest_first = sorted(group, key=lambda t: (-(t.memory_gib or 0.0), t.name))
    groups: Groups = []
    for tenant in largest_first:
        shares = () if shares_with_nobody(tenant) else groups
        target = next((g for g in shares if _takes(g, tenant, requirements)), None)
        if target is None:
            groups.append([tenant])
        else:
            target.append(tenant)
    return Packing(groups=groups, bound=_fewest_cut(group))


def _takes(group: list[Tenant], tenant: Tenant, requirements: Requirements) -> bool:
    return not shares_with_nobody(group[0]) and refuses([*group, tenant], requirements) is None


def _fewest_cut(group: list[Tenant]) -> int:
    """Return GPUs that isolated jobs need at least: their smallest slices' compute, summed."""
    single = sum(shares_with_nobody(t) for t in group)
    sizes = [least_slice(t) for t in group if not shares_with_nobody(t)]
    return single + math.ceil(round(sum(sizes), 6))


def _that_hold(groups: Groups, requirements: Requirements) -> Iterator[list[Tenant]]:
    """Yield groups within every limit as it is said to the user; who breaks one stands apart."""
    for group in groups:
        if len(group) == 1 or refuses(group, requirements) is None:
            yield group
            continue
        fitting: list[Tenant] = []
        for tenant in group:
            if fitting and refuses([*fitting, tenant], requirements):
                yield [tenant]
            else:
                fitting.append(tenant)
        yield fitting


def holder(group: list[Tenant]) -> Tenant:
    """Return the job that a group's GPU is held for: the one with the most hours."""
    return max(group, key=lambda t: (t.home.hours if t.home else 0.0, t.name))


def with_fewer_moves(packings: list[Packing], limit: int) -> None:
    """Take jobs back to GPUs of their own until no more than `most` of them move.

    The holder of a GPU stays; who saves least by moving is taken back first.
    """
    moves = [
        (tenant.home.usd if tenant.home else 0, tenant.name, packing, number)
        for packing in packings
        for number, group in enumerate(packing.groups)
        for tenant in group
        if tenant is not holder(group)
    ]
    moves.sort(key=lambda move: (-move[0], move[1]))
    for _, name, packing, number in moves[limit:]:
        group = packing.groups[number]
        tenant = next(t for t in group if t.name == name)
        packing.groups[number] = [t for t in group if t is not tenant]
        packing.groups.append([tenant])
        packing.staying.add(name)


def unmoved(packing: Packing, requirements: Requirements) -> Iterator[Unmoved]:
    """Yield for each GPU why its job cannot join the emptiest other one."""
    groups = packing.groups
    open_to = [g for g in groups if not any(shares_with_nobody(t) for t in g)]
    fullest_last = sorted(
        open_to if len(open_to) > 1 else groups,
        key=lambda g: (sum(t.share or 0.0 for t in g), sum(t.memory_gib or 0.0 for t in g)),
    )
    for group in groups if len(groups) > 1 else ():
        tenant = holder(group)
        target = next(g for g in fullest_last if g is not group)
        if tenant.name in packing.staying:
            yield Unmoved(job=tenant.name, reason="moves", detail=Message("share.max-moves"))
        elif refusal := refuses([tenant, *target], requirements) or refuses(
            [*group, *target], requirements
        ):
            yield Unmoved(job=tenant.name, reason=refusal[0], detail=refusal[1])
