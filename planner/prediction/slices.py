"""How fast each job runs on a slice of its own of one GPU (MIG), and which slices jobs get.

A slice has its own compute, memory and memory bandwidth: who else is on the GPU delays nobody.
Expected on a slice with a share c of the compute: the time that the GPU is busy takes 1 / sqrt(c)
as long, the rest of the time as before. The square root is the plain rule; no law that was fitted
without the model in question beat it on published iteration times (56 slices of four models on an
A100). The interval is the exponent 0.5 x/: its spread there (`planner/models/data/sharing.toml`).

How far a service may go beyond a recording of less than a day: room for hours that nobody saw.
A few hours do not bound a day: on 72 published serving pods the quiet half of a day was packed on
half of the GPUs that the busy half took. What was recorded is therefore multiplied by what it grew
by in the hours left out (`planner/models/data/sharing.toml`, by the hours that were recorded):
the 99th percentile of the GPU use of a pod to its 95th percentile in the other hours, for 95 % of
pods; the most memory that two pods hold together, for 999 of 1,000 pairs. Of windows shorter than
those fitted nothing is known: they get what the shortest fitted ones do.

How fast a job runs on a slice (MIG) when it was measured on the whole GPU and on another slice.
With x the slowdown on a slice, whole time / time there - 1 upside down (1 / speed - 1), c a slice's
share of the compute and m of the memory:

    x there = x seen ^ b  ((1 / c there - 1) / (1 / c seen - 1)) ^ a  (m seen / m there) ^ e

Amdahl's law where a = b = 1 and e = 0. Fitted on published iteration times (16 jobs of four models
on an A100; `planner/models/data/sharing.toml`); the form is our own.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace

from planner.models.coefficients import coefficients
from planner.models.estimate import Estimate, exactly
from planner.profile.model import Profile, Statistics
from planner.profile.source import part_measured, slice_named, source_gpu, unknown_slice
from planner.signals.compute_share import busy_there, compute_share
from planner.signals.signals import memory_need_gib
from planner.signals.thresholds import DAY_S, USABLE
from pricing.errors import InputError
from pricing.hardware import Gpu, MigProfile
from pricing.message import Message

_HOUR_S = 3600.0


def recorded_s(profile: Profile) -> float | None:
    """Return the length of the recording, idle ends included, seconds; None: not known."""
    window = profile.window
    return None if window is None or window.duration_s is None else window.recorded_s


def memory_growth(profile: Profile) -> float:
    """Return the most memory beyond the recording over the most in it, at least 1."""
    row = _growth(profile)
    return float(row["memory"]) if row else 1.0


def grown_need_gib(profile: Profile) -> float | None:
    """Return the memory that a job needs of one GPU beyond its recording, too; None: not known."""
    need = memory_need_gib(profile)
    return None if need is None else need * memory_growth(profile)


def peak_of(profile: Profile, statistics: Statistics) -> float | None:
    """Return the 95th percentile of a share of a GPU's time, the hours not recorded included.

    Args:
        profile: the job.
        statistics: what was recorded of the share on one of its GPUs.

    Returns:
        0 or more, above 1 where no GPU would hold the growth; None where no peak was recorded.
    """
    row = _growth(profile)
    if row is None:
        return statistics.p95
    by_p99 = None if statistics.p99 is None else statistics.p99 * float(row["use"])
    bounds = [bound for bound in (by_p99, statistics.max) if bound is not None]
    peaks = [value for value in (statistics.p95, min(bounds, default=None)) if value is not None]
    return max(peaks, default=None)


def _growth(profile: Profile) -> Mapping[str, Any] | None:
    """Return the row for the hours that were recorded; None where they bound what comes."""
    seen_s = recorded_s(profile)
    if not profile.job.kind.answers or seen_s is None or seen_s >= DAY_S:
        return None
    growth: Mapping[str, Mapping[str, Any]] = coefficients("sharing")["growth"]
    rows = sorted(growth.values(), key=lambda row: float(row["hours"]))
    fitting = [row for row in rows if float(row["hours"]) * _HOUR_S <= seen_s]
    return fitting[-1] if fitting else rows[0]


_LEAST = 0.001
"""The slowdown that is taken where a slice was as fast as the whole GPU."""
OFFSET = 0.1
"""Added to a slowdown before it is compared as a ratio: small ones differ by chance."""
_SLICE_PROBE_BASIS = Message("slice.probed")


def slowdown_there(
    slowdown: float,
    measured: tuple[float, float],
    target: tuple[float, float],
    law: tuple[float, float, float],
) -> float:
    """Return the slowdown, 1 / speed - 1, on a slice.

    Args:
        slowdown: on the slice that was measured.
        measured: its share of the GPU's compute and of its memory, the first below 1.
        target: those of the other slice.
        law: a, b and e.
    """
    by_compute, by_slowdown, by_memory = law
    ratio = (1.0 / target[0] - 1.0) / (1.0 / measured[0] - 1.0)
    memory = measured[1] / target[1]
    return float(max(_LEAST, slowdown) ** by_slowdown * ratio**by_compute * memory**by_memory)


def speed_by_probe(
    speed: float, measured: tuple[float, float], target: tuple[float, float]
) -> Estimate:
    """Return the speed on a slice relative to the whole GPU (1.0).

    Args:
        speed: measured on another slice, relative to the whole GPU, above 0.
        measured: that slice's share of the GPU's compute and of its memory, below 1.
        target: those of the slice in question.
    """
    fitted = coefficients("sharing")["probe"]
    by_compute, by_slowdown, by_memory = (float(exponent) for exponent in fitted["law"])
    slowdown = slowdown_there(
        1.0 / speed - 1.0, measured, target, (by_compute, by_slowdown, by_memory)
    )
    low, mid, high = (
        1.0 / (1.0 + max(0.0, (slowdown + OFFSET) * factor - OFFSET))
        for factor in (float(fitted["factor"]), 1.0, 1.0 / float(fitted["factor"]))
    )
    return Estimate(low=low, mid=mid, high=high, basis=_SLICE_PROBE_BASIS)


Probes = Mapping[str, tuple[str, float]]
"""The slice that a job was measured on, and its speed there relative to the whole GPU, by name."""
_NONE: Probes = MappingProxyType({})
POWER = 0.5
_BASIS = Message("slice.law")


def slice_speed(busy: float, compute: float) -> Estimate:
    """Return the speed on a slice relative to the whole GPU (1.0).

    Args:
        busy: share of the time that the whole GPU is busy with the job, 0-1.
        compute: the slice's share of the GPU's compute, above 0, at most 1.
    """
    width = float(coefficients("sharing")["slice"]["width"])
    low, mid, high = (
        1.0 / (1.0 + busy * (compute ** -max(0.0, power) - 1.0))
        for power in (POWER + width, POWER, POWER - width)
    )
    return Estimate(low=low, mid=mid, high=high, basis=_BASIS)


def whole_gpu(profile: Profile) -> Estimate:
    """Return how much faster a whole GPU runs the kernels than the slice that was measured.

    Exactly 1 where whole GPUs were measured; 1 and weak where the slice is not known.
    """
    if (why := unknown_slice(profile)) is not None:
        return msgspec.structs.replace(exactly(1.0, Message("speed.weak", why=why)), weak=True)
    part = part_measured(profile)
    if part == 1.0:
        return exactly(1.0, Message("slice.whole"))
    width = float(coefficients("sharing")["slice"]["width"])
    low, mid, high = (part ** -max(0.0, p) for p in (POWER - width, POWER, POWER + width))
    basis = Message("slice.measured", slice=slice_named(profile) or "", part=part)
    return Estimate(low=low, mid=mid, high=high, basis=basis)


def on_whole(profile: Profile) -> Profile:
    """Return a profile as it would be on the whole GPU: the job takes less of its time there.

    A service answers as many requests; other jobs go on sooner, so they wait as long as before.
    """
    faster = whole_gpu(profile).mid
    busy = compute_share(profile)
    if faster == 1.0 or busy is None:
        return profile
    paced = 1.0 if profile.job.kind.answers else 1.0 / (1.0 - busy + busy / faster)
    hardware = replace(profile.hardware, gpu=source_gpu(profile).name, slice=None)
    return busy_there(replace(profile, hardware=hardware), paced / faster)


def cut(
    gpu: Gpu, profiles: Sequence[Profile], probes: Probes = _NONE
) -> tuple[MigProfile, ...] | str:
    """Return a slice for each job, in order of the input, or why the GPU cannot be cut so.

    Each begins with the smallest slice that holds its memory; then the slowest gets a larger one
    for as long as the GPU can be cut so.

    Args:
        gpu: its model; one without slices is told so.
        profiles: the jobs as measured on the whole GPU.
        probes: speeds of jobs that were measured on a slice too.
    """
    if not gpu.mig:
        return Message("slice.none", gpu=gpu.name)
    rooms = []
    for profile in profiles:
        need = grown_need_gib(profile)
        if need is None or compute_share(profile) is None:
            return Message("sharing.unmeasured", job=profile.job.name)
        rooms.append(_holding(gpu, need))
        if not rooms[-1]:
            return Message("slice.too-small", gpu=gpu.name, gib=need, job=profile.job.name)
    chosen = [room[0] for room in rooms]
    refused = gpu.why_not_sliced([piece.profile for piece in chosen])
    return refused or _enlarged(gpu, profiles, rooms, chosen, probes)


def smallest(gpu: Gpu, profile: Profile) -> MigProfile | None:
    """Return the smallest slice that holds a job's memory; None where none does."""
    need = grown_need_gib(profile)
    return None if need is None else next(iter(_holding(gpu, need)), None)


def compute_of(gpu: Gpu, piece: MigProfile) -> float:
    """Return a slice's share of the GPU's compute, 0-1."""
    return piece.compute_slices / max(size.compute_slices for size in gpu.mig)


def _holding(gpu: Gpu, need_gib: float) -> list[MigProfile]:
    sizes = sorted(gpu.mig, key=lambda size: (size.compute_slices, size.memory_gib))
    return [size for size in sizes if need_gib <= USABLE * size.memory_gib]


def speeds_on(
    gpu: Gpu, profiles: Sequence[Profile], slices: Sequence[MigProfile], probes: Probes = _NONE
) -> tuple[Estimate, ...]:
    """Return each job's speed on its slice relative to the whole GPU, in order of the input."""
    return tuple(
        _speed(gpu, profile, piece, probes) for profile, piece in zip(profiles, slices, strict=True)
    )


def _speed(gpu: Gpu, profile: Profile, piece: MigProfile, probes: Probes) -> Estimate:
    """Return the speed on a slice: as measured there, told by another slice, or by the rule."""
    compute = compute_of(gpu, piece)
    if profile.job.name not in probes or compute == 1.0:
        return slice_speed(compute_share(profile) or 0.0, compute)
    name, speed = probes[profile.job.name]
    if name == piece.profile:
        return exactly(speed, Message("slice.measured-on", slice=name))
    measurement = measured_slice(gpu, name)
    memory = max(size.memory_gib for size in gpu.mig)
    return speed_by_probe(
        speed,
        (compute_of(gpu, measurement), measurement.memory_gib / memory),
        (compute, piece.memory_gib / memory),
    )


def measured_slice(gpu: Gpu, name: str) -> MigProfile:
    """Return the slice that a job was measured on.

    Raises:
        InputError: the GPU has no such slice, or it is the whole GPU.
    """
    smaller = {size.profile: size for size in gpu.mig if compute_of(gpu, size) < 1.0}
    if name not in smaller:
        raise InputError(
            f"a job was measured on the slice {name!r}; parts of a {gpu.name} are "
            f"{', '.join(sorted(smaller))}."
        )
    return smaller[name]


def _enlarged(
    gpu: Gpu,
    profiles: Sequence[Profile],
    rooms: Sequence[Sequence[MigProfile]],
    chosen: list[MigProfile],
    probes: Probes,
) -> tuple[MigProfile, ...]:
    """Give the slowest a larger slice until nobody can get one."""
    stuck: set[int] = set()
    while len(stuck) < len(chosen):
        slowest = min(
            (n for n in range(len(chosen)) if n not in stuck),
            key=lambda n: (_speed(gpu, profiles[n], chosen[n], probes).mid, profiles[n].job.name),
        )
        larger = (
            [*chosen[:slowest], size, *chosen[slowest + 1 :]]
            for size in rooms[slowest]
            if size.compute_slices > chosen[slowest].compute_slices
        )
        fitting = (c for c in larger if not gpu.why_not_sliced([piece.profile for piece in c]))
        enlarged = next(fitting, None)
        if enlarged is None:
            stuck.add(slowest)
        else:
            chosen = enlarged
    return tuple(chosen)
