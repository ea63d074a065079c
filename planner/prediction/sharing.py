"""How fast jobs run on one GPU in each way of sharing it: MPS, time-slicing, slices, partitions.

How fast each job runs when several share one GPU.
Expected: 1 / max(1, own time on the GPU + the others' shares of it). A job is delayed only while it
has work there, which is its kernel time. Side by side (MPS) others leave it what their SM activity
does not take; in turns whoever has its turn has the whole GPU, so there their kernel time counts.
Where SM activity is unknown, kernels may take of the SMs from none to all that they run, and the
middle is half; where kernel time is, SM activity stands for it.
Nothing of it is fitted: on Gavel's pairs it is the better of the guesses, and on our own on an H200
(`research/side_by_side`) nearer than SM activity alone, in turns and under MPS.

The interval is that x/: two factors together, f^c and a, each as a square in log space. f is of
Gavel's pairs, and c the others' share, at most 1: who does not run delays nobody. a is how far a
job strays that runs again, and the most that sharing makes one faster. The low end is at most
1 / (1 + d x the others' shares): who shares is late more often than early. d is 1 under MPS, where
each share of others delays a job once at worst, and more in turns, where one that comes to the GPU
several times a step waits for its turn each time. How many times no profile tells: by the time of
a step, alone or times kernel time, intervals that held as much were wider. a and d are calibrated
on our pairs (`research/delays`, `planner/models/data/sharing.toml`).

A job whose SM activity is nearly 1 fills the GPU: under MPS its kernels keep the SMs until they
end, and others starved beside it (0.02 to 0.8 of their speed on an H200). How much depends on the
lengths of both jobs' kernels, which no reading here tells, so such an estimate is weak.

How fast two training jobs run that take turns on one GPU (time-slicing).
Who has the longer steps keeps the GPU for longer each time, so it is delayed less. For jobs that
both keep the GPU busy, t and u their seconds a step alone:

    ln speed = c + a tanh(ln(t / u) / 2) + b ln t + d (ln t)^2 + e ln u + f (ln u)^2

fitted for each GPU on published pairs (`planner/models/data/sharing.toml`); the form is that of
Gavel's pairs in our own regressions. The coefficients do not carry over to other GPUs: there, and
outside the measured step times, the rule of shares (`shares.py` beside this) is the better guess.

How fast each job runs on a partition of its own of one of AMD's GPUs, and into how many.
A GPU is cut into equal partitions, and as few as the jobs need: each then has most compute and
memory. How fast jobs run on one was measured on nothing, so the law is by the share of compute: on
a share c the time that the GPU is busy takes 1 / c as long, the rest of the time as before. That is
the low end too; at the high end a job is as fast as on the whole GPU. Such an estimate is weak.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from planner.models.coefficients import coefficients
from planner.models.estimate import Estimate, exactly
from planner.prediction import slices
from planner.profile.model import Profile
from planner.profile.source import source_gpu
from planner.signals.compute_share import SHARES, compute_share, time_on_gpu
from planner.signals.thresholds import BUSIEST, USABLE
from pricing.errors import InputError
from pricing.hardware import Gpu, PartitionMode, partition_modes
from pricing.message import Message

_BASIS = Message("sharing.law")
_FILLS = 0.95
"""SM activity from which a job fills its GPU; 0.85 left room on an H200, 0.97 did not."""
_READ_TO = 0.01  # to which readings of SM activity are told


def peak_share(profile: Profile) -> float | None:
    """Return the 95th percentile of the share that the job takes; its mean where none is known.

    Of a service recorded for less than a day with room for the other hours, so it may be above 1.
    """
    mean = compute_share(profile)
    slot = next((slot for slot in SHARES if profile.mean(slot) is not None), None)
    peaks = [slices.peak_of(profile, reading) for reading in profile.readings(slot)] if slot else []
    return max((peak for peak in peaks if peak is not None), default=mean)


def shared_speed(profiles: Sequence[Profile], *, in_turns: bool = False) -> tuple[Estimate, ...]:
    """Return each job's speed relative to running alone (1.0), in order of the input.

    Args:
        profiles: the jobs.
        in_turns: whether one job at a time has the GPU (time-slicing), not several at once (MPS).

    Raises:
        InputError: GPU use of a job was not measured.
    """
    own = [time_on_gpu(profile) for profile in profiles]
    unmeasured = [p.job.name for p, s in zip(profiles, own, strict=True) if s is None]
    if unmeasured:
        raise InputError(f"GPU use of {', '.join(unmeasured)} was not measured.")
    if len(own) == 1:
        return (exactly(1.0, Message("sharing.alone")),)
    usages = [_Taken.by(profile, in_turns=in_turns) for profile in profiles]
    total = _Taken(*(sum(shares) for shares in zip(*usages, strict=True)))
    read = [profile.mean(SHARES[0]) or 0.0 for profile in profiles]
    speeds = []
    for index, (time, share) in enumerate(zip(own, usages, strict=True)):
        speed = _speed_with_neighbors(time or 0.0, total.without(share), in_turns=in_turns)
        fullest = max(read[:index] + read[index + 1 :])
        fills = max(fullest, read[index]) >= _FILLS and not in_turns
        speeds.append(_where_filled(speed, read[index], fullest) if fills else speed)
    return tuple(speeds)


def _where_filled(speed: Estimate, own: float, fullest: float) -> Estimate:
    """Return a job's speed under MPS on a GPU that a job fills: that keeps it, others get the rest.

    Of the rest they have what they take alone, at most; nothing below all of their speed is sure.

    Args:
        speed: where none fills it.
        own: the job's SM activity.
        fullest: that of the job beside it that has most.
    """
    high = max(speed.high, 1.0)
    if fullest < _FILLS:
        return msgspec.structs.replace(speed, mid=1.0, high=high, basis=Message("sharing.fills"))
    low = max(_READ_TO, 1.0 - fullest)
    mid = min(speed.mid, low / max(own, low))
    return Estimate(
        low=min(low, mid), mid=mid, high=high, basis=Message("sharing.starved"), weak=True
    )


def processes_on(profile: Profile, gpu_count: int) -> int:
    """Return how many of today's processes, one a GPU, each of fewer GPUs would run; else 1.

    Of training none share: NCCL takes one rank a GPU. A service has copies (`planner.choice`).
    Where GPUs work for too much of the time, each process needs its own.
    """
    job, (processes, uneven) = profile.job, divmod(profile.gpu_count, gpu_count)
    if processes <= 1 or uneven or job.kind.trains or job.kind.answers or job.splits_the_model:
        return 1
    busy = time_on_gpu(profile)
    return 1 if busy is None or busy * processes > BUSIEST else processes


class _Taken(NamedTuple):
    """The share of a GPU that jobs take from others: at least, expected, at most."""

    least: float
    mid: float
    most: float

    @classmethod
    def by(cls, profile: Profile, *, in_turns: bool) -> "_Taken":
        """Return what one job takes.

        In turns it is kernel time, side by side SM activity. Where that was not measured, kernels
        may take of the SMs anything from none to all while they run: the middle is half.
        """
        time, share = time_on_gpu(profile) or 0.0, compute_share(profile) or 0.0
        if in_turns:
            return cls(time, time, time)
        if profile.mean(SHARES[0]) is None:
            return cls(0.0, share / 2.0, share)
        return cls(share, share, share)

    def without(self, share: "_Taken") -> "_Taken":
        """Return what the others of all jobs take."""
        low, mid, high = (max(0.0, a - b) for a, b in zip(self, share, strict=True))
        return _Taken(low, mid, high)


def most_beside(share: float, *, in_turns: bool = False) -> float:
    """Return the share of a GPU that others may take so that a job surely keeps such a speed.

    The other way round of the low end of `shared_speed`, while its own time on the GPU and what
    others take sum to at most 1.

    Args:
        share: of its speed alone, above 0.
        in_turns: as of `shared_speed`.
    """
    fitted = coefficients("sharing")
    slower, again = math.log(1.0 / share), math.log(float(fitted["again"]))
    if slower < again:
        return 0.0
    by_pairs = math.sqrt(slower**2 - again**2) / math.log(float(fitted["factor"]))
    by_delays = (1.0 / share - 1.0) / _delay(in_turns=in_turns)
    return min(by_delays, by_pairs if by_pairs < 1.0 else math.inf)


def _delay(*, in_turns: bool) -> float:
    """Return how often each share of others delays a job at worst."""
    return float(coefficients("sharing")["delay"]["time-slicing" if in_turns else "mps"])


def contention(load: float) -> float:
    """Return how much of the calibrated width applies: the others' share of the GPU, at most 1."""
    return min(1.0, load)


def expected_speed(total: float) -> float:
    """Return the expected speed of a job for whose work and the others' `total` GPUs are needed."""
    return 1.0 / max(1.0, total)


def _speed_with_neighbors(own: float, neighbors: _Taken, *, in_turns: bool) -> Estimate:
    fitted = coefficients("sharing")
    again = float(fitted["again"]) if neighbors.most > 0.0 else 1.0
    by_pairs = contention(neighbors.most) * math.log(float(fitted["factor"]))
    factor = math.exp(math.hypot(math.log(again), by_pairs))
    slowest, mid, fastest = (
        expected_speed(own + share) for share in (neighbors.most, neighbors.mid, neighbors.least)
    )
    return Estimate(
        low=min(slowest / factor, 1.0 / (1.0 + _delay(in_turns=in_turns) * neighbors.most)),
        mid=mid,
        high=min(again, fastest * factor),
        basis=_BASIS,
    )


_BUSY = 0.8  # of the time, from which a job keeps its GPU busy: all fitted jobs did
_TIME_SLICE_BASIS = Message("sharing.time-slices")


def terms(own_s: float, other_s: float) -> tuple[float, ...]:
    """Return what the coefficients of the law are of.

    Args:
        own_s: seconds a step of the job, alone.
        other_s: of the job beside it, alone.
    """
    own, neighbor = math.log(own_s), math.log(other_s)
    return (1.0, math.tanh((own - neighbor) / 2.0), own, own**2, neighbor, neighbor**2)


def by_turns(gpu: str, profiles: Sequence[Profile]) -> tuple[Estimate, ...] | None:
    """Return the speed of two jobs relative to running alone; None where no law is fitted for them.

    Args:
        gpu: canonical name of the GPU that they share.
        profiles: the jobs as measured alone on it.
    """
    law = coefficients("sharing").get("pair", {}).get(gpu)
    steps = [profile.step.mean_s if profile.step is not None else None for profile in profiles]
    measured = [step_s for step_s in steps if step_s is not None]
    busy = all((compute_share(profile) or 0.0) >= _BUSY for profile in profiles)
    if law is None or len(profiles) != 2 or len(measured) != 2 or not busy:  # noqa: PLR2004 - a pair
        return None
    if not law["shortest_s"] <= min(measured) <= max(measured) <= law["longest_s"]:
        return None
    first, second = measured
    return _speed(law, first, second), _speed(law, second, first)


def _speed(law: Mapping[str, Any], own_s: float, other_s: float) -> Estimate:
    log_speed = sum(a * b for a, b in zip(law["law"], terms(own_s, other_s), strict=True))
    mid, factor = min(1.0, math.exp(log_speed)), float(law["factor"])
    return Estimate(low=mid / factor, mid=mid, high=min(1.0, mid * factor), basis=_TIME_SLICE_BASIS)


_PARTITION_BASIS = Message("sharing.partitions")


def partition_speed(busy: float, compute: float) -> Estimate:
    """Return the speed on a partition relative to the whole GPU (1.0).

    Args:
        busy: share of the time that the whole GPU is busy with the job, 0-1.
        compute: the partition's share of the GPU's compute, above 0, at most 1.
    """
    if compute == 1.0:
        return exactly(1.0, Message("sharing.alone"))
    slowest = 1.0 / (1.0 + busy * (1.0 / compute - 1.0))
    return Estimate(low=slowest, mid=slowest, high=1.0, basis=_PARTITION_BASIS, weak=True)


def partitioned(gpu: Gpu, profiles: Sequence[Profile]) -> PartitionMode | str:
    """Return the fewest partitions that hold the jobs, one each, or why the GPU has none for them.

    A job's memory has to fit into an equal part, in every memory mode; one that must be isolated
    gets a partition with memory of its own.

    Args:
        gpu: its model; one without partitions is told so.
        profiles: the jobs as measured on the whole GPU.
    """
    modes = partition_modes(gpu)
    if not modes:
        return Message("sharing.no-partitions", gpu=gpu.name)
    many = [mode for mode in modes if mode.partitions >= len(profiles)]
    if not many:
        parts = modes[-1].partitions
        return Message("sharing.too-few-partitions", gpu=gpu.name, most=parts, n=len(profiles))
    isolated = tuple(dict.fromkeys(p.job.name for p in profiles if p.job.trust == "isolated"))
    own = [mode for mode in many if mode.own_memory or not isolated]
    if not own:
        return Message("sharing.no-own-memory", gpu=gpu.name, n=many[0].partitions, jobs=isolated)
    mode = own[0]
    return _too_large(gpu, mode, profiles) or mode


def _too_large(gpu: Gpu, mode: PartitionMode, profiles: Sequence[Profile]) -> str | None:
    """Return why a partition does not hold a job; larger ones would be too few."""
    for profile in profiles:
        need = slices.grown_need_gib(profile)
        if need is None or compute_share(profile) is None:
            return Message("sharing.unmeasured", job=profile.job.name)
        room = USABLE * mode.memory_gib(gpu)
        if need > room:
            return Message(
                "sharing.partition-too-small",
                job=profile.job.name,
                gib=need,
                gpu=gpu.name,
                mode=mode.name,
                room=room,
            )
    return None


def speeds_on_partitions(profiles: Sequence[Profile], mode: PartitionMode) -> tuple[Estimate, ...]:
    """Return each job's speed on its partition relative to the whole GPU, in order of the input."""
    return tuple(
        partition_speed(compute_share(profile) or 0.0, mode.compute) for profile in profiles
    )


def predict_sharing(
    profiles: Iterable[Profile], mode: str = "mps", on_slice: slices.Probes | None = None
) -> tuple[Estimate, ...]:
    """Return each job's relative speed when all share one GPU, 1.0 = alone, in order of input.

    Args:
        profiles: the jobs; GPU use must be measured.
        mode: `mps`, `time-slicing`, `mig`: each gets a slice of its own, of the first's GPU, or
            `partition`: each gets a partition of its own, of the first's GPU, one of AMD's.
        on_slice: with `mig`, of jobs that were also measured on a slice: its name, and the speed
            there relative to the whole GPU, by the job's name; it tells the other slices better.

    Raises:
        InputError: another mode; GPU use was not measured; an isolated job would share without
            slices; the GPU of the first job cannot be cut into slices or partitions for them, or is
            not one that shares so; `on_slice` is of no such job, slice or mode, or its speed is not
            above 0 and at most 1.
    """
    jobs = tuple(profiles)
    full = tuple(map(slices.on_whole, jobs))
    if on_slice:
        _check(jobs, mode, on_slice)
        return _sliced(full, on_slice)
    if mode not in _MODES:
        raise InputError(f"no mode of sharing is called {mode!r}; there are {', '.join(_MODES)}.")
    return _MODES[mode](full)


def _check(profiles: Sequence[Profile], mode: str, on_slice: slices.Probes) -> None:
    names = {profile.job.name for profile in profiles}
    problems = [
        *([f"a speed on a slice is of mode='mig', not of {mode!r}."] if mode != "mig" else []),
        *(f"no job is called {name}." for name in sorted(on_slice.keys() - names)),
        *(
            f"{name} on {piece}: a speed of {speed:g}; it is above 0 and at most 1 (whole GPU)."
            for name, (piece, speed) in sorted(on_slice.items())
            if not 0.0 < speed <= 1.0
        ),
    ]
    if problems:
        raise InputError(problems)


def _whole(profiles: Sequence[Profile], *, in_turns: bool = False) -> tuple[Estimate, ...]:
    isolated = [p.job.name for p in profiles if p.job.trust == "isolated"]
    if isolated and len(profiles) > 1:
        raise InputError(f"{', '.join(isolated)} must be isolated; only mode='mig' keeps that.")
    return shared_speed(profiles, in_turns=in_turns)


def _in_turns(profiles: Sequence[Profile]) -> tuple[Estimate, ...]:
    expected = _whole(profiles, in_turns=True)
    named = [profile.hardware.gpu for profile in profiles]
    if len(set(named)) != 1 or named[0] is None:
        return expected
    return by_turns(source_gpu(profiles[0]).name, profiles) or expected


def _sliced(
    profiles: Sequence[Profile], on_slice: slices.Probes | None = None
) -> tuple[Estimate, ...]:
    if not profiles:
        return ()
    gpu, probes = source_gpu(profiles[0]), on_slice or {}
    for name, _ in probes.values():
        slices.measured_slice(gpu, name)
    pieces = slices.cut(gpu, profiles, probes)
    if isinstance(pieces, str):
        raise InputError(f"{pieces}.")
    return slices.speeds_on(gpu, profiles, pieces, probes)


def _in_partitions(profiles: Sequence[Profile]) -> tuple[Estimate, ...]:
    if len(profiles) < _SEVERAL:
        return shared_speed(profiles)
    mode = partitioned(source_gpu(profiles[0]), profiles)
    if isinstance(mode, str):
        raise InputError(f"{mode}.")
    return speeds_on_partitions(profiles, mode)


_SEVERAL = 2
_MODES: Mapping[str, Callable[[Sequence[Profile]], tuple[Estimate, ...]]] = {
    "mps": _whole,
    "time-slicing": _in_turns,
    "mig": _sliced,
    "partition": _in_partitions,
}
