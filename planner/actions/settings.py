"""The values that an action sets on one machine, and what is set on the machines of an option.

`num_workers` and the batch are what fits. A value that cannot be worked out is left out, and the
how-to names the setting. plan.json, recipes, reports and the bootstrap carry these values and work
out none of their own.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import msgspec

from planner.actions import ACTIONS
from planner.actions.effects import batch_growth, loader_workers, number
from planner.models.document import Number, need
from planner.models.estimate import digits
from planner.models.interruption import CHECKPOINTS, CheckpointCosts, Survival, survival
from planner.profile.model import Profile
from planner.signals.condition import Signals
from planner.signals.signals import capability
from pricing.hardware import Gpu
from pricing.money import HOURS_PER_MONTH

SettingValue = int | float | str
Settings = Mapping[str, SettingValue]
"""Name of a setting -> value, such as `num_workers` -> 7."""

_PREFETCH = 4  # twice PyTorch's default of 2
_BF16_FROM = 8.0
_MULTIPLE = 8  # tensor cores want dimensions divisible by 8 in half precision (NVIDIA)
_ACCUMULATED = 4
_QUEUED = 8
_DELAY_OF_TARGET = 0.1  # a tenth of the latency target may go into waiting for the batch


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One copy of a job on its machines, as far as settings depend on it.

    Attributes:
        gpus: that work, over all its machines, >= 1.
        nodes: its machines, >= 1.
        vcpus: of one machine; None where unknown.
        needs: what it takes to survive failures.
    """

    gpus: int
    nodes: int
    vcpus: float | None
    needs: Survival

    @property
    def processes(self) -> int:
        """Processes on each machine: one for each GPU that works there."""
        return max(1, self.gpus // self.nodes)

    @property
    def cores(self) -> float | None:
        """CPU threads of the machine for each process; None where unknown."""
        return None if self.vcpus is None else self.vcpus / self.processes


def profiled_run(
    profile: Profile,
    hours: float = float(HOURS_PER_MONTH),
    checkpoints: CheckpointCosts = CHECKPOINTS,
) -> PlannedRun:
    """Return the job on the machines that were profiled, over so many hours: a month's."""
    nodes, cores = profile.hardware.nodes or 1, profile.hardware.cpu_cores
    return PlannedRun(
        gpus=profile.gpu_count,
        nodes=nodes,
        vcpus=None if cores is None else cores / nodes,
        needs=survival(profile.gpu_count, hours, checkpoints),
    )


def batch_that_fits(signals: Signals) -> int | None:
    """Return the batch that fills nine tenths of the memory, at least; None without a batch."""
    batch, growth = number(signals, "job.batch_per_gpu"), batch_growth(signals)
    if batch is None or growth is None:
        return None
    fits = math.floor(batch * growth)
    rounded = fits - fits % _MULTIPLE if fits >= 2 * _MULTIPLE else fits
    return rounded if rounded > batch else None


def _workers(signals: Signals, _: PlannedRun) -> Settings:
    workers = loader_workers(signals)
    return {} if workers is None else {"num_workers": workers, "prefetch_factor": _PREFETCH}


def _batch(signals: Signals, _: PlannedRun) -> Settings:
    batch = batch_that_fits(signals)
    return {} if batch is None else {"batch_per_gpu": batch}


def _half(signals: Signals, _: PlannedRun) -> Settings:
    capability = number(signals, "hardware.compute_capability")
    if capability is None:
        return {}
    return {"dtype": "bf16"} if capability >= _BF16_FROM else {"dtype": "fp16"}


def _processes(_: Signals, run: PlannedRun) -> Settings:
    return {"nproc_per_node": run.processes, "max_restarts": run.needs.max_restarts}


def _queue(signals: Signals, _: PlannedRun) -> Settings:
    target_ms = number(signals, "job.latency_slo_ms")
    delay = {} if target_ms is None else {"max_delay_ms": round(target_ms * _DELAY_OF_TARGET, 1)}
    return {"max_batch": _QUEUED, **delay}


def _half_batch(signals: Signals, _: PlannedRun) -> Settings:
    batch = number(signals, "job.batch_per_gpu")
    halved = {} if batch is None else {"batch_per_gpu": max(1, math.ceil(batch / 2))}
    return {**halved, "steps": 2}


_LAWS: dict[str, Callable[[Signals, PlannedRun], Settings]] = {
    "dynamic-batching": _queue,
    "dataloader-workers": _workers,
    "mixed-precision": _half,
    "larger-batch": _batch,
    "smaller-batch": _half_batch,
    "checkpoint-interval": lambda _, run: {"interval_s": round(run.needs.checkpoint_every_s)},
    "data-parallel": _processes,
    "sharded-data-parallel": _processes,
}
"""What actions set that hangs on the job, its machine or its run; the others set what they say."""


def on_machine(signals: Signals, gpu: Gpu, run: PlannedRun) -> Signals:
    """Return the signals as they would be on another machine: its GPUs, cores and capability.

    The memory that was held stays; its share of the other GPU's memory changes.
    """
    used_gib = number(signals, "mem.used_gib.max")
    return {
        **signals,
        "hardware.gpu_count": float(run.gpus),
        "hardware.nodes": float(run.nodes),
        "hardware.cpu_cores_per_gpu": run.cores,
        "hardware.compute_capability": capability(gpu),
        "mem.used_fraction.max": used_gib / gpu.memory_gib if used_gib and gpu.memory_gib else None,
    }


def settings_of(code: str, signals: Signals, run: PlannedRun) -> Settings:
    """Return what an action sets; empty where nothing can be worked out.

    Args:
        code: of the action.
        signals: as they are where the job runs (`on_machine`).
        run: the job there.
    """
    return _LAWS[code](signals, run) if code in _LAWS else dict(ACTIONS[code].settings)


def settings_by_action(signals: Signals, run: PlannedRun) -> dict[str, Settings]:
    """Return what each action on the job that applies there would set, by code.

    Args:
        signals: as they are where the job runs (`on_machine`).
        run: the job there.
    """
    return {
        code: settings_of(code, signals, run)
        for code, action in ACTIONS.items()
        if action.kind != "structural" and action.applies(signals)
    }


_NUMA = "numa-binding"
# NCCL may take an interface that other machines cannot reach; `^` excludes by the beginning.
_SEVERAL_NODES = MappingProxyType({"NCCL_SOCKET_IFNAME": "^lo,docker"})
_THREADS, _MPS_SHARE = "OMP_NUM_THREADS", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
_MPS_OVERCOMMIT = 2.0  # of the equal share: jobs that share are rarely busy at the same time
# Of plans of earlier versions: nothing reads them.
_OF_EARLIER_PLANS = ("DATALOADER_WORKERS", "PREFETCH_FACTOR", "PERSISTENT_WORKERS", "PIN_MEMORY",
                     "NON_BLOCKING", "PRECISION")  # fmt: skip
VARIABLES = frozenset(
    (
        _THREADS,
        _MPS_SHARE,
        *_SEVERAL_NODES,
        *(name for action in ACTIONS.values() for name in action.environment),
        *(f"GPUCOST_{name}" for name in _OF_EARLIER_PLANS),
    )
)
"""Every variable that is ever set; a plan that names another one is not of our making."""


class MachineSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is set on each machine, so that the job runs there as the plan says.

    Attributes:
        environment: variables.
        launcher: what starts the processes is told: `nproc_per_node`, and where they apply
            `nnodes`, `numa` and `max_restarts`.
        checkpoint_every_s: work between checkpoints; None where nothing is trained.
    """

    environment: Mapping[str, str]
    launcher: Settings
    checkpoint_every_s: Number | None = None

    def __post_init__(self) -> None:
        need("nproc_per_node" in self.launcher, "launcher.nproc_per_node is missing")

    @property
    def processes(self) -> int:
        """Processes of the job on each machine."""
        return int(self.launcher["nproc_per_node"])

    @property
    def nnodes(self) -> str:
        """Torchrun's --nnodes: MIN:MAX where the job can lose a machine."""
        return str(self.launcher.get("nnodes", "1"))

    @property
    def nodes(self) -> int:
        """Machines of one copy of the job."""
        return int(self.nnodes.rpartition(":")[2])

    def also(self, codes: Iterable[str], values: Mapping[str, Settings]) -> "MachineSettings":
        """Return the settings with more actions.

        Args:
            codes: of the actions; one that does not apply here sets nothing.
            values: what each action that applies here sets, by code.
        """
        added = [code for code in codes if code in values]
        if not added:
            return self
        restarts = self.launcher.get("max_restarts", _restarts(added, values))
        return msgspec.structs.replace(
            self,
            environment=_sorted({**self.environment, **variables(added, values)}),
            launcher=_launcher(
                self.processes,
                self.nnodes,
                numa="numa" in self.launcher or _NUMA in added,
                max_restarts=restarts,
            ),
        )

    def on_nodes(self, nodes: int) -> "MachineSettings":
        """Return the settings with another number of machines, none of which can be lost."""
        if nodes == self.nodes:
            return self
        node_environment = {k: v for k, v in self.environment.items() if k not in _SEVERAL_NODES}
        environment = {**node_environment, **(_SEVERAL_NODES if nodes > 1 else {})}
        restarts = self.launcher.get("max_restarts")
        return msgspec.structs.replace(
            self,
            environment=_sorted(environment),
            launcher=_launcher(
                self.processes, str(nodes), numa="numa" in self.launcher, max_restarts=restarts
            ),
        )


def _launcher(
    processes: int,
    nnodes: str = "1",
    *,
    numa: bool = False,
    max_restarts: SettingValue | None = None,
) -> Settings:
    """Return what the launcher of the processes is told."""
    values = {
        "nproc_per_node": processes,
        "nnodes": None if nnodes == "1" else nnodes,
        "numa": "auto" if numa else None,
        "max_restarts": max_restarts,
    }
    return {name: value for name, value in values.items() if value is not None}


def machine_settings(
    actions: Iterable[str],
    values: Mapping[str, Settings],
    run: PlannedRun,
    *,
    trains: bool,
    nnodes: str = "",
) -> MachineSettings:
    """Return what to set on the machines of an option.

    Args:
        actions: codes of the option.
        values: what each action that applies on them sets (`settings_by_action`).
        run: one copy of the job on them.
        trains: whether it computes gradients.
        nnodes: torchrun's, where it is elastic; empty: as many as there are.
    """
    processes = run.processes
    added = [code for code in actions if code in values]
    together = run.needs.max_restarts if trains and run.gpus > 1 else None
    return MachineSettings(
        environment=_sorted(
            {**_plain(processes, run.nodes, run.vcpus), **variables(added, values)}
        ),
        launcher=_launcher(
            processes,
            nnodes or str(run.nodes),
            numa=processes > 1 or _NUMA in added,
            max_restarts=_restarts(added, values) if together is None else together,
        ),
        checkpoint_every_s=digits(run.needs.checkpoint_every_s) if trains else None,
    )


def today_settings(run: PlannedRun, *, trains: bool) -> MachineSettings:
    """Return the job as it runs today: nothing is set."""
    return MachineSettings(
        environment={},
        launcher=_launcher(run.processes, str(run.nodes)),
        checkpoint_every_s=digits(run.needs.checkpoint_every_s) if trains else None,
    )


def plain_settings(processes: int, nodes: int, vcpus: float | None) -> MachineSettings:
    """Return what is set on a machine whatever runs there.

    Args:
        processes: on each machine, >= 1.
        nodes: machines that work together.
        vcpus: of one machine; None where unknown.
    """
    return MachineSettings(
        environment=_sorted(_plain(processes, nodes, vcpus)),
        launcher=_launcher(processes, str(nodes), numa=processes > 1),
    )


def _plain(processes: int, nodes: int, vcpus: float | None) -> dict[str, str]:
    """Return the variables that are set whatever runs there."""
    several = _SEVERAL_NODES if nodes > 1 else {}
    return {**threads(processes, vcpus), **several}


def _restarts(codes: Iterable[str], values: Mapping[str, Settings]) -> int | None:
    """Return the first number of restarts that an action sets; None where none does."""
    restarts = (values[code].get("max_restarts") for code in codes)
    return next((int(limit) for limit in restarts if limit is not None), None)


def _sorted(environment: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(environment.items()))


def shared_settings(mode: str, jobs: int, vcpus: float | None) -> MachineSettings:
    """Return what is set on a machine whose GPU several jobs share, one process each.

    Args:
        mode: "mps", "time-slicing" or "mig".
        jobs: how many, >= 1.
        vcpus: of the machine; None where unknown.
    """
    environment = threads(jobs, vcpus)
    if mode == "mps":
        share = min(100, round(100 * _MPS_OVERCOMMIT / jobs))
        environment[_MPS_SHARE] = str(share)
    return MachineSettings(environment=_sorted(environment), launcher=_launcher(1))


def threads(processes: int, vcpus: float | None) -> dict[str, str]:
    """Return the variable for threads of each process: half of its cores, the rest for loaders."""
    if vcpus is None:
        return {}
    return {_THREADS: str(max(1, int(vcpus) // max(1, processes) // 2))}


def variables(codes: Iterable[str], values: Mapping[str, Settings]) -> dict[str, str]:
    """Return the variables of actions; those whose setting could not be worked out are left out."""
    merged: dict[str, str] = {}
    for code in codes:
        for name, text in ACTIONS[code].environment.items() if code in ACTIONS else ():
            try:
                merged[name] = text.format_map(values.get(code, {}))
            except KeyError:
                continue
    return merged
