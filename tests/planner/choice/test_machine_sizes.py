"""One large machine or many small ones: the same work on every shape, with its break-even."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.choice.machine_sizes import MachineSize
from planner.plan.draft import JobDraft
from planner.profile.model import Profile, Statistics
from pricing.catalog.offer import Offer
from tests.planner.factories import a_profile, plan, running, sold

ONE = sold("one", "2.00", network_gbps=10.0, included_transfer_gib=1000.0)


def _eight(price: str) -> Offer:
    return sold("eight", price, gpu_count=8, interconnect="nvlink")


def _job(profile: Profile, *offers: Offer) -> JobDraft:
    (job,) = plan(running(profile, ONE), offers=(ONE, *offers)).jobs
    return job


def _by_name(job: JobDraft) -> dict[str, MachineSize]:
    return {f"{s.count}x {s.offer.instance_type}": s for s in job.machine_sizes}


def test_every_shape_does_the_same_work() -> None:
    """One of one, one of eight, eight of one, two of eight; more GPUs take fewer hours."""
    found = _by_name(_job(a_profile(), _eight("16.00")))
    assert list(found) == ["1x one", "1x eight", "8x one", "2x eight"]
    assert [s.gpus for s in found.values()] == [1, 8, 8, 16]
    assert found["1x one"].hours.mid == pytest.approx(100.0)
    assert found["1x eight"].hours.mid < found["8x one"].hours.mid < found["1x one"].hours.mid


@pytest.mark.parametrize(
    ("price", "break_even"), [("16.00", 1.0), ("12.00", 0.75), ("20.00", 1.25)]
)
def test_the_break_even_is_the_ratio_of_prices(price: str, break_even: float) -> None:
    """Eight GPUs cost as much as one for the same work where they scale by their price ratio."""
    shape = _by_name(_job(a_profile(), _eight(price)))["1x eight"]
    assert shape.break_even == pytest.approx(break_even)


@given(cents=st.integers(min_value=400, max_value=4000))
def test_beating_the_break_even_is_costing_less(cents: int) -> None:
    """The expected bill is under the one-GPU bill just where expected scaling beats break-even."""
    found = _by_name(_job(a_profile(), _eight(str(Decimal(cents) / 100))))
    one, eight = found["1x one"], found["1x eight"]
    assert eight.break_even is not None
    margin = eight.efficiency.mid - eight.break_even
    if abs(margin) > 0.1:  # whole hours are billed, 13 of 12.9
        assert (eight.cost < one.cost) == (margin > 0)


def test_the_profiled_shape_is_as_measured() -> None:
    """Eight GPUs that were measured carry no scaling guess."""
    eight = _eight("16.00")
    profile = a_profile(gpu_count=8, interconnect="nvlink")
    (job,) = plan(running(profile, eight), offers=(ONE, eight)).jobs
    shape = _by_name(job)["1x eight"]
    assert shape.hours.mid == pytest.approx(100.0)
    assert shape.hours.high / shape.hours.low < 1.2


def test_a_slow_network_and_included_transfer_are_said() -> None:
    """Machines joined by less than 100 Gbit/s say so; transfer is pooled."""
    remark = _by_name(_job(a_profile(), _eight("16.00")))["8x one"].remark
    assert "10 Gbit/s between machines" in remark
    assert "8,000 GiB" in remark


NONE = {
    "only one size is sold": (a_profile(), ()),
    "another GPU": (a_profile(), (sold("l4", "5.00", "L4", gpu_count=8),)),
    "no training": (a_profile(kind="inference_online"), (_eight("16.00"),)),
    "it waits for data": (
        a_profile(
            {"util.kernel_time": 0.2, "mem.used_gib": Statistics(max=9.0)}, host={"cpu_util": 0.95}
        ),
        (_eight("16.00"),),
    ),
}


@pytest.mark.parametrize("case", NONE)
def test_where_more_gpus_are_no_question_there_is_no_table(case: str) -> None:
    """Nothing to compare, or a job that more GPUs would not speed up."""
    profile, offers = NONE[case]
    assert _job(profile, *offers).machine_sizes == ()
