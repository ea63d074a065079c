"""What measurement, machine and clock forbid, said anew from the raw fields: the oracle of tests.

It shares no code with planner/prediction/bounds.py and planner/choice/feasibility.py, so a mistake
there is seen here.
"""

from collections.abc import Iterator

from planner.models.estimate import Estimate
from planner.prediction.layout import Layout
from planner.profile.model import Profile
from pricing.catalog.offer import Offer
from pricing.hardware import Gpu, gpus

_NEAR = 1.0 + 1e-6
_FEED = 1.2
_FASTEST = {
    "fp64": ("fp64_tflops",),
    "fp32": ("fp32_tflops", "tf32_tflops"),
    "tf32": ("fp32_tflops", "tf32_tflops"),
    "fp8": ("fp8_tflops", "fp16_tflops"),
    "fp4": ("fp4_tflops", "fp8_tflops", "fp16_tflops"),
    "int8": ("int8_tops", "fp16_tflops"),
    "int4": ("fp16_tflops", "fp32_tflops"),  # weights of four bits, products of sixteen
}
_HALF = ("fp16_tflops", "bf16_tflops", "fp32_tflops")


def _fastest(gpu: Gpu, precision: str | None) -> float:
    """The most that the chip does in a precision, TFLOP/s; of any of them where none is named."""
    names = _FASTEST.get(precision or "", _HALF)
    if precision is None:
        names = ("fp32_tflops", "tf32_tflops", *_HALF)
    return max(rate for rate in (getattr(gpu, name) for name in names) if rate)


def promised_too_much(
    profile: Profile, target: Layout, found: Estimate, alone: Estimate
) -> Iterator[str]:
    """Yield what a speed-up without actions breaks; `alone` is one target GPU over one profiled."""
    source = gpus()[profile.hardware.gpu or ""]
    ratio = target.gpu_count / profile.gpu_count
    step, host, cores = profile.step, profile.host, profile.hardware.cpu_cores
    known = (profile.mean("util.kernel_time"), profile.mean("util.sm_active"))
    busy = min((share for share in known if share is not None), default=1.0)
    waits = busy < 1.0 or _waits(profile)
    if step is not None and step.mean_s and step.comm_s is not None and profile.gpu_count > 1:
        most = step.mean_s / (step.mean_s - step.comm_s) * ratio
        # Waiting for data may shrink with more cores a GPU: the law is proportional at most, and
        # known to a fifth.
        more = target.cpu_cores / cores / ratio if target.cpu_cores and cores else 1.0
        fed = _FEED * max(1.0, more)
        gain = max(alone.high, 1.0, fed) if waits else alone.high
        if found.high > most * gain * _NEAR:
            yield f"more than all communication gone: {found.high} > {most} x {gain}"
        if not waits and found.mid > most * alone.mid * _NEAR:
            yield f"the middle beyond all communication gone: {found.mid} > {most} x {alone.mid}"
    # In fewer machines they may be: the network between machines may cost more than GPUs do.
    in_fewer = (target.nodes or 1) < (profile.hardware.nodes or 1)
    is_like = source.name == target.chip.name and not in_fewer
    if ratio < 1.0 and is_like and found.high > _NEAR:
        yield f"fewer GPUs are faster: {found.high}"
    if host and host.cpu_util and host.cpu_util.mean and cores and target.cpu_cores:
        most = target.cpu_cores / (host.cpu_util.mean * cores)
        if found.high > most * _NEAR:
            yield f"more work than the host's cores do: {found.high} > {most}"
    yield from _beyond_the_chip(profile, source, target, found)


def _waits(profile: Profile) -> bool:
    """Whether a step has time that neither computing nor communication takes."""
    step = profile.step
    if step is None or not step.mean_s:
        return False
    timed = step.compute_s is not None and step.comm_s is not None
    rest = step.mean_s - (step.compute_s or 0.0) - (step.comm_s or 0.0)
    return bool(step.data_wait_s) or (timed and rest > 0.0)


def _beyond_the_chip(
    profile: Profile, source: Gpu, target: Layout, found: Estimate
) -> Iterator[str]:
    job, work = profile.job, profile.work
    tokens = work is not None and work.unit in ("token", "tokens")
    if work and tokens and job.parameters and work.rate_per_s and job.parallelism != "expert":
        needed = (6 if job.kind == "training" else 2) * job.parameters * work.rate_per_s / 1e12
        here = needed / (_fastest(source, job.precision) * profile.gpu_count)
        there = needed * found.high / (_fastest(target.chip, job.precision) * target.gpu_count)
        # A measurement beyond the limit is wrong; then nothing may look better than it.
        if there > max(0.75, here) * _NEAR:
            yield f"model-FLOP utilisation {there:.2f}, measured {here:.2f}"
        if here > _NEAR and not found.weak:
            yield f"a rate beyond the peak ({here:.2f}) is not called wrong"
    moved = profile.mean("util.dram_active")
    if moved and source.memory_bandwidth_gb_s and target.chip.memory_bandwidth_gb_s:
        there = moved * source.memory_bandwidth_gb_s * profile.gpu_count * found.high
        if there > target.chip.memory_bandwidth_gb_s * target.gpu_count * _NEAR:
            yield "more bytes than the memory's bandwidth"


def cannot_carry(  # noqa: PLR0913 - a draw
    profile: Profile, offer: Offer, count: int, gpu_count: int, speed: Estimate, *, asks: bool
) -> Iterator[str]:
    """Yield what the machines of an offer lack for a job that is to move there.

    A network that nobody knows is no lack where the plan asks about it first.
    """
    today, gpu = gpus()[profile.hardware.gpu or ""], gpus()[offer.gpu]
    yield from _small_host(profile, offer, count, gpu_count)
    works_together = profile.job.parallelism != "none"
    if count > 1 and offer.network_gbps is None and works_together and not asks:
        yield "machines over an unknown network"
    busy = max(profile.mean("util.kernel_time") or 0.0, profile.mean("util.sm_active") or 0.0)
    online = profile.job.kind == "inference_online"
    if online and gpu.name != today.name and busy / speed.mid > 0.9 * _NEAR:
        yield f"a load of {busy / speed.mid:.2f}"
    if gpu.host_architecture != today.host_architecture:
        yield "another CPU architecture"
    for engine in ("encoder", "decoder"):
        used = (profile.mean(f"util.{engine}") or 0.0) > 0.0
        here, there = (getattr(one, f"video_{engine}s") for one in (today, gpu))
        if used and here != 0 and not there:
            yield f"no {engine}"
    double, formats = profile.job.precision == "fp64", {"amp-bf16": "bf16"}
    if double and _slow_fp64(gpu) and not _slow_fp64(today):
        yield "no FP64 to speak of"
    rate = f"{formats.get(profile.job.precision or '', profile.job.precision)}_tflops"
    if rate in ("bf16_tflops", "fp8_tflops") and getattr(today, rate) and not getattr(gpu, rate):
        yield f"no {rate}"


def _slow_fp64(gpu: Gpu) -> bool:
    return (gpu.fp64_tflops or 0.0) < (gpu.fp32_tflops or 0.0) / 8.0


def _small_host(profile: Profile, offer: Offer, count: int, gpu_count: int) -> Iterator[str]:
    host, cores = profile.host, profile.hardware.cpu_cores
    if host and host.cpu_util and cores and offer.vcpus:
        used = host.cpu_util.p95 if host.cpu_util.p95 is not None else host.cpu_util.mean
        share = gpu_count / profile.gpu_count if profile.job.kind == "training" else 1.0
        if (used or 0.0) * cores * min(1.0, share) > offer.vcpus * count * _NEAR:
            yield "fewer cores than are busy"
    held = host.ram_used_gib.max if host and host.ram_used_gib else None
    if held and offer.ram_gib and held > offer.ram_gib * count * _NEAR:
        yield "less host memory than is in use"
