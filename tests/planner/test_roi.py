"""What the plan saves, the work it takes, and when that has paid off."""

from decimal import Decimal

import pytest
from msgspec import structs

from planner.actions import ACTIONS
from planner.plan.draft import PlanDraft
from planner.profile.model import Statistics
from tests.planner.factories import TODAY, a_profile, plan, running, sold

HALF = sold("half", "1.00")
THIN = {"util.kernel_time": 0.2, "mem.used_gib": Statistics(max=8.0)}


def two(*offers: object, **asked: object) -> PlanDraft:
    """Two thin serving jobs."""
    jobs = [running(a_profile(THIN, name=n, kind="inference_online")) for n in ("a", "b")]
    return plan(*jobs, offers=(TODAY, *offers), **asked)  # type: ignore[arg-type]


def test_leaving_it_saves_nothing_and_takes_nothing() -> None:
    """No change, no effort, no pay-back."""
    roi = plan(running(a_profile()), engineer_usd_per_hour=Decimal(100)).roi
    assert (roi.saves_usd, roi.effort_hours, roi.payback_days) == (0, 0, None)


@pytest.mark.parametrize(("rate", "days"), [(Decimal(50), 50 * 8 / 100 * 30.4), (Decimal(0), 0.0)])
def test_effort_is_paid_back_by_the_saving(rate: Decimal, days: float) -> None:
    """Hours of the actions x rate over the saving a month."""
    moved = sold("half", "1.00", provider="elsewhere")
    roi = plan(running(a_profile()), offers=(TODAY, moved), engineer_usd_per_hour=rate).roi
    assert roi.saves_usd == Decimal("100.00")
    assert roi.effort_hours == ACTIONS["move-provider"].effort_hours
    assert roi.payback_days == pytest.approx(days)


def test_moving_the_data_is_paid_back_as_well() -> None:
    """1,100 GiB leave AWS once, 100 GB of them free; beside the work they take their time."""
    moved = sold("half", "1.00", provider="elsewhere")
    at_aws = structs.replace(TODAY, provider="aws", region="us-east-1")
    job = running(a_profile(dataset_gib=1100.0), at_aws)
    planned = plan(job, offers=(at_aws, moved), engineer_usd_per_hour=Decimal(50))
    best = planned.jobs[0].choice
    assert best is not None
    assert best.benefit is not None
    assert best.benefit.moving_usd == Decimal("90.00")  # 1,000 GiB at 9 cents
    once = 50 * 8 + float(best.benefit.moving_usd)
    assert planned.roi.payback_days == pytest.approx(once / float(planned.roi.saves_usd) * 30.4)


def test_a_plan_per_run_has_no_days() -> None:
    """How often it runs is not known."""
    job = running(a_profile(total=3.6e6, rate_per_s=100.0))
    roi = plan(job, offers=(TODAY, HALF), engineer_usd_per_hour=Decimal(0)).roi
    assert roi.saves_usd == Decimal("10.00")
    assert roi.payback_days is None


def test_packing_and_moving_are_never_added() -> None:
    """The greater of both savings counts, with its own effort."""
    packed = two()
    assert packed.roi.saves_usd == Decimal("200.00")
    assert packed.roi.effort_hours == 2 * ACTIONS["share-gpu"].effort_hours
    cheap = sold("cheap", "0.20")
    moved = two(cheap)
    assert moved.roi.saves_usd == Decimal("360.00")
    assert two(cheap, consolidate=False).roi.saves_usd == Decimal("360.00")
