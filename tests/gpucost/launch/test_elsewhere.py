"""Whatever gpucost prices and cannot launch, it says where to rent it."""

from gpucost.launch.choice import page_of
from pricing.catalog import sizes
from pricing.catalog.catalog import load_catalog
from pricing.tables import read_csv
from providers.registry import CLOUDS


def test_every_provider_of_the_catalog_has_a_page() -> None:
    """Each provider that offers are known of has its own page or tool."""
    providers = {offer.provider for offer in load_catalog().offers}
    launched = {name for name, one in CLOUDS.items() if one.page}
    by_hand = {row["provider"] for row in read_csv("rental.csv") if row["page"]}
    assert providers <= by_hand | launched
    assert not by_hand & launched
    assert page_of("aws") == CLOUDS["aws"].page
    assert page_of("runpod") == sizes.page_of("runpod")
    assert page_of("a-new-one") == "the page of a-new-one"
