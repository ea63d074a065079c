"""What disks cost beyond those in a machine's price: boot disks, volumes, snapshots, objects."""

from decimal import Decimal
from typing import NamedTuple

from pricing.billing.amount import SECONDS_PER_HOUR, by_month, by_size, words_of
from pricing.billing.billing_rule import BYTES_PER_UNIT, BillingRule, caveats
from pricing.billing.lines import NOTHING, Charge, QuoteLine, together
from pricing.billing.provider_rules import ProviderRules
from pricing.billing.usage import Usage
from pricing.catalog.offer import EVERYWHERE, Offer
from pricing.money import EXACT, price_text, quantity_text

_ZERO = Decimal(0)


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


def charge_storage(offer: Offer, usage: Usage, rules: ProviderRules) -> Charge:
    """Return the lines of disks and of what is kept; only what was asked for."""
    found = [charge_boot_disk(offer, usage, rules)] if usage.boot_disk_bytes else []
    kept = [kind for kind in (_DISK, _SNAPSHOT, _OBJECTS) if getattr(usage, kind.asked)]
    found += [_charge(kind, offer, usage, rules) for kind in kept]
    return together(found) if found else NOTHING


def charge_boot_disk(offer: Offer, usage: Usage, rules: ProviderRules) -> Charge:
    """Return what the machines boot from: in their price, else at its own or the volumes' price."""
    size_bytes, included = Decimal(usage.boot_disk_bytes), Decimal(str(offer.boot_disk_gib or 0))
    if size_bytes <= included * BYTES_PER_UNIT["GiB"]:
        return Charge((_comes_along(offer, included),), ())
    terms = rules.terms(_BOOT.rule, region=offer.region, purchase=offer.purchase)
    terms = terms or rules.terms(_DISK.rule, region=offer.region, purchase=offer.purchase)
    if not terms:
        return Charge((), (_unknown(_BOOT, "", offer, rules),), (_BOOT.what,))
    if terms[0].each_gib is not None:
        return _in_pieces(_BOOT, terms, offer, usage)
    size = EXACT.divide(size_bytes * usage.count, terms[0].bytes_per_unit)
    amount = by_size(terms, size, usage.life_s, usage.start)
    line = amount.line(_BOOT.what, terms[0], words_of(terms[0], _BOOT.words))
    return Charge((line,), caveats(terms))


def charge_disk(offer: Offer, usage: Usage, rules: ProviderRules) -> Charge:
    """Return the line of volume storage, which must be asked for."""
    return _charge(_DISK, offer, usage, rules)


def _comes_along(offer: Offer, gib: Decimal) -> QuoteLine:
    return QuoteLine(
        what=_BOOT.what,
        usd=_ZERO,
        formula="{0} GiB come with the machine",
        numbers=(gib,),
        rule="boot disk in the price of the machine",
        source=offer.source,
        as_of=offer.date_text,
    )


def _charge(kept: _Kept, offer: Offer, usage: Usage, rules: ProviderRules) -> Charge:
    kind = usage.storage_kind if kept is _DISK else ""
    terms = rules.terms(kept.rule, region=offer.region, kind=kind, purchase=offer.purchase)
    if not terms:
        return Charge((), (_unknown(kept, kind, offer, rules),), (kept.what,))
    if terms[0].each_gib is not None:
        return _in_pieces(kept, terms, offer, usage)
    size_bytes = Decimal(getattr(usage, kept.asked))
    quantity = EXACT.divide(size_bytes, terms[0].bytes_per_unit)
    if kept is not _OBJECTS:
        line = by_size(terms, quantity, kept_s(usage), usage.start).line(
            kept.what, terms[0], words_of(terms[0], kept.words)
        )
        return Charge((line,), caveats(terms))
    return _objects(terms, quantity, offer, usage, rules)


def kept_s(usage: Usage) -> Decimal:
    """Return how long things are kept: the hours stated, else as long as the machines live."""
    if usage.storage_h is None:
        return usage.life_s
    return Decimal(usage.storage_h) * SECONDS_PER_HOUR


def _unknown(kept: _Kept, kind: str, offer: Offer, rules: ProviderRules) -> str:
    of_kind = f" of kind {kind!r}" if kind else ""
    known = () if kept is _BOOT else rules.kinds(kept.rule)
    others = f"; kinds with a known price: {', '.join(known)}" if known else ""
    return (
        f"{kept.what}: the price of {kept.words}{of_kind} at {_where(offer)} is not known per GB "
        f"and month; it is left out{others}"
    )


def _where(offer: Offer) -> str:
    """Return the provider and the region."""
    return offer.provider if offer.region == EVERYWHERE else f"{offer.provider}/{offer.region}"


def _in_pieces(kept: _Kept, sizes: tuple[BillingRule, ...], offer: Offer, usage: Usage) -> Charge:
    """Bill storage that is sold in disks of some sizes: the size and count that cost least."""
    asked_bytes: int = getattr(usage, kept.asked)
    boots = kept is _BOOT
    disks_of, time_s = (usage.count, usage.life_s) if boots else (1, kept_s(usage))

    def pieces(size: BillingRule) -> int:
        each_bytes = int((size.each_gib or _ZERO) * BYTES_PER_UNIT["GiB"])
        return -(-asked_bytes // each_bytes) * disks_of

    price = min(sizes, key=lambda size: pieces(size) * size.amount)
    amount = by_month(price, pieces(price), time_s, usage.start)
    name = price.product or price.kind
    disks = f"{pieces(price)} disks of {quantity_text(price.each_gib or _ZERO)} GiB ({name})"
    words = f"{disks} at {price_text(price.amount)} each"
    said = tuple(f"{kept.what}: {offer.provider}: {text}" for text in amount.warnings)
    said += caveats((price,))
    return Charge((amount.line(kept.what, price, f"{words} a month"),), said)


def _objects(
    terms: tuple[BillingRule, ...],
    quantity: Decimal,
    offer: Offer,
    usage: Usage,
    rules: ProviderRules,
) -> Charge:
    """Return a base fee with its included size, where there is one, and what is kept beyond it."""
    base, included = rules.rule("object_storage_base"), rules.rule("object_storage_included")
    lines, warnings = [], list(caveats(filter(None, (*terms, base, included))))
    time_s = kept_s(usage)
    if base is not None:
        fee = by_month(base, 1, time_s, usage.start)
        lines.append(fee.line(_OBJECTS.what, base, words_of(base, "base price")))
        warnings += [f"{_OBJECTS.what}: {offer.provider}: {text}" for text in fee.warnings]
    beyond = quantity if included is None else max(_ZERO, quantity - included.amount)
    if beyond:
        words = words_of(terms[0], _OBJECTS.words)
        if included is not None:
            words += f", beyond {quantity_text(included.amount)} {included.per} in the base price"
        amount = by_size(terms, beyond, time_s, usage.start)
        lines.append(amount.line(_OBJECTS.what, terms[0], words))
    return Charge(tuple(lines), tuple(warnings))
