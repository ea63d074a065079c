"""What each action is, what it gains, what it costs to do, and where the figure comes from.

An effect is a range of speed-up of one *part* of the time: `input` (the pipeline that feeds the
GPU), `host` (launching, waiting, serial code) or `kernels` (the GPU's own work). `planner.predict`
turns parts into run time, so an effect on a part that does not limit the job gains nothing.
`numeric` actions change results and are never part of an option unless asked for; `structural`
actions are what an option does anyway (another GPU, another provider).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from planner.estimate import Estimate
from planner.finding import Finding
from planner.profile.model import Profile
from planner.rule import Signals
from planner.rules.limits import CPU, CPU_FULL
from planner.signals import idle_share
from pricing.errors import InputError

Part = Literal["input", "host", "kernels"]
Class = Literal["safe", "numeric", "structural"]

_VLDB = "Mohan et al., VLDB 2021: data stalls fixed give up to 5x on one server"
_COMPILE = "PyTorch 2 report: +43 % on 163 models (A100), +21 % in fp32; timm inference q90 x2.2"
_LAMBDA = "Lambda PyTorch benchmarks, fp16 against fp32"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing to change.

    Attributes:
        code: the action code.
        title: what to do, in a few words.
        kind: `safe` leaves results unchanged, `numeric` may change them, `structural` chooses a
            machine.
        part: the part of the time that it speeds up; None where its gain is not modelled.
        effect: speed-up of that part (low, mid, high); None where unknown.
        source: where the effect comes from.
        effort_hours: engineering time, our own estimate; 0 for a switch.
        remark: what to watch.
    """

    code: str
    title: str
    kind: Class = "safe"
    part: Part | None = None
    effect: tuple[float, float, float] | None = None
    source: str = ""
    effort_hours: float = 0.0
    remark: str = ""

    @property
    def estimate(self) -> Estimate | None:
        """The effect as an estimate of the speed-up of its part."""
        if self.effect is None:
            return None
        low, mid, high = self.effect
        return Estimate(low=low, mid=mid, high=high, basis=f"{self.code}: {self.source}")


def _table() -> tuple[Action, ...]:
    return (
        Action(
            code="dataloader-workers",
            title="more loader workers, as processes instead of threads",
            part="input",
            effect=(1.0, 1.5, 2.9),
            source="Synergy tables: 3 to 9 cores per GPU x1.55-2.5, 3 to 12 up to x2.9",
            effort_hours=0.5,
        ),
        Action(
            code="gpu-preprocessing",
            title="decode and augment on the GPU (DALI, nvJPEG)",
            part="input",
            effect=(1.2, 2.0, 5.0),
            source=f"{_VLDB}; the low and middle figures are our estimate",
            effort_hours=8.0,
            remark="adds about a tenth to the GPU's own work; augmentations differ in detail",
        ),
        Action(code="dataloader-prefetch", title="prefetch more batches", effort_hours=0.25),
        Action(code="pinned-memory", title="pin host memory", effort_hours=0.25),
        Action(code="persistent-workers", title="keep workers between epochs", effort_hours=0.25),
        Action(code="async-copy", title="copy to the GPU asynchronously", effort_hours=0.5),
        Action(code="local-cache", title="cache hot data on the scratch disk", effort_hours=2.0),
        Action(code="offline-preprocessing", title="preprocess once, offline", effort_hours=6.0),
        Action(
            code="mixed-precision",
            title="mixed precision (AMP)",
            kind="numeric",
            part="kernels",
            effect=(0.97, 1.77, 2.21),
            source=_LAMBDA,
            effort_hours=4.0,
            remark="check accuracy",
        ),
        Action(
            code="tf32",
            title="allow TF32",
            kind="numeric",
            effort_hours=0.5,
            remark="check accuracy",
        ),
        Action(
            code="larger-batch",
            title="a larger batch",
            kind="numeric",
            effort_hours=2.0,
            remark="scale the learning rate; very large batches can generalise worse",
        ),
        Action(code="gradient-accumulation", title="accumulate gradients", kind="numeric"),
        Action(
            code="gradient-checkpointing",
            title="recompute activations instead of keeping them",
            effort_hours=2.0,
            remark="20-40 % slower, up to 60 % less memory",
        ),
        Action(
            code="compile",
            title="compile the model (torch.compile, XLA)",
            part="host",
            effect=(1.0, 1.3, 2.2),
            source=_COMPILE,
            effort_hours=4.0,
            remark="7 % of models did not compile in that report",
        ),
        Action(code="channels-last", title="channels-last memory format", effort_hours=1.0),
        Action(code="fused-optimizer", title="fused optimiser", effort_hours=0.5),
        Action(code="cuda-graphs", title="replay steps as CUDA graphs", effort_hours=8.0),
        Action(code="data-parallel", title="data-parallel training", effort_hours=8.0),
        Action(code="sharded-data-parallel", title="shard parameters (FSDP)", effort_hours=16.0),
        Action(code="tensor-parallel", title="tensor parallelism", effort_hours=24.0),
        Action(code="pipeline-parallel", title="pipeline parallelism", effort_hours=24.0),
        Action(code="numa-binding", title="bind processes to NUMA nodes", effort_hours=0.5),
        Action(code="nccl-tuning", title="tune NCCL for this interconnect", effort_hours=4.0),
        Action(code="quantization", title="quantise", kind="numeric", effort_hours=16.0),
        Action(code="pruning", title="prune", kind="numeric", effort_hours=40.0),
        Action(code="dynamic-batching", title="batch requests as they come", effort_hours=8.0),
        Action(code="checkpoint-interval", title="checkpoint at the best interval"),
        Action(code="allocator-tuning", title="less fragmentation (allocator settings)"),
        Action(
            code="idle-shutdown",
            title="end the machine when nobody computes",
            kind="structural",
            effort_hours=1.0,
        ),
        Action(code="newer-gpu", title="a newer GPU", kind="structural", effort_hours=1.0),
        Action(code="smaller-gpu", title="a smaller GPU", kind="structural", effort_hours=1.0),
        Action(code="fewer-gpus", title="fewer GPUs", kind="structural", effort_hours=1.0),
        Action(code="more-gpus", title="more GPUs", kind="structural", effort_hours=1.0),
        Action(code="share-gpu", title="share a GPU", kind="structural", effort_hours=4.0),
        Action(
            code="spot",
            title="spot capacity",
            kind="structural",
            effort_hours=4.0,
            remark="may be interrupted: needs checkpoints",
        ),
        Action(code="commit", title="a term commitment", kind="structural", effort_hours=1.0),
        Action(
            code="move-provider",
            title="move to another provider",
            kind="structural",
            effort_hours=8.0,
        ),
        Action(code="scale-down", title="fewer replicas", kind="structural", effort_hours=2.0),
        Action(code="reduce-egress", title="send less data out", kind="structural"),
    )


ACTIONS: Mapping[str, Action] = {action.code: action for action in _table()}

# On a full CPU more workers find no cores; the range stays near 1 (processes instead of threads
# can still help where one interpreter lock was the limit).
_WORKERS_ON_FULL_CPU = Action(
    code="dataloader-workers",
    title="loader workers as processes instead of threads",
    part="input",
    effect=(1.0, 1.05, 1.3),
    source="the CPU is full: more workers find no free cores; our estimate",
    effort_hours=0.5,
)
_AMP_WITHOUT_TF32 = (1.0, 2.71, 4.75)  # Volta and Turing: the FP32 base has no tensor cores
_FIRST_TF32_CAPABILITY = 8.0


def action(code: str, signals: Signals) -> Action:
    """Return the action with the effect that these signals leave it.

    Raises:
        InputError: there is no such code.
    """
    found = ACTIONS.get(code)
    if found is None:
        raise InputError(f"{code!r} is no action code; known: {', '.join(ACTIONS)}.")
    cpu = signals[CPU]
    if code == "dataloader-workers" and isinstance(cpu, float) and cpu >= CPU_FULL:
        return _WORKERS_ON_FULL_CPU
    capability = signals["hardware.compute_capability"]
    old = isinstance(capability, float) and capability < _FIRST_TF32_CAPABILITY
    if code == "mixed-precision" and old:
        return replace(found, effect=_AMP_WITHOUT_TF32)
    return found


def reclaimable(findings: tuple[Finding, ...], profile: Profile) -> float | None:
    """Return the share of held time that `idle-shutdown` may save; None without a reason."""
    called = any("idle-shutdown" in f.actions and f.confidence != "possible" for f in findings)
    return idle_share(profile) if called else None


def fixes(findings: tuple[Finding, ...], signals: Signals) -> tuple[Action, ...]:
    """Return the safe actions with a known effect that the findings call for, best first."""
    codes = [code for finding in findings for code in finding.actions]
    wanted = [action(code, signals) for code in dict.fromkeys(codes)]
    return tuple(a for a in wanted if a.kind == "safe" and a.effect is not None)
