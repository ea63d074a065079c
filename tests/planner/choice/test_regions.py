"""Data stay where --region says, and a service with a latency target on its continent."""

from typing import Any

import pytest

from planner.profile.model import Latency, Profile
from pricing.catalog.offer import Offer
from tests.planner.factories import a_profile, plan, running, sold

EUROPE = sold("eu", "1.50", provider="aws", region="eu-central-1")
AMERICA = sold("us", "1.00", provider="aws", region="us-east-1")
ANYWHERE = sold("any", "0.50", provider="lambda", region="*")


def _places(profile: Profile, today: Offer, **asked: Any) -> tuple[set[str], set[str]]:
    """Names offered, and names refused for their region."""
    (job,) = plan(running(profile, today), offers=(EUROPE, AMERICA, ANYWHERE), **asked).jobs
    refused = {r.offer for r in job.rejected if r.reason == "region"}
    return {o.offer.name for o in job.options}, refused


@pytest.mark.parametrize(
    ("asked", "offered"),
    [
        (("eu",), set()),
        (("europe", "us"), {"aws/us"}),
        (("us-east-1",), {"aws/us"}),
        (("jp",), set()),
    ],
)
def test_data_stay_in_the_regions_asked_for(asked: tuple[str, ...], offered: set[str]) -> None:
    """Only an offer known to be there is offered; a price for everywhere is refused as region."""
    found, refused = _places(a_profile(), EUROPE, regions=asked)
    assert found == offered
    assert "lambda/any" in refused


def test_a_service_with_a_latency_target_stays_on_its_continent() -> None:
    """Cheaper machines elsewhere, or nobody knows where, are refused unless a region was asked."""
    service = a_profile(kind="inference_online", latency_slo_ms=50.0, latency_ms=Latency(p99=10.0))
    assert _places(service, EUROPE) == (set(), {"aws/us", "lambda/any"})
    assert _places(service, EUROPE, regions=("us",))[0] == {"aws/us"}
    batch = a_profile(kind="inference_offline")
    assert _places(batch, EUROPE) == ({"aws/us", "lambda/any"}, set())


def test_the_cheapest_region_of_a_size_is_one_that_is_allowed() -> None:
    """A size sold cheaper on another continent is offered where the service may run."""
    here = sold("both", "1.20", provider="aws", region="eu-central-1")
    there = sold("both", "0.80", provider="aws", region="us-east-1")
    service = running(
        a_profile(kind="inference_online", latency_slo_ms=50.0, latency_ms=Latency(p99=10.0)),
        EUROPE,
    )
    (job,) = plan(service, offers=(EUROPE, here, there)).jobs
    assert [o.offer.region for o in job.options if o.offer.name == "aws/both"] == ["eu-central-1"]


def test_what_only_the_seller_knows_is_listed_and_never_recommended() -> None:
    """A median price is an option, to ask about; a retired size or a GPU over TCP is none."""
    ask = sold("1x_A100-SXM-80GB_median", "0.10", provider="vast")
    retired = sold("Standard_NC6s_v3", "0.05", provider="azure", region="eastus")
    remote = sold("thunder-a100-prototyping", "0.05", provider="thunder-compute")
    (job,) = plan(running(a_profile(), EUROPE), offers=(EUROPE, ask, retired, remote)).jobs
    assert "vast/1x_A100-SXM-80GB_median" in {o.offer.name for o in job.options}
    assert job.choice is None or job.choice.offer.name != "vast/1x_A100-SXM-80GB_median"
    refused = {r.offer: str(r.detail) for r in job.rejected}
    assert refused["azure/Standard_NC6s_v3"] == "retired on 2025-09-30"
    assert "over a network" in refused["thunder-compute/thunder-a100-prototyping"]


def test_a_price_for_everywhere_counts_where_it_is_documented() -> None:
    """A service that stays in Europe can go to Lambda's region there, and to no other of its."""
    lambda_gpu = sold("gpu_1x_a100", "0.90", provider="lambda", vcpus=30, ram_gib=200)
    service = a_profile(kind="inference_online", latency_slo_ms=50.0, latency_ms=Latency(p99=10.0))
    (job,) = plan(running(service, EUROPE), offers=(EUROPE, lambda_gpu)).jobs
    offered = {o.offer.place for o in job.options}
    assert offered == {"lambda/gpu_1x_a100/europe-central-1"}
