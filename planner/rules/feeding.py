"""The GPU waits for data: loading, copying, code on the host."""

from planner.rule import Case, Rule, is_, unless_known, where
from planner.rules.limits import (
    BUSY,
    CPU,
    CPU_FULL,
    DATA_WAIT,
    FAST_READS_MIB_S,
    IDLE,
    LEARNS,
    LOW,
    STARVED,
    STEP_SHARE,
    WAITING,
    WORKS,
    step_share,
)

_STARVING = "The input pipeline starves the GPU"
_LOADER_ACTIONS = (
    "gpu-preprocessing",
    "dataloader-workers",
    "dataloader-prefetch",
    "offline-preprocessing",
    "local-cache",
    "pinned-memory",
    "persistent-workers",
)

RULES: tuple[Rule, ...] = (
    Rule(
        code="data-loading",
        meaning="The GPU waits for input: decoding and augmentation, the disk or the network.",
        source="Mohan et al., VLDB 2021 (data stalls); practice: GPU low, CPU high is the input",
        actions=_LOADER_ACTIONS,
        cases=(
            Case(
                confidence="measured",
                cause=f"{_STARVING}: every step waits for its data.",
                tests=(is_(DATA_WAIT, ">=", STEP_SHARE),),
                waste=step_share(DATA_WAIT),
            ),
            Case(
                confidence="likely",
                cause=f"{_STARVING}: the CPU cores are full while the GPU waits.",
                tests=(
                    is_(BUSY, "<", STARVED),
                    is_(CPU, ">=", CPU_FULL),
                    where("job.kind", "in", WORKS),
                    unless_known(DATA_WAIT, ">=", STEP_SHARE),
                ),
                waste=WAITING,
            ),
            Case(
                confidence="likely",
                cause=f"{_STARVING}: it reads from disk as fast as a default volume gives.",
                tests=(
                    is_(BUSY, "<", LOW),
                    is_("host.disk_read_mib_s.mean", ">=", FAST_READS_MIB_S),
                    where("job.kind", "in", WORKS),
                    unless_known(DATA_WAIT, ">=", STEP_SHARE),
                ),
                waste=WAITING,
            ),
            Case(
                confidence="possible",
                cause=f"{_STARVING}: data streams in over the network while the GPU waits.",
                tests=(
                    is_(BUSY, "<", LOW),
                    is_("host.net_rx_mib_s.mean", ">=", FAST_READS_MIB_S),
                    where("job.kind", "in", WORKS),
                    unless_known(DATA_WAIT, ">=", STEP_SHARE),
                ),
                waste=WAITING,
            ),
        ),
    ),
    Rule(
        code="host-to-device",
        meaning="Copies from host memory to the GPU hold up the steps.",
        source="practice: pinned memory and asynchronous copies hide transfers",
        actions=("pinned-memory", "async-copy", "gpu-preprocessing"),
        cases=(
            Case(
                confidence="measured",
                cause="Copies to the GPU take a large part of every step.",
                tests=(is_("step.h2d_fraction", ">=", STEP_SHARE),),
                waste=step_share("step.h2d_fraction"),
            ),
        ),
    ),
    Rule(
        code="host-bound",
        meaning="GPU and CPU are both low: launch-bound kernels, waiting, or serial Python.",
        source="practice: GPU and CPU both low is launch-bound or serial code",
        actions=("compile", "cuda-graphs", "async-copy", "larger-batch", "fused-optimizer"),
        cases=(
            Case(
                confidence="likely",
                cause="The code does not keep the GPU busy: about one CPU core is at work.",
                tests=(
                    where("job.kind", "in", LEARNS),
                    is_(BUSY, "<", LOW),
                    unless_known("util.kernel_time.p50", ">=", IDLE),
                    is_("host.cpu_cores_used", "<", 1.5),
                    is_(CPU, "<", CPU_FULL),
                    unless_known("host.disk_read_mib_s.mean", "<", FAST_READS_MIB_S),
                    unless_known("host.net_rx_mib_s.mean", "<", FAST_READS_MIB_S),
                    unless_known(DATA_WAIT, "<", STEP_SHARE),
                ),
                waste=WAITING,
            ),
            Case(
                confidence="likely",
                cause="Neither GPU nor CPU is busy: kernels are launched singly, or code waits.",
                tests=(
                    where("job.kind", "in", LEARNS),
                    is_(BUSY, "<", LOW),
                    unless_known("util.kernel_time.p50", ">=", IDLE),
                    is_(CPU, "<", LOW),
                    unless_known("host.disk_read_mib_s.mean", "<", FAST_READS_MIB_S),
                    unless_known("host.net_rx_mib_s.mean", "<", FAST_READS_MIB_S),
                    unless_known(DATA_WAIT, "<", STEP_SHARE),
                ),
                waste=WAITING,
            ),
            Case(
                confidence="possible",
                cause="The GPU waits and the CPU is half busy: the host side limits the job.",
                tests=(
                    where("job.kind", "in", LEARNS),
                    is_(BUSY, "<", LOW),
                    unless_known("util.kernel_time.p50", ">=", IDLE),
                    is_(CPU, ">=", LOW),
                    where(CPU, "<", CPU_FULL),
                    unless_known("host.disk_read_mib_s.mean", "<", FAST_READS_MIB_S),
                    unless_known(DATA_WAIT, "<", STEP_SHARE),
                ),
                waste=WAITING,
            ),
            Case(
                confidence="likely",
                cause="The CPU is full while the GPU waits: requests are prepared on the host.",
                tests=(
                    where("job.kind", "in", ("inference_online",)),
                    is_(BUSY, "<", LOW),
                    is_(CPU, ">=", CPU_FULL),
                ),
                waste=WAITING,
            ),
        ),
    ),
)
