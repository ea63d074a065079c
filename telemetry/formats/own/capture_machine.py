"""Of a capture: which of its GPUs are the job's, and what the machine around the job was."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from planner.profile.model import Machine, OtherGpu
from telemetry.profiling.window import durations, statistics
from telemetry.recording.observed import MachineIdentity
from telemetry.recording.recording import GPU, GPU_USERS, JOB_GPUS, TIME

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from telemetry.recording.recording import GpuIdentity

_OF_MACHINE = {
    "machine_gpus": "gpu_count",
    "machine_cores": "cpu_cores",
    "machine_ram_gib": "ram_gib",
}


def identity(facts: dict[str, Any]) -> MachineIdentity:
    """Return which machine it was, as far as the capture says."""
    names = [field.name for field in fields(MachineIdentity)]
    return MachineIdentity(**{name: facts.get(name) for name in names})


def interconnect(facts: dict[str, Any], gpus: Sequence[GpuIdentity]) -> str | None:
    """Return what joins the job's GPUs; the driver was asked about all that were read."""
    alone = sum(gpu.partition is None for gpu in gpus) == 1
    return "single" if alone and facts.get(JOB_GPUS) is not None else facts.get("interconnect")


def of_job(
    facts: dict[str, Any], samples: pd.DataFrame, gpus: Sequence[GpuIdentity]
) -> tuple[pd.DataFrame, tuple[GpuIdentity, ...]]:
    """Return the readings and identities of the job's own GPUs."""
    ours = _ours(facts, gpus)
    kept = samples[samples[GPU].isin(ours)].reset_index(drop=True)
    return kept, tuple(gpu for gpu in gpus if gpu.key in ours)


def machine(
    facts: dict[str, Any], samples: pd.DataFrame, gpus: Sequence[GpuIdentity]
) -> Machine | None:
    """Return the machine, with its GPUs that are not the job's; None where nothing is known."""
    known = {name: facts[fact] for fact, name in _OF_MACHINE.items() if facts.get(fact)}
    ours, users = _ours(facts, gpus), facts.get(GPU_USERS) or {}
    others = tuple(
        OtherGpu(
            index=gpu.index,
            uuid=gpu.uuid,
            gpu=gpu.model,
            users=tuple(users.get(gpu.key, ())),
            kernel_time=_mean(samples, gpu.key, "util.kernel_time"),
            used_gib=_mean(samples, gpu.key, "mem.used_gib"),
        )
        for gpu in gpus
        if gpu.key not in ours and gpu.partition is None
    )
    return Machine(**known, others=others) if known or others else None


def _ours(facts: dict[str, Any], gpus: Sequence[GpuIdentity]) -> set[str]:
    everyone = {gpu.key for gpu in gpus}
    named = facts.get(JOB_GPUS)
    return everyone if named is None else everyone & set(named)


def _mean(samples: pd.DataFrame, key: str, slot: str) -> float | None:
    if slot not in samples:
        return None
    rows = samples.loc[(samples[GPU] == key) & samples[slot].notna(), [TIME, slot]]
    rows = rows.sort_values(TIME)
    found = statistics(rows[slot].to_numpy(float), durations(rows[TIME].to_numpy(float)))
    return None if found is None or found.mean is None else round(found.mean, 6)
