"""Relative speed of jobs that share one GPU."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.models.coefficients import coefficients
from planner.prediction.sharing.shares import shared_speed
from planner.signals.compute_share import compute_share
from pricing.errors import InputError
from tests.planner.factories import a_profile

BUSY, SM = "util.kernel_time", "util.sm_active"
FACTOR = coefficients("sharing")["factor"]
SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def busy(*shares: float) -> list:
    """Profiles that take these shares of a GPU's time."""
    return [a_profile({BUSY: share}, name=f"job-{i}") for i, share in enumerate(shares)]


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
        ((0.8, 0.8), (0.625,) * 2, (0.625 / FACTOR**0.8,) * 2),
        ((0.5, 0.0), (1.0, 1.0), (1.0, 1 / 1.5)),
    ],
)
def test_shares_add_up(
    shares: tuple[float, ...], mids: tuple[float, ...], lows: tuple[float, ...]
) -> None:
    """Expected: 1 / max(1, sum); at worst as measured pairs, or every other share delays."""
    speeds = shared_speed(busy(*shares))
    assert [s.mid for s in speeds] == pytest.approx(mids)
    assert [s.low for s in speeds] == pytest.approx(lows)


@given(SHARES, st.floats(0, 1))
def test_one_more_job_makes_nobody_faster(shares: list[float], more: float) -> None:
    """Speeds lie above 0 and at most a run-to-run spread above 1; a tenant never raises one."""
    before, after = shared_speed(busy(*shares)), shared_speed(busy(*shares, more))
    for one, other in zip(before, after, strict=False):
        assert 0 < other.low <= other.mid <= other.high <= 1.07
        assert other.mid <= one.mid
        assert other.low <= one.low


def test_an_unmeasured_job_is_named() -> None:
    """No reading is not an idle job."""
    with pytest.raises(InputError, match="blind"):
        shared_speed([a_profile({}, name="blind"), *busy(0.1)])
