"""Several GPUs: uneven work, communication, links."""

from planner.rule import Case, Rule, is_, where
from planner.rules.limits import NODE_NETWORK_GBPS, STEP_SHARE, UNEVEN, step_share

RULES: tuple[Rule, ...] = (
    Rule(
        code="imbalanced-gpus",
        meaning="Some GPUs of the job work, others wait or are not used.",
        source="practice: one GPU of several idle is paid for and wasted",
        actions=("fewer-gpus", "data-parallel"),
        cases=(
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
        source="practice: NVLink, or 100 Gbit/s between nodes, for data-parallel training",
        actions=("nccl-tuning", "gradient-accumulation", "larger-batch", "fewer-gpus"),
        cases=(
            Case(
                confidence="measured",
                cause="Exposed communication takes a large part of every step.",
                tests=(is_("step.comm_fraction", ">=", STEP_SHARE),),
                waste=step_share("step.comm_fraction"),
            ),
        ),
    ),
    Rule(
        code="slow-interconnect",
        meaning="The GPUs exchange gradients over PCIe or a network under 100 Gbit/s.",
        source="practice: NVLink, or 100 Gbit/s between nodes, for data-parallel training",
        actions=("nccl-tuning", "gradient-accumulation", "numa-binding"),
        severity="low",
        cases=(
            Case(
                confidence="possible",
                cause="Machines train together over a slow network.",
                tests=(
                    where("job.kind", "in", ("training",)),
                    is_("hardware.nodes", ">", 1),
                    is_("hardware.network_gbps", "<", NODE_NETWORK_GBPS),
                ),
            ),
            Case(
                confidence="possible",
                cause="Several GPUs train together without NVLink.",
                tests=(
                    is_("hardware.gpu_count", ">", 1),
                    is_("hardware.interconnect", "in", ("pcie",)),
                    is_("job.parallelism", "in", ("ddp", "fsdp", "tensor", "pipeline")),
                ),
            ),
        ),
    ),
)
