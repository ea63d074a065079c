"""GPUs of a job on which nothing runs are named, with what to do about them."""

from dataclasses import replace

import pytest

from planner.diagnosis.diagnose import diagnose
from planner.profile.model import Profile
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
        ((0.9, 0.9, 0.9, 0.3), "do unequal work", "fewer-gpus"),
    ],
)
def test_a_gpu_that_is_not_used_is_named(busy: tuple[float, ...], words: str, first: str) -> None:
    """One of eight joins the others; where most are left out, fewer are rented."""
    finding = next(f for f in diagnose(job(*busy)) if f.code == "imbalanced-gpus")
    assert words in finding.cause
    assert finding.actions[0] == first
