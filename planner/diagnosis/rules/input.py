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
from pricing.message import Message

_OFTEN_FULL = is_("util.kernel_time.p50", ">=", BUSY_NOW)
_NO_DATA_WAIT = unless_known(DATA_WAIT, "<", STEP_SHARE)
_NO_COPY_WAIT = unless_known(COPIES, "<", STEP_SHARE)
_SEEN_WAITING = unless_known(DATA_WAIT, ">=", STEP_SHARE)
_LOADER = ("dataloader-prefetch", "pinned-memory", "persistent-workers")
_FROM_AFAR = (
    "data-near-gpu",
    "local-cache",
    "dataloader-prefetch",
    "dataloader-workers",
    *_LOADER[1:],
)
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
        "data-near-gpu",
        "local-cache",
        "pinned-memory",
        "persistent-workers",
    ),
    against=(*WORK_SHOWN, _OFTEN_FULL),
    cases=(
        Case(
            confidence="measured",
            cause=Message("cause.every-step-waits"),
            tests=(is_(DATA_WAIT, ">=", STEP_SHARE),),
            waste=step_share(DATA_WAIT),
            names="input",
        ),
        Case(
            confidence="measured",
            cause=Message("cause.evaluation-waits"),
            tests=(is_("evaluation.data_wait_exposed", ">=", STEP_SHARE),),
            waste=step_share("evaluation.data_wait_exposed"),
            names="input",
        ),
        Case(
            confidence="measured",
            cause=Message("cause.loop-prepares-input"),
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
            cause=Message("cause.cores-full"),
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
            cause=Message("cause.disk-at-limit"),
            tests=(
                is_(BUSY, "<", LOW),
                is_("host.disk_read_mib_s.mean", ">=", FAST_READS_MIB_S),
                where("job.kind", "in", MAY_WORK),
                _SEEN_WAITING,
            ),
            waste=WAITING,
            actions=_FROM_AFAR,
        ),
        Case(
            confidence="possible",
            cause=Message("cause.network-input"),
            tests=(
                is_(BUSY, "<", LOW),
                is_("host.net_rx_mib_s.mean", ">=", FAST_READS_MIB_S),
                where("job.kind", "in", MAY_WORK),
                _SEEN_WAITING,
            ),
            waste=WAITING,
            actions=_FROM_AFAR,
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
            cause=Message("cause.copies-in-step"),
            tests=(is_(COPIES, ">=", STEP_SHARE),),
            waste=step_share(COPIES),
        ),
        Case(
            confidence="likely",
            cause=Message("cause.link-nearly-full"),
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
            cause=Message("cause.checkpoints-stop-gpu"),
            tests=(is_("step.checkpoint_exposed", ">=", CHECKPOINT_SHARE),),
            waste=step_share("step.checkpoint_exposed"),
            actions=("checkpoint-interval", "async-checkpoint"),
            names="save",
        ),
        Case(
            confidence="measured",
            cause=Message("cause.interpreter-lock"),
            tests=(is_("waits.lock.exposed", ">=", STEP_SHARE),),
            waste=step_share("waits.lock.exposed"),
            actions=("free-lock",),
        ),
        Case(
            confidence="measured",
            cause=Message("cause.stalls-of-seconds"),
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
            cause=Message("cause.stalls-of-host"),
            tests=(
                is_("stalls.exposed", ">=", STEP_SHARE),
                is_("stalls.for_others", "<", 0.5),
            ),
            waste=step_share("stalls.exposed"),
            actions=_BESIDE,
            names="stall",
        ),
        *(
            Case(
                confidence="measured",
                cause=Message(cause),
                tests=(is_(f"waits.{group}.exposed", ">=", STEP_SHARE),),
                waste=step_share(f"waits.{group}.exposed"),
                actions=actions,
                names=group,
            )
            for group, cause, actions in (
                ("logging", "cause.logging", ("log-less-often",)),
                ("network", "cause.network-in-loop", _FROM_AFAR[:3]),
                ("python", "cause.own-python", ("python-off-step", *_BESIDE)),
            )
        ),
        Case(
            confidence="measured",
            cause=Message("cause.foreign-host-code"),
            tests=(is_("waits.host.exposed", ">=", STEP_SHARE),),
            waste=step_share("waits.host.exposed"),
            actions=_BESIDE,
            names="host",
        ),
        Case(
            confidence="measured",
            cause=Message("cause.optimizer-launches"),
            tests=(is_("step.optimizer_exposed", ">=", STEP_SHARE),),
            waste=step_share("step.optimizer_exposed"),
            actions=("fused-optimizer", "compile", "cuda-graphs"),
        ),
        Case(
            confidence="measured",
            cause=Message("cause.untimed-host-code"),
            tests=(is_("step.untimed_exposed", ">=", STEP_SHARE), _NO_DATA_WAIT, _NO_COPY_WAIT),
            waste=step_share("step.untimed_exposed"),
        ),
        Case(
            confidence="likely",
            cause=Message("cause.launches-take-longer"),
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
            cause=Message("cause.server-holds-back"),
            tests=(
                where("job.family", "in", ("llm-server",)),
                is_(BUSY, "<", LOW),
                is_("serving.requests_waiting", ">=", 1.0),
            ),
            waste=WAITING,
            actions=("copies-not-shards", "cuda-graphs", "smaller-gpu"),
        ),
        Case(
            confidence="likely",
            cause=Message("cause.environments-hold"),
            tests=(
                *_NEITHER_BUSY,
                where("job.family", "in", ("reinforcement",)),
                is_(CPU, "<", CPU_FULL),
            ),
            waste=WAITING,
            actions=("environment-workers", *_BESIDE),
        ),
        Case(
            confidence="likely",
            cause=Message("cause.serial-code"),
            tests=(
                is_(BUSY, "<", LOW),
                is_("host.cpu_busiest_core.mean", ">=", CPU_FULL),
                is_(CPU, "<", LOW),
                where("job.kind", "in", ("unknown", "inference_offline")),
                where("job.family", "in", ("simulation", "rendering")),
            ),
            waste=WAITING,
            actions=_BESIDE,
        ),
        Case(
            confidence="likely",
            cause=Message("cause.serial-code"),
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
            cause=Message("cause.code-waits-for-nothing"),
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
            cause=Message("cause.one-core-at-work"),
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
            cause=Message("cause.launches-or-waiting"),
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
            cause=Message("cause.host-half-busy"),
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
            cause=Message("cause.requests-on-host"),
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
