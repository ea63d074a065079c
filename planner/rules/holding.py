"""The GPU is held and little or nothing runs: idle, interactive, thinly used."""

from planner.rule import Case, Rule, is_, unless_known, where, where_known
from planner.rules.limits import (
    BUSY,
    CPU,
    CPU_FULL,
    IDLE,
    IDLE_POWER,
    LOW,
    NOT_AT_WORK,
    NOT_STARVED,
    SERVES,
    WAITING,
)

RULES: tuple[Rule, ...] = (
    Rule(
        code="idle-held",
        meaning="A process holds the GPU's memory and does nothing with it.",
        source="practice: held GPUs that nobody uses are the most common waste",
        actions=("idle-shutdown", "share-gpu"),
        severity="high",
        cases=(
            Case(
                confidence="measured",
                cause="GPU memory is held, but no kernel runs.",
                tests=(
                    is_("util.kernel_time.most", "<", IDLE),
                    unless_known("util.kernel_time.p95", "<", 2 * IDLE),
                    is_("mem.used_gib.max", ">", 1.0),
                    unless_known("power.fraction.mean", "<", IDLE_POWER),
                ),
                waste=WAITING,
            ),
        ),
    ),
    Rule(
        code="idle",
        meaning="Nothing runs on the GPU.",
        source="practice: held GPUs that nobody uses are the most common waste",
        actions=("idle-shutdown",),
        severity="high",
        cases=(
            Case(
                confidence="measured",
                cause="No kernel ran and no memory is held.",
                tests=(
                    is_("util.kernel_time.most", "<", IDLE),
                    unless_known("util.kernel_time.p95", "<", 2 * IDLE),
                    is_("mem.used_gib.max", "<=", 1.0),
                    unless_known("power.fraction.mean", "<", IDLE_POWER),
                ),
                waste=WAITING,
            ),
            Case(
                confidence="likely",
                cause="No kernel ran in what was measured; whether memory is held is unknown.",
                tests=(
                    is_("util.kernel_time.most", "<", IDLE),
                    unless_known("util.kernel_time.p95", "<", 2 * IDLE),
                    is_("mem.used_gib.max", "unknown"),
                    unless_known("power.fraction.mean", "<", IDLE_POWER),
                ),
                waste=WAITING,
            ),
        ),
    ),
    Rule(
        code="bursty-interactive",
        meaning="People work in bursts and the GPU is held in between.",
        source="practice: interactive work is bursty and idle between",
        actions=("idle-shutdown", "smaller-gpu", "share-gpu"),
        cases=(
            Case(
                confidence="likely",
                cause="An interactive session holds the GPU while nobody computes.",
                tests=(
                    where("job.kind", "in", ("interactive",)),
                    is_(BUSY, "<", LOW),
                    where("util.kernel_time.most", ">=", IDLE),
                ),
                waste=WAITING,
            ),
            Case(
                confidence="possible",
                cause="Short bursts and long pauses: this looks like interactive work.",
                tests=(
                    where("job.kind", "in", ("unknown",)),
                    is_("util.kernel_time.p50", "<", IDLE),
                    is_("util.kernel_time.p95", ">=", LOW),
                    is_(BUSY, "<", LOW),
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
        cases=(
            Case(
                confidence="likely",
                cause="Requests keep the GPU busy for a small part of the time only.",
                tests=(
                    where("job.kind", "in", SERVES),
                    is_(BUSY, "<", LOW),
                    where("util.kernel_time.most", ">=", IDLE),
                    unless_known(CPU, "<", CPU_FULL),
                ),
                waste=WAITING,
            ),
        ),
    ),
    Rule(
        code="over-provisioned-gpu",
        meaning="A smaller GPU would do the same work: little memory and few SMs are used.",
        source="NVML: kernel time is not work, so it is never enough for this finding",
        actions=("smaller-gpu", "share-gpu"),
        severity="medium",
        cases=(
            Case(
                confidence="likely",
                cause="Few SMs and little memory are used.",
                tests=(
                    is_("util.sm_active.mean", "<", 0.4),
                    is_("mem.used_fraction.max", "<", 0.4),
                    where_known("util.kernel_time.most", ">=", IDLE),
                    *NOT_AT_WORK,
                    *NOT_STARVED,
                ),
            ),
            Case(
                confidence="possible",
                cause="The GPU draws little power and holds little memory.",
                tests=(
                    is_("util.sm_active.mean", "unknown"),
                    is_("power.fraction.mean", "<", IDLE_POWER),
                    is_("mem.used_fraction.max", "<", 0.4),
                    where("util.kernel_time.most", ">=", IDLE),
                    *NOT_AT_WORK,
                    *NOT_STARVED,
                ),
            ),
        ),
    ),
    Rule(
        code="latency-risk",
        meaning="The latency target is missed, nearly missed, or cannot be checked.",
        source="practice: sharing needs a measured latency",
        actions=("scale-down", "newer-gpu", "dynamic-batching"),
        cases=(
            Case(
                confidence="measured",
                cause="Measured latency is at the target or above it.",
                tests=(is_("latency.of_target", ">=", 0.9),),
                severity="high",
            ),
            Case(
                confidence="possible",
                cause="A latency target without a measured latency: nothing may share this GPU.",
                tests=(
                    is_("job.latency_slo_ms", ">", 0.0),
                    is_("latency.of_target", "unknown"),
                ),
            ),
        ),
    ),
)
