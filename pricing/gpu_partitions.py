"""How AMD's GPUs are cut: into equal partitions, one mode for the whole GPU.

Compute (SPX, DPX, QPX, CPX: the compute dies in equal groups) and memory (NPS1, NPS2, NPS4: one
pool, halves, quarters) are set apart. Where partitions share a pool of memory nothing keeps one of
them from taking what another needs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from pricing.hardware import Gpu
from pricing.tables import read_csv


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMode:
    """One way to cut a GPU.

    Attributes:
        name: AMD's name of the compute mode: "DPX".
        partitions: how many, all alike.
        own_memory: the memory mode in which each partition has memory of its own; None: none is
            known.
        source: where it was read.
    """

    name: str
    partitions: int
    own_memory: str | None
    source: str

    @property
    def compute(self) -> float:
        """The share of the GPU's compute that a partition has."""
        return 1.0 / self.partitions

    def memory_gib(self, gpu: Gpu) -> float:
        """Return an equal part of the memory: what a partition may hold in every memory mode."""
        return (gpu.usable_memory_gib or gpu.memory_gib) / self.partitions


def partition_modes(gpu: Gpu) -> tuple[PartitionMode, ...]:
    """Return the ways to cut a GPU, the fewest partitions first; none: it cannot be, or unknown."""
    return _modes().get(gpu.name, ())


@cache
def _modes() -> Mapping[str, tuple[PartitionMode, ...]]:
    found: dict[str, list[PartitionMode]] = {}
    for row in read_csv("gpu_partitions.csv"):
        mode = PartitionMode(
            name=row["mode"],
            partitions=int(row["partitions"]),
            own_memory=row["own_memory"] or None,
            source=row["source"],
        )
        found.setdefault(row["gpu"], []).append(mode)
    ordered = {name: sorted(modes, key=lambda one: one.partitions) for name, modes in found.items()}
    return MappingProxyType({name: tuple(modes) for name, modes in ordered.items()})
