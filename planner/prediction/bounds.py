"""What measurement and machine forbid: ceilings that every prediction passes, in one place.

A method may err; these bounds do not depend on it. Work that communicates gains at most what all
of its communication took. Fewer GPUs of the same model do no more than all of them. A unit of work
takes as many operations, bytes and seconds of CPU anywhere, so no prediction may exceed the
target's arithmetic, memory bandwidth or host.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from planner.actions import Action
from planner.models.estimate import Estimate
from planner.models.gpu_speed.arithmetic import peak_tflops
from planner.prediction.layout import Layout
from planner.prediction.work_rate import operations_per_s
from planner.profile.model import Profile
from planner.profile.source import memory_measured, part_measured, source_gpu
from pricing.errors import InputError
from pricing.hardware import Gpu

# Of the peak rate. Whole training runs report about half (PaLM 0.46, arXiv 2204.02311; Megatron-LM
# 0.52 on A100, arXiv 2104.04473), so more than this is a wrong input and no fast job.
MOST_MFU = 0.75
_TERA = 1e12
_CHANGES_FORMAT = frozenset(("mixed-precision", "tf32", "quantization", "pruning"))
_TINY = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """A speed-up that cannot be passed, at each end of a prediction, and why."""

    low: float
    mid: float
    high: float
    reason: str


@dataclass(slots=True, kw_only=True)
class Limits:
    """What the bounds of all predictions of one profile have in common, each worked out once.

    Attributes:
        doubts: what cannot be true of the measurement; None until it was looked at.
        of_gpus: ceilings of GPUs, by their model, their number and the actions.
    """

    doubts: tuple[str, ...] | None = None
    of_gpus: dict[object, tuple[Ceiling, ...]] = field(default_factory=dict)


def bounded(  # noqa: PLR0913, PLR0917 - a prediction, and what it is of
    found: Estimate,
    profile: Profile,
    target: Layout,
    actions: tuple[Action, ...],
    alone: Estimate,
    limits: Limits | None = None,
) -> Estimate:
    """Return a prediction held to every ceiling; those that bind are named in its basis.

    Args:
        found: the speed-up over the profiled run.
        profile: what was measured.
        target: where it would run.
        actions: what is changed beside the machine.
        alone: the most that one target GPU, its host and the actions gain over one profiled GPU.
        limits: what earlier predictions of the profile found.
    """
    limits = limits or Limits()
    low, mid, high, basis = found.low, found.mid, found.high, found.basis
    for ceiling in _ceilings(profile, target, actions, alone, limits):
        if mid > ceiling.mid * (1.0 + _TINY):
            basis = f"{basis}; {ceiling.reason}"
        low, mid, high = min(low, ceiling.low), min(mid, ceiling.mid), min(high, ceiling.high)
    doubts = limits.doubts
    if doubts is None:
        doubts = limits.doubts = contradictions(profile)
    if not doubts and high == found.high and mid == found.mid and low == found.low:
        return found
    basis, weak = "; ".join((basis, *doubts)), found.weak or bool(doubts)
    return Estimate(low=low, mid=mid, high=high, basis=basis, weak=weak)


def _ceilings(
    profile: Profile,
    target: Layout,
    actions: tuple[Action, ...],
    alone: Estimate,
    limits: Limits,
) -> Iterator[Ceiling]:
    yield from _communication(profile, target, alone)
    if target.cpu_cores is not None and not any(action.part == "input" for action in actions):
        yield from _host(profile, target)
    codes = tuple(action.code for action in actions)
    key = (target.kind, codes)
    known = limits.of_gpus.get(key)
    if known is None:
        known = limits.of_gpus[key] = tuple(_of_gpus(profile, target, actions))
    yield from known


def _of_gpus(profile: Profile, target: Layout, actions: tuple[Action, ...]) -> Iterator[Ceiling]:
    """Yield what the GPUs alone forbid, whatever host and links they have."""
    if not _CHANGES_FORMAT.intersection(action.code for action in actions):
        yield from _arithmetic(profile, target)
    if not actions:
        yield from _fewer(profile, target)
        yield from _bandwidth(profile, target)


def _flat(most: float, reason: str) -> Ceiling:
    return Ceiling(low=most, mid=most, high=most, reason=reason)


def _communication(profile: Profile, target: Layout, alone: Estimate) -> Iterator[Ceiling]:
    step, ratio = profile.step, target.gpu_count / profile.gpu_count
    if step is None or not step.mean_s or step.comm_s is None or profile.gpu_count == 1:
        return
    rest = step.mean_s - step.comm_s
    if rest <= 0.0:
        return
    most = ratio * step.mean_s / rest
    yield Ceiling(
        low=most * alone.low,
        mid=most * alone.mid,
        high=most * alone.high,
        reason=f"without any of the measured communication, {step.comm_s / step.mean_s:.0%} of it",
    )


def _fewer(profile: Profile, target: Layout) -> Iterator[Ceiling]:
    if target.gpu_count < profile.gpu_count and target.chip.name == source_gpu(profile).name:
        yield _flat(1.0, f"{target.gpu_count} of {profile.gpu_count} GPUs do no more than all")


def _host(profile: Profile, target: Layout) -> Iterator[Ceiling]:
    used = profile.host.cpu_util if profile.host else None
    busy, cores = used.typical if used else None, profile.hardware.cpu_cores
    if not busy or cores is None or target.cpu_cores is None:
        return
    most = target.cpu_cores / (busy * cores)
    yield _flat(most, f"the host keeps {busy * cores:.1f} cores busy and has {target.cpu_cores:g}")


def _arithmetic(profile: Profile, target: Layout) -> Iterator[Ceiling]:
    share = utilisation(profile)
    if share is None or not share:
        return
    here = _peak(source_gpu(profile), profile) * profile.gpu_count * part_measured(profile)
    there = _peak(target.chip, profile) * target.gpu_count
    there *= part_measured(profile) if target.slice else 1.0
    # A source beyond the limit is a wrong input; it proves at least what its peak does.
    most = there / here * max(1.0, MOST_MFU / share)
    yield _flat(most, f"held to {MOST_MFU:.0%} of {target.chip.name}'s peak at this precision")


def _bandwidth(profile: Profile, target: Layout) -> Iterator[Ceiling]:
    busy = profile.mean("util.dram_active")
    here, there = source_gpu(profile).memory_bandwidth_gb_s, target.chip.memory_bandwidth_gb_s
    if not busy or here is None or there is None:
        return
    part = 1.0 if target.slice else memory_measured(profile)
    ratio = there * target.gpu_count / (here * profile.gpu_count * part)
    yield _flat(ratio / busy, f"held to {target.chip.name}'s memory bandwidth")


def _peak(gpu: Gpu, profile: Profile) -> float:
    """Return the peak rate of a job's precision, TFLOP/s; the half rate where it is unknown."""
    return peak_tflops(gpu, profile.job.precision or "amp-bf16")


def utilisation(profile: Profile) -> float | None:
    """Return the share of the peak rate that the parameters need (MFU); None where unknown."""
    needed = operations_per_s(profile).value
    if needed is None or profile.hardware.gpu is None:
        return None
    try:
        peak = _peak(source_gpu(profile), profile) * part_measured(profile) * _TERA
    except InputError:  # no such GPU, or its rates are not known
        return None
    return needed / (peak * profile.gpu_count)


def contradictions(profile: Profile) -> tuple[str, ...]:
    """Return what cannot be true of the measurement, in sentences; predictions from it are weak."""
    share = utilisation(profile)
    if share is None or share <= MOST_MFU:
        return ()
    said = (
        f"parameters x rate are {share:.0%} of the peak of {profile.gpu_count}x "
        f"{source_gpu(profile).name}, more than any job reaches: job.parameters, work.rate_per_s "
        "or job.precision is wrong"
    )
    return (said,)
