"""How much faster another GPU runs a job's kernels, and whether it can run them at all.

What a job uses of its GPU that another chip may not have: formats, FP64, video, NVLink.
Each need comes from the profile, and asks for no more than today's GPU has: what works there
without, works elsewhere without.

How much faster another GPU runs a job's kernels: from counters, or from fitted specifications.
Counters measured (SM or pipe, and DRAM activity): speed-up = R^a, R = (F_d/F_s)^wc (B_d/B_s)^wm, wc
= c/(c+m), wm = m/(c+m), a = 0.5 + 0.5 max(c, m). F is the dense peak of the precision really used,
B the memory bandwidth. Without them the law of the job's class (planner/models/gpu_speed): training
on one GPU has the model fitted on benchmarks, every other class its exponents of specifications.

What the profile says of its kernels is read once (`Kernels`). The laws of classes know classes,
GPUs and precisions alone, so what they answer is kept for all jobs.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from planner.models import gpu_speed
from planner.models.coefficients import coefficients, memoize
from planner.models.estimate import Estimate, exactly, product, within
from planner.prediction.slices import whole_gpu
from planner.profile import frameworks
from planner.profile.model import Profile
from planner.profile.source import source_gpu
from planner.signals.compute_share import arithmetic
from planner.signals.thresholds import LOW
from pricing.errors import InputError
from pricing.hardware import Gpu
from pricing.message import Message, join

# FP64 at 1/2 or 1/3 of FP32 is built for it; at 1/32 or 1/64 it is there for compatibility.
_FULL_FP64 = 0.25
# Turing, Ampere but for A100 and A30, Ada, Blackwell RTX: those for which NVIDIA's table of its RTX
# renderer (docs.omniverse.nvidia.com, feature support per GPU architecture) has a supported GPU.
_RAY_TRACING = ("7.5", "8.6", "8.9", "12.0")


def lacks_of(profile: Profile, today: Gpu) -> Callable[[Gpu], str | None]:
    """Return what says of a GPU what the job uses of today's that it lacks, or may lack."""
    language = profile.job.kind.serves and gpu_speed.serves_language_model(profile)
    # Engines serve a model in the format it is published in, bf16 as a rule, unless told otherwise.
    precision = profile.job.precision or ("bf16" if language else "")
    row = coefficients("precisions").get(precision, {})
    first, name = row.get("capability", 0.0), row.get("name", "")
    oldest = min(first, float(today.compute_capability or first))
    needs = [(part, has) for part, used, has in _NEEDS if used(profile) and has(today) is not False]

    def lacks(gpu: Gpu) -> str | None:
        if float(gpu.compute_capability or first) < oldest:
            return Message("lacks.precision", gpu=gpu.name, precision=name, cc=first)
        for part, has in needs:
            if is_there := has(gpu):
                continue
            if part in _DOUBLE and not gpu.fp64_tflops:
                return Message("lacks.fp64-unrated", gpu=gpu.name)
            share = (gpu.fp32_tflops or 0.0) / (gpu.fp64_tflops or 1.0)
            missing = Message(f"lacks.{part}", gpu=gpu.name, share=share)
            return missing if is_there is False else Message("lacks.unknown", what=missing)
        return None

    return lacks


_DOUBLE = ("fp64", "fp64-perhaps")  # needs of a rate, which may not be published


def has_full_fp64(gpu: Gpu) -> bool | None:
    """Return whether FP64 runs at a full rate, a third of FP32's or more; None = unknown."""
    if gpu.fp64_tflops is None or not gpu.fp32_tflops:
        return None
    return gpu.fp64_tflops / gpu.fp32_tflops >= _FULL_FP64


def _video(slot: str) -> Callable[[Profile], bool]:
    return lambda profile: (profile.mean(slot) or 0.0) > 0.0


def _count(field: str) -> Callable[[Gpu], bool | None]:
    return lambda gpu: None if getattr(gpu, field) is None else getattr(gpu, field) > 0


def _computes(way: str) -> Callable[[Profile], bool]:
    return lambda profile: arithmetic(profile) == way


def renders(profile: Profile) -> bool:
    """Return whether the program traces rays."""
    return frameworks.family(profile.job.framework) == "rendering"


def traces_rays(gpu: Gpu) -> bool | None:
    """Return whether a GPU has cores for ray tracing: by its compute capability."""
    return gpu.compute_capability in _RAY_TRACING


# vLLM's installation page: compute capability 7.0 or more.
_ENGINES = ("vllm", "sglang", "lmdeploy")
_OF_CUDA_12 = (*frameworks.LEARNING, "llm-server", "server")


def _since(capability: float) -> Callable[[Gpu], bool | None]:
    return lambda gpu: gpu.vendor != "NVIDIA" or float(gpu.compute_capability or 99) >= capability


_NEEDS: tuple[tuple[str, Callable[[Profile], bool], Callable[[Gpu], bool | None]], ...] = (
    ("fp64", _computes("double"), has_full_fp64),
    ("fp64-perhaps", _computes("either"), has_full_fp64),
    ("ray-tracing", renders, traces_rays),
    # CUDA 12, with which today's frameworks are built, ends Kepler's support (its release notes).
    ("cuda-12", lambda p: frameworks.family(p.job.framework) in _OF_CUDA_12, _since(5.0)),
    ("engine", lambda p: frameworks.program(p.job.framework) in _ENGINES, _since(7.0)),
    ("encoder", _video("util.encoder"), _count("video_encoders")),
    ("decoder", _video("util.decoder"), _count("video_decoders")),
)
"""Parts of a chip: their code, whether a job uses one, whether a GPU has it (None = unknown)."""


# Where nothing of the kind was measured: specifications alone, 90 % of 1,188 pairs of Lambda's.
_SPECIFICATION_FACTOR = 1.57
# 90th percentile of the error of the counter form on 80 kernel sets, RTX 2080 Ti <-> 3080: 29.9 %.
_COUNTER_FACTOR = 1.43
# Run-to-run spread of the same model on like hosts: CV up to 4 %; 1.645 x 0.04.
_TERMS = Message("speed.terms")
_TF32_OR_NOT = Message("speed.tf32-or-not")
_SAME_GPU = within(1.0, 1.07, Message("speed.same-gpu"))
# A generation outside the fit: B200 from specifications 2.5x, measured 1.1-2.0x.
_WEAK_FACTOR = 2.3
# The dense tensor rate that real kernels reach, as a share of peak.
_REACHABLE = 0.6
# Tensor pipes that are busy for less than this do not carry the job: rounding and stray kernels.
_NO_TENSOR = 0.005
# Programs that compute outside the tensor cores, whatever single precision is called, beside those
# that simulate or render.
_NO_TENSORS = ("video", "boosting")
# Video engines of one generation and the next at their clocks; our estimate (NVIDIA's application
# notes on NVENC and NVDEC: their speed goes with the clock).
ENGINE_FACTOR = 1.4
_SMALL_MEMORY = 0.1  # of a GPU's memory: launches may set the pace of so small a job
_GUESSES_SERVED, _GUESSES = ("fp16", "fp32"), ("fp32", "amp-fp16")
_GUESSES_SIMULATED = (gpu_speed.CUDA, "fp64")
_KEPT = 8192  # answers of the laws of classes; a fleet on ten GPU models asks for some hundreds


class _Counters(NamedTuple):
    """How a job loads a GPU's arithmetic, and the exponents that follow."""

    weight: float
    damping: float
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """What a profile says of its kernels: all that their speed elsewhere is predicted from.

    Attributes:
        source: the model of the profiled GPU.
        whole: how much faster all of it is than the part that was profiled.
        precision: that they used; None = unknown.
        shown: what shows the precision, where it is not the named one.
        counters: None where too few were measured.
        classes: the class of work at each precision that may have to be considered.
        serves: whether requests or batches of inputs are answered.
        either: whether it simulates in single or in double precision, nothing tells which.
        small: share of the GPU's memory that is held, where launches may set the pace; else None.
        engines: how busy its video engines are, where one of them sets the pace; else empty.
        traces: whether rays are traced.
    """

    source: Gpu
    whole: Estimate
    precision: str | None
    shown: str
    counters: _Counters | None
    classes: Mapping[str, gpu_speed.WorkClass]
    serves: bool
    either: bool
    small: float | None
    engines: Mapping[str, float]
    traces: bool

    @property
    def guesses(self) -> tuple[str, ...]:
        """The precisions that the kernels may have used, the likeliest first."""
        if self.precision:
            return (self.precision,)
        if self.either:
            return _GUESSES_SIMULATED
        return _GUESSES_SERVED if self.serves else _GUESSES


def read_kernels(profile: Profile) -> Kernels:
    """Return what a profile says of its kernels.

    Raises:
        InputError: it names no GPU.
        UnknownGpuError: the GPU is not in the hardware table.
    """
    source = source_gpu(profile)
    precision, shown = used_precision(profile, source)
    used_gib, room = profile.peak("mem.used_gib"), source.memory_gib
    guesses = (*_GUESSES_SERVED, *_GUESSES, *_GUESSES_SIMULATED)
    considered = (precision,) if precision else guesses
    return Kernels(
        source=source,
        whole=whole_gpu(profile),
        precision=precision,
        shown=shown,
        counters=_counters(profile, shown),
        classes={guess: gpu_speed.work_class(profile, guess) for guess in (*considered, "tf32")},
        serves=profile.job.kind.serves,
        either=arithmetic(profile) == "either",
        small=None if used_gib is None or used_gib >= _SMALL_MEMORY * room else used_gib / room,
        engines=_pacing(profile),
        traces=renders(profile),
    )


def video_loads(profile: Profile) -> dict[str, float]:
    """Return how busy the video engines are that work, by what `Gpu` calls their number."""
    loads = {f"video_{part}s": profile.mean(f"util.{part}") for part in ("encoder", "decoder")}
    return {name: load for name, load in loads.items() if load}


def _pacing(profile: Profile) -> dict[str, float]:
    """Return how busy the video engines are where one of them is what is busiest; else nothing."""
    loads = video_loads(profile)
    slots = ("util.kernel_time", "util.sm_active", "util.dram_active")
    busiest = max(LOW, *(profile.mean(slot) or 0.0 for slot in slots))
    return loads if max(loads.values(), default=0.0) >= busiest else {}


def _counters(profile: Profile, shown: str) -> _Counters | None:
    tensor, memory = profile.mean("util.tensor_active"), profile.mean("util.dram_active")
    pipes = [p for p in (profile.mean("util.fp32_active"), profile.mean("util.fp64_active")) if p]
    pipes += [] if tensor is None else [tensor / _REACHABLE]
    compute = max(pipes) if pipes else profile.mean("util.sm_active")
    if compute is None or memory is None or compute + memory <= 0.0:
        return None
    compute, memory = min(1.0, compute), min(1.0, memory)
    roofline = Message("speed.roofline-tensor" if pipes else "speed.roofline-sm")
    return _Counters(
        weight=compute / (compute + memory),
        damping=0.5 + 0.5 * max(compute, memory),
        basis=join((roofline, shown)),
    )


def kernels_on(kernels: Kernels, target: Gpu, piece: str | None = None) -> Estimate:
    """Return how much faster one target GPU runs the job's kernels than what was profiled.

    Where that is a slice of a GPU, the whole GPU comes first.

    Args:
        kernels: what a profile says of them.
        target: the model.
        piece: the slice of it that the job would have, where it is the one profiled; None: all.
    """
    from_whole = _from_whole(kernels, target)
    return from_whole if piece is not None else product(from_whole, kernels.whole)


def _from_whole(kernels: Kernels, target: Gpu) -> Estimate:
    """Return the speed-up over the model of the profiled GPU, all of it."""
    source = kernels.source
    if source.name == target.name:
        return _SAME_GPU
    if source.memory_bandwidth_gb_s is None or target.memory_bandwidth_gb_s is None:
        raise InputError(f"the specifications of {target.name} or {source.name} are incomplete.")
    if kernels.engines:
        return _by_engines(kernels, target)
    if kernels.counters is not None:
        speed = _by_counters(kernels, kernels.counters, target)
    else:
        speed = _by_specification(kernels, target)
    if not kernels.traces or (traces_rays(source) and traces_rays(target)):
        return speed
    basis = join((speed.basis, Message("speed.rays")))
    if traces_rays(target):  # its cores for rays come on top of what specifications tell
        return msgspec.structs.replace(speed, high=speed.high * _WEAK_FACTOR, basis=basis)
    return msgspec.structs.replace(within(speed.mid, _WEAK_FACTOR, basis), weak=True)


def _by_engines(kernels: Kernels, target: Gpu) -> Estimate:
    """Return the speed-up of what video engines limit: by how many of them each GPU has."""
    numbers = [(getattr(kernels.source, name), getattr(target, name)) for name in kernels.engines]
    if not all(before and after for before, after in numbers):
        basis = Message("speed.engines-unknown", gpu=target.name)
        return msgspec.structs.replace(within(1.0, _WEAK_FACTOR, basis), weak=True)
    loads = tuple(kernels.engines.values())
    loads_after = (load * now / after for load, (now, after) in zip(loads, numbers, strict=True))
    return within(max(loads) / max(loads_after), ENGINE_FACTOR, Message("speed.engines"))


def used_precision(profile: Profile, source: Gpu) -> tuple[str | None, str]:
    """Return the precision that the kernels used, and what shows it; None = unknown.

    Half precision, and TF32 where the GPU has it, keep the tensor cores busy. Idle tensor cores
    mean single precision outside them, whatever the profile names.
    """
    named, tensor = profile.job.precision, profile.mean("util.tensor_active")
    carried, program = arithmetic(profile), profile.job.framework
    if carried == "double":
        return "fp64", ""
    outside = carried == "single" or frameworks.family(program) in _NO_TENSORS
    if tensor is None and gpu_speed.is_single(named or gpu_speed.CUDA) and outside:
        return gpu_speed.CUDA, Message("speed.no-tensor-code", framework=program or "")
    if tensor is None or named in ("int8", "int4"):
        return named, ""
    if tensor >= _NO_TENSOR:
        busy = named == "fp32" and gpu_speed.has_tf32(source)
        return ("tf32", Message("speed.tf32-seen")) if busy else (named, "")
    if gpu_speed.has_tf32(source) or not gpu_speed.is_single(named):
        return gpu_speed.CUDA, Message("speed.no-tf32-seen", precision=named or "not")
    return named, ""


def _weak_if_new(estimate: Estimate, source: Gpu, target: Gpu) -> Estimate:
    """Return an estimate, weak and wide where no class measured a GPU's generation."""
    unmeasured = [gpu.architecture for gpu in (source, target) if not gpu_speed.is_measured(gpu)]
    if not unmeasured:
        return estimate
    factor = max(_WEAK_FACTOR, estimate.high / estimate.mid)
    names = join(dict.fromkeys(unmeasured), "and")
    basis = Message("speed.outside-fit", gpus=names, basis=estimate.basis)
    return msgspec.structs.replace(within(estimate.mid, factor, basis), weak=True)


def _by_counters(kernels: Kernels, counters: _Counters, target: Gpu) -> Estimate:
    if kernels.precision != "fp32":
        return _roofline(kernels, counters, target, kernels.precision)
    # Whether the tensor cores were at work in TF32, nobody measured.
    without, with_it = (
        _roofline(kernels, counters, target, way) for way in (gpu_speed.CUDA, "tf32")
    )
    return without.spanning([with_it], _TF32_OR_NOT)


def _roofline(
    kernels: Kernels, counters: _Counters, target: Gpu, precision: str | None
) -> Estimate:
    source, (weight, damping, basis) = kernels.source, counters
    arithmetic = gpu_speed.peak_tflops(target, precision) / gpu_speed.peak_tflops(source, precision)
    bandwidth = (target.memory_bandwidth_gb_s or 1.0) / (source.memory_bandwidth_gb_s or 1.0)
    ratio = arithmetic**weight * bandwidth ** (1.0 - weight)
    return _weak_if_new(within(ratio**damping, _COUNTER_FACTOR, basis), source, target)


def _by_specification(kernels: Kernels, target: Gpu) -> Estimate:
    speeds = [_at(guess, kernels, target) for guess in kernels.guesses]
    if kernels.precision and not kernels.shown:
        return speeds[0]
    # What is served runs in half precision nearly always; training may do either.
    mids = [speed.mid for speed in (speeds[:1] if kernels.serves else speeds)]
    basis = speeds[0].basis
    if not kernels.precision:
        basis = Message("speed.precision-unknown", basis=basis)
    mean = exactly(math.prod(mids) ** (1.0 / len(mids)), basis)
    return mean.spanning(speeds, kernels.shown)


def _at(precision: str, kernels: Kernels, target: Gpu) -> Estimate:
    """Return the speed-up by the law of the job's class at one precision."""
    if (
        precision == "fp32"
        and gpu_speed.has_tf32(target)
        and not gpu_speed.has_tf32(kernels.source)
    ):
        # Whether the code would use TF32 elsewhere, nothing tells: the middle is that without it.
        without = _of_class("fp32", kernels.source, target, gpu_speed.CUDA)
        return without.spanning([_at("tf32", kernels, target)], _TF32_OR_NOT)
    name = kernels.classes[precision]
    speed = _of_class(name, kernels.source, target, precision)
    small = name == "training" and kernels.small is not None
    return _damped(speed, kernels.small or 0.0) if small else speed


@memoize(_KEPT)
def _of_class(name: gpu_speed.WorkClass, source: Gpu, target: Gpu, precision: str) -> Estimate:
    """Return the speed-up by the law of a class."""
    if name == "training":
        return _training(source, target, precision)
    if name == "other":
        return _by_peak_rates(source, target, precision)
    used = gpu_speed.CUDA if name == "fp32" else precision
    return _weak_if_new(
        gpu_speed.predicted(gpu_speed.law(name), source, target, used), source, target
    )


def _by_peak_rates(source: Gpu, target: Gpu, precision: str) -> Estimate:
    """Return the fit of training for another kind of job, of which nothing was measured."""
    if precision == "fp64":
        return _by_resources(source, target, precision)
    fitted = _training(source, target, precision)
    factor = max(_SPECIFICATION_FACTOR, fitted.high / fitted.mid)
    basis = Message("speed.kind-unknown", basis=fitted.basis)
    return msgspec.structs.replace(within(fitted.mid, factor, basis), weak=True)


def _by_resources(source: Gpu, target: Gpu, precision: str) -> Estimate:
    """Return the speed-up of kernels that one of three resources limits, nobody knows which.

    Within a generation of chips it lies between the least and the greatest ratio of arithmetic,
    memory bandwidth and power. Another one does more for a watt, but a job may gain nothing of what
    it has more of, as one of short kernels does. The middle is the rule of all classes, arithmetic
    and bandwidth (`planner.models.gpu_speed.RULE`).
    """
    peak, bandwidth, power = (math.exp(step) for step in gpu_speed.steps(source, target, precision))
    is_alike = gpu_speed.family(source) == gpu_speed.family(target)
    ends = (peak, bandwidth, power if is_alike else 1.0)
    mid = math.sqrt(peak * bandwidth)
    basis = Message("speed.resources")
    return Estimate(low=min(ends), mid=mid, high=max(ends), basis=basis, weak=not is_alike)


def spec_family(precision: str) -> gpu_speed.Family:
    """Return the family of the fit that a precision belongs to."""
    return "single" if gpu_speed.is_single(precision) else "half"


def _training(source: Gpu, target: Gpu, precision: str) -> Estimate:
    named = "tf32" if precision == "fp32" else precision
    source_specs, target_specs = (_specs(gpu, named) for gpu in (source, target))
    log = log_ratio(source, target, named)
    factor = gpu_speed.interval_factor(source_specs, target_specs, spec_family(named))
    fitted = coefficients("speed")["half"]["gpu"]
    unseen = [gpu.name for gpu in (source_specs, target_specs) if gpu.name not in fitted]
    basis = Message("speed.benchmarks", terms=_TERMS)
    if unseen:
        basis = Message("speed.specifications", gpus=join(unseen, "and"), terms=_TERMS)
    for gpu, sign in ((target, 1.0), (source, -1.0)):
        if not gpu_speed.trained_on(gpu):  # what its generation does in other work
            log += sign * gpu_speed.law("scaled-training").families.get(gpu_speed.family(gpu), 0.0)
            factor = max(factor, _SPECIFICATION_FACTOR)
    estimate = within(math.exp(log), factor, basis)
    return _weak_if_new(estimate, source, target)


def log_ratio(source: Gpu, target: Gpu, precision: str) -> float:
    """Return ln of the fitted speed-up of training."""
    part = spec_family(precision)
    return gpu_speed.log_score(_specs(target, precision), part) - gpu_speed.log_score(
        _specs(source, precision), part
    )


def _specs(gpu: Gpu, precision: str) -> gpu_speed.Specs:
    return gpu_speed.specs(gpu, gpu_speed.peak_tflops(gpu, precision))


def _damped(speed: Estimate, memory_fraction: float) -> Estimate:
    """Return a prediction for a job that leaves most of the memory empty: launches set its pace.

    Fitted on training at the same small batch; without counters nothing tells more.
    """
    row = coefficients("speed")["small"]
    mid, factor = speed.mid ** float(row["exponent"]), float(row["factor"])
    why = Message("speed.launches", share=round(memory_fraction, 2))
    return within(mid, factor, speed.basis).spanning([speed], why)
