"""Which offers are one machine under two names, or in two spellings of a region.

Catalogs call one machine by several names, and some of them nobody can order. Offers are held
together by what is rented: provider, region, GPU, count, host, way of buying.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date

from pricing.catalog.offer import EVERYWHERE, Offer

LARGEST_DIFFERENCE = 0.25
"""Hosts of one class differ by at most this share in processors and in memory; rounding and
reserved memory make less, the next size of a machine makes more."""

_TRUST = ("low", "medium", "high")
_Hardware = tuple[str, float, str, str]


def replaced(fresh: Iterable[Offer], before: Iterable[Offer]) -> dict[Offer, Offer]:
    """Return older offers of machines that fresh ones list under the name that counts now.

    An older name that the fresh offers use themselves stays: that is another product with the same
    hardware. A price for everywhere gives way to prices of regions.

    Args:
        fresh: of one provider, from one source.
        before: the provider's offers in force.

    Returns:
        older -> the fresh one that takes its place.
    """
    fresh = tuple(fresh)
    names = {offer.instance_type for offer in fresh}
    index = _by_hardware(fresh)
    found = {}
    for old in before:
        for new in index.get(_hardware(old), ()):
            if _takes_place(new, old, names):
                found[old] = new
                break
    return found


def outdated(fresh: Iterable[Offer], before: Iterable[Offer]) -> dict[Offer, Offer]:
    """Return fresh offers of machines known from a later day, or surer, by another name.

    Names of which one side uses both are two products with the same hardware.

    Returns:
        fresh -> the known one.
    """
    fresh, before = tuple(fresh), tuple(before)
    told = {offer.instance_type for offer in fresh}
    known = {offer.instance_type for offer in before}
    index = _by_hardware(offer for offer in before if offer.instance_type not in told)
    found = {}
    for new in fresh:
        if new.instance_type in known:
            continue
        for old in index.get(_hardware(new), ()):
            if _same_host(new, old) and _in(old, new) and not _is_newer(new, old):
                found[new] = old
                break
    return found


def ended(old: Offer, new: Offer, day: date) -> Offer:
    """Return the row that ends an older offer on the day on which another takes its place."""
    name = new.instance_type
    why = f"now {name}" if name != old.instance_type else f"now told by region, as in {new.region}"
    return replace(
        old,
        current=False,
        withdrawn=True,
        valid_from=max(day, old.starts),
        valid_until=None,
        notes=f"the same machine is {why} ({new.source}, {day})",
    )


def _by_hardware(offers: Iterable[Offer]) -> Mapping[_Hardware, tuple[Offer, ...]]:
    index: dict[_Hardware, list[Offer]] = {}
    for offer in offers:
        index.setdefault(_hardware(offer), []).append(offer)
    return {key: tuple(found) for key, found in index.items()}


def _hardware(offer: Offer) -> _Hardware:
    return (offer.gpu, offer.gpu_count, offer.purchase, offer.host)


def _takes_place(new: Offer, old: Offer, names: set[str]) -> bool:
    if old == new or not _is_newer(new, old):
        return False
    if old.instance_type == new.instance_type:
        return old.region == EVERYWHERE != new.region
    return old.instance_type not in names and _same_host(new, old) and _in(new, old)


def _in(new: Offer, old: Offer) -> bool:
    """Return whether they are in one region; a price for everywhere is in each."""
    return new.region == old.region or EVERYWHERE in (new.region, old.region)


def _same_host(one: Offer, other: Offer) -> bool:
    """Return whether the hosts are of one class.

    What is not known of one of them is not a difference.
    """
    pairs = ((one.vcpus, other.vcpus), (one.ram_gib, other.ram_gib))
    return all(_near(a, b) for a, b in pairs if a and b)


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= LARGEST_DIFFERENCE * max(one, other)


def _is_newer(new: Offer, old: Offer) -> bool:
    """Return whether the new price counts: read later, or on the day by a source as sure."""
    return _rank(new) >= _rank(old)


def _rank(offer: Offer) -> tuple[bool, date, int]:
    trust = _TRUST.index(offer.confidence) if offer.confidence in _TRUST else 0
    return offer.dated, offer.as_of, trust
