"""Requirements check themselves: whoever builds them hears what the command line says."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from planner.choice.requirements import Requirements, Site
from pricing.errors import InputError
from tests.planner.factories import TODAY, a_profile, plan, running


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"objective": "cheapest"}, "'cheapest' is not one of cost, time, cost-per-work"),
        ({"gpus": ("H100x",)}, "'H100x' is not in the hardware table"),
        ({"purchases": ("spott",)}, "'spott' is not one of on_demand, spot"),
        ({"include": frozenset({"any-thing"})}, "'any-thing' is not one of community"),
        ({"gpu_counts": (0, 4)}, "(0, 4)"),
        ({"gpu_counts": (8, 4)}, "(8, 4)"),
        ({"deadline_h": -1.0}, "deadline_h: -1"),
        ({"deadline_h": float("nan")}, "deadline_h: nan"),
        ({"budget_usd": Decimal(-1)}, "budget_usd: -1"),
        ({"hours_per_month": 745.0}, "hours_per_month: 745 is not more than 0 and at most 744"),
        ({"hours_per_month": 0.0}, "hours_per_month: 0"),
        ({"work_total": 0.0}, "work_total: 0"),
        ({"egress_bytes": -1}, "egress_bytes: -1"),
        ({"storage_bytes": -1}, "storage_bytes: -1"),
        ({"slo_ms": 0.0}, "slo_ms: 0"),
        ({"max_slowdown": 0.9}, "max_slowdown: 0.9 is not at least 1 and at most 1000"),
        ({"engineer_usd_per_hour": Decimal(-1)}, "engineer_usd_per_hour: -1"),
        ({"horizon_months": Decimal(0)}, "horizon_months: 0"),
        ({"price_usd_per_hour": Decimal(0)}, "nothing is saved on a free machine"),
        ({"current": "aws"}, "'aws' is not an offer: write PROVIDER/TYPE"),
    ],
)
def test_what_cannot_be_meant_is_refused(asked: dict[str, Any], told: str) -> None:
    """A word that is not known, a number out of its range: a sentence, and not a KeyError later."""
    with pytest.raises(InputError) as caught:
        Requirements(**asked)
    (problem,) = caught.value.problems
    assert told in problem


def test_every_problem_is_told_at_once() -> None:
    """Three mistakes are three sentences."""
    with pytest.raises(InputError) as caught:
        Requirements(objective="cheapest", gpus=("nothing",), max_slowdown=0.5)  # type: ignore[arg-type]
    assert len(caught.value.problems) == 3


def test_a_changed_copy_is_checked_too() -> None:
    """`dataclasses.replace` is not a way around the check."""
    with pytest.raises(InputError, match="cheapest"):
        replace(Requirements(), objective="cheapest")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "models"),
    [
        ("H100", {"H100-SXM-80GB", "H100-PCIe-80GB"}),
        ("H100-SXM-80GB", {"H100-SXM-80GB"}),
        ("NVIDIA A100-SXM4-80GB", {"A100-SXM-80GB"}),
    ],
)
def test_a_gpu_may_be_called_as_on_the_command_line(name: str, models: set[str]) -> None:
    """A family, a model or a driver's name means the same models as `--gpu` does."""
    asked = Requirements(gpus=(name,))
    assert models <= set(asked.gpus)
    assert replace(asked, objective="time").gpus == asked.gpus


def test_a_family_name_plans_something() -> None:
    """`gpus=("A100",)` offers every A100 that is sold; it used to offer nothing, in silence."""
    (job,) = plan(running(a_profile()), gpus=("A100",)).jobs
    assert not job.baseline.broken
    assert all(rejected.reason != "capability" for rejected in job.rejected)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"providers": ("no-such",)}, "--provider no-such is not in the catalog"),
        ({"regions": ("no-such",)}, "--region no-such is not in the catalog"),
    ],
)
def test_names_of_the_catalog_are_checked_when_it_is_there(
    asked: dict[str, Any], told: str
) -> None:
    """A provider or a region that no offer has plans nothing, so it is refused."""
    with pytest.raises(InputError, match=told):
        plan(running(a_profile()), offers=(TODAY,), **asked)


def test_unknown_names_are_told_together() -> None:
    """An unknown provider and an unknown region are two sentences of one error."""
    with pytest.raises(InputError) as caught:
        plan(running(a_profile()), providers=("no-such",), regions=("nowhere",))
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize(
    "made", [lambda: Requirements(regions=("EU",)), lambda: Requirements(regions=("eu",))]
)
def test_regions_are_written_in_any_case(made: Callable[[], Requirements]) -> None:
    """EU and eu are one region."""
    assert made().regions == ("eu",)


def test_the_defaults_are_fine() -> None:
    """Nothing asked is nothing wrong."""
    assert Requirements(site=Site(pue=1.2)).objective == "cost"
