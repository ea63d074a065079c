"""Brings recordings of one job together: one clock, one key per device, its hardware."""

import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import pandas as pd
from msgspec import structs
from numpy.typing import NDArray

from planner.profile.join import device_of
from planner.profile.kinds import SLOTS
from planner.profile.model import GpuReadings, Hardware
from pricing import hardware
from pricing.message import Message
from telemetry.profiling import machines
from telemetry.readers.hints import Hints
from telemetry.recording.observed import Observed
from telemetry.recording.recording import (
    COUNTERS,
    GPU,
    JOB,
    MEMORY_FRACTION,
    TIME,
    GpuIdentity,
    Recording,
    RunSettings,
    boards_of,
)

ANY_JOB = "*"
_KEPT_COUNTERS = ("counter.energy_j",)


def merge(recordings: Sequence[Recording]) -> Recording:
    """Return the recordings as one; the caller orders them so that the answer does not vary."""
    notes = [note for recording in recordings for note in recording.notes]
    recordings = _aligned(recordings, notes)
    places = machines.machines_of(
        [machines.LoggedRows(recording) for recording in recordings], notes
    )
    devices = machines.placed([recording.gpus for recording in recordings], places)
    names = machines.device_names(devices, places)
    frames = [_renamed(recording, names[i]) for i, recording in enumerate(recordings)]
    filled = [frame for frame in frames if len(frame)] or frames
    samples = _in_order(_once(filled) if len(filled) > 1 else filled[0])
    gpus = machines.identities(devices, names)
    samples = _resolved(samples, gpus)
    hosts = [recording.host for recording in recordings if recording.host is not None]
    configured = (r.settings for r in recordings if r.settings != RunSettings())

    def first(name: str) -> Any:  # noqa: ANN401 - of whichever type the field is
        return next((value for r in recordings if (value := getattr(r, name))), None)

    return Recording(
        samples=samples,
        host=pd.concat(hosts).sort_values(TIME, ignore_index=True) if hosts else None,
        gpus=gpus,
        sources=tuple(source for recording in recordings for source in recording.sources),
        absolute=any(recording.absolute for recording in recordings),
        timed=all(recording.timed for recording in recordings),
        local_time=any(recording.local_time for recording in recordings),
        mig=any(recording.mig for recording in recordings),
        active=all(recording.active for recording in recordings),
        work=first("work"),
        host_ram_gib=first("host_ram_gib"),
        cpu_cores=first("cpu_cores"),
        observed=first("observed"),
        settings=next(configured, RunSettings()),
        served=tuple(load for recording in recordings for load in recording.served),
        labels={job: own for recording in recordings for job, own in recording.labels.items()},
        notes=tuple(notes),
        health=tuple(fault for recording in recordings for fault in recording.health),
        summaries={
            (job, names[i][key]): slots
            for i, recording in enumerate(recordings)
            for (job, key), slots in recording.summaries.items()
        },
    )


def _aligned(recordings: Sequence[Recording], notes: list[str]) -> list[Recording]:
    """Let sources without a date start when the first dated one does."""
    starts = [
        float(recording.samples[TIME].min())
        for recording in recordings
        if recording.absolute and len(recording.samples)
    ]
    if not starts or all(recording.absolute for recording in recordings):
        return list(recordings)
    out: list[Recording] = []
    for recording in recordings:
        tables = [t for t in (recording.samples, recording.host) if t is not None and len(t)]
        if recording.absolute or not tables:
            out.append(recording)
            continue
        begin = min(float(table[TIME].min()) for table in tables)
        notes.append(Message("read.no-dates", path=recording.source.path or ""))
        out.append(later(recording, min(starts) - begin))
    return out


def later(recording: Recording, shift_s: float) -> Recording:
    """Return a recording with its times moved."""
    host = recording.host
    return replace(
        recording,
        samples=recording.samples.assign(**{TIME: recording.samples[TIME] + shift_s}),
        host=None if host is None else host.assign(**{TIME: host[TIME] + shift_s}),
    )


def _renamed(recording: Recording, names: dict[str, str]) -> pd.DataFrame:
    frame = recording.samples
    labelled = JOB in frame and frame[JOB].notna().any()
    unnamed = pd.Categorical.from_codes(np.zeros(len(frame), dtype=np.int8), pd.Index([ANY_JOB]))
    jobs = frame[JOB].astype(object) if labelled else unnamed
    return frame.assign(**{GPU: frame[GPU].map(names), JOB: jobs})


def _once(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all files, once what several hold; equal rows of one are readings each."""
    columns = sorted({str(name) for frame in frames for name in frame.columns})
    samples = pd.concat(frames, keys=range(len(frames)), names=["file", None]).reset_index("file")
    nth = samples.groupby(["file", *columns], dropna=False, observed=True).cumcount()
    again = samples[columns].assign(nth=nth).duplicated()
    return samples.loc[~again.to_numpy(), columns].reset_index(drop=True)


def _in_order(samples: pd.DataFrame) -> pd.DataFrame:
    """Sort by device, time and content: the order of files is forgotten."""
    slots = sorted(c for c in samples.columns if c not in (TIME, GPU, JOB))
    used = samples[GPU].astype("category").array.remove_unused_categories()
    devices = used.set_categories(sorted(used.categories))
    order = np.lexsort((samples[TIME], devices.codes))
    ordered = samples[[TIME, JOB, *slots]].take(order).reset_index(drop=True)
    ordered.insert(0, GPU, pd.Series(devices[order]))
    same = (np.diff(devices.codes[order]) == 0) & (np.diff(ordered[TIME]) == 0)
    if not same.any():
        return ordered
    return ordered.sort_values([GPU, TIME, JOB, *slots], kind="stable", ignore_index=True)


def _resolved(samples: pd.DataFrame, gpus: tuple[GpuIdentity, ...]) -> pd.DataFrame:
    """Return counters as slots per second, memory shares as GiB."""
    for counter, slot in COUNTERS.items():
        if counter not in samples or counter in _KEPT_COUNTERS:
            continue
        rates = np.full(len(samples), np.nan)
        counted = np.isfinite(samples[counter].to_numpy())
        for rows in samples.groupby(GPU, sort=False, observed=True).indices.values():
            rates[rows] = per_second(
                samples[counter].to_numpy()[rows], samples[TIME].to_numpy()[rows]
            )
            counted[rows] &= np.isfinite(rates[rows]).any()  # one reading of a counter says nothing
        ceiling = SLOTS[slot].high
        if ceiling is not None:  # times of counter and sample are moments apart
            rates = np.minimum(rates, ceiling)
        before = samples[slot].to_numpy() if slot in samples else np.full(len(samples), np.nan)
        # Beside a counter, a slot's own value is of the time before it, the rate of the time after.
        samples[slot] = np.where(counted, rates, before)
        samples = samples.drop(columns=counter)
    if MEMORY_FRACTION in samples:
        totals = samples[GPU].map({gpu.key: memory_gib(gpu) for gpu in gpus}).astype(float)
        used = samples[MEMORY_FRACTION] * totals
        if "mem.used_gib" not in samples:
            samples["mem.used_gib"] = np.nan
        samples["mem.used_gib"] = samples["mem.used_gib"].fillna(used)
        samples = samples.drop(columns=MEMORY_FRACTION)
    return samples


def memory_gib(gpu: GpuIdentity) -> float | None:
    """Return a device's memory: as it said, else as its model has."""
    if gpu.memory_gib is not None:
        return gpu.memory_gib
    model = hardware.find(gpu.model)
    return None if model is None else (model.usable_memory_gib or model.memory_gib)


def per_second(count: NDArray[np.float64], t_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a counter's rate from each reading to the next; NaN over a reset and at the end."""
    rate = np.full(len(count), np.nan)
    finite = np.flatnonzero(np.isfinite(count) & np.isfinite(t_s))
    steps, times = np.diff(count[finite]), np.diff(t_s[finite])
    good = (steps >= 0) & (times > 0)
    rate[finite[:-1][good]] = steps[good] / times[good]
    return rate


_DIGITS = 12


def hardware_of(merged: Recording, hints: Hints) -> tuple[Hardware, tuple[str, ...]]:
    """Return the hardware and notes on what was assumed.

    The model is the devices' own name for themselves; None where they disagree or say nothing and
    no hint helps. A hint that contradicts the one model of the data is noted and not used.
    """
    models = sorted({gpu.model for gpu in merged.gpus if gpu.model})
    memories = [gpu.memory_gib for gpu in merged.gpus if gpu.memory_gib and gpu.partition is None]
    distinct = {machines.model_name(model, None) for model in models}
    model, notes = hints.gpu, list[str]()
    if len(distinct) == 1 and (hints.gpu is None or hardware.find(models[0]) is not None):
        model, smallest = models[0], min(memories, default=None)
        if hints.gpu and machines.model_name(hints.gpu, smallest) != machines.model_name(
            model, smallest
        ):
            notes.append(Message("read.gpu-hint", hint=hints.gpu, gpu=model))
    elif models:
        cause = f"taken as {hints.gpu}, as --gpu says" if hints.gpu else "so the model is left open"
        kind = "different GPU models" if len(distinct) > 1 else "a GPU model that is not known"
        notes.append(f"{kind} in one source ({', '.join(models)}), {cause}.")
    if len(set(memories)) > 1:
        notes.append(Message("read.memory-sizes"))
    devices = boards_of(merged.gpus)
    hosts = {gpu.host for gpu in merged.gpus if gpu.host}
    observed = merged.observed or Observed()
    ready = Hardware(
        gpu=model,
        gpu_count=len(devices) or None,
        nodes=len(hosts) or (1 if merged.observed else None),
        gpu_memory_gib=round(min(memories), 6) if memories else None,
        cpu_cores=observed.cpu_cores or merged.cpu_cores,
        ram_gib=observed.ram_gib or merged.host_ram_gib,
        interconnect=observed.interconnect,
        machine=_machine(merged.gpus),
    )
    return structs.replace(ready, **observed.identity), tuple(notes)


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
    busy = [
        gpu
        for gpu, recording in pairs
        if any(slot.startswith("util.") for slot in recording.metrics)
    ]
    used = busy or [gpu for gpu, recording in pairs if recording.metrics]
    names = {_slice_named(gpu) for gpu in used}
    if names <= {None}:
        return None, ()
    several = "" in names or len({device_of(gpu.key) for gpu in used}) < len(used)
    if len(used) > 1 and (several or len(names) > 1):
        return None, (Message("read.several-slices"),)
    return names.pop() or None, (Message("read.slice-unknown"),) if several else ()


def _slice_named(gpu: GpuIdentity) -> str | None:
    """Return the slice that an instance, or the name of a device, says it is.

    None: a whole GPU; empty: an instance of a size that nobody stated.
    """
    name = (gpu.partition or "").split(" ")[0].lower()
    if re.fullmatch(hardware.SLICE_NAME, name):
        return name
    return hardware.slice_in_name(gpu.model) or (None if gpu.partition is None else "")


def _machine(gpus: Sequence[GpuIdentity]) -> str | None:
    """Return an id of the one machine that all devices stand in: a digest, as names are private."""
    names = {machines.host_name(gpu) for gpu in gpus if gpu.host}
    name = names.pop() if len(names) == 1 else None
    return name and f"host-{sha256(name.encode()).hexdigest()[:_DIGITS]}"
