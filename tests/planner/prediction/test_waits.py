"""A wait that was timed in the steps is a part of them elsewhere, however short: no cliff.

The expected figures of the table were worked out by hand before the law was written: a step of 1,
k of it kernels, r times as fast elsewhere; copies stay; a loader is late at every step, or its wait
is a part of each step, and the longer the wait the surer it is the former.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from planner.models.estimate import Estimate
from planner.models.input_pipeline import LATE, NEVER, fed_time, loader_factor
from planner.prediction.layout import Layout
from planner.prediction.predict import split_time
from planner.profile.model import Profile
from pricing.hardware import gpus
from tests.planner.factories import a_profile, kernel_speed_up, predict_from

FASTER, SLOWER = gpus()["A100-SXM-80GB"], gpus()["T4"]
SHARES = st.floats(0.0, 0.6)


def timed(wait: float = 0.0, copies: float = 0.0, workers: int | None = None) -> Profile:
    """A job on an A10G whose steps wait so much for input and copies, and compute else."""
    kernels = 1.0 - wait - copies
    parts = {"data_wait_s": wait, "h2d_s": copies, "compute_s": kernels, "mean_s": 1.0}
    job = {"gpu": "A10G-24GB", "precision": "amp-fp16", "loader_workers": workers}
    return a_profile({"util.kernel_time": kernels}, cpu_cores=16, **job, **parts)


def there(job: Profile, gpu: str) -> Estimate:
    """The speed-up on one GPU of a model, with as many cores."""
    target = Layout(gpu=gpus()[gpu], cpu_cores=16.0, interconnect="single")
    return predict_from(job, (), target, (), split_time(job))


ON_A100, ON_T4 = (partial(there, gpu=gpu.name) for gpu in (FASTER, SLOWER))


def amdahl(gain: float, wait: float, copies: float, fed: float = 1.0) -> float:
    """The speed where nothing overlaps: kernels gain, the input as far as its cores are known."""
    return 1.0 / ((1.0 - wait - copies) / gain + wait / fed + copies)


@pytest.mark.parametrize(
    ("wait", "copies", "on_a100", "on_t4"),
    [
        (0.05, 0.0, 2.17, 0.65),
        (0.1, 0.0, 1.43, 0.68),
        (0.2, 0.0, 1.00, 0.79),
        (0.3, 0.0, 1.00, 0.90),
        (0.6, 0.0, 1.00, 1.00),
        (0.0, 0.05, 2.77, 0.64),
        (0.0, 0.1, 2.54, 0.65),
        (0.0, 0.2, 2.17, 0.68),
        (0.0, 0.4, 1.68, 0.74),
        (0.0, 0.6, 1.37, 0.81),
        (0.05, 0.05, 2.05, 0.66),
        (0.15, 0.15, 1.08, 0.78),
    ],
)
def test_waits_as_by_hand(wait: float, copies: float, on_a100: float, on_t4: float) -> None:
    """By hand for kernels at 3.06 0.63 times the A10G's speed, nearly ours."""
    job = timed(wait, copies)
    assert ON_A100(job).mid == pytest.approx(on_a100, rel=0.05)
    assert ON_T4(job).mid == pytest.approx(on_t4, rel=0.02)


@pytest.mark.parametrize("of", [timed, lambda x: timed(0, x), lambda x: timed(x, x)])
@pytest.mark.parametrize("workers", [None, 0, 8])
def test_no_cliff(of: Callable[[float], Profile], workers: int | None) -> None:
    """A percent more of waiting costs a faster GPU what the law's slope allows, at every end.

    The belief in a late loader rises by at most 1.5 / LATE a unit of waiting.
    """
    steps = [of(share / 200.0) for share in range(81)]
    steps = [replace(job, step=replace(job.step, loader_workers=workers)) for job in steps]
    found = [ON_A100(job) for job in steps]
    slope = 2.0 * (1.5 / LATE[0] + 1.0)
    for before, after in pairwise(found):
        for end in ("low", "mid", "high"):
            less, more = 1.0 / getattr(before, end), 1.0 / getattr(after, end)
            assert -1e-9 <= more - less <= slope / 200.0


@given(SHARES, st.floats(0.0, 0.4), st.sampled_from((None, 0, 8)))
def test_never_above_amdahl_nor_free(wait: float, copies: float, workers: int | None) -> None:
    """No end is above the law of the part that does not compute; a slower GPU is not free."""
    job = timed(wait, copies, workers)
    for gpu in (FASTER, SLOWER):
        alone, found = kernel_speed_up(job, gpu), there(job, gpu.name)
        within = loader_factor()
        assert found.high <= max(amdahl(alone.high, wait, copies, within), within) * 1.0002
        if not workers:  # it may be that nothing overlaps
            assert found.low <= amdahl(alone.low, wait, copies) * 1.0002
    slow = ON_T4(job)
    assert slow.low < 1.0
    gain = kernel_speed_up(job, SLOWER).mid
    # Only what stays within the pace of a loader that reads beside it is as fast there.
    assert slow.mid < 1.0 or (1.0 - wait - copies) / gain + copies <= 1.0
    if workers == 0:
        assert slow.mid == pytest.approx(amdahl(gain, wait, copies), rel=2e-4)


def test_copies_are_no_input() -> None:
    """46 % copies on an A10G, by hand: .054 / .63 + .046 s against .1 s on a T4."""
    job = timed(copies=0.46)
    assert ON_T4(job).mid == pytest.approx(1.0 / (0.54 / 0.63 + 0.46), rel=0.01)
    assert "copies to the GPU take 46% of a step" in ON_T4(job).basis


@pytest.mark.parametrize(("rate", "mid"), [(5_000.0, 1.0), (12_000.0, 0.5)])
def test_a_full_link_is_as_fast_as_its_generation(rate: float, mid: float) -> None:
    """A T4 has PCIe 3: half of what copies fill of PCIe 4; those that do not fill it stay."""
    job = timed(copies=0.5)
    metrics = {"util.kernel_time": 0.5, "io.pcie_rx_mib_s": rate}
    job = replace(job, gpus=a_profile(metrics).gpus)
    gain = kernel_speed_up(job, SLOWER).mid
    assert ON_T4(job).mid == pytest.approx(1.0 / (0.5 / gain + 0.5 / mid), rel=0.001)


@given(SHARES, st.floats(0.1, 10.0), st.floats(0.1, 10.0), st.sampled_from((*LATE, NEVER)))
def test_a_fed_step_is_between_its_extremes(
    wait: float, gain: float, fed: float, late: float
) -> None:
    """As long as one after the other or side by side, or between; as today where nothing gains."""
    work = (1.0 - wait) / gain
    ends = sorted((work + wait / fed, max(work, 1.0 / fed)))
    assert ends[0] - 1e-9 <= fed_time(work, wait, fed, late) <= ends[1] + 1e-9
    assert fed_time(1.0 - wait, wait, 1.0, late) == pytest.approx(1.0)
