"""Conditions that several rules share."""

from planner.profile.frameworks import LEARNING, OTHER
from planner.signals.condition import Test, is_, unless_known
from planner.signals.thresholds import (
    COPIES,
    CPU,
    CPU_FULL,
    DATA_WAIT,
    FAST_READS_MIB_S,
    FILLED,
    IDLE,
    LINK_FULL,
    LOW,
    POWER,
    SM,
    STEP_SHARE,
    VIDEO,
    WORK_POWER,
)


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
