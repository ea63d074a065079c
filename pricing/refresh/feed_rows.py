"""Lines of foreign price lists as readings: names, regions and machines become ours."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cache
from types import MappingProxyType

from pricing.catalog.offer import Offer, bundled_offers
from pricing.errors import InputError
from pricing.hardware import Gpu, find, has_memory
from pricing.money import usd
from pricing.refresh.reading import PriceReading, Row, new_row
from pricing.tables import read_toml

PROVIDERS: Mapping[str, str] = (read_toml("feeds.toml") or {})["names"]
"""Their names of providers where ours differ."""

COMMUNITY = frozenset({"tensordock", "vast"})
"""Marketplaces: the machines belong to third parties."""

NOT_ON_DEMAND = re.compile(r"a4x?-|a3-ultragpu-|a3-(highgpu|edgegpu)-[124]g")
"""Types of Google that are not sold on demand (cloud.google.com/compute/docs/
accelerator-optimized-machines, "consumption option availability by machine type", as gpuhunt
applied it on 2026-08-19); the list prices of their parts add up to a price all the same."""

_PROVIDER = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRow:
    """One line of a foreign price list, as text.

    Attributes:
        instance_type: of the provider.
        region: region, or zone where the list knows zones only.
        gpu: the list's name of the model.
        gpu_count: GPUs in the machine.
        memory_gib: readings of the memory of one GPU, the likeliest first; empty: unknown.
        vcpus: "" is unknown, as below.
        ram_gib: host memory.
        disk_gib: local disk.
        usd_per_hour: of the machine.
        purchase: on_demand or spot.
        community: of a third party.
        notes: what must be said of the price.
    """

    instance_type: str
    region: str
    gpu: str
    gpu_count: str
    memory_gib: tuple[float, ...]
    usd_per_hour: str
    purchase: str
    vcpus: str = ""
    ram_gib: str = ""
    disk_gib: str = ""
    community: bool = False
    notes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPage:
    """The list that lines stand in.

    Attributes:
        provider: our name of it.
        source: what is written beside each price.
        day: of the prices.
        confidence: high where the provider itself says them.
        left_out: counts the lines that are not offers, by reason.
    """

    provider: str
    source: str
    day: date
    confidence: str = "medium"
    left_out: Counter[str] = field(default_factory=Counter)


def of_known_machine(
    provider: str, instance_type: str, *, region: str, usd_per_hour: str, purchase: str
) -> FeedRow | None:
    """Return the line of a list that prints names and prices alone.

    None where the name is not known.
    """
    machine = known_machine(provider, instance_type)
    if machine is None:
        return None
    return FeedRow(
        instance_type=instance_type,
        region=region,
        gpu=machine.gpu,
        gpu_count=f"{machine.gpu_count:.12g}",
        memory_gib=(machine.gpu_memory_gib,),
        vcpus="" if machine.vcpus is None else f"{machine.vcpus:.12g}",
        ram_gib="" if machine.ram_gib is None else f"{machine.ram_gib:.12g}",
        usd_per_hour=usd_per_hour,
        purchase=purchase,
    )


def our_name(provider: str) -> str:
    """Return our name of a provider that another tool knows under `provider`."""
    return PROVIDERS.get(provider.lower(), provider.lower())


def to_reading(of: FeedPage, listed: Iterable[FeedRow]) -> PriceReading:
    """Return the reading of one provider: one row for each machine, region and way of buying.

    Where zones of a region differ, the cheapest counts. The list is not a complete one: what it
    leaves out stays as it is.

    Raises:
        InputError: the provider's name could not name a file.
    """
    if not _PROVIDER.fullmatch(of.provider):
        raise InputError(f"{of.source}: {of.provider!r:.60} is not the name of a provider.")
    best: dict[tuple[str, ...], Row] = {}
    for line in sorted(listed, key=_cheapest_first):
        by_quota = of.provider == "gcp" and NOT_ON_DEMAND.match(line.instance_type)
        if line.purchase == "on_demand" and by_quota:
            of.left_out["not sold on demand"] += 1
            continue
        row = _row(of, line)
        best.setdefault(_key(row), row)
    return PriceReading(
        provider=of.provider,
        source=of.source,
        read_on=of.day,
        rows=tuple(_told_apart(row for _, row in sorted(best.items()))),
        notes=tuple(f"{n} lines left out: {why}" for why, n in sorted(of.left_out.items())),
    )


def _key(row: Row) -> tuple[str, ...]:
    return tuple(row[n] for n in ("instance_type", "region", "purchase", "gpu", "gpu_count"))


def _told_apart(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows, with count and model in names that would be one offer otherwise."""
    rows = tuple(rows)
    offers = Counter(_key(row)[:3] for row in rows)
    for row in rows:
        if offers[_key(row)[:3]] == 1:
            yield row
        else:
            name = f"{row['gpu_count']}x_{row['gpu']}_{row['instance_type']}"
            yield {**row, "instance_type": name}


def _cheapest_first(line: FeedRow) -> tuple[object, ...]:
    try:
        price = usd(line.usd_per_hour)
    except InputError:
        price = Decimal("Infinity")
    return (price <= 0, price, line.instance_type, line.region, line.usd_per_hour)


def _region(provider: str, line: FeedRow) -> str:
    head, _, letter = line.region.rpartition("-")
    zone = provider == "gcp" and head and len(letter) == 1 and letter.isalpha()
    return head if zone else line.region


def _row(of: FeedPage, line: FeedRow) -> Row:
    line = replace(line, gpu_count=line.gpu_count.removesuffix(".0"))
    gpu, memory_gib = _gpu(of.provider, line)
    third_party = line.community or of.provider in COMMUNITY
    return new_row(
        region=_region(of.provider, line),
        instance_type=_rentable(of.provider, line, gpu),
        gpu=gpu,
        gpu_count=line.gpu_count,
        gpu_memory_gib=_of_part(find(gpu), memory_gib, line.gpu_count),
        vcpus=line.vcpus,
        ram_gib=line.ram_gib,
        local_disk_gib=line.disk_gib,
        host="community" if third_party else "provider",
        purchase=line.purchase,
        usd_per_hour=line.usd_per_hour,
        as_of=of.day.isoformat(),
        confidence=of.confidence,
        source=of.source,
        notes=line.notes,
    )


def _rentable(provider: str, line: FeedRow, gpu: str) -> str:
    """Return the name of the machine by which it is ordered, where the list has another.

    RunPod rents a number of GPUs of a model in one of its two clouds, Google attaches GPUs to its
    n1 machines: both have no name for the whole.
    """
    if provider == "runpod":
        return f"{line.gpu_count}x_{gpu}_{'community' if line.community else 'secure'}"
    if provider == "gcp" and line.instance_type.startswith("n1-"):
        return f"{line.instance_type}+{line.gpu_count}x{gpu}"
    return line.instance_type


def _gpu(provider: str, line: FeedRow) -> tuple[str, str]:
    """Return model and memory of one GPU; the first reading of the memory that the model can have.

    Lists that say "H100" mean any card of that name: where the machine is known, it tells which.
    """
    machine = known_machine(provider, line.instance_type)
    if machine is not None and _same_family(machine.gpu, line):
        return machine.gpu, f"{machine.gpu_memory_gib:.12g}"
    with_form = f"{line.gpu} {_form(line.instance_type)}".strip()
    for memory_gib in line.memory_gib:
        for gpu in (find(name, memory_gib=memory_gib) for name in (with_form, line.gpu)):
            if gpu is not None and has_memory(gpu, memory_gib):
                return gpu.name, f"{gpu.memory_gib:.12g}"
    gpu = find(line.gpu)
    sizes = line.memory_gib or ((gpu.memory_gib,) if gpu else ())
    return gpu.name if gpu else line.gpu, f"{sizes[0]:.12g}" if sizes else ""


def _of_part(gpu: Gpu | None, memory_gib: str, gpu_count: str) -> str:
    """Return the memory of a part of a GPU, for lists that print the whole one's, or none."""
    try:
        # Nobody rents less than an eighth (AWS's g6f.large), so that "0.167" is a sixth.
        part, size = Fraction(gpu_count).limit_denominator(8), float(memory_gib)
    except ValueError:
        return memory_gib
    is_whole = gpu is not None and 0 < part < 1 and has_memory(gpu, size)
    return f"{float(part) * size:.4g}" if is_whole else memory_gib


def _form(instance_type: str) -> str:
    """Return the form of the card by the machine's name, for lists that say "H100" alone."""
    name = instance_type.lower()
    return next((form for form in ("pcie", "nvl", "sxm") if form in name), "")


def _same_family(model: str, line: FeedRow) -> bool:
    """Return whether the list's model may be the known one: of its family, with its memory."""
    listed = [find(line.gpu, memory_gib=size) for size in (*line.memory_gib, None)]
    families = {_family(gpu) for gpu in listed if gpu is not None}
    gpu = find(model)
    return (
        gpu is not None
        and _family(gpu) in families
        and (not line.memory_gib or any(has_memory(gpu, size) for size in line.memory_gib))
    )


def _family(gpu: Gpu) -> str:
    return gpu.name.partition("-SXM")[0].partition("-PCIe")[0].partition("-NVL")[0]


def known_machine(provider: str, instance_type: str) -> Offer | None:
    """Return an offer of the machine, for its hardware; None where the name is not known."""
    return _machines().get((provider, instance_type))


@cache
def _machines() -> Mapping[tuple[str, str], Offer]:
    """Return the newest row of each name.

    A row that says more about the host counts before others.
    """
    ordered = sorted(bundled_offers(), key=_precedence, reverse=True)
    return MappingProxyType({(o.provider, o.instance_type): o for o in reversed(ordered)})


def _precedence(offer: Offer) -> tuple[bool, bool, int]:
    return offer.current, offer.vcpus is not None, offer.as_of.toordinal()
