"""Why an offer cannot run a job: each check yields a reason with its figures."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from planner.baseline.baseline import gpu_memory_gib
from planner.baseline.rejection import Reason
from planner.options.candidate import Candidate
from planner.options.context import JobContext, gpus_used, machines, same_machine
from planner.options.host_room import HostNeed, host_lacks, host_need, host_unknown
from planner.prediction.chip_needs import missing
from planner.profile.model import Profile
from planner.signals.signals import holds_in_advance, worst_latency_ms
from planner.signals.thresholds import NODE_NETWORK_GBPS
from pricing.catalog.offer import Offer
from pricing.catalog.regions import continent_of, regions_of
from pricing.hardware import gpus
from pricing.money import HOURS_PER_MONTH

USABLE = 0.95  # of a GPU's memory: the contract's headroom
BUSIEST = 0.9  # of a GPU's time: the contract's compute share
_FAST_LINKS = ("nvlink", "xgmi")


def refusals(offer: Offer, case: JobContext) -> Iterator[tuple[Reason, str]]:
    """Yield why the offer cannot run the job, the plainest reason first."""
    for check in (_who, _how_many, _region, _purchase, _capable, _fits, _carried, _connected):
        yield from check(offer, case)


def _who(offer: Offer, case: JobContext) -> Iterable[tuple[Reason, str]]:
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
    today = (
        case.baseline.offer.cpu_architecture if case.baseline.offer else case.gpu.host_architecture
    )
    if offer.cpu_architecture != today and not (named or "any-arch" in asked.include):
        yield (
            "capability",
            f"{offer.cpu_architecture} host, today {today}; --include any-arch offers it",
        )


def _how_many(offer: Offer, case: JobContext) -> Iterable[tuple[Reason, str]]:
    wanted, total = case.profile.gpu_count, gpus_used(offer, case)
    if case.asked.gpu_counts:
        least, most = case.asked.gpu_counts
        if not least <= total <= most:
            asked = f"{least}" if least == most else f"{least} to {most}"
            yield "gpu-count", f"{total} GPUs; {asked} asked for"
        return
    if total == wanted:
        return
    if not case.profile.job.kind.trains:
        rest = f"{total - wanted} would idle" if total > wanted else "too few"
        yield "gpu-count", f"{total} GPUs; the job uses {wanted}: {rest}"
    elif total > wanted and not _in_a_hurry(case):
        hurry = f"--objective time, --deadline or --gpus {total}"
        yield "gpu-count", f"{total} GPUs; the job uses {wanted}: more only cost more ({hurry})"


def _in_a_hurry(case: JobContext) -> bool:
    return case.asked.objective == "time" or case.asked.deadline_h is not None


def _region(offer: Offer, case: JobContext) -> Iterable[tuple[Reason, str]]:
    if case.there(offer) is not None:
        return
    asked, there = case.asked.regions, continent_of(offer)
    if asked:
        why = "not sold" if regions_of(offer) else "its region is not known, so not surely"
        yield "region", f"{why} in {', '.join(asked)}"
        return
    place = f"in {there}" if there else "in a place that is not known"
    stays = f"a service with a latency target stays in {case.stays_on}"
    yield "region", f"{place}; {stays} unless --region says otherwise"


def _purchase(offer: Offer, case: JobContext) -> Iterable[tuple[Reason, str]]:
    today = case.baseline.offer
    allowed = case.asked.purchases or ("on_demand", today.purchase if today else "on_demand")
    if offer.purchase not in allowed:
        yield "purchase", f"sold as {offer.purchase}; --purchase {offer.purchase} offers it"
    elif offer.purchase == "spot" and not case.profile.job.kind.has_fixed_work:
        yield "purchase", f"spot may be interrupted, and this job is {case.profile.job.kind}"


def _capable(offer: Offer, case: JobContext) -> Iterable[tuple[Reason, str]]:
    for lack in missing(case.profile, case.gpu, gpus()[offer.gpu]):
        yield "capability", lack


def _fits(offer: Offer, case: JobContext) -> Iterable[tuple[Reason, str]]:
    room, total = gpu_memory_gib(offer), gpus_used(offer, case)
    same = offer.gpu == case.gpu.name and total >= case.profile.gpu_count
    splits = case.profile.job.splits_the_model
    each = max(1.0, case.profile.gpu_count / total) if splits else 1.0  # shares that one GPU holds
    if case.memory_gib is None:
        today = (case.profile.hardware.gpu_memory_gib or case.gpu.memory_gib) * each
        if offer.gpu_memory_gib < today and (offer.gpu != case.gpu.name or each > 1.0):
            less = f"{offer.gpu_memory_gib:g} GiB, less than today's {today:g}"
            less += f" of the {each:g} GPUs that it would replace" if each > 1.0 else ""
            yield "memory", f"{less}; {_unseen_need(case)}, so nothing shows that it fits"
        return
    need = case.memory_gib * each
    if need > USABLE * room and not same:
        yield "memory", f"needs {need:.1f} GiB of {room:.1f}; {USABLE:.0%} may be filled"


def host_need_on(offer: Offer, case: JobContext) -> HostNeed:
    """Return what the job takes of the hosts of an offer.

    Training on fewer GPUs feeds and launches for fewer; a service has the same requests anywhere.
    """
    need = host_need(case.profile)
    if need.cores is None or not case.profile.job.kind.trains:
        return need
    share = min(1.0, gpus_used(offer, case) / case.profile.gpu_count)
    return replace(need, cores=need.cores * share)


def _carried(offer: Offer, case: JobContext) -> Iterable[tuple[Reason, str]]:
    count = machines(offer, case)
    if same_machine(offer, case):
        return
    lack = host_lacks(
        host_need_on(offer, case),
        None if offer.vcpus is None else offer.vcpus * count,
        None if offer.ram_gib is None else offer.ram_gib * count,
    )
    if lack is not None:
        yield lack


def unproven(offer: Offer, case: JobContext) -> str | None:
    """Return what the job needs of a host that the offer does not state; None otherwise.

    A machine that has as little as the least one sold with that GPU would do: then nothing is said.
    """
    if same_machine(offer, case):
        return None
    need, count, used = host_need_on(offer, case), machines(offer, case), gpus_used(offer, case)
    known = (offer.vcpus, offer.ram_gib)
    vcpus, ram_gib = (
        stated * count if stated else least and least * used
        for stated, least in zip(known, case.least_host(offer.gpu), strict=True)
    )
    if vcpus and ram_gib and host_lacks(need, vcpus, ram_gib) is None:
        return None
    return host_unknown(need, *known)


def _unseen_need(case: JobContext) -> str:
    if holds_in_advance(case.profile):
        return f"what {case.profile.job.framework} holds it took in advance, whatever it needs"
    return "memory use was not measured"


def _connected(offer: Offer, case: JobContext) -> Iterable[tuple[Reason, str]]:
    count, today = machines(offer, case), case.profile.hardware
    splits = case.profile.job.splits_a_step
    fast = today.interconnect in _FAST_LINKS or (
        today.interconnect is None and case.profile.gpu_count > 1 and "SXM" in case.gpu.name
    )
    if splits and fast and offer.gpu_count > 1 and offer.interconnect not in _FAST_LINKS:
        link = {None: "unknown links", "pcie": "PCIe"}.get(offer.interconnect, offer.interconnect)
        yield "interconnect", f"{link} between the GPUs; this job splits its model over NVLink"
    if count == 1 or same_machine(offer, case):
        return
    network = offer.network_gbps
    if network is None:
        yield "interconnect", f"{count} machines, and the network between them is not known"
    elif splits and network < min(NODE_NETWORK_GBPS, today.network_gbps or NODE_NETWORK_GBPS):
        yield (
            "interconnect",
            f"{network:g} Gbit/s between {count} machines; this job splits its model over them",
        )


def too_slow(draft: Candidate, case: JobContext) -> tuple[Reason, str] | None:
    """Return why a draft would be too slow for the job; None where it is not."""
    speed, profile = draft.speed, case.profile
    if case.work.fixed_work and not profile.job.kind.answers:
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
    elif target is not None and not same:
        return "latency", "there is a latency target and no measured latency to predict from"
    load = _load(profile)
    if load is not None and load / speed.mid > BUSIEST and not same:
        return (
            "slowdown",
            f"the GPU would be {load / speed.mid:.0%} busy; {BUSIEST:.0%} is the limit",
        )
    judged = latency is not None and target is not None
    if speed.mid < 1.0 / case.asked.max_slowdown and not same and not judged:
        flag = f"--max-slowdown {1.0 / speed.mid:.1f}"
        return "slowdown", f"runs at {speed.mid:.2f} of today's speed; {flag} allows it"
    return None


def _load(profile: Profile) -> float | None:
    """Return the share of time in which requests keep the GPU busy; None where not measured.

    Kernels of one job run one after another, so it is their time that a slower GPU stretches.
    """
    known = (profile.mean("util.kernel_time"), profile.mean("util.sm_active"))
    return max((share for share in known if share is not None), default=None)
