"""The shares of a GPU, a host and its cores that a job takes, and what others leave."""

from typing import Literal

from msgspec.structs import replace

from planner.profile import frameworks
from planner.profile.model import Profile, Statistics

SHARES = ("util.sm_active", "util.kernel_time")
"""What tells the share of a GPU's time that a job takes, the better reading first."""


_USES_FP64 = 0.05  # of the cycles: above what index arithmetic and stray kernels take


def compute_share(profile: Profile) -> float | None:
    """Return the share of a GPU's time that the job takes: SM activity, else kernel time."""
    return next((share for slot in SHARES if (share := profile.mean(slot)) is not None), None)


def arithmetic(profile: Profile) -> Literal["single", "double", "either"] | None:
    """Return what carries a simulation or a rendering, as named, as seen, or as its program does.

    Of another job it is `double` where that is named or seen, else None.
    """
    precision, busy = profile.job.precision, profile.mean("util.fp64_active")
    if precision == "fp64" or (busy or 0.0) >= _USES_FP64:
        return "double"
    usual = frameworks.arithmetic(profile.job.framework)
    return "single" if usual and (precision or busy is not None) else usual


def time_on_gpu(profile: Profile) -> float | None:
    """Return the share of the time in which the GPU runs anything of the job: kernel time.

    At least its SM activity: a collector may lack the one reading or write 0 for it.
    """
    return max((m for slot in SHARES if (m := profile.mean(slot)) is not None), default=None)


def busy_there(profile: Profile, factor: float) -> Profile:
    """Return the profile with its shares of a GPU's time as they would be on another GPU.

    Args:
        profile: what was measured.
        factor: share there over share here; 1 leaves the profile as it is.
    """
    if factor == 1.0:
        return profile
    readings = tuple(
        replace(
            gpu,
            metrics={
                slot: _times(statistics, factor)
                if slot in SHARES and statistics.typical is not None
                else statistics
                for slot, statistics in gpu.metrics.items()
            },
        )
        for gpu in profile.gpus
    )
    return replace(profile, gpus=readings)


def _times(statistics: Statistics, factor: float) -> Statistics:
    """Return mean and peaks of a share of time, times a factor, at most 1."""
    scaled = {
        name: min(1.0, value * factor)
        for name, value in (
            ("mean", statistics.typical),
            ("p95", statistics.p95),
            ("p99", statistics.p99),
            ("max", statistics.max),
        )
        if value is not None
    }
    return Statistics(**scaled)


# Of all cores: who wants one more waits for it. As what a profile notes of itself.
_FULL = 0.9
# Of all cores: less than this of others' work is the machine's own; our choice.
_THEIRS = 0.1


def others_work(profile: Profile) -> str | None:
    """Return how full the machine was with others' work; None where it was not, or is not known."""
    machine, own, cores = profile.machine, profile.cpu_fraction, profile.hardware.cpu_cores
    total = machine.cpu_util.typical if machine and machine.cpu_util else None
    if total is None or own is None or machine is None or not machine.cpu_cores or not cores:
        return None
    share = own * cores / machine.cpu_cores
    if total < _FULL or total - share < _THEIRS:
        return None
    return f"{total:.0%} of the machine's cores were busy, {share:.0%} with this job"


_FAIR = 0.5


def reading_cores(profile: Profile) -> float | None:
    """Return the cores that a process keeps busy while it reads; None where that is not known.

    Where it was not measured, at most all of the job's work is in that time; not on a machine that
    others fill, where what waits for a core looks like what waits for a disk.
    """
    step, cpu, cores = profile.step, profile.cpu_fraction, profile.hardware.cpu_cores
    if step is None or step.loader_workers != 0 or not step.mean_s or not step.data_wait_s:
        return None
    if step.reading_cores is not None:
        return step.reading_cores
    if cpu is None or cores is None or others_work(profile) is not None:
        return None
    waiting = min(1.0, step.data_wait_s / step.mean_s)
    return min(1.0, cpu * cores / profile.gpu_count / waiting)


def cores_left(profile: Profile) -> float | None:
    """Return the cores that the job may use and others leave; all of its own where unknown.

    Who wants all of a machine that others fill gets half of it: the scheduler is fair.
    """
    machine, own, cores = profile.machine, profile.cpu_fraction, profile.hardware.cpu_cores
    total = machine.cpu_util.typical if machine and machine.cpu_util else None
    if cores is None or own is None or machine is None or total is None or not machine.cpu_cores:
        return cores
    foreign_cores = max(0.0, total * machine.cpu_cores - own * cores)
    return max(own * cores, _FAIR * cores, min(cores, machine.cpu_cores - foreign_cores))
