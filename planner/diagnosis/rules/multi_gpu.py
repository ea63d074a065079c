"""Several GPUs: uneven work, communication, links."""

from planner.diagnosis.rules.rule import Case, Rule
from planner.diagnosis.rules.waste import BEHIND, COMMUNICATING, UNEVEN, UNFILLED
from planner.signals.condition import is_, unless_known, where
from planner.signals.job_kinds import TOGETHER, TRAINS
from planner.signals.thresholds import (
    BUSY,
    BUSY_NOW,
    COMMUNICATION,
    DATA_WAIT,
    FILLED,
    LINK_FULL,
    NODE_NETWORK_GBPS,
    SM,
    STEP_SHARE,
)

_GUIDES = "practice: NVLink, or 100 Gbit/s between nodes, for data-parallel training"
_UNFILLED = (is_(BUSY, ">=", BUSY_NOW), is_(SM, "<", FILLED))
_NOT_TIMED_SHORT = unless_known(COMMUNICATION, ">=", STEP_SHARE)
_NETWORK = (
    where("job.kind", "in", TRAINS),
    is_("hardware.nodes", ">", 1),
    is_("hardware.network_gbps", "<", NODE_NETWORK_GBPS),
)
_NO_NVLINK = (
    is_("hardware.gpu_count", ">", 1),
    is_("hardware.interconnect", "in", ("pcie",)),
    is_("job.parallelism", "in", TOGETHER),
)

RULES: tuple[Rule, ...] = (
    Rule(
        code="imbalanced-gpus",
        meaning="Some GPUs of the job work, others wait or are not used.",
        source="practice: one GPU of several idle is paid for and wasted",
        actions=("fewer-gpus", "data-parallel"),
        against=(is_(DATA_WAIT, ">=", STEP_SHARE),),
        cases=(
            Case(
                confidence="measured",
                cause="One rank is slower than the others, which wait for it in every step.",
                tests=(is_("ranks.behind", ">=", STEP_SHARE),),
                waste=BEHIND,
                actions=(),
                names="rank",
            ),
            Case(
                confidence="measured",
                cause="The GPUs do unequal work.",
                tests=(is_("util.kernel_time.spread", ">=", 0.4),),
                waste=UNEVEN,
            ),
        ),
    ),
    Rule(
        code="communication-bound",
        meaning="GPUs wait for each other.",
        source=f"{_GUIDES}; collectives are kernels, so a GPU that waits in one reads as busy",
        actions=("nccl-tuning", "gradient-accumulation", "larger-batch", "fewer-gpus"),
        against=(is_(SM, ">=", 0.8), is_("host.net_fraction", "<", 0.2)),
        cases=(
            Case(
                confidence="measured",
                cause="Exposed communication takes a large part of every step.",
                tests=(is_(COMMUNICATION, ">=", STEP_SHARE),),
                waste=COMMUNICATING,
            ),
            Case(
                confidence="likely",
                cause="The network between the machines is nearly full and the SMs are not.",
                tests=(
                    is_("hardware.nodes", ">", 1),
                    is_("host.net_fraction", ">=", LINK_FULL),
                    *_UNFILLED,
                    _NOT_TIMED_SHORT,
                ),
                waste=UNFILLED,
            ),
            Case(
                confidence="likely",
                cause="The PCIe links between the GPUs are nearly full and the SMs are not.",
                tests=(
                    *_NO_NVLINK,
                    is_("io.pcie_rx_fraction", ">=", LINK_FULL),
                    *_UNFILLED,
                    _NOT_TIMED_SHORT,
                ),
                waste=UNFILLED,
            ),
        ),
    ),
    Rule(
        code="slow-interconnect",
        meaning="The GPUs exchange gradients over PCIe or a network under 100 Gbit/s.",
        source=_GUIDES,
        actions=("nccl-tuning", "gradient-accumulation", "numa-binding"),
        against=(is_(SM, ">=", FILLED), is_(COMMUNICATION, "<", STEP_SHARE)),
        cases=(
            Case(
                confidence="likely",
                cause="Machines train together over a slow network, and their SMs are not filled.",
                tests=(*_NETWORK, *_UNFILLED, _NOT_TIMED_SHORT),
                severity="medium",
            ),
            Case(
                confidence="likely",
                cause="Several GPUs train together without NVLink, and their SMs are not filled.",
                tests=(*_NO_NVLINK, *_UNFILLED, _NOT_TIMED_SHORT),
                severity="medium",
            ),
            Case(
                confidence="possible",
                cause="Machines train together over a slow network.",
                tests=_NETWORK,
            ),
            Case(
                confidence="possible",
                cause="Several GPUs train together without NVLink.",
                tests=_NO_NVLINK,
            ),
        ),
    ),
)
