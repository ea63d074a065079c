"""Probes: the same job measured elsewhere moves a prediction to what was measured."""

from typing import Any

import pytest
from msgspec.structs import replace

from planner.prediction.predict import predict
from planner.prediction.probes import relative_speed
from planner.profile.model import Profile, Work
from pricing.errors import InputError
from tests.planner.factories import a_profile, plan, running, sold


def measured(rate: float, **fields: Any) -> Profile:
    """A busy training job with a rate in images a second."""
    profile = a_profile({"util.kernel_time": 0.97}, precision="amp-fp16", **fields)
    return replace(profile, work=Work(unit="image", rate_per_s=rate))


TODAY = measured(100.0)


def test_a_probe_on_the_target_is_the_answer() -> None:
    """What was measured on the wanted GPU counts, to the spread between runs."""
    there = predict(TODAY, gpu="H100-SXM-80GB", probes=[measured(210.0, gpu="H100-SXM-80GB")])
    assert there.mid == pytest.approx(2.1)
    assert there.high / there.low < 1.2
    assert "measured by a probe on 1x H100-SXM-80GB" in there.basis


def test_a_probe_nearby_narrows_the_answer() -> None:
    """From a probe on the H100 to the H200 is a shorter way than from the A100."""
    blind = predict(TODAY, gpu="H200-SXM-141GB")
    known = predict(TODAY, gpu="H200-SXM-141GB", probes=[measured(150.0, gpu="H100-SXM-80GB")])
    assert known.high / known.low < blind.high / blind.low
    assert known.mid < blind.mid  # 1.5 measured, more expected


def test_two_gpus_say_how_eight_will_do() -> None:
    """2 GPUs at 1.6 times one lose a quarter; a ring of 8 moves 1.75 times as much."""
    two = measured(160.0, gpu_count=2, interconnect="nvlink")
    eight = predict(TODAY, gpu="A100-SXM-80GB", gpu_count=8, probes=[two])
    assert eight.mid == pytest.approx(8 / (1 + 0.25 * 1.75))
    blind = predict(TODAY, gpu="A100-SXM-80GB", gpu_count=8)
    assert eight.high / eight.low < blind.high / blind.low
    assert eight.high < blind.mid


def test_a_probe_that_adds_nothing_changes_nothing() -> None:
    """A probe that equals the profile leaves the prediction as it was."""
    plain = predict(TODAY, gpu="L40S")
    again = predict(TODAY, gpu="L40S", probes=[TODAY])
    assert (again.low, again.mid, again.high) == (plain.low, plain.mid, plain.high)


@pytest.mark.parametrize(
    ("probe", "said"),
    [
        (measured(1.0, name="other"), "no job here.* --name "),
        (replace(TODAY, work=None), "need a rate in one unit"),
        (replace(TODAY, work=Work(unit="token", rate_per_s=5.0)), "need a rate in one unit"),
    ],
)
def test_a_probe_that_cannot_be_compared_is_refused(probe: Profile, said: str) -> None:
    """Another job's name, no rate, another unit: the sentence says what to change."""
    with pytest.raises(InputError, match=said):
        predict(TODAY, gpu="H100", probes=[probe])


def test_steps_and_batches_compare_too() -> None:
    """Batch x GPUs over the time of a step stands in for a rate."""
    slow, fast = (
        a_profile({}, batch_per_gpu=64, mean_s=mean, gpu_count=count)
        for mean, count in ((0.2, 1), (0.25, 2))
    )
    assert relative_speed(slow, fast) == pytest.approx(1.6)


def _rated(gpus: int, rate: float, nodes: int = 1) -> Profile:
    job = {"precision": "amp-fp16", "batch_per_gpu": 32, "unit": "sample", "rate_per_s": rate}
    return a_profile({}, gpu="T4", gpu_count=gpus, nodes=nodes, **job)


def test_a_probe_faster_than_linear_promises_no_more_than_linear() -> None:
    """Two GPUs that measured 2.3 times one are a spread: eight are promised eight times at most."""
    alone, two = _rated(1, 100.0), _rated(2, 230.0)
    eight = predict(alone, gpu="T4", gpu_count=8, probes=(two,))
    assert 7.5 < eight.mid <= 8.0 + 1e-9
    assert predict(alone, gpu="T4", gpu_count=2, probes=(two,)).mid == pytest.approx(2.3)


def test_measured_scaling_beats_what_is_usual() -> None:
    """With a probe of several GPUs, more of them follow from it, whatever others' boxes did."""
    alone, two = _rated(1, 100.0), _rated(2, 120.0)
    eight = predict(alone, gpu="T4", gpu_count=8, probes=(two,))
    assert eight.mid < 5.0
    assert "communication measured on 2 GPUs" in eight.basis


def test_between_measured_counts_a_speed_lies_between_theirs() -> None:
    """One T4 does 250 images a second and eight 125: four lie between the two."""
    eight, single = (measured(rate, gpu="T4", gpu_count=n) for rate, n in ((125.0, 8), (250.0, 1)))
    assert predict(eight, gpu="T4", probes=[single]).mid == pytest.approx(2.0)
    four = predict(eight, gpu="T4", gpu_count=4, probes=[single])
    assert 0.9 < four.low <= four.mid <= four.high < 2.2  # but for the spread of runs
    assert 1.0 < four.mid < 2.0


@pytest.mark.parametrize("kind", ["training", "simulation"])
def test_fewer_gpus_that_were_measured_faster_come_first(kind: str) -> None:
    """One GPU in half the time of eight: its machine is what to do, and the waste is 15/16."""
    offers = (sold("eight", "8.00", gpu_count=8), sold("one", "1.00"))
    job = running(measured(125.0, gpu_count=8, kind=kind), offers[0])
    probe = replace(measured(250.0, kind=kind), job=job.job)
    made = plan(job, offers=offers, probes=(probe,)).jobs[0]
    assert made.findings[0].code == "poor-scaling"
    assert made.findings[0].waste_fraction == pytest.approx(15 / 16)
    assert made.now is not None
    assert made.now.actions == ("fewer-gpus",)
    assert made.now.time_factor == pytest.approx(0.5)
    unprobed = plan(job, offers=offers).jobs[0].findings
    assert "poor-scaling" not in {finding.code for finding in unprobed}


def test_gpus_that_scale_are_left_alone() -> None:
    """Eight do 7.2 times the work of one: nine tenths of linear is no finding."""
    offers = (sold("eight", "8.00", gpu_count=8), sold("one", "1.00"))
    job = running(measured(720.0, gpu_count=8), offers[0])
    made = plan(job, offers=offers, probes=(replace(measured(100.0), job=job.job),)).jobs[0]
    assert "poor-scaling" not in {finding.code for finding in made.findings}
