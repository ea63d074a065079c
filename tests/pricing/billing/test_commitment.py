"""Commitments: what is owed, and from which use it pays."""

from datetime import date
from decimal import Decimal

import pytest

from pricing.alternatives import commit, commitment_note
from pricing.catalog.catalog import load_catalog
from pricing.catalog.offer import PURCHASES, TERMS_H
from pricing.errors import InputError
from pricing.money import cents
from tests.pricing.factories import ASKED_ON, an_offer

CATALOG = load_catalog(ASKED_ON)


@pytest.mark.parametrize(
    ("name", "purchase", "term_usd", "other", "fraction"),
    [
        ("digitalocean/gpu-mi300x1-192gb-contracted", "reserved_1y", "16731.60",
         "digitalocean/gpu-mi300x1-192gb", 0.7375),
        ("digitalocean/gpu-mi325x1-256gb-contracted", "reserved_1y", "25228.80",
         "digitalocean/gpu-mi325x1-256gb/nyc2", 0.7579),
        ("together/8x_H100-SXM-80GB", "reserved_180d", "110246.40",
         "together/8x_H100-SXM-80GB", 0.7995),
    ],
)  # fmt: skip
def test_published_commitments(
    name: str, purchase: str, term_usd: str, other: str, fraction: float
) -> None:
    """1.91 x 8760 and 1.91 / 2.59; 2.88 x 8760 and 2.88 / 3.80; 25.52 x 4320 and 25.52 / 31.92."""
    reserved = CATALOG.find(*name.split("/"), purchase=purchase)
    found = commit(reserved, CATALOG.offers)
    assert found.on_demand is not None
    assert (str(cents(found.term_usd)), found.on_demand.place) == (term_usd, other)
    assert found.break_even_fraction is not None
    assert float(round(found.break_even_fraction, 4)) == fraction


def test_it_says_from_which_use_it_pays() -> None:
    """The sentence has the whole term's dollars and the share of its hours."""
    reserved = an_offer(purchase="reserved_1y", usd_per_hour=Decimal("0.75"))
    said = commitment_note(commit(reserved, (an_offer(),)))
    assert "8,760 h is owed whole: 6,570.00 USD" in said
    assert "pays from 75.0 % of the hours on (548 h a month), against example" in said
    assert said.endswith("moved by -17 %, +48 % at most in 180 days")


def test_machines_of_another_size_are_compared_by_the_gpu() -> None:
    """Where no machine has as many GPUs, the cheapest GPU-hour counts."""
    reserved = an_offer(purchase="reserved_1y", usd_per_hour=Decimal("4.00"), gpu_count=8)
    found = commit(reserved, (an_offer(),))
    assert found.break_even_fraction == Decimal("0.5")


@pytest.mark.parametrize(
    "other",
    [
        an_offer(provider="another"),
        an_offer(gpu="T4"),
        an_offer(purchase="spot"),
        an_offer(host="community"),
        an_offer(region="mars"),
    ],
)
def test_only_like_is_compared(other: object) -> None:
    """Another provider, GPU, way of buying, host or region is not a comparison."""
    reserved = an_offer(purchase="reserved_1y", region="earth")
    found = commit(reserved, (other,))  # type: ignore[arg-type]
    assert found.break_even_fraction is None
    assert "no on-demand price" in commitment_note(found)


def test_a_dear_commitment_never_pays() -> None:
    """A reserved price above the price on demand is told."""
    reserved = an_offer(purchase="reserved_180d", usd_per_hour=Decimal("1.01"))
    assert "never pays" in commitment_note(commit(reserved, (an_offer(as_of=date(2026, 1, 1)),)))


def test_what_is_no_commitment_is_refused() -> None:
    """On-demand offers have no term."""
    with pytest.raises(InputError, match="is not a commitment"):
        commit(an_offer(), ())


def test_every_reserved_purchase_has_a_term() -> None:
    """What is reserved is owed for so many hours; a new word for it needs its term."""
    assert {way for way in PURCHASES if way.startswith("reserved")} <= set(TERMS_H)
