"""What was not measured and would decide the case."""

from planner.diagnosis.rules.rule import Case, Rule
from planner.diagnosis.rules.waste import WAITING
from planner.signals.condition import is_, unless_known, where
from planner.signals.job_kinds import LEARNS
from planner.signals.thresholds import (
    BUSY,
    BUSY_NOW,
    CPU,
    DATA_WAIT,
    IDLE,
    IDLE_POWER,
    LOW,
    POWER,
    SM,
    STARVED,
    VIDEO,
    WORKING_POWER,
)

RULES: tuple[Rule, ...] = (
    Rule(
        code="unmeasured",
        meaning="Something that would decide the case was not measured.",
        source="NVML and DCGM field definitions",
        cases=(
            Case(
                confidence="possible",
                cause="GPU use was not measured: record utilization.gpu or DCGM_FI_PROF_SM_ACTIVE.",
                tests=(is_(BUSY, "unknown"),),
            ),
            Case(
                confidence="possible",
                cause="The GPU waits and nothing says for what: record CPU use beside it "
                "(W&B does), or write host.cpu_util and hardware.cpu_cores into the profile.",
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
                    cause="Utilisation reads 0 % while the board draws the power of work: the "
                    "reading is missing, not 0 (MIG, a collector without rights). Record "
                    "DCGM_FI_PROF_SM_ACTIVE.",
                    tests=(is_("util.kernel_time.most", "<", IDLE), drawing),
                )
                for drawing in (
                    is_(POWER, ">=", IDLE_POWER),
                    is_("power.over_idle", ">=", WORKING_POWER),
                )
            ),
            Case(
                confidence="possible",
                cause="Utilisation is exactly 100 % in every sample and nothing else was read: "
                "collectors write that where the driver reports none (MIG). Record power or "
                "DCGM_FI_PROF_SM_ACTIVE.",
                tests=(
                    is_("util.kernel_time.constant", ">=", 1.0),
                    is_(BUSY, ">=", BUSY_NOW),
                    is_(SM, "unknown"),
                    is_(POWER, "unknown"),
                ),
            ),
            Case(
                confidence="possible",
                cause="Kernels run all the time at little power: they may only wait. SM activity "
                "(DCGM_FI_PROF_SM_ACTIVE) would tell work from waiting.",
                tests=(
                    is_(BUSY, ">=", BUSY_NOW),
                    is_(SM, "unknown"),
                    is_(POWER, "<", IDLE_POWER),
                ),
            ),
            Case(
                confidence="possible",
                cause="SM activity was not measured: DCGM_FI_PROF_SM_ACTIVE would tell useful work "
                "from kernels that wait, and narrow predictions for other GPUs.",
                tests=(is_(SM, "unknown"),),
            ),
        ),
    ),
)
