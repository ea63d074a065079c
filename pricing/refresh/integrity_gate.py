"""The integrity gate: which rows of an answer become offers, and why the others do not."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer
from pricing.catalog.offer_rows import PUBLISHED, offer_from_row
from pricing.errors import InputError
from pricing.hardware import gpus, has_memory
from pricing.money import plain, usd
from pricing.refresh.plausibility import (
    Fault,
    KnownPrices,
    Span,
    alone,
    jump,
    known_prices,
    shifted,
    spans,
    swapped,
)
from pricing.refresh.reading import PriceReading, Row

BROKEN = frozenset({"missing", "price"})
"""Faults of an answer that is damaged: a provider that says so is not believed at all."""

_REQUIRED = ("instance_type", "region", "gpu", "purchase", "as_of")
_SIZES = ("vcpus", "ram_gib", "local_disk_gib", "network_gbps", *PUBLISHED)
_NAME = re.compile(r"[A-Za-z0-9*][A-Za-z0-9 ._:/+*()-]{0,119}")
_MOST_GPUS = 72  # GB200 NVL72, the largest machine that is sold


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOut:
    """A row that did not become an offer.

    Attributes:
        name: "digitalocean/gpu-h100x1-80gb/nyc2, on_demand".
        instance_type: of the row.
        purchase: of the row.
        fault: missing, price, name, gpu, count, memory, jump or currency.
        detail: what is wrong with it, in words.
    """

    name: str
    instance_type: str
    purchase: str
    fault: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A reading after the gate: its offers, and the rows that were kept out."""

    offers: tuple[Offer, ...]
    kept_out: tuple[KeptOut, ...]

    @property
    def broken(self) -> tuple[KeptOut, ...]:
        """The rows that show that the whole answer is damaged."""
        return tuple(row for row in self.kept_out if row.fault in BROKEN)


def check(
    reading: PriceReading,
    known: Catalog,
    *,
    market: Mapping[tuple[str, str], Span] | None = None,
    accept_jumps: bool = False,
) -> Passed:
    """Return the rows of a reading that can be believed, and the others with the reason.

    Args:
        reading: what the provider said.
        known: the prices known so far, seen from the day of the reading.
        market: `plausibility.spans` of all providers' offers; None: of the known ones.
        accept_jumps: believe also a price that moved by more than LARGEST_JUMP, and an answer in
            which all prices moved by one factor.
    """
    mine = [offer for offer in known.offers if offer.provider == reading.provider]
    rows = [row for row in known.rows if row.provider == reading.provider]
    before = known_prices(mine, rows, spans(known.offers) if market is None else market)
    believed: list[tuple[Row, Offer]] = []
    kept_out: list[KeptOut] = []
    for row in reading.rows:
        offer, fault = _read(reading.provider, row)
        if offer is not None and fault is None:
            fault = swapped(offer, before)
        if offer is not None and fault is None and not accept_jumps:
            fault = jump(offer, before)
        if offer is not None and fault is None:
            believed.append((row, offer))
        elif fault is not None:
            kept_out.append(_kept_out(reading.provider, row, fault))
    doubted = {} if accept_jumps else _doubted([offer for _, offer in believed], before)
    for row, offer in believed:
        if offer in doubted:
            kept_out.append(_kept_out(reading.provider, row, doubted[offer]))
    return Passed(
        offers=tuple(offer for _, offer in believed if offer not in doubted),
        kept_out=tuple(kept_out),
    )


def _doubted(offers: Sequence[Offer], before: KnownPrices) -> dict[Offer, Fault]:
    """Return the offers that only the others of the answer show to be wrong."""
    whole = shifted(offers, before)
    return dict.fromkeys(offers, whole) if whole else dict(alone(offers, before))


def _read(provider: str, row: Row) -> tuple[Offer | None, Fault | None]:
    fault = next(_text_faults(row), None)
    if fault is not None:
        return None, fault
    try:
        offer = offer_from_row(provider, row)
    except (InputError, ValueError) as error:
        return None, ("missing", f"it cannot be read: {error}")
    return offer, next(offer_faults(offer), None)


def _text_faults(row: Row) -> Iterator[Fault]:
    for name in _REQUIRED:
        if not row[name]:
            yield "missing", f"{name} is missing"
    for name in ("instance_type", "region"):
        if not _NAME.fullmatch(row[name]):
            yield "name", f"{name} is not a name: {row[name]!r:.40}"
    yield from _price_faults(row["usd_per_hour"])
    yield from _size_faults(row)


def _size_faults(row: Row) -> Iterator[Fault]:
    if not row["gpu_count"]:
        yield "missing", "gpu_count is missing"
    if row["gpu"] not in gpus():
        yield "gpu", f"GPU {row['gpu']!r:.60} is not in the hardware table"
    for name, fault in (("gpu_count", "count"), ("gpu_memory_gib", "memory")):
        if not row[name]:
            yield "missing", f"{name} is missing"
        elif not _is_size(row[name]) or not float(row[name]):
            yield fault, f"{name} is {row[name]!r:.40}"
    for name in _SIZES:
        if row[name] and not _is_size(row[name]):
            yield "missing", f"{name} is {row[name]!r:.40}"


def _price_faults(text: str) -> Iterator[Fault]:
    if not text:
        yield "missing", "the price is missing"
        return
    try:
        price = usd(text)
    except InputError:
        yield "price", f"the price is not an amount: {text!r:.40}"
        return
    if price <= 0:
        yield "price", f"the price is {plain(price)}; nobody gives GPUs away"


def _is_size(text: str) -> bool:
    try:
        return 0 <= float(text) < float("inf")
    except ValueError:
        return False


def offer_faults(offer: Offer) -> Iterator[Fault]:
    """Yield what the hardware table says against an offer: (fault, detail) each."""
    gpu = gpus().get(offer.gpu)
    if gpu is None:
        yield "gpu", f"GPU {offer.gpu!r:.60} is not in the hardware table"
        return
    whole = offer.gpu_count >= 1
    if whole and (offer.gpu_count != int(offer.gpu_count) or offer.gpu_count > _MOST_GPUS):
        yield "count", f"{offer.gpu_count:g} GPUs in one machine"
    if whole and not has_memory(gpu, offer.gpu_memory_gib):
        total = offer.gpu_count > 1 and has_memory(gpu, offer.gpu_memory_gib / offer.gpu_count)
        hint = ", which is the total of all its GPUs" if total else ""
        yield (
            "memory",
            (f"{offer.gpu_memory_gib:g} GiB a GPU{hint}; {gpu.name} has {gpu.memory_gib:g}"),
        )
    if not whole and offer.gpu_memory_gib > gpu.memory_gib:
        yield "memory", f"a slice of {offer.gpu_memory_gib:g} GiB of a {gpu.memory_gib:g} GiB GPU"


def _kept_out(provider: str, row: Row, fault: Fault) -> KeptOut:
    place = "/".join(part for part in (row["instance_type"], row["region"]) if part != "*")
    return KeptOut(
        name=f"{provider}/{place[:80]}, {row['purchase']}",
        instance_type=row["instance_type"],
        purchase=row["purchase"],
        fault=fault[0],
        detail=fault[1],
    )
