"""The values that an action sets on one machine, worked out where the profile says enough.

`num_workers` and the batch are what fits. A value that cannot be worked out is left out, and the
how-to names the setting. What is set on the machine as a whole is in `machine_settings`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from planner.actions.effects import batch_growth
from planner.actions.loaders import loader_workers
from planner.models.failures import Survival, survival
from planner.models.interruption import CHECKPOINTS, CheckpointCosts
from planner.profile.model import Profile
from planner.signals.condition import Signals
from planner.signals.signals import capability
from pricing.hardware import Gpu
from pricing.money import HOURS_PER_MONTH

Settings = dict[str, float | str]
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


def _number(signals: Signals, name: str) -> float | None:
    value = signals[name]
    return float(value) if isinstance(value, float | int) else None


def batch_that_fits(signals: Signals) -> int | None:
    """Return the batch that fills nine tenths of the memory, at least; None without a batch."""
    batch, growth = _number(signals, "job.batch_per_gpu"), batch_growth(signals)
    if batch is None or growth is None:
        return None
    fits = math.floor(batch * growth)
    rounded = fits - fits % _MULTIPLE if fits >= 2 * _MULTIPLE else fits
    return rounded if rounded > batch else None


def _workers(signals: Signals) -> Settings:
    workers = loader_workers(signals)
    return {} if workers is None else {"num_workers": workers, "prefetch_factor": _PREFETCH}


def _batch(signals: Signals) -> Settings:
    batch = batch_that_fits(signals)
    return {} if batch is None else {"batch_per_gpu": batch}


def _half(signals: Signals) -> Settings:
    capability = _number(signals, "hardware.compute_capability")
    if capability is None:
        return {}
    return {"dtype": "bf16"} if capability >= _BF16_FROM else {"dtype": "fp16"}


def _interval(run: PlannedRun) -> Settings:
    return {"interval_s": round(run.needs.checkpoint_every_s)}


def _processes(run: PlannedRun) -> Settings:
    return {"nproc_per_node": run.processes, "max_restarts": run.needs.max_restarts}


def _queue(signals: Signals) -> Settings:
    target_ms = _number(signals, "job.latency_slo_ms")
    delay = {} if target_ms is None else {"max_delay_ms": round(target_ms * _DELAY_OF_TARGET, 1)}
    return {"max_batch": _QUEUED, **delay}


_SETTINGS: dict[str, Callable[[Signals], Settings]] = {
    "dataloader-prefetch": lambda _: {"prefetch_factor": _PREFETCH},
    "pinned-memory": lambda _: {"pin_memory": "true"},
    "persistent-workers": lambda _: {"persistent_workers": "true"},
    "gradient-accumulation": lambda _: {"steps": _ACCUMULATED},
    "dynamic-batching": _queue,
}
_SETTINGS_OF_MACHINE: dict[str, Callable[[Signals], Settings]] = {
    "dataloader-workers": _workers,
    "mixed-precision": _half,
    "larger-batch": _batch,
}
_SETTINGS_OF_RUN: dict[str, Callable[[PlannedRun], Settings]] = {
    "checkpoint-interval": _interval,
    "data-parallel": _processes,
    "sharded-data-parallel": _processes,
}


OF_MACHINE = (
    "hardware.gpu_count",
    "hardware.nodes",
    "hardware.cpu_cores_per_gpu",
    "hardware.compute_capability",
    "mem.used_fraction.max",
)
"""Signals that `on_machine` changes."""


def on_machine(signals: Signals, gpu: Gpu, run: PlannedRun) -> Signals:
    """Return the signals as they would be on another machine: its GPUs, cores and capability.

    The memory that was held stays; its share of the other GPU's memory changes.
    """
    held = _number(signals, "mem.used_gib.max")
    moved = (
        float(run.gpus),
        float(run.nodes),
        run.cores,
        capability(gpu),
        held / gpu.memory_gib if held and gpu.memory_gib else None,
    )
    return {**signals, **dict(zip(OF_MACHINE, moved, strict=True))}


def hangs_on_machine(code: str) -> bool:
    """Return whether what the action sets hangs on signals that `on_machine` changes."""
    return code in _SETTINGS_OF_MACHINE


def settings_of_job(code: str, signals: Signals) -> Settings | None:
    """Return what the action sets, whatever the run; None where that hangs on the run.

    Args:
        code: of the action.
        signals: as they are where the job runs (`on_machine`).

    Returns:
        Empty where nothing can be worked out.
    """
    if code in _SETTINGS_OF_RUN:
        return None
    made = _SETTINGS_OF_MACHINE.get(code) or _SETTINGS.get(code)
    return made(signals) if made else {}


def settings_of_run(code: str, run: PlannedRun) -> Settings:
    """Return what an action sets of which `settings_of_job` is None."""
    return _SETTINGS_OF_RUN[code](run)
