"""Which hardware a recording is of: what the devices said, and hints where they said nothing."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

from planner.profile.model import Hardware
from pricing import hardware
from telemetry.profiling.devices import device_of
from telemetry.profiling.machines import MACHINE
from telemetry.recording.observed import Observed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.profile.model import GpuReadings
    from telemetry.parsing.hints import Hints
    from telemetry.profiling.merge import Merged
    from telemetry.recording.recording import GpuIdentity

_DIGITS = 12
_SEVERAL_SLICES = (
    "slices of several sizes, or several of one GPU, were measured: hardware.slice is left open, "
    "and the readings are taken for those of whole GPUs."
)
_NO_NAME = ("localhost", "127.0.0.1", "[::1]")  # every machine calls itself so


def hardware_of(merged: Merged, hints: Hints) -> tuple[Hardware, tuple[str, ...]]:
    """Return the hardware and notes on what was assumed.

    The model is the devices' own name for themselves; None where they disagree or say nothing and
    no hint helps. A hint that contradicts the one model of the data is noted and not used.
    """
    models = sorted({gpu.model for gpu in merged.gpus if gpu.model})
    memories = [gpu.memory_gib for gpu in merged.gpus if gpu.memory_gib and gpu.partition is None]
    distinct = {_canonical(model, None) for model in models}
    model, notes = hints.gpu, []
    if len(distinct) == 1:
        model = models[0]
        if hints.gpu is not None and _canonical(hints.gpu, _one(memories)) != _canonical(
            model, _one(memories)
        ):
            notes.append(f"--gpu {hints.gpu} is not used: the data says {model}.")
    elif models:
        taken = f"taken as {hints.gpu}, as --gpu says" if hints.gpu else "so the model is left open"
        notes.append(f"different GPU models in one source ({', '.join(models)}), {taken}.")
    if len(set(memories)) > 1:
        notes.append("the GPUs have different memory sizes; the smallest is used.")
    devices = {device_of(gpu.key) for gpu in merged.gpus}
    hosts = {gpu.host for gpu in merged.gpus if gpu.host}
    seen = merged.observed or Observed()
    ready = Hardware(
        gpu=model,
        gpu_count=len(devices) or None,
        nodes=len(hosts) or (1 if merged.observed else None),
        gpu_memory_gib=round(min(memories), 6) if memories else None,
        cpu_cores=seen.cpu_cores,
        ram_gib=seen.ram_gib or merged.host_ram_gib,
        interconnect=seen.interconnect,
        provider=seen.identity.provider,
        instance_type=seen.identity.instance_type,
        region=seen.identity.region,
        machine=seen.identity.machine or _machine(hosts),
    )
    return ready, tuple(notes)


def slice_of(
    gpus: Sequence[GpuIdentity], readings: Sequence[GpuReadings]
) -> tuple[str | None, tuple[str, ...]]:
    """Return the slice (MIG profile) that every GPU of a job was measured on, and notes.

    None where whole GPUs told how busy they were, where the slices differ, and where the job had
    several of one GPU.

    Args:
        gpus: the job's devices and instances.
        readings: what each of them measured, in the same order.
    """
    pairs = list(zip(gpus, readings, strict=False))
    busy = [gpu for gpu, one in pairs if any(slot.startswith("util.") for slot in one.metrics)]
    used = busy or [gpu for gpu, one in pairs if one.metrics]
    names = {_slice_named(gpu) for gpu in used}
    if names <= {None}:
        return None, ()
    several = len({device_of(gpu.key) for gpu in used}) < len(used)
    name = names.pop() if len(names) == 1 else None
    return (None, (_SEVERAL_SLICES,)) if several else (name, () if name else (_SEVERAL_SLICES,))


def _slice_named(gpu: GpuIdentity) -> str | None:
    """Return the slice that an instance, or the name of a device, says it is; None: a whole GPU."""
    told = (gpu.partition or "").split(" ")[0].lower()
    known = re.fullmatch(hardware.SLICE_NAME, told)
    return told if known else hardware.slice_in_name(gpu.model)


def _machine(hosts: set[str]) -> str | None:
    """Return an id of the one machine that all devices stand in: a digest, as names are private.

    An exporter's address counts without its port.
    """
    names = {host.rpartition(":")[0] or host for host in hosts}
    name = names.pop() if len(names) == 1 else None
    if name is None or name in _NO_NAME or name.startswith(MACHINE):
        return None
    return f"host-{sha256(name.encode()).hexdigest()[:_DIGITS]}"


def _one(memories: list[float]) -> float | None:
    return min(memories) if memories else None


def _canonical(model: str, memory_gib: float | None) -> str:
    """Return the table's name of a model; without one, its own in lower case."""
    known = hardware.find(model, memory_gib=memory_gib)
    return known.name if known is not None else model.strip().lower()
