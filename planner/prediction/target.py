"""Where a job would run: the machine as predictions see it."""

from dataclasses import dataclass

from planner.prediction.layout import Layout
from pricing.catalog.offer import Offer
from pricing.hardware import Gpu, gpus


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where the job would run.

    Attributes:
        gpu: the GPU model.
        gpu_count: GPUs used.
        cpu_cores: host threads for them, over all machines, None = unknown.
        interconnect: between the GPUs of a machine, None = unknown.
        nodes: machines that they stand in, None = as few as hold them.
        network_gbps: between the machines, None = unknown.
    """

    gpu: Gpu
    gpu_count: int = 1
    cpu_cores: float | None = None
    interconnect: str | None = None
    nodes: int | None = None
    network_gbps: float | None = None

    @classmethod
    def of(cls, offer: Offer, count: int = 1, gpu_count: int | None = None) -> "Target":
        """Return so many machines of an offer; `gpu_count` None = all their GPUs work."""
        return cls(
            gpu=gpus()[offer.gpu],
            gpu_count=gpu_count or round(offer.gpu_count) * count,
            cpu_cores=offer.vcpus * count if offer.vcpus else None,
            interconnect=offer.interconnect,
            nodes=count,
            network_gbps=offer.network_gbps,
        )

    @property
    def layout(self) -> Layout:
        """Its GPUs and links."""
        return Layout(
            gpus=self.gpu_count,
            link=self.interconnect,
            nodes=self.nodes,
            gpu=self.gpu.name,
            network_gbps=self.network_gbps,
        )
