"""Ancillary charges of a use at one place, beside machine time and traffic: storage and services.

Traffic is not among them: how much of it is free depends on the life of
the machines in more than one way.
"""

from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from pricing.billing import lines
from pricing.billing.billing_rule import BYTES_PER_UNIT, BillingRule, caveats
from pricing.billing.provider_rules import ProviderRules
from pricing.billing.usage import Usage
from pricing.catalog.offer import EVERYWHERE, Offer
from pricing.message import Message, join
from pricing.money import EXACT, price_text, quantity_text

_ZERO = Decimal(0)
_SECONDS_PER_HOUR = Decimal(3600)


def _charge(  # noqa: PLR0913, PLR0917 - what a line of a bill says
    what: str,
    rate: lines.Tariff,
    label: str,
    terms: tuple[BillingRule, ...],
    offer: Offer,
    usage: Usage,
    *,
    more: str = "",
    pieces: int = 0,
    kept_s: Decimal | None = None,
) -> lines.Charge:
    """Return the line of what is billed by its time, with what must be said beside it.

    Args:
        what: its kind of line.
        rate: its price, in whatever quantity was asked for.
        label: what it is called in the rule of its line.
        terms: the rules behind it, whose caveats are said.
        offer: at whose place.
        usage: how long its machines live, and from when on.
        more: what the rule of its line says beside its price.
        pieces: how many disks of a size that is sold; 0: it is sold by size.
        kept_s: how long it is kept; None: as long as the machines live.
    """
    price = rate.price
    rule = lines.words_of(price, label)
    if pieces:
        gib, usd = quantity_text(price.each_gib or _ZERO), price_text(price.amount)
        name = price.product or price.kind
        rule = Message("bill.disks", n=pieces, gib=gib, name=name, usd=usd)
    elif more:
        rule = join((rule, more), "phrases")
    amount = rate.amount(usage.life_s if kept_s is None else kept_s, usage.start)
    warnings = tuple([lines.about(what, text, offer.provider) for text in amount.warnings])
    return lines.Charge((amount.line(what, price, rule),), warnings + caveats(terms))


def _included(what: str, gib: Decimal, offer: Offer) -> lines.Charge:
    """Return the line of a boot disk in the price of its machine, which costs nothing."""
    line = lines.QuoteLine(
        what=what,
        usd=_ZERO,
        formula=Message("bill.included", gib="{0}"),
        numbers=(gib,),
        rule=Message("bill.boot-disk-included"),
        source=offer.source,
        as_of=offer.date_text,
    )
    return lines.Charge((line,), ())


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


def kept_data(offer: Offer, usage: Usage, rules: ProviderRules) -> list[lines.Charge]:
    """Return what is kept beside the machines; only what was asked for."""
    items: list[lines.Charge] = []
    if usage.storage_bytes:
        items.append(_item(_DISK, offer, usage, rules, kind=usage.storage_kind))
    if usage.snapshot_bytes:
        items.append(_item(_SNAPSHOT, offer, usage, rules))
    if usage.object_storage_bytes:
        items += _objects(offer, usage, rules)
    return items


def boot_disk(offer: Offer, usage: Usage, rules: ProviderRules) -> list[lines.Charge]:
    """Return what the machines boot from: in their price, else at its own or the volumes' price.

    A disk that stays while its machine is off is a line of its own.
    """
    if not usage.boot_disk_bytes:
        return []
    running = _running_disk(offer, usage, rules)
    off_s = Decimal(usage.boot_disk_h or 0) * _SECONDS_PER_HOUR - usage.life_s
    if off_s <= 0 or running.unknown:
        return [running]
    return [running, _disk_while_off(offer, usage, rules, off_s)]


def _running_disk(offer: Offer, usage: Usage, rules: ProviderRules) -> lines.Charge:
    included = Decimal(str(offer.boot_disk_gib or 0))
    if Decimal(usage.boot_disk_bytes) <= included * _GIB:
        return _included(_BOOT.what, included, offer)
    terms = rules.terms(_BOOT.rule, region=offer.region, purchase=offer.purchase)
    terms = terms or rules.terms(_DISK.rule, region=offer.region, purchase=offer.purchase)
    return _disk_of(_BOOT, terms, offer, usage) if terms else _unpriced(_BOOT, "", offer, rules)


def _disk_while_off(
    offer: Offer, usage: Usage, rules: ProviderRules, off_s: Decimal
) -> lines.Charge:
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
    return _disk_of(_BOOT_OFF, terms, offer, usage, off_s)


def _disk_of(
    storage: _Kept,
    terms: tuple[BillingRule, ...],
    offer: Offer,
    usage: Usage,
    kept_s: Decimal | None = None,
) -> lines.Charge:
    """Return a disk for each machine."""
    if terms[0].each_gib is not None:
        return _in_pieces(storage, terms, offer, usage, usage.count, kept_s)
    size = EXACT.divide(Decimal(usage.boot_disk_bytes) * usage.count, terms[0].bytes_per_unit)
    rate = lines.by_size(terms, size)
    return _charge(storage.what, rate, storage.label, terms, offer, usage, kept_s=kept_s)


def _item(
    storage: _Kept, offer: Offer, usage: Usage, rules: ProviderRules, *, kind: str = ""
) -> lines.Charge:
    terms = rules.terms(storage.rule, region=offer.region, kind=kind, purchase=offer.purchase)
    if not terms:
        return _unpriced(storage, kind, offer, rules)
    if terms[0].each_gib is not None:
        return _in_pieces(storage, terms, offer, usage, 1, usage.kept_apart_s)
    rate, kept_s = lines.by_size(terms, _quantity(storage, usage, terms)), usage.kept_apart_s
    return _charge(storage.what, rate, storage.label, terms, offer, usage, kept_s=kept_s)


def _quantity(storage: _Kept, usage: Usage, terms: tuple[BillingRule, ...]) -> Decimal:
    return EXACT.divide(Decimal(getattr(usage, storage.field)), terms[0].bytes_per_unit)


def _unpriced(storage: _Kept, kind: str, offer: Offer, rules: ProviderRules) -> lines.Charge:
    kinds = () if storage is _BOOT else rules.kinds(storage.rule)
    where = offer.provider if offer.region == EVERYWHERE else f"{offer.provider}/{offer.region}"
    return _unpriced_storage(storage, kind, where, kinds)


@lru_cache(maxsize=1024)
def _unpriced_storage(
    storage: _Kept, kind: str, region: str, kinds: tuple[str, ...]
) -> lines.Charge:
    label = Message("bill.of-kind", what=storage.label, kind=repr(kind)) if kind else storage.label
    text = Message("bill.no-price-a-gb", what=label, place=region)
    return lines.Charge((), (lines.about(storage.what, _with_kinds(text, kinds)),), (storage.what,))


@lru_cache(maxsize=1024)
def _unpriced_service(
    kind_code: str, service: str, provider: str, kinds: tuple[str, ...]
) -> lines.Charge:
    text = Message("bill.no-price-of-a", what=service, provider=provider)
    return lines.Charge((), (lines.about(kind_code, _with_kinds(text, kinds)),), (kind_code,))


def _with_kinds(text: Message, kinds: tuple[str, ...]) -> Message:
    return Message("bill.known-kinds", text=text, kinds=kinds) if kinds else text


def _in_pieces(  # noqa: PLR0913, PLR0917 - what is asked for, and where
    storage: _Kept,
    sizes: tuple[BillingRule, ...],
    offer: Offer,
    usage: Usage,
    times: int,
    kept_s: Decimal | None,
) -> lines.Charge:
    """Return disks of the size that costs least, whole ones for each of so many times the size."""
    asked_bytes: int = getattr(usage, storage.field)

    def pieces(size: BillingRule) -> int:
        each_bytes = int((size.each_gib or _ZERO) * _GIB)
        return -(-asked_bytes // each_bytes) * times

    price = min(sizes, key=lambda size: pieces(size) * size.amount)
    number = pieces(price)
    rate, label = lines.by_month(price, number), storage.label
    return _charge(storage.what, rate, label, (price,), offer, usage, pieces=number, kept_s=kept_s)


def _objects(offer: Offer, usage: Usage, rules: ProviderRules) -> list[lines.Charge]:
    """Return the base fee with its included size, where there is one, and what is kept beyond."""
    terms = rules.terms(_OBJECTS.rule, region=offer.region, purchase=offer.purchase)
    if not terms:
        return [_unpriced(_OBJECTS, "", offer, rules)]
    if terms[0].each_gib is not None:
        return [_in_pieces(_OBJECTS, terms, offer, usage, 1, usage.kept_apart_s)]
    base, included = rules.rule("object_storage_base"), rules.rule("object_storage_included")
    beyond, more = _quantity(_OBJECTS, usage, terms), ""
    rates: list[tuple[lines.Tariff, str, str]] = []
    if included is not None:
        beyond = max(_ZERO, beyond - included.amount)
        size = f"{quantity_text(included.amount)} {included.per}"
        more = Message("bill.beyond-base", size=size)
    if base is not None:
        rates.append((lines.by_month(base, 1), Message("bill.base-price"), ""))
    if beyond:
        rates.append((lines.by_size(terms, beyond), _OBJECTS.label, more))
    behind, kept_s = tuple(filter(None, (*terms, base, included))), usage.kept_apart_s
    of = _OBJECTS.what
    return [
        _charge(of, rate, label, () if n else behind, offer, usage, more=rule_more, kept_s=kept_s)
        for n, (rate, label, rule_more) in enumerate(rates)
    ]


_ADDRESS, _NAT = Message("bill.address"), Message("bill.nat")
USUAL_PLANE = "standard"
"""The control plane that a provider sells without a further name."""


def services(offer: Offer, usage: Usage, rules: ProviderRules) -> list[lines.Charge]:
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
) -> lines.Charge:
    terms = rules.terms(rule, region=offer.region, kind=kind, purchase=offer.purchase)
    if not terms:
        return _unpriced_service(category, label, offer.provider, rules.kinds(rule))
    price = _for_so_many(terms, usage.count)
    count = number * (usage.count if price.per_machine else 1)
    rate = lines.by_month(price, count) if price.unit == "USD/month" else lines.ByHour(price, count)
    return _charge(category, rate, price.product or label, (price,), offer, usage)


def _for_so_many(terms: tuple[BillingRule, ...], count: int) -> BillingRule:
    """Return the price that holds for so many machines; tiers of a service count them."""
    fitting = (term for term in terms if term.tier_from < count <= term.tier_until)
    return next(fitting, terms[0])
