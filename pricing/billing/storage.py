"""What disks cost beyond those in a machine's price: boot disks, volumes, snapshots, objects."""

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from pricing.billing.amount import by_month, by_size
from pricing.billing.billing_rule import BYTES_PER_UNIT, BillingRule, caveats
from pricing.billing.items import ComesAlong, Item, Settled, Timed, Unpriced
from pricing.billing.lines import Charge, together
from pricing.billing.provider_rules import ProviderRules
from pricing.billing.usage import Usage
from pricing.catalog.offer import EVERYWHERE, Offer
from pricing.money import EXACT, price_text, quantity_text

_ZERO = Decimal(0)
_GIB = BYTES_PER_UNIT["GiB"]


class _Kept(NamedTuple):
    """One kind of storage: its line, the field of a use that asks for it, its price's rule."""

    what: str
    asked: str
    rule: str
    words: str


_BOOT = _Kept("boot-disk", "boot_disk_bytes", "boot_disk", "boot disk")
_DISK = _Kept("disk", "storage_bytes", "volume_storage", "volume storage")
_SNAPSHOT = _Kept("snapshot", "snapshot_bytes", "snapshot_storage", "snapshots")
_OBJECTS = _Kept("object-storage", "object_storage_bytes", "object_storage", "object storage")


def kept_data(offer: Offer, usage: Usage, rules: ProviderRules) -> list[Item]:
    """Return what is kept beside the machines; only what was asked for."""
    found: list[Item] = []
    if usage.storage_bytes:
        found.append(_item(_DISK, offer, usage, rules, kind=usage.storage_kind))
    if usage.snapshot_bytes:
        found.append(_item(_SNAPSHOT, offer, usage, rules))
    if usage.object_storage_bytes:
        found.append(_objects(offer, usage, rules))
    if usage.storage_h is None:
        return found
    kept_s, start = usage.kept_s, usage.start
    return [Settled(item.what, item.usd(kept_s, start), item, kept_s) for item in found]


def boot_disk(offer: Offer, usage: Usage, rules: ProviderRules) -> list[Item]:
    """Return what the machines boot from: in their price, else at its own or the volumes' price."""
    if not usage.boot_disk_bytes:
        return []
    size_bytes, included = Decimal(usage.boot_disk_bytes), Decimal(str(offer.boot_disk_gib or 0))
    if size_bytes <= included * _GIB:
        return [ComesAlong(_BOOT.what, included)]
    terms = rules.terms(_BOOT.rule, region=offer.region, purchase=offer.purchase)
    terms = terms or rules.terms(_DISK.rule, region=offer.region, purchase=offer.purchase)
    if not terms:
        return [_unknown(_BOOT, "", offer, rules)]
    if terms[0].each_gib is not None:
        return [_in_pieces(_BOOT, terms, usage, usage.count)]
    size = EXACT.divide(size_bytes * usage.count, terms[0].bytes_per_unit)
    return [Timed(_BOOT.what, by_size(terms, size), _BOOT.words, terms)]


def _item(kept: _Kept, offer: Offer, usage: Usage, rules: ProviderRules, *, kind: str = "") -> Item:
    terms = rules.terms(kept.rule, region=offer.region, kind=kind, purchase=offer.purchase)
    if not terms:
        return _unknown(kept, kind, offer, rules)
    if terms[0].each_gib is not None:
        return _in_pieces(kept, terms, usage, 1)
    rate = by_size(terms, _quantity(kept, usage, terms))
    return Timed(kept.what, rate, kept.words, terms)


def _quantity(kept: _Kept, usage: Usage, terms: tuple[BillingRule, ...]) -> Decimal:
    return EXACT.divide(Decimal(getattr(usage, kept.asked)), terms[0].bytes_per_unit)


def _unknown(kept: _Kept, kind: str, offer: Offer, rules: ProviderRules) -> Unpriced:
    of_kind = f" of kind {kind!r}" if kind else ""
    known = () if kept is _BOOT else rules.kinds(kept.rule)
    others = f"; kinds with a known price: {', '.join(known)}" if known else ""
    return Unpriced(
        kept.what,
        f"{kept.what}: the price of {kept.words}{of_kind} at {_where(offer)} is not known per GB "
        f"and month; it is left out{others}",
    )


def _where(offer: Offer) -> str:
    """Return the provider and the region."""
    return offer.provider if offer.region == EVERYWHERE else f"{offer.provider}/{offer.region}"


class _Disks(NamedTuple):
    """Storage that is sold in disks of some sizes."""

    fees: Timed
    number: int

    @property
    def what(self) -> str:
        return self.fees.what

    def usd(self, life_s: Decimal, start: datetime | None) -> Decimal:
        return self.fees.usd(life_s, start)

    def charge(self, offer: Offer, life_s: Decimal, start: datetime | None) -> Charge:
        price = self.fees.rate.price
        name = price.product or price.kind
        disks = f"{self.number} disks of {quantity_text(price.each_gib or _ZERO)} GiB ({name})"
        rule = f"{disks} at {price_text(price.amount)} each a month"
        return self.fees.charge_as(rule, offer, self.fees.rate.amount(life_s, start))


def _in_pieces(kept: _Kept, sizes: tuple[BillingRule, ...], usage: Usage, times: int) -> _Disks:
    """Return disks of the size that costs least, whole ones for each of so many times the size."""
    asked_bytes: int = getattr(usage, kept.asked)

    def pieces(size: BillingRule) -> int:
        each_bytes = int((size.each_gib or _ZERO) * _GIB)
        return -(-asked_bytes // each_bytes) * times

    price = min(sizes, key=lambda size: pieces(size) * size.amount)
    number = pieces(price)
    rate = by_month(price, number)
    return _Disks(Timed(kept.what, rate, kept.words, (price,)), number)


class _Objects(NamedTuple):
    """A base fee with its included size, where there is one, and what is kept beyond it."""

    parts: list[Timed]
    terms: tuple[BillingRule, ...]
    what: str = _OBJECTS.what

    def usd(self, life_s: Decimal, start: datetime | None) -> Decimal:
        return sum([part.usd(life_s, start) for part in self.parts], _ZERO)

    def charge(self, offer: Offer, life_s: Decimal, start: datetime | None) -> Charge:
        found = together(part.charge(offer, life_s, start) for part in self.parts)
        return found._replace(warnings=caveats(self.terms) + found.warnings)


def _objects(offer: Offer, usage: Usage, rules: ProviderRules) -> Item:
    terms = rules.terms(_OBJECTS.rule, region=offer.region, purchase=offer.purchase)
    if not terms:
        return _unknown(_OBJECTS, "", offer, rules)
    if terms[0].each_gib is not None:
        return _in_pieces(_OBJECTS, terms, usage, 1)
    base, included = rules.rule("object_storage_base"), rules.rule("object_storage_included")
    beyond, more, parts = _quantity(_OBJECTS, usage, terms), "", []
    if included is not None:
        beyond = max(_ZERO, beyond - included.amount)
        more = f", beyond {quantity_text(included.amount)} {included.per} in the base price"
    if base is not None:
        parts.append(Timed(_OBJECTS.what, by_month(base, 1), "base price", ()))
    if beyond:
        rate = by_size(terms, beyond)
        parts.append(Timed(_OBJECTS.what, rate, _OBJECTS.words, (), more))
    return _Objects(parts, tuple(filter(None, (*terms, base, included))))
