"""The steps of an answer: each names what exists, pays within the horizon, and is explained."""

from decimal import Decimal
from typing import Any

import pytest

from planner.plan.draft import JobDraft
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
    assert job.now.option == job.recommended != "o0"
    assert "1 on example/single" in job.now.what
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


def test_two_gpus_that_hardly_work_become_one() -> None:
    """Both processes of a simulation, at 5 % each, on one GPU of the type: half the money, named.

    Two ranks of a training do not share one; of a host that nobody read half may be too little.
    """
    metrics = {"util.kernel_time": 0.05, "mem.used_gib": 3.0}
    shape = {"gpu_count": 2, "cpu_cores": 32, "framework": "lammps"}

    def planned(**fields: Any) -> JobDraft:
        profile = a_profile(metrics, **(shape | fields))
        (job,) = plan(running(profile, PAIR), offers=(PAIR, SINGLE), machine_only=True).jobs
        return job

    job = planned(kind="simulation", host={"cpu_util": 0.03})
    assert job.now is not None
    assert job.now.actions == ("fewer-gpus",)
    assert job.now.usd is not None
    assert job.now.usd.mid == pytest.approx(Decimal(200), rel=Decimal("0.01"))
    assert "1 on example/single" in job.now.what
    unread = planned(kind="simulation")
    (option,) = [o for o in unread.options if o.offer == SINGLE]
    assert option.hours.high > 1.9 * unread.baseline.hours.mid
    trained = planned(kind="training", framework="pytorch", host={"cpu_util": 0.03})
    (option,) = [o for o in trained.options if o.offer == SINGLE]
    assert option.hours.mid > 1.5 * trained.baseline.hours.mid
