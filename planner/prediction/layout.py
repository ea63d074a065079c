"""Where a job runs or would run: its GPUs, their links, the machines that they stand in."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from planner.profile.model import Profile
from planner.profile.source import measured_gpu
from pricing.catalog.offer import Offer
from pricing.hardware import Gpu

GPUS_PER_NODE = 8


class WorkingGpus(NamedTuple):
    """GPUs of a layout that work, the others left out.

    Attributes:
        gpus: over all machines, >= 1.
        machines: that they stand in.
        inside: GPUs of one machine.
    """

    gpus: int
    machines: int
    inside: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """GPUs that work together, as predictions see them.

    Attributes:
        gpu: the model, None = unknown.
        gpu_count: GPUs at work, over all machines, >= 1.
        interconnect: between them inside a machine (`nvlink`, `pcie` ...), None = unknown.
        nodes: machines that they stand in, None = as few as hold them.
        network_gbps: between the machines, Gbit/s, None = unknown.
        cpu_cores: host threads for them, over all machines, None = unknown.
        slice: the slice (MIG profile) of each GPU that is at work, None = all of it.
    """

    gpu: Gpu | None = None
    gpu_count: int = 1
    interconnect: str | None = None
    nodes: int | None = None
    network_gbps: float | None = None
    cpu_cores: float | None = None
    slice: str | None = None

    @classmethod
    def of(cls, offer: Offer, count: int = 1, gpu_count: int | None = None) -> "Layout":
        """Return so many machines of an offer; `gpu_count` None = all their GPUs work."""
        return _of_machines(
            offer.card,
            gpu_count or round(offer.gpu_count) * count,
            offer.vcpus * count if offer.vcpus else None,
            offer.interconnect,
            count,
            offer.network_gbps,
        )

    @property
    def chip(self) -> Gpu:
        """The model, where it must be known.

        Raises:
            ValueError: it is not known.
        """
        if self.gpu is None:
            raise ValueError("the GPU model of the layout is not known")
        return self.gpu

    @property
    def gpu_name(self) -> str | None:
        """The model's canonical name, None = unknown."""
        return self.gpu.name if self.gpu else None

    @property
    def machines(self) -> int:
        """Machines, stated or as few as hold the GPUs."""
        return self.nodes or max(1, math.ceil(self.gpu_count / GPUS_PER_NODE))

    @property
    def whole(self) -> WorkingGpus:
        """All of its GPUs."""
        machines = self.machines
        return WorkingGpus(self.gpu_count, machines, max(1, self.gpu_count // machines))

    @property
    def parts(self) -> tuple[WorkingGpus, ...]:
        """Fewer GPUs of the same machines: of one, of each, and of all but the last."""
        return _parts(self.whole, self.nodes is not None)


@lru_cache(maxsize=4096)  # sizes that are sold, which all jobs of a plan look at
def _of_machines(  # noqa: PLR0913, PLR0917 - what predictions see of machines
    gpu: Gpu,
    gpu_count: int,
    cpu_cores: float | None,
    interconnect: str | None,
    nodes: int,
    network_gbps: float | None,
) -> Layout:
    return Layout(
        gpu=gpu,
        gpu_count=gpu_count,
        cpu_cores=cpu_cores,
        interconnect=interconnect,
        nodes=nodes,
        network_gbps=network_gbps,
    )


@lru_cache(maxsize=256)
def _parts(full: WorkingGpus, stated: bool) -> tuple[WorkingGpus, ...]:  # noqa: FBT001 - machines
    _, machines, inside = full
    layouts = [WorkingGpus(few, 1, few) for few in range(1, inside + (machines > 1))]
    if machines > 1:
        layouts.extend(WorkingGpus(few * machines, machines, few) for few in range(1, inside))
    if machines > 1 and not stated:
        layouts.append(WorkingGpus(GPUS_PER_NODE * (machines - 1), machines - 1, GPUS_PER_NODE))
    return tuple(layouts)


def layout_of(profile: Profile) -> Layout:
    """Return the GPUs that were profiled."""
    hardware_now = profile.hardware
    return Layout(
        gpu=measured_gpu(profile),
        gpu_count=profile.gpu_count,
        interconnect=hardware_now.interconnect,
        nodes=hardware_now.nodes,
        network_gbps=hardware_now.network_gbps,
        cpu_cores=hardware_now.cpu_cores,
    )
