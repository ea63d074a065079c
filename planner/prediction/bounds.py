"""What measurement and machine forbid: upper bounds that every prediction passes, in one place.

A method may err; these bounds do not depend on it. Work that communicates gains at most what all
of its communication took. Fewer GPUs of the same model do no more than all of them, but where they
stand in fewer machines: a slow network may cost more than they do. A unit of work
takes as many operations, bytes and seconds of CPU anywhere, so no prediction may exceed the
target's arithmetic, memory bandwidth or host.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from planner.actions import Action
from planner.models.estimate import Estimate, exactly
from planner.models.gpu_speed import peak_tflops
from planner.prediction.kernels import ENGINE_FACTOR, video_loads
from planner.prediction.layout import Layout
from planner.prediction.profiled_step import operations_per_s
from planner.profile.model import Profile
from planner.profile.source import memory_measured, part_measured, source_gpu
from planner.signals.program_places import cores_used
from pricing.errors import InputError
from pricing.hardware import Gpu
from pricing.message import Message, join

# Of the peak rate. Whole training runs report about half (PaLM 0.46, arXiv 2204.02311; Megatron-LM
# 0.52 on A100, arXiv 2104.04473), so more than this is a wrong input and no fast job.
MOST_MFU = 0.75
_TERA = 1e12
_CHANGES_FORMAT = frozenset(("mixed-precision", "tf32", "quantization", "pruning"))
_TINY = 1e-9
_NO_BOUND = 1e12  # faster than anything: of a reading next to 0, finite


class RelaxedBounds(NamedTuple):
    """Which bounds actions relax: what they change was not so when it was measured."""

    host: bool
    arithmetic: bool
    of_gpus: bool


def relaxed_by(actions: Iterable[Action]) -> RelaxedBounds:
    """Return which upper bounds do not hold with actions applied."""
    applied = tuple(actions)
    return RelaxedBounds(
        host=any(action.part == "input" for action in applied),
        arithmetic=not _CHANGES_FORMAT.isdisjoint(action.code for action in applied),
        of_gpus=bool(applied),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a profile forbids: all that the bounds of its predictions start from.

    Attributes:
        source: the model of the profiled GPUs.
        gpu_count: of them.
        machines: that they stand in.
        part: share of each one's compute that was measured.
        memory_part: share of each one's memory that was measured.
        precision: of the arithmetic, as `peak_tflops` knows them.
        share: of the peak rate that the parameters need; None = unknown.
        loads: share of the time that memory and video engines were busy, by what `Gpu` calls
            their rate or number; without what was not measured.
        communicating: share of a step that communication took; None = not measured.
        cores: of the host that the job keeps busy; None = not measured.
        doubts: what cannot be true of the measurement.
    """

    source: Gpu
    gpu_count: int
    machines: int
    part: float
    memory_part: float
    precision: str
    share: float | None
    loads: Mapping[str, float]
    communicating: float | None
    cores: float | None
    doubts: tuple[str, ...]


def limits_of(profile: Profile) -> Limits:
    """Return what a profile forbids.

    Raises:
        InputError: it names no GPU.
        UnknownGpuError: the GPU is not in the hardware table.
    """
    return Limits(
        source=source_gpu(profile),
        gpu_count=profile.gpu_count,
        machines=profile.hardware.nodes or 1,
        part=part_measured(profile),
        memory_part=memory_measured(profile),
        precision=_precision(profile),
        share=utilisation(profile),
        loads={"memory_bandwidth_gb_s": profile.mean("util.dram_active") or 0.0}
        | video_loads(profile),
        communicating=_communicating(profile),
        cores=cores_used(profile) or None,
        doubts=contradictions(profile),
    )


def _communicating(profile: Profile) -> float | None:
    step = profile.step
    if step is None or not step.mean_s or step.comm_s is None or profile.gpu_count == 1:
        return None
    share = step.comm_s / step.mean_s
    return share if share < 1.0 else None


def bounded(
    speed: Estimate,
    limits: Limits,
    target: Layout,
    relaxed: RelaxedBounds,
    solo: tuple[Estimate, ...],
) -> Estimate:
    """Return a prediction held to every bound; those that bind are named in its basis.

    Args:
        speed: the speed-up over the profiled run.
        limits: what the profile forbids.
        target: where it would run.
        relaxed: by what is changed beside the machine.
        solo: what one target GPU, its host and the actions gain over one profiled GPU, each part
            of the time for itself: all together gain no more than the most of them.
    """
    low, mid, high, basis = speed.low, speed.mid, speed.high, speed.basis
    for bound in _upper_bounds(speed.high, limits, target, relaxed, solo):
        if mid > bound.mid * (1.0 + _TINY):
            basis = join((basis, bound.basis))
        low, mid, high = min(low, bound.low), min(mid, bound.mid), min(high, bound.high)
    doubts = limits.doubts
    if not doubts and high == speed.high and mid == speed.mid and low == speed.low:
        return speed
    basis, weak = join((basis, *doubts)), speed.weak or bool(doubts)
    return Estimate(low=low, mid=mid, high=high, basis=basis, weak=weak)


def _upper_bounds(
    high: float, limits: Limits, target: Layout, relaxed: RelaxedBounds, solo: tuple[Estimate, ...]
) -> Iterator[Estimate]:
    """Yield what the speed-up cannot pass, at each end, and why; not what is surely above it."""
    if limits.communicating is not None:
        ratio = target.gpu_count / limits.gpu_count
        yield _communication(ratio, limits.communicating, solo)
    if limits.cores and target.cpu_cores is not None and not relaxed.host:
        limit = target.cpu_cores / limits.cores
        if limit < high:
            used, cores = limits.cores, target.cpu_cores
            yield exactly(limit, Message("speed.host-cores", busy=used, cores=cores))
    if limits.share and not relaxed.arithmetic:
        yield _arithmetic(limits.share, limits, target)
    if not relaxed.of_gpus:
        fewer = target.gpu_count < limits.gpu_count and target.machines >= limits.machines
        if fewer and target.chip.name == limits.source.name:
            basis = Message("speed.fewer-gpus", n=target.gpu_count, of=limits.gpu_count)
            yield exactly(1.0, basis)
        yield from _parts_full(limits, target)


def _communication(ratio: float, share: float, solo: tuple[Estimate, ...]) -> Estimate:
    limit = min(ratio / (1.0 - share), _NO_BOUND)
    ends = {end: max(getattr(gain, end) for gain in solo) for end in ("low", "mid", "high")}
    return Estimate(**ends, basis="").times(limit, Message("speed.no-communication", share=share))


def _arithmetic(share: float, limits: Limits, target: Layout) -> Estimate:
    rate_now = peak_tflops(limits.source, limits.precision) * limits.gpu_count * limits.part
    rate_target = peak_tflops(target.chip, limits.precision) * target.gpu_count
    rate_target *= limits.part if target.slice else 1.0
    # A source beyond the limit is a wrong input; it proves at least what its peak does.
    limit = min(rate_target / rate_now * max(1.0, MOST_MFU / share), _NO_BOUND)
    return exactly(limit, Message("speed.most-of-peak", share=MOST_MFU, gpu=target.chip.name))


def _parts_full(limits: Limits, target: Layout) -> Iterator[Estimate]:
    for part, load in limits.loads.items():
        now, after = getattr(limits.source, part), getattr(target.chip, part)
        if not (load and now and after):
            continue
        measured = 1.0 if target.slice else limits.memory_part
        ratio = after * target.gpu_count / (now * limits.gpu_count * measured)
        video = part.startswith("video")
        limit = min(ratio * (ENGINE_FACTOR if video else 1.0) / load, _NO_BOUND)
        code = "speed.most-of-engines" if video else "speed.most-of-bandwidth"
        yield exactly(limit, Message(code, gpu=target.chip.name))


def _precision(profile: Profile) -> str:
    """Return the precision of which the peak rates are asked; a half one where it is unknown."""
    return profile.job.precision or "amp-bf16"


def utilisation(profile: Profile) -> float | None:
    """Return the share of the peak rate that the parameters need (MFU); None where unknown."""
    needed = operations_per_s(profile)
    if needed is None or profile.hardware.gpu is None:
        return None
    try:
        rate = peak_tflops(source_gpu(profile), _precision(profile))
    except InputError:  # no such GPU, or its rates are not known
        return None
    return needed / (rate * part_measured(profile) * _TERA * profile.gpu_count)


def contradictions(profile: Profile) -> tuple[str, ...]:
    """Return what cannot be true of the measurement, in sentences; predictions from it are weak."""
    share = utilisation(profile)
    if share is None or share <= MOST_MFU:
        return ()
    gpus = f"{profile.gpu_count}x {source_gpu(profile).name}"
    return (Message("speed.above-peak", share=share, gpus=gpus),)
