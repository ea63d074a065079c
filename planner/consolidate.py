"""How few GPUs are enough: several jobs of one machine type share its GPU (MPS).

First fit by decreasing size, several orders tried, against a proven lower bound. A job joins a GPU
only when memory, compute share, slowdown and latency all hold for everyone there; else the reason
is kept.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from planner.baseline import gpu_memory_gib
from planner.checks import BUSIEST, USABLE
from planner.estimate import Estimate, exactly
from planner.option import Baseline, Reason
from planner.profile.model import Profile
from planner.requirements import Requirements
from planner.sharing import compute_share, shared_speed
from planner.signals import memory_need_gib, worst_latency_ms
from pricing.offer import Offer

_DATA = ("disk", "egress")
CONTEXT_GIB = 0.6  # per process on a shared GPU: the contract's allowance


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmoved:
    """A job that could not join an earlier GPU, and why."""

    job: str
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One GPU after consolidation.

    Attributes:
        id: 1, 2 ... unique within the fleet.
        offer: the machine.
        gpu: index of the GPU in it.
        mode: `mps` when shared, None for a job alone.
        jobs: who runs there.
        speed: relative speed of each job, 1.0 = alone.
        cost: dollars of the period: the longest of the jobs' baseline hours.
    """

    id: int
    offer: Offer
    gpu: int
    mode: str | None
    jobs: tuple[str, ...]
    speed: dict[str, Estimate]
    cost: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The jobs packed on fewer GPUs of the same machine type.

    Attributes:
        gpus_before: GPUs held now.
        gpus_after: GPUs after packing.
        gpus_lower_bound: proven: no packing under these limits needs fewer.
        cost_before: today's bill of all jobs with a known price.
        cost_after: the bill after packing.
        placements: who runs where; jobs with several GPUs are not among them.
        unmoved: who could not join an earlier GPU.
    """

    gpus_before: int
    gpus_after: int
    gpus_lower_bound: int
    cost_before: Decimal
    cost_after: Decimal
    placements: tuple[Placement, ...]
    unmoved: tuple[Unmoved, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """One job as the packing sees it: its share of a GPU's time, its memory, its targets."""

    profile: Profile
    baseline: Baseline
    share: float | None
    memory_gib: float | None

    @property
    def name(self) -> str:
        """The job's name."""
        return self.profile.job.name


def tenant(profile: Profile, baseline: Baseline) -> Tenant:
    """Return the job as the packing sees it; SM activity counts before kernel time."""
    return Tenant(
        profile=profile,
        baseline=baseline,
        share=compute_share(profile),
        memory_gib=memory_need_gib(profile),
    )


def _speeds(group: list[Tenant]) -> dict[str, Estimate]:
    speeds = shared_speed([one.profile for one in group])
    return {one.name: speed for one, speed in zip(group, speeds, strict=True)}


def consolidate(jobs: Iterable[tuple[Profile, Baseline]], asked: Requirements) -> Fleet:
    """Return the fleet on fewer GPUs, each job on the machine type that it has today."""
    tenants = [tenant(profile, baseline) for profile, baseline in jobs]
    bins: list[list[Tenant]] = []
    unmoved: list[Unmoved] = []
    bound = 0
    for group in _by_machine(tenants):
        packed, refused = _pack(group, asked)
        bins.extend(packed)
        unmoved.extend(refused)
        bound += _lower_bound(group)
    alone = [t for t in tenants if _alone(t) is not None]
    unmoved.extend(reason for t in alone if (reason := _alone(t)) is not None)
    held = sum(t.profile.gpu_count for t in alone)
    placements = tuple(_place(number, group) for number, group in enumerate(bins, start=1))
    kept = sum((t.baseline.cost or Decimal(0) for t in alone), Decimal(0))
    return Fleet(
        gpus_before=sum(t.profile.gpu_count for t in tenants),
        gpus_after=len(bins) + held,
        gpus_lower_bound=bound + held,
        cost_before=sum((t.baseline.cost or Decimal(0) for t in tenants), Decimal(0)),
        cost_after=sum((p.cost for p in placements), kept),
        placements=placements,
        unmoved=tuple(sorted(unmoved, key=lambda u: u.job)),
    )


def _alone(one: Tenant) -> Unmoved | None:
    """Return why a job takes no part in packing at all."""
    offer, job = one.baseline.offer, one.profile.job
    reasons: tuple[tuple[bool, Reason, str], ...] = (
        (offer is None, "unavailable", "no price is known for its machine"),
        (
            one.profile.gpu_count > 1 or (offer is not None and offer.gpu_count != 1),
            "gpu-count",
            "it does not hold exactly one whole GPU",
        ),
        (job.trust == "isolated", "capability", "it must be isolated; only MIG would do"),
    )
    found = next(((reason, detail) for holds, reason, detail in reasons if holds), None)
    return Unmoved(job=one.name, reason=found[0], detail=found[1]) if found else None


def _by_machine(tenants: list[Tenant]) -> list[list[Tenant]]:
    groups: dict[tuple[str, str, str, str], list[Tenant]] = defaultdict(list)
    for one in tenants:
        offer = one.baseline.offer
        if offer is not None and _alone(one) is None:
            groups[offer.provider, offer.instance_type, offer.region, offer.purchase].append(one)
    return [groups[key] for key in sorted(groups)]


_Order = Callable[[Tenant], tuple[float, str]]
_ORDERS: tuple[_Order, ...] = (
    lambda t: (-(t.memory_gib or 0.0), t.name),
    lambda t: (-(t.share or 0.0), t.name),
    lambda t: (-max(t.share or 0.0, (t.memory_gib or 0.0) / 80.0), t.name),
)


def _pack(group: list[Tenant], asked: Requirements) -> tuple[list[list[Tenant]], list[Unmoved]]:
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
    checks = (_memory, _unmeasured, _latency, _slowdown)
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


def _latency(group: list[Tenant], _: Requirements) -> tuple[Reason, str] | None:
    speeds = _speeds(group)
    for one in sorted(group, key=lambda t: t.name):
        target, measured = one.profile.job.latency_slo_ms, worst_latency_ms(one.profile)
        if target is None:
            continue
        if measured is None:
            return "latency", f"{one.name} has a target of {target:g} ms and no measured latency"
        worst = measured / speeds[one.name].low
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
    slowest = min(s.mid for s in _speeds(group).values())
    if slowest < 1.0 / asked.max_slowdown:
        return "slowdown", f"the slowest would run at {slowest:.2f} of its speed alone"
    return None


def _room(group: list[Tenant]) -> float:
    offers = [t.baseline.offer for t in group if t.baseline.offer is not None]
    return USABLE * min(gpu_memory_gib(offer) for offer in offers)


def _lower_bound(group: list[Tenant]) -> int:
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
    target, measured = one.profile.job.latency_slo_ms, worst_latency_ms(one.profile)
    return target is not None and (measured is None or measured > target)


def _data_cost(one: Tenant) -> Decimal:
    """Return what the job's own traffic and storage cost; sharing a GPU does not save them."""
    lines = one.baseline.quote.lines if one.baseline.quote else ()
    return sum((line.usd for line in lines if line.what in _DATA), Decimal(0))


def _place(number: int, group: list[Tenant]) -> Placement:
    longest = max(group, key=lambda t: (t.baseline.hours.mid, t.name))
    offer = longest.baseline.offer
    if offer is None:
        raise ValueError("only jobs with a priced machine are packed")
    return Placement(
        id=number,
        offer=offer,
        gpu=0,
        mode="mps" if len(group) > 1 else None,
        jobs=tuple(sorted(t.name for t in group)),
        speed=_speeds(group) if len(group) > 1 else {group[0].name: exactly(1.0, "alone")},
        cost=sum(
            (_data_cost(t) for t in group if t is not longest), longest.baseline.cost or Decimal(0)
        ),
    )
