"""Ancillary charges of a use at one place, beside machine time and traffic: storage and services.

An item gives its dollars where many bills are compared, and the same dollars with their line where
one is written. Traffic is not among them: how much of it is free depends on the life of
the machines in more than one way.
"""

from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from pricing.billing.billing_rule import BYTES_PER_UNIT, BillingRule, caveats
from pricing.billing.lines import (
    ByHour,
    Charge,
    QuoteLine,
    Tariff,
    about,
    by_month,
    by_size,
    words_of,
)
from pricing.billing.provider_rules import ProviderRules
from pricing.billing.usage import Usage
from pricing.catalog.offer import EVERYWHERE, Offer
from pricing.message import Message, join
from pricing.money import EXACT, price_text, quantity_text

_ZERO = Decimal(0)
_SECONDS_PER_HOUR = Decimal(3600)


class _HourlyCharge(NamedTuple):
    """What is billed by its time.

    Attributes:
        what: its kind of line.
        rate: its price, in whatever quantity was asked for.
        label: what it is called in the rule of its line.
        terms: the rules behind it, whose caveats are said.
        more: what the rule of its line says beside its price.
        pieces: how many disks of a size that is sold; 0: it is sold by size.
        kept_s: how long it is kept; None: as long as the machines live.
    """

    what: str
    rate: Tariff
    label: str
    terms: tuple[BillingRule, ...]
    more: str = ""
    pieces: int = 0
    kept_s: Decimal | None = None

    def usd(self, life_s: Decimal, start: datetime | None) -> Decimal:
        """Return its dollars, exact."""
        return self.rate.usd(life_s if self.kept_s is None else self.kept_s, start)

    def charge(self, offer: Offer, life_s: Decimal, start: datetime | None) -> Charge:
        """Return the same as a line, with what must be said beside it."""
        price = self.rate.price
        rule = join((words_of(price, self.label), self.more), "phrases")
        if self.pieces:
            gib, usd = quantity_text(price.each_gib or _ZERO), price_text(price.amount)
            name = price.product or price.kind
            rule = Message("bill.disks", n=self.pieces, gib=gib, name=name, usd=usd)
        amount = self.rate.amount(life_s if self.kept_s is None else self.kept_s, start)
        warnings = tuple([about(self.what, text, offer.provider) for text in amount.warnings])
        return Charge((amount.line(self.what, price, rule),), warnings + caveats(self.terms))


class _Included(NamedTuple):
    """A boot disk in the price of its machine."""

    what: str
    gib: Decimal

    def usd(self, life_s: Decimal, start: datetime | None) -> Decimal:  # noqa: ARG002 - as of every item
        """Return nothing."""
        return _ZERO

    def charge(self, offer: Offer, life_s: Decimal, start: datetime | None) -> Charge:  # noqa: ARG002 - as of every item
        """Return its line, which costs nothing."""
        line = QuoteLine(
            what=self.what,
            usd=_ZERO,
            formula=Message("bill.included", gib="{0}"),
            numbers=(self.gib,),
            rule=Message("bill.boot-disk-included"),
            source=offer.source,
            as_of=offer.date_text,
        )
        return Charge((line,), ())


class _Unpriced(NamedTuple):
    """What has no known price, with the sentence that says so."""

    what: str
    text: str

    def usd(self, life_s: Decimal, start: datetime | None) -> None:
        """Return that its dollars are not known."""

    def charge(self, offer: Offer, life_s: Decimal, start: datetime | None) -> Charge:  # noqa: ARG002 - as of every item
        """Return no line, but what is left out."""
        return Charge((), (self.text,), (self.what,))


Item = _HourlyCharge | _Included | _Unpriced
"""One thing that was asked for: its kind of line, its dollars for a life and a start (None: it has
no known price), and the same as a line with what must be said beside it."""


_GIB = BYTES_PER_UNIT["GiB"]


class _Kept(NamedTuple):
    """One kind of storage: its line, the field of a use that asks for it, its price's rule."""

    what: str
    field: str
    rule: str
    label: str


_BOOT = _Kept("boot-disk", "boot_disk_bytes", "boot_disk", Message("bill.boot-disk"))
_BOOT_OFF = _BOOT._replace(label=Message("bill.boot-disk-off"))
_DISK = _Kept("disk", "storage_bytes", "volume_storage", Message("bill.volume"))
_SNAPSHOT = _Kept("snapshot", "snapshot_bytes", "snapshot_storage", Message("bill.snapshots"))
_OBJECTS = _Kept(
    "object-storage", "object_storage_bytes", "object_storage", Message("bill.objects")
)


def kept_data(offer: Offer, usage: Usage, rules: ProviderRules) -> list[Item]:
    """Return what is kept beside the machines; only what was asked for."""
    items: list[Item] = []
    if usage.storage_bytes:
        items.append(_item(_DISK, offer, usage, rules, kind=usage.storage_kind))
    if usage.snapshot_bytes:
        items.append(_item(_SNAPSHOT, offer, usage, rules))
    if usage.object_storage_bytes:
        items += _objects(offer, usage, rules)
    return items


def boot_disk(offer: Offer, usage: Usage, rules: ProviderRules, life_s: Decimal) -> list[Item]:
    """Return what the machines boot from: in their price, else at its own or the volumes' price.

    A disk that stays while its machine, which lives so long, is off is an item of its own.
    """
    if not usage.boot_disk_bytes:
        return []
    running = _running_disk(offer, usage, rules)
    off_s = Decimal(usage.boot_disk_h or 0) * _SECONDS_PER_HOUR - life_s
    if off_s <= 0 or isinstance(running, _Unpriced):
        return [running]
    return [running, _disk_while_off(offer, usage, rules, off_s)]


def _running_disk(offer: Offer, usage: Usage, rules: ProviderRules) -> Item:
    included = Decimal(str(offer.boot_disk_gib or 0))
    if Decimal(usage.boot_disk_bytes) <= included * _GIB:
        return _Included(_BOOT.what, included)
    terms = rules.terms(_BOOT.rule, region=offer.region, purchase=offer.purchase)
    terms = terms or rules.terms(_DISK.rule, region=offer.region, purchase=offer.purchase)
    return _disk_of(_BOOT, terms, usage) if terms else _unpriced(_BOOT, "", offer, rules)


def _disk_while_off(offer: Offer, usage: Usage, rules: ProviderRules, off_s: Decimal) -> Item:
    """Return what the same disk costs without its machine: a stopped volume, or as before.

    A disk that comes with the machine goes with it: what stays is a volume.
    """
    boot = rules.terms(_BOOT.rule, region=offer.region, purchase=offer.purchase)
    terms = (
        rules.terms(_DISK.rule, region=offer.region, kind="stopped", purchase=offer.purchase)
        or (boot if boot and boot[0].amount else ())
        or rules.terms(_DISK.rule, region=offer.region, purchase=offer.purchase)
    )
    if not terms:
        return _unpriced(_BOOT, "", offer, rules)
    return _disk_of(_BOOT_OFF, terms, usage)._replace(kept_s=off_s)


def _disk_of(storage: _Kept, terms: tuple[BillingRule, ...], usage: Usage) -> _HourlyCharge:
    """Return a disk for each machine."""
    if terms[0].each_gib is not None:
        return _in_pieces(storage, terms, usage, usage.count)
    size = EXACT.divide(Decimal(usage.boot_disk_bytes) * usage.count, terms[0].bytes_per_unit)
    return _HourlyCharge(storage.what, by_size(terms, size), storage.label, terms)


def _item(
    storage: _Kept, offer: Offer, usage: Usage, rules: ProviderRules, *, kind: str = ""
) -> Item:
    terms = rules.terms(storage.rule, region=offer.region, kind=kind, purchase=offer.purchase)
    if not terms:
        return _unpriced(storage, kind, offer, rules)
    if terms[0].each_gib is not None:
        return _in_pieces(storage, terms, usage, 1)
    rate = by_size(terms, _quantity(storage, usage, terms))
    return _HourlyCharge(storage.what, rate, storage.label, terms, kept_s=usage.kept_apart_s)


def _quantity(storage: _Kept, usage: Usage, terms: tuple[BillingRule, ...]) -> Decimal:
    return EXACT.divide(Decimal(getattr(usage, storage.field)), terms[0].bytes_per_unit)


def _unpriced(storage: _Kept, kind: str, offer: Offer, rules: ProviderRules) -> _Unpriced:
    kinds = () if storage is _BOOT else rules.kinds(storage.rule)
    where = offer.provider if offer.region == EVERYWHERE else f"{offer.provider}/{offer.region}"
    return _unpriced_storage(storage, kind, where, kinds)


@lru_cache(maxsize=1024)
def _unpriced_storage(storage: _Kept, kind: str, region: str, kinds: tuple[str, ...]) -> _Unpriced:
    label = Message("bill.of-kind", what=storage.label, kind=repr(kind)) if kind else storage.label
    text = Message("bill.no-price-a-gb", what=label, place=region)
    return _Unpriced(storage.what, about(storage.what, _with_kinds(text, kinds)))


@lru_cache(maxsize=1024)
def _unpriced_service(
    kind_code: str, service: str, provider: str, kinds: tuple[str, ...]
) -> _Unpriced:
    text = Message("bill.no-price-of-a", what=service, provider=provider)
    return _Unpriced(kind_code, about(kind_code, _with_kinds(text, kinds)))


def _with_kinds(text: Message, kinds: tuple[str, ...]) -> Message:
    return Message("bill.known-kinds", text=text, kinds=kinds) if kinds else text


def _in_pieces(
    storage: _Kept, sizes: tuple[BillingRule, ...], usage: Usage, times: int
) -> _HourlyCharge:
    """Return disks of the size that costs least, whole ones for each of so many times the size."""
    asked_bytes: int = getattr(usage, storage.field)

    def pieces(size: BillingRule) -> int:
        each_bytes = int((size.each_gib or _ZERO) * _GIB)
        return -(-asked_bytes // each_bytes) * times

    price = min(sizes, key=lambda size: pieces(size) * size.amount)
    number = pieces(price)
    kept_s = None if storage.what == _BOOT.what else usage.kept_apart_s
    rate = by_month(price, number)
    return _HourlyCharge(storage.what, rate, storage.label, (price,), pieces=number, kept_s=kept_s)


def _objects(offer: Offer, usage: Usage, rules: ProviderRules) -> list[Item]:
    """Return the base fee with its included size, where there is one, and what is kept beyond."""
    terms = rules.terms(_OBJECTS.rule, region=offer.region, purchase=offer.purchase)
    if not terms:
        return [_unpriced(_OBJECTS, "", offer, rules)]
    if terms[0].each_gib is not None:
        return [_in_pieces(_OBJECTS, terms, usage, 1)]
    base, included = rules.rule("object_storage_base"), rules.rule("object_storage_included")
    beyond, more = _quantity(_OBJECTS, usage, terms), ""
    rates: list[tuple[Tariff, str, str]] = []
    if included is not None:
        beyond = max(_ZERO, beyond - included.amount)
        size = f"{quantity_text(included.amount)} {included.per}"
        more = Message("bill.beyond-base", size=size)
    if base is not None:
        rates.append((by_month(base, 1), Message("bill.base-price"), ""))
    if beyond:
        rates.append((by_size(terms, beyond), _OBJECTS.label, more))
    behind, kept_s = tuple(filter(None, (*terms, base, included))), usage.kept_apart_s
    return [
        _HourlyCharge(_OBJECTS.what, rate, label, () if n else behind, rule_more, kept_s=kept_s)
        for n, (rate, label, rule_more) in enumerate(rates)
    ]


_ADDRESS, _NAT = Message("bill.address"), Message("bill.nat")
USUAL_PLANE = "standard"
"""The control plane that a provider sells without a further name."""


def services(offer: Offer, usage: Usage, rules: ProviderRules) -> list[Item]:
    """Return the services that live as long as the machines; only what was asked for."""
    plane = usage.control_plane
    kind = "" if plane == USUAL_PLANE else plane
    plane_label = Message("bill.control-plane", kind=plane) if plane else ""
    requested = (
        ("address", usage.addresses, "ipv4", "", _ADDRESS),
        ("address", usage.nat_gateways, "nat_gateway_hour", "", _NAT),
        ("control-plane", bool(plane), "k8s_control_plane", kind, plane_label),
    )
    return [
        _service(category, int(number), label, rule, kind, offer, usage, rules)
        for category, number, rule, kind, label in requested
        if number
    ]


def _service(  # noqa: PLR0913, PLR0917 - what is asked for, and where
    category: str,
    number: int,
    label: str,
    rule: str,
    kind: str,
    offer: Offer,
    usage: Usage,
    rules: ProviderRules,
) -> Item:
    terms = rules.terms(rule, region=offer.region, kind=kind, purchase=offer.purchase)
    if not terms:
        return _unpriced_service(category, label, offer.provider, rules.kinds(rule))
    price = _for_so_many(terms, usage.count)
    count = number * (usage.count if price.per_machine else 1)
    rate = by_month(price, count) if price.unit == "USD/month" else ByHour(price, count)
    return _HourlyCharge(category, rate, price.product or label, (price,))


def _for_so_many(terms: tuple[BillingRule, ...], count: int) -> BillingRule:
    """Return the price that holds for so many machines; tiers of a service count them."""
    fitting = (term for term in terms if term.tier_from < count <= term.tier_until)
    return next(fitting, terms[0])


def ancillary_charges(
    offer: Offer, usage: Usage, rules: ProviderRules, life_s: Decimal
) -> tuple[list[Item], list[Item]]:
    """Return what a use asks for, but for its time: storage, and services."""
    boot, stored = boot_disk(offer, usage, rules, life_s), kept_data(offer, usage, rules)
    return boot + stored, services(offer, usage, rules)
