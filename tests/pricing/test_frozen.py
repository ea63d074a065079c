"""Frozen dataclasses built many at a time are those built alone."""

from dataclasses import FrozenInstanceError, dataclass, fields, replace
from decimal import Decimal

import pytest

from pricing.billing.usage import Usage
from pricing.catalog.offer import Offer
from pricing.errors import InputError
from pricing.frozen import builder, by_name, remade, values_of
from tests.pricing.factories import ASKED_ON, an_offer

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


def test_what_is_taken_apart_is_made_again() -> None:
    """Of all its values a frozen value is made as it was, without another look at them."""
    offer = an_offer(vcpus=8.0)
    values = values_of(Offer)
    assert values is not None
    again = remade(Offer, *values(offer))
    assert type(again) is Offer
    assert (again, hash(again), repr(again)) == (offer, hash(offer), repr(offer))
    assert remade(Offer, *[-1] * len(fields(Offer))) != offer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Short:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Longer(_Short):
    more: str


def test_only_plain_frozen_values_are_taken_apart() -> None:
    """Ways of their own to be copied, inherited fields and other classes stay as they are."""
    assert values_of(Usage) is None
    assert values_of(_Longer) is None
    assert values_of(Decimal) is None


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


def test_what_is_built_by_name_is_the_same() -> None:
    """Defaults, values that are worked out and checks are those of its own constructor."""
    made = by_name(Usage)
    assert made(duration_s=90.0, as_of=ASKED_ON) == Usage(duration_s=90.0, as_of=ASKED_ON)
    assert made(duration_s=90.0, as_of=ASKED_ON).life_s == Decimal(90)
    assert (
        made(duration_s=1, as_of=ASKED_ON).charged is not made(duration_s=1, as_of=ASKED_ON).charged
    )
    with pytest.raises(InputError, match="at least 1"):
        made(duration_s=1, as_of=ASKED_ON, count=0)
    with pytest.raises(FrozenInstanceError):
        made(duration_s=1, as_of=ASKED_ON).count = 2  # type: ignore[misc] # the point
