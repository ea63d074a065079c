"""Which lines of a bill are of machines with GPUs, and of how many."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from planner.bills.bill import MACHINE, BillLine
from pricing import hardware
from pricing.catalog.catalog import Catalog
from pricing.money import EXACT

# Families of sizes that have GPUs, for sizes that the catalog does not list: the providers' own
# naming (AWS "accelerated computing" p and g, Azure N series, Google Cloud accelerator-optimized
# A and G, DigitalOcean GPU Droplets).
_FAMILIES = {
    "aws": re.compile(r"(p[2-9]|gr?[2-9])[a-z0-9-]*\."),
    "azure": re.compile(r"(standard_)?n[cdgv]\d"),
    "gcp": re.compile(r"(a[2-9]x?|g[2-9])-"),
    "digitalocean": re.compile(r"gpu-"),
}
_Resource = tuple[str, str | None, str]
MachineSizes = Mapping[tuple[str, str], "GpuSize"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSize:
    """The GPUs of a machine.

    Attributes:
        gpu: canonical name, else the bill's word; None where only the family is known.
        gpus: how many; None where only the family is known.
    """

    gpu: str | None
    gpus: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLine:
    """A charge for a machine with GPUs.

    Attributes:
        line: of the bill.
        size: its GPUs.
        gpu_hours: of all its GPUs; None where neither bill nor catalog tell.
    """

    line: BillLine
    size: GpuSize
    gpu_hours: Decimal | None


def gpu_sizes(catalog: Catalog) -> MachineSizes:
    """Return the GPUs of every size in the catalog, by provider and size in lower case."""
    return {
        (row.provider, row.instance_type.lower()): GpuSize(
            gpu=row.gpu, gpus=Decimal(str(row.gpu_count))
        )
        for row in catalog.rows
    }


def gpu_lines(lines: Iterable[BillLine], sizes: MachineSizes) -> Iterator[GpuLine]:
    """Yield the charges for machines with GPUs, in the bill's order.

    A machine that is billed in parts (cores, memory, GPU) is one with GPUs if one part is of them.

    Args:
        lines: of all files.
        sizes: of `gpu_sizes`.
    """
    machines = [line for line in lines if line.kind == MACHINE]
    parts = _sizes_of_resources(machines, sizes)
    for line in machines:
        size = _size(line, sizes) or parts.get(_resource(line))
        if size is not None:
            yield GpuLine(line=line, size=size, gpu_hours=_gpu_hours(line, size))


def _sizes_of_resources(
    machines: Iterable[BillLine], sizes: MachineSizes
) -> dict[_Resource | None, GpuSize]:
    found: dict[_Resource | None, GpuSize] = {}
    for line in machines:
        resource, size = _resource(line), _size(line, sizes)
        if resource is not None and size is not None:
            found.setdefault(resource, size)
    return found


def _resource(line: BillLine) -> _Resource | None:
    return None if line.resource is None else (line.provider, line.account, line.resource)


def _size(line: BillLine, sizes: MachineSizes) -> GpuSize | None:
    """Return a machine's GPUs: as the catalog has them, else as the bill or its family says."""
    name = (line.instance_type or "").lower()
    known = sizes.get((line.provider, name))
    if known is not None:
        return known
    if line.gpu is not None or line.gpus:
        model = hardware.find(line.gpu)
        return GpuSize(gpu=model.name if model else line.gpu, gpus=line.gpus)
    family = _FAMILIES.get(line.provider)
    if family is not None and family.match(name):
        return GpuSize(gpu=None, gpus=None)
    return None


def _gpu_hours(line: BillLine, size: GpuSize) -> Decimal | None:
    if line.gpu_hours is not None:
        return line.gpu_hours
    if line.hours is None or size.gpus is None:
        return None
    return EXACT.multiply(line.hours, size.gpus)
