"""The laws of the loader, of a power cap and of all-reduce: shapes that hold for any figures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.models.communication import combine, growth, interpolate, ring, typical_all_reduce_s
from planner.models.input_pipeline import OwnReading, loader_rate
from planner.models.power import best_cap, cap_law
from research.host import carried_w, fed_rate

CORES = st.floats(0.5, 64.0)
WATTS = st.floats(50.0, 1000.0)
SIZES = st.floats(1e3, 1e10)


@given(CORES, CORES)
def test_more_cores_never_feed_less(fewer: float, more: float) -> None:
    """Loader throughput rises with cores, at most in proportion, and is flat beyond 12."""
    fewer, more = sorted((fewer, more))
    assert loader_rate(fewer) <= loader_rate(more) <= loader_rate(fewer) * more / fewer * 1.000001
    assert loader_rate(12.0) == loader_rate(64.0)


def test_the_gpu_is_the_roof() -> None:
    """However many cores, the GPU takes no more than it can."""
    assert fed_rate(1.0, 3.0, 24.0, 1.5, 0.8) == 1.5
    assert fed_rate(1.0, 3.0, 1.5, 9.0, 0.8) == pytest.approx(0.5)


@given(WATTS, WATTS)
def test_a_cap_slows_and_never_adds_power(free_w: float, cap_w: float) -> None:
    """Under a cap a job is no faster and draws no more; above its power a cap does nothing much."""
    law = cap_law()
    assert law.slowdown(free_w, cap_w) >= 1.0
    assert law.power_w(free_w, cap_w) <= free_w
    if cap_w >= free_w:
        assert law.slowdown(free_w, cap_w) == 1.0


def test_a_hot_job_saves_energy_under_a_cap_and_a_cool_one_does_not() -> None:
    """At its limit a board gives a few percent of time for more of its energy; at half, nothing."""
    cap = best_cap(400.0, 400.0)
    assert cap is not None
    assert cap.cap_w < 400.0
    assert 1.0 < cap.slowdown.mid <= 1.1
    assert cap.energy_fraction.mid < 0.95
    assert best_cap(180.0, 400.0) is None


@given(WATTS)
def test_the_carried_power_stays_in_range(watts: float) -> None:
    """Power on another GPU lies between its idle power and its TDP."""
    assert 30.0 <= carried_w(watts, (50.0, 400.0), (30.0, 250.0)) <= 250.0


def test_measured_all_reduces_come_back() -> None:
    """64 MiB over 8 GPUs: about 0.3 ms on an H100, half as fast on an A100."""
    size = 64.0 * 2**20
    fast = typical_all_reduce_s(size, "Hopper", 8, nvlink=True)
    slow = typical_all_reduce_s(size, "Ampere", 8, nvlink=True)
    assert 2e-4 < fast < 5e-4
    assert 1.5 < slow / fast < 3.0


@given(SIZES, SIZES)
def test_interpolation_lies_between_its_knots(one: float, other: float) -> None:
    """Larger messages take no less where the knots rise; beyond the last, in proportion."""
    knots = ((1e4, 10.0), (1e6, 40.0), (1e8, 2000.0))
    low, high = sorted((one, other))
    assert 10.0 <= interpolate(knots, low) <= interpolate(knots, high)
    assert interpolate(knots, 2e8) == pytest.approx(4000.0)


def test_pcie_is_slower_than_nvlink() -> None:
    """The same message takes longer over PCIe."""
    nvlink, pcie = (typical_all_reduce_s(1e8, "Hopper", 8, nvlink=kind) for kind in (True, False))
    assert nvlink is not None
    assert pcie is not None
    assert pcie > 10 * nvlink


def test_a_ring_of_more_ranks_moves_more() -> None:
    """2 (n - 1) / n: 1 for two ranks, towards 2; GeForce boards grow faster."""
    assert [ring(n) for n in (2, 4, 8)] == [1.0, 1.5, 1.75]
    assert growth(2, 8, "nvlink") == 1.75
    assert growth(2, 8, "geforce") > 2.5
    assert combine(3.0, 4.0) == 5.0


# Two loops measured on 2 cores with PyTorch 2.13, 20 ms of computing a step: milliseconds a step
# without workers, then by their number. One reads by sleeping, one by decoding.
SLEEPS = (88.9, {1: 69.9, 2: 36.2, 4: 24.3})
DECODES = (32.4, {1: 23.0, 2: 24.9, 4: 25.5})


@pytest.mark.parametrize(("measured", "cores"), [(SLEEPS, 0.02), (DECODES, 1.0)])
def test_workers_gain_what_the_law_says(
    measured: tuple[float, dict[int, float]], cores: float
) -> None:
    """Reads that wait overlap, work is shared by cores: measured steps are in the interval."""
    before_ms, by_workers = measured
    own = 20.0 / before_ms
    reading = OwnReading(
        waiting=1.0 - own,
        reading_cores=cores,
        used_cores=own + cores * (1.0 - own),
        cores=2.0,
        known_slow=True,
    )
    for workers, after_ms in by_workers.items():
        low, _, high = (1.0 / max(own, 1.0 / gain) for gain in reading.faster(workers))
        assert low <= before_ms / after_ms <= high


def _reading(**changes: float | bool) -> OwnReading:
    plain = {"waiting": 0.9, "reading_cores": 0.05, "used_cores": 0.15, "cores": 4.0}
    return OwnReading(**{**plain, "known_slow": True, **changes})  # type: ignore[arg-type] # a table


@pytest.mark.parametrize(
    ("changes", "workers"),
    [({}, 11), ({"waiting": 0.99}, 16), ({"waiting": 0.5}, 3), ({"reading_cores": 0.8}, 3)],
)
def test_more_workers_than_cores_only_where_reads_wait(
    changes: dict[str, float], workers: int
) -> None:
    """As many as the program's pace needs, at most 16; where reading works, what cores afford."""
    assert _reading(**changes).workers(3) == workers


def test_unknown_reads_may_gain_by_overlap_alone() -> None:
    """Where a disk may be the limit, more reads at a time may be no more in all."""
    low, mid, high = _reading(known_slow=False).faster(8)
    known = _reading().faster(8)
    assert (low, high) == (pytest.approx(1 / 0.9), known[2])
    assert low < mid < known[1]
    assert known[0] > low


@given(
    st.floats(0.01, 1.0),
    st.floats(0.0, 1.0),
    st.floats(0.01, 8.0),
    st.floats(0.5, 64.0),
    st.integers(1, 16),
)
def test_workers_never_slow_the_input(
    waiting: float, reading: float, used: float, cores: float, workers: int
) -> None:
    """An interval in order, from no gain to what so many workers can do."""
    one = _reading(waiting=waiting, reading_cores=reading, used_cores=used, cores=cores)
    low, mid, high = one.faster(workers)
    assert 1.0 <= low <= mid <= high <= max(1.0, 1.000001 * workers / waiting)
    assert workers <= one.workers(workers) <= 16
