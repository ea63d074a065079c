"""Brings recordings of one job together: one clock, one key per device, counters as rates."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pandas as pd

from planner.profile.metrics import SLOTS
from planner.telemetry.profiling.machines import MACHINE, machines_of, named
from planner.telemetry.recording.recording import (
    COUNTERS,
    GPU,
    JOB,
    MEMORY_FRACTION,
    TIME,
    GpuIdentity,
    Recording,
)
from pricing import hardware

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from planner.profile.model import Source
    from planner.telemetry.recording.labels import JobLabels
    from planner.telemetry.recording.observed import Observed
    from planner.telemetry.recording.served import Served

_T = TypeVar("_T")
ANY_JOB = "*"
_KEPT_COUNTERS = ("counter.energy_j",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What all sources of one or more jobs measured together.

    Attributes:
        samples: as `Recording.samples`, sorted by device and time; `job` is missing for readings
            that belong to no job and `*` where the source names none at all.
        host: as `Recording.host`, sorted by time.
        gpus: one identity per device or MIG instance.
        sources: what was read, in order.
        absolute: whether times count from 1970 UTC.
        timed: whether every source says when its rows were taken.
        local_time: whether a source's times carry no zone.
        mig: whether a device was split into instances.
        whole: whether every source is of the job at work alone.
        work: unit and number done, where a source says so.
        host_ram_gib: memory of the machine.
        observed: the job itself, where a source watched it.
        served: what servers of models told of themselves.
        labels: whose the jobs are, by name.
        notes: what a reader of the profile should know.
    """

    samples: pd.DataFrame
    host: pd.DataFrame | None
    gpus: tuple[GpuIdentity, ...]
    sources: tuple[Source, ...]
    absolute: bool
    timed: bool
    local_time: bool
    mig: bool
    whole: bool = False
    work: tuple[str, float] | None
    host_ram_gib: float | None
    observed: Observed | None
    served: tuple[Served, ...] = ()
    labels: Mapping[str, JobLabels] = field(default_factory=dict)
    notes: tuple[str, ...]


def merge(recordings: Sequence[Recording]) -> Merged:
    """Return the recordings as one; the caller orders them so that the answer does not vary."""
    notes = [note for one in recordings for note in one.notes]
    recordings = _aligned(recordings, notes)
    places = machines_of(recordings, notes)
    if len(set(places)) > 1:
        recordings = [_placed(one, place) for one, place in zip(recordings, places, strict=True)]
    names = _device_names(recordings, places)
    frames = [_renamed(one, names[i]) for i, one in enumerate(recordings)]
    samples = _whole(pd.concat([f for f in frames if len(f)] or frames, ignore_index=True))
    gpus = _identities(recordings, names)
    samples = _resolved(samples, gpus)
    hosts = [one.host for one in recordings if one.host is not None]
    return Merged(
        samples=samples,
        host=pd.concat(hosts).sort_values(TIME, ignore_index=True) if hosts else None,
        gpus=gpus,
        sources=tuple(one.source for one in recordings),
        absolute=any(one.absolute for one in recordings),
        timed=all(one.timed for one in recordings),
        local_time=any(one.local_time for one in recordings),
        mig=any(one.mig for one in recordings),
        whole=all(one.whole for one in recordings),
        work=next((one.work for one in recordings if one.work), None),
        host_ram_gib=next((one.host_ram_gib for one in recordings if one.host_ram_gib), None),
        observed=next((one.observed for one in recordings if one.observed), None),
        served=tuple(told for one in recordings for told in one.served),
        labels={job: whose for one in recordings for job, whose in one.labels.items()},
        notes=tuple(notes),
    )


def _aligned(recordings: Sequence[Recording], notes: list[str]) -> list[Recording]:
    """Let sources without a date start when the first dated one does."""
    starts = [
        float(one.samples[TIME].min()) for one in recordings if one.absolute and len(one.samples)
    ]
    if not starts or all(one.absolute for one in recordings):
        return list(recordings)
    out: list[Recording] = []
    for one in recordings:
        if one.absolute or not len(one.samples):
            out.append(one)
            continue
        moved = one.samples.copy()
        moved[TIME] += min(starts) - float(moved[TIME].min())
        notes.append(f"{one.source.path}: has no dates; taken to start with the other files.")
        out.append(replace(one, samples=moved))
    return out


def _placed(one: Recording, place: int) -> Recording:
    """Return a recording whose devices without a name stand in a machine of that number."""
    gpus = (g if named(g) else replace(g, host=f"{MACHINE}{place + 1}") for g in one.gpus)
    return replace(one, gpus=tuple(gpus))


def _device_names(recordings: Sequence[Recording], places: Sequence[int]) -> list[dict[str, str]]:
    """Return each recording's names of its keys: by uuid, else by index, else the only one."""
    models: dict[int | None, set[str]] = defaultdict(set)
    for gpu in (gpu for one in recordings for gpu in one.gpus):
        models[gpu.index] |= {gpu.model} if gpu.model else set()
    by_index: dict[tuple[int, int, str], set[tuple[str | None, str]]] = defaultdict(set)
    everyone: dict[int, set[str]] = defaultdict(set)
    placed = [(place, g) for place, one in zip(places, recordings, strict=True) for g in one.gpus]
    for place, gpu in placed:
        if gpu.uuid is not None:
            everyone[place].add(_name(gpu.uuid, gpu))
            if gpu.index is not None:
                own = (gpu.host, _name(gpu.uuid, gpu))
                by_index[place, gpu.index, gpu.partition or ""].add(own)
    indexed: dict[str, str] = {}
    for place, gpu in placed:
        if gpu.uuid is None and gpu.index is not None:
            near = by_index.get((place, gpu.index, gpu.partition or ""), set())
            same = {name for host, name in near if None in {host, gpu.host} or host == gpu.host}
            name = _indexed_name(gpu, models)
            indexed[name] = next(iter(same)) if len(same) == 1 else name
            everyone[place].add(indexed[name])

    def name_of(gpu: GpuIdentity, place: int) -> str:
        if gpu.uuid is not None:
            return _name(gpu.uuid, gpu)
        if gpu.index is not None:
            return indexed[_indexed_name(gpu, models)]
        alone = everyone[place]
        return next(iter(alone)) if len(alone) == 1 else f"{gpu.host or ''} only".lstrip()

    return [
        {gpu.key: name_of(gpu, place) for gpu in one.gpus}
        for place, one in zip(places, recordings, strict=True)
    ]


def _indexed_name(gpu: GpuIdentity, models: Mapping[int | None, set[str]]) -> str:
    """Return a device named by its index.

    By its model too where one index stands for several models.
    """
    model = gpu.model if len(models[gpu.index]) > 1 else None
    return _name(f"{gpu.host or ''} index {gpu.index or 0:04d} {model or ''}".rstrip(), gpu)


def _name(device: str, gpu: GpuIdentity) -> str:
    return f"{device}/{gpu.partition}" if gpu.partition else device


def device_of(key: str) -> str:
    """Return the physical device a key stands for."""
    return key.partition("/")[0]


def _renamed(one: Recording, names: dict[str, str]) -> pd.DataFrame:
    frame = one.samples.copy()
    frame[GPU] = frame[GPU].map(names)
    labelled = JOB in frame and frame[JOB].notna().any()
    frame[JOB] = frame[JOB].astype(object) if labelled else ANY_JOB
    return frame


def _whole(samples: pd.DataFrame) -> pd.DataFrame:
    """Sort by device, time and content, repeated rows once: the order of files is forgotten."""
    slots = sorted(c for c in samples.columns if c not in (TIME, GPU, JOB))
    ordered = samples[[GPU, TIME, JOB, *slots]]
    if _in_order(ordered):
        return ordered.reset_index(drop=True)
    ordered = ordered.sort_values([GPU, TIME, JOB, *slots], kind="stable", ignore_index=True)
    return ordered.drop_duplicates(ignore_index=True)


def _in_order(samples: pd.DataFrame) -> bool:
    """Return whether rows come by device and time, no two of one device at one time."""
    codes, keys = pd.factorize(samples[GPU])
    if len(codes) == 0 or codes.min() < 0 or list(keys) != sorted(keys):
        return False
    steps, times = np.diff(codes), np.diff(samples[TIME].to_numpy(dtype=float))
    return bool(((steps > 0) | ((steps == 0) & (times > 0))).all())


def _identities(
    recordings: Sequence[Recording], names: list[dict[str, str]]
) -> tuple[GpuIdentity, ...]:
    merged: dict[str, GpuIdentity] = {}
    for i, one in enumerate(recordings):
        for gpu in one.gpus:
            key = names[i][gpu.key]
            before = merged.get(key, GpuIdentity(key=key))
            merged[key] = GpuIdentity(
                key=key,
                index=_first(before.index, gpu.index),
                uuid=_first(before.uuid, gpu.uuid),
                model=_first(before.model, gpu.model),
                memory_gib=_first(before.memory_gib, gpu.memory_gib),
                partition=_first(before.partition, gpu.partition),
                host=_first(before.host, gpu.host),
            )
    return tuple(sorted(merged.values(), key=_order))


def _first(one: _T | None, other: _T | None) -> _T | None:
    return one if one is not None else other


def _order(gpu: GpuIdentity) -> tuple[str, int, str]:
    return (gpu.host or "", gpu.index if gpu.index is not None else 1 << 30, gpu.key)


def _resolved(samples: pd.DataFrame, gpus: tuple[GpuIdentity, ...]) -> pd.DataFrame:
    """Return counters as slots per second, memory shares as GiB."""
    for counter, slot in COUNTERS.items():
        if counter not in samples or counter in _KEPT_COUNTERS:
            continue
        rates = np.full(len(samples), np.nan)
        counted = np.isfinite(samples[counter].to_numpy())
        for rows in samples.groupby(GPU, sort=False).indices.values():
            rates[rows] = per_second(
                samples[counter].to_numpy()[rows], samples[TIME].to_numpy()[rows]
            )
            counted[rows] &= np.isfinite(rates[rows]).any()  # one reading of a counter says nothing
        most = SLOTS[slot].high
        if most is not None:  # times of counter and sample are moments apart
            rates = np.minimum(rates, most)
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
    known = hardware.find(gpu.model)
    return None if known is None else (known.usable_memory_gib or known.memory_gib)


def per_second(count: NDArray[np.float64], t_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a counter's rate from each reading to the next; NaN over a reset and at the end."""
    rate = np.full(len(count), np.nan)
    known = np.flatnonzero(np.isfinite(count) & np.isfinite(t_s))
    steps, times = np.diff(count[known]), np.diff(t_s[known])
    good = (steps >= 0) & (times > 0)
    rate[known[:-1][good]] = steps[good] / times[good]
    return rate
