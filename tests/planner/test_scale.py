"""Throughput over the number of GPUs, when only the profiled count was measured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.scale import speed_up

COUNTS = st.sampled_from((1, 2, 4, 8, 16, 32, 64))
LINKS = st.sampled_from(("nvlink", "pcie", "xgmi", "nvlink-bridge", "single", None))


@given(COUNTS, LINKS)
def test_the_measured_count_is_the_measured_speed(count: int, link: str | None) -> None:
    """As many GPUs over the same links is what was measured."""
    same = speed_up(count, count, link_before=link, link_after=link)
    assert same.low == same.mid == same.high == 1.0


@given(COUNTS, COUNTS, LINKS)
def test_more_gpus_are_faster_but_not_more_than_linear(
    before: int, after: int, link: str | None
) -> None:
    """The expected gain lies between none and linear; the range is in order."""
    gain = speed_up(before, after, link_before=link, link_after=link)
    if after >= before:
        assert 1.0 <= gain.mid <= after / before
    else:
        assert after / before <= gain.mid <= 1.0
    assert 0 < gain.low <= gain.mid <= gain.high


@given(COUNTS, COUNTS)
def test_nvlink_is_no_slower_than_pcie(before: int, after: int) -> None:
    """Faster links never lower the expected speed."""
    fast = speed_up(before, after, link_before="pcie", link_after="nvlink")
    assert fast.mid >= speed_up(before, after, link_before="pcie", link_after="pcie").mid


@pytest.mark.parametrize(
    ("after", "low", "mid"), [(2, 1.57, 1.98), (8, 3.92, 7.76), (64, 3.92 * 2.8, 7.76 * 5.3)]
)
def test_the_published_efficiencies_come_back(after: int, low: float, mid: float) -> None:
    """1 -> 8 GPUs by Lambda's median and twentieth, 8 nodes by MLPerf's middle and least."""
    gain = speed_up(1, after, link_before="single", link_after="nvlink")
    assert gain.mid == pytest.approx(mid, rel=0.01)
    assert gain.low == pytest.approx(low, rel=0.01)


@pytest.mark.parametrize("after", ["nvlink", "pcie"])
def test_an_unknown_link_is_not_a_slow_link(after: str) -> None:
    """Where today's link is not known, as many GPUs are expected to do as much as today."""
    same = speed_up(8, 8, link_before=None, link_after=after)
    assert same.mid == 1.0
