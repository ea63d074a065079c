"""The values that an action sets, worked out from the profile where it says enough.

`num_workers` and the batch are what fits; `interval_s` is Young's and Daly's. A value that the
profile cannot give is left out, and the how-to names the setting.
"""

import math
from collections.abc import Callable

from planner.actions.effects import batch_growth, best_interval_s, mean_up_s
from planner.signals.condition import Signals
from planner.signals.signals import Value, capability
from pricing.hardware import Gpu

Settings = dict[str, float | str]

# One core stays with the training process; PyTorch itself warns above the cores that there are.
_KEPT_CORES = 1
_MOST_WORKERS = 16
# Workers hold copies of what they load: on a host with little memory left, half as many.
_RAM_TIGHT = 0.8
_PREFETCH = 4  # twice PyTorch's default of 2
_BF16_FROM = 8.0
_MULTIPLE = 8  # tensor cores want dimensions divisible by 8 in half precision (NVIDIA)
_ACCUMULATED = 4
_QUEUED = 8
_MONTH_S = 730 * 3600.0
_LEAST_RESTARTS = 3
_DELAY_OF_TARGET = 0.1  # a tenth of the latency target may go into waiting for the batch


def _number(signals: Signals, name: str) -> float | None:
    value = signals[name]
    return float(value) if isinstance(value, float | int) else None


def loader_workers(signals: Signals) -> int | None:
    """Return how many loader workers each process affords; None where the cores are unknown."""
    cores = _number(signals, "hardware.cpu_cores_per_gpu")
    if cores is None:
        return None
    workers = min(_MOST_WORKERS, max(1, math.floor(cores) - _KEPT_CORES))
    tight = (_number(signals, "host.ram_fraction.max") or 0.0) >= _RAM_TIGHT
    return max(1, workers // 2) if tight else workers


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


def _interval(signals: Signals) -> Settings:
    return {"interval_s": round(best_interval_s(signals))}


def restarts(signals: Signals) -> int:
    """Return how many restarts a month's run should survive: twice those expected, at least 3."""
    return max(_LEAST_RESTARTS, math.ceil(2.0 * _MONTH_S / mean_up_s(signals)))


def _processes(signals: Signals) -> Settings:
    gpus, nodes = _number(signals, "hardware.gpu_count"), _number(signals, "hardware.nodes")
    each = max(1, round((gpus or 1.0) / (nodes or 1.0)))
    return {"nproc_per_node": each, "max_restarts": restarts(signals)}


def _queue(signals: Signals) -> Settings:
    target_ms = _number(signals, "job.latency_slo_ms")
    delay = {} if target_ms is None else {"max_delay_ms": round(target_ms * _DELAY_OF_TARGET, 1)}
    return {"max_batch": _QUEUED, **delay}


_SETTINGS: dict[str, Callable[[Signals], Settings]] = {
    "dataloader-workers": _workers,
    "dataloader-prefetch": lambda _: {"prefetch_factor": _PREFETCH},
    "pinned-memory": lambda _: {"pin_memory": "true"},
    "persistent-workers": lambda _: {"persistent_workers": "true"},
    "mixed-precision": _half,
    "larger-batch": _batch,
    "gradient-accumulation": lambda _: {"steps": _ACCUMULATED},
    "checkpoint-interval": _interval,
    "data-parallel": _processes,
    "sharded-data-parallel": _processes,
    "dynamic-batching": _queue,
}


def on_machine(signals: Signals, gpu: Gpu, cores_per_gpu: float | None) -> Signals:
    """Return the signals as they would be on another machine: its cores, its GPU's capability.

    The memory that was held stays; its share of the other GPU's memory changes.
    """
    held = _number(signals, "mem.used_gib.max")
    moved: dict[str, Value] = {
        "hardware.cpu_cores_per_gpu": cores_per_gpu,
        "hardware.compute_capability": capability(gpu),
        "mem.used_fraction.max": held / gpu.memory_gib if held and gpu.memory_gib else None,
    }
    return {**signals, **moved}


def settings(code: str, signals: Signals) -> Settings:
    """Return what the action sets in this job; empty where nothing can be worked out."""
    made = _SETTINGS.get(code)
    return made(signals) if made else {}
