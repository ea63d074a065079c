"""The limits and the shares of the bill that the rule tables name.

Limits are round figures from practice, each with its reason; they are not fitted to any file.
"""

from planner.rule import Signals, Waste, unless_known

STARVED = 0.7  # below this a GPU waits for a third of the time or more
LOW = 0.5  # what guides to GPU use call low
IDLE = 0.05  # a display or a monitoring agent alone reads up to a few percent
CPU_FULL = 0.8  # schedulers keep a few cores' worth of slack on a saturated host
STEP_SHARE = 0.2  # a fifth of every step is worth an afternoon of work
FAST_READS_MIB_S = 100.0  # near the 125 MiB/s that a default AWS gp3 volume sustains
IDLE_POWER = 0.4  # of the limit; boards idle at 10-40 % of it (idle_w in pricing/data/gpus.csv)

NODE_NETWORK_GBPS = 100.0  # what guides to data-parallel training ask for between nodes

WORKS = ("training", "data_preparation", "inference_offline", "unknown")
LEARNS = ("training", "data_preparation", "unknown")
SERVES = ("inference_online", "inference_offline")

BUSY = "util.kernel_time.mean"
CPU = "host.cpu_util.mean"
DATA_WAIT = "step.data_wait_fraction"


def _number(signals: Signals, name: str) -> float | None:
    value = signals[name]
    return value if isinstance(value, float | int) else None


def _unbusy(signals: Signals) -> float | None:
    busy = _number(signals, BUSY)
    return None if busy is None else 1.0 - busy


def _unfilled(signals: Signals) -> float | None:
    busy, sm = _number(signals, BUSY), _number(signals, "util.sm_active.mean")
    return None if busy is None or sm is None else max(0.0, busy - sm)


def _uneven(signals: Signals) -> float | None:
    mean, most = _number(signals, BUSY), _number(signals, "util.kernel_time.most")
    return None if mean is None or not most else max(0.0, 1.0 - mean / most)


def step_share(name: str) -> Waste:
    """Return the waste of a timed part of every step."""
    return Waste(pool="idle", share=lambda s: _number(s, name), words=f"{name} of every step")


def of_busy(factor: float) -> Waste:
    """Return the waste of kernels that could run `factor` times faster."""

    def share(signals: Signals) -> float | None:
        busy = _number(signals, BUSY)
        return None if busy is None else busy * (1.0 - 1.0 / factor)

    return Waste(pool="busy", share=share, words=f"busy time x (1 - 1/{factor:g})")


WAITING = Waste(pool="idle", share=_unbusy, words="time in which the GPU ran no kernel")
UNFILLED = Waste(pool="busy", share=_unfilled, words="busy time less SM-active time")
UNEVEN = Waste(pool="idle", share=_uneven, words="1 - mean use / use of the busiest GPU")

NOT_AT_WORK = (
    unless_known("util.dram_active.mean", "<", 0.5),
    unless_known("util.tensor_active.mean", "<", 0.3),
    unless_known("power.fraction.mean", "<", 0.6),
)
NOT_STARVED = (unless_known(CPU, "<", CPU_FULL), unless_known(DATA_WAIT, "<", STEP_SHARE))
