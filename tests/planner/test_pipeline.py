"""The whole plan: the same for any order of inputs, and refused in words where it must be."""

from contextlib import suppress
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from planner.choice.requirements import Requirements
from planner.models.document import to_text
from planner.pipeline import draft_plan
from planner.plan.making import to_plan
from planner.profile.codec import dump as dump_profiles
from planner.profile.codec import parse_profiles
from planner.profile.kinds import PRECISIONS
from planner.profile.model import MonthlyUse, Profile
from pricing.catalog.catalog import Catalog, load_catalog
from pricing.catalog.offer import Offer
from pricing.errors import GpucostError, InputError, NoFeasibleOptionError, UnknownGpuError
from tests.planner.factories import TODAY, a_catalog, a_profile, plan, running, sold
from tests.pricing.factories import ASKED_ON

CATALOG = load_catalog(ASKED_ON)
JOBS = (
    running(a_profile({"util.kernel_time": 0.2, "mem.used_gib": 9.0}, name="a")),
    running(a_profile({"util.kernel_time": 0.3, "mem.used_gib": 30.0}, name="a")),
    running(a_profile(name="b", kind="inference_online")),
    a_profile(name="c", gpu="H100"),
)
OFFERS = (
    TODAY,
    sold("twin-1", "1.50"),
    sold("twin-2", "1.50"),
    sold("h100", "3.00", "H100-SXM-80GB"),
    sold("h100", "3.00", "H100-SXM-80GB", region="r2"),
    sold("h100", "3.00", "H100-SXM-80GB", region="r1"),
    sold("l4", "0.50", "L4", gpu_memory_gib=24),
)


@pytest.mark.slow
@settings(max_examples=settings().max_examples // 2)
@given(st.permutations(JOBS), st.permutations(OFFERS))
def test_the_order_of_inputs_does_not_change_the_plan(
    jobs: list[Profile], offers: list[Offer]
) -> None:
    """Any order of profiles and of catalog rows gives the same bytes."""
    assert to_text(to_plan(plan(*jobs, offers=offers))) == to_text(
        to_plan(plan(*JOBS, offers=OFFERS))
    )


def test_the_same_inputs_give_the_same_bytes_over_the_whole_catalog() -> None:
    """Twice the same call, twice the same text."""
    texts = {
        to_text(
            to_plan(
                draft_plan(
                    JOBS[2:3],
                    c,
                    Requirements(current="runpod/1x_A100-SXM-80GB_secure"),
                    as_of=ASKED_ON,
                )
            )
        )
        for c in (CATALOG, load_catalog(date(2026, 1, 1)))
    }
    assert len(texts) == 1


@pytest.mark.parametrize("precision", [None, *PRECISIONS])
@pytest.mark.parametrize("gpu", ["Tesla T4", "H100", "A10G"])
def test_every_offer_of_the_catalog_can_be_judged(precision: str | None, gpu: str) -> None:
    """No pair of GPU and precision in the whole catalog stops a plan."""
    asked = Requirements(
        objective="time",
        purchases=("on_demand", "spot", "reserved_180d", "reserved_1y"),
        include=frozenset({"community", "any-vendor", "any-arch"}),
    )
    found = draft_plan((a_profile(precision=precision, gpu=gpu),), CATALOG, asked, as_of=ASKED_ON)
    (job,) = found.jobs
    assert job.options
    assert job.rejected


def test_all_problems_of_all_jobs_are_raised_together() -> None:
    """One run shows every profile that cannot be planned."""
    with pytest.raises(InputError) as caught:
        plan(a_profile(gpu="TPU v6e"), a_profile(gpu=None, name="nameless"), running(a_profile()))
    assert len(caught.value.problems) == 2
    assert "nameless" in str(caught.value)
    with pytest.raises(InputError, match="the name of several cards"):
        plan(a_profile(gpu="RTX 6000"))
    assert issubclass(UnknownGpuError, InputError)


def test_no_feasible_option_names_the_tightest_limit() -> None:
    """Exit 3 says which limit to loosen."""
    with pytest.raises(NoFeasibleOptionError, match="budget") as caught:
        plan(running(a_profile()), offers=OFFERS, budget_usd=Decimal(1)).check_feasible()
    assert caught.value.exit_code == 3
    half = plan(*JOBS[2:], offers=OFFERS, budget_usd=Decimal(250))
    half.check_feasible()
    assert any("no option meets every limit" in w for w in half.warnings)


def test_an_unknown_price_is_planned_without_a_baseline_cost() -> None:
    """Options are priced; savings are unknown, never zero."""
    (job,) = plan(a_profile(gpu="Tesla K80", precision="fp32"), offers=OFFERS).jobs
    assert job.baseline.cost is None
    assert job.options
    assert job.recommended == "o0"


def test_mixed_periods_are_said() -> None:
    """Where only some jobs have a total, the plan is per month and says so."""
    run = running(a_profile(name="run", total=1e6, rate_per_s=100.0))
    mixed = plan(run, JOBS[2])
    assert mixed.period == "month"
    assert any("only run state a total" in w for w in mixed.warnings)
    assert plan(run).period == "run"
    assert not plan(run).warnings or all("total" not in w for w in plan(run).warnings)


@pytest.mark.parametrize(
    ("jobs", "asked", "fleet"),
    [
        (1, {}, False),
        (2, {}, True),
        (2, {"consolidate": False}, False),
        (1, {"consolidate": True}, True),
    ],
)
def test_consolidation_is_on_for_several_jobs(
    jobs: int, asked: dict[str, Any], *, fleet: bool
) -> None:
    """More than one job, unless told otherwise."""
    assert (plan(*JOBS[:jobs], **asked).fleet is not None) is fleet


def test_what_is_assumed_is_listed() -> None:
    """Hours, machine and kind that nobody stated."""
    said = "\n".join(plan(a_profile(hours=None, kind="unknown")).assumptions)
    assert "730" in said
    assert "is assumed" in said
    assert "kind of job is unknown" in said


def test_notes_of_the_data_reach_the_reader() -> None:
    """A doubt of the importer is a warning of the plan."""
    profile = a_profile()
    noted = replace(profile, provenance=replace(profile.provenance, notes=("the clock jumped",)))
    assert "job: the clock jumped" in plan(noted).warnings


@pytest.mark.parametrize(
    "profile",
    [
        pytest.param(a_profile(gpu_count=10**30, each=[]), id="GPUs"),
        pytest.param(a_profile(nodes=10**30), id="nodes"),
        pytest.param(a_profile(dataset_gib=0.0), id="no data set"),
        pytest.param(a_profile(dataset_gib=1e300), id="data set"),
        pytest.param(a_profile(usage=MonthlyUse(egress_gib_per_month=1e300)), id="egress"),
        pytest.param(a_profile(usage=MonthlyUse(storage_gib=1e300)), id="storage"),
        pytest.param(a_profile(total=1e200, rate_per_s=1.0), id="work"),
        pytest.param(a_profile(total=1e300, rate_per_s=1e-300), id="work and rate"),
        pytest.param(a_profile(total=1e-300, rate_per_s=1e300), id="no hours"),
        pytest.param(a_profile(unit="x", done=1e-300, rate_per_s=1e-300), id="hardly any work"),
        pytest.param(a_profile(cpu_cores=1e-300), id="hardly a core"),
    ],
)
def test_odd_numbers_are_planned_or_refused_in_words(profile: Profile) -> None:
    """Whatever the reader of profiles accepts never ends in a traceback."""
    away = sold("away", "1.00", provider="elsewhere")
    with suppress(InputError):
        (read,) = parse_profiles(dump_profiles((running(profile),)).encode(), "p.json")
        to_text(to_plan(plan(read, offers=(TODAY, away))))


def test_an_empty_catalog_is_refused_in_words() -> None:
    """No price in force on the day is said, not crashed on."""
    with pytest.raises(GpucostError):
        draft_plan((a_profile(),), Catalog(as_of=ASKED_ON, rows=()), Requirements(), as_of=ASKED_ON)


def test_the_day_of_the_plan_is_the_day_of_the_prices() -> None:
    """A price that starts tomorrow is not today's."""
    now = sold("x", "1.00", valid_until=ASKED_ON)
    later = sold("x", "9.00", valid_from=date(2026, 12, 1))
    for day, price in ((ASKED_ON, "1.00"), (date(2026, 12, 2), "9.00")):
        found = draft_plan((a_profile(),), a_catalog(now, later), Requirements(), as_of=day)
        assert found.jobs[0].baseline.cost == Decimal(price) * 100
