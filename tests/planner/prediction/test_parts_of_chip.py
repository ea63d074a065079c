"""Parts of a chip that set the pace: single precision, ray tracing, video engines.

Every figure here was worked out by hand from the specifications before the product was run.
"""

import pytest

from planner.prediction.kernels import lacks_of
from planner.prediction.predict import predict
from planner.profile.model import Profile
from pricing.hardware import gpus
from tests.planner.factories import a_profile, kernel_speed_up

FILLED = {"util.kernel_time": 0.97, "util.sm_active": 0.9, "util.dram_active": 0.3}


def frames(gpu: str) -> Profile:
    """Frames that Blender renders, with the SMs at work and the tensor cores unmeasured."""
    return a_profile(
        FILLED, gpu=gpu, framework="blender", precision="fp32", kind="inference_offline"
    )


def transcoding(gpu: str, decoder: float, encoder: float | None) -> Profile:
    """Videos that ffmpeg turns into others, the SMs next to idle."""
    busy = {"util.kernel_time": 0.12, "util.sm_active": 0.1, "util.dram_active": 0.1}
    engines = {"util.decoder": decoder} | ({"util.encoder": encoder} if encoder else {})
    return a_profile(
        busy | engines,
        gpu=gpu,
        framework="ffmpeg",
        precision="fp16",
        kind="inference_offline",
        unit="frame",
        rate_per_s=700.0,
    )


def test_rendering_goes_by_single_precision_outside_the_tensor_cores() -> None:
    """V-Ray gained 2.2x from an RTX 3090 to a 4090 (Chaos); TF32 rates would say the same.

    An A10G is the case that tells: 31.5 against an L4's 30.3 TFLOP/s in single precision, 35
    against 60 in TF32. Nobody renders faster on an L4, at half the bandwidth.
    """
    speed = kernel_speed_up(frames("RTX-3090"), gpus()["RTX-4090"])
    assert speed.low < 2.2 < speed.high
    assert speed.mid == pytest.approx(1.85, abs=0.05)
    assert kernel_speed_up(frames("A10G"), gpus()["L4"]).mid < 1.0


def test_a_renderer_stays_on_cores_that_trace_rays() -> None:
    """A100, H100 and B200 have none; a job that runs on one is not held to what it lacks."""
    lacks = lacks_of(frames("A10G"), gpus()["A10G"])
    assert all("RT cores" in str(lacks(gpus()[n])) for n in ("A100-SXM-80GB", "B200-SXM"))
    assert not any(lacks(gpus()[n]) for n in ("T4", "L4", "L40S", "RTX-A6000", "RTX-5090"))
    assert (
        lacks_of(frames("A100-SXM-80GB"), gpus()["A100-SXM-80GB"])(gpus()["H100-SXM-80GB"]) is None
    )


def test_rendering_without_such_cores_is_a_weak_guess() -> None:
    """Blender Open Data has an H100 at about 1.3 times an A100, specifications say twice that."""
    speed = kernel_speed_up(frames("A100-SXM-80GB"), gpus()["H100-SXM-80GB"])
    assert speed.weak
    assert speed.low < 1.33 < speed.high


def test_single_precision_of_a_network_may_be_tf32_or_not() -> None:
    """With the tensor cores unmeasured the range spans both; its middle is that without them."""
    job = a_profile(FILLED, gpu="A10G", framework="pytorch", precision="fp32")
    speed = kernel_speed_up(job, gpus()["A100-SXM-80GB"])
    # c 0.9, m 0.3: exponents 0.75 and 0.25, damped by 0.95. (19.5 / 31.5)^0.75 (2039 / 600)^0.25
    # is 0.948; in TF32 (156 / 35)^0.75 (2039 / 600)^0.25 is 4.17.
    assert speed.mid == pytest.approx(0.948**0.95, rel=0.01)
    assert speed.high == pytest.approx(4.17**0.95 * 1.43, rel=0.01)


@pytest.mark.parametrize(
    ("target", "speed"),
    [
        ("L4", 2.0),  # 4 NVDEC and 2 NVENC for 2 and 1
        ("RTX-4090", 0.5),  # 1 NVDEC: twice as many frames for each
        ("RTX-A6000", 1.0),
        ("L40S", 1.5),  # 3 NVDEC
    ],
)
def test_the_number_of_video_engines_sets_the_speed(target: str, speed: float) -> None:
    """An A10G has 2 NVDEC and 1 NVENC (NVIDIA's Video Encode and Decode GPU Support Matrix)."""
    predicted = predict(transcoding("A10G", 0.95, 0.9), gpu=target)
    assert predicted.mid == pytest.approx(speed)
    assert "NVDEC" in predicted.basis
    assert predicted.high <= speed * 1.4 + 1e-9


def test_the_busier_engine_there_sets_the_speed() -> None:
    """Of an L4 on a T4: decoding 0.6 x 4 / 2 = 1.2, encoding 0.8 x 2 / 1 = 1.6; 0.8 / 1.6."""
    assert predict(transcoding("L4", 0.6, 0.8), gpu="T4").mid == pytest.approx(0.5)


def test_engines_that_nobody_counted_make_a_weak_guess() -> None:
    """How many NVDEC an L20 has, the table does not say."""
    assert predict(transcoding("A10G", 0.95, None), gpu="L20").weak


def test_engines_bound_work_that_kernels_limit() -> None:
    """Decoding 0.6 on 2 NVDEC is 1.2 on the one of an RTX 4090: 0.83x, 1.17x if each is faster."""
    job = a_profile(
        {"util.kernel_time": 0.95, "util.decoder": 0.6},
        gpu="A10G",
        precision="fp16",
        kind="inference_offline",
    )
    speed = predict(job, gpu="RTX-4090")
    assert speed.high == pytest.approx(1.4 / 1.2)
    assert "video engines" in speed.basis
