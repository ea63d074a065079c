"""The limits and the shares of the bill that the rule tables name.

Limits are round figures from practice, each with its reason; they are not fitted to any file.
"""

from planner.diagnosis.rule import Waste
from planner.profile.frameworks import LEARNING, OTHER
from planner.signals.condition import Signals, Test, is_, unless_known

STARVED = 0.7  # below this a GPU waits for a third of the time or more
LOW = 0.5  # what guides to GPU use, and NVIDIA's to SM activity, call low
BUSY_NOW = 0.85  # kernels run nearly all the time; start-up and evaluation take the rest
IDLE = 0.05  # a display or a monitoring agent alone reads up to a few percent
CPU_FULL = 0.8  # schedulers keep a few cores' worth of slack on a saturated host
STEP_SHARE = 0.2  # a fifth of every step is worth an afternoon of work
# At the Young/Daly interval writing takes sqrt(C / 2M) of the time: 4 % for 2 minutes and a failure
# every 12 hours. A tenth is too often for any machine that lives for hours.
CHECKPOINT_SHARE = 0.1
PAUSE_S = 5.0  # allocators, collectors and sync points stay far below: the loop waits for somebody
FAST_READS_MIB_S = 100.0  # near the 125 MiB/s that a default AWS gp3 volume sustains
# Full-sized copies reach about 80 % of a PCIe or network link's rate; above 60 % it is the limit.
LINK_FULL = 0.6
IDLE_POWER = 0.4  # of the limit; boards idle at 10-40 % of it (idle_w in pricing/data/gpus.csv)
# Training runs draw 28-82 % of TDP, median 57 % (Zeus traces); kernels that wait draw 20-30 %.
WORK_POWER = 0.5
SPINNING_POWER = 0.28  # the least of those training runs
NEAR_IDLE_POWER = 1.2  # times idle power; boards of one model differ by less
# Times idle power: a server that waits with its model loaded drew 1.7 times (an H100, 114 W).
WORKING_POWER = 2.0
# SM activity: NVIDIA's guide to the DCGM fields calls under 0.5 likely ineffective and 0.8 needed
# for effective use of a kernel; means over steps with copies and collectives lie below.
FILLED = 0.6
DRAM_BOUND = 0.6  # three quarters of the 0.8 that the same guide calls the practical peak
FULL_MEMORY = 0.95  # what is left is a context or two
KV_CACHE_FULL = 0.9  # blocks are handed out whole, so a full cache reads a little less than 1
FEW_ITEMS = 8.0  # a batch that can be doubled three times before it is large by any practice

NODE_NETWORK_GBPS = 100.0  # what guides to data-parallel training ask for between nodes

WORKS = ("training", "data_preparation", "inference_offline", "unknown")
LEARNS = ("training", "data_preparation", "unknown")
SERVES = ("inference_online", "inference_offline")

BUSY = "util.kernel_time.mean"
SM = "util.sm_active.mean"
POWER = "power.fraction.mean"
VIDEO = "util.video.mean"
CPU = "host.cpu_util.mean"
DATA_WAIT = "step.data_wait_exposed"
COPIES = "step.h2d_exposed"
COMMUNICATION = "step.comm_fraction"


def _number(signals: Signals, name: str) -> float | None:
    value = signals[name]
    return value if isinstance(value, float | int) else None


def _unbusy(signals: Signals) -> float | None:
    busy = _number(signals, BUSY)
    return None if busy is None else 1.0 - busy


def _unfilled(signals: Signals) -> float | None:
    busy, sm = _number(signals, BUSY), _number(signals, SM)
    return None if busy is None or sm is None else max(0.0, busy - sm)


def _uneven(signals: Signals) -> float | None:
    mean, most = _number(signals, BUSY), _number(signals, "util.kernel_time.most")
    return None if mean is None or not most else max(0.0, 1.0 - mean / most)


def step_share(name: str) -> Waste:
    """Return the waste of a timed part of every step in which no kernel runs."""
    return Waste(pool="idle", share=lambda s: _number(s, name), words=f"{name} of every step")


def _behind(signals: Signals) -> float | None:
    """What the other GPUs wait: with the many ranks that there mostly are, nearly all of them."""
    behind, gpus = _number(signals, "ranks.behind"), _number(signals, "hardware.gpu_count")
    return None if behind is None or not gpus else behind * (gpus - 1.0) / gpus


def of_busy(factor: float) -> Waste:
    """Return the waste of kernels that could run `factor` times faster."""

    def share(signals: Signals) -> float | None:
        busy = _number(signals, BUSY)
        return None if busy is None else busy * (1.0 - 1.0 / factor)

    return Waste(pool="busy", share=share, words=f"busy time x (1 - 1/{factor:g})")


WAITING = Waste(pool="idle", share=_unbusy, words="time in which the GPU ran no kernel")
UNFILLED = Waste(pool="busy", share=_unfilled, words="busy time less SM-active time")
UNEVEN = Waste(pool="idle", share=_uneven, words="1 - mean use / use of the busiest GPU")
SPINNING = Waste(
    pool="busy", share=lambda s: _number(s, BUSY), words="time in which kernels ran and did nothing"
)
# Collectives are kernels: a GPU that waits in one reads as busy.
COMMUNICATING = Waste(
    pool="busy", share=lambda s: _number(s, COMMUNICATION), words=f"{COMMUNICATION} of every step"
)

# So does one that waits for another rank.
BEHIND = Waste(pool="busy", share=_behind, words="ranks.behind x (GPUs - 1) / GPUs")


def _of(*families: str) -> Test:
    return Test(signal="job.family", op="in", limit=families, or_unknown=True, quiet=True)


# Programs that train networks or run them, and those that read a set of data as they go.
NEURAL = _of(*LEARNING, "server")
FED = _of(*LEARNING, "server", "boosting", "video", OTHER)

NO_VIDEO = unless_known(VIDEO, "<", IDLE)
NOT_AT_WORK = (
    unless_known("util.dram_active.mean", "<", LOW),
    unless_known("util.tensor_active.mean", "<", 0.3),
    unless_known(POWER, "<", WORK_POWER),
    NO_VIDEO,
)
NOT_STARVED = (unless_known(DATA_WAIT, "<", STEP_SHARE), unless_known(COPIES, "<", STEP_SHARE))
HOST_KEEPS_UP = (unless_known(CPU, "<", CPU_FULL), *NOT_STARVED)
LINKS_QUIET = (
    unless_known("host.disk_read_mib_s.mean", "<", FAST_READS_MIB_S),
    unless_known("host.net_rx_mib_s.mean", "<", FAST_READS_MIB_S),
    unless_known("io.pcie_rx_fraction", "<", LINK_FULL),
)
# Readings of real work that speak against waste of the GPU itself.
WORK_SHOWN = (
    is_(SM, ">=", FILLED),
    is_("util.tensor_active.mean", ">=", 0.3),
    is_(POWER, ">=", WORK_POWER),
)
