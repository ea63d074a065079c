"""The integrity gate: which rows of an answer become offers, and why the others do not."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from statistics import median

from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import EVERYWHERE, PUBLISHED, Offer, offer_from_row
from pricing.errors import InputError
from pricing.hardware import gpus, has_memory
from pricing.money import plain, usd
from pricing.refresh.reading import PriceReading, Row

LARGEST_JUMP = Decimal(3)
"""A price that moved by more than this factor, up or down, needs a person's word."""

SAME_FACTOR = Decimal("0.01")
"""Prices that moved by one factor, within this share of it, moved as another currency does."""

SMALLEST_SHIFT = Decimal("0.03")
"""A common factor nearer to 1 than this is not another currency."""

LEAST_OF_ON_DEMAND = Decimal("0.09")
MOST_OF_ON_DEMAND = Decimal("1.1")
"""Spot prices lie between these shares of the price on demand: AWS, Azure and Google say "up to
90 % less", and in the bundled prices none of 422 is outside."""

_FEWEST_MOVED = 6  # machines of different names, before a common factor is not chance
_FEWEST_SIBLINGS = 4  # prices of one GPU in one answer, before their middle says anything
_SLICE_TOLERANCE = 0.01

Fault = tuple[str, str]
Span = tuple[Decimal, Decimal]


@dataclass(frozen=True, slots=True, kw_only=True)
class _KnownPrices:
    """What is known of a provider's machines and of the market before an answer is believed.

    Attributes:
        by_name: (name, purchase) -> region -> the provider's offer in force.
        machines: name -> the hardware it was known with, (gpu, count).
        own: (gpu, purchase) -> least and most USD an hour and GPU at the provider.
        market: the same of all providers.
    """

    by_name: Mapping[tuple[str, str], Mapping[str, Offer]]
    machines: Mapping[str, frozenset[tuple[str, float]]]
    own: Mapping[tuple[str, str], Span]
    market: Mapping[tuple[str, str], Span]


def known_prices(
    offers: Iterable[Offer], rows: Iterable[Offer], market: Mapping[tuple[str, str], Span]
) -> _KnownPrices:
    """Return what a provider's offers in force, and all its rows, tell.

    Args:
        offers: of the provider, in force on the day.
        rows: of the provider, whenever they held.
        market: as `spans` of all providers' offers.
    """
    offers = tuple(offers)
    by_name: dict[tuple[str, str], dict[str, Offer]] = {}
    for offer in offers:
        by_name.setdefault((offer.instance_type, offer.purchase), {})[offer.region] = offer
    machines: dict[str, set[tuple[str, float]]] = {}
    for row in chain(offers, rows):
        machines.setdefault(row.instance_type, set()).add((row.gpu, row.gpu_count))
    return _KnownPrices(
        by_name=by_name,
        machines={name: frozenset(hardware) for name, hardware in machines.items()},
        own=spans(offers),
        market=market,
    )


def spans(offers: Iterable[Offer]) -> dict[tuple[str, str], Span]:
    """Return (gpu, purchase) -> least and most USD an hour and GPU, of whole GPUs."""
    ranges: dict[tuple[str, str], Span] = {}
    for offer in offers:
        if offer.gpu_count >= 1:
            key, price = (offer.gpu, offer.purchase), offer.usd_per_gpu_hour
            low, high = ranges.get(key, (price, price))
            ranges[key] = (min(low, price), max(high, price))
    return ranges


def swapped(offer: Offer, prices: _KnownPrices) -> Fault | None:
    """Return the fault of a machine that was known by its name with other GPUs."""
    before = prices.machines.get(offer.instance_type, frozenset())
    if not before or any(_is_same(offer, gpu, count) for gpu, count in before):
        return None
    was = " or ".join(sorted(f"{count:g}x {gpu}" for gpu, count in before))
    return "gpu", f"{offer.gpu_count:g}x {offer.gpu}, where the machine is known with {was}"


def _is_same(offer: Offer, gpu: str, count: float) -> bool:
    return offer.gpu == gpu and abs(offer.gpu_count - count) <= _SLICE_TOLERANCE * count


def jump(offer: Offer, prices: _KnownPrices) -> Fault | None:
    """Return the fault of a price far from known ones of its region, name, GPU or market."""
    comparable = _held_against(offer, offer.purchase, prices)
    if (
        comparable
        and comparable[0].usd_per_hour <= offer.usd_per_hour <= comparable[-1].usd_per_hour
    ):
        return None
    if comparable:
        return _moved(offer, comparable)
    return _no_spot_price(offer, prices) or _out_of_line(offer, prices)


def _no_spot_price(offer: Offer, prices: _KnownPrices) -> Fault | None:
    """Return the fault of a new spot price that the machine on demand makes unlikely."""
    comparable = _held_against(offer, "on_demand", prices)
    if offer.purchase != "spot" or not comparable:
        return None
    shares = [offer.usd_per_hour / old.usd_per_hour for old in comparable]
    if any(LEAST_OF_ON_DEMAND <= share <= MOST_OF_ON_DEMAND for share in shares):
        return None
    return "jump", (
        f"{plain(offer.usd_per_hour)} USD/h on spot, {min(shares):.2g} of what it costs on demand. "
        "If it is right, add --accept-jumps"
    )


def _moved(offer: Offer, comparable: Iterable[Offer]) -> Fault | None:
    factor, old = min(
        ((_factor(offer.usd_per_hour, old.usd_per_hour), old) for old in comparable),
        key=lambda pair: pair[0],
    )
    if factor <= LARGEST_JUMP:
        return None
    was = f"{plain(offer.usd_per_hour)} USD/h where {plain(old.usd_per_hour)} was read on"
    return "jump", f"{was} {old.date_text}: {_RIGHT}"


def _out_of_line(offer: Offer, prices: _KnownPrices) -> Fault | None:
    """Return the fault of a new name at a price that no machine with its GPU has."""
    if offer.gpu_count < 1:
        return None
    key, price = (offer.gpu, offer.purchase), offer.usd_per_gpu_hour
    for where, table in ((f"at {offer.provider}", prices.own), ("anywhere", prices.market)):
        if key in table:
            low, high = table[key]
            if low / LARGEST_JUMP <= price <= high * LARGEST_JUMP:
                return None
            span = f"{_short(low)} to {_short(high)}"
            statement = f"{_short(price)} USD/h a GPU where {offer.gpu} costs {span} {where}"
            return "jump", f"{statement}: {_RIGHT}"
    return None


def outliers(offers: Iterable[Offer], prices: _KnownPrices) -> Iterator[tuple[Offer, Fault]]:
    """Yield new offers whose price is far from that of the others with their GPU in the answer."""
    groups: dict[tuple[str, str], list[Offer]] = {}
    for offer in offers:
        if offer.gpu_count >= 1:
            groups.setdefault((offer.gpu, offer.purchase), []).append(offer)
    for group in groups.values():
        if len(group) < _FEWEST_SIBLINGS:
            continue
        middle = median(offer.usd_per_gpu_hour for offer in group)
        for offer in group:
            is_new = (offer.instance_type, offer.purchase) not in prices.by_name
            usd = offer.usd_per_gpu_hour
            if is_new and _factor(usd, middle) > LARGEST_JUMP:
                statement = f"{_short(usd)} USD/h a GPU where half of the answer's {offer.gpu}"
                yield offer, ("jump", f"{statement} cost over {_short(middle)}: {_RIGHT}")


def shifted(offers: Iterable[Offer], prices: _KnownPrices) -> Fault | None:
    """Return the fault of an answer whose prices all moved by one factor, as in another currency.

    Only on-demand prices whose earlier price was dated count, each name once.
    """
    factors: dict[str, Decimal] = {}
    for offer in offers:
        places = prices.by_name.get((offer.instance_type, "on_demand"), {})
        old = places.get(offer.region) or places.get(EVERYWHERE)
        if offer.purchase == "on_demand" and old is not None and old.dated:
            factors[offer.instance_type] = offer.usd_per_hour / old.usd_per_hour
    if len(factors) < _FEWEST_MOVED:
        return None
    middle = median(factors.values())
    if abs(middle - 1) < SMALLEST_SHIFT:
        return None
    if any(abs(factor - middle) > SAME_FACTOR * middle for factor in factors.values()):
        return None
    return "currency", (
        f"all {len(factors)} machines that were known cost x{middle:.3f} of what they did, as "
        "prices in another currency would: the answer was left out. If it is right, add "
        "--accept-jumps"
    )


def _held_against(offer: Offer, purchase: str, prices: _KnownPrices) -> tuple[Offer, ...]:
    """Return the known price of the name in the region.

    In a new one the least and the most elsewhere.
    """
    places = prices.by_name.get((offer.instance_type, purchase), {})
    if offer.region in places:
        return (places[offer.region],)
    rising = sorted(places.values(), key=lambda priced: (priced.usd_per_hour, priced.region))
    return (rising[0], rising[-1]) if rising else ()


_RIGHT = f"more than x{LARGEST_JUMP}. If it is right, add --accept-jumps"


def _factor(first: Decimal, second: Decimal) -> Decimal:
    return max(first, second) / min(first, second)


def _short(price: Decimal) -> str:
    return plain(round(price, 4))


BROKEN = frozenset({"missing", "price"})
"""Faults of an answer that is damaged: a provider that says so is not believed at all."""

_REQUIRED = ("instance_type", "region", "gpu", "purchase", "as_of")
_SIZES = ("vcpus", "ram_gib", "local_disk_gib", "network_gbps", *PUBLISHED)
_NAME = re.compile(r"[A-Za-z0-9*][A-Za-z0-9 ._:/+*()-]{0,119}")
_MOST_GPUS = 72  # GB200 NVL72, the largest machine that is sold


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedPrice:
    """A price that was not taken: of which offer, the fault in a word, and the sentence.

    Attributes:
        offer: "digitalocean/gpu-h100x1-80gb/nyc2, on_demand".
        fault: missing, price, name, gpu, count, memory, jump, currency or outdated.
        detail: what is wrong with it, in words.
    """

    offer: str
    fault: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A reading after the gate.

    Attributes:
        offers: what became of its rows.
        kept_out: the rows that became none.
        kept_names: type and purchase of those.
    """

    offers: tuple[Offer, ...]
    kept_out: tuple[RefusedPrice, ...] = ()
    kept_names: frozenset[tuple[str, str]] = frozenset()

    @property
    def broken(self) -> tuple[RefusedPrice, ...]:
        """The rows that show that the whole answer is damaged."""
        return tuple(row for row in self.kept_out if row.fault in BROKEN)


def check(
    reading: PriceReading,
    catalog: Catalog,
    *,
    market: Mapping[tuple[str, str], Span] | None = None,
    accept_jumps: bool = False,
) -> Passed:
    """Return the rows of a reading that can be believed, and the others with the reason.

    Args:
        reading: what the provider said.
        catalog: the prices known so far, seen from the day of the reading.
        market: `spans` of all providers' offers; None: of the known ones.
        accept_jumps: believe also a price that moved by more than LARGEST_JUMP, and an answer in
            which all prices moved by one factor.
    """
    own_offers = [offer for offer in catalog.offers if offer.provider == reading.provider]
    rows = [row for row in catalog.rows if row.provider == reading.provider]
    before = known_prices(own_offers, rows, spans(catalog.offers) if market is None else market)
    believed: list[tuple[Row, Offer]] = []
    kept_out: list[tuple[Row, Fault]] = []
    for row in reading.rows:
        offer, fault = _read(reading.provider, row)
        if offer is not None and fault is None:
            fault = swapped(offer, before)
        if offer is not None and fault is None and not accept_jumps:
            fault = jump(offer, before)
        if offer is not None and fault is None:
            believed.append((row, offer))
        elif fault is not None:
            kept_out.append((row, fault))
    doubted = {} if accept_jumps else _doubted([offer for _, offer in believed], before)
    kept_out += ((row, doubted[offer]) for row, offer in believed if offer in doubted)
    return Passed(
        offers=tuple(offer for _, offer in believed if offer not in doubted),
        kept_out=tuple(_refused(reading.provider, row, fault) for row, fault in kept_out),
        kept_names=frozenset((row["instance_type"], row["purchase"]) for row, _ in kept_out),
    )


def _doubted(offers: Sequence[Offer], before: _KnownPrices) -> dict[Offer, Fault]:
    """Return the offers that only the others of the answer show to be wrong."""
    shift = shifted(offers, before)
    return dict.fromkeys(offers, shift) if shift else dict(outliers(offers, before))


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
    unsliced = offer.gpu_count >= 1
    if unsliced and (offer.gpu_count != int(offer.gpu_count) or offer.gpu_count > _MOST_GPUS):
        yield "count", f"{offer.gpu_count:g} GPUs in one machine"
    if unsliced and not has_memory(gpu, offer.gpu_memory_gib):
        total = offer.gpu_count > 1 and has_memory(gpu, offer.gpu_memory_gib / offer.gpu_count)
        hint = ", which is the total of all its GPUs" if total else ""
        yield (
            "memory",
            (f"{offer.gpu_memory_gib:g} GiB a GPU{hint}; {gpu.name} has {gpu.memory_gib:g}"),
        )
    if not unsliced and offer.gpu_memory_gib > gpu.memory_gib:
        yield "memory", f"a slice of {offer.gpu_memory_gib:g} GiB of a {gpu.memory_gib:g} GiB GPU"


def _refused(provider: str, row: Row, fault: Fault) -> RefusedPrice:
    name = "/".join(part for part in (row["instance_type"], row["region"]) if part != "*")
    offer = f"{provider}/{name[:80]}, {row['purchase']}"
    return RefusedPrice(offer=offer, fault=fault[0], detail=fault[1])
