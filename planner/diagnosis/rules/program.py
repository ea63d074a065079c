"""What the program itself does with its time: it ended in an error, evaluates, starts, grows."""

from planner.diagnosis.rules.rule import Case, Rule, Waste, number
from planner.signals.condition import is_, unless_known
from planner.signals.thresholds import STEP_SHARE
from pricing.message import Message

_MOST_OF_THE_RUN = 0.5  # start-up that is longer than the work
_GROWS_GIB_PER_H = 0.5  # 12 GiB a day: less than that fills no machine in a run of days
_EVALUATES = Waste(
    pool="busy",
    share=lambda signals: number(signals, "evaluation.busy"),
    words="evaluation.share x the GPU's use meanwhile",
)

RULES: tuple[Rule, ...] = (
    Rule(
        code="crashed",
        meaning="The program ended in an error: what it did since its last checkpoint is lost.",
        source="the exception that ended the program, or its exit code",
        actions=(),
        severity="high",
        cases=(
            Case(
                confidence="measured",
                cause=Message("cause.ended-in-error"),
                tests=(is_("job.ended", "in", ("failed",)),),
            ),
        ),
    ),
    Rule(
        code="failing-gpu",
        meaning="A GPU or its link is failing: no setting and no cheaper machine type mends that.",
        source="uncorrected memory errors, failed row remapping, Xid errors of hardware, lanes of "
        "the PCIe link (NVIDIA: GPU memory error management; Xid catalog)",
        actions=("replace-host",),
        severity="high",
        cases=(
            Case(
                confidence="measured",
                cause=Message("cause.failing-gpu"),
                tests=(is_("health.problems", ">=", 1.0),),
                names="health",
            ),
        ),
    ),
    Rule(
        code="evaluation",
        meaning="Evaluation takes a large part of the time that is paid for.",
        source="phases of the recording: what is read without a step is evaluation",
        actions=("evaluate-less-often",),
        cases=(
            Case(
                confidence="measured",
                cause=Message("cause.much-evaluation"),
                tests=(
                    is_("evaluation.share", ">=", STEP_SHARE),
                    unless_known("evaluation.data_wait_exposed", "<", STEP_SHARE),
                ),
                waste=_EVALUATES,
                names="evaluation",
            ),
        ),
    ),
    Rule(
        code="generation",
        meaning="Training waits for the samples that the model generates for itself.",
        source="the line that was seen most: a model in training writes its own samples",
        actions=("faster-rollouts",),
        severity="high",
        cases=(
            Case(
                confidence="likely",
                cause=Message("cause.generation-in-step"),
                tests=(is_("generation.share", ">=", STEP_SHARE),),
                names="model",
            ),
        ),
    ),
    Rule(
        code="egress-cost",
        meaning="Data sent out of the provider are a large part of the bill.",
        source="the lines of today's bill",
        actions=("move-provider",),
        severity="high",
        cases=(
            Case(
                confidence="measured",
                cause=Message("cause.egress-largest"),
                tests=(is_("bill.egress", ">=", 0.5),),
            ),
            Case(
                confidence="measured",
                cause=Message("cause.egress-large"),
                tests=(is_("bill.egress", ">=", STEP_SHARE),),
                severity="medium",
            ),
        ),
    ),
    Rule(
        code="spare-copies",
        meaning="More copies of a service run than its requests need.",
        source="what one copy takes under the latency targets, by its measured run "
        "(`gpucost serve copies`)",
        actions=("scale-down",),
        severity="high",
        cases=(
            Case(
                confidence="likely",
                cause=Message("cause.spare-copies"),
                tests=(is_("serving.spare_copies", ">=", STEP_SHARE),),
                waste=Waste(
                    pool="outside",
                    share=lambda signals: number(signals, "serving.spare_copies"),
                    words="copies that no request needs, of all that run",
                ),
            ),
        ),
    ),
    Rule(
        code="start-up",
        meaning="Start-up, or steps that are slow at first, take a large part of the run.",
        source="phases of the recording; the change in the length of steps that divides them best",
        actions=("longer-runs",),
        cases=(
            Case(
                confidence="measured",
                cause=Message("cause.slow-first-steps"),
                tests=(is_("step.early_share", ">=", STEP_SHARE),),
                waste=Waste(
                    pool="outside",
                    share=lambda signals: number(signals, "step.early_share"),
                    words="what the first steps took longer, of the recording",
                ),
                actions=("keep-caches",),
            ),
            Case(
                confidence="possible",
                cause=Message("cause.long-start"),
                tests=(is_("start-up.share", ">=", _MOST_OF_THE_RUN),),
                severity="low",  # of this run: longer ones start no more often
                waste=Waste(
                    pool="outside",
                    share=lambda signals: number(signals, "start-up.share"),
                    words="start-up's share of the recording",
                ),
            ),
        ),
    ),
    Rule(
        code="memory-leak",
        meaning="The program's memory grows without end, until the machine has no more.",
        source="host memory over the run: it grows in each third, and no slower in the last",
        actions=("fix-leak",),
        severity="medium",
        cases=(
            Case(
                confidence="likely",
                cause=Message("cause.memory-grows"),
                tests=(is_("host.ram_growth_gib_per_h", ">=", _GROWS_GIB_PER_H),),
                severity="high",
            ),
        ),
    ),
)
