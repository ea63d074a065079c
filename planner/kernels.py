"""How much faster another GPU runs a job's kernels: from counters, or from fitted specifications.

Counters measured (SM or pipe, and DRAM activity): speed-up = R^a, R = (F_d/F_s)^wc (B_d/B_s)^wm,
wc = c/(c+m), wm = m/(c+m), a = 0.5 + 0.5 max(c, m). Training without them: the fitted model of
planner/speed_model.py. Inference: its slopes of F and B alone, for the effects of single models are
those of training. TF32 off: sqrt(F_d/F_s B_d/B_s). F is the dense peak of the precision really
used, B the memory bandwidth.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from planner.estimate import Estimate, within
from planner.profile.model import Profile
from planner.speed_model import (
    Family,
    Specs,
    coefficients,
    interval_factor,
    is_fitted,
    knows_architecture,
    log_score,
    specs,
)
from pricing import hardware
from pricing.errors import InputError, UnknownGpuError
from pricing.hardware import Gpu

# Where nothing narrower was measured: specifications alone, 90 % of 1,188 pairs of Lambda's.
_SPECIFICATION_FACTOR = 1.57
# 90th percentile of the error of the counter form on 80 kernel sets, RTX 2080 Ti <-> 3080: 29.9 %.
_COUNTER_FACTOR = 1.43
# Run-to-run spread of the same model on like hosts: CV up to 4 %; 1.645 x 0.04.
_SAME_GPU_FACTOR = 1.07
# A generation outside the fit: B200 from specifications 2.5x, measured 1.1-2.0x.
_WEAK_FACTOR = 2.3
# The dense tensor rate that real kernels reach, as a share of peak.
_REACHABLE = 0.6
# Tensor pipes that are busy for less than this do not carry the job: rounding and stray kernels.
_NO_TENSOR = 0.005
_SMALL_MEMORY = 0.1  # of a GPU's memory: launches may set the pace of so small a job
_SERVING = ("inference_online", "inference_offline")
_SINGLE_PRECISION = ("fp32", "tf32")
CUDA = "cuda"  # single precision outside the tensor cores: TF32 off, or AMP without effect

_PEAKS: Mapping[str, tuple[str, ...]] = {
    "fp32": ("tf32_tflops", "fp32_tflops"),
    "tf32": ("tf32_tflops", "fp32_tflops"),
    "amp-fp16": ("fp16_tflops", "fp32_tflops"),
    "amp-bf16": ("bf16_tflops", "fp16_tflops", "fp32_tflops"),
    "fp16": ("fp16_tflops", "fp32_tflops"),
    "bf16": ("bf16_tflops", "fp16_tflops", "fp32_tflops"),
    "fp8": ("fp8_tflops", "fp16_tflops"),
    "int8": ("int8_tops", "fp16_tflops"),
    "int4": ("int8_tops", "fp16_tflops"),
    CUDA: ("fp32_tflops",),
}


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


def kernel_speed_up(profile: Profile, target: Gpu) -> Estimate:
    """Return how much faster one target GPU runs the job's kernels than the profiled GPU."""
    source = source_gpu(profile)
    if source.name == target.name:
        return within(1.0, _SAME_GPU_FACTOR, "same GPU model: run-to-run spread")
    if source.memory_bandwidth_gb_s is None or target.memory_bandwidth_gb_s is None:
        raise InputError(f"the specifications of {target.name} or {source.name} are incomplete.")
    estimate = _by_counters(profile, source, target) or _by_specification(profile, source, target)
    if all(knows_architecture(g.architecture) for g in (source, target)):
        return estimate
    basis = f"weak: {target.architecture} or {source.architecture} is outside the fit"
    return replace(within(estimate.mid, _WEAK_FACTOR, basis), weak=True)


def used_precision(profile: Profile, source: Gpu) -> tuple[str | None, str]:
    """Return the precision that the kernels used, and what shows it; None = unknown.

    Half precision, and TF32 where the GPU has it, keep the tensor cores busy. Idle tensor cores
    mean single precision outside them, whatever the profile names.
    """
    named, tensor = profile.job.precision, profile.mean("util.tensor_active")
    has_tensor = source.tf32_tflops is not None or named not in _SINGLE_PRECISION
    if tensor is not None and tensor < _NO_TENSOR and has_tensor and named not in ("int8", "int4"):
        return CUDA, f"tensor cores idle, so single precision without TF32 ({named or 'not'} named)"
    return named, ""


def _by_counters(profile: Profile, source: Gpu, target: Gpu) -> Estimate | None:
    tensor, fp32 = profile.mean("util.tensor_active"), profile.mean("util.fp32_active")
    memory = profile.mean("util.dram_active")
    pipes = [
        p for p in (tensor / _REACHABLE if tensor is not None else None, fp32) if p is not None
    ]
    compute = max(pipes) if pipes else profile.mean("util.sm_active")
    if compute is None or memory is None or compute + memory <= 0.0:
        return None
    compute, memory = min(1.0, compute), min(1.0, memory)
    weight = compute / (compute + memory)
    precision, shown = used_precision(profile, source)
    arithmetic = peak_tflops(target, precision) / peak_tflops(source, precision)
    ratio = arithmetic**weight * _bandwidth_ratio(source, target) ** (1.0 - weight)
    damping = 0.5 + 0.5 * max(compute, memory)
    what = "tensor and DRAM activity" if pipes else "SM and DRAM activity"
    basis = "; ".join(part for part in (f"{what}, damped roofline", shown) if part)
    return within(ratio**damping, _COUNTER_FACTOR, basis)


def _by_specification(profile: Profile, source: Gpu, target: Gpu) -> Estimate:
    precision, shown = used_precision(profile, source)
    guesses = (precision,) if precision else ("fp32", "amp-fp16")
    form = _form(profile)
    found = [form(source, target, guess) for guess in guesses]
    mid = math.prod(one.mid for one in found) ** (1.0 / len(found))
    basis = found[0].basis
    if not precision:
        basis += ", precision unknown: single and half considered"
    return _damped(
        profile,
        source,
        Estimate(
            low=min(one.low for one in found),
            mid=mid,
            high=max(one.high for one in found),
            basis="; ".join(part for part in (basis, shown) if part),
        ),
    )


def _form(profile: Profile) -> Callable[[Gpu, Gpu, str], Estimate]:
    if profile.job.kind in _SERVING:
        return _serving
    return _training if profile.job.kind == "training" else _other


def _other(source: Gpu, target: Gpu, precision: str) -> Estimate:
    """Return the fit of training for another kind of job, on which no interval was calibrated."""
    fitted = _training(source, target, precision)
    factor = max(_SPECIFICATION_FACTOR, fitted.high / fitted.mid)
    return within(fitted.mid, factor, f"{fitted.basis}; the job is no known training")


def _serving(source: Gpu, target: Gpu, precision: str) -> Estimate:
    speed = serving_speed_up(source, target, precision)
    return within(speed, _SPECIFICATION_FACTOR, "GPU specifications (peak, bandwidth)")


def serving_speed_up(source: Gpu, target: Gpu, precision: str) -> float:
    """Return the ratio of inference speeds: the fitted slopes of peak and bandwidth, alone.

    Effects of models, generations and memory are those of training; on published image models
    they do harm.
    """
    slopes = coefficients("speed")[spec_family(precision)[1]]
    arithmetic = peak_tflops(target, precision) / peak_tflops(source, precision)
    bandwidth = _bandwidth_ratio(source, target)
    speed: float = arithmetic ** slopes["peak"] * bandwidth ** slopes["bandwidth"]
    return speed


def spec_family(precision: str) -> tuple[str, Family]:
    """Return a precision with the family of the fit that it belongs to."""
    return precision, "single" if precision in _SINGLE_PRECISION else "half"


def _training(source: Gpu, target: Gpu, precision: str) -> Estimate:
    if precision == CUDA:
        speed = math.sqrt(
            peak_tflops(target, CUDA) / peak_tflops(source, CUDA) * _bandwidth_ratio(source, target)
        )
        return within(speed, _SPECIFICATION_FACTOR, "GPU specifications (CUDA rate, bandwidth)")
    one, other = (_specs(gpu, precision) for gpu in (source, target))
    ratio = math.exp(log_ratio(source, target, spec_family(precision)))
    unseen = [gpu.name for gpu in (one, other) if not is_fitted(gpu)]
    basis = "benchmarks of both GPUs, job unseen"
    if unseen:
        basis = f"GPU specifications and generation: {' and '.join(unseen)} not benchmarked"
    return within(ratio, interval_factor(one, other), f"{basis} (peak, bandwidth, memory)")


def log_ratio(source: Gpu, target: Gpu, family: tuple[str, Family]) -> float:
    """Return ln of the fitted speed-up of training."""
    precision, part = family
    return log_score(_specs(target, precision), part) - log_score(_specs(source, precision), part)


def _specs(gpu: Gpu, precision: str) -> Specs:
    found = specs(gpu, peak_tflops(gpu, precision))
    if found is None:
        raise InputError(f"the specifications of {gpu.name} are incomplete.")
    return found


def _damped(profile: Profile, source: Gpu, whole: Estimate) -> Estimate:
    """Return a prediction for a job that leaves most of the memory empty: launches set its pace.

    Fitted on training at the same small batch; without counters nothing tells more.
    """
    held, room = profile.peak("mem.used_gib"), source.memory_gib
    if profile.job.kind != "training" or held is None or held >= _SMALL_MEMORY * room:
        return whole
    row = coefficients("speed")["small"]
    slow = within(
        whole.mid ** float(row["exponent"]),
        float(row["factor"]),
        f"{whole.basis}; {held / room:.0%} of the memory used, so launches may set the pace",
    )
    return replace(slow, low=min(slow.low, whole.low), high=max(slow.high, whole.high))


def peak_tflops(gpu: Gpu, precision: str | None) -> float:
    """Return the dense peak of the pipes that a precision uses, TFLOP/s (int8: TOP/s).

    Raises:
        InputError: the hardware table does not have it.
    """
    rates = (getattr(gpu, name) for name in _PEAKS.get(precision or "fp32", _PEAKS["fp32"]))
    found: float | None = next((rate for rate in rates if rate), None)
    if found is None:
        raise InputError(f"the arithmetic rates of {gpu.name} are not known.")
    return found


def _bandwidth_ratio(source: Gpu, target: Gpu) -> float:
    return (target.memory_bandwidth_gb_s or 1.0) / (source.memory_bandwidth_gb_s or 1.0)
