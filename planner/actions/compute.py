"""Actions on the GPU's own work and its memory."""

from planner.actions.action import Action
from planner.signals.condition import Test, unless_known
from planner.signals.job_kinds import MAY_SERVE, MAY_TRAIN

_TENSOR_CORES, _TF32, _NOT_HALF_YET = 7.0, 8.0, ("fp32", "tf32")
_SERVES = Test(signal="job.kind", op="in", limit=MAY_SERVE)
_TRAINS = Test(signal="job.kind", op="in", limit=MAY_TRAIN)
_SINGLE = Test(signal="job.precision", op="in", limit=_NOT_HALF_YET, or_unknown=True)

KERNELS: tuple[Action, ...] = (
    Action(
        code="mixed-precision",
        title="mixed precision (AMP)",
        kind="numeric",
        mechanism="arithmetic",
        effect=(0.97, 1.77, 2.21),
        grade="measured",
        source="Lambda PyTorch benchmarks, fp16 against fp32 (which is TF32 from Ampere on): "
        "x0.97-2.21, median 1.77; on Volta and Turing x1.0-4.75, median 2.71; the largest batch "
        "that fits grew x1.5-2.0, median 2.0",
        memory=(0.5, 0.5, 0.68),
        effort_hours=4.0,
        when=(unless_known("hardware.compute_capability", ">=", _TENSOR_CORES), _SINGLE),
        excludes=("tf32", "quantization"),
        remark="check accuracy; bf16 from compute capability 8.0, before that fp16 with loss "
        "scaling; small recurrent nets gain nothing",
    ),
    Action(
        code="tf32",
        title="allow TF32",
        kind="numeric",
        mechanism="arithmetic",
        grade="computed",
        source="ratio of the TF32 and FP32 rates to the power 0.38, the elasticity fitted on "
        "Lambda's benchmarks; nothing where it is on already",
        effort_hours=0.5,
        when=(
            unless_known("hardware.compute_capability", ">=", _TF32),
            Test(signal="job.precision", op="in", limit=("fp32",), or_unknown=True),
        ),
        excludes=("mixed-precision",),
        remark="check accuracy: inputs keep 10 bits of mantissa; convolutions use it by default",
    ),
    Action(
        code="larger-batch",
        title="a larger batch",
        kind="numeric",
        mechanism="arithmetic",
        effect=(0.9, 1.2, 2.0),
        grade="computed",
        source="batch law step = a + b x batch, a from the SMs left empty, the batch from free "
        "memory; without SM activity, Zeus: doubling gave x0.9-2.0, median 1.2, in 720 pairs",
        effort_hours=2.0,
        remark="scale the learning rate (LARS or LAMB for very large batches), which can "
        "generalise worse",
    ),
    Action(
        code="gradient-accumulation",
        title="accumulate gradients",
        kind="numeric",
        mechanism="exchange",
        grade="computed",
        source="gradients are exchanged once in four micro-batches instead of after each",
        effort_hours=1.0,
        when=(_TRAINS,),
        remark="the effective batch grows fourfold: scale the learning rate",
    ),
    Action(
        code="gradient-checkpointing",
        title="recompute activations instead of keeping them",
        mechanism="arithmetic",
        effect=(0.71, 0.77, 0.83),
        grade="published",
        source="20 % slower (Hugging Face) to 40 % (others); in theory a third more arithmetic",
        memory=(0.4, 0.6, 0.9),
        effort_hours=2.0,
        when=(_TRAINS,),
        remark="slower; pays only where the memory it frees buys a batch or a smaller GPU",
    ),
    Action(
        code="channels-last",
        title="channels-last memory format",
        kind="numeric",
        mechanism="arithmetic",
        effect=(1.0, 1.12, 1.29),
        grade="measured",
        source="timm: training quartiles of 834 models x1.00-1.29, median 1.12; inference x0.93 to "
        "1.30 on 1,124 models, median 1.07 (RTX 4090, AMP)",
        effort_hours=1.0,
        remark="convolutional models only; single models fall to a fifth: measure",
    ),
    Action(
        code="quantization",
        title="quantise",
        kind="numeric",
        mechanism="arithmetic",
        effect=(1.0, 1.9, 2.7),
        grade="published",
        source="weak, secondary reports of language model decoding: FP8 about x1.9, 4-bit x2.2-2.7 "
        "at small batches, less where arithmetic limits",
        memory=(0.25, 0.5, 0.5),
        effort_hours=16.0,
        when=(_SERVES, unless_known("hardware.compute_capability", ">=", 7.5)),
        excludes=("mixed-precision",),
        remark="check accuracy; FP8 needs compute capability 8.9, INT8 7.5",
    ),
    Action(
        code="kv-cache-room",
        title="more room for the KV cache",
        source="vLLM's guide to preemption: a larger gpu_memory_utilization, a shorter "
        "max_model_len, fewer sequences at a time, a cache in FP8, or more GPUs for the weights; "
        "what it gains depends on the requests",
        effort_hours=1.0,
        when=(_SERVES,),
        remark="a cache in FP8 may change results; too large a share of memory ends the server",
    ),
    Action(
        code="pruning",
        title="prune",
        kind="numeric",
        source="no measured range that holds across models; 2:4 sparsity doubles the peak rate "
        "from Ampere on, and end-to-end gains are far less",
        effort_hours=40.0,
        when=(_SERVES,),
        remark="check accuracy; needs fine-tuning",
    ),
    Action(
        code="dynamic-batching",
        title="batch requests as they come",
        kind="numeric",
        mechanism="arithmetic",
        grade="computed",
        source="batch law with up to 8 requests at a time, the fixed part of a step from the SMs "
        "left empty",
        effort_hours=8.0,
        when=(_SERVES,),
        remark="each request may wait for the batch: set the delay from the latency target; "
        "results of one request may depend on the batch in the last bits",
    ),
    Action(
        code="allocator-tuning",
        title="less fragmentation (allocator settings)",
        source="PyTorch's documentation of the caching allocator; what it frees depends on the "
        "shapes and is not known before",
        when=(_TRAINS,),
    ),
)
