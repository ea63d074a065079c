"""GPUs that work together: how many, over which links, in how many machines."""

import math
from dataclasses import dataclass

from planner.profile.model import Profile
from pricing.hardware import find

GPUS_PER_NODE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """GPUs that work together.

    Attributes:
        gpus: how many, >= 1.
        link: between them inside a machine (`nvlink`, `pcie` ...), None = unknown.
        nodes: machines that they stand in, None = as few as hold them.
        gpu: the model, None = unknown.
        network_gbps: between the machines, Gbit/s, None = unknown.
    """

    gpus: int
    link: str | None = None
    nodes: int | None = None
    gpu: str | None = None
    network_gbps: float | None = None

    @property
    def machines(self) -> int:
        """Machines, stated or as few as hold the GPUs."""
        return self.nodes or max(1, math.ceil(self.gpus / GPUS_PER_NODE))

    @property
    def inside(self) -> int:
        """GPUs of one machine."""
        return max(1, self.gpus // self.machines)


def layout_of(profile: Profile) -> Layout:
    """Return the GPUs that were profiled."""
    hardware_now = profile.hardware
    gpu = find(hardware_now.gpu, memory_gib=hardware_now.gpu_memory_gib)
    return Layout(
        gpus=profile.gpu_count,
        link=hardware_now.interconnect,
        nodes=hardware_now.nodes,
        gpu=gpu.name if gpu else None,
        network_gbps=hardware_now.network_gbps,
    )
