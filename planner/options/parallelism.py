"""How a training job spreads over several GPUs, and how it survives their failures.

Data parallel where model, gradients and optimiser fit one GPU; sharded (FSDP) where they do not and
links are fast; tensor parallel inside a machine and pipeline between machines where the network is
slow. Mean time between failures: 419 unexpected interruptions of 16,384 H100 in 54 days (Llama 3
report, 2024), one in 50,676 GPU-hours.
"""

import math
from dataclasses import dataclass

from planner.actions.effects import MOST_LOST_S
from planner.models.communication import link_class
from planner.models.interruption import Checkpoints, checkpoint_interval_s
from planner.prediction.layout import Layout
from planner.profile.model import Profile
from planner.signals.thresholds import NODE_NETWORK_GBPS

GPU_HOURS_A_FAILURE = 16384 * 54 * 24 / 419
# Weights, gradients and two moments of Adam, in single precision or AMP: bytes a parameter.
_STATE_BYTES = 16.0
_USABLE = 0.95
_GIB = 2.0**30
_SURE = 0.99  # that the restarts allowed are enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """How to run on several GPUs.

    Attributes:
        mode: `ddp`, `fsdp`, `tensor` or `pipeline`, as in profile.json.
        why: one sentence.
        failures: expected over the hours of the period.
        max_restarts: torchrun's --max-restarts, enough with 99 %.
        nnodes: torchrun's --nnodes: elastic, MIN:MAX, where the mode can lose a machine.
        checkpoint_every_s: best time of work between checkpoints (Daly), at most an hour.
    """

    mode: str
    why: str
    failures: float
    max_restarts: int
    nnodes: str
    checkpoint_every_s: float


def distribution(
    profile: Profile, layout: Layout, *, memory_gib: float, hours: float, checkpoints: Checkpoints
) -> Distribution | None:
    """Return how a training job would run on a layout; None for other jobs and for one GPU.

    Args:
        profile: what was measured.
        layout: the GPUs.
        memory_gib: that a process can use on one of them.
        hours: of the period.
        checkpoints: what one costs.
    """
    if profile.job.kind != "training" or layout.gpus == 1:
        return None
    mode, why = _mode(profile, layout, memory_gib)
    failures = layout.gpus * hours / GPU_HOURS_A_FAILURE
    nodes = layout.machines
    least = nodes - 1 if nodes > 1 and mode in ("ddp", "fsdp") else nodes
    mean_up_s = GPU_HOURS_A_FAILURE / layout.gpus * 3600.0
    return Distribution(
        mode=mode,
        why=why,
        failures=failures,
        max_restarts=max(1, _restarts(failures)),
        nnodes=f"{least}:{nodes}" if least < nodes else str(nodes),
        checkpoint_every_s=min(
            checkpoint_interval_s(mean_up_s, checkpoints), max(MOST_LOST_S, checkpoints.write_s)
        ),
    )


def _mode(profile: Profile, layout: Layout, memory_gib: float) -> tuple[str, str]:
    job, room = profile.job, _USABLE * memory_gib
    states = None if job.parameters is None else job.parameters * _STATE_BYTES / _GIB
    held = profile.peak("mem.used_gib")
    whole = job.parallelism in (None, "none", "ddp")
    if states is None:
        if not whole:
            return str(job.parallelism), "as today; parameters are not stated"
        fits = held is None or held <= room
        return ("ddp", "what one GPU holds today fits each") if fits else _sharded(layout)
    if max(states, held or 0.0 if whole else 0.0) <= room:
        return "ddp", f"{states:.1f} GiB of weights, gradients and optimiser fit each GPU"
    if states / layout.gpus <= room:
        return _sharded(layout)
    return "pipeline", f"{states:.0f} GiB of states exceed all GPUs sharded; offload or use more"


def _sharded(layout: Layout) -> tuple[str, str]:
    """Return how to split what one GPU cannot hold, by the links."""
    fast = link_class(layout.link, layout.gpu) == "nvlink"
    network = layout.network_gbps
    if layout.machines == 1 or (network is not None and network >= NODE_NETWORK_GBPS):
        link = "NVLink" if fast else "PCIe"
        return "fsdp", f"the states do not fit one GPU; sharding them goes over {link}"
    if fast:
        return "tensor", "split inside each machine over NVLink: the network is slow or unknown"
    return "pipeline", "cut into stages: only activations cross the slow links"


def _restarts(expected: float) -> int:
    """Return the least number that a Poisson count of this mean stays under with 99 %."""
    count, probability = 0, math.exp(-expected)
    total = probability
    while total < _SURE and count < 10_000:  # noqa: PLR2004 - beyond any real fleet
        count += 1
        probability *= expected / count
        total += probability
    return count
