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
    """`*` satisfies no region, except where the size is documented in one that fits."""
    anywhere = CATALOG.find("lambda", "gpu_1x_h100_sxm5")
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
