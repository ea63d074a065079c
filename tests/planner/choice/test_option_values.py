"""Options and job plans carry what they save, take and cost: the writer works nothing out."""

from decimal import Decimal

import pytest

from planner.actions import ACTIONS
from planner.choice.requirements import Site
from planner.models.costs import Saving, saving, work_cost
from tests.planner.factories import TODAY, a_profile, plan, running, sold

POWER = {"util.kernel_time": 0.6, "power.board_w": 300.0, "power.limit_w": 400.0}


def test_an_option_says_what_it_saves() -> None:
    """The saving is today's exact bill less the option's, and its share of today's."""
    (job,) = plan(running(a_profile()), offers=(TODAY, sold("half", "1.00"))).jobs
    for option in job.options:
        assert job.baseline.cost is not None
        assert option.saves.usd == job.baseline.cost - option.cost
        assert option.saves.fraction == pytest.approx(
            float(option.saves.usd / job.baseline.cost), abs=1e-4
        )


def test_energy_lies_in_the_values() -> None:
    """The job today and every option of a measured board know their energy and carbon."""
    site = Site(grid_g_per_kwh=400.0)
    (job,) = plan(running(a_profile(POWER)), offers=(TODAY, sold("half", "1.00")), site=site).jobs
    assert job.energy.kwh is not None
    assert job.energy.kwh.mid == pytest.approx(30.0)  # 300 W for 100 h
    assert job.energy.kgco2e is not None
    assert job.energy.kgco2e.mid == pytest.approx(12.0)
    assert all(option.energy.kwh and option.energy.kgco2e for option in job.options)


def test_a_power_cap_lies_in_the_job_plan() -> None:
    """A board at its limit has a cap that saves; one that draws little has none."""
    (full,) = plan(running(a_profile({**POWER, "power.board_w": 400.0}))).jobs
    (low,) = plan(running(a_profile({**POWER, "power.board_w": 100.0}))).jobs
    assert full.power_cap is not None
    assert full.power_cap.cap_w < 400.0
    assert low.power_cap is None


def test_work_has_a_price_in_the_values() -> None:
    """Today and each option: dollars for an amount of work of the period."""
    (job,) = plan(
        running(a_profile(unit="image", rate_per_s=250.0)), offers=(TODAY, sold("half", "1.00"))
    ).jobs
    assert job.work_cost is not None
    assert job.work_cost.unit == "1M image"
    for option in job.options:
        assert option.work_cost is not None
        ratio = option.work_cost.mid / job.work_cost.mid
        assert ratio == pytest.approx(option.cost / Decimal(200), rel=Decimal("1e-6"))


def test_remedies_are_fitted_to_the_job() -> None:
    """A job plan lists the actions that apply today, each with what it would set."""
    (job,) = plan(running(a_profile({"util.kernel_time": 0.2}, cpu_cores=16))).jobs
    settings = {one.code: one.settings for one in job.remedies}
    assert settings["dataloader-workers"]["num_workers"] > 0
    assert all(ACTIONS[code].kind != "structural" for code in settings)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("200", "50", Saving(usd=Decimal(150), fraction=0.75)),
        ("200", "300", Saving(usd=Decimal(-100), fraction=-0.5)),
        ("0", "10", Saving(usd=Decimal(-10), fraction=None)),
        (None, "10", Saving(usd=None, fraction=None)),
    ],
)
def test_a_saving_of_what_is_unknown_is_unknown(
    before: str | None, after: str, found: Saving
) -> None:
    """The share of nothing, and all of the unknown, is None and not 0."""
    assert saving(None if before is None else Decimal(before), Decimal(after)) == found


@pytest.mark.parametrize(
    ("cost", "units", "unit"), [(None, 1.0, "image"), ("1", None, "image"), ("1", 1.0, None)]
)
def test_work_without_cost_amount_or_unit_has_no_price(
    cost: str | None, units: float | None, unit: str | None
) -> None:
    """Whichever of the three is unknown, the price is."""
    assert work_cost(None if cost is None else Decimal(cost), units, unit) is None
