"""The store of refreshed prices: one file a provider, dated rows, the last good ones kept.

What is published of a store is one file: packed by gzip, its first line the signature in hex of the
second, which states as JSON when it was made, how many rows it has and the SHA-256 of the rest, and
then the rows, with their provider.
"""

import csv
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from hashlib import sha256
from pathlib import Path

from msgspec import structs

from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import (
    COLUMNS,
    EVERYWHERE,
    PUBLISHED,
    Offer,
    offer_from_row,
    row_from_offer,
)
from pricing.errors import InputError
from pricing.refresh.integrity_gate import Passed
from pricing.refresh.reading import PriceReading

HEADER = (*COLUMNS, *PUBLISHED)
_SUFFIX = ".csv"
PUBLISHED_FORM = "gpucost catalog 1"
_MOST_BYTES = 256 * 2**20
_Key = tuple[str, str, str]
_MACHINE = ("vcpus", "ram_gib", "local_disk_gib", "interconnect", "network_gbps", *PUBLISHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedReading:
    """What the store holds.

    Attributes:
        offers: every row, by provider and in file order.
        problems: files that could not be read, a sentence each; the others are unharmed.
        published: when the catalog was made of which these are the rows; None for what was read
            here.
        sha256: of the rows, in hex; empty where there are none.
    """

    offers: tuple[Offer, ...] = ()
    problems: tuple[str, ...] = ()
    published: datetime | None = None
    sha256: str = ""

    def with_rows_of(self, more: "CachedReading") -> "CachedReading":
        """Return the rows of both; where both have some, the hash is of both hashes."""
        hashes = sorted(filter(None, (self.sha256, more.sha256)))
        return replace(
            self,
            offers=self.offers + more.offers,
            problems=self.problems + more.problems,
            sha256=hashes[0] if len(hashes) == 1 else hashed("".join(hashes)) if hashes else "",
        )

    def of(self, provider: str) -> tuple[Offer, ...]:
        """Return the rows of one provider."""
        return tuple(offer for offer in self.offers if offer.provider == provider)


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What a reading changes.

    Attributes:
        rows: all rows of the provider's file from now on.
        new: offers that were not known.
        changed: offers with another price than before.
        same: offers whose price was confirmed.
        withdrawn: offers that the provider no longer lists.
        replaced: offers whose machine is told under another name now.
        outdated: offers of the reading whose machine is known from a later day by another name.
    """

    rows: tuple[Offer, ...]
    new: tuple[Offer, ...]
    changed: tuple[Offer, ...]
    same: tuple[Offer, ...]
    withdrawn: tuple[Offer, ...]
    replaced: tuple[Offer, ...] = ()
    outdated: tuple[Offer, ...] = ()


def path_of(folder: Path, provider: str) -> Path:
    """Return where the rows of a provider are kept."""
    return folder / f"{provider}{_SUFFIX}"


def load(folder: Path) -> CachedReading:
    """Return all rows of the store; an absent folder is an empty store."""
    offers: list[Offer] = []
    problems: list[str] = []
    texts: list[str] = []
    try:
        paths = sorted(folder.glob(f"*{_SUFFIX}"))
    except OSError:
        paths = []
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
            offers += _rows(text, path.stem)
            texts.append(text)
        except (OSError, ValueError, csv.Error, InputError, KeyError) as error:
            reason = getattr(error, "strerror", None) or f"{error}".partition("\n")[0] or "damaged"
            problems.append(
                f"{path}: refreshed prices cannot be read and are left out ({reason:.120}). "
                f"Write them anew: gpucost prices update --provider {path.stem}"
            )
    return CachedReading(
        offers=tuple(offers),
        problems=tuple(problems),
        sha256=hashed("".join(texts)) if texts else "",
    )


def hashed(text: str) -> str:
    """Return the SHA-256 of a text, in hex."""
    return sha256(text.encode()).hexdigest()


def _rows(text: str, provider: str = "") -> Iterator[Offer]:
    """Yield the offers of a file; of a catalog without a provider each row names its own.

    Raises:
        ValueError: its columns are others, or a line is cut short.
        InputError: a row is not an offer.
    """
    rows = csv.DictReader(io.StringIO(text, newline=""))
    if tuple(rows.fieldnames or ()) != (*(() if provider else ("provider",)), *HEADER):
        raise ValueError("its columns are not those of this version")
    for row in rows:
        if None in row or None in row.values():
            raise ValueError(f"line {rows.line_num} has another number of fields")
        yield offer_from_row(provider or row["provider"], row)


def unpack(data: bytes, verify: Callable[[bytes, bytes], object] | None = None) -> CachedReading:
    """Return the rows of a published catalog.

    Args:
        data: of the file.
        verify: raises ValueError where a signature is not one of a statement; None: it was asked
            when the file came.

    Raises:
        ValueError: it is not whole, or not signed by whom it should be.
    """
    try:
        text = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS).decompress(data, _MOST_BYTES)
        signature, statement, body = text.split(b"\n", 2)
        if verify is not None:
            verify(bytes.fromhex(signature.decode()), statement)
        stated = json.loads(statement)
        if stated["schema"] != PUBLISHED_FORM:
            raise ValueError("it is of another version")
        if hashed(body.decode()) != stated["sha256"]:
            raise ValueError("its rows are not those that were signed")
        return CachedReading(
            offers=tuple(_rows(body.decode())),
            published=datetime.fromisoformat(stated["published"]),
            sha256=stated["sha256"],
        )
    except (zlib.error, LookupError, TypeError, csv.Error, InputError) as error:
        raise ValueError(f"it is damaged ({type(error).__name__})") from error


def to_text(rows: Iterable[Offer]) -> str:
    """Return the file of a provider, rows in a fixed order."""
    text = io.StringIO()
    writer = csv.DictWriter(text, HEADER, lineterminator="\n")
    writer.writeheader()
    writer.writerows(row_from_offer(row) for row in sorted(rows, key=row_order))
    return text.getvalue()


def merge(
    reading: PriceReading, passed: Passed, catalog: Catalog, stored: Iterable[Offer]
) -> Update:
    """Return the provider's rows after a reading, and what it changed.

    A second reading of the same source on the same day replaces the first. Of three readings in
    a row with one price the middle one is dropped, so that the file grows with changes only.

    Args:
        reading: what was said.
        passed: its offers after the gate.
        catalog: everything known before, seen from the day of the reading.
        stored: the provider's rows in the store so far.
    """
    before = {_key(offer): offer for offer in catalog.offers if offer.provider == reading.provider}
    machines = {(offer.instance_type, offer.gpu): offer for offer in before.values()}
    read = {
        _key(offer): _completed(offer, machines.get((offer.instance_type, offer.gpu)))
        for offer in sorted(passed.offers, key=row_order, reverse=True)
    }
    late = outdated(read.values(), before.values())
    fresh = {key: offer for key, offer in read.items() if offer not in late}
    withdrawn = tuple(_missing(reading, passed, before, fresh))
    not_told = before.keys() - fresh.keys() - {_key(offer) for offer in withdrawn}
    now = replaced(fresh.values(), (before[key] for key in sorted(not_told)))
    ends = {_key(old): ended(old, new, new.as_of) for old, new in now.items()}
    settled = {*fresh, *ends, *(_key(offer) for offer in withdrawn)}
    sources = {reading.source, *(row["source"] for row in reading.rows)}
    remaining = [
        row
        for row in stored
        if _key(row) not in settled or not _is_of(row, reading.read_on, sources)
    ]
    changed = {
        key: offer
        for key, offer in fresh.items()
        if key in before and before[key].usd_per_hour != offer.usd_per_hour
    }
    return Update(
        rows=_thinned((*remaining, *fresh.values(), *withdrawn, *ends.values())),
        new=tuple(offer for key, offer in sorted(fresh.items()) if key not in before),
        changed=tuple(offer for _, offer in sorted(changed.items())),
        same=tuple(o for k, o in sorted(fresh.items()) if k in before and k not in changed),
        withdrawn=withdrawn,
        replaced=tuple(sorted(now, key=row_order)),
        outdated=tuple(sorted(late, key=row_order)),
    )


def _missing(
    reading: PriceReading, passed: Passed, before: Mapping[_Key, Offer], fresh: Mapping[_Key, Offer]
) -> Iterator[Offer]:
    """Yield the rows that end what the answer covers and does not name."""
    for key, offer in sorted(before.items()):
        if (
            key not in fresh
            and (offer.instance_type, offer.purchase) not in passed.kept_names
            and reading.covers(offer)
            and offer.as_of <= reading.read_on
        ):
            yield _withdrawn(offer, reading)


def _key(offer: Offer) -> _Key:
    return (offer.instance_type, offer.region, offer.purchase)


def row_order(offer: Offer) -> tuple[object, ...]:
    """Return what the rows of a provider are sorted by."""
    return (*_key(offer), offer.starts, not offer.current, offer.source, offer.usd_per_hour)


def _is_of(row: Offer, day: date, sources: set[str]) -> bool:
    """Return whether an earlier reading of the same sources on the same day left the row."""
    if row.withdrawn:
        return row.starts == day
    return row.as_of == day and row.source in sources


def _completed(offer: Offer, machine: Offer | None) -> Offer:
    """Return the offer with what the answer leaves out about the machine, as far as it is known."""
    missing = {
        name: getattr(machine, name)
        for name in _MACHINE
        if machine is not None and getattr(offer, name) is None
    }
    if offer.gpu_count <= 1 and offer.interconnect is None:
        missing["interconnect"] = "single"
    return structs.replace(offer, **missing)


def _withdrawn(offer: Offer, reading: PriceReading) -> Offer:
    return structs.replace(
        offer,
        current=False,
        withdrawn=True,
        valid_from=reading.read_on,
        valid_until=None,
        notes=f"not listed by {reading.source} on {reading.read_on}",
    )


def _thinned(rows: Iterable[Offer]) -> tuple[Offer, ...]:
    """Return the rows without those that stand between two of the same price and source."""
    rows_left: list[Offer] = []
    for row in sorted(rows, key=row_order):
        if (
            len(rows_left) > 1
            and _repeats(rows_left[-2], rows_left[-1])
            and _repeats(rows_left[-1], row)
        ):
            rows_left[-1] = row
        else:
            rows_left.append(row)
    return tuple(rows_left)


def _repeats(earlier: Offer, later: Offer) -> bool:
    return (
        _key(earlier) == _key(later)
        and earlier.current
        and later.current
        and (earlier.usd_per_hour, earlier.source) == (later.usd_per_hour, later.source)
    )


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
    successors = {}
    for old in before:
        for new in index.get(_hardware(old), ()):
            if _takes_place(new, old, names):
                successors[old] = new
                break
    return successors


def outdated(fresh: Iterable[Offer], before: Iterable[Offer]) -> dict[Offer, Offer]:
    """Return fresh offers of machines known from a later day, or surer, by another name.

    Names of which one side uses both are two products with the same hardware.

    Returns:
        fresh -> the known one.
    """
    fresh, before = tuple(fresh), tuple(before)
    fresh_names = {offer.instance_type for offer in fresh}
    known_names = {offer.instance_type for offer in before}
    index = _by_hardware(offer for offer in before if offer.instance_type not in fresh_names)
    newer = {}
    for new in fresh:
        if new.instance_type in known_names:
            continue
        for old in index.get(_hardware(new), ()):
            if _same_host(new, old) and _in(old, new) and not _is_newer(new, old):
                newer[new] = old
                break
    return newer


def ended(old: Offer, new: Offer, day: date) -> Offer:
    """Return the row that ends an older offer on the day on which another takes its place."""
    name = new.instance_type
    why = f"now {name}" if name != old.instance_type else f"now told by region, as in {new.region}"
    return structs.replace(
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
    return {key: tuple(same) for key, same in index.items()}


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


def _same_host(first: Offer, second: Offer) -> bool:
    """Return whether the hosts are of one class.

    What is not known of one of them is not a difference.
    """
    pairs = ((first.vcpus, second.vcpus), (first.ram_gib, second.ram_gib))
    return all(abs(a - b) <= LARGEST_DIFFERENCE * max(a, b) for a, b in pairs if a and b)


def _is_newer(new: Offer, old: Offer) -> bool:
    """Return whether the new price counts: read later, or on the day by a source as sure."""
    return _rank(new) >= _rank(old)


def _rank(offer: Offer) -> tuple[bool, date, int]:
    trust = _TRUST.index(offer.confidence) if offer.confidence in _TRUST else 0
    return offer.dated, offer.as_of, trust
