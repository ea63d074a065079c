"""Tells machines and devices apart: two nodes whose logs name GPUs by index are never one."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.profile.model import Source
from pricing.errors import InputError
from telemetry.recording.recording import GPU, TIME, GpuIdentity, Recording

Readings = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Different:
    """The different rows of a log: a number for each, and when they were read, ascending."""

    hashes: NDArray[np.uint64]
    t_s: NDArray[np.float64]

    @classmethod
    def of(cls, hashes: NDArray[np.uint64], t_s: NDArray[np.float64]) -> "Different":
        """Return the rows with a number and a time each, repeated ones once."""
        once, firsts = np.unique(hashes, return_index=True)
        return cls(once, np.sort(t_s[firsts]))

    def between(self, begin: float, end: float) -> int:
        """Return how many were read from one time to another, both included."""
        first = np.searchsorted(self.t_s, begin, side="left")
        return int(np.searchsorted(self.t_s, end, side="right") - first)


class _SharedRows:
    """How many rows each log shares with each other one."""

    def __init__(self, logs: Sequence[Different]) -> None:
        self.logs = logs
        hashes = np.concatenate([log.hashes for log in logs])
        order = np.argsort(hashes, kind="stable")
        owners = np.repeat(np.arange(len(logs)), [len(log.hashes) for log in logs])
        self._hashes, self._owners = hashes[order], owners[order]

    def shared_with(self, log: int) -> NDArray[np.int64]:
        """Return how many of a log's rows stand in each log."""
        own = self.logs[log].hashes
        first, last = (np.searchsorted(self._hashes, own, side=s) for s in ("left", "right"))
        counts = last - first
        places = np.arange(counts.sum()) + np.repeat(first + counts - counts.cumsum(), counts)
        return np.bincount(self._owners[places], minlength=len(self.logs))


_NO_NAME = ("localhost", "127.0.0.1", "[::1]")  # every machine calls itself so
MACHINE = "machine "  # and its number, in place of a host that the sources do not name
# Share of one log's rows that stand in the other to the digit: a copy, or a rotation with overlap.
_SAME_ROWS = 0.5
_SHOWN = 4
Slots = tuple[str, ...]


def _no_readings(slot: str) -> Readings:
    raise NotImplementedError(slot)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRows:
    """What of a recording tells its machine.

    Attributes:
        source: its name, format and columns.
        gpus: its devices.
        slots: what it measured.
        span_s: its first and last time; None where it has no row.
        rows: its different rows, by their values of some slots.
        readings: of one slot: which of `gpus` each row is of, its time and its value.
    """

    source: Source
    gpus: tuple[GpuIdentity, ...]
    slots: frozenset[str]
    span_s: tuple[float, float] | None
    rows: Callable[[Slots], Different]
    readings: Callable[[str], Readings] = _no_readings

    @property
    def unnamed(self) -> bool:
        """Whether a device does not say which one it is."""
        return any(not named(gpu) for gpu in self.gpus)

    @property
    def kind(self) -> "_Kind":
        """What decides whether it can contradict another one."""
        return _Kind(
            str(self.source.format),
            frozenset((c.slot, c.source) for c in self.source.columns if c.slot and c.n),
            self.slots,
            frozenset(gpu.index for gpu in self.gpus),
            self.unnamed,
        )


def logged_of(recording: Recording) -> LoggedRows:
    """Return what of a recording tells its machine."""
    samples, gpus = recording.samples, recording.gpus
    clock = samples if len(samples) or recording.host is None else recording.host
    times = clock[TIME].to_numpy(dtype=float)

    @cache
    def rows(compared: Slots) -> Different:
        index = {gpu.key: -1.0 if gpu.index is None else float(gpu.index) for gpu in gpus}
        frame = samples[[TIME, *compared]].astype(float)
        frame[GPU] = samples[GPU].map(index).to_numpy(dtype=float)
        hashes = pd.util.hash_pandas_object(frame, index=False).to_numpy()
        return Different.of(np.asarray(hashes, dtype=np.uint64), times)

    def readings(slot: str) -> Readings:
        numbers = {gpu.key: number for number, gpu in enumerate(gpus)}
        devices = np.asarray(samples[GPU].map(numbers), dtype=np.int64)
        return devices, times, np.asarray(samples[slot], dtype=np.float64)

    return LoggedRows(
        source=recording.source,
        gpus=gpus,
        slots=frozenset(recording.slots),
        span_s=(float(times.min()), float(times.max())) if len(times) else None,
        rows=rows,
        readings=readings,
    )


def host_name(gpu: GpuIdentity) -> str | None:
    """Return the name of a device's machine, of an exporter's address without its port.

    None where the source does not tell it, or every machine calls itself so.
    """
    name = (gpu.host or "").rpartition(":")[0] or gpu.host
    return None if name is None or name in _NO_NAME or name.startswith(MACHINE) else name


def touch(span_s: tuple[float, float], other_s: tuple[float, float]) -> bool:
    """Return whether one of two logs ends at the instant at which the other begins."""
    instants = span_s[0] == span_s[1] and other_s[0] == other_s[1]
    return not instants and (span_s[1] == other_s[0] or other_s[1] == span_s[0])


def machines_of(logs: Sequence[LoggedRows], notes: list[str]) -> list[int]:
    """Return for each recording the number of its machine, from 0.

    Recordings without uuid and host are of one machine as long as they complement each other:
    other readings, other times, or another tool. Where the same columns were logged for the same
    index at the same time, and not the same rows, they are of two.

    Args:
        logs: the recordings, in the order of their names.
        notes: takes a sentence where machines were told apart.

    Raises:
        InputError: a recording could be of either of two machines.
    """
    contradict = _contradictions(logs)
    places: list[int] = []
    firsts: list[LoggedRows] = []
    problems: list[str] = []
    for i, log in enumerate(logs):
        occupied = set[int]()
        for j, index in enumerate(places):
            if index not in occupied and contradict(i, j):
                occupied.add(index)
        free = [index for index in range(len(firsts)) if index not in occupied]
        if len(free) > 1 and log.unnamed:
            problems.append(_either(log, [firsts[index] for index in free]))
        places.append(free[0] if free else len(firsts))
        if not free:
            firsts.append(log)
    if problems:
        raise InputError(problems)
    if len(firsts) > 1:
        notes.append(_told_apart(firsts))
    return places


def named(gpu: GpuIdentity) -> bool:
    """Return whether a device says which one it is among those of all machines."""
    return gpu.uuid is not None or gpu.host is not None


@dataclass(frozen=True, slots=True)
class _Kind:
    form: str
    columns: frozenset[tuple[str | None, str]]
    slots: frozenset[str]
    indices: frozenset[int | None]
    unnamed: bool

    def compared_by(self, second: "_Kind") -> Slots | None:
        """Return the slots by which rows are compared; None where the two do not meet."""
        columns = self.columns & second.columns
        rivals = self.form == second.form and columns and self.indices & second.indices
        if not (self.unnamed or second.unnamed) or not rivals:
            return None
        return tuple(sorted({s for s, _ in columns if s} & self.slots & second.slots))


def _contradictions(logs: Sequence[LoggedRows]) -> Callable[[int, int], bool]:
    """Return what tells whether two of the logs say different things of one index at one time."""
    kinds = [log.kind for log in logs]
    compared = cache(_Kind.compared_by)

    @cache
    def shared(slots: Slots) -> _SharedRows:
        of_slots = [log.rows(slots) if log.slots.issuperset(slots) else None for log in logs]
        without = Different(np.empty(0, dtype=np.uint64), np.empty(0))
        return _SharedRows([without if rows is None else rows for rows in of_slots])

    @cache
    def same_rows(slots: Slots, log: int) -> NDArray[np.int64]:
        return shared(slots).shared_with(log)

    def contradict(i: int, j: int) -> bool:
        spans = (logs[i].span_s, logs[j].span_s)
        slots = compared(kinds[i], kinds[j])
        if slots is None or spans[0] is None or spans[1] is None or touch(spans[0], spans[1]):
            return False
        begin, end = max(spans[0][0], spans[1][0]), min(spans[0][1], spans[1][1])
        same = same_rows(slots, i)[j] if begin <= end else 0
        # A row that stands in both lies between both times, for its time is a part of it.
        fewer = min(shared(slots).logs[k].between(begin, end) for k in (i, j)) if same else 0
        return begin <= end and not (fewer > 0 and same >= _SAME_ROWS * fewer)

    return contradict


def _told_apart(firsts: Sequence[LoggedRows]) -> str:
    names = [str(log.source.path) for log in firsts]
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    return (
        f"{shown}: the same columns of the same GPU index at the same time, and no uuid, so they "
        f"are taken as {len(names)} machines. Log uuid, and it is known."
    )


def _either(log: LoggedRows, firsts: Sequence[LoggedRows]) -> str:
    names = " or of ".join(str(first.source.path) for first in firsts[:_SHOWN])
    return (
        f"{log.source.path}: names no uuid and no host, so it may be of the machine of {names}. "
        "Import the files of each machine alone (a folder a machine), or log uuid."
    )


_TOLD = ("index", "uuid", "model", "memory_gib", "partition", "host")
Devices = tuple[GpuIdentity, ...]
"""The devices of one recording."""


def placed(recordings: Sequence[Devices], places: Sequence[int]) -> list[Devices]:
    """Return the devices, those without a name in the machine of their recording's number."""
    if len(set(places)) < 2:  # noqa: PLR2004 - one machine needs no name
        return list(recordings)
    return [
        tuple(g if named(g) else replace(g, host=f"{MACHINE}{machine + 1}") for g in gpus)
        for gpus, machine in zip(recordings, places, strict=True)
    ]


def device_names(recordings: Sequence[Devices], places: Sequence[int]) -> list[dict[str, str]]:
    """Return each recording's names of its keys: by uuid, index, as the only one, or the key."""
    models: dict[int | None, set[str]] = defaultdict(set)
    for gpu in (gpu for gpus in recordings for gpu in gpus):
        models[gpu.index] |= {gpu.model} if gpu.model else set()
    by_index: dict[tuple[int, int, str], set[tuple[str | None, str]]] = defaultdict(set)
    everyone: dict[int, set[str]] = defaultdict(set)
    everywhere = [(p, g) for p, gpus in zip(places, recordings, strict=True) for g in gpus]
    for machine, gpu in everywhere:
        if gpu.uuid is not None:
            everyone[machine].add(_name(gpu.uuid, gpu))
            if gpu.index is not None:
                own = (gpu.host, _name(gpu.uuid, gpu))
                by_index[machine, gpu.index, gpu.partition or ""].add(own)
    indexed: dict[str, str] = {}
    for machine, gpu in everywhere:
        if gpu.uuid is None and gpu.index is not None:
            near = by_index.get((machine, gpu.index, gpu.partition or ""), set())
            same = {name for host, name in near if None in {host, gpu.host} or host == gpu.host}
            name = _indexed_name(gpu, models)
            indexed[name] = next(iter(same)) if len(same) == 1 else name
            everyone[machine].add(indexed[name])

    def name_of(gpu: GpuIdentity, machine: int, neighbours: Devices) -> str:
        if gpu.uuid is not None:
            return _name(gpu.uuid, gpu)
        if gpu.index is not None:
            return indexed[_indexed_name(gpu, models)]
        return _unnumbered_name(gpu, neighbours, everyone[machine])

    return [
        {gpu.key: name_of(gpu, machine, gpus) for gpu in gpus}
        for machine, gpus in zip(places, recordings, strict=True)
    ]


def _unnumbered_name(gpu: GpuIdentity, neighbours: Devices, lone: set[str]) -> str:
    """Return the name of a device without uuid and index, given those beside it and the others."""
    if sum(near.uuid is None and near.index is None for near in neighbours) > 1:
        return f"{gpu.host or ''} {gpu.key}".lstrip()  # told apart by PCI address alone
    return next(iter(lone)) if len(lone) == 1 else f"{gpu.host or ''} only".lstrip()


def _indexed_name(gpu: GpuIdentity, models: Mapping[int | None, set[str]]) -> str:
    """Return a device named by its index.

    By its model too where one index stands for several models.
    """
    model = gpu.model if len(models[gpu.index]) > 1 else None
    return _name(f"{gpu.host or ''} index {gpu.index or 0:04d} {model or ''}".rstrip(), gpu)


def _name(device: str, gpu: GpuIdentity) -> str:
    return f"{device}/{gpu.partition}" if gpu.partition else device


def identities(recordings: Sequence[Devices], names: Sequence[Mapping[str, str]]) -> Devices:
    """Return what all recordings say of each device, in the order of a profile."""
    merged: dict[str, GpuIdentity] = {}
    for gpus, named_as in zip(recordings, names, strict=True):
        for gpu in gpus:
            before = merged.setdefault(named_as[gpu.key], replace(gpu, key=named_as[gpu.key]))
            missing = {f: getattr(gpu, f) for f in _TOLD if getattr(before, f) is None}
            merged[before.key] = replace(before, **missing)
    return tuple(sorted(merged.values(), key=_order))


def _order(gpu: GpuIdentity) -> tuple[str, int, str]:
    return (gpu.host or "", gpu.index if gpu.index is not None else 1 << 30, gpu.key)
