"""Frozen dataclasses built many at a time are those built alone."""

from dataclasses import FrozenInstanceError, fields, replace
from decimal import Decimal

import pytest

from pricing.catalog.offer import Offer
from pricing.errors import InputError
from pricing.frozen import builder
from tests.pricing.factories import an_offer

_build = builder(Offer)


def _values(offer: Offer) -> list[object]:
    return [getattr(offer, field.name) for field in fields(offer)]


def test_what_is_built_is_the_same() -> None:
    """Type, equality, hash and text are those of an offer made by its own `__init__`."""
    offer = an_offer(vcpus=8.0)
    built = _build(*_values(offer))
    assert type(built) is Offer
    assert built == offer
    assert hash(built) == hash(offer)
    assert repr(built) == repr(offer)
    assert replace(built, region="here") == replace(offer, region="here")


def test_what_is_built_is_frozen() -> None:
    """No field of it can be set."""
    with pytest.raises(FrozenInstanceError):
        _build(*_values(an_offer())).region = "there"  # type: ignore[misc] # the point


def test_what_is_built_is_checked() -> None:
    """Values that no offer can have are refused in the same words."""
    values = _values(an_offer())
    values[[field.name for field in fields(Offer)].index("usd_per_hour")] = Decimal(0)
    with pytest.raises(InputError, match="a price is a Decimal above 0"):
        _build(*values)
