"""Every offer is either a draft of an option or a rejection with its reason."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property

from planner.baseline import gpu_memory_gib, over_limits, price
from planner.estimate import Estimate, divide
from planner.option import Baseline, Reason, Rejected
from planner.predict import Split, Target, predict_on, source_gpu
from planner.profile.model import Profile
from planner.remedies import ACTIONS, Action
from planner.requirements import Requirements
from planner.signals import memory_need_gib, worst_latency_ms
from planner.workload import Workload
from pricing.catalog import Catalog
from pricing.errors import InputError
from pricing.hardware import Gpu, gpus
from pricing.money import HOURS_PER_MONTH
from pricing.offer import EVERYWHERE, Offer
from pricing.quote import Quote

USABLE = 0.95  # of a GPU's memory: the contract's headroom
BUSIEST = 0.9  # of a GPU's time: the contract's compute share
_INTERRUPTIBLE = ("training", "data_preparation", "inference_offline")
_SPLITS_A_MODEL = ("fsdp", "tensor", "pipeline", "expert", "mixed")
GPUS_PER_NODE = 8
# Compute capability from which NVIDIA's GPUs have a format (CUDA programming guide).
_FIRST_CAPABILITY = {
    "amp-bf16": (8.0, "bf16"),
    "bf16": (8.0, "bf16"),
    "tf32": (8.0, "TF32"),
    "fp8": (8.9, "fp8"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An option that keeps every hard limit, before ranking."""

    offer: Offer
    count: int
    actions: tuple[str, ...]
    speed: Estimate
    hours: Estimate
    quote: Quote
    work: Workload

    def cost_at(self, hours: float, catalog: Catalog) -> Decimal:
        """Return the bill if it takes so many hours."""
        return price(self.offer, self.count, hours, self.work, catalog).exact


@dataclass(frozen=True, kw_only=True)
class Case:
    """All that the checks of one job need.

    Attributes:
        profile: what was measured.
        baseline: what runs today.
        work: the hours and data of the period.
        parts: where the time goes.
        fixes: safe actions with a known effect.
        idle_share: share of the time that ending the machine when idle may save; None where none.
        catalog: offers and rules of the day.
        asked: limits and wishes.
    """

    profile: Profile
    baseline: Baseline
    work: Workload
    parts: Split
    fixes: tuple[Action, ...]
    idle_share: float | None
    catalog: Catalog
    asked: Requirements
    _seen: dict[object, Estimate] = field(default_factory=dict, repr=False)

    @cached_property
    def gpu(self) -> Gpu:
        """The GPU that was profiled."""
        return source_gpu(self.profile)

    @cached_property
    def memory_gib(self) -> float | None:
        """The most memory that one GPU held."""
        return memory_need_gib(self.profile)

    def speed(self, target: Target, actions: tuple[Action, ...]) -> Estimate:
        """Return the predicted speed-up, computed once per kind of target."""
        key = (target, tuple(a.code for a in actions))
        if key not in self._seen:
            self._seen[key] = predict_on(self.profile, target, actions, self.parts)
        return self._seen[key]


def candidates(case: Case) -> tuple[tuple[Draft, ...], tuple[Rejected, ...]]:
    """Return the drafts that keep every limit, and one rejection per size and reason."""
    drafts: list[Draft] = []
    rejected: dict[tuple[str, str], Rejected] = {}
    for offer in _cheapest_region(case):
        made, refused = _consider(offer, case)
        drafts.extend(made)
        for refusal in () if made else refused:
            key = (refusal.offer, refusal.reason)
            if key not in rejected or refusal.excess < rejected[key].excess:
                rejected[key] = refusal
    names = {draft.offer.name for draft in drafts}
    kept = (r for r in rejected.values() if r.offer not in names)
    return tuple(drafts), tuple(sorted(kept, key=lambda r: (r.offer, r.reason)))


def _cheapest_region(case: Case) -> Iterator[Offer]:
    """Yield one offer per size and purchase: the cheapest region, today's region on a tie."""
    asked, today = case.asked, case.baseline.offer
    home = today.region if today else None
    groups: dict[tuple[str, str, str], list[Offer]] = defaultdict(list)
    for offer in case.catalog.offers:
        if asked.providers and offer.provider not in asked.providers:
            continue
        if asked.gpus and offer.gpu not in asked.gpus:
            continue
        groups[offer.provider, offer.instance_type, offer.purchase].append(offer)
    for key in sorted(groups):
        allowed = [o for o in groups[key] if not asked.regions or o.region in (*asked.regions, "*")]
        yield min(
            allowed or groups[key],
            key=lambda o: (o.usd_per_hour, o.region != home, o.region),
        )


def _consider(offer: Offer, case: Case) -> tuple[list[Draft], list[Rejected]]:
    refused = next(_refusals(offer, case), None)
    if refused is not None:
        reason, detail = refused
        return [], [Rejected(offer=offer.name, reason=reason, detail=detail)]
    made: list[Draft] = []
    over: list[Rejected] = []
    for actions in _action_sets(case):
        if not actions and _is_today(offer, case):
            continue  # that is o0
        try:
            draft = _draft(offer, case, actions)
        except InputError as error:  # specifications that a prediction needs are missing
            over.append(Rejected(offer=offer.name, reason="unknown-gpu", detail=error.problems[0]))
            continue
        problem = _too_slow(draft, case)
        if problem is not None:
            over.append(Rejected(offer=offer.name, reason=problem[0], detail=problem[1]))
            continue
        limits = over_limits(offer.name, draft.hours, _highest_cost(draft, case), case.asked)
        over.extend(limits)
        if not limits:
            made.append(draft)
    return made, over


def _highest_cost(draft: Draft, case: Case) -> Decimal | None:
    """Return the bill at the high end of the hours, where a budget asks for it."""
    if case.asked.budget_usd is None:
        return None
    return draft.cost_at(draft.hours.high, case.catalog)


def _is_today(offer: Offer, case: Case) -> bool:
    """Whether it is today's machine; one price in every region makes its region immaterial."""
    today = case.baseline.offer
    if today is None or _machines(offer, case) != case.baseline.count:
        return False
    same = (offer.name, offer.purchase) == (today.name, today.purchase)
    return offer == today or (
        same and today.region == EVERYWHERE and offer.usd_per_hour == today.usd_per_hour
    )


def _action_sets(case: Case) -> Iterator[tuple[Action, ...]]:
    """Yield the ways to run it: as it is, with the fixes, and ended when idle."""
    yield ()
    if case.fixes:
        yield case.fixes
    if case.idle_share and not case.work.fixed_work:
        yield (ACTIONS["idle-shutdown"],)


def _draft(offer: Offer, case: Case, actions: tuple[Action, ...]) -> Draft:
    count = _machines(offer, case)
    target = Target(
        gpu=gpus()[offer.gpu],
        gpu_count=_gpus_used(offer, case),
        cpu_cores=offer.vcpus * count if offer.vcpus else None,
        interconnect=offer.interconnect,
    )
    speed = case.speed(target, actions)
    hours = _hours(case, speed, actions)
    return Draft(
        offer=offer,
        count=count,
        actions=tuple(a.code for a in actions),
        speed=speed,
        hours=hours,
        quote=price(offer, count, hours.mid, case.work, case.catalog),
        work=case.work,
    )


def _hours(case: Case, speed: Estimate, actions: tuple[Action, ...]) -> Estimate:
    held = case.work.hours
    if case.work.fixed_work:
        return divide(held.mid, speed, speed.basis)
    if any(a.code == "idle-shutdown" for a in actions) and case.idle_share:
        # Pauses shorter than the shutdown's own delay save nothing, so the saving runs from none to
        # the whole idle share.
        return Estimate(
            low=held.mid * (1.0 - case.idle_share),
            mid=held.mid * (1.0 - case.idle_share / 2.0),
            high=held.mid,
            basis=f"idle at least {case.idle_share:.0%} of the time; none to all of it saved",
        )
    if case.profile.job.kind == "unknown":
        return Estimate(
            low=min(held.mid, held.mid / speed.high),
            mid=held.mid,
            high=max(held.mid, held.mid / speed.low),
            basis="the kind of job is unknown: held time, or the same work at the new speed",
            weak=speed.weak,
        )
    return Estimate(low=held.mid, mid=held.mid, high=held.mid, basis="held time stays")


def _machines(offer: Offer, case: Case) -> int:
    """Machines for a job that spans several: as many nodes as today, or whole large machines."""
    if _same_machine(offer, case):
        return case.baseline.count
    wanted, nodes = case.profile.gpu_count, case.profile.hardware.nodes or case.baseline.count
    if nodes > 1 and offer.gpu_count * nodes == wanted:
        return nodes
    whole = offer.gpu_count >= GPUS_PER_NODE and wanted % offer.gpu_count == 0
    return max(1, int(wanted // offer.gpu_count)) if whole else 1


def _gpus_used(offer: Offer, case: Case) -> int:
    """GPUs at work: all of them, but on today's machine those that the job uses."""
    if _same_machine(offer, case):
        return case.profile.gpu_count
    return round(offer.gpu_count) * _machines(offer, case)


def _same_machine(offer: Offer, case: Case) -> bool:
    today = case.baseline.offer
    return today is not None and offer.name == today.name


def _refusals(offer: Offer, case: Case) -> Iterator[tuple[Reason, str]]:
    """Yield why the offer cannot run the job, the plainest reason first."""
    for check in (_who, _how_many, _region, _purchase, _capable, _fits, _connected):
        yield from check(offer, case)


def _who(offer: Offer, case: Case) -> Iterable[tuple[Reason, str]]:
    asked, gpu = case.asked, gpus().get(offer.gpu)
    named = offer.gpu in asked.gpus
    if gpu is None or gpu.memory_bandwidth_gb_s is None:
        yield "unknown-gpu", f"the specifications of {offer.gpu} are not known"
        return
    if offer.gpu_count < 1:
        yield "capability", f"a slice of {offer.gpu_count:g} GPU: needs a check of what it can do"
    if offer.is_community and not (
        "community" in asked.include or offer.provider in asked.providers
    ):
        yield "unavailable", "a community host; --include community offers it"
    if gpu.vendor != case.gpu.vendor and not (named or "any-vendor" in asked.include):
        yield "capability", f"{gpu.vendor}, today {case.gpu.vendor}; --include any-vendor offers it"
    today = case.baseline.offer.cpu_architecture if case.baseline.offer else "x86_64"
    if offer.cpu_architecture != today and not (named or "any-arch" in asked.include):
        yield (
            "capability",
            f"{offer.cpu_architecture} host, today {today}; --include any-arch offers it",
        )


def _how_many(offer: Offer, case: Case) -> Iterable[tuple[Reason, str]]:
    wanted, total = case.profile.gpu_count, _gpus_used(offer, case)
    if case.asked.gpu_counts:
        least, most = case.asked.gpu_counts
        if not least <= total <= most:
            asked = f"{least}" if least == most else f"{least} to {most}"
            yield "gpu-count", f"{total} GPUs; {asked} asked for"
        return
    if total == wanted:
        return
    if case.profile.job.kind != "training":
        rest = f"{total - wanted} would idle" if total > wanted else "too few"
        yield "gpu-count", f"{total} GPUs; the job uses {wanted}: {rest}"
    elif total > wanted and not _in_a_hurry(case):
        hurry = f"--objective time, --deadline or --gpus {total}"
        yield "gpu-count", f"{total} GPUs; the job uses {wanted}: more only cost more ({hurry})"


def _in_a_hurry(case: Case) -> bool:
    return case.asked.objective == "time" or case.asked.deadline_h is not None


def _region(offer: Offer, case: Case) -> Iterable[tuple[Reason, str]]:
    if case.asked.regions and offer.region not in (*case.asked.regions, "*"):
        yield "region", f"not sold in {', '.join(case.asked.regions)}"


def _purchase(offer: Offer, case: Case) -> Iterable[tuple[Reason, str]]:
    today = case.baseline.offer
    allowed = case.asked.purchases or ("on_demand", today.purchase if today else "on_demand")
    if offer.purchase not in allowed:
        yield "purchase", f"sold as {offer.purchase}; --purchase {offer.purchase} offers it"
    elif offer.purchase == "spot" and case.profile.job.kind not in _INTERRUPTIBLE:
        yield "purchase", f"spot may be interrupted, and this job is {case.profile.job.kind}"


def _capable(offer: Offer, case: Case) -> Iterable[tuple[Reason, str]]:
    gpu, precision = gpus()[offer.gpu], case.profile.job.precision
    first, format_ = _FIRST_CAPABILITY.get(precision or "", (0.0, ""))
    if gpu.compute_capability and float(gpu.compute_capability) < first:
        yield "capability", f"{gpu.name} has no {format_}; compute capability {first:g} has"


def _fits(offer: Offer, case: Case) -> Iterable[tuple[Reason, str]]:
    room = gpu_memory_gib(offer)
    if case.memory_gib is None:
        today = case.profile.hardware.gpu_memory_gib or case.gpu.memory_gib
        if offer.gpu_memory_gib < today and offer.gpu != case.gpu.name:
            less = f"{offer.gpu_memory_gib:g} GiB, less than today's {today:g}"
            yield "memory", f"{less}; memory use was not measured, so nothing shows that it fits"
        return
    need = case.memory_gib
    total = _gpus_used(offer, case)
    if case.profile.job.parallelism in _SPLITS_A_MODEL and total < case.profile.gpu_count:
        need *= case.profile.gpu_count / total
    same = offer.gpu == case.gpu.name and total >= case.profile.gpu_count
    if need > USABLE * room and not same:
        yield "memory", f"needs {need:.1f} GiB of {room:.1f}; {USABLE:.0%} may be filled"


def _connected(offer: Offer, case: Case) -> Iterable[tuple[Reason, str]]:
    splits = case.profile.job.parallelism in ("tensor", "fsdp", "expert")
    fast = case.profile.hardware.interconnect in ("nvlink", "xgmi")
    if splits and fast and offer.gpu_count > 1 and offer.interconnect == "pcie":
        yield "interconnect", "PCIe between the GPUs; this job splits its model over NVLink"


def _too_slow(draft: Draft, case: Case) -> tuple[Reason, str] | None:
    speed, profile = draft.speed, case.profile
    if case.work.fixed_work and profile.job.kind != "inference_online":
        month = case.work.storage_h is not None
        if month and draft.hours.mid > max(float(HOURS_PER_MONTH), case.work.hours.mid):
            return "deadline", f"{draft.hours.mid:,.0f} h of work a month; a month has 730"
        return None
    latency, target = worst_latency_ms(profile), profile.job.latency_slo_ms
    same = draft.offer.gpu == case.gpu.name
    if latency is not None and target is not None:
        worst = latency / speed.low
        if worst > target and not same:
            return "latency", f"up to {worst:.0f} ms; the target is {target:g} ms"
        return None
    if target is not None and not same:
        return "latency", "there is a latency target and no measured latency to predict from"
    busy = profile.mean("util.sm_active") or profile.mean("util.kernel_time")
    if busy is not None and busy / speed.mid > BUSIEST and not same:
        return (
            "slowdown",
            f"the GPU would be {busy / speed.mid:.0%} busy; {BUSIEST:.0%} is the limit",
        )
    if speed.mid < 1.0 / case.asked.max_slowdown and not same:
        flag = f"--max-slowdown {1.0 / speed.mid:.1f}"
        return "slowdown", f"runs at {speed.mid:.2f} of today's speed; {flag} allows it"
    return None
