"""AWS's Price List, sizes, offerings and spot prices become rows, over the regions asked for."""

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pricing.catalog.catalog import load_catalog
from pricing.errors import InputError, MissingCredentialsError, ProviderError
from pricing.refresh.integrity_gate import check
from pricing.refresh.reading import PriceReading
from providers.aws.prices import REGIONS, fetch
from providers.provider import Request
from tests.providers.fakes.aws import Aws
from tests.providers.fakes.server import serving

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
KEY, SECRET = "AKIA" + "Q" * 16, "5ec4e7" * 7
HERE = "us-east-1"

ON_DEMAND = [
    ("g5.xlarge", HERE, "1.0060000000"),
    ("p5.48xlarge", HERE, "55.0400000000"),
    ("g6f.large", HERE, "0.2020000000"),
    ("g7e.2xlarge", HERE, "3.3631200000"),
    ("m5.large", HERE, "0.0960000000"),
    ("g5.xlarge", "us-west-2", "1.0060000000"),
]
SPOT = [
    ("g5.xlarge", "us-east-1b", "0.463200"),
    ("g5.xlarge", "us-east-1a", "0.412900"),
    ("m5.large", "us-east-1a", "0.035000"),
]


@pytest.fixture(scope="module")
def aws() -> Iterator[tuple[Aws, str]]:
    """The fake and its address."""
    fake = Aws(on_demand=[], spot=[])
    with serving(fake) as address:
        yield fake, address


@pytest.fixture
def fake(aws: tuple[Aws, str], monkeypatch: pytest.MonkeyPatch) -> Aws:
    """An AWS that the environment points at, with its usual prices."""
    fake, address = aws
    fake.on_demand, fake.spot, fake.failures = list(ON_DEMAND), list(SPOT), {}
    fake.requests.clear()
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    return fake


def ask(*regions: str) -> PriceReading:
    """Fetch the prices of those regions."""
    return fetch(Request(now=NOW, environment=os.environ, regions=regions))


@pytest.fixture(scope="module")
def reading(aws: tuple[Aws, str]) -> Iterator[PriceReading]:
    """One reading of two regions, for the tests that only look at it."""
    fake, address = aws
    fake.on_demand, fake.spot, fake.failures = list(ON_DEMAND), list(SPOT), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", address)
        patch.setenv("AWS_ACCESS_KEY_ID", KEY)
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        yield ask(HERE, "us-west-2")


def test_prices_of_machines_with_gpus_become_rows(reading: PriceReading) -> None:
    """Every page is read, text prices keep their digits, machines without GPUs are left out."""
    told = {
        (row["instance_type"], row["region"], row["purchase"]): row["usd_per_hour"]
        for row in reading.rows
    }
    assert told == {
        ("g5.xlarge", HERE, "on_demand"): "1.006",
        ("p5.48xlarge", HERE, "on_demand"): "55.04",
        ("g6f.large", HERE, "on_demand"): "0.202",
        ("g7e.2xlarge", HERE, "on_demand"): "3.36312",
        ("g5.xlarge", "us-west-2", "on_demand"): "1.006",
        ("g5.xlarge", HERE, "spot"): "0.4129",
    }
    assert reading.regions == (HERE, "us-west-2")


def test_the_cheapest_zone_is_the_spot_price_of_the_region(reading: PriceReading) -> None:
    """Its zone and the other zones' prices stand in the notes."""
    (spot,) = (row for row in reading.rows if row["purchase"] == "spot")
    assert spot["notes"] == "zone us-east-1a; us-east-1b 0.4632"
    assert spot["source"] == "AWS DescribeSpotPriceHistory"


@pytest.mark.parametrize(
    ("name", "machine"),
    [
        ("g5.xlarge", ("A10G", "1", "24", "4", "16", "single")),
        ("g7e.2xlarge", ("RTX-PRO-6000", "1", "96", "8", "64", "single")),
        ("p5.48xlarge", ("H100-SXM-80GB", "8", "80", "192", "2048", "")),
    ],
)
def test_the_machine_is_described(
    reading: PriceReading, name: str, machine: tuple[str, ...]
) -> None:
    """Model, count, memory of one GPU, cores and memory come from DescribeInstanceTypes."""
    row = next(row for row in reading.rows if row["instance_type"] == name)
    columns = ("gpu", "gpu_count", "gpu_memory_gib", "vcpus", "ram_gib", "interconnect")
    assert tuple(row[column] for column in columns) == machine


def test_the_gate_takes_what_aws_says(reading: PriceReading) -> None:
    """All rows pass, under AWS's own names of GPUs; a share of a GPU is a slice."""
    passed = check(reading, load_catalog(NOW.date()))
    assert passed.kept_out == ()
    (slice_,) = (offer for offer in passed.offers if offer.instance_type == "g6f.large")
    assert slice_.gpu == "L4"
    assert 0 < slice_.gpu_count < 1
    assert slice_.gpu_memory_gib < 4


def test_a_launch_asks_for_its_own_type_alone(fake: Aws, reading: PriceReading) -> None:
    """Four questions instead of every page of a region's; one that is not offered has no row."""
    request = Request(now=NOW, environment=os.environ, regions=(HERE,))
    fake.on_demand, fake.spot = list(ON_DEMAND), list(SPOT)
    narrow = fetch(replace(request, instance_types=("g5.xlarge",)))
    assert narrow.rows == tuple(
        row for row in reading.rows if (row["instance_type"], row["region"]) == ("g5.xlarge", HERE)
    )
    assert sorted(fake.requests) == [
        "DescribeInstanceTypeOfferings",
        "DescribeInstanceTypes",
        "DescribeSpotPriceHistory",
        "GetProducts",
    ]
    assert fetch(replace(request, instance_types=("p9.none",))).rows == ()


def test_what_a_region_does_not_offer_is_not_read(fake: Aws) -> None:
    """A price without an offering in the region makes no row."""
    fake.on_demand = [
        ("p5.48xlarge", "eu-central-1", "60"),
        ("p4de.24xlarge", "eu-central-1", "30"),
    ]
    assert [row["instance_type"] for row in ask("eu-central-1").rows] == ["p4de.24xlarge"]


def test_a_price_that_is_none_reaches_the_gate(fake: Aws) -> None:
    """A zero, missing or unreadable price is seen by the gate and not dropped on the way."""
    types = ("g5.xlarge", "p5.48xlarge", "g6f.large")
    fake.on_demand = [
        (name, HERE, told) for name, told in zip(types, ("0.0", "", "free"), strict=True)
    ]
    fake.spot = [
        ("g5.xlarge", "us-east-1a", "0.0"),
        ("p5.48xlarge", "us-east-1a", "no"),
        *(("p5.48xlarge", f"us-east-1{zone}", "20.0") for zone in "bc"),
    ]
    passed = check(ask(HERE), load_catalog(NOW.date()))
    assert passed.offers == ()
    assert {row.offer: row.fault for row in passed.broken} == {
        f"aws/g5.xlarge/{HERE}, on_demand": "price",
        f"aws/p5.48xlarge/{HERE}, on_demand": "missing",
        f"aws/g6f.large/{HERE}, on_demand": "price",
        f"aws/g5.xlarge/{HERE}, spot": "price",
        f"aws/p5.48xlarge/{HERE}, spot": "price",
    }


@pytest.mark.parametrize(
    ("action", "status", "code"),
    [
        ("GetProducts", 400, "AccessDeniedException"),
        ("DescribeInstanceTypes", 403, "UnauthorizedOperation"),
        ("DescribeInstanceTypeOfferings", 401, "AuthFailure"),
        ("DescribeSpotPriceHistory", 400, "InvalidParameterValue"),
    ],
)
def test_a_refusal_is_one_sentence(fake: Aws, action: str, status: int, code: str) -> None:
    """The service's code is told; no key is; nothing of the answer is kept."""
    fake.failures[action] = (status, code)
    with pytest.raises(ProviderError, match=code) as caught:
        ask(HERE)
    assert caught.value.exit_code == 5
    assert KEY not in str(caught.value)
    assert SECRET not in str(caught.value)
    assert fake.requests.count(action) == 1


def test_no_price_at_all_is_a_failure(fake: Aws) -> None:
    """An empty Price List is not read as an AWS that sells nothing."""
    fake.on_demand, fake.spot = [], []
    with pytest.raises(ProviderError, match="no GPU price in the answers for us-east-1"):
        ask(HERE)


def test_a_region_that_there_is_not_is_refused(fake: Aws) -> None:
    """--region with a typing error exits 2 before anything is asked."""
    with pytest.raises(InputError, match="us-esat-1 is not a region of AWS"):
        ask("us-esat-1")
    assert fake.requests == []


def test_without_credentials_the_variables_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The chain finds none: exit 5, and what to set."""
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    with pytest.raises(MissingCredentialsError, match="AWS_ACCESS_KEY_ID") as caught:
        ask(HERE)
    assert caught.value.exit_code == 5


def test_a_profile_that_there_is_not_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS_PROFILE with a typing error is told, not a bug."""
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(ProviderError, match="nobody"):
        ask(HERE)


def test_the_default_regions_are_regions() -> None:
    """What is read without --region is spelled right, and no region twice."""
    import boto3  # noqa: PLC0415 - heavy, only here

    assert set(REGIONS) <= set(boto3.session.Session().get_available_regions("ec2"))
    assert len(set(REGIONS)) == len(REGIONS)
