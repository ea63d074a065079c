"""Sizes of providers that publish them: disks, included transfer, images, and how they are sold."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from pricing.tables import names, number, read_csv

_SUFFIX = "_sizes.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One published size. None means unknown.

    Attributes:
        provider: such as "digitalocean".
        instance_type: the provider's slug.
        gpu: canonical GPU name.
        gpu_count: GPUs in the machine.
        boot_disk_gib: included boot disk.
        scratch_disk_gib: included disk that is lost with the machine.
        included_transfer_gib: outbound transfer that a full month includes.
        private_gbps: private network, Gbit/s.
        image: slug of the image made for it.
        sold: "self-serve", "spot" or "contract" (no public price).
        regions: where it was seen; empty means unknown.
        source: where it was read.
        as_of: date as the source prints it.
    """

    provider: str
    instance_type: str
    gpu: str
    gpu_count: int
    boot_disk_gib: float | None
    scratch_disk_gib: float | None
    included_transfer_gib: float | None
    private_gbps: float | None
    image: str
    sold: str
    regions: tuple[str, ...]
    source: str
    as_of: str


@cache
def sizes() -> Mapping[tuple[str, str], Size]:
    """Return every published size by provider and slug, in file order."""
    table = {}
    for name in names(f"*{_SUFFIX}"):
        provider = name.removesuffix(_SUFFIX)
        for row in read_csv(name):
            table[provider, row["instance_type"]] = _size_from_row(provider, row)
    return MappingProxyType(table)


def _size_from_row(provider: str, row: Mapping[str, str]) -> Size:
    return Size(
        provider=provider,
        instance_type=row["instance_type"],
        gpu=row["gpu"],
        gpu_count=int(row["gpu_count"]),
        boot_disk_gib=number(row["boot_disk_gib"]),
        scratch_disk_gib=number(row["scratch_disk_gib"]),
        included_transfer_gib=number(row["included_transfer_gib"]),
        private_gbps=number(row["private_gbps"]),
        image=row["image"],
        sold=row["sold"],
        regions=tuple(row["regions"].split()),
        source=row["source"],
        as_of=row["as_of"],
    )
