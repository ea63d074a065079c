"""Which machines are known by name: lists that print a name and a price alone need them."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from pricing.catalog.offer import Offer
from pricing.catalog.offer_rows import bundled_offers


def known_machine(provider: str, instance_type: str) -> Offer | None:
    """Return an offer of the machine, for its hardware; None where the name is not known."""
    return _machines().get((provider, instance_type))


def known_names(provider: str) -> tuple[str, ...]:
    """Return every machine of a provider that is known, by name."""
    return tuple(sorted(name for owner, name in _machines() if owner == provider))


@cache
def _machines() -> Mapping[tuple[str, str], Offer]:
    """Return the newest row of each name.

    A row that says more about the host counts before others.
    """
    found: dict[tuple[str, str], Offer] = {}
    for offer in bundled_offers():
        key = (offer.provider, offer.instance_type)
        if key not in found or _worth(offer) > _worth(found[key]):
            found[key] = offer
    return MappingProxyType(found)


def _worth(offer: Offer) -> tuple[bool, bool, int]:
    return offer.current, offer.vcpus is not None, offer.as_of.toordinal()
