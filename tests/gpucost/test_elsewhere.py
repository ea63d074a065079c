"""Whatever gpucost prices and cannot launch, it says where to rent it."""

from gpucost.launch.rental_pages import PAGES, page_of
from pricing.catalog.catalog import load_catalog


def test_every_provider_of_the_catalog_has_a_page() -> None:
    """Each provider that offers are known of has its own page or tool."""
    providers = {offer.provider for offer in load_catalog().offers}
    assert providers <= set(PAGES)
    assert page_of("a-new-one") == "the page of a-new-one"
