"""Catalogs of other tools as readings: what SkyPilot's and gpuhunt's files have in common."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType

from pricing.errors import InputError
from pricing.hardware import find, has_memory
from pricing.money import usd
from pricing.refresh.reading import PriceReading, Row, new_row

PROVIDERS: Mapping[str, str] = MappingProxyType(
    {
        "cudo": "cudo",
        "datacrunch": "verda",
        "do": "digitalocean",
        "jarvislabs": "jarvis-labs",
        "lambdalabs": "lambda",
        "vastai": "vast",
    }
)
"""Their names of providers where ours differ."""

COMMUNITY = frozenset({"tensordock", "vast"})
"""Marketplaces: the machines belong to third parties."""

MOST_BYTES = 256 * 2**20
"""Larger files are refused; the largest published one has about 30 MB."""

_PROVIDER = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_NUMBERED_ZONES = frozenset({"gcp"})  # a region's zones are the region and one letter


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One line of a foreign catalog, as text.

    Attributes:
        instance_type: of the provider.
        region: region, or zone where the catalog knows zones only.
        gpu: the catalog's name of the model.
        gpu_count: GPUs in the machine.
        memory_gib: readings of the memory of one GPU, the likeliest first; empty: unknown.
        vcpus: "" is unknown, as below.
        ram_gib: host memory.
        disk_gib: local disk.
        usd_per_hour: of the machine.
        purchase: on_demand or spot.
        community: of a third party.
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


def our_name(provider: str) -> str:
    """Our name of a provider that another tool knows under `provider`."""
    return PROVIDERS.get(provider.lower(), provider.lower())


def day_of(path: Path, as_of: date | None) -> date:
    """The day of the prices in a file: the one that is given, else that of its last change."""
    return as_of or datetime.fromtimestamp(path.stat().st_mtime, UTC).date()


def check_size(path: Path) -> None:
    """Refuse what is not a catalog by its size.

    Raises:
        InputError: the file is larger than MOST_BYTES.
    """
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"{path}: larger than {MOST_BYTES // 2**20} MiB; no catalog is.")


def to_reading(provider: str, listed: Iterable[Listed], source: str, day: date) -> PriceReading:
    """The reading of one provider: one row for each type, region and way of buying.

    Where zones of a region differ, the cheapest counts. The catalog is not a complete list: what it
    leaves out stays as it is.

    Raises:
        InputError: the provider's name could not name a file.
    """
    if not _PROVIDER.fullmatch(provider):
        raise InputError(f"{source}: {provider!r:.60} is not the name of a provider.")
    best: dict[tuple[str, str, str], Listed] = {}
    for line in sorted(listed, key=_cheapest_first):
        best.setdefault((line.instance_type, _region(provider, line), line.purchase), line)
    rows = tuple(_row(provider, line, source, day) for _, line in sorted(best.items()))
    return PriceReading(provider=provider, source=source, read_on=day, rows=rows)


def _cheapest_first(line: Listed) -> tuple[object, ...]:
    try:
        price = usd(line.usd_per_hour)
    except InputError:
        price = Decimal("Infinity")
    return (price <= 0, price, line.instance_type, line.region, line.usd_per_hour)


def _region(provider: str, line: Listed) -> str:
    head, _, letter = line.region.rpartition("-")
    zone = provider in _NUMBERED_ZONES and head and len(letter) == 1 and letter.isalpha()
    return head if zone else line.region


def _row(provider: str, line: Listed, source: str, day: date) -> Row:
    gpu, memory_gib = _gpu(line)
    third_party = line.community or provider in COMMUNITY
    return new_row(
        region=_region(provider, line),
        instance_type=line.instance_type,
        gpu=gpu,
        gpu_count=line.gpu_count,
        gpu_memory_gib=memory_gib,
        vcpus=line.vcpus,
        ram_gib=line.ram_gib,
        local_disk_gib=line.disk_gib,
        host="community" if third_party else "provider",
        purchase=line.purchase,
        usd_per_hour=line.usd_per_hour,
        as_of=day.isoformat(),
        confidence="medium",
        source=source,
    )


def _gpu(line: Listed) -> tuple[str, str]:
    """Model and memory of one GPU; the first reading of the memory that the model can have."""
    for memory_gib in line.memory_gib:
        gpu = find(line.gpu, memory_gib=memory_gib)
        if gpu is not None and has_memory(gpu, memory_gib):
            return gpu.name, f"{gpu.memory_gib:.12g}"
    gpu = find(line.gpu)
    if gpu is None:
        return line.gpu, f"{line.memory_gib[0]:.12g}" if line.memory_gib else ""
    if not line.memory_gib:
        return gpu.name, f"{gpu.memory_gib:.12g}"
    return gpu.name, f"{line.memory_gib[0]:.12g}"
