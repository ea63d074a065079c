"""Relative speed of jobs that share one GPU."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.models.coefficients import coefficients
from planner.prediction.sharing import most_beside, shared_speed
from planner.signals.compute_share import compute_share, time_on_gpu
from pricing.errors import InputError
from tests.planner.factories import a_profile

BUSY, SM = "util.kernel_time", "util.sm_active"
FITTED = coefficients("sharing")
FACTOR, AGAIN, DELAY = FITTED["factor"], FITTED["again"], FITTED["delay"]
SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def busy(*shares: float) -> list:
    """Profiles that take these shares of a GPU's time."""
    return [a_profile({BUSY: share}, name=f"job-{i}") for i, share in enumerate(shares)]


def both(share: float) -> float:
    """The factor beside others with such a share: measured pairs, and a job that runs again."""
    return math.exp(math.hypot(share * math.log(FACTOR), math.log(AGAIN)))


def test_sm_activity_counts_before_kernel_time() -> None:
    """Time with a kernel running is the upper bound; SM activity is the share."""
    assert compute_share(a_profile({BUSY: 0.9, SM: 0.2})) == 0.2
    assert compute_share(a_profile({BUSY: 0.9})) == 0.9
    assert compute_share(a_profile({})) is None


def test_alone_is_full_speed() -> None:
    """A job alone runs as it was measured."""
    (speed,) = shared_speed(busy(0.9))
    assert (speed.low, speed.mid, speed.high) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("shares", "mids", "lows"),
    [
        ((0.2, 0.2, 0.2, 0.2), (1.0,) * 4, (0.625,) * 4),
        ((0.8, 0.8), (1 / 1.2,) * 2, (0.625 / both(0.8),) * 2),
        ((0.5, 0.0), (1.0, 1.0), (1.0, 1 / 1.5)),
    ],
)
def test_shares_add_up(
    shares: tuple[float, ...], mids: tuple[float, ...], lows: tuple[float, ...]
) -> None:
    """Expected: beside half of the others' kernel time; at worst all of it, as measured pairs."""
    speeds = shared_speed(busy(*shares))
    assert [s.mid for s in speeds] == pytest.approx(mids)
    assert [s.low for s in speeds] == pytest.approx(lows)


@given(SHARES, st.floats(0, 1))
def test_one_more_job_makes_nobody_faster(shares: list[float], more: float) -> None:
    """Speeds lie above 0 and at most a run-to-run spread above 1; a tenant never raises one."""
    before, after = shared_speed(busy(*shares)), shared_speed(busy(*shares, more))
    for one, other in zip(before, after, strict=False):
        assert 0 < other.low <= other.mid <= other.high <= AGAIN
        assert other.mid <= one.mid
        assert other.low <= one.low


def test_a_job_is_delayed_for_as_long_as_it_is_on_the_gpu() -> None:
    """Its kernel time counts, beside the others' SM activity, or their kernel time in turns."""
    decoder = a_profile({BUSY: 0.98, SM: 0.52}, name="decoder")
    loader = a_profile({BUSY: 0.39, SM: 0.26}, name="loader")
    side_by_side = shared_speed([decoder, loader])
    assert [s.mid for s in side_by_side] == pytest.approx([1 / (0.98 + 0.26), 1.0])
    in_turns = shared_speed([decoder, loader], in_turns=True)
    assert [s.mid for s in in_turns] == pytest.approx([1 / (0.98 + 0.39)] * 2)


def test_no_interval_is_narrower_than_a_job_measured_again() -> None:
    """Beside a job that needs next to nothing both ends are a run-to-run spread away."""
    speed, _ = shared_speed(busy(0.5, 0.001))
    assert (speed.low, speed.high) == pytest.approx((1 / AGAIN, AGAIN), rel=1e-4)
    assert most_beside(0.9) == 0.0
    assert most_beside(0.8) > 0.0


def test_in_turns_a_job_may_wait_several_times() -> None:
    """Each share of others delays it once at worst under MPS, more often in turns."""
    for in_turns, delays in ((False, DELAY["mps"]), (True, DELAY["time-slicing"])):
        speed, _ = shared_speed(busy(0.1, 0.9), in_turns=in_turns)
        assert speed.mid == 1.0
        assert speed.low == pytest.approx(1.0 / (1.0 + 0.9 * delays))
    assert DELAY["time-slicing"] > 2.0 > DELAY["mps"] == 1.0


@pytest.mark.parametrize("in_turns", [False, True], ids=["MPS", "turns"])
@given(own=st.floats(0, 1), least=st.floats(0.4, 1), more=st.floats(0.001, 1))
def test_what_may_run_beside_a_job_is_the_low_end_turned_round(
    own: float, least: float, more: float, *, in_turns: bool
) -> None:
    """Beside as much as may be it keeps its speed at worst, and beside more it does not."""
    most = most_beside(least, in_turns=in_turns)
    for others, kept in ((most * 0.999, True), (most + more, False)):
        if 0.0 < others <= 1.0 - own:
            speed, _ = shared_speed(busy(own, others), in_turns=in_turns)
            assert (speed.low >= least) is kept


def test_kernel_time_is_at_least_sm_activity() -> None:
    """A collector that writes 0 for the one reading does not make a job that never runs."""
    assert time_on_gpu(a_profile({BUSY: 0.0, SM: 0.4})) == 0.4
    assert time_on_gpu(a_profile({})) is None


def test_beside_a_job_that_fills_the_gpu_nothing_is_sure() -> None:
    """Others starved beside such jobs under MPS: their estimate is weak, and says why.

    Of the SMs 0.01 are left, which a job that takes 0.04 runs on at a quarter of its speed.
    """
    solver = a_profile({BUSY: 1.0, SM: 0.99}, name="solver")
    small = a_profile({BUSY: 0.1, SM: 0.01}, name="small")
    beside, filling = shared_speed([small, solver])
    assert beside.weak
    assert "starved" in beside.basis
    assert not filling.weak
    assert filling.mid == 1.0
    larger, _ = shared_speed([a_profile({BUSY: 0.3, SM: 0.04}, name="larger"), solver])
    assert larger.mid == pytest.approx(0.25)
    assert all(twin.weak and twin.mid < 0.02 for twin in shared_speed([solver, solver]))
    assert not any(s.weak for s in shared_speed([small, solver], in_turns=True))
    assert not any(s.weak for s in shared_speed([small, a_profile({BUSY: 1.0}, name="unknown")]))


def test_an_unmeasured_job_is_named() -> None:
    """No reading is not an idle job."""
    with pytest.raises(InputError, match="blind"):
        shared_speed([a_profile({}, name="blind"), *busy(0.1)])
