"""Puts jobs together on GPUs within every limit of sharing: first fit, and a proven lower bound."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from planner.baseline.baseline import Baseline, gpu_memory_gib
from planner.baseline.rejection import Reason
from planner.baseline.requirements import Requirements
from planner.fleet.home import Home
from planner.models.estimate import Estimate
from planner.options.feasibility import BUSIEST, USABLE
from planner.options.host_room import crowded, host_share
from planner.prediction.sharing import shared_speed
from planner.profile.model import Profile
from planner.signals.signals import worst_latency_ms

CONTEXT_GIB = 0.6  # per process on a shared GPU: the contract's allowance


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmoved:
    """A job that could not join an earlier GPU, and why."""

    job: str
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """One job as the packing sees it.

    Attributes:
        profile: what was measured.
        baseline: what runs today.
        home: the machine whose GPU it would share; None where there is none.
        share: of a GPU's time, 0-1; None = not measured.
        memory_gib: the most that it held; None = not measured.
    """

    profile: Profile
    baseline: Baseline
    home: Home | None
    share: float | None
    memory_gib: float | None

    @property
    def name(self) -> str:
        """The job's name."""
        return self.profile.job.name

    @property
    def there(self) -> Profile:
        """What was measured, as it would be on the home's GPU."""
        return self.home.profile if self.home else self.profile

    @property
    def latency_ms(self) -> float | None:
        """The worst measured latency, alone on the home's GPU; None where none was measured."""
        measured = worst_latency_ms(self.profile)
        return measured / self.home.speed.low if measured and self.home else measured


def speeds(group: list[Tenant]) -> dict[str, Estimate]:
    """Return each job's speed relative to running alone, by its name."""
    found = shared_speed([one.there for one in group])
    busy = host_share([one.profile for one in group], _vcpus(group))
    return {
        one.name: speed if busy == 1.0 else replace(speed, low=speed.low * busy)
        for one, speed in zip(group, found, strict=True)
    }


def _vcpus(group: list[Tenant]) -> float | None:
    """Return the cores of the host that a group would have; None if unknown.

    On a machine of several GPUs the hosts are looked at as a whole: `planner.fleet.machines_left`.
    """
    home = group[0].home
    if home is None or home.offer.gpu_count != 1:
        return None
    seen = [t.profile.hardware.cpu_cores for t in group if t.profile.hardware.cpu_cores]
    return home.offer.vcpus or min(seen, default=None)


_Order = Callable[[Tenant], tuple[float, str]]
_ORDERS: tuple[_Order, ...] = (
    lambda t: (-(t.memory_gib or 0.0), t.name),
    lambda t: (-(t.share or 0.0), t.name),
    lambda t: (-max(t.share or 0.0, (t.memory_gib or 0.0) / 80.0), t.name),
)


def pack(group: list[Tenant], asked: Requirements) -> tuple[list[list[Tenant]], list[Unmoved]]:
    """Return the packing with the fewest GPUs over a few orders of first fit decreasing."""
    tried = [_first_fit(sorted(group, key=order), asked) for order in _ORDERS]
    bins, unmoved = min(tried, key=lambda result: len(result[0]))
    return bins, [*unmoved, *_left_alone(bins, unmoved, asked)]


def _left_alone(
    bins: list[list[Tenant]], unmoved: list[Unmoved], asked: Requirements
) -> Iterator[Unmoved]:
    """Yield the jobs that opened a GPU which nobody could join."""
    told = {one.job for one in unmoved}
    for bin_ in bins:
        others = [one for other in bins if other is not bin_ for one in other]
        if len(bin_) > 1 or bin_[0].name in told or not others:
            continue
        refused = _refuses([bin_[0], others[0]], asked)
        if refused is not None:
            yield Unmoved(job=bin_[0].name, reason=refused[0], detail=refused[1])


def _first_fit(
    group: list[Tenant], asked: Requirements
) -> tuple[list[list[Tenant]], list[Unmoved]]:
    bins: list[list[Tenant]] = []
    unmoved: list[Unmoved] = []
    for one in group:
        refusal: Unmoved | None = None
        for bin_ in bins:
            refused = _refuses([*bin_, one], asked)
            if refused is None:
                bin_.append(one)
                break
            refusal = refusal or Unmoved(job=one.name, reason=refused[0], detail=refused[1])
        else:
            bins.append([one])
            if refusal is not None:
                unmoved.append(refusal)
    return bins, unmoved


def _refuses(group: list[Tenant], asked: Requirements) -> tuple[Reason, str] | None:
    """Return why these jobs cannot share one GPU; None when they can."""
    checks = (_memory, _host, _unmeasured, _latency, _slowdown)
    return next((refusal for check in checks if (refusal := check(group, asked))), None)


def _memory(group: list[Tenant], _: Requirements) -> tuple[Reason, str] | None:
    unknown = [t.name for t in group if t.memory_gib is None]
    if unknown:
        return "memory", f"memory use of {', '.join(sorted(unknown))} was not measured"
    need = sum((t.memory_gib or 0.0) + CONTEXT_GIB for t in group)
    room = _room(group)
    if need <= room:
        return None
    return (
        "memory",
        f"{len(group)} jobs need {need:.1f} GiB with contexts; {room:.1f} may be filled",
    )


def _host(group: list[Tenant], _: Requirements) -> tuple[Reason, str] | None:
    home = group[0].home
    if home is None or home.offer.gpu_count != 1:
        return None
    return crowded([t.profile for t in group], _vcpus(group), home.offer.ram_gib)


def _latency(group: list[Tenant], _: Requirements) -> tuple[Reason, str] | None:
    found = speeds(group)
    for one in sorted(group, key=lambda t: t.name):
        target, measured = one.profile.job.latency_slo_ms, one.latency_ms
        if target is None:
            continue
        if measured is None:
            return "latency", f"{one.name} has a target of {target:g} ms and no measured latency"
        worst = measured / found[one.name].low
        if worst > target:
            return (
                "latency",
                f"{one.name} would take up to {worst:.3g} ms; its target is {target:g}",
            )
    return None


def _unmeasured(group: list[Tenant], _: Requirements) -> tuple[Reason, str] | None:
    unknown = sorted(t.name for t in group if t.share is None)
    return ("slowdown", f"GPU use of {', '.join(unknown)} was not measured") if unknown else None


def _slowdown(group: list[Tenant], asked: Requirements) -> tuple[Reason, str] | None:
    total = sum(t.share or 0.0 for t in group)
    if total > BUSIEST:
        return (
            "slowdown",
            f"together they would keep the GPU {total:.0%} busy; {BUSIEST:.0%} is the limit",
        )
    slowest = min(s.mid for s in speeds(group).values())
    if slowest < 1.0 / asked.max_slowdown:
        return "slowdown", f"the slowest would run at {slowest:.2f} of its speed alone"
    return None


def _room(group: list[Tenant]) -> float:
    return USABLE * min(gpu_memory_gib(t.home.offer) for t in group if t.home)


def lower_bound(group: list[Tenant]) -> int:
    """Return a proven bound on the GPUs that one group needs.

    Jobs that may share with nobody count one GPU each; the others at least the sum of each
    resource, and no two that want over half of it fit together (Martello and Toth's L2 at 1/2).
    """
    solo = [t for t in group if t.memory_gib is None or t.share is None or _never_shares(t)]
    rest = [t for t in group if t not in solo]
    if not rest:
        return len(solo)
    room = _room(rest)
    # A job may fill its GPU beyond the sharing limits; alone it still needs one GPU only.
    shares = [min(1.0, (t.share or 0.0) / BUSIEST) for t in rest]
    memory = [min(1.0, ((t.memory_gib or 0.0) + CONTEXT_GIB) / room) for t in rest]
    sums = (math.ceil(sum(sizes) - 1e-9) for sizes in (shares, memory))
    too_large_for_two = (sum(size > 0.5 for size in sizes) for sizes in (shares, memory))  # noqa: PLR2004
    return len(solo) + max(*sums, *too_large_for_two)


def _never_shares(one: Tenant) -> bool:
    target, measured = one.profile.job.latency_slo_ms, one.latency_ms
    return target is not None and (measured is None or measured > target)
