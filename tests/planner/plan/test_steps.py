"""The steps of an answer: each names what exists, pays within the horizon, and is explained."""

from decimal import Decimal

import pytest

from planner.profile.model import Profile
from tests.planner.factories import a_case, a_catalog, a_profile, plan, running, sold

PAIR = sold("pair", "4.00", gpu_count=2, vcpus=32)
SINGLE = sold("single", "2.00", vcpus=16)


def half_used() -> Profile:
    """A job that uses one GPU of two, on which a percentile was rounded up."""
    busy = {"util.kernel_time": 0.9, "mem.used_gib": 20.0}
    idle = {"util.kernel_time": 0.0, "mem.used_gib": 0.4}
    job = a_profile(each=[busy, idle], gpu_count=2, kind="unknown", hours=400.0)
    return running(job, PAIR)


def test_fewer_gpus_name_their_machine_and_what_it_costs() -> None:
    """By hand: one GPU for 2.00 USD an hour instead of two for 4.00 saves half of 1,600 USD."""
    (job,) = plan(half_used(), offers=(PAIR, SINGLE), machine_only=True).jobs
    assert job.now is not None
    assert job.now.actions == ("fewer-gpus",)
    assert "1: example/single" in job.now.what
    assert job.now.usd is not None
    assert job.now.usd.mid == pytest.approx(Decimal(800), rel=Decimal("0.01"))


def test_fewer_gpus_are_no_step_where_nobody_sells_them() -> None:
    """Of a provider with pairs alone: the idle GPU is given work instead."""
    (job,) = plan(half_used(), offers=(PAIR,), machine_only=True).jobs
    assert job.now is not None
    assert job.now.actions == ("use-every-gpu",)


@pytest.mark.parametrize(("hours_a_month", "runs"), [(None, 1), (50.0, 3), (500.0, 30)])
def test_work_is_paid_back_by_the_runs_of_the_horizon(
    hours_a_month: float | None, runs: int
) -> None:
    """A run of 100 h, half a year: 50 h a month hold 3 runs, 500 h hold 30."""
    job = a_profile(total=360_000.0, rate_per_s=1.0, hours=hours_a_month)
    context = a_case(running(job, SINGLE), a_catalog(SINGLE))
    assert context.work.storage_h is None
    assert context.periods == runs
