"""The dense rate at which a GPU does the arithmetic of a precision."""

from collections.abc import Mapping
from functools import lru_cache

from pricing.errors import InputError
from pricing.hardware import Gpu

_AMPERE = 8.0
CUDA = "cuda"  # single precision outside the tensor cores: TF32 off, or AMP without effect
SINGLE_PRECISION = ("fp32", "tf32")

# The columns of the hardware table that may carry a precision; the fastest one that the GPU has
# does. Four-bit weights are unpacked to half precision before they are multiplied; `fp4` is
# arithmetic in four bits where the GPU has it.
_RATES: Mapping[str, tuple[str, ...]] = {
    "fp64": ("fp64_tflops",),
    "fp32": ("fp32_tflops", "tf32_tflops"),
    "tf32": ("fp32_tflops", "tf32_tflops"),
    "amp-fp16": ("fp32_tflops", "fp16_tflops"),
    "amp-bf16": ("fp32_tflops", "fp16_tflops", "bf16_tflops"),
    "fp16": ("fp32_tflops", "fp16_tflops"),
    "bf16": ("fp32_tflops", "fp16_tflops", "bf16_tflops"),
    "fp8": ("fp16_tflops", "fp8_tflops"),
    "int8": ("fp16_tflops", "int8_tops"),
    "int4": ("fp32_tflops", "fp16_tflops"),
    "fp4": ("fp16_tflops", "fp8_tflops", "fp4_tflops"),
    CUDA: ("fp32_tflops",),
}


@lru_cache(maxsize=1024)  # models x precisions
def peak_tflops(gpu: Gpu, precision: str | None) -> float:
    """Return the dense rate, TFLOP/s, at which a GPU does a precision; None = single precision.

    Raises:
        InputError: the hardware table has no rate of that GPU.
    """
    names = _RATES.get(precision or "fp32", _RATES["fp32"])
    known = [rate for rate in (getattr(gpu, name) for name in names) if rate]
    if not known:
        raise InputError(f"the arithmetic rates of {gpu.name} are not known.")
    return float(max(known))


def is_single(precision: str | None) -> bool:
    """Return whether the numbers are of 32 bits, on tensor cores or off."""
    return precision in (*SINGLE_PRECISION, CUDA)


def has_tf32(gpu: Gpu) -> bool:
    """Return whether single precision runs on tensor cores: compute capability 8 and later."""
    return gpu.tf32_tflops is not None or float(gpu.compute_capability or 0.0) >= _AMPERE
