"""What jobs take of a host, cores and memory, and whether a machine has it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from planner.baseline.rejection import Reason
from planner.profile.model import Profile
from planner.signals.thresholds import CPU_FULL

_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class HostNeed:
    """What jobs keep busy of their host; None = not measured.

    Attributes:
        cores: busy most of the time (95 % of it), over all machines.
        ram_gib: the most memory held, over all machines, GiB.
    """

    cores: float | None
    ram_gib: float | None

    @property
    def is_known(self) -> bool:
        """Whether anything of it was measured."""
        return self.cores is not None or self.ram_gib is not None


def host_need(profile: Profile) -> HostNeed:
    """Return what one job takes of its host: the cores' 95th percentile, the memory's maximum."""
    host, cores = profile.host, profile.hardware.cpu_cores
    used, held = (host.cpu_util, host.ram_used_gib) if host else (None, None)
    share = None if used is None else used.p95 if used.p95 is not None else used.typical
    return HostNeed(
        cores=None if share is None or cores is None else share * cores,
        ram_gib=None if held is None else held.peak if held.peak is not None else held.typical,
    )


def together(needs: Iterable[HostNeed]) -> HostNeed:
    """Return what several jobs take of one host, as far as they were measured."""
    known = tuple(needs)
    cores = [need.cores for need in known if need.cores is not None]
    ram = [need.ram_gib for need in known if need.ram_gib is not None]
    return HostNeed(cores=sum(cores) if cores else None, ram_gib=sum(ram) if ram else None)


def host_lacks(
    need: HostNeed, vcpus: float | None, ram_gib: float | None
) -> tuple[Reason, str] | None:
    """Return why a host does not carry that; None where it does, or if it is unknown."""
    if need.cores is not None and vcpus is not None and need.cores > vcpus + _ROUNDING:
        return "capability", f"the host has {vcpus:g} vCPUs; {need.cores:.1f} cores are busy"
    if need.ram_gib is not None and ram_gib is not None and need.ram_gib > ram_gib + _ROUNDING:
        return "memory", f"the host has {ram_gib:g} GiB; {need.ram_gib:.0f} GiB are in use"
    return None


def host_unknown(need: HostNeed, vcpus: float | None, ram_gib: float | None) -> str | None:
    """Return what of a host is unknown although the job was seen to need it; None otherwise."""
    missing = []
    if vcpus is None and need.cores is not None:
        missing.append(f"vCPUs ({need.cores:.1f} cores are busy)")
    if ram_gib is None and need.ram_gib is not None:
        missing.append(f"memory ({need.ram_gib:.0f} GiB are in use)")
    return f"its host's {' and '.join(missing)} unknown" if missing else None


def crowded(
    profiles: Sequence[Profile], vcpus: float | None, ram_gib: float | None
) -> tuple[Reason, str] | None:
    """Return why jobs cannot stand on one host; None where nothing measured speaks against it.

    Memory adds up. Cores add up only where a job fills its own host: below that, runtimes that spin
    while they wait for the GPU keep cores busy, too, so the sum is not proof (`host_share` has it).
    """
    if len(profiles) == 1:
        return None
    need = together(host_need(profile) for profile in profiles)
    if not any(is_full(profile) for profile in profiles):
        need = replace(need, cores=None)
    return host_lacks(need, vcpus, ram_gib)


def host_share(profiles: Sequence[Profile], vcpus: float | None) -> float:
    """Return the speed of jobs together if all cores that they keep busy do needed work, <= 1."""
    used = []
    for profile in profiles:
        host, cores = profile.host, profile.hardware.cpu_cores
        share = host.cpu_util.typical if host and host.cpu_util else None
        used.append((share or 0.0) * (cores or 0.0))
    total = sum(used)
    return 1.0 if vcpus is None or len(used) == 1 or total <= vcpus else vcpus / total


def is_full(profile: Profile) -> bool:
    """Return whether a job keeps all cores of its own host busy."""
    used = profile.host.cpu_util if profile.host else None
    return used is not None and (used.typical or 0.0) >= CPU_FULL
