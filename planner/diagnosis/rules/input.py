"""The GPU waits for the host: loading, copying, launching, writing."""

from planner.diagnosis.rules.rule import (
    FED,
    LINKS_QUIET,
    NO_VIDEO,
    WAITING,
    WORK_SHOWN,
    Case,
    Rule,
    step_share,
)
from planner.signals.condition import is_, unless_known, where
from planner.signals.thresholds import (
    ANSWERS,
    BUSY,
    BUSY_NOW,
    CHECKPOINT_SHARE,
    COMMUNICATION,
    COPIES,
    CPU,
    CPU_FULL,
    DATA_WAIT,
    FAST_READS_MIB_S,
    IDLE,
    LEARNS,
    LINK_FULL,
    LOW,
    MAY_WORK,
    PAUSE_S,
    STARVED,
    STEP_SHARE,
)

_STARVING = "The input pipeline starves the GPU"
_OFTEN_FULL = is_("util.kernel_time.p50", ">=", BUSY_NOW)
_NO_DATA_WAIT = unless_known(DATA_WAIT, "<", STEP_SHARE)
_NO_COPY_WAIT = unless_known(COPIES, "<", STEP_SHARE)
_SEEN_WAITING = unless_known(DATA_WAIT, ">=", STEP_SHARE)
_LOADER = ("dataloader-prefetch", "pinned-memory", "persistent-workers")
_LAUNCHES = (
    "environment-workers",
    "gpu-sampling",
    "device-data",
    "compile",
    "cuda-graphs",
    "async-copy",
    "larger-batch",
    "fused-optimizer",
)
# Code that is not a launch is not sped up by fewer launches: the GPU can be lent meanwhile.
_BESIDE = ("share-gpu", "smaller-gpu")
_NEITHER_BUSY = (
    where("job.kind", "in", LEARNS),
    is_(BUSY, "<", LOW),
    unless_known("util.kernel_time.p50", ">=", IDLE),
    NO_VIDEO,
)

_DATA = Rule(
    code="data-loading",
    meaning="The GPU waits for input: decoding and augmentation, the disk or the network.",
    source="Mohan et al., VLDB 2021 (data stalls); practice: GPU low, CPU high is the input",
    actions=(
        "gpu-preprocessing",
        "environment-workers",
        "gpu-sampling",
        "device-data",
        "dataloader-workers",
        "dataloader-prefetch",
        "offline-preprocessing",
        "local-cache",
        "pinned-memory",
        "persistent-workers",
    ),
    against=(*WORK_SHOWN, _OFTEN_FULL),
    cases=(
        Case(
            confidence="measured",
            cause=f"{_STARVING}: every step waits for its data.",
            tests=(is_(DATA_WAIT, ">=", STEP_SHARE),),
            waste=step_share(DATA_WAIT),
            names="input",
        ),
        Case(
            confidence="measured",
            cause="Evaluation waits for its data, and the GPU with it.",
            tests=(is_("evaluation.data_wait_exposed", ">=", STEP_SHARE),),
            waste=step_share("evaluation.data_wait_exposed"),
            names="input",
        ),
        Case(
            confidence="measured",
            cause=f"{_STARVING}: the loop prepares its input itself.",
            tests=(is_("waits.input.exposed", ">=", STEP_SHARE),),
            waste=step_share("waits.input.exposed"),
            actions=(
                "dataloader-workers",
                "dataloader-prefetch",
                "offline-preprocessing",
                "local-cache",
            ),
            names="input",
        ),
        Case(
            confidence="likely",
            cause=f"{_STARVING}: the CPU cores are full while the GPU waits.",
            tests=(
                is_(BUSY, "<", STARVED),
                is_(CPU, ">=", CPU_FULL),
                where("job.kind", "in", MAY_WORK),
                FED,
                _SEEN_WAITING,
            ),
            waste=WAITING,
        ),
        Case(
            confidence="likely",
            cause=f"{_STARVING}: it reads from disk as fast as a default volume gives.",
            tests=(
                is_(BUSY, "<", LOW),
                is_("host.disk_read_mib_s.mean", ">=", FAST_READS_MIB_S),
                where("job.kind", "in", MAY_WORK),
                _SEEN_WAITING,
            ),
            waste=WAITING,
            actions=("local-cache", "dataloader-prefetch", "dataloader-workers", *_LOADER[1:]),
        ),
        Case(
            confidence="possible",
            cause=f"{_STARVING}: data streams in over the network while the GPU waits.",
            tests=(
                is_(BUSY, "<", LOW),
                is_("host.net_rx_mib_s.mean", ">=", FAST_READS_MIB_S),
                where("job.kind", "in", MAY_WORK),
                _SEEN_WAITING,
            ),
            waste=WAITING,
            actions=("local-cache", "dataloader-prefetch", "dataloader-workers", *_LOADER[1:]),
        ),
    ),
)

_COPY = Rule(
    code="host-to-device",
    meaning="Copies from host memory to the GPU hold up the steps.",
    source="practice: pinned memory and asynchronous copies hide transfers; link rates of PCI-SIG",
    actions=("pinned-memory", "async-copy", "gpu-preprocessing"),
    against=(*WORK_SHOWN, is_("io.pcie_rx_fraction", "<", 0.1)),
    cases=(
        Case(
            confidence="measured",
            cause="Copies to the GPU take a large part of every step.",
            tests=(is_(COPIES, ">=", STEP_SHARE),),
            waste=step_share(COPIES),
        ),
        Case(
            confidence="likely",
            cause="The PCIe link into the GPU is nearly full while the GPU waits.",
            tests=(
                is_(BUSY, "<", STARVED),
                is_("io.pcie_rx_fraction", ">=", LINK_FULL),
                _NO_DATA_WAIT,
                unless_known(COPIES, ">=", STEP_SHARE),
            ),
            waste=WAITING,
        ),
    ),
)

_HOST = Rule(
    code="host-bound",
    meaning="Code on the host holds up the GPU: launches, serial Python, an unfused optimiser, "
    "checkpoints written in the loop.",
    source="practice: GPU and CPU both low is launch-bound or serial code; Young/Daly for the time "
    "that checkpoints may take",
    actions=_LAUNCHES,
    against=(*WORK_SHOWN, _OFTEN_FULL),
    cases=(
        Case(
            confidence="measured",
            cause="The GPU stands still while checkpoints are written.",
            tests=(is_("step.checkpoint_exposed", ">=", CHECKPOINT_SHARE),),
            waste=step_share("step.checkpoint_exposed"),
            actions=("checkpoint-interval",),
            names="save",
        ),
        Case(
            confidence="measured",
            cause="The steps stop for seconds at a time, and the GPU with them.",
            tests=(
                is_("stalls.exposed", ">=", STEP_SHARE),
                is_("stalls.longest_s", "<", PAUSE_S),
            ),
            waste=step_share("stalls.exposed"),
            actions=_BESIDE,
            names="stall",
        ),
        Case(
            confidence="measured",
            cause="The steps stop while the host works, and the GPU with them.",
            tests=(
                is_("stalls.exposed", ">=", STEP_SHARE),
                is_("stalls.for_others", "<", 0.5),
            ),
            waste=step_share("stalls.exposed"),
            actions=_BESIDE,
            names="stall",
        ),
        Case(
            confidence="measured",
            cause="The GPU waits for code of the host that is not part of the model.",
            tests=(is_("waits.host.exposed", ">=", STEP_SHARE),),
            waste=step_share("waits.host.exposed"),
            actions=_BESIDE,
            names="host",
        ),
        Case(
            confidence="measured",
            cause="The optimiser holds up every step: one launch per parameter.",
            tests=(is_("step.optimizer_exposed", ">=", STEP_SHARE),),
            waste=step_share("step.optimizer_exposed"),
            actions=("fused-optimizer", "compile", "cuda-graphs"),
        ),
        Case(
            confidence="measured",
            cause="Host code between the timed parts of a step holds up the GPU.",
            tests=(is_("step.untimed_exposed", ">=", STEP_SHARE), _NO_DATA_WAIT, _NO_COPY_WAIT),
            waste=step_share("step.untimed_exposed"),
        ),
        Case(
            confidence="likely",
            cause="The code that launches the GPU's work takes longer than the work.",
            tests=(
                *_NEITHER_BUSY,
                is_("waits.model.exposed", ">=", STEP_SHARE),
                _NO_DATA_WAIT,
                _NO_COPY_WAIT,
            ),
            waste=WAITING,
            names="model",
        ),
        Case(
            confidence="likely",
            cause="One CPU core is full while the others and the GPU rest: serial code.",
            tests=(
                *_NEITHER_BUSY,
                is_("host.cpu_busiest_core.mean", ">=", CPU_FULL),
                is_(CPU, "<", LOW),
                *LINKS_QUIET,
                _NO_DATA_WAIT,
                _NO_COPY_WAIT,
            ),
            waste=WAITING,
        ),
        Case(
            confidence="likely",
            cause="The code does not keep the GPU busy: its steps wait neither for data nor for "
            "checkpoints.",
            tests=(
                *_NEITHER_BUSY,
                is_(DATA_WAIT, "<", STEP_SHARE),
                unless_known("step.checkpoint_exposed", "<", CHECKPOINT_SHARE),
                unless_known(COMMUNICATION, "<", STEP_SHARE),
                _NO_COPY_WAIT,
                where("hardware.gpu_count", "<=", 1),
            ),
            waste=WAITING,
        ),
        Case(
            confidence="likely",
            cause="The code does not keep the GPU busy: about one CPU core is at work.",
            tests=(
                *_NEITHER_BUSY,
                is_("host.cpu_cores_used", "<", 1.5),
                is_(CPU, "<", CPU_FULL),
                *LINKS_QUIET,
                _NO_DATA_WAIT,
                _NO_COPY_WAIT,
            ),
            waste=WAITING,
        ),
        Case(
            confidence="likely",
            cause="Neither GPU nor CPU is busy: kernels are launched singly, or code waits.",
            tests=(
                *_NEITHER_BUSY,
                is_(CPU, "<", LOW),
                *LINKS_QUIET,
                _NO_DATA_WAIT,
                _NO_COPY_WAIT,
            ),
            waste=WAITING,
        ),
        Case(
            confidence="possible",
            cause="The GPU waits and the CPU is half busy: the host side limits the job.",
            tests=(
                *_NEITHER_BUSY,
                is_(CPU, ">=", LOW),
                where(CPU, "<", CPU_FULL),
                *LINKS_QUIET,
                _NO_DATA_WAIT,
                _NO_COPY_WAIT,
            ),
            waste=WAITING,
        ),
        Case(
            confidence="likely",
            cause="The CPU is full while the GPU waits: requests are prepared on the host.",
            tests=(
                where("job.kind", "in", ANSWERS),
                is_(BUSY, "<", LOW),
                is_(CPU, ">=", CPU_FULL),
            ),
            waste=WAITING,
            actions=("gpu-preprocessing", "dynamic-batching", "compile", "cuda-graphs"),
        ),
    ),
)

RULES: tuple[Rule, ...] = (_DATA, _COPY, _HOST)
