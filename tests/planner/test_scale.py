"""Throughput over the number of GPUs, when only the profiled count was measured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.scale import Layout, speed_up

COUNTS = st.sampled_from((1, 2, 4, 8, 16, 32, 64))
LINKS = st.sampled_from(("nvlink", "pcie", "xgmi", "nvlink-bridge", "single", None))


@given(COUNTS, LINKS)
def test_the_measured_count_is_the_measured_speed(count: int, link: str | None) -> None:
    """As many GPUs over the same links is what was measured."""
    same = speed_up(Layout(gpus=count, link=link), Layout(gpus=count, link=link))
    assert same.low == same.mid == same.high == 1.0


@given(COUNTS, COUNTS, LINKS)
def test_more_gpus_are_faster_but_not_more_than_linear(
    before: int, after: int, link: str | None
) -> None:
    """The expected gain lies between none and linear; the range is in order."""
    gain = speed_up(Layout(gpus=before, link=link), Layout(gpus=after, link=link))
    if after >= before:
        assert 1.0 <= gain.mid <= after / before
    else:
        assert after / before <= gain.mid <= 1.0
    assert 0 < gain.low <= gain.mid <= gain.high


@given(COUNTS, COUNTS)
def test_nvlink_is_no_slower_than_pcie(before: int, after: int) -> None:
    """Faster links never lower the expected speed."""
    fast = speed_up(Layout(gpus=before, link="pcie"), Layout(gpus=after, link="nvlink"))
    assert (
        fast.mid >= speed_up(Layout(gpus=before, link="pcie"), Layout(gpus=after, link="pcie")).mid
    )


@pytest.mark.parametrize(
    ("after", "low", "mid"), [(2, 1.57, 1.98), (8, 3.92, 7.76), (64, 3.92 * 2.8, 7.76 * 5.3)]
)
def test_the_published_efficiencies_come_back(after: int, low: float, mid: float) -> None:
    """1 -> 8 GPUs by Lambda's median and twentieth, 8 nodes by MLPerf's middle and least."""
    gain = speed_up(Layout(gpus=1, link="single"), Layout(gpus=after, link="nvlink"))
    assert gain.mid == pytest.approx(mid, rel=0.01)
    assert gain.low == pytest.approx(low, rel=0.01)


@pytest.mark.parametrize("after", ["nvlink", "pcie"])
def test_an_unknown_link_is_not_a_slow_link(after: str) -> None:
    """Where today's link is not known, as many GPUs are expected to do as much as today."""
    same = speed_up(Layout(gpus=8, link=None), Layout(gpus=8, link=after))
    assert same.mid == 1.0


def test_one_machine_beats_many_over_the_network() -> None:
    """Eight machines do less than one with as many GPUs, and less than eight times one GPU."""
    one = Layout(gpus=1)
    together = speed_up(one, Layout(gpus=8, link="nvlink"))
    apart = speed_up(one, Layout(gpus=8, nodes=8))
    assert apart.mid < together.mid
    assert apart.high < 8.0


def test_as_many_machines_as_measured_is_as_measured() -> None:
    """Sixteen GPUs in two machines, measured so, are predicted so."""
    two = Layout(gpus=16, link="nvlink", nodes=2)
    assert speed_up(two, two).low == speed_up(two, two).high == 1.0
