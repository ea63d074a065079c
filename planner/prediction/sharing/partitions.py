"""How fast each job runs on a partition of its own of one of AMD's GPUs, and into how many.

A GPU is cut into equal partitions, and as few as the jobs need: each then has most compute and
memory. How fast jobs run on one was measured on nothing, so the law is by the share of compute: on
a share c the time that the GPU is busy takes 1 / c as long, the rest of the time as before. That is
the low end too; at the high end a job is as fast as on the whole GPU. Such an estimate is weak.
"""

from collections.abc import Sequence

from planner.models.estimate import Estimate, exactly
from planner.prediction.sharing.growth import memory_growth
from planner.profile.model import Profile
from planner.signals.compute_share import compute_share
from planner.signals.signals import memory_need_gib
from planner.signals.thresholds import USABLE
from pricing.gpu_partitions import PartitionMode, partition_modes
from pricing.hardware import Gpu

_BASIS = "weak: busy time x 1 / share of the compute; partitions were measured on nothing"


def partition_speed(busy: float, compute: float) -> Estimate:
    """Return the speed on a partition relative to the whole GPU (1.0).

    Args:
        busy: share of the time that the whole GPU is busy with the job, 0-1.
        compute: the partition's share of the GPU's compute, above 0, at most 1.
    """
    if compute == 1.0:
        return exactly(1.0, "alone on its GPU")
    slowest = 1.0 / (1.0 + busy * (1.0 / compute - 1.0))
    return Estimate(low=slowest, mid=slowest, high=1.0, basis=_BASIS, weak=True)


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
        return f"no partitions of the {gpu.name} are known"
    many = [mode for mode in modes if mode.partitions >= len(profiles)]
    if not many:
        return f"a {gpu.name} has at most {modes[-1].partitions} partitions, not {len(profiles)}"
    isolated = {one.job.name: None for one in profiles if one.job.trust == "isolated"}
    own = [mode for mode in many if mode.own_memory or not isolated]
    if not own:
        return (
            f"no mode of the {gpu.name} is known in which each of {many[0].partitions} partitions "
            f"has memory of its own, as {', '.join(isolated)} must have"
        )
    mode = own[0]
    return _too_large(gpu, mode, profiles) or mode


def _too_large(gpu: Gpu, mode: PartitionMode, profiles: Sequence[Profile]) -> str | None:
    """Return why a partition does not hold a job; larger ones would be too few."""
    for one in profiles:
        need = memory_need_gib(one)
        if need is None or compute_share(one) is None:
            return f"memory or GPU use of {one.job.name} was not measured"
        need *= memory_growth(one)
        room = USABLE * mode.memory_gib(gpu)
        if need > room:
            return (
                f"{one.job.name} takes {need:.1f} GiB, and of a partition of the {gpu.name} in "
                f"{mode.name} {room:.1f} may be filled"
            )
    return None


def speeds_on_partitions(profiles: Sequence[Profile], mode: PartitionMode) -> tuple[Estimate, ...]:
    """Return each job's speed on its partition relative to the whole GPU, in order of the input."""
    return tuple(partition_speed(compute_share(one) or 0.0, mode.compute) for one in profiles)
