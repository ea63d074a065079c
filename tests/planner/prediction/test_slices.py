"""Slices of a GPU: who gets which, and how fast jobs run there."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.prediction.sharing import predict_sharing
from planner.prediction.slices import cut, slice_speed, speeds_on
from planner.profile.model import Profile, Statistics
from pricing.errors import InputError
from pricing.hardware import gpus
from tests.planner.factories import a_profile

A100 = gpus()["A100-SXM-80GB"]


def job(name: str, busy: float, gib: float, **fields: Any) -> Profile:
    """A job measured on a whole A100."""
    metrics = {"util.kernel_time": busy, "mem.used_gib": Statistics(max=gib)}
    return a_profile(metrics, name=name, gpu="A100-SXM-80GB", **fields)


@pytest.mark.parametrize(
    ("jobs", "slices"),
    [
        ([("a", 0.2, 8.0)], ("7g.80gb",)),
        ([("a", 0.2, 8.0), ("b", 0.2, 8.0)], ("4g.40gb", "3g.40gb")),
        ([("a", 0.9, 8.0), ("b", 0.1, 8.0)], ("4g.40gb", "3g.40gb")),
        ([("a", 0.1, 30.0), ("b", 0.9, 8.0)], ("3g.40gb", "4g.40gb")),
        ([(name, 0.2, 8.0) for name in "abcdefg"], ("1g.10gb",) * 7),
    ],
    ids=["alone", "two", "the busier gets more", "memory holds a slice", "seven"],
)
def test_who_gets_which(jobs: list[tuple[str, float, float]], slices: tuple[str, ...]) -> None:
    """Memory decides the smallest slice of each; the slowest get what is left."""
    found = cut(A100, [job(*one) for one in jobs])
    assert not isinstance(found, str)
    assert tuple(one.profile for one in found) == slices


@pytest.mark.parametrize(
    ("jobs", "why"),
    [
        ([("a", 0.2, 79.0)], "no slice of the A100-SXM-80GB holds the 79.0 GiB of a"),
        ([("a", 0.2, 39.0), ("b", 0.2, 30.0), ("c", 0.2, 30.0)], "13 compute slices"),
        ([(name, 0.1, 8.0) for name in "abcdefgh"], "at most 7 of 1g.10gb"),
    ],
    ids=["no slice is large enough", "three of two", "eight of seven"],
)
def test_who_gets_none(jobs: list[tuple[str, float, float]], why: str) -> None:
    """What cannot be cut is told with its figures."""
    found = cut(A100, [job(*one) for one in jobs])
    assert isinstance(found, str)
    assert why in found


SHARES = st.floats(0.0, 1.0)


@given(busy=SHARES, more=SHARES, slices=st.integers(1, 7))
def test_speeds_on_slices_are_in_order(busy: float, more: float, slices: int) -> None:
    """Low <= mid <= high <= 1; busier jobs and smaller slices are never faster."""
    one = slice_speed(busy, slices / 7)
    assert 0.0 < one.low <= one.mid <= one.high <= 1.0
    assert slice_speed(max(busy, more), slices / 7).mid <= one.mid
    assert slice_speed(busy, max(1, slices - 1) / 7).mid <= one.mid


def test_the_whole_gpu_is_full_speed() -> None:
    """A slice that is the whole GPU changes nothing."""
    assert slice_speed(1.0, 1.0).low == slice_speed(1.0, 1.0).high == 1.0


@pytest.mark.parametrize("mode", ["mps", "time-slicing"])
def test_isolated_jobs_share_by_slices_alone(mode: str) -> None:
    """Beside another job in one address space or one queue nobody is isolated."""
    pair = [job("a", 0.2, 8.0, trust="isolated"), job("b", 0.2, 8.0)]
    with pytest.raises(InputError, match="a must be isolated"):
        predict_sharing(pair, mode)
    assert all(speed.mid > 0.8 for speed in predict_sharing(pair, "mig"))


def test_a_gpu_without_slices_is_told() -> None:
    """A T4 cannot be cut."""
    with pytest.raises(InputError, match="cannot be cut into slices"):
        predict_sharing([a_profile({"util.kernel_time": 0.2}, gpu="T4")], "mig")


def test_a_measured_slice_tells_the_others() -> None:
    """As measured on its slice; on others less unsure than by the rule."""
    both, slices = [job("a", 1.0, 8.0), job("b", 1.0, 8.0)], A100.mig
    half = [next(one for one in slices if one.profile == "3g.40gb")] * 2
    by_rule = speeds_on(A100, both, half)
    seen, told = speeds_on(A100, both, half, {"a": ("3g.40gb", 0.5), "b": ("2g.20gb", 0.3)})
    assert (seen.low, seen.mid, seen.high) == (0.5, 0.5, 0.5)
    assert 0.3 < told.low < told.mid < told.high < 1.0
    assert told.high / told.low < by_rule[1].high / by_rule[1].low
    assert (
        predict_sharing(both, "mig", {"a": ("1g.10gb", 0.9)})[0].mid
        > predict_sharing(both, "mig")[0].mid
    )


@pytest.mark.parametrize(
    ("mode", "on_slice", "said"),
    [
        ("mps", {"a": ("2g.20gb", 0.4)}, "mode='mig'"),
        ("mig", {"x": ("2g.20gb", 0.4)}, "no job is called x"),
        ("mig", {"a": ("2g.20gb", 1.4)}, "above 0"),
        ("mig", {"a": ("9g.20gb", 0.4)}, "1g.10gb"),
        ("mig", {"a": ("7g.80gb", 1.0)}, "1g.10gb"),
    ],
)
def test_what_cannot_have_been_measured_is_refused(
    mode: str, on_slice: dict[str, tuple[str, float]], said: str
) -> None:
    """Another mode, job, speed or slice is refused with what there is."""
    with pytest.raises(InputError, match=said):
        predict_sharing([job("a", 0.5, 8.0)], mode, on_slice)
