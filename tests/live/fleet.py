"""A fleet that dcgm-exporter and kube-state-metrics would tell of: nodes, pods, jobs, teams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

DAY_S = 86_400
GPUS_OF_NODE = 8
TEAMS = ("vision", "search", "speech", "ranking")


def _share(rng: np.random.Generator, load: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.round(load * rng.uniform(0.3, 0.7, load.shape), 6)


# Of etc/default-counters.csv, and SM_ACTIVE, by the share of time at work.
METRICS: dict[str, Callable[[np.random.Generator, NDArray[np.float64]], NDArray[np.float64]]] = {
    "DCGM_FI_DEV_GPU_UTIL": lambda _, load: np.round(100 * load),
    "DCGM_FI_DEV_MEM_COPY_UTIL": lambda _, load: np.round(40 * load),
    "DCGM_FI_DEV_FB_USED": lambda rng, load: np.round(
        2000 + 60_000 * (load > 0) + 500 * rng.random(load.shape)
    ),
    "DCGM_FI_DEV_FB_FREE": lambda rng, load: np.round(
        79_000 - 60_000 * (load > 0) - 500 * rng.random(load.shape)
    ),
    "DCGM_FI_DEV_POWER_USAGE": lambda rng, load: np.round(
        70 + 550 * load + 20 * rng.random(load.shape), 3
    ),
    "DCGM_FI_DEV_GPU_TEMP": lambda _, load: np.round(30 + 40 * load),
    "DCGM_FI_DEV_SM_CLOCK": lambda _, load: np.where(load > 0, 1980.0, 345.0),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": lambda _, load: np.cumsum(
        np.round(60_000 * (70 + 550 * load)), axis=1
    ),
    "DCGM_FI_PROF_SM_ACTIVE": _share,
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": _share,
    "DCGM_FI_PROF_DRAM_ACTIVE": _share,
    "DCGM_FI_PROF_PCIE_RX_BYTES": lambda rng, load: np.round(
        load * rng.uniform(1e8, 4e9, load.shape)
    ),
}


@dataclass(frozen=True, slots=True)
class Tenant:
    """Who holds a GPU for a while: pod, its job and team, and how busy it is at most."""

    pod: str
    job: str
    team: str
    load: float


@dataclass(frozen=True, slots=True)
class Fleet:
    """A fleet of H100s.

    Of its nodes two in five hold training jobs of four nodes for three days, two in five a pod of
    inference on each GPU all the time, one in five single-GPU batch pods that end each day (and
    every fourth GPU of those is idle).

    Attributes:
        gpus: how many.
        begin_s: the first instant, a midnight.
        step_s: time between scrapes.
    """

    gpus: int
    begin_s: int
    step_s: int = 60

    def tenant(self, gpu: int, day: int) -> Tenant | None:
        """Return who holds a GPU on a day."""
        node = gpu // GPUS_OF_NODE
        kind = node % 5
        if kind < 2:
            rank, group = (node // 5 * 2 + kind) % 4, (node // 5 * 2 + kind) // 4
            job = f"train-{group}-{day // 3}"
            return Tenant(f"{job}-{rank}", job, TEAMS[group % 4], 0.95)
        if kind < 4:
            return Tenant(f"serve-{gpu}", f"serve-{gpu}", TEAMS[gpu % 4], 0.3)
        if gpu % 4 == 3:
            return None
        return Tenant(f"batch-{gpu}-{day}", f"batch-{gpu}-{day}", TEAMS[day % 4], 0.7)

    def labels(self, gpu: int, tenant: Tenant | None) -> dict[str, str]:
        """Return the labels of a GPU's series, as a scrape without honorLabels has them."""
        own = {
            "gpu": str(gpu % GPUS_OF_NODE),
            "UUID": f"GPU-{gpu:08x}-0000-4000-8000-{gpu:012x}",
            "device": f"nvidia{gpu % GPUS_OF_NODE}",
            "modelName": "NVIDIA H100 80GB HBM3",
            "Hostname": f"node-{gpu // GPUS_OF_NODE}",
            "instance": f"10.0.{gpu // 2048}.{gpu // GPUS_OF_NODE % 256}:9400",
            "job": "dcgm-exporter",
            "pod": f"dcgm-exporter-{gpu // GPUS_OF_NODE}",
            "namespace": "monitoring",
            "container": "exporter",
        }
        if tenant is None:
            return own
        held = {"exported_pod": tenant.pod, "exported_container": "main"}
        return {**own, **held, "exported_namespace": tenant.team}

    def load(self, gpus: range, day: int, instants: int) -> NDArray[np.float64]:
        """Return the share of time at work of some GPUs on a day, a row a GPU."""
        rng = np.random.default_rng((day, gpus.start))
        tenants = [self.tenant(gpu, day) for gpu in gpus]
        most = np.array([0.0 if one is None else one.load for one in tenants])
        shape = (len(gpus), instants)
        dips = (rng.random(shape) < 0.05).astype(np.float64)
        return np.asarray(most[:, None] * (1 - 0.1 * rng.random(shape)) * (1 - 0.9 * dips))

    def readings(
        self, gpus: range, day: int
    ) -> Iterator[tuple[str, list[dict[str, str]], NDArray[np.float64]]]:
        """Yield each metric of some GPUs on a day: name, labels of each GPU, a row a GPU."""
        instants = DAY_S // self.step_s
        load = self.load(gpus, day, instants)
        rng = np.random.default_rng((day, gpus.start, 1))
        labels = [self.labels(gpu, self.tenant(gpu, day)) for gpu in gpus]
        for name, draw in METRICS.items():
            values = draw(rng, load)
            if name.endswith("ENERGY_CONSUMPTION"):
                values = values + day * 60_000.0 * 620 * instants  # counts on over the days
            yield name, labels, values

    def pods(self, day: int) -> list[dict[str, str]]:
        """Return the label sets of kube_pod_labels on a day."""
        found = {}
        for gpu in range(self.gpus):
            tenant = self.tenant(gpu, day)
            if tenant is not None:
                found[tenant.pod] = {
                    "exported_pod": tenant.pod,
                    "exported_namespace": tenant.team,
                    "namespace": "monitoring",
                    "pod": "kube-state-metrics-0",
                    "label_team": tenant.team,
                    "label_job_name": tenant.job,
                }
        return [found[pod] for pod in sorted(found)]
