"""No prediction passes what was measured: communication, number of GPUs, host, peak, bandwidth."""

from typing import Any

import pytest
from msgspec.structs import replace

from planner.models.estimate import Estimate
from planner.prediction.bounds import contradictions, utilisation
from planner.prediction.layout import Layout
from planner.prediction.predict import predict, split_time
from planner.prediction.profiled_step import operations_per_s, step_s
from planner.profile.model import Profile
from pricing.hardware import gpus
from tests.planner.factories import a_profile, kernel_speed_up, plan, predict_from, running, sold

BUSY = {"util.kernel_time": 0.97}
A100, H200 = gpus()["A100-SXM-80GB"], gpus()["H200-SXM-141GB"]


def language(**changes: Any) -> Profile:
    """1.3 billion parameters on 8 A100: the batch counts sequences, the rate tokens."""
    plain: dict[str, Any] = {
        "gpu_count": 8,
        "nodes": 1,
        "interconnect": "nvlink",
        "parallelism": "ddp",
        "parameters": 1.3e9,
        "batch_per_gpu": 8,
        "unit": "token",
        "rate_per_s": 150_000.0,
    }
    return a_profile(BUSY, **plain | changes)


def on(profile: Profile, target: Layout) -> Estimate:
    """The prediction for a target, as a plan makes it."""
    return predict_from(profile, (), target, (), split_time(profile))


def test_one_of_eight_gpus_takes_eight_times_as_long() -> None:
    """8 A100 -> 1: 300 h become about 2,400; a rate in tokens does not time a batch of samples."""
    hours = 300.0 / predict(language(), gpu="A100-SXM-80GB", gpu_count=1).mid
    assert hours == pytest.approx(2400.0, rel=0.05)


def test_one_small_gpu_is_slower_than_eight_large_ones() -> None:
    """8 A100 -> 1 A6000, once 16,462 times as fast: less than an eighth of the speed."""
    one = predict(language(), gpu="RTX-A6000", gpu_count=1)
    assert one.high < 0.125
    huge = language(parameters=7e9, batch_per_gpu=1, rate_per_s=27_000.0)
    assert predict(huge, gpu="RTX-A6000", gpu_count=1).high < 0.125


L40S = a_profile(
    BUSY, gpu="L40S", gpu_count=8, nodes=1, interconnect="pcie", mean_s=0.5, comm_s=0.22
)


@pytest.mark.parametrize("parameters", [None, 1.3e9, 70e9])
def test_measured_communication_is_the_most_that_better_links_gain(
    parameters: float | None,
) -> None:
    """8 L40S over PCIe, 0.22 of 0.5 s communication -> 8 H200: 200 h lose at most all of it."""
    job = replace(L40S, job=replace(L40S.job, parameters=parameters))
    alone = kernel_speed_up(job, H200)
    found = on(job, Layout(gpu=H200, gpu_count=8, interconnect="nvlink", nodes=1))
    assert 200.0 * 0.28 / 0.5 / alone.mid <= 200.0 / found.mid * 1.001 < 45.0
    assert 200.0 / found.high >= 200.0 * 0.28 / 0.5 / alone.high


def test_several_machines_use_what_was_measured_like_one() -> None:
    """32 V100 in 4 machines, a fifth communication -> 1 A100: by the GPUs' ratio, not in 208 h."""
    fields = {"mean_s": 0.5, "comm_s": 0.1, "parameters": 3.4e8, "network_gbps": 25.0}
    job = a_profile(
        BUSY, gpu="V100-16GB", gpu_count=32, nodes=4, interconnect="nvlink", **fields,
        precision="amp-fp16",
    )  # fmt: skip
    ratio = kernel_speed_up(job, A100).mid
    hours = 100.0 / predict(job, gpu="A100-SXM-80GB", gpu_count=1).mid
    assert hours == pytest.approx(100.0 * 32 * 0.8 / ratio)
    assert hours > 1000.0


def test_a_slow_network_is_not_unchanged() -> None:
    """2 machines at 3,200 Gbit/s -> 2 at 10 are slower, communication measured or not."""
    h100 = gpus()["H100-SXM-80GB"]
    for fields in ({}, {"mean_s": 0.5, "comm_s": 0.05}, {"mean_s": 0.5, "parameters": 1e9}):
        job = a_profile(
            BUSY, gpu=h100.name, gpu_count=16, nodes=2, interconnect="nvlink",
            network_gbps=3200.0, **fields,
        )  # fmt: skip
        fast, slow = (
            on(job, Layout(gpu=h100, gpu_count=16, nodes=2, interconnect="nvlink", network_gbps=g))
            for g in (3200.0, 10.0)
        )
        assert fast.mid == pytest.approx(1.0)
        assert slow.mid < 0.95
        assert slow.low < 0.6


def test_the_links_set_no_better_pace_for_faster_gpus() -> None:
    """PCIe to PCIe: a GPU three times as fast does not carry gradients any faster."""
    h100 = gpus()["H100-PCIe-80GB"]
    alone = kernel_speed_up(L40S, h100).mid
    found = on(L40S, Layout(gpu=h100, gpu_count=8, interconnect="pcie", nodes=1))
    computing, talking = 0.28, 0.22
    assert found.mid == pytest.approx(0.5 / (computing / alone + talking))


@pytest.mark.parametrize(
    ("unit", "seconds"),
    [
        ("image", 0.5),
        ("Samples", 0.5),
        ("step", 0.01),
        ("token", None),
        ("tokens", None),
        ("epoch", None),
        (None, None),
    ],
)
def test_a_batch_is_timed_by_a_rate_of_its_own_unit(
    unit: str | None, seconds: float | None
) -> None:
    """50 items on a GPU at 100 a second take half a second; other units are unknown."""
    known = step_s(a_profile(BUSY, batch_per_gpu=50, unit=unit, rate_per_s=100.0))
    assert known == (None if seconds is None else pytest.approx(seconds))


def test_operations_follow_parameters_and_tokens() -> None:
    """Six a parameter and token in training, two in inference; none without tokens."""
    job = language()
    assert operations_per_s(job) == 6 * 1.3e9 * 150_000
    serving = replace(job, job=replace(job.job, kind="inference_online"))
    assert operations_per_s(serving) == 2 * 1.3e9 * 150_000
    assert operations_per_s(language(unit="image")) is None
    assert operations_per_s(language(parallelism="expert")) is None


def test_a_prediction_stays_below_three_quarters_of_the_peak() -> None:
    """An A100 at 60 % of its peak makes no GPU exceed 75 % of its own, and it says so."""
    job = language(gpu_count=1, rate_per_s=0.6 * 312e12 / (6 * 1.3e9))
    assert utilisation(job) == pytest.approx(0.6)
    for name, gpu in gpus().items():
        if gpu.bf16_tflops is None or not gpu.memory_bandwidth_gb_s:
            continue
        found = predict(job, gpu=name)
        assert found.high * 0.6 * 312 <= 0.75 * gpu.bf16_tflops * (1 + 1e-9), name
    assert "75% of RTX-3090's peak" in predict(job, gpu="RTX-3090").basis


def test_a_rate_that_no_gpu_reaches_is_called_wrong() -> None:
    """Twice the peak of 8 A100: predictions are weak and the plan says which fields to look at."""
    job = language(rate_per_s=2 * 8 * 312e12 / (6 * 1.3e9))
    assert contradictions(job)
    found = predict(job, gpu="H100", gpu_count=8)
    assert found.weak
    assert "work.rate_per_s" in found.basis
    assert predict(job, gpu="A100-SXM-80GB", gpu_count=8).mid == pytest.approx(1.0)
    eight = sold("today", "18.00", gpu_count=8, interconnect="nvlink")
    assert any("work.rate_per_s" in w for w in plan(running(job, eight), offers=(eight,)).warnings)


def test_measured_bytes_stay_below_the_bandwidth() -> None:
    """A job that keeps an A100's memory 90 % busy gains at most the bandwidth's ratio over 0.9."""
    job = a_profile({**BUSY, "util.dram_active": 0.9}, precision="amp-fp16")
    for name in ("H100-SXM-80GB", "L4", "L40S", "T4"):
        ratio = (gpus()[name].memory_bandwidth_gb_s or 0.0) / (A100.memory_bandwidth_gb_s or 1.0)
        assert predict(job, gpu=name).high <= ratio / 0.9 * (1 + 1e-9)


def test_a_smaller_host_holds_a_job_back() -> None:
    """24 of 32 cores busy -> 8 cores: a third of the speed at most, whatever the GPU."""
    job = a_profile(BUSY, host={"cpu_util": 0.75}, cpu_cores=32)
    found = on(job, Layout(gpu=H200, cpu_cores=8.0))
    assert found.high == pytest.approx(8 / 24)
    assert "24.0 cores busy" in found.basis
    assert on(job, Layout(gpu=H200, cpu_cores=96.0)).mid > 1.2


def test_fewer_of_the_same_gpus_are_never_faster() -> None:
    """Even where nine tenths of the step were communication."""
    job = a_profile(BUSY, gpu_count=8, interconnect="pcie", mean_s=1.0, comm_s=0.93)
    for count in range(1, 8):
        found = on(job, Layout(gpu=A100, gpu_count=count, interconnect="nvlink", nodes=1))
        assert found.high <= 1.0


def test_a_host_bound_job_loses_its_processes_with_its_gpus() -> None:
    """8 processes that launch kernels all the time -> 1: an eighth of the launches."""
    job = a_profile(
        {"util.kernel_time": 0.3}, host={"cpu_util": 0.1}, cpu_cores=96, gpu_count=8, nodes=1,
        interconnect="nvlink",
    )  # fmt: skip
    assert split_time(job).host > 0.5
    assert predict(job, gpu="A100-SXM-80GB", gpu_count=1).mid < 0.2
