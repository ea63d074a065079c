"""Whatever gpucost prices and cannot launch, it says where to rent it."""

from gpucost.launch.rental_pages import PAGES, page_of
from pricing.catalog.catalog import load_catalog
from providers.registry import CLOUDS


def test_every_provider_of_the_catalog_has_a_page() -> None:
    """Each provider that offers are known of has its own page or tool."""
    providers = {offer.provider for offer in load_catalog().offers}
    assert providers <= {*PAGES, *(name for name, one in CLOUDS.items() if one.page)}
    assert not set(PAGES) & set(CLOUDS)
    assert page_of("aws") == CLOUDS["aws"].page
    assert page_of("a-new-one") == "the page of a-new-one"
