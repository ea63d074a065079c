"""How many cores reading the input keeps busy, where the program reads it by itself."""

from planner.profile.model import Profile
from planner.signals.others_work import others_work

_FAIR = 0.5


def reading_cores(profile: Profile) -> float | None:
    """Return the cores that a process keeps busy while it reads; None where that is not known.

    Where it was not measured, at most all of the job's work is in that time; not on a machine that
    others fill, where what waits for a core looks like what waits for a disk.
    """
    step, host = profile.step, profile.host
    cpu = host.cpu_util.typical if host and host.cpu_util else None
    cores = profile.hardware.cpu_cores
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
    host, machine, cores = profile.host, profile.machine, profile.hardware.cpu_cores
    own = host.cpu_util.typical if host and host.cpu_util else None
    whole = machine.cpu_util.typical if machine and machine.cpu_util else None
    if cores is None or own is None or machine is None or whole is None or not machine.cpu_cores:
        return cores
    others = max(0.0, whole * machine.cpu_cores - own * cores)
    return max(own * cores, _FAIR * cores, min(cores, machine.cpu_cores - others))
