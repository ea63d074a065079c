"""Why an offer cannot run a job: each check yields a reason with its figures."""

import math

from planner.choice.baseline import gpu_memory_gib
from planner.choice.candidate import Candidate
from planner.choice.context import HostNeed, JobContext, host_lacks, host_unknown
from planner.choice.offers import OnSale
from planner.choice.requirements import Reason, Rejected
from planner.prediction.layout import GPUS_PER_NODE
from planner.prediction.sharing import processes_on
from planner.profile.kinds import GPU_OUT_OF_MEMORY
from planner.profile.model import Profile
from planner.serving.measured_service import MeasuredService
from planner.signals.signals import holds_in_advance
from planner.signals.thresholds import BUSIEST, NODE_NETWORK_GBPS, USABLE
from pricing.catalog.offer import BOUGHT, Offer
from pricing.catalog.regions import continent_of, regions_of
from pricing.message import Message
from pricing.money import HOURS_PER_MONTH

_NOT_SOLD = frozenset(("rent.retired", "rent.network"))
"""Why nobody could rent it; the other reasons are to be asked about: listed, never recommended."""
Why = tuple[Reason, str]

FAST_LINKS = ("nvlink", "xgmi")
_HOURS_PER_MONTH = float(HOURS_PER_MONTH)


def refusal(size: OnSale, context: JobContext) -> Rejected | None:
    """Return why the offer cannot run the job, the plainest reason first; None where it can."""
    for check in _CHECKS:
        refused = check(size, context)
        if refused is not None:
            return Rejected(offer=size.offer.name, reason=refused[0], detail=refused[1])
    return None


def _who(size: OnSale, context: JobContext) -> Why | None:
    offer, limits, gpu = size.offer, context.asked, size.offer.card
    unrated = (card for card in (gpu, context.gpu) if card.memory_bandwidth_gb_s is None)
    if gpu.name != context.gpu.name and (card := next(unrated, None)) is not None:
        return "unknown-gpu", Message("no.specifications", gpu=card.name)
    if offer.gpu_count < 1:
        return "capability", Message("no.slice", n=offer.gpu_count)
    is_today, named = size.today, offer.gpu in limits.gpus
    sale = None if is_today else offer.not_for_rent_reason(context.catalog.as_of)
    if sale and sale.code in _NOT_SOLD:
        return "unavailable", sale
    if offer.is_community and not (
        "community" in limits.include or offer.provider in limits.providers
    ):
        return "unavailable", Message("no.community")
    minimum = 1 if is_today else offer.minimum_gpus
    if minimum > 1:
        ordered = offer.gpu_count * size.machines * context.work.replicas
        if ordered < minimum:
            return "unavailable", Message("no.minimum", least=minimum, n=ordered)
    if gpu.vendor != context.gpu.vendor and not (named or "any-vendor" in limits.include):
        vendor = context.gpu.vendor
        return "capability", Message("no.vendor", vendor=gpu.vendor, today=vendor)
    today = context.cpu_architecture
    if gpu.host_architecture != today and not (named or "any-arch" in limits.include):
        arch = gpu.host_architecture
        return "capability", Message("no.architecture", arch=arch, today=today)
    return None


def _how_many(size: OnSale, context: JobContext) -> Why | None:
    needed, total = context.profile.gpu_count, size.used
    if context.asked.gpu_counts:
        low, high = context.asked.gpu_counts
        if low <= total <= high:
            return None
        code = "no.gpus-asked" if low == high else "no.gpus-asked-range"
        return "gpu-count", Message(code, n=total, least=low, most=high)
    if total in {needed, *context.fewer_gpus} or _cut_anew(size, context):
        return None
    if not context.profile.job.kind.trains:
        if total < needed and may_run_together(size.offer, total, context):
            return None
        code = "no.gpus-idle" if total > needed else "no.gpus-too-few"
        return "gpu-count", Message(code, n=total, used=needed, idle=total - needed)
    if total > needed and context.asked.objective != "time" and context.asked.deadline_h is None:
        return "gpu-count", Message("no.gpus-too-many", n=total, used=needed)
    return None


def is_split_server(context: JobContext) -> bool:
    """Return whether the job is a server of a language model that is split over its GPUs."""
    return context.work.service is not None and context.profile.job.splits_the_model


def _cut_anew(size: OnSale, context: JobContext) -> bool:
    """Return whether a server of a language model is split over another number of GPUs.

    Memory, bandwidth and the targets count, not the GPUs; more of them only for a missed target.
    """
    fewer = size.used < context.profile.gpu_count or context.baseline.must_change
    return (
        is_split_server(context) and fewer and size.machines == 1 and GPUS_PER_NODE % size.used == 0
    )


def may_run_together(offer: Offer, gpu_count: int, context: JobContext) -> bool:
    """Return whether fewer of today's GPUs have room for the processes of all of them."""
    is_same = offer.gpu == context.gpu.name
    return is_same and processes_on(context.profile, gpu_count) > 1


def _region(size: OnSale, context: JobContext) -> Why | None:
    if context.there(size.offer) is not None:
        return None
    regions, area = context.asked.regions, context.stays_on or ""
    if regions:
        code = "no.not-sold" if regions_of(size.offer) else "no.region-unknown"
        return "region", Message(code, regions=regions)
    if continent := continent_of(size.offer):
        return "region", Message("no.too-far", place=continent, area=area)
    return "region", Message("no.place-unknown", area=area)


def _purchase(size: OnSale, context: JobContext) -> Why | None:
    purchase, today = size.offer.purchase, context.baseline.offer
    allowed = context.asked.purchases or ("on_demand", today.purchase if today else "on_demand")
    if purchase not in allowed:
        return "purchase", Message("no.purchase", purchase=purchase)
    if purchase == "spot" and not context.profile.job.kind.has_fixed_work:
        return "purchase", Message("no.spot", kind=str(context.profile.job.kind))
    return None


def _takes(size: OnSale, context: JobContext) -> Why | None:
    """Return why the GPUs cannot run the job."""
    lack = context.lacks(size.offer.card)
    return ("capability", lack) if lack else _fits(size, context)


def _fits(size: OnSale, context: JobContext) -> Why | None:
    offer, total = size.offer, size.used
    if offer.gpu == context.gpu.name and total in context.fewer_gpus:
        return None  # it ran on them
    room, each = gpu_memory_gib(offer), shares_held(context.profile, total)
    hardware, nominal_gib = context.profile.hardware, context.gpu.memory_gib
    today = (hardware.gpu_memory_gib or nominal_gib) * each
    if (context.profile.job.ended or "").startswith(GPU_OUT_OF_MEMORY) and not size.today:
        # A driver tells 22 of the 24 GiB that another card of that size is sold with.
        full = today if hardware.slice else max(today, nominal_gib * each)
        if room <= full:
            return "memory", Message("no.memory-ran-out", room=room, today=full)
    if context.memory_gib is None and context.work.service is not None:
        service = context.work.service
        limit = service.limit_on(service.layout_on(offer, total))
        if limit is not None and limit.stopped_by == "memory":
            return "memory", Message("no.weights")
        return None
    if context.memory_gib is None:
        if offer.gpu_memory_gib < today and (offer.gpu != context.gpu.name or each > 1.0):
            code = "no.less-memory-in-all" if each > 1.0 else "no.less-memory"
            gib, why = offer.gpu_memory_gib, _unseen_need(context)
            return "memory", Message(code, gib=gib, now=today, n=each, why=why)
        return None
    if holds(offer, total, context.profile, context.gpu.name, context.memory_gib):
        return None
    need = context.memory_gib * each
    return "memory", Message("no.memory", need=need, room=room, share=USABLE)


def shares_held(profile: Profile, gpu_count: int) -> float:
    """Return how many of today's shares of a split model, or processes, each GPU would hold."""
    ratio = profile.gpu_count / gpu_count if profile.job.splits_the_model else 1.0
    return max(ratio, processes_on(profile, gpu_count))


def holds(offer: Offer, gpus: int, profile: Profile, model: str | None, need_gib: float) -> bool:
    """Return whether GPUs of an offer hold what each GPU of a job was seen to need.

    Args:
        offer: with the GPUs.
        gpus: of them that work, over all machines.
        profile: of the job.
        model: of its GPUs today, which hold it at that number; None: not known.
        need_gib: of one of those.
    """
    if offer.gpu == model and gpus >= profile.gpu_count:
        return True
    return need_gib * shares_held(profile, gpus) <= USABLE * gpu_memory_gib(offer)


def _host_need_on(gpus_at_work: int, context: JobContext) -> HostNeed:
    """Return what the job takes of the hosts of so many GPUs.

    Training on fewer GPUs feeds and launches for fewer; a service has the same requests anywhere.
    """
    need, today = context.host, context.profile.gpu_count
    if need.cores is None or gpus_at_work >= today or not context.profile.job.kind.trains:
        return need
    share = gpus_at_work / today
    return HostNeed(cores=need.cores * share, ram_gib=need.ram_gib)


def _carried(size: OnSale, context: JobContext) -> Why | None:
    if size.today or not context.host.is_known:
        return None
    offer, count = size.offer, size.machines
    return host_lacks(
        _host_need_on(size.used, context),
        None if offer.vcpus is None else offer.vcpus * count,
        None if offer.ram_gib is None else offer.ram_gib * count,
    )


def unproven(size: OnSale, context: JobContext) -> str | None:
    """Return what only the seller can say of an offer, or what it states too little of for the job.

    A machine that has as little as the least one sold with that GPU would do: then nothing is said.
    """
    if size.today:
        return None
    offer = size.offer
    sale = offer.not_for_rent_reason(context.catalog.as_of)
    if sale is None and offer.network_gbps is None and _exchange(size, context):
        return Message("rent.network-unknown")
    if sale is not None or not context.host.is_known:
        return sale
    if offer.vcpus and offer.ram_gib:
        return None
    need = _host_need_on(size.used, context)
    vcpus, ram_gib = (
        stated * size.machines if stated else minimum and minimum * size.used
        for stated, minimum in zip(
            (offer.vcpus, offer.ram_gib),
            context.catalog.least_host.get(offer.gpu, (None, None)),
            strict=True,
        )
    )
    if vcpus and ram_gib and host_lacks(need, vcpus, ram_gib) is None:
        return None
    return host_unknown(need, offer.vcpus, offer.ram_gib)


def _unseen_need(context: JobContext) -> str:
    if holds_in_advance(context.profile):
        return Message("no.held-in-advance", framework=context.profile.job.framework or "")
    return Message("no.memory-unmeasured")


def _exchange(size: OnSale, context: JobContext) -> bool:
    """Return whether several machines work on the same, over a network that is not today's."""
    return size.machines > 1 and not size.today and not context.profile.works_apart


def _connected(size: OnSale, context: JobContext) -> Why | None:
    offer, count, today = size.offer, size.machines, context.profile.hardware
    splits = context.profile.job.splits_a_step
    fast = today.interconnect in FAST_LINKS or (
        today.interconnect is None and context.profile.gpu_count > 1 and "SXM" in context.gpu.name
    )
    if splits and fast and offer.gpu_count > 1 and offer.interconnect not in FAST_LINKS:
        link = {"pcie": "PCIe"}.get(offer.interconnect or "", offer.interconnect)
        return "interconnect", Message("no.nvlink", link=link or Message("no.links-unknown"))
    network = offer.network_gbps if _exchange(size, context) else None
    if network is None:  # what is not known is to be asked: `unproven`
        return None
    if splits and network < min(NODE_NETWORK_GBPS, today.network_gbps or NODE_NETWORK_GBPS):
        return "interconnect", Message("no.network-slow", gbit=network, n=count)
    return None


def _started(size: OnSale, context: JobContext) -> Why | None:
    limits, offer = context.asked, size.offer
    if limits.launchable_only and not limits.can_launch(offer):
        return "unavailable", Message("no.launch", why=_why_not(offer))
    return None


_CHECKS = (_who, _how_many, _region, _purchase, _takes, _carried, _connected, _started)


def _why_not(offer: Offer) -> str:
    if offer.purchase not in BOUGHT:
        return Message("no.bought-elsewhere", purchase=offer.purchase)
    if offer.contract_only:
        return Message("no.contract")
    return Message("no.launches", provider=offer.provider)


def too_slow(candidate: Candidate, context: JobContext) -> tuple[Reason, str] | None:
    """Return why a candidate would be too slow for the job, or too far; None where it is not."""
    return _too_far(candidate, context) or _too_slow(candidate, context)


def _too_far(candidate: Candidate, context: JobContext) -> tuple[Reason, str] | None:
    """Return why the target is missed with the longer way from its users; None where it is not."""
    latency, target = context.latency_ms, context.profile.job.latency_slo_ms
    far_ms = context.farther_ms(candidate.offer)
    if not far_ms or latency is None or target is None:
        return None
    scaled = candidate.scaling.latency_ms if candidate.scaling else None
    total_ms = far_ms + (scaled or latency / candidate.speed.low)
    if total_ms <= target:
        return None
    users = context.users_in
    if math.isinf(far_ms):
        return "latency", Message("no.far-unknown", users=users)
    return "latency", Message("no.far", ms=total_ms, far=far_ms, users=users, target=target)


def _too_slow(candidate: Candidate, context: JobContext) -> tuple[Reason, str] | None:
    speed, work = candidate.speed, context.work
    if work.fixed_work and not context.profile.job.kind.answers:
        month = work.storage_h is not None
        if month and candidate.hours_mid > max(_HOURS_PER_MONTH, work.hours.mid):
            return "deadline", Message("no.month-too-short", hours=candidate.hours_mid)
        return None
    latency, target = context.latency_ms, context.profile.job.latency_slo_ms
    same = candidate.offer.gpu == context.gpu.name
    as_now = same and candidate.size.used == context.profile.gpu_count
    if candidate.scaling is not None and (context.work.service or latency is not None):
        return None  # as many as keep the target
    if context.work.service is not None and not as_now:
        return _overloaded(candidate, context.work.service)
    if latency is not None and target is not None:
        worst = latency / speed.low
        if worst > target and (not same or context.profile.job.misses_target):
            return "latency", Message("no.latency", ms=worst, target=target)
    elif target is not None and not same:
        return "latency", Message("no.latency-unmeasured")
    busy = context.load
    if busy is not None and busy / speed.mid > BUSIEST and not same and candidate.scaling is None:
        return ("slowdown", Message("no.busy", share=busy / speed.mid, limit=BUSIEST))
    judged = latency is not None and target is not None
    if speed.mid < 1.0 / context.asked.max_slowdown and not same and not judged:
        return "slowdown", Message("no.slow", speed=speed.mid, slowdown=1.0 / speed.mid)
    return None


def _overloaded(candidate: Candidate, service: MeasuredService) -> tuple[Reason, str] | None:
    """Return why as many copies of a language model as today would not keep its targets."""
    limit = service.limit_on(service.layout_on(candidate.offer, candidate.size.used))
    if limit is None or limit.rate >= service.rate:
        return None
    stop, rate = limit.stopped_by, service.rate
    return "latency", Message("no.overloaded", rate=limit.rate, limit=stop, wanted=rate)
