"""A number never leaves the planner without an ordered, finite range."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.models.estimate import Estimate, divide, exactly, within

POSITIVE = st.floats(1e-3, 1e6)


@pytest.mark.parametrize(
    ("low", "mid", "high"),
    [(2, 1, 3), (1, 3, 2), (math.nan, 1, 2), (1, math.nan, 2), (1, 1, math.inf)],
)
def test_a_range_out_of_order_is_no_estimate(low: float, mid: float, high: float) -> None:
    """A bug upstream shows where it is made, not in a report."""
    with pytest.raises(ValueError, match="no interval"):
        Estimate(low=low, mid=mid, high=high, basis="a test")


@given(mid=POSITIVE, factor=st.floats(1, 10))
def test_arithmetic_keeps_the_order(mid: float, factor: float) -> None:
    """Widening and inverting give ranges in order; the expected value is exact."""
    speed = within(mid, factor, "a test")
    assert speed.mid == mid
    hours = divide(100.0, speed, "hours")
    assert hours.low <= hours.mid == 100.0 / mid <= hours.high
    assert divide(100.0, exactly(mid, ""), "") == exactly(100.0 / mid, "")


def test_doubt_is_handed_on() -> None:
    """Hours from a weak speed-up are weak."""
    assert divide(1.0, Estimate(low=1, mid=2, high=3, basis="", weak=True), "").weak
    assert not divide(1.0, exactly(2.0, ""), "").weak
