"""How a training job spreads over several GPUs, and how it survives their failures.

Data parallel where model, gradients and optimiser fit one GPU; sharded (FSDP) where they do not and
links are fast; tensor parallel inside a machine and pipeline between machines where the network is
slow. What it needs to survive failures is worked out in `planner.models.failures`.
"""

from dataclasses import dataclass

from planner.models.communication import link_class
from planner.models.failures import Survival
from planner.prediction.layout import Layout
from planner.profile.kinds import Parallelism
from planner.profile.model import Profile
from planner.signals.thresholds import NODE_NETWORK_GBPS, USABLE

# Weights, gradients and two moments of Adam, in single precision or AMP: bytes a parameter.
_STATE_BYTES = 16.0
_GIB = 2.0**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """How to run on several GPUs.

    Attributes:
        mode: `ddp`, `fsdp`, `tensor` or `pipeline`, as in profile.json.
        why: one sentence.
        failures: expected over the hours of the period.
        max_restarts: torchrun's --max-restarts.
        nnodes: torchrun's --nnodes: elastic, MIN:MAX, where the mode can lose a machine.
        checkpoint_every_s: time of work between checkpoints.
    """

    mode: Parallelism
    why: str
    failures: float
    max_restarts: int
    nnodes: str
    checkpoint_every_s: float


def distribution(
    profile: Profile, layout: Layout, *, memory_gib: float, needs: Survival
) -> Distribution | None:
    """Return how a training job would run on a layout; None for other jobs and for one GPU.

    Args:
        profile: what was measured.
        layout: the GPUs.
        memory_gib: that a process can use on one of them.
        needs: what it takes to survive failures there.
    """
    if not profile.job.kind.trains or layout.gpu_count == 1:
        return None
    mode, why = _mode(profile, layout, memory_gib)
    nodes = layout.machines
    least = nodes - 1 if nodes > 1 and mode.survives_a_lost_machine else nodes
    return Distribution(
        mode=mode,
        why=why,
        failures=needs.failures,
        max_restarts=needs.max_restarts,
        nnodes=f"{least}:{nodes}" if least < nodes else str(nodes),
        checkpoint_every_s=needs.checkpoint_every_s,
    )


def _mode(profile: Profile, layout: Layout, memory_gib: float) -> tuple[Parallelism, str]:
    job, room = profile.job, USABLE * memory_gib
    states = None if job.parameters is None else job.parameters * _STATE_BYTES / _GIB
    held = profile.peak("mem.used_gib")
    whole = not job.splits_the_model
    if states is None:
        if not whole and job.parallelism is not None:
            return job.parallelism, "as today; parameters are not stated"
        fits = held is None or held <= room
        return (Parallelism.DDP, "what one GPU holds today fits each") if fits else _sharded(layout)
    if max(states, held or 0.0 if whole else 0.0) <= room:
        return Parallelism.DDP, f"{states:.1f} GiB of weights, gradients and optimiser fit each GPU"
    if states / layout.gpu_count <= room:
        return _sharded(layout)
    return (
        Parallelism.PIPELINE,
        f"{states:.0f} GiB of states exceed all GPUs sharded; offload or use more",
    )


def _sharded(layout: Layout) -> tuple[Parallelism, str]:
    """Return how to split what one GPU cannot hold, by the links."""
    fast = link_class(layout.interconnect, layout.gpu_name) == "nvlink"
    network = layout.network_gbps
    if layout.machines == 1 or (network is not None and network >= NODE_NETWORK_GBPS):
        link = "NVLink" if fast else "PCIe"
        return Parallelism.FSDP, f"the states do not fit one GPU; sharding them goes over {link}"
    if fast:
        return (
            Parallelism.TENSOR,
            "split inside each machine over NVLink: the network is slow or unknown",
        )
    return Parallelism.PIPELINE, "cut into stages: only activations cross the slow links"
