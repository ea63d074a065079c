"""The GPU is held and little or nothing runs, or nobody measured it."""

from planner.diagnosis.rules.rule import (
    HOST_KEEPS_UP,
    NO_VIDEO,
    NOT_AT_WORK,
    SPINNING,
    WAITING,
    WORK_SHOWN,
    Case,
    Rule,
    Waste,
    number,
    step_share,
)
from planner.profile.kinds import JobKind
from planner.signals.condition import is_, unless_known, where, where_known
from planner.signals.thresholds import (
    ANSWERS,
    BUSY,
    BUSY_NOW,
    CPU,
    CPU_FULL,
    DATA_WAIT,
    FEW_ITEMS,
    IDLE,
    IDLE_POWER,
    LEARNS,
    LEFT_ON,
    LOW,
    MAY_END,
    NEAR_IDLE_POWER,
    PAUSE_S,
    POWER,
    SERVES,
    SM,
    SPINNING_POWER,
    STARVED,
    STEP_SHARE,
    TRAINS,
    VIDEO,
    WORKING_POWER,
    WORKS,
)
from pricing.message import Message

_NOTHING_RUNS = (
    is_("util.kernel_time.most", "<", IDLE),
    unless_known("util.kernel_time.p95", "<", 2 * IDLE),
    unless_known(POWER, "<", IDLE_POWER),
    unless_known("power.over_idle", "<", WORKING_POWER),
    NO_VIDEO,
)
# A collective that waits runs one kernel without a gap, on few SMs.
_SPINS = 0.99
_END = ("end-job", "idle-shutdown")
_NEEDED_AT_TIMES = is_("util.kernel_time.p95", ">=", BUSY_NOW)
_POWER_DRAWN = is_("power.over_idle", ">=", 1.5)
_UNDER_USED = (
    is_("mem.used_fraction.max", "<", 0.4),
    where_known("util.kernel_time.most", ">=", IDLE),
    *NOT_AT_WORK,
    *HOST_KEEPS_UP,
)

_AROUND = Waste(
    pool="outside",
    share=lambda signals: number(signals, "window.idle_around"),
    words="idle time before and after the job, of what was recorded",
)

RULES: tuple[Rule, ...] = (
    Rule(
        code="idle-held",
        meaning="A process holds the GPU's memory and does nothing with it.",
        source="practice: held GPUs that nobody uses are the most common waste",
        actions=("idle-shutdown", "share-gpu"),
        against=(_POWER_DRAWN, is_(CPU, ">=", CPU_FULL)),
        severity="high",
        cases=(
            Case(
                confidence="measured",
                cause=Message("cause.held-without-kernels-job"),
                tests=(
                    where("job.kind", "in", WORKS),
                    *_NOTHING_RUNS,
                    is_("mem.used_gib.max", ">", 1.0),
                ),
                waste=WAITING,
                actions=(*_END, "share-gpu"),
            ),
            Case(
                confidence="measured",
                cause=Message("cause.held-for-few-requests"),
                tests=(
                    where("job.kind", "in", ANSWERS),
                    *_NOTHING_RUNS,
                    is_("mem.used_gib.max", ">", 1.0),
                ),
                waste=WAITING,
            ),
            Case(
                confidence="measured",
                cause=Message("cause.held-without-kernels"),
                tests=(*_NOTHING_RUNS, is_("mem.used_gib.max", ">", 1.0)),
                waste=WAITING,
            ),
            Case(
                confidence="likely",
                cause=Message("cause.kernels-spin"),
                tests=(
                    is_("work.rate_per_s", "<=", 0.0),
                    is_(BUSY, ">=", BUSY_NOW),
                    unless_known(SM, "<", 0.1),
                    *NOT_AT_WORK,
                ),
                waste=SPINNING,
                actions=_END,
            ),
            Case(
                confidence="likely",
                cause=Message("cause.collective-spins"),
                tests=(
                    where("job.kind", "in", TRAINS),
                    where("hardware.gpu_count", ">", 1),
                    is_("util.kernel_time.least", ">=", _SPINS),
                    is_("util.kernel_time.p05", ">=", _SPINS),
                    is_(POWER, "<", SPINNING_POWER),
                    unless_known("work.rate_per_s", "<=", 0.0),
                    unless_known(SM, "<", 0.1),
                    *NOT_AT_WORK,
                ),
                waste=SPINNING,
                actions=_END,
            ),
        ),
    ),
    Rule(
        code="idle",
        meaning="Nothing runs on the GPU.",
        source="practice: held GPUs that nobody uses are the most common waste",
        actions=("idle-shutdown",),
        against=(_POWER_DRAWN,),
        severity="high",
        cases=(
            Case(
                confidence="likely",
                cause=Message("cause.runs-on-cpu"),
                tests=(
                    is_("util.kernel_time.most", "<", IDLE),
                    is_("mem.used_gib.max", "<=", 1.0),
                    is_(CPU, ">=", CPU_FULL),
                    NO_VIDEO,
                ),
                waste=WAITING,
                actions=("use-gpu",),
            ),
            Case(
                confidence="measured",
                cause=Message("cause.nothing-runs"),
                tests=(*_NOTHING_RUNS, is_("mem.used_gib.max", "<=", 1.0)),
                waste=WAITING,
            ),
            Case(
                confidence="likely",
                cause=Message("cause.nothing-runs-memory-unknown"),
                tests=(*_NOTHING_RUNS, is_("mem.used_gib.max", "unknown")),
                waste=WAITING,
            ),
            Case(
                confidence="likely",
                cause=Message("cause.board-idle"),
                tests=(
                    is_(BUSY, "unknown"),
                    is_("mem.used_gib.max", "<=", 1.0),
                    is_("power.over_idle", "<", NEAR_IDLE_POWER),
                ),
                severity="high",
            ),
        ),
    ),
    Rule(
        code=LEFT_ON,
        meaning="The machine stays on before or after the job, with nothing running.",
        source="the recording itself: half an hour or more at either end with every GPU idle",
        actions=("idle-shutdown",),
        cases=(
            Case(
                confidence="measured",
                cause=Message("cause.left-on"),
                tests=(
                    is_("window.idle_around", ">", 0.0),
                    where("job.kind", "in", (JobKind.INTERACTIVE,)),
                ),
                waste=_AROUND,
                severity="medium",  # a pause among others
                names="idle-hours",
            ),
            Case(
                confidence="measured",
                cause=Message("cause.left-on"),
                tests=(
                    is_("window.idle_around", ">", 0.0),
                    where("job.kind", "in", MAY_END),
                ),
                waste=_AROUND,
                names="idle-hours",
            ),
        ),
    ),
    Rule(
        code="bursty-interactive",
        meaning="Work comes in bursts, as that of people, and the GPU is held in between.",
        source="practice: interactive work is bursty and idle between",
        actions=("idle-shutdown", "smaller-gpu", "share-gpu"),
        against=(is_("util.kernel_time.p50", ">=", LOW), is_(POWER, ">=", LOW)),
        cases=(
            Case(
                confidence="measured",
                cause=Message("cause.bursts-of-steps"),
                tests=(
                    is_("stalls.exposed", ">=", STEP_SHARE),
                    is_("stalls.longest_s", ">=", PAUSE_S),
                    unless_known("stalls.for_others", ">=", 0.5),
                ),
                waste=step_share("stalls.exposed"),
                actions=("share-gpu", "idle-shutdown"),
                names="stall",
            ),
            Case(
                confidence="likely",
                cause=Message("cause.idle-session"),
                tests=(
                    where("job.kind", "in", (JobKind.INTERACTIVE,)),
                    is_(BUSY, "<", LOW),
                    NO_VIDEO,
                ),
                waste=WAITING,
            ),
            Case(
                confidence="measured",
                cause=Message("cause.idle-phases"),
                tests=(
                    where("job.kind", "in", ("unknown", JobKind.INTERACTIVE)),
                    is_("phases.idle", ">=", LOW),
                ),
                waste=WAITING,
                severity="high",
            ),
            Case(
                confidence="possible",
                cause=Message("cause.bursts-and-pauses"),
                tests=(
                    where("job.kind", "in", ("unknown",)),
                    is_("util.kernel_time.p50", "<", IDLE),
                    is_("util.kernel_time.p95", ">=", LOW),
                    is_(BUSY, "<", LOW),
                    NO_VIDEO,
                ),
                waste=WAITING,
            ),
        ),
    ),
    Rule(
        code="under-used-inference",
        meaning="An inference job holds a whole GPU and leaves most of it idle.",
        source="pooling practice: inference jobs leave up to 80 % of a GPU idle",
        actions=("share-gpu", "dynamic-batching", "smaller-gpu", "scale-down"),
        against=(_NEEDED_AT_TIMES, is_("latency.of_target", ">=", LOW), is_(POWER, ">=", LOW)),
        cases=(
            Case(
                confidence="likely",
                cause=Message("cause.few-requests"),
                tests=(
                    where("job.kind", "in", SERVES),
                    is_(BUSY, "<", LOW),
                    where("util.kernel_time.most", ">=", IDLE),
                    unless_known(CPU, "<", CPU_FULL),
                    unless_known("serving.requests_waiting", "<", 1.0),
                    NO_VIDEO,
                ),
                waste=WAITING,
            ),
        ),
    ),
    Rule(
        code="over-provisioned-gpu",
        meaning="A smaller GPU would do the same work: little memory and few SMs are used.",
        source="NVML: kernel time is not work, so it is never enough for this finding; NVIDIA's "
        "guide to the DCGM fields for SM activity",
        actions=("smaller-gpu", "share-gpu"),
        against=(_NEEDED_AT_TIMES, is_("latency.of_target", ">=", LOW), *WORK_SHOWN),
        severity="medium",
        cases=(
            Case(
                confidence="likely",
                cause=Message("cause.few-sms-larger-batch"),
                tests=(where("job.kind", "in", TRAINS), is_(SM, "<", 0.4), *_UNDER_USED),
                severity="low",
            ),
            Case(
                confidence="likely",
                cause=Message("cause.few-sms"),
                tests=(is_(SM, "<", 0.4), *_UNDER_USED),
            ),
            Case(
                confidence="possible",
                cause=Message("cause.little-power-little-memory"),
                tests=(
                    is_(SM, "unknown"),
                    is_(POWER, "<", IDLE_POWER),
                    where("util.kernel_time.most", ">=", IDLE),
                    unless_known("job.batch_per_gpu", ">", FEW_ITEMS),
                    *_UNDER_USED,
                ),
            ),
        ),
    ),
    Rule(
        code="latency-risk",
        meaning="The latency target is missed, nearly missed, or cannot be checked.",
        source="practice: sharing needs a measured latency",
        actions=(
            "speculative-decoding",
            "quantization",
            "dynamic-batching",
            "more-gpus",
            "newer-gpu",
        ),
        against=(is_(BUSY, "<", LOW),),
        cases=(
            Case(
                confidence="measured",
                cause=Message("cause.latency-at-target"),
                tests=(is_("latency.of_target", ">=", 1.0),),
                severity="high",
            ),
            Case(
                confidence="measured",
                cause=Message("cause.latency-near-target"),
                tests=(is_("latency.of_target", ">=", 0.9),),
                severity="high",
            ),
            Case(
                confidence="possible",
                cause=Message("cause.latency-unmeasured"),
                tests=(
                    is_("job.latency_slo_ms", ">", 0.0),
                    is_("latency.of_target", "unknown"),
                ),
            ),
        ),
    ),
)


UNMEASURED: tuple[Rule, ...] = (
    Rule(
        code="unmeasured",
        meaning="Something that would decide the case was not measured.",
        source="NVML and DCGM field definitions",
        cases=(
            Case(
                confidence="possible",
                cause=Message("cause.gpu-use-unmeasured"),
                tests=(is_(BUSY, "unknown"),),
            ),
            Case(
                confidence="possible",
                cause=Message("cause.waits-without-reason"),
                tests=(
                    is_(BUSY, "<", STARVED),
                    where("util.kernel_time.most", ">=", IDLE),
                    is_(CPU, "unknown"),
                    is_(DATA_WAIT, "unknown"),
                    where("job.kind", "in", LEARNS),
                    unless_known(VIDEO, "<", LOW),
                ),
                waste=WAITING,
            ),
            *(
                Case(
                    confidence="possible",
                    cause=Message("cause.reading-missing"),
                    tests=(is_("util.kernel_time.most", "<", IDLE), drawing),
                )
                for drawing in (
                    is_(POWER, ">=", IDLE_POWER),
                    is_("power.over_idle", ">=", WORKING_POWER),
                )
            ),
            Case(
                confidence="possible",
                cause=Message("cause.reading-always-100"),
                tests=(
                    is_("util.kernel_time.constant", ">=", 1.0),
                    is_(BUSY, ">=", BUSY_NOW),
                    is_(SM, "unknown"),
                    is_(POWER, "unknown"),
                ),
            ),
            Case(
                confidence="possible",
                cause=Message("cause.kernels-little-power"),
                tests=(
                    is_(BUSY, ">=", BUSY_NOW),
                    is_(SM, "unknown"),
                    is_(POWER, "<", IDLE_POWER),
                ),
            ),
            Case(
                confidence="possible",
                cause=Message("cause.sm-activity-unmeasured"),
                tests=(is_(SM, "unknown"),),
            ),
        ),
    ),
)
