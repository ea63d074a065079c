"""A profile of a slice (MIG) of a GPU: what it says of the whole GPU, of other GPUs, of sharing."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from planner.prediction.bounds import utilisation
from planner.prediction.predict import predict
from planner.prediction.probes import speed_on_slice
from planner.prediction.sharing import predict_sharing
from planner.prediction.slices import on_whole, whole_gpu
from planner.profile.codec import dump, parse_profiles
from planner.profile.model import Hardware, Profile, Statistics
from planner.profile.source import memory_room_gib, source_slice, unknown_slice
from planner.proof.comparability import compare
from planner.signals.compute_share import compute_share
from planner.signals.signals import read_signals
from pricing.errors import InputError
from pricing.hardware import gpus, slice_in_name
from tests.planner.factories import TODAY, a_profile, plan, running, sold

EXAMPLES = Path(__file__).parents[3] / "examples"
A100 = gpus()["A100-SXM-80GB"]


def job(name: str = "a", busy: float = 0.8, gib: float = 6.0, **fields: Any) -> Profile:
    """A job measured on an A100, on the whole of it if no slice is named."""
    metrics = {"util.kernel_time": Statistics(mean=busy, p95=busy), "mem.used_gib": gib}
    return a_profile(metrics, **{"name": name, "precision": "amp-bf16"} | fields)


@pytest.mark.parametrize(
    ("named", "computes", "gib"),
    [
        ("2g.20gb", 2, 20.0),
        ("1g.10gb+me", 1, 10.0),
        ("1c.3g.40gb", 1, 40.0),
    ],
)
def test_a_slice_is_known_by_its_name(named: str, computes: int, gib: float) -> None:
    """Engines beside it do not count; a part of a slice has its own compute and all its memory."""
    found = source_slice(job(slice=named))
    assert found is not None
    assert (found.compute_slices, found.memory_gib) == (computes, gib)


@pytest.mark.parametrize("named", ["7g.80gb", None])
def test_all_of_a_gpu_is_no_slice(named: str | None) -> None:
    """Whoever has the whole GPU was measured on it."""
    profile = job(slice=named)
    assert source_slice(profile) is None
    assert unknown_slice(profile) is None
    assert on_whole(profile) is profile


def test_the_name_of_a_device_tells_its_slice() -> None:
    """PyTorch and NVML end a device's name in its slice; the field itself goes before it."""
    named = job(gpu="NVIDIA A100-SXM4-80GB MIG 3g.40gb")
    assert source_slice(named) == A100.slice_called("3g.40gb")
    told = replace(named, hardware=replace(named.hardware, slice="1g.10gb"))
    assert source_slice(told) == A100.slice_called("1g.10gb")
    assert slice_in_name("NVIDIA A100-SXM4-80GB") is None


@pytest.mark.parametrize("wrong", ["half", "2g", "20gb", "2g.20gb beside others", "0g.0gb"])
def test_a_word_that_is_no_slice_is_refused(wrong: str) -> None:
    """A typing error ends with the field and what it should be, not with a plan of a whole GPU."""
    document = json.loads(dump((job(),))) | {"hardware": {"gpu": "A100", "slice": wrong}}
    with pytest.raises(InputError, match=r"hardware\.slice is .*such as 2g\.20gb"):
        parse_profiles(json.dumps(document).encode(), "a.json")


@pytest.mark.parametrize(
    ("gpu", "said"),
    [("A100-SXM-80GB", "slices of a A100-SXM-80GB are 1g.10gb"), ("T4", "a T4 has none")],
)
def test_a_slice_that_the_gpu_does_not_have_moves_nobody(gpu: str, said: str) -> None:
    """The plan warns, and predictions from it are weak: nothing is recommended on them."""
    here = sold("here", "1.50", gpu)
    profile = running(job(gpu=gpu, slice="5g.60gb"), here)
    assert predict(profile, gpu="H100-SXM-80GB").weak
    made = plan(profile, offers=(here, sold("cheap", "0.10", "H100-SXM-80GB")))
    assert any(said in one for one in made.warnings), made.warnings
    assert made.jobs[0].recommended == "o0"


def test_the_whole_gpu_is_as_fast_as_the_slice_or_faster_in_proportion() -> None:
    """Two of seven slices: the whole is 1 to 3.5 times as fast, most likely the root of that."""
    found = whole_gpu(job(slice="2g.20gb"))
    assert found.low == 1.0
    assert found.mid == pytest.approx(3.5**0.5)
    assert found.high == pytest.approx(3.5, rel=0.02)
    alike = predict(job(busy=1.0, slice="2g.20gb"), gpu="A100-SXM-80GB")
    assert alike.mid == pytest.approx(3.5**0.5)
    assert alike.low < 1.0
    assert alike.high > 3.5


def test_another_gpu_is_compared_with_the_slice_not_with_the_gpu() -> None:
    """A smaller GPU is faster than a small slice of a large one."""
    whole, part = (predict(job(busy=1.0, slice=s), gpu="L40S") for s in (None, "1g.10gb"))
    assert part.mid == pytest.approx(whole.mid * 7**0.5)


def test_what_a_job_takes_of_a_slice_is_not_what_it_takes_of_the_gpu() -> None:
    """Busy all the time on a seventh: less of the whole; a service answers no more requests."""
    service = job(busy=0.8, slice="1g.10gb", kind="inference_online")
    assert compute_share(on_whole(service)) == pytest.approx(0.8 / 7**0.5)
    training = compute_share(on_whole(job(busy=0.8, slice="1g.10gb")))
    assert training == pytest.approx(0.8 / 7**0.5 / (0.2 + 0.8 / 7**0.5))
    four = [replace(service, job=replace(service.job, name=name)) for name in "abcd"]
    assert all(one.mid < 1.0 for one in predict_sharing([job(n, busy=0.8) for n in "abcd"], "mps"))
    assert all(one.mid > 0.8 for one in predict_sharing(four, "mps"))


def test_memory_and_peak_are_those_of_the_slice() -> None:
    """Nine of ten GiB are nine tenths; the peak rate is two sevenths of the GPU's."""
    assert memory_room_gib(job(slice="1g.10gb")) == 10.0
    assert read_signals(job(gib=9.0, slice="1g.10gb"))["mem.used_fraction.max"] == 0.9
    sized = {"parameters": 1e9, "unit": "token", "rate_per_s": 1000.0}
    whole, part = (utilisation(job(slice=s, **sized)) for s in (None, "2g.20gb"))
    assert whole
    assert part == pytest.approx(3.5 * whole)


def probe(rate: float, name: str = "a", **fields: Any) -> Profile:
    """The same job with a rate."""
    return job(name, unit="image", rate_per_s=rate, **fields)


@pytest.mark.parametrize(
    ("measured", "other", "found"),
    [
        ((100.0, None), (40.0, "2g.20gb"), ("2g.20gb", 0.4)),
        ((40.0, "2g.20gb"), (100.0, None), ("2g.20gb", 0.4)),
        ((100.0, None), (103.0, "4g.40gb"), ("4g.40gb", 1.0)),
        ((100.0, None), (90.0, None), None),
        ((40.0, "2g.20gb"), (30.0, "1g.10gb"), None),
        ((100.0, None), (40.0, "5g.60gb"), None),
        ((100.0, None), (40.0, "1c.3g.40gb"), None),
    ],
    ids=["a probe", "the job", "noise", "no slice", "two slices", "unknown", "a part of one"],
)
def test_a_probe_tells_the_speed_on_its_slice(
    measured: tuple[float, str | None],
    other: tuple[float, str | None],
    found: tuple[str, float] | None,
) -> None:
    """One of the two is of the whole GPU, the other of a slice of it."""
    (rate, piece), (there, part) = measured, other
    told = speed_on_slice(probe(rate, slice=piece), [probe(there, slice=part)])
    assert told == (found and (found[0], pytest.approx(found[1])))
    elsewhere = probe(there, slice=part, gpu="H100-SXM-80GB")
    assert speed_on_slice(probe(rate, slice=piece), [elsewhere]) is None


@pytest.mark.parametrize(
    ("busy", "rate", "shared"),
    [(0.2, 60.0, (True, False)), (0.5, 97.0, (False, True))],
    ids=["slower than the rule", "faster than the rule"],
)
def test_a_probe_on_a_slice_decides_who_shares_by_slices(
    busy: float, rate: float, shared: tuple[bool, bool]
) -> None:
    """What both jobs did on a slice stands in place of the rule of thumb."""
    isolated = {"gib": 8.0, "trust": "isolated", "busy": busy}
    jobs = [running(probe(100.0, name, **isolated)) for name in "ab"]
    both = tuple(probe(rate, name, slice="3g.40gb", **isolated) for name in "ab")
    for probes, want in zip(((), both), shared, strict=True):
        made = plan(*jobs, offers=(TODAY,), probes=probes)
        assert made.fleet is not None
        assert any(one.mode == "mig" for one in made.fleet.placements) is want


def test_the_plan_says_that_a_slice_was_measured() -> None:
    """What is taken of the whole GPU, and what is billed, is an assumption of the plan."""
    made = plan(running(job(slice="2g.20gb")), offers=(TODAY,))
    (said,) = (one for one in made.assumptions if "2g.20gb" in one)
    assert "the whole GPU is taken to be 1.9 times as fast (1.0-3.5)" in said


def test_what_stays_on_its_slice_gains_what_is_changed_alone() -> None:
    """On today's machine the slice is the same; a machine alike gives the whole GPU."""
    starved = EXAMPLES / "visual-search.json"
    (example,) = parse_profiles(starved.read_bytes(), starved.name)
    offers = (TODAY, sold("alike", "1.90"))

    def gains(piece: str | None) -> dict[str, float]:
        a100 = Hardware(gpu="A100-SXM-80GB", gpu_count=1, slice=piece)
        made = plan(running(replace(example, hardware=a100)), offers=offers)
        best: dict[str, float] = {}
        for one in made.jobs[0].options:
            place = one.offer.instance_type
            best[place] = max(best.get(place, 0.0), one.speed.high)
        return best

    whole, part = gains(None), gains("1g.10gb")
    assert part["today"] == pytest.approx(whole["today"])
    assert part["alike"] > 1.1 * whole["alike"]


def test_a_run_on_a_slice_is_not_a_run_on_the_gpu() -> None:
    """Whoever compares two runs is told that one had a part of the GPU."""
    sameness = compare(probe(100.0), probe(40.0, slice="2g.20gb"))
    (found,) = (one for one in sameness.differs if one.what == "GPU")
    assert (found.before, found.after) == ("A100-SXM-80GB", "A100-SXM-80GB 2g.20gb")
