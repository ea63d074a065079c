"""How much faster a job runs on another GPU, on more GPUs, or with its bottleneck fixed.

The time of a job is split into what the findings prove: `input` (waiting for data), `host`
(launching, serial code) and `kernels`. Each part changes with its own cause; GPU-Util alone proves
nothing and is never used as a weight (measured: it makes cross-GPU predictions worse).

Kernels, counters measured (SM/tensor and DRAM activity): speed-up = R^a with
R = (F_d/F_s)^wc * (B_d/B_s)^wm, wc = c/(c+m), wm = m/(c+m), a = 0.5 + 0.5 max(c, m). Otherwise the
specification form: speed-up = (F_d/F_s)^p * (B_d/B_s)^b, exponents fitted in log space.
F is the dense peak of the precision really used, B the memory bandwidth.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from planner.diagnose import diagnose
from planner.estimate import Estimate, product, within
from planner.finding import Finding
from planner.profile.model import Profile
from planner.remedies import Action, action, combined
from planner.rules.limits import STARVED
from planner.scale import Layout, speed_up
from planner.signals import measure
from pricing import hardware
from pricing.errors import InputError, NotBuiltYetError, UnknownGpuError
from pricing.hardware import Gpu

# Exponents (peak, bandwidth) and the 90 % interval factor of the specification form, fitted on
# Lambda's PyTorch benchmarks (12 GPUs, left out by GPU); inference: timm, both exponents 0.5.
_HALF, _SINGLE, _SERVING = (0.32, 0.52), (0.38, 0.52), (0.5, 0.5)
_SPECIFICATION_FACTOR = 1.57
# 90th percentile of the error of the counter form on 80 kernel sets, RTX 2080 Ti <-> 3080: 29.9 %.
_COUNTER_FACTOR = 1.43
# Run-to-run spread of the same model on like hosts: CV up to 4 %; 1.645 x 0.04.
_SAME_GPU_FACTOR = 1.07
# A generation outside the fit: B200 from specifications 2.5x, measured 1.1-2.0x.
_WEAK_FACTOR = 2.3
_FITTED_ARCHITECTURES = ("Volta", "Turing", "Ampere", "Ada", "Hopper")
# The dense tensor rate that real kernels reach, as a share of peak.
_REACHABLE = 0.6
# Loader law: throughput ~ cores^g per GPU, g = 1 below 3 cores and 0.8 above (Synergy tables).
_KNEE_CORES, _ABOVE_KNEE = 3.0, 0.8
_MOST_CORES = 12.0
# The law's mean error is 8 %; twice that is taken as the end of its 90 % interval.
_LOADER_FACTOR = 1.16
# GPU preprocessing adds to the GPU's own work; our estimate.
_GPU_DECODE_LOAD = 1.1

_PEAKS: dict[str | None, tuple[str, ...]] = {
    "fp32": ("tf32_tflops", "fp32_tflops"),
    "tf32": ("tf32_tflops", "fp32_tflops"),
    "amp-fp16": ("fp16_tflops", "fp32_tflops"),
    "amp-bf16": ("bf16_tflops", "fp16_tflops", "fp32_tflops"),
    "fp16": ("fp16_tflops", "fp32_tflops"),
    "bf16": ("bf16_tflops", "fp16_tflops", "fp32_tflops"),
    "fp8": ("fp8_tflops", "fp16_tflops"),
    "int8": ("int8_tops", "fp16_tflops"),
    "int4": ("int8_tops", "fp16_tflops"),
}
_SINGLE_PRECISION = ("fp32", "tf32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where the job would run.

    Attributes:
        gpu: the GPU model.
        gpu_count: GPUs used.
        cpu_cores: host threads for them, None = unknown.
        interconnect: between the GPUs, None = unknown.
        nodes: machines that they stand in.
    """

    gpu: Gpu
    gpu_count: int = 1
    cpu_cores: float | None = None
    interconnect: str | None = None
    nodes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Shares of the profiled run time; they add up to 1.

    Attributes:
        kernels: the GPU works.
        input: it waits for data (only where proved).
        host: it waits for launches or serial code (only where proved).
    """

    kernels: float
    input: float = 0.0
    host: float = 0.0


_PART_OF = {"data-loading": "input", "host-to-device": "input", "host-bound": "host"}


def split(findings: Iterable[Finding]) -> Split:
    """Return where the time goes, as far as findings that are more than possible prove it."""
    shares = {"input": 0.0, "host": 0.0}
    for finding in findings:
        part = _PART_OF.get(finding.code)
        if part and finding.confidence != "possible" and finding.waste_fraction:
            shares[part] += finding.waste_fraction
    kernels = max(0.0, 1.0 - shares["input"] - shares["host"])
    return Split(kernels=kernels, input=shares["input"], host=shares["host"])


def predict(
    profile: Profile,
    *,
    gpu: str,
    gpu_count: int = 1,
    actions: Iterable[str] = (),
    probes: Iterable[Profile] = (),
) -> Estimate:
    """Return the speed-up over the profiled run (> 1 is faster), batch re-fitted to the memory.

    Args:
        profile: what was measured.
        gpu: the GPU model to run on, under any known name.
        gpu_count: how many of them.
        actions: codes of actions applied.
        probes: profiles of the same job elsewhere; none are accepted in this version.

    Raises:
        UnknownGpuError: either GPU is not in the hardware table.
        InputError: the profile names no GPU.
        NotBuiltYetError: probes are given.
    """
    if tuple(probes):
        raise NotBuiltYetError("probes are not used by this version's predictions; leave them out.")
    target = Target(gpu=hardware.resolve(gpu), gpu_count=gpu_count)
    signals = measure(profile)
    chosen = tuple(action(code, signals) for code in actions)
    return predict_on(profile, target, chosen, split(diagnose(profile)))


def source_gpu(profile: Profile) -> Gpu:
    """Return the GPU that was profiled.

    Raises:
        InputError: the profile names none.
        UnknownGpuError: it is not in the hardware table; the nearest are named.
    """
    if profile.hardware.gpu is None:
        raise InputError(
            f"{profile.job.name}: hardware.gpu is missing, so no other GPU can be compared; "
            "add it to the profile, give `gpucost import --gpu MODEL`, or say where it runs: "
            "--current PROVIDER/TYPE."
        )
    try:
        return hardware.resolve(profile.hardware.gpu, memory_gib=profile.hardware.gpu_memory_gib)
    except UnknownGpuError as error:
        raise UnknownGpuError(
            f"{profile.job.name}: hardware.gpu: {problem}" for problem in error.problems
        ) from error


def predict_on(
    profile: Profile, target: Target, actions: tuple[Action, ...], parts: Split
) -> Estimate:
    """Return the speed-up on a target with actions applied; see the module for the formulas."""
    kernels = kernel_speed_up(profile, target.gpu)
    hardware_now = profile.hardware
    count = speed_up(
        Layout(gpus=profile.gpu_count, link=hardware_now.interconnect, nodes=hardware_now.nodes),
        Layout(
            gpus=target.gpu_count,
            link=target.interconnect,
            nodes=target.nodes if target.nodes > 1 else None,
        ),
    )
    kernels = product(kernels, count)
    if not parts.input and not parts.host:
        return _unexplained(profile, product(kernels, combined(actions, "kernels")))
    feed = product(product(combined(actions, "input"), _cores(profile, target)), count)
    host = combined(actions, "host")
    load = _GPU_DECODE_LOAD if any(a.code == "gpu-preprocessing" for a in actions) else 1.0

    def faster(kernel: float, input_: float, serial: float) -> float:
        work = parts.kernels * load / kernel + parts.host / serial
        # With prefetching the slower of the two sets the pace; the profiled pace is the input's.
        return 1.0 / (max(work, 1.0 / input_) if parts.input else work)

    basis = "; ".join(dict.fromkeys((kernels.basis, feed.basis if parts.input else host.basis)))
    return Estimate(
        low=faster(kernels.low, feed.low, host.low),
        mid=faster(kernels.mid, feed.mid, host.mid),
        high=faster(kernels.high, feed.high, host.high),
        basis=basis,
        weak=kernels.weak,
    )


def _unexplained(profile: Profile, whole: Estimate) -> Estimate:
    """Widen a prediction for a GPU that waits for a cause nobody measured.

    The waiting may shrink with the kernels or stay as it is, so the interval spans both.
    """
    busy = profile.mean("util.kernel_time")
    if busy is None or busy >= STARVED or whole.low == whole.high == 1.0:
        return whole

    def waiting_stays(speed: float) -> float:
        return 1.0 / (1.0 - busy + busy / speed)

    return replace(
        whole,
        low=min(whole.low, waiting_stays(whole.low)),
        high=max(whole.high, waiting_stays(whole.high)),
        basis=f"{whole.basis}; the GPU waits {1.0 - busy:.0%} of the time and why is unmeasured",
    )


def kernel_speed_up(profile: Profile, target: Gpu) -> Estimate:
    """Return how much faster one target GPU runs the job's kernels than the profiled GPU."""
    source = source_gpu(profile)
    if source.name == target.name:
        return within(1.0, _SAME_GPU_FACTOR, "same GPU model: run-to-run spread")
    if source.memory_bandwidth_gb_s is None or target.memory_bandwidth_gb_s is None:
        raise InputError(f"the specifications of {target.name} or {source.name} are incomplete.")
    estimate = _by_counters(profile, source, target) or _by_specification(profile, source, target)
    known = all(g.architecture in _FITTED_ARCHITECTURES for g in (source, target))
    if known:
        return estimate
    basis = f"weak: {target.architecture} or {source.architecture} is outside the fit"
    return replace(within(estimate.mid, _WEAK_FACTOR, basis), weak=True)


def _by_counters(profile: Profile, source: Gpu, target: Gpu) -> Estimate | None:
    tensor, fp32 = profile.mean("util.tensor_active"), profile.mean("util.fp32_active")
    memory = profile.mean("util.dram_active")
    pipes = [tensor / _REACHABLE if tensor is not None else None, fp32]
    compute = max((p for p in pipes if p is not None), default=None)
    if compute is None or memory is None or compute + memory <= 0.0:
        return None
    compute, memory = min(1.0, compute), min(1.0, memory)
    weight = compute / (compute + memory)
    ratio = _peak_ratio(profile.job.precision, source, target) ** weight * _bandwidth_ratio(
        source, target
    ) ** (1.0 - weight)
    damping = 0.5 + 0.5 * max(compute, memory)
    return within(ratio**damping, _COUNTER_FACTOR, "tensor and DRAM activity, damped roofline")


def _by_specification(profile: Profile, source: Gpu, target: Gpu) -> Estimate:
    precision = profile.job.precision
    guesses = [precision] if precision else ["fp32", "amp-fp16"]
    serving = profile.job.kind in ("inference_online", "inference_offline")
    speeds = []
    for guess in guesses:
        peak, bandwidth = _exponents(guess, serving=serving)
        ratio = _peak_ratio(guess, source, target) ** peak
        speeds.append(ratio * _bandwidth_ratio(source, target) ** bandwidth)
    mid = math.prod(speeds) ** (1.0 / len(speeds))
    basis = "GPU specifications (peak, bandwidth)"
    if not precision:
        basis += ", precision unknown: single and half considered"
    return Estimate(
        low=min(speeds) / _SPECIFICATION_FACTOR,
        mid=mid,
        high=max(speeds) * _SPECIFICATION_FACTOR,
        basis=basis,
    )


def _exponents(precision: str, *, serving: bool) -> tuple[float, float]:
    if serving:
        return _SERVING
    return _SINGLE if precision in _SINGLE_PRECISION else _HALF


def _peak(gpu: Gpu, precision: str | None) -> float:
    rates = (getattr(gpu, name) for name in _PEAKS.get(precision, _PEAKS["fp32"]))
    found: float | None = next((rate for rate in rates if rate), None)
    if found is None:
        raise InputError(f"the arithmetic rates of {gpu.name} are not known.")
    return found


def _peak_ratio(precision: str | None, source: Gpu, target: Gpu) -> float:
    return _peak(target, precision) / _peak(source, precision)


def _bandwidth_ratio(source: Gpu, target: Gpu) -> float:
    return (target.memory_bandwidth_gb_s or 1.0) / (source.memory_bandwidth_gb_s or 1.0)


def _cores(profile: Profile, target: Target) -> Estimate:
    before, after = profile.hardware.cpu_cores, target.cpu_cores
    if before is None or after is None:
        return within(1.0, _LOADER_FACTOR, "input pipeline as today: host cores unknown")
    before, after = before / profile.gpu_count, after / target.gpu_count
    ratio = _loader_rate(after) / _loader_rate(before)
    basis = f"input pipeline scales from {before:g} to {after:g} cores a GPU"
    return within(ratio, _LOADER_FACTOR, basis)


def _loader_rate(cores: float) -> float:
    """Input throughput of so many cores a GPU; flat beyond what was measured."""
    cores = min(cores, _MOST_CORES)
    if cores <= _KNEE_CORES:
        return cores
    above: float = (cores / _KNEE_CORES) ** _ABOVE_KNEE
    return _KNEE_CORES * above
