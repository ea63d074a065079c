"""What a job uses of its GPU that another chip may not have: formats, FP64, video, NVLink.

Each need comes from the profile, and asks for no more than today's GPU has: what works there
without, works elsewhere without.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from planner.profile.model import Profile
from pricing.hardware import Gpu

# Compute capability from which NVIDIA's GPUs have a format (CUDA programming guide).
_FIRST_CAPABILITY = {
    "fp16": (5.3, "fp16"),
    "amp-fp16": (5.3, "fp16"),
    "amp-bf16": (8.0, "bf16"),
    "bf16": (8.0, "bf16"),
    "tf32": (8.0, "TF32"),
    "fp8": (8.9, "fp8"),
    "fp4": (10.0, "fp4"),
    "int8": (6.1, "int8 dot products"),
}
# FP64 at 1/2 or 1/3 of FP32 is built for it; at 1/32 or 1/64 it is there for compatibility.
_FULL_FP64 = 0.25
_USES_FP64 = 0.05  # of the cycles: above what index arithmetic and stray kernels take


@dataclass(frozen=True, slots=True, kw_only=True)
class _Need:
    """A part of a chip.

    Attributes:
        used: whether a job uses it.
        has: whether a GPU has it; None = unknown.
        says: what the other GPU is without.
    """

    used: Callable[[Profile], bool]
    has: Callable[[Gpu], bool | None]
    says: Callable[[Gpu], str]


def missing(profile: Profile, today: Gpu, target: Gpu) -> Iterator[str]:
    """Yield what the job uses of today's GPU and the target does not have, or is not known to."""
    yield from _format(profile, today, target)
    for need in _NEEDS:
        if not need.used(profile) or need.has(today) is False:
            continue
        found = need.has(target)
        if not found:
            yield need.says(target) + (" (unknown)" if found is None else "")


def uses_fp64(profile: Profile) -> bool:
    """Return whether double precision carries the job: named, or its pipe was seen busy."""
    busy = profile.mean("util.fp64_active")
    return profile.job.precision == "fp64" or (busy is not None and busy >= _USES_FP64)


def has_full_fp64(gpu: Gpu) -> bool | None:
    """Return whether FP64 runs at a full rate, a third of FP32's or more; None = unknown."""
    if gpu.fp64_tflops is None or not gpu.fp32_tflops:
        return None
    return gpu.fp64_tflops / gpu.fp32_tflops >= _FULL_FP64


def _format(profile: Profile, today: Gpu, target: Gpu) -> Iterator[str]:
    first, name = _FIRST_CAPABILITY.get(profile.job.precision or "", (0.0, ""))
    here, there = (float(gpu.compute_capability or first) for gpu in (today, target))
    if there < min(first, here):
        yield f"{target.name} has no {name}; compute capability {first:g} has"


def _video(slot: str) -> Callable[[Profile], bool]:
    return lambda profile: (profile.mean(slot) or 0.0) > 0.0


def _count(field: str) -> Callable[[Gpu], bool | None]:
    def has(gpu: Gpu) -> bool | None:
        engines: int | None = getattr(gpu, field)
        return None if engines is None else engines > 0

    return has


def _rate(gpu: Gpu) -> str:
    if gpu.fp64_tflops is None or not gpu.fp32_tflops:
        return f"FP64 rate of {gpu.name}"
    share = gpu.fp32_tflops / gpu.fp64_tflops
    return f"{gpu.name} does FP64 at 1/{share:.0f} of its FP32 rate; this job computes in FP64"


_NEEDS = (
    _Need(used=uses_fp64, has=has_full_fp64, says=_rate),
    _Need(
        used=_video("util.encoder"),
        has=_count("video_encoders"),
        says=lambda gpu: f"{gpu.name} has no video encoder (NVENC); this job uses one",
    ),
    _Need(
        used=_video("util.decoder"),
        has=_count("video_decoders"),
        says=lambda gpu: f"{gpu.name} has no video decoder (NVDEC); this job uses one",
    ),
)
