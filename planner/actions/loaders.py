"""Workers of a loader: how many a job affords, and how much faster its input comes with them."""

import math

from planner.actions.action import Range
from planner.models.input_pipeline import MOST_WORKERS, WAITS, OwnReading
from planner.signals.condition import Signals
from planner.signals.thresholds import FAST_READS_MIB_S

# One core stays with the training process; PyTorch itself warns above the cores that there are.
_KEPT_CORES = 1
# Workers hold copies of what they load: on a host with little memory left, half as many.
_RAM_TIGHT = 0.8


def loader_workers(signals: Signals) -> int | None:
    """Return how many loader workers each process affords; None where the cores are unknown."""
    cores = _number(signals, "hardware.cpu_cores_per_gpu")
    if cores is None:
        return None
    workers = min(MOST_WORKERS, max(1, math.floor(cores) - _KEPT_CORES))
    reading = own_reading(signals)
    workers = workers if reading is None else reading.workers(workers)
    tight = (_number(signals, "host.ram_fraction.max") or 0.0) >= _RAM_TIGHT
    return max(1, workers // 2) if tight else workers


def own_reading(signals: Signals) -> OwnReading | None:
    """Return how the program reads its input by itself; None where it does not, or is unknown."""
    waiting = _number(signals, "step.data_wait_fraction")
    reading = _number(signals, "host.reading_cores")
    used, left = (_number(signals, f"host.{name}") for name in ("cpu_cores_used", "cores_left"))
    if not waiting or reading is None or not used or not left:
        return None
    gpus = _number(signals, "hardware.gpu_count") or 1.0
    # A thread that reads and computes in turns wants this; where others are, it may get less.
    wanted = reading * waiting + 1.0 - waiting if reading >= WAITS else 0.0
    disk, net = (_number(signals, f"host.{name}_mib_s.mean") for name in ("disk_read", "net_rx"))
    slow = disk is not None and disk < FAST_READS_MIB_S and (net or 0.0) < FAST_READS_MIB_S
    return OwnReading(
        waiting=min(1.0, waiting),
        reading_cores=reading,
        used_cores=max(used / gpus, min(wanted, left / gpus)),
        cores=left / gpus,
        known_slow=slow,
    )


def workers_effect(signals: Signals) -> Range | None:
    """Return how much faster the input of a program that reads by itself comes with workers."""
    reading, workers = own_reading(signals), loader_workers(signals)
    return None if reading is None or workers is None else reading.faster(workers)


def _number(signals: Signals, name: str) -> float | None:
    value = signals[name]
    return float(value) if isinstance(value, float | int) else None
