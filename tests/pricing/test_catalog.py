"""The offer that holds on a day is found, or the error says what there is instead."""

import random
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs

from pricing.catalog.catalog import Catalog, load_catalog
from pricing.catalog.offer import Offer
from pricing.errors import InputError
from tests.pricing.factories import ASKED_ON, an_offer

EIGHT = ("digitalocean", "gpu-h100x8-640gb")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The bundled catalog on the day of the conformance bills."""
    return load_catalog(ASKED_ON)


def test_every_current_row_is_an_offer(catalog: Catalog) -> None:
    """All 3,356 current rows are offered, each name once, and none that was replaced."""
    assert catalog.count == len(catalog.offers) == 3356
    assert all(offer.current for offer in catalog.offers)
    names = {(offer.place, offer.purchase) for offer in catalog.offers}
    assert len(names) == 3356
    assert (catalog.newest, catalog.oldest) == (date(2026, 11, 18), date(2025, 1, 1))


def test_without_a_day_the_newest_reading_is_the_day() -> None:
    """The catalog never asks the clock."""
    assert load_catalog().as_of == date(2026, 11, 18)


@pytest.mark.parametrize(
    ("day", "price"),
    [
        ("2024-01-01", "20.00"),
        ("2024-11-15", "20.00"),
        ("2024-12-31", "20.00"),
        ("2025-01-01", "23.92"),
        ("2026-02-10", "23.92"),
        ("2026-05-28", "23.92"),
        ("2026-07-31", "23.92"),
        ("2026-08-01", "35.28"),
        ("2026-11-21", "35.28"),
    ],
)
def test_prices_follow_their_windows(catalog: Catalog, day: str, price: str) -> None:
    """A promotion ends on its day, a raise starts on its day, the first price reaches back."""
    assert catalog.at(date.fromisoformat(day)).find(*EIGHT).usd_per_hour == Decimal(price)


def test_a_day_before_the_first_price_is_said(catalog: Catalog) -> None:
    """The first known price is used for an earlier day, with a warning."""
    early = catalog.at(date(2024, 1, 1))
    assert any("no price is known" in said for said in early.find(*EIGHT).warnings(early.as_of))


@pytest.mark.parametrize(
    ("name", "region", "price", "found_in"),
    [
        ("aws/p5.48xlarge", "us-east-1", "55.04", "us-east-1"),
        ("lambda/gpu_8x_h100_sxm5", None, "31.92", "*"),
        ("lambda/gpu_8x_h100_sxm5", "us-east-1", "31.92", "*"),
        ("hotaisle/1x_MI300X", None, "2.99", "us-michigan"),
        ("digitalocean/gpu-mi325x1-256gb", "tor1", "3.8", "tor1"),
        ("digitalocean/gpu-mi325x1-256gb", None, "3.8", "*"),
        ("nebius/gpu-h100-sxm_1gpu-16vcpu-200gb", None, "4.5", "*"),
        ("nebius/gpu-h100-sxm_1gpu-16vcpu-200gb", "eu-north1", "4.5", "*"),
        ("nebius/gpu-h200-sxm_8gpu-128vcpu-1600gb", "us-central1", "43.2", "*"),
    ],
)
def test_a_region_is_needed_only_where_prices_differ(
    catalog: Catalog, name: str, region: str | None, price: str, found_in: str
) -> None:
    """One price everywhere, one region, or equal prices need no region; dated beats undated."""
    provider, instance_type = name.split("/")
    offer = catalog.find(provider, instance_type, region)
    assert (offer.usd_per_hour, offer.region) == (Decimal(price), found_in)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("awss", "p5.48xlarge"), "Did you mean 'aws'\\?"),
        (("mars", "p5.48xlarge"), "It has: aws, azure"),
        (("aws", "p5.48xl"), "Nearest: p5.48xlarge"),
        (("aws", "P5.48XLARGE"), "Nearest: p5.48xlarge"),
        (("aws", "???"), "gpucost prices --provider aws"),
        (("aws", "p5.48xlarge"), "Regions: ap-northeast-1, .*us-west-2"),
        (("aws", "p5.48xlarge", "eu-west-9"), "is sold in: ap-northeast-1"),
        (("digitalocean", "gpu-h100x8-640gb", None, "spot"), "listed as: on_demand"),
        (("digitalocean", "gpu-mi350x1-288gb-spot"), "Add --purchase spot"),
        (("digitalocean", "gpu-mi300x1-192gb-contracted"), "listed as: reserved_1y"),
        (("digitalocean", "gpu-h100x8-640gb-contracted"), "by contract only"),
    ],
)
def test_what_is_not_sold_is_explained(catalog: Catalog, asked: tuple[Any, ...], said: str) -> None:
    """A wrong name exits 2 with the nearest names, the regions or the purchases there are."""
    with pytest.raises(InputError, match=said) as caught:
        catalog.find(*asked)
    assert caught.value.exit_code == 2


def test_an_ended_price_is_not_offered() -> None:
    """A row past its last day with no successor leaves the offers, and find says when it ended."""
    ended = an_offer(valid_until=date(2026, 11, 10))
    catalog = Catalog(as_of=ASKED_ON, rows=(ended,))
    assert catalog.offers == ()
    with pytest.raises(InputError, match="ended on 2026-11-10"):
        catalog.find("example", "one-gpu")
    assert catalog.at(date(2026, 11, 10)).offers == (ended,)


ROW = an_offer()


@pytest.mark.parametrize(
    ("winner", "loser"),
    [
        (ROW, structs.replace(ROW, as_of=date(2026, 10, 1))),
        (structs.replace(ROW, as_of=date(2026, 1, 2)), structs.replace(ROW, dated=False)),
        (structs.replace(ROW, valid_from=date(2026, 11, 2)), ROW),
        (ROW, structs.replace(ROW, current=False)),
        (structs.replace(ROW, current=False), structs.replace(ROW, as_of=date(2026, 10, 1))),
        (structs.replace(ROW, dated=False, valid_from=date(2026, 11, 2)), ROW),
        (ROW, structs.replace(ROW, as_of=date(2026, 12, 1))),
    ],
)
def test_precedence_of_rows_in_force(winner: Offer, loser: Offer) -> None:
    """Dated beats undated, later beats earlier, current beats superseded, the future waits."""
    cheap = structs.replace(loser, usd_per_hour=Decimal("0.01"))
    for rows in ((winner, cheap), (cheap, winner)):
        catalog = Catalog(as_of=ASKED_ON, rows=rows)
        assert catalog.offers == (winner,)
        assert catalog.find("example", "one-gpu") == winner


def test_a_replaced_row_of_another_region_spelling_gives_way() -> None:
    """A superseded price everywhere ends when the type is read in a region, and the reverse."""
    old = an_offer(current=False, as_of=date(2026, 9, 1))
    new = an_offer(region="ric1")
    assert Catalog(as_of=ASKED_ON, rows=(old, new)).offers == (new,)
    old, new = structs.replace(old, region="ric1"), structs.replace(new, region="*")
    assert Catalog(as_of=ASKED_ON, rows=(old, new)).offers == (new,)
    assert Catalog(as_of=date(2026, 9, 15), rows=(old, new)).find("example", "one-gpu") in {
        old, new
    }  # fmt: skip


def test_a_current_price_everywhere_outlives_a_later_regional_one() -> None:
    """A newer reading of one region changes that region only."""
    everywhere = an_offer(as_of=date(2026, 10, 8))
    region = an_offer(region="ric1", usd_per_hour=Decimal("0.90"))
    catalog = Catalog(as_of=ASKED_ON, rows=(everywhere, region))
    assert catalog.offers == (everywhere, region)
    assert catalog.find("example", "one-gpu") == everywhere
    assert catalog.find("example", "one-gpu", "ric1") == region
    assert catalog.find("example", "one-gpu", "nyc2") == everywhere


def test_a_superseded_leftover_is_found_but_not_offered(catalog: Catalog) -> None:
    """A type that the provider's newest reading omits is quoted on request, with a warning."""
    offer = catalog.find("digitalocean", "gpu-mi350x1-288gb")
    assert offer.usd_per_hour == Decimal("4.4")
    assert offer not in catalog.offers
    assert "superseded" in catalog.delisting(offer)[0]
    assert catalog.delisting(catalog.find(*EIGHT)) == ()
    assert offer in catalog.at(date(2026, 6, 1)).offers


def test_history_is_in_order_of_start(catalog: Catalog) -> None:
    """The known prices of a size come oldest first."""
    prices = [str(row.usd_per_hour) for row in catalog.history(*EIGHT)]
    assert prices == ["20.00", "23.92", "35.28"]
    assert catalog.history("nobody", "nothing") == ()


def test_extra_rows_compete_and_their_order_does_not_matter() -> None:
    """A price read today replaces the bundled one; shuffled input gives the same catalog."""
    bundled = load_catalog(ASKED_ON)
    fresh = tuple(
        structs.replace(offer, usd_per_hour=Decimal("9.99"), as_of=ASKED_ON, valid_from=None)
        for offer in bundled.offers
        if offer.provider == "lambda"
    )
    shuffled = tuple(random.Random(7).sample(fresh, len(fresh)))  # noqa: S311 - order, not secrets
    one, other = load_catalog(ASKED_ON, extra=fresh), load_catalog(ASKED_ON, extra=shuffled)
    assert one.offers == other.offers
    assert len(one.offers) == 3356
    assert one.find("lambda", "gpu_1x_a10").usd_per_hour == Decimal("9.99")
    assert not one.is_stale(one.find("lambda", "gpu_1x_a10"))


def test_community_hosts_are_known(catalog: Catalog) -> None:
    """Machines of third parties are marked, and only they."""
    community = {o.provider for o in catalog.offers if o.is_community}
    assert community == {"runpod", "vast"}
    assert not catalog.find("runpod", "1x_L40S_secure").is_community
    assert catalog.find("runpod", "1x_L40S_community").is_community


def test_published_sizes_join_their_offers(catalog: Catalog) -> None:
    """Disks and included transfer come from the size table; unknown ones stay unknown."""
    eight = catalog.find(*EIGHT)
    disks = (eight.boot_disk_gib, eight.scratch_disk_gib, eight.included_transfer_gib)
    assert disks == (2046, 40960, 60000)
    spot = catalog.find("digitalocean", "gpu-mi350x1-288gb-spot", purchase="spot")
    assert (spot.boot_disk_gib, spot.included_transfer_gib) == (720, None)
    contracted = catalog.find("digitalocean", "gpu-mi300x1-192gb-contracted", None, "reserved_1y")
    assert contracted.contract_only
