"""What it costs once to bring the data to another provider or region."""

from decimal import Decimal

import pytest

from planner.choice.baseline import Baseline
from planner.choice.changes import effort_hours
from planner.choice.workload import GIB
from planner.choice.worth import data_bytes, move
from planner.models.costs import Move
from pricing.catalog.catalog import load_catalog
from tests.planner.factories import TODAY, a_case, a_catalog, a_profile, running, sold
from tests.pricing.factories import ASKED_ON, an_offer

CATALOG = load_catalog(ASKED_ON)
AWS = "aws/g5.xlarge/us-east-1"
SCALEWAY = "scaleway/L4-1-24G/fr-par"


def today() -> Baseline:
    """A job on AWS, which bills egress and states its network."""
    return a_case(a_profile(gpu="A10G"), CATALOG, current=AWS).baseline


def moved(amount: int | None, saves: str | None = "100") -> Move | None:
    """Moving so many bytes off AWS to save so much a month."""
    dollars = None if saves is None else Decimal(saves)
    return move(today(), an_offer(network_gbps=10.0), amount, dollars, CATALOG.as_of)


@pytest.mark.parametrize(
    ("dataset", "storage", "gib"),
    [
        (None, None, None),
        (10.0, None, 10),
        (None, 5.0, 5),
        (10.0, 5.0, 15),
        (5.0, 10.0, 10),
        (0.0, None, 0),
    ],
)
def test_the_data_is_the_data_set_and_what_is_kept(
    dataset: float | None, storage: float | None, gib: int | None
) -> None:
    """Not stated is unknown, none is none; a data set within what is stored counts once."""
    asked = None if storage is None else round(storage * GIB)
    context = a_case(a_profile(dataset_gib=dataset), CATALOG, storage_bytes=asked)
    assert data_bytes(context.profile, context.work) == (None if gib is None else gib * GIB)


@pytest.mark.parametrize("region", ["us-east-1", "*"])
def test_staying_costs_nothing(region: str) -> None:
    """No move in the region of today, nor to a size that is sold in every region."""
    assert move(today(), an_offer(provider="aws", region=region), GIB, None, CATALOG.as_of) is None


def test_another_region_bills_the_traffic_between_regions() -> None:
    """AWS takes 2 cents a GB from region to region, with nothing free."""
    found = move(
        today(), an_offer(provider="aws", region="us-west-2"), 1000 * 2**30, None, CATALOG.as_of
    )
    assert found is not None
    assert found.once_usd == Decimal(20)


def test_an_unknown_price_between_regions_is_not_free() -> None:
    """Where no rule states it, the dollars are unknown."""
    here = a_case(a_profile(gpu="L4"), CATALOG, current=SCALEWAY).baseline
    found = move(here, an_offer(provider="scaleway", region="elsewhere"), GIB, None, CATALOG.as_of)
    assert found is not None
    assert found.once_usd is None


def test_data_not_stated_is_unknown() -> None:
    """Neither dollars nor hours are made up."""
    assert moved(None) == Move(once_usd=None, hours=None, pays_back_days=None)


def test_a_terabyte_leaves_aws_at_its_tiers() -> None:
    """100 GB a month are free, the rest is 9 cents a GB; the slower network sets the time."""
    found = moved(1100 * 2**30)
    assert found is not None
    assert found.once_usd == Decimal(90)
    assert found.pays_back_days == pytest.approx(30.4 * 0.9)
    speeds = [s for s in (today().offer.network_gbps, 10.0) if s]  # type: ignore[union-attr]
    assert found.hours == pytest.approx(1.1 * 2**30 * 8 / 10**6 / min(speeds) / 3600)


@pytest.mark.parametrize("amount", [0, 1, GIB])
def test_little_data_moves_for_nothing(amount: int) -> None:
    """No data, or less than is free: no dollars, paid back at once."""
    found = moved(amount)
    assert found is not None
    assert found.once_usd == 0
    assert found.pays_back_days == 0


@pytest.mark.parametrize("saves", [None, "0", "-5"])
def test_without_a_monthly_saving_it_never_pays_back(saves: str | None) -> None:
    """A plan per run, or no saving: no days."""
    found = moved(1100 * 10**9, saves)
    assert found is not None
    assert found.pays_back_days is None


def test_each_machine_that_moves_takes_work() -> None:
    """By hand: one machine 1 h; four of them 1 h and a quarter of one for each of three more."""
    cheaper = sold("cheaper", "1.00")
    for machines, hours in ((1, 1.0), (4, 1.75)):
        job = running(a_profile(gpu_count=machines, nodes=machines))
        assert effort_hours(cheaper, (), (), a_case(job, a_catalog(TODAY, cheaper))) == hours
