"""Where regions are: each priced region has a country, and a price for everywhere has none."""

import pytest

from pricing.catalog.catalog import load_catalog
from pricing.catalog.regions import continent_of, known_regions, place_of, placed, regions_of
from tests.pricing.factories import an_offer

CATALOG = load_catalog()
# No source at hand says where these are; they are in no group until one does.
UNKNOWN = {
    ("crusoe", "us-east1-a"),
    ("hotaisle", "us-michigan"),
    ("azure", "southcentralus2"),
    *(("digitalocean", region) for region in ("mkc1", "ric1", "mem1")),
}


def test_every_priced_region_has_a_country() -> None:
    """A region of the catalog is in the table, or is known to be unknown."""
    sold = {(o.provider, o.region) for o in CATALOG.offers if o.region != "*"}
    assert {one for one in sold if place_of(*one) is None} == UNKNOWN


@pytest.mark.parametrize(
    ("provider", "region", "within", "outside"),
    [
        ("aws", "eu-central-1", ("eu", "de", "germany", "europe", "eu-central-1"), ("us", "gb")),
        ("aws", "eu-west-2", ("gb", "united kingdom", "europe"), ("eu",)),
        ("azure", "switzerlandnorth", ("ch", "europe"), ("eu",)),
        ("gcp", "us-central1", ("us", "north-america"), ("eu", "us-east1")),
        ("azure", "japaneast", ("apac", "jp"), ("us",)),
        ("scaleway", "pl-waw", ("eu", "pl"), ("fr",)),
        ("nowhere", "moon-1", ("moon-1",), ("eu", "us")),
    ],
)
def test_a_region_satisfies_its_groups(
    provider: str, region: str, within: tuple[str, ...], outside: tuple[str, ...]
) -> None:
    """A region is in itself, its country, its continent, and in the EU only with its members."""
    offer = an_offer(provider=provider, region=region)
    assert all(placed(offer, (word,)) == offer for word in within)
    assert not any(placed(offer, (word,)) for word in outside)


def test_a_price_for_everywhere_is_nowhere_in_particular() -> None:
    """`*` satisfies no region, except where size or provider is documented in one that fits."""
    lambda_h100 = CATALOG.find("lambda", "gpu_1x_h100_sxm5")
    assert lambda_h100.region == "*"
    told = [placed(lambda_h100, (word,)) for word in ("us", "jp", "eu", "gb")]
    assert [one.region if one else None for one in told] == [
        "us-east-1", "asia-northeast-1", "europe-central-1", None]  # fmt: skip
    droplet = CATALOG.find("digitalocean", "gpu-h200x1-141gb")
    assert regions_of(droplet) == ("nyc2", "tor1", "atl1")
    anywhere = CATALOG.find("verda", "1H100.80S.32V")
    assert anywhere.region == "*"
    assert placed(anywhere, ("us",)) is None
    assert placed(anywhere, ()) == anywhere
    seen = CATALOG.find("digitalocean", "gpu-mi325x1-256gb")
    assert regions_of(seen) == ("nyc2", "tor1")
    taken = [placed(seen, (word,)) for word in ("us", "ca", "tor1", "eu")]
    assert [one.region if one else None for one in taken] == ["nyc2", "tor1", "tor1", None]
    assert continent_of(seen) == "north-america"
    assert continent_of(anywhere) is None


def test_every_word_is_offered() -> None:
    """Regions, countries and groups are all known words."""
    assert {"eu", "us", "apac", "de", "germany", "eastus", "nyc2"} <= known_regions(CATALOG.offers)


@pytest.mark.parametrize(
    ("name", "region", "reason"),
    [
        ("azure/Standard_NC6s_v3", "eastus", "retired on 2025-09-30"),
        ("thunder-compute/thunder-compute-h100-pcie-prototyping", None, "network"),
        ("crusoe/NVIDIA H100 80GB HGX", None, "reservation only"),
        ("vultr/vultr-l40s-bare-metal-on-demand", None, "bare metal is sold by the machine"),
        ("vast/1x_H100-SXM-80GB_median", None, "median"),
        ("gcp/a4-highgpu-8g", "us-central1", "host are not published"),
        ("digitalocean/gpu-h100x1-80gb", None, None),
        ("coreweave/gd-8xh100ib-i128", None, None),
        ("hyperstack/n3-H100x1", None, None),
        ("crusoe/l40s-48gb.10x", None, None),
        ("aws/p5.48xlarge", "us-east-1", None),
    ],
)
def test_what_cannot_be_rented_as_written_says_why(
    name: str, region: str | None, reason: str | None
) -> None:
    """Retired, networked, reserved and unknown machines have a reason; a flavor has none."""
    said = CATALOG.find(*name.split("/"), region).not_for_rent_reason(CATALOG.as_of)
    assert said is None if reason is None else reason in (said or "")


def test_how_a_gpu_is_reached() -> None:
    """Bare metal, a part of a GPU and a GPU over TCP are told from one passed through."""
    found = {
        name: CATALOG.find(*name.split("/"), region).gpu_access
        for name, region in (
            ("oci/BM.GPU.H100.8", None), ("oci/VM.GPU.A10.1", None),
            ("aws/g6f.xlarge", "us-east-1"), ("aws/g4dn.metal", "us-east-1"),
            ("thunder-compute/thunder-compute-l40s-prototyping", None),
        )
    }  # fmt: skip
    assert list(found.values()) == [
        "bare-metal", "passthrough", "virtual", "bare-metal", "network"]  # fmt: skip
