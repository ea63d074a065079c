"""GPUs of a job on which nothing runs are named, with what to do about them."""

import pytest
from msgspec.structs import replace

from planner.diagnosis.diagnose import diagnose
from planner.profile.model import Host, Profile, Statistics
from tests.planner.factories import a_profile, gpus


def job(*busy: float) -> Profile:
    """A training on GPUs that are so busy each."""
    readings = [{"util.kernel_time": share, "mem.used_gib": 60.0 * share} for share in busy]
    return replace(a_profile(gpu_count=len(busy), parallelism="ddp"), gpus=gpus(readings))


@pytest.mark.parametrize(
    ("busy", "words", "first"),
    [
        ((0.97,) * 5 + (0.0,) + (0.97,) * 2, "GPU 5 ran no kernel; 7 more", "use-every-gpu"),
        ((0.94, 0.0, 0.0, 0.0), "GPU 1, 2, 3 ran no kernel; 1 more", "fewer-gpus"),
        ((0.9, 0.9, 0.9, 0.3), "unequal work. GPU 3 is busy for 30%", "even-ranks"),
    ],
)
def test_a_gpu_that_is_not_used_is_named(busy: tuple[float, ...], words: str, first: str) -> None:
    """One of eight joins the others; where most are left out, fewer are rented."""
    finding = next(f for f in diagnose(job(*busy)) if f.code == "imbalanced-gpus")
    assert words in finding.cause
    assert finding.actions[0] == first


def test_a_gpu_at_rest_waits_for_nobody() -> None:
    """Two of eight at 60 %: six GPUs are not used, and what the two wait for is 40 % of theirs."""
    host = Host(cpu_util=Statistics(mean=0.15))
    findings = diagnose(replace(job(0.6, 0.6, *[0.0] * 6), host=host))
    wasted = {f.code: f.waste_fraction for f in findings if f.waste_fraction}
    assert wasted == {"imbalanced-gpus": pytest.approx(0.75), "unmeasured": pytest.approx(0.1)}


def test_a_hot_gpu_that_others_wait_for_is_named_and_priced() -> None:
    """Of four that train together one clocks at half: half of the bill, and another host first."""
    cool = {"util.kernel_time": 0.99, "clock.sm_mhz": 1600.0, "temp.core_c": 62.0}
    hot = cool | {"clock.sm_mhz": 800.0, "temp.core_c": 91.0, "throttle.fraction": 0.85}
    together = replace(a_profile(gpu_count=4, parallelism="ddp"), gpus=gpus([cool] * 3 + [hot]))
    finding = next(f for f in diagnose(together) if f.code == "thermal-throttled")
    assert "GPU 3 runs at 800 MHz, the fastest at 1,600 MHz" in finding.cause
    assert finding.waste_fraction == pytest.approx(0.5)
    assert finding.actions[0] == "replace-host"
    alone = replace(together, job=replace(together.job, parallelism="none"))
    finding = next(f for f in diagnose(alone) if f.code == "thermal-throttled")
    assert finding.waste_fraction is None


def test_the_other_gpus_of_a_session_that_hardly_computes_are_not_used() -> None:
    """A notebook holds 15 GiB of one of four GPUs for 2 % of the time: three are not used."""
    readings = [{"util.kernel_time": 0.02, "mem.used_gib": 15.0}]
    readings += [{"util.kernel_time": 0.0, "mem.used_gib": 0.4}] * 3
    notebook = replace(a_profile(kind="interactive", gpu_count=4), gpus=gpus(readings))
    wasted = {f.code: f.waste_fraction for f in diagnose(notebook) if f.waste_fraction}
    assert wasted["imbalanced-gpus"] == pytest.approx(0.75)
    assert sum(wasted.values()) == pytest.approx(0.75 + 0.98 / 4)
