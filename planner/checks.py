"""Why an offer cannot run a job: each check yields a reason with its figures."""

from collections.abc import Iterable, Iterator

from planner.baseline import gpu_memory_gib
from planner.case import Case, gpus_used
from planner.draft import Draft
from planner.option import Reason
from planner.signals import worst_latency_ms
from pricing.hardware import gpus
from pricing.money import HOURS_PER_MONTH
from pricing.offer import Offer

USABLE = 0.95  # of a GPU's memory: the contract's headroom
BUSIEST = 0.9  # of a GPU's time: the contract's compute share
_INTERRUPTIBLE = ("training", "data_preparation", "inference_offline")
_SPLITS_A_MODEL = ("fsdp", "tensor", "pipeline", "expert", "mixed")
# Compute capability from which NVIDIA's GPUs have a format (CUDA programming guide).
_FIRST_CAPABILITY = {
    "amp-bf16": (8.0, "bf16"),
    "bf16": (8.0, "bf16"),
    "tf32": (8.0, "TF32"),
    "fp8": (8.9, "fp8"),
}


def refusals(offer: Offer, case: Case) -> Iterator[tuple[Reason, str]]:
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
    wanted, total = case.profile.gpu_count, gpus_used(offer, case)
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
    total = gpus_used(offer, case)
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


def too_slow(draft: Draft, case: Case) -> tuple[Reason, str] | None:
    """Return why a draft would be too slow for the job; None where it is not."""
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
