"""Whatever gpucost prices and cannot launch, it says where to rent it."""

from decimal import Decimal

import pytest

from gpucost.launch.choice import check_asked, page_of
from pricing.catalog import sizes
from pricing.catalog.catalog import load_catalog
from pricing.errors import InputError
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


def test_a_machine_in_the_place_of_a_plan_is_given_as_type() -> None:
    """PROVIDER/TYPE that is no file is refused with the option that takes it."""
    with pytest.raises(InputError, match="give it as --type aws"):
        check_asked("aws/p5.48xlarge", None, None, None, region=None, ttl_s=Decimal(3600))
