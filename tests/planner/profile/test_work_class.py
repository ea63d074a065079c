"""The class of a job follows from what its profile says, and each class from measurements."""

import math
from typing import Any

import pytest

from planner.models.coefficients import coefficients, fitted_as
from planner.models.estimate import Estimate
from planner.models.gpu_speed import FEATURES, law, work_class
from planner.prediction.kernels import used_precision
from pricing.hardware import gpus
from tests.planner.factories import a_profile, kernel_speed_up

LLM = {"precision": "amp-bf16", "parameters": 7e9}


def told(metrics: dict[str, float] | None = None, **fields: Any) -> str:
    """The class of a profile with these fields."""
    profile = a_profile(metrics or {}, **fields)
    source = gpus()[str(profile.hardware.gpu)]
    return work_class(profile, used_precision(profile, source)[0])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "training"),
        ({"precision": "fp32"}, "training"),
        ({"gpu_count": 8}, "scaled-training"),
        ({"gpu_count": 8, "mean_s": 0.5, "comm_s": 0.2}, "training"),
        (LLM, "llm-training"),
        ({**LLM, "gpu_count": 64, "unit": "token"}, "llm-training"),
        ({"parameters": 1.25e8, "unit": "token"}, "llm-training"),
        ({"parameters": 1.25e8, "parallelism": "fsdp"}, "llm-training"),
        ({"parameters": 1.1e8, "unit": "sample"}, "training"),
        ({**LLM, "unit": "image"}, "training"),
        ({"precision": "fp32", "parameters": 8e8}, "fp32"),
        ({"precision": "fp32", "kind": "inference_offline"}, "fp32"),
        ({"precision": "tf32", "kind": "inference_offline"}, "inference"),
        ({"kind": "inference_online"}, "inference"),
        ({"kind": "inference_online", "unit": "image", "parameters": 1.2e10}, "diffusion"),
        ({"kind": "inference_online", "unit": "image", "parameters": 8e7}, "inference"),
        ({"kind": "inference_online", "unit": "output_token"}, "llm-decode"),
        ({"kind": "inference_online", "parameters": 8e9}, "llm-decode"),
        ({"kind": "inference_online", "framework": "vLLM"}, "llm-decode"),
        ({"kind": "inference_offline", "unit": "token"}, "llm-inference"),
        ({"kind": "inference_offline", "unit": "token", "batch_per_gpu": 256}, "llm-inference"),
        ({"kind": "inference_offline", "unit": "token", "batch_per_gpu": 16}, "llm-decode"),
        ({"kind": "inference_online", "unit": "prompt"}, "llm-prefill"),
        ({"precision": "fp64"}, "other"),
        ({"kind": "interactive"}, "other"),
        ({"kind": "unknown"}, "other"),
    ],
    ids=str,
)
def test_a_profile_tells_its_class(fields: dict[str, Any], expected: str) -> None:
    """Kind, precision, unit, parameters, engine and GPUs decide; nothing else."""
    assert told(**fields) == expected


@pytest.mark.parametrize("kind", ["training", "inference_online", "interactive"])
def test_idle_tensor_cores_are_the_class_of_single_precision(kind: str) -> None:
    """Whatever is named, work outside the tensor cores goes by the CUDA rate."""
    assert told({"util.tensor_active": 0.0}, kind=kind, precision="amp-fp16") == "fp32"


def test_busy_tensor_cores_show_that_tf32_is_on() -> None:
    """fp32 with tensor cores at work is TF32."""
    profile = a_profile({"util.tensor_active": 0.3}, precision="fp32", kind="inference_online")
    assert used_precision(profile, gpus()["A100-SXM-80GB"])[0] == "tf32"


def test_double_precision_goes_by_its_own_rate() -> None:
    """A V100 does FP64 five times as fast as an L40S, whatever the two do in single precision."""
    job = a_profile({}, gpu="V100-32GB", precision="fp64", kind="unknown")
    l40s, h100 = (kernel_speed_up(job, gpus()[name]) for name in ("L40S", "H100-SXM-80GB"))
    assert l40s.mid < 0.6
    assert h100.mid > 1.5
    assert l40s.weak
    busy = {"util.fp64_active": 0.6, "util.dram_active": 0.4}
    counted = kernel_speed_up(a_profile(busy, gpu="V100-32GB", kind="unknown"), gpus()["L40S"])
    assert counted.mid < 0.5
    assert not counted.weak


@pytest.mark.parametrize("source", ["Tesla T4", "V100-16GB", "P100-SXM-16GB"])
@pytest.mark.parametrize("kind", ["training", "inference_offline"])
def test_single_precision_does_not_become_tf32_by_itself(source: str, kind: str) -> None:
    """From before Ampere the middle is that of the CUDA rate, and the interval spans both."""
    h100 = gpus()["H100-SXM-80GB"]
    named, off, on = (
        kernel_speed_up(a_profile(m, gpu=source, kind=kind, precision=p), h100)
        for m, p in (({}, "fp32"), ({"util.tensor_active": 0.0}, "fp16"), ({}, "tf32"))
    )
    assert named.mid == pytest.approx(off.mid)
    assert named.low <= min(off.low, on.low)
    assert named.high >= max(off.high, on.high)
    assert "TF32 may be on there or not" in named.basis


@pytest.mark.parametrize("name", [n for n in coefficients("classes") if n != "fitted"])
def test_more_of_a_resource_never_slows(name: Any) -> None:
    """No exponent is below zero, and no interval is narrower on a GPU that was not measured."""
    found = law(name)
    assert all(exponent >= 0.0 for exponent in found.exponents)
    assert len(found.exponents) == len(FEATURES)
    assert found.strange >= found.unseen >= found.error_measured > 0.0


def test_a_gpu_that_was_not_measured_says_so() -> None:
    """The A40 is of a measured family: a wider interval, its name, and not weak."""
    job = a_profile({}, kind="inference_online", gpu="RTX-3090", precision="amp-fp16")
    seen, unseen = (kernel_speed_up(job, gpus()[name]) for name in ("RTX-4090", "A40"))
    assert "A40 not among the measured GPUs" in unseen.basis
    assert not unseen.weak
    assert "not among" not in seen.basis


@pytest.mark.parametrize(("trust", "says"), [(1.0, ""), (0.5, "halfway to"), (0.0, "own law")])
def test_a_law_that_is_not_ahead_goes_by_the_rule(trust: float, says: str) -> None:
    """By its trust between the law and the geometric mean, in logarithms, and said."""
    job = a_profile({}, kind="inference_online", gpu="RTX-3090", precision="amp-fp16")
    target, shipped = gpus()["RTX-4090"], coefficients("classes")

    def by(share: float) -> Estimate:
        row = {**shipped["inference"], "trust": share}
        with fitted_as(classes={**shipped, "inference": row}):
            return kernel_speed_up(job, target)

    rule = math.sqrt(165.2 / 71.0 * 1008.0 / 936.0)
    assert by(trust).mid == pytest.approx(by(1.0).mid ** trust * rule ** (1.0 - trust), rel=0.02)
    assert (says or "inference") in by(trust).basis
    assert (trust == 1.0) == ("geometric mean" not in by(trust).basis)


def test_other_coefficients_hold_within_their_block_only() -> None:
    """An evaluation predicts by what it left out; after it the shipped coefficients are back."""
    shipped = coefficients("classes")
    with fitted_as(classes={**shipped, "fp32": {**shipped["fp32"], "peak": 1.0}}):
        assert law("fp32").exponents[0] == 1.0
    assert law("fp32").exponents[0] == shipped["fp32"]["peak"]
