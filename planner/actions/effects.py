"""Effects that follow from the profile: the loader, batch and checkpoint laws, and capability.

Each function returns the range (low, mid, high) of the speed-up of the action's mechanism, or None
where the profile does not hold what it takes; then the range of the table counts.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from planner.actions.action import Action, Range
from planner.models.input_pipeline import (
    MOST_WORKERS,
    WAITS,
    OwnReading,
    loader_factor,
    loader_power,
)
from planner.models.interruption import CheckpointCosts, checkpoint_every_s
from planner.serving.search import RATE_SPREAD
from planner.signals import thresholds
from planner.signals.condition import Signals

# One core stays with the training process; PyTorch itself warns above the cores that there are.
_KEPT_CORES = 1
# Workers hold copies of what they load: on a host with little memory left, half as many.
_RAM_TIGHT = 0.8
_MOST_FROM_CORES = 2.9  # cores a GPU 3 -> 12 where preparation is the limit (Synergy tables)
_FULL_CPU: Range = (1.0, 1.05, 1.3)  # processes can still help where one interpreter lock limits
_NO_CORE_LEFT = 0.98
_MOST_FROM_CACHE = 5.0  # Mohan et al., VLDB 2021
_AMP_WITHOUT_TF32: Range = (1.0, 2.71, 4.75)  # Volta, Turing: the FP32 base has no tensor cores
_FIRST_TF32_CAPABILITY = 8.0
_TF32_ELASTICITY = 0.38
# Of PyTorch 2's report (A100 training) and of timm (AMP inference, 1,126 models on an RTX 4090).
_COMPILED_TRAINING: dict[bool, Range] = {True: (1.0, 1.21, 2.2), False: (1.0, 1.51, 2.2)}
_COMPILED_SERVING: Range = (1.16, 1.66, 2.41)
_CHANNELS_LAST_SERVING: Range = (0.93, 1.07, 1.30)
_FILL_MEMORY, _MOST_GROWTH = 0.9, 8.0
_WORST_OF_DOUBLING = 0.9  # 5 % of Zeus' pairs of batch sizes
# Of 140 pairs of 1 and 16 prompts on one GPU (Argonne; vLLM, TensorRT-LLM, DeepSpeed): x5.3, 11.6
# and 14.1 at 5, 50 and 95 %, as powers of the growth.
_MORE_PROMPTS: Range = (0.60, 0.88, 0.955)
_ACCUMULATED: Range = (1.0, 2.0, 4.0)  # micro-batches between two exchanges
# Of language models: one stream of tokens (llama.cpp, 4 bits); full servers (GPUStack's lab, five
# runs) with FP8 arithmetic and without. The high ends are those of small batches between the two.
_FEW_STREAMS = 4
_QUANTIZED_STREAMS: Range = (1.2, 2.0, 2.75)
_QUANTIZED: dict[bool, Range] = {True: (0.96, 1.1, 2.0), False: (0.85, 0.95, 1.5)}
_FIRST_FP8_CAPABILITY = 8.9
_COST_OF_A_CAP = 0.55  # Zeus: 3, 8, 14 % at 80, 60, 50 % of the limit
_CHECKPOINT_S = (300.0, 120.0, 30.0)  # dear, usual, cheap; our estimate


def number(signals: Signals, name: str) -> float | None:
    """Return a signal that is a number; None for words and what was not measured."""
    value = signals[name]
    return float(value) if isinstance(value, float | int) else None


def _up_to(maximum: float) -> Range:
    """Return a range from no gain to the most that is possible, about its root."""
    return (1.0, math.sqrt(maximum), maximum)


def loader_workers(signals: Signals) -> int | None:
    """Return how many loader workers each process affords; None where the cores are unknown."""
    cores = number(signals, "hardware.cpu_cores_per_gpu")
    if cores is None:
        return None
    workers = min(MOST_WORKERS, max(1, math.floor(cores) - _KEPT_CORES))
    reading = own_reading(signals)
    workers = workers if reading is None else reading.workers(workers)
    tight = (number(signals, "host.ram_fraction.max") or 0.0) >= _RAM_TIGHT
    return max(1, workers // 2) if tight else workers


def own_reading(signals: Signals) -> OwnReading | None:
    """Return how the program reads its input by itself; None where it does not, or is unknown."""
    waiting = number(signals, "step.data_wait_fraction")
    reading = number(signals, "host.reading_cores")
    used, free = (number(signals, f"host.{name}") for name in ("cpu_cores_used", "cores_left"))
    if not waiting or reading is None or not used or not free:
        return None
    gpus = number(signals, "hardware.gpu_count") or 1.0
    # A thread that reads and computes in turns wants this; where others are, it may get less.
    needed = reading * waiting + 1.0 - waiting if reading >= WAITS else 0.0
    slow = number(signals, "host.disk_read_mib_s.mean") is not None and _is_slow(signals)
    return OwnReading(
        waiting=min(1.0, waiting),
        reading_cores=reading,
        used_cores=max(used / gpus, min(needed, free / gpus)),
        cores=free / gpus,
        known_slow=slow,
    )


def _is_slow(signals: Signals) -> bool:
    """Return whether neither disk nor network is known to be read as fast as a usual disk gives."""
    rates = (number(signals, f"host.{name}_mib_s.mean") for name in ("disk_read", "net_rx"))
    return all((rate or 0.0) < thresholds.FAST_READS_MIB_S for rate in rates)


def workers_effect(signals: Signals) -> Range | None:
    """Return how much faster the input of a program that reads by itself comes with workers."""
    reading, workers = own_reading(signals), loader_workers(signals)
    return None if reading is None or workers is None else reading.faster(workers)


def _workers(signals: Signals) -> Range | None:
    cpu = number(signals, thresholds.CPU)
    if cpu is None or cpu <= 0.0:
        return None
    if cpu >= thresholds.CPU_FULL:  # full cores do no more than what is left of them
        low, mid, high = _FULL_CPU if cpu < _NO_CORE_LEFT else (1.0, 1.0, 1.3)
        return (low, min(mid, math.sqrt(1.0 / cpu)), min(high, max(low, 1.0 / cpu)))
    if (own := workers_effect(signals)) is not None:
        return own
    maximum = min(_MOST_FROM_CORES, (1.0 / cpu) ** loader_power())
    return (1.0, math.sqrt(maximum), min(_MOST_FROM_CORES, maximum * loader_factor()))


def _environments(signals: Signals) -> Range | None:
    cpu = number(signals, thresholds.CPU)
    return _up_to(min(_MOST_FROM_CORES, 1.0 / cpu)) if cpu and cpu < thresholds.CPU_FULL else None


def _prefetch(signals: Signals) -> Range | None:
    wait = number(signals, "step.data_wait_fraction")
    return None if wait is None else (1.0, 1.0, 1.0 / max(wait, 1.0 - wait))


def _cache(signals: Signals) -> Range | None:
    cpu = number(signals, thresholds.CPU)
    if (reading := number(signals, "host.reading_cores")) is not None:
        cpu = max(reading, cpu or 0.0)  # what works while it reads is not made shorter by a cache
    if _is_slow(signals) and (core := number(signals, "host.cpu_busiest_core.mean")) is not None:
        # One that decodes all the time.
        cpu = max(core if core >= thresholds.CPU_FULL else 0.0, cpu or 0.0)
    if cpu is None or cpu <= 0.0:
        return (1.0, 1.0, _MOST_FROM_CACHE)
    return _up_to(max(1.0, min(_MOST_FROM_CACHE, 1.0 / cpu)))


def _copying_share(signals: Signals) -> float | None:
    """Return the share of time that the GPU waits for copies; all of its waiting where untimed."""
    timed = number(signals, "step.h2d_exposed")
    if timed is not None:
        return timed
    busy, link = number(signals, thresholds.BUSY), number(signals, "io.pcie_rx_fraction")
    return None if busy is None or link is None else 1.0 - busy


def _pinned(signals: Signals) -> Range | None:
    share = _copying_share(signals)
    if share is None:
        return None
    low, mid, high = (1.0 / (1.0 - share * (1.0 - 1.0 / f)) for f in (1.0, 2.0, 2.5))
    return (low, mid, high)


def _asynchronous(signals: Signals) -> Range | None:
    share = _copying_share(signals)
    return None if share is None or share >= 1.0 else _up_to(1.0 / (1.0 - share))


def _half(signals: Signals) -> Range | None:
    capability = number(signals, "hardware.compute_capability")
    return _AMP_WITHOUT_TF32 if capability and capability < _FIRST_TF32_CAPABILITY else None


def _tf32(signals: Signals) -> Range | None:
    ratio = number(signals, "hardware.tf32_over_fp32")
    return _up_to(ratio**_TF32_ELASTICITY) if ratio and ratio >= 1.0 else None


def _batch_gain(fixed: float, growth: float) -> float:
    """Return the gain of a batch `growth` times as large: step = fixed + (1 - fixed) x growth."""
    return growth / (fixed + (1.0 - fixed) * growth)


def _empty(signals: Signals) -> float | None:
    busy, sm = number(signals, thresholds.BUSY), number(signals, "util.sm_active.mean")
    return None if not busy or sm is None else max(0.0, 1.0 - sm / busy)


def batch_growth(signals: Signals) -> float | None:
    """Return how many times as large a batch fits, at least: as if all memory held were items."""
    used_fraction = number(signals, "mem.used_fraction.max")
    return None if not used_fraction else min(_MOST_GROWTH, max(1.0, _FILL_MEMORY / used_fraction))


def _batch(signals: Signals) -> Range | None:
    growth, empty = batch_growth(signals), _empty(signals)
    batch, stream = number(signals, "job.batch_per_gpu"), number(signals, "job.stream")
    if growth == 1.0:  # memory is full
        return (1.0, 1.0, 1.0)
    if growth is not None and stream is not None and stream <= 1:
        low, mid, high = (growth**power for power in _MORE_PROMPTS)
        return (low, mid, high)
    if growth is None or empty is None:
        return None
    mid, high = (_batch_gain(fixed, growth) for fixed in (empty / 2.0, empty))
    if batch is not None and batch <= thresholds.FEW_ITEMS:
        mid, high = high, growth
    return (min(_WORST_OF_DOUBLING, mid), mid, high)


def _requests(signals: Signals) -> Range | None:
    empty = _empty(signals)
    if empty is None:
        return None
    return (1.0, _batch_gain(empty / 2.0, _MOST_GROWTH / 2.0), _batch_gain(empty, _MOST_GROWTH))


def _fuller(signals: Signals) -> Range | None:
    more = number(signals, "serving.fuller_batch")
    return None if more is None else (max(1.0, more / RATE_SPREAD), more, more * RATE_SPREAD)


def _faster_network(signals: Signals) -> Range | None:
    share = number(signals, "network.of_offered")
    return None if not share or share >= 1.0 else _up_to(1.0 / share)


def _side_by_side(signals: Signals) -> Range | None:
    copies = number(signals, "hardware.gpu_count")
    return None if copies is None or copies <= 1.0 else _up_to(copies)


def _uncapped(signals: Signals) -> Range | None:
    cap = number(signals, "power.cap_fraction")
    if not cap or cap >= 1.0:
        return None
    return (1.0, 1.0 / (1.0 - _COST_OF_A_CAP * (1.0 - cap) ** 2), 1.0 / cap)


def _cool(signals: Signals) -> Range | None:
    """Return what it brings that the slowest GPU, for which all wait, clocks as the fastest."""
    behind = number(signals, "clock.behind")
    together = signals["job.parallelism"]
    if not behind or together not in {*thresholds.TOGETHER, None}:
        return None
    maximum = 1.0 / (1.0 - behind)
    return (1.0, maximum, maximum) if together else _up_to(maximum)


def _compiled(signals: Signals) -> Range | None:
    if not _kernels_limit(signals):
        return None
    if signals["job.kind"] in thresholds.SERVES:
        return _COMPILED_SERVING
    return _COMPILED_TRAINING[signals["job.precision"] in ("fp32", "tf32", None)]


def _quantized(signals: Signals) -> Range | None:
    batch = number(signals, "job.batch_per_gpu")
    if batch is not None and batch <= _FEW_STREAMS:
        return _QUANTIZED_STREAMS
    capability = number(signals, "hardware.compute_capability")
    return None if capability is None else _QUANTIZED[capability >= _FIRST_FP8_CAPABILITY]


def _checkpoints(signals: Signals) -> Range | None:
    now = number(signals, "step.checkpoint_exposed")
    if not now:
        return None
    gpus = number(signals, "hardware.gpu_count") or 1.0
    best = (cost_s / (_interval_s(gpus, cost_s) + cost_s) for cost_s in _CHECKPOINT_S)
    low, mid, high = (max(1.0, now / share) for share in best)
    return (1.0, min(low, mid), high)


def _interval_s(gpus: float, write_s: float) -> float:
    return checkpoint_every_s(gpus, CheckpointCosts(write_s=write_s, restart_s=0.0))


EFFECTS: dict[str, Callable[[Signals], Range | None]] = {
    "dataloader-workers": _workers,
    "parallel-input": _workers,
    "environment-workers": _environments,
    "dataloader-prefetch": _prefetch,
    "local-cache": _cache,
    "data-near-gpu": _cache,
    "faster-disk": _cache,
    "fast-network": _faster_network,
    "copies-not-shards": _side_by_side,
    "raise-power-limit": _uncapped,
    "replace-host": _cool,
    "cool-gpu": _cool,
    "pinned-memory": _pinned,
    "async-copy": _asynchronous,
    "mixed-precision": _half,
    "tf32": _tf32,
    "larger-batch": _batch,
    "gradient-accumulation": lambda s: (
        _ACCUMULATED if s[thresholds.COMMUNICATION] is not None else None
    ),
    "compile": _compiled,
    "channels-last": lambda s: (
        _CHANNELS_LAST_SERVING if s["job.kind"] in thresholds.SERVES else None
    ),
    "dynamic-batching": _requests,
    "more-requests": _fuller,
    "quantization": _quantized,
    "checkpoint-interval": _checkpoints,
}


def _kernels_limit(signals: Signals) -> bool:
    busy = number(signals, thresholds.BUSY)
    return busy is not None and busy >= thresholds.STARVED


def fitted(action: Action, signals: Signals) -> Action:
    """Return the action with the effect and the share that these signals leave it.

    Where a reading stands against it, it has no effect.
    """
    if not action.applies(signals):
        return replace(action, effect=None)
    law = EFFECTS.get(action.code)
    effect = (law(signals) if law else None) or action.effect
    mechanism = action.mechanism
    if action.code == "compile" and _kernels_limit(signals):
        mechanism = "arithmetic"
    changed = replace(action, effect=effect, mechanism=mechanism)
    share = _share(changed, signals) if mechanism else changed.share
    return changed if share == changed.share else replace(changed, share=share)


def _share(action: Action, signals: Signals) -> float:
    """Return the share of its part of the time that an action can act on.

    Shares of the mechanisms of one part add up to at most 1.
    """
    if action.mechanism in ("loading", "copying"):
        copying = _of_waiting(signals)
        return copying if action.mechanism == "copying" else 1.0 - copying
    if action.mechanism in ("arithmetic", "exchange"):
        busy, exchange = (
            number(signals, thresholds.BUSY) or 1.0,
            number(signals, thresholds.COMMUNICATION) or 0.0,
        )
        exchanging = min(1.0, exchange / busy)
        return exchanging if action.mechanism == "exchange" else 1.0 - exchanging
    writes = (number(signals, "step.checkpoint_exposed") or 0.0) >= thresholds.CHECKPOINT_SHARE
    if action.mechanism == "checkpointing":
        return float(writes)
    if writes:
        return 0.0
    return _optimizer_share(signals) if action.code == "fused-optimizer" else 1.0


def _of_waiting(signals: Signals) -> float:
    """Return the share of input waiting that is copying: as timed, else all where PCIe is full."""
    data, copies = number(signals, thresholds.DATA_WAIT), number(signals, thresholds.COPIES)
    if data is None and copies is None:
        return float((number(signals, "io.pcie_rx_fraction") or 0.0) >= thresholds.LINK_FULL)
    total = (data or 0.0) + (copies or 0.0)
    return (copies or 0.0) / total if total else 0.0


def _optimizer_share(signals: Signals) -> float:
    waits, busy = number(signals, "step.optimizer_exposed"), number(signals, thresholds.BUSY)
    if waits is None or busy is None or busy >= 1.0:
        return 0.0
    return min(1.0, waits / (1.0 - busy))
