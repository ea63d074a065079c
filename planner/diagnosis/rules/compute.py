"""The GPU works: how well its kernels use it, alone and with others, and what holds them down."""

from planner.diagnosis.rules.rule import (
    BEHIND,
    COMMUNICATING,
    HOST_KEEPS_UP,
    NEURAL,
    NOT_AT_WORK,
    NOT_STARVED,
    UNEVEN,
    UNFILLED,
    Case,
    Rule,
    of_busy,
)
from planner.signals.condition import is_, unless_known, where, where_known
from planner.signals.thresholds import (
    BUSY,
    BUSY_NOW,
    COMMUNICATION,
    CPU,
    CPU_FULL,
    DATA_WAIT,
    DRAM_BOUND,
    FEW_ITEMS,
    FILLED,
    FULL_MEMORY,
    IDLE,
    IDLE_POWER,
    KV_CACHE_FULL,
    LINK_FULL,
    LOW,
    MAY_TRAIN,
    MAY_WORK,
    NODE_NETWORK_GBPS,
    POWER,
    SM,
    STARVED,
    STEP_SHARE,
    TOGETHER,
    TRAINS,
    VIDEO,
    WORK_POWER,
)
from pricing.message import Message

_DRAM, _TENSOR = "util.dram_active.mean", "util.tensor_active.mean"
_FULL = is_("mem.used_fraction.max", ">=", FULL_MEMORY)
_HELD_DOWN = is_("throttle.fraction.most", ">=", 0.1)

RULES: tuple[Rule, ...] = (
    Rule(
        code="thermal-throttled",
        meaning="Heat holds the clocks down.",
        source="NVML throttle (event) reasons",
        actions=("move-provider",),
        against=(is_(POWER, ">=", 0.9),),
        severity="medium",
        cases=(
            Case(
                confidence="measured",
                cause=Message("cause.hot-gpu"),
                tests=(_HELD_DOWN, is_("temp.core_c.max", ">=", 80.0)),
            ),
        ),
    ),
    Rule(
        code="power-throttled",
        meaning="The power limit holds the clocks down.",
        source="NVML throttle (event) reasons; Zeus: a limit of 80, 60, 50 % costs 3, 8, 14 %",
        actions=("newer-gpu",),
        against=(is_(SM, "<", LOW),),
        severity="low",
        cases=(
            Case(
                confidence="measured",
                cause=Message("cause.lowered-power-limit"),
                tests=(
                    _HELD_DOWN,
                    is_(POWER, ">=", 0.9),
                    is_("power.cap_fraction", "<", 0.9),
                    unless_known("temp.core_c.max", "<", 80.0),
                ),
                severity="medium",
                actions=("raise-power-limit",),
            ),
            Case(
                confidence="measured",
                cause=Message("cause.power-limit"),
                tests=(
                    _HELD_DOWN,
                    is_(POWER, ">=", 0.9),
                    unless_known("temp.core_c.max", "<", 80.0),
                ),
            ),
        ),
    ),
    Rule(
        code="small-batch",
        meaning="Memory is left over and the GPU is not filled: a larger batch would fit.",
        source="practice: raise the batch until memory or the SMs are full; NVIDIA's guide to the "
        "DCGM fields for SM activity",
        actions=("larger-batch", "compile", "cuda-graphs"),
        against=(
            is_("util.sm_occupancy.mean", ">=", LOW),
            is_("job.batch_per_gpu", ">", 4 * FEW_ITEMS),
            is_(POWER, ">=", WORK_POWER),
        ),
        cases=(
            Case(
                confidence="likely",
                cause=Message("cause.empty-sms"),
                tests=(
                    where("job.kind", "in", MAY_WORK),
                    NEURAL,
                    is_("mem.used_fraction.max", "<", LOW),
                    is_(BUSY, ">=", LOW),
                    is_(SM, "<", LOW),
                    *NOT_AT_WORK,
                ),
                waste=UNFILLED,
            ),
            Case(
                confidence="possible",
                cause=Message("cause.few-items-batch"),
                tests=(
                    where("job.kind", "in", MAY_WORK),
                    NEURAL,
                    is_("job.batch_per_gpu", "<=", FEW_ITEMS),
                    is_("mem.used_fraction.max", "<", LOW),
                    is_(BUSY, ">=", LOW),
                    is_(SM, "unknown"),
                    is_(POWER, "<", WORK_POWER),
                ),
                severity="medium",
            ),
            Case(
                confidence="possible",
                cause=Message("cause.little-power-half-memory"),
                tests=(
                    where("job.kind", "in", MAY_WORK),
                    NEURAL,
                    is_("mem.used_fraction.max", "<", LOW),
                    is_(BUSY, ">=", LOW),
                    is_(SM, "unknown"),
                    is_(POWER, "<", IDLE_POWER),
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
        against=(is_(BUSY, "<", STARVED), is_(_DRAM, ">=", DRAM_BOUND), is_(_TENSOR, ">=", 0.05)),
        cases=(
            Case(
                confidence="likely",
                cause=Message("cause.no-half-precision-no-tensor"),
                tests=(
                    NEURAL,
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
                cause=Message("cause.no-half-precision"),
                tests=(
                    NEURAL,
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
        source="roofline: DRAM activity high while arithmetic pipes wait; NVIDIA's guide to the "
        "DCGM fields: about 80 % is the practical peak",
        actions=("compile", "quantization", "channels-last", "newer-gpu"),
        against=(is_(_TENSOR, ">=", 0.2), is_("util.fp32_active.mean", ">=", LOW)),
        severity="low",
        cases=(
            Case(
                confidence="measured",
                cause=Message("cause.device-memory-busy"),
                tests=(
                    is_(_DRAM, ">=", DRAM_BOUND),
                    unless_known(_TENSOR, "<", 0.3),
                ),
            ),
            Case(
                confidence="likely",
                cause=Message("cause.decoding-reads-memory"),
                tests=(
                    where("job.family", "in", ("llm-server",)),
                    is_(BUSY, ">=", FILLED),
                    is_(_DRAM, ">=", LOW),
                    is_(_TENSOR, "<", 0.3),
                ),
                actions=("quantization", "speculative-decoding", "newer-gpu"),
            ),
            Case(
                confidence="possible",
                cause=Message("cause.memory-controller-busy"),
                tests=(
                    is_(_DRAM, "unknown"),
                    is_("util.mem_controller.mean", ">=", 0.7),
                ),
            ),
        ),
    ),
    Rule(
        code="memory-pressure",
        meaning="Memory ran out, or GPU memory is nearly full: it keeps the batch small, or one "
        "larger batch ends the job; of a server of language models, the KV cache is full while "
        "requests wait.",
        source="practice: PyTorch's caching allocator; activation checkpointing; vLLM's metrics "
        "and its guide to preemption",
        actions=("gradient-checkpointing", "allocator-tuning", "sharded-data-parallel"),
        against=(is_(SM, ">=", FILLED), is_("job.batch_per_gpu", ">", FEW_ITEMS)),
        cases=(
            *(
                Case(
                    confidence="measured",
                    cause=Message(f"cause.kv-cache-{why}"),
                    tests=(is_("serving.kv_cache_fraction", ">=", KV_CACHE_FULL), waits),
                    severity="high",
                    actions=("kv-cache-room", "quantization", "tensor-parallel"),
                )
                for why, waits in (
                    ("preempts", is_("serving.preemptions_per_s", ">", 0.0)),
                    ("full", is_("serving.requests_waiting", ">=", 1.0)),
                )
            ),
            Case(
                confidence="measured",
                cause=Message("cause.gpu-memory-ran-out"),
                tests=(is_("job.ended", "in", ("gpu-out-of-memory",)),),
                severity="high",
            ),
            Case(
                confidence="measured",
                cause=Message("cause.host-memory-ran-out"),
                tests=(is_("job.ended", "in", ("host-out-of-memory",)),),
                severity="high",
                actions=(),
            ),
            Case(
                confidence="likely",
                cause=Message("cause.memory-full-sms-not"),
                tests=(
                    where("job.kind", "in", MAY_TRAIN),
                    _FULL,
                    is_(BUSY, ">=", LOW),
                    is_(SM, "<", LOW),
                    unless_known("job.batch_per_gpu", "<=", FEW_ITEMS),
                ),
                severity="medium",
            ),
            Case(
                confidence="possible",
                cause=Message("cause.memory-held-by-allocator"),
                tests=(
                    where("job.kind", "in", MAY_TRAIN),
                    _FULL,
                ),
            ),
        ),
    ),
    Rule(
        code="well-used",
        meaning="The GPU does useful work most of the time.",
        source="NVML and DCGM field definitions: busy time, SM activity, power; Zeus: training "
        "draws 28-82 % of TDP",
        against=(
            is_(CPU, ">=", CPU_FULL),
            is_(POWER, "<", IDLE_POWER),
            is_("util.sm_occupancy.mean", "<", 0.1),
            is_("util.kernel_time.spread", ">=", 0.2),
        ),
        cases=(
            Case(
                confidence="measured",
                cause=Message("cause.sms-at-work"),
                tests=(is_(BUSY, ">=", 0.8), is_(SM, ">=", FILLED), *NOT_STARVED),
            ),
            Case(
                confidence="likely",
                cause=Message("cause.power-of-work"),
                tests=(
                    is_(SM, "unknown"),
                    is_(BUSY, ">=", BUSY_NOW),
                    is_(POWER, ">=", WORK_POWER),
                    *NOT_STARVED,
                ),
            ),
            Case(
                confidence="likely",
                cause=Message("cause.video-engine"),
                tests=(is_(VIDEO, ">=", LOW),),
            ),
            Case(
                confidence="possible",
                cause=Message("cause.kernels-all-the-time"),
                tests=(
                    is_(SM, "unknown"),
                    unless_known(POWER, ">=", IDLE_POWER),
                    is_(BUSY, ">=", BUSY_NOW),
                    unless_known("util.kernel_time.constant", "<", 1.0),
                    *HOST_KEEPS_UP,
                ),
            ),
            Case(
                confidence="possible",
                cause=Message("cause.kernels-moderate-power"),
                tests=(
                    is_(SM, "unknown"),
                    is_(POWER, ">=", IDLE_POWER),
                    is_(BUSY, ">=", BUSY_NOW),
                    *HOST_KEEPS_UP,
                ),
            ),
        ),
    ),
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

MULTI_GPU: tuple[Rule, ...] = (
    Rule(
        code="imbalanced-gpus",
        meaning="Some GPUs of the job work, others wait or are not used.",
        source="practice: one GPU of several idle is paid for and wasted",
        actions=("fewer-gpus", "data-parallel"),
        against=(is_(DATA_WAIT, ">=", STEP_SHARE),),
        cases=(
            Case(
                confidence="measured",
                cause=Message("cause.slow-rank"),
                tests=(is_("ranks.behind", ">=", STEP_SHARE),),
                waste=BEHIND,
                actions=("even-ranks",),
                names="rank",
            ),
            Case(
                confidence="measured",
                cause=Message("cause.unequal-gpus"),
                tests=(is_("util.kernel_time.spread", ">=", 0.4),),
                waste=UNEVEN,
            ),
        ),
    ),
    Rule(
        code="communication-bound",
        meaning="GPUs wait for each other.",
        source=f"{_GUIDES}; collectives are kernels, so a GPU that waits in one reads as busy",
        actions=(
            "fast-network",
            "nccl-tuning",
            "gradient-accumulation",
            "larger-batch",
            "fewer-gpus",
        ),
        against=(is_(SM, ">=", 0.8), is_("host.net_fraction", "<", 0.2)),
        cases=(
            Case(
                confidence="measured",
                cause=Message("cause.exposed-communication"),
                # Where one rank is behind, the others wait for it in the collective.
                tests=(
                    is_(COMMUNICATION, ">=", STEP_SHARE),
                    unless_known("ranks.behind", "<", STEP_SHARE),
                ),
                waste=COMMUNICATING,
            ),
            Case(
                confidence="likely",
                cause=Message("cause.network-nearly-full"),
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
                cause=Message("cause.pcie-nearly-full"),
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
        actions=("fast-network", "nccl-tuning", "gradient-accumulation", "numa-binding"),
        against=(is_(SM, ">=", FILLED), is_(COMMUNICATION, "<", STEP_SHARE)),
        cases=(
            Case(
                confidence="likely",
                cause=Message("cause.slow-network-sms"),
                tests=(*_NETWORK, *_UNFILLED, _NOT_TIMED_SHORT),
                severity="medium",
            ),
            Case(
                confidence="likely",
                cause=Message("cause.slow-links-sms"),
                tests=(*_NO_NVLINK, *_UNFILLED, _NOT_TIMED_SHORT),
                severity="medium",
            ),
            Case(
                confidence="possible",
                cause=Message("cause.slow-network"),
                tests=_NETWORK,
            ),
            Case(
                confidence="possible",
                cause=Message("cause.slow-links"),
                tests=_NO_NVLINK,
            ),
        ),
    ),
)
