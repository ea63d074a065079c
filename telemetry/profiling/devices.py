"""One key for each device over all recordings of a job: by uuid, by index, or the only one."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from telemetry.profiling.machines import MACHINE, named
from telemetry.recording.recording import GpuIdentity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_T = TypeVar("_T")
Devices = tuple[GpuIdentity, ...]
"""The devices of one recording."""


def placed(recordings: Sequence[Devices], places: Sequence[int]) -> list[Devices]:
    """Return the devices, those without a name in the machine of their recording's number."""
    if len(set(places)) < 2:  # noqa: PLR2004 - one machine needs no name
        return list(recordings)
    return [
        tuple(g if named(g) else replace(g, host=f"{MACHINE}{place + 1}") for g in gpus)
        for gpus, place in zip(recordings, places, strict=True)
    ]


def device_names(recordings: Sequence[Devices], places: Sequence[int]) -> list[dict[str, str]]:
    """Return each recording's names of its keys: by uuid, index, as the only one, or the key."""
    models: dict[int | None, set[str]] = defaultdict(set)
    for gpu in (gpu for gpus in recordings for gpu in gpus):
        models[gpu.index] |= {gpu.model} if gpu.model else set()
    by_index: dict[tuple[int, int, str], set[tuple[str | None, str]]] = defaultdict(set)
    everyone: dict[int, set[str]] = defaultdict(set)
    everywhere = [(p, g) for p, gpus in zip(places, recordings, strict=True) for g in gpus]
    for place, gpu in everywhere:
        if gpu.uuid is not None:
            everyone[place].add(_name(gpu.uuid, gpu))
            if gpu.index is not None:
                own = (gpu.host, _name(gpu.uuid, gpu))
                by_index[place, gpu.index, gpu.partition or ""].add(own)
    indexed: dict[str, str] = {}
    for place, gpu in everywhere:
        if gpu.uuid is None and gpu.index is not None:
            near = by_index.get((place, gpu.index, gpu.partition or ""), set())
            same = {name for host, name in near if None in {host, gpu.host} or host == gpu.host}
            name = _indexed_name(gpu, models)
            indexed[name] = next(iter(same)) if len(same) == 1 else name
            everyone[place].add(indexed[name])

    def name_of(gpu: GpuIdentity, place: int, beside: Devices) -> str:
        if gpu.uuid is not None:
            return _name(gpu.uuid, gpu)
        if gpu.index is not None:
            return indexed[_indexed_name(gpu, models)]
        return _unnumbered_name(gpu, beside, everyone[place])

    return [
        {gpu.key: name_of(gpu, place, gpus) for gpu in gpus}
        for place, gpus in zip(places, recordings, strict=True)
    ]


def _unnumbered_name(gpu: GpuIdentity, beside: Devices, alone: set[str]) -> str:
    """Return the name of a device without uuid and index, given those beside it and the others."""
    if sum(one.uuid is None and one.index is None for one in beside) > 1:
        return f"{gpu.host or ''} {gpu.key}".lstrip()  # told apart by PCI address alone
    return next(iter(alone)) if len(alone) == 1 else f"{gpu.host or ''} only".lstrip()


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


def identities(recordings: Sequence[Devices], names: Sequence[Mapping[str, str]]) -> Devices:
    """Return what all recordings say of each device, in the order of a profile."""
    merged: dict[str, GpuIdentity] = {}
    for gpus, named_as in zip(recordings, names, strict=True):
        for gpu in gpus:
            key = named_as[gpu.key]
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
