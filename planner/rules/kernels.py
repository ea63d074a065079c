"""The GPU works: how well its kernels use it, and what holds them down."""

from planner.rule import Case, Rule, is_, unless_known, where, where_known
from planner.rules.limits import BUSY, IDLE, LOW, NOT_AT_WORK, NOT_STARVED, UNFILLED, WORKS, of_busy

RULES: tuple[Rule, ...] = (
    Rule(
        code="thermal-throttled",
        meaning="Heat holds the clocks down.",
        source="NVML throttle (event) reasons",
        actions=("move-provider",),
        severity="medium",
        cases=(
            Case(
                confidence="measured",
                cause="The GPU is hot and its clocks are held down.",
                tests=(
                    is_("throttle.fraction.mean", ">=", 0.1),
                    is_("temp.core_c.max", ">=", 80.0),
                ),
            ),
        ),
    ),
    Rule(
        code="power-throttled",
        meaning="The power limit holds the clocks down.",
        source="NVML throttle (event) reasons",
        actions=("newer-gpu",),
        severity="low",
        cases=(
            Case(
                confidence="measured",
                cause="The GPU runs into its power limit.",
                tests=(
                    is_("throttle.fraction.mean", ">=", 0.1),
                    is_("power.fraction.mean", ">=", 0.9),
                    unless_known("temp.core_c.max", "<", 80.0),
                ),
            ),
        ),
    ),
    Rule(
        code="small-batch",
        meaning="Memory is left over and the GPU is not filled: a larger batch would fit.",
        source="practice: raise the batch until memory or the SMs are full",
        actions=("larger-batch", "compile", "cuda-graphs"),
        cases=(
            Case(
                confidence="likely",
                cause="Kernels leave most SMs empty and half of the memory is free.",
                tests=(
                    where("job.kind", "in", WORKS),
                    is_("mem.used_fraction.max", "<", LOW),
                    is_(BUSY, ">=", LOW),
                    is_("util.sm_active.mean", "<", LOW),
                    *NOT_AT_WORK,
                ),
                waste=UNFILLED,
            ),
            Case(
                confidence="possible",
                cause="The GPU draws little power though busy, and half of the memory is free.",
                tests=(
                    where("job.kind", "in", WORKS),
                    is_("mem.used_fraction.max", "<", LOW),
                    is_(BUSY, ">=", LOW),
                    is_("util.sm_active.mean", "unknown"),
                    is_("power.fraction.mean", "<", LOW),
                ),
                severity="low",
            ),
        ),
    ),
    Rule(
        code="no-mixed-precision",
        meaning="Tensor cores are there and the job computes in single precision.",
        source="gains measured in Lambda's PyTorch benchmarks: median x1.77 where TF32 is on, "
        "x2.71 on Volta and Turing",
        actions=("mixed-precision", "tf32"),
        cases=(
            Case(
                confidence="likely",
                cause="Half precision is unused, and this GPU's FP32 path has no tensor cores.",
                tests=(
                    is_("job.precision", "in", ("fp32",)),
                    is_("hardware.compute_capability", ">=", 7.0),
                    where("hardware.compute_capability", "<", 8.0),
                    unless_known("util.tensor_active.mean", "<", 0.1),
                    where_known("util.kernel_time.most", ">=", IDLE),
                ),
                waste=of_busy(2.71),
            ),
            Case(
                confidence="likely",
                cause="Half precision is unused.",
                tests=(
                    is_("job.precision", "in", ("fp32", "tf32")),
                    is_("hardware.compute_capability", ">=", 8.0),
                    unless_known("util.tensor_active.mean", "<", 0.1),
                    where_known("util.kernel_time.most", ">=", IDLE),
                ),
                waste=of_busy(1.77),
            ),
        ),
    ),
    Rule(
        code="memory-bandwidth-bound",
        meaning="Device memory, not arithmetic, limits the kernels.",
        source="roofline: DRAM activity high while arithmetic pipes wait",
        actions=("compile", "quantization", "newer-gpu"),
        cases=(
            Case(
                confidence="measured",
                cause="Device memory is busy while the tensor pipe mostly waits.",
                tests=(
                    is_("util.dram_active.mean", ">=", 0.6),
                    unless_known("util.tensor_active.mean", "<", 0.3),
                ),
            ),
            Case(
                confidence="possible",
                cause="The memory controller is busy most of the time.",
                tests=(
                    is_("util.dram_active.mean", "unknown"),
                    is_("util.mem_controller.mean", ">=", 0.7),
                ),
            ),
        ),
    ),
    Rule(
        code="memory-pressure",
        meaning="GPU memory is nearly full: fragmentation or one larger batch ends the job.",
        source="practice: PyTorch's caching allocator; activation checkpointing",
        actions=("gradient-checkpointing", "allocator-tuning", "sharded-data-parallel"),
        severity="low",
        cases=(
            Case(
                confidence="possible",
                cause="Nearly all GPU memory is held, though a caching allocator may overstate it.",
                tests=(
                    where("job.kind", "in", ("training", "interactive", "unknown")),
                    is_("mem.used_fraction.max", ">=", 0.95),
                ),
            ),
        ),
    ),
    Rule(
        code="well-used",
        meaning="The GPU does useful work most of the time.",
        source="NVML and DCGM field definitions: busy time, SM activity, power",
        cases=(
            Case(
                confidence="measured",
                cause="The GPU is busy and its SMs are at work.",
                tests=(is_(BUSY, ">=", 0.8), is_("util.sm_active.mean", ">=", 0.6), *NOT_STARVED),
            ),
            Case(
                confidence="likely",
                cause="The GPU is busy and draws the power of real work.",
                tests=(
                    is_("util.sm_active.mean", "unknown"),
                    is_(BUSY, ">=", 0.85),
                    is_("power.fraction.mean", ">=", 0.6),
                    *NOT_STARVED,
                ),
            ),
            Case(
                confidence="possible",
                cause="Kernels run nearly all the time; whether they do much is not measured.",
                tests=(
                    is_("util.sm_active.mean", "unknown"),
                    is_("power.fraction.mean", "unknown"),
                    is_(BUSY, ">=", 0.85),
                    *NOT_STARVED,
                ),
            ),
        ),
    ),
)
