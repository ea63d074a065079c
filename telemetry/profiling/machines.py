"""Tells machines and devices apart: two nodes whose logs name GPUs by index are never one."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.profile.join import Groups
from pricing import hardware
from pricing.errors import InputError
from pricing.message import Message
from telemetry.recording.recording import GPU, JOB, TIME, GpuIdentity, Recording

Readings = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class _Different:
    """The different rows of a log: a number for each, and when they were read, ascending."""

    hashes: NDArray[np.uint64]
    t_s: NDArray[np.float64]

    def between(self, begin: float, end: float) -> int:
        """Return how many were read from one time to another, both included."""
        first = np.searchsorted(self.t_s, begin, side="left")
        return int(np.searchsorted(self.t_s, end, side="right") - first)


_NO_NAME = ("localhost", "127.0.0.1", "[::1]")  # every machine calls itself so
MACHINE = "machine "  # and its number, in place of a host that the sources do not name
# Share of one log's rows that stand in the other to the digit: a copy, or a rotation with overlap.
_SAME_ROWS = 0.5
_SHOWN = 4
Slots = tuple[str, ...]


class LoggedRows:
    """What of a recording tells its machine.

    Args:
        recording: the readings of a file.

    Attributes:
        source: its name, format and columns.
        gpus: its devices.
        slots: what it measured.
        jobs: that its rows name.
        span_s: its first and last time; None where it has no row.
        kind: what decides whether it can contradict another one.
    """

    def __init__(self, recording: Recording) -> None:
        self._samples = samples = recording.samples
        clock = samples if len(samples) or recording.host is None else recording.host
        self._t_s = times = clock[TIME].to_numpy(dtype=float)
        self.source, self.gpus = recording.source, recording.gpus
        self.slots = frozenset(recording.slots)
        self.jobs = (
            {str(job) for job in samples[JOB].dropna().unique()} if JOB in samples else set()
        )
        self.span_s = (float(times.min()), float(times.max())) if len(times) else None
        self.kind = _Kind(
            str(self.source.format),
            frozenset((c.slot, c.source) for c in self.source.columns if c.slot and c.n),
            self.slots,
            frozenset(gpu.index for gpu in self.gpus),
            any(not named(gpu) for gpu in self.gpus),
        )
        self._rows: dict[Slots, _Different] = {}

    def rows(self, slots: Slots) -> _Different:
        """Return its different rows, by their values of some slots."""
        if slots not in self._rows:
            index = {gpu.key: -1.0 if gpu.index is None else float(gpu.index) for gpu in self.gpus}
            frame = self._samples[[TIME, *slots]].astype(float)
            frame[GPU] = self._samples[GPU].map(index).to_numpy(dtype=float)
            hashes = np.asarray(pd.util.hash_pandas_object(frame, index=False), dtype=np.uint64)
            distinct, firsts = np.unique(hashes, return_index=True)
            self._rows[slots] = _Different(distinct, np.sort(self._t_s[firsts]))
        return self._rows[slots]

    def readings(self, slot: str) -> Readings:
        """Return one slot: which of `gpus` each row is of, its time and its value."""
        numbers = {gpu.key: number for number, gpu in enumerate(self.gpus)}
        devices = np.asarray(self._samples[GPU].map(numbers), dtype=np.int64)
        return devices, self._t_s, np.asarray(self._samples[slot], dtype=np.float64)

    def shared_s(self, latter: Self) -> tuple[float, float] | None:
        """Return the begin and the end of the time that two logs share; None where there is none.

        One that begins at the instant at which the other ends goes on with it.
        """
        if self.span_s is None or latter.span_s is None:
            return None
        (first, last), (latter_first, latter_last) = self.span_s, latter.span_s
        begin, end = max(first, latter_first), min(last, latter_last)
        instants = first == last and latter_first == latter_last
        goes_on = not instants and (last == latter_first or latter_last == first)
        return None if goes_on or begin > end else (begin, end)

    @cached_property
    def varying(self) -> frozenset[str]:
        """The slots whose readings change: two idle machines log the same rows."""
        readings = self._samples[sorted(self.slots)].astype(float)
        groups = readings.groupby(self._samples[GPU].astype(object))
        changes = (groups.max() > groups.min()).any()
        return frozenset(slot for slot in self.slots if changes[slot])


class CommonRows:
    """Which of many logs have rows in common: one sort of all their rows tells.

    Args:
        logs: the logs; of each pair only those with a row in common are compared row by row.
    """

    def __init__(self, logs: Sequence[LoggedRows]) -> None:
        self._numbers = {log: number for number, log in enumerate(logs)}
        self._groups: dict[Slots, Groups] = {}

    def is_copy(self, former: LoggedRows, latter: LoggedRows, slots: Slots) -> bool:
        """Return whether half of the rows of the shorter one stand in the other, in their time."""
        shared_s, groups = former.shared_s(latter), self._meeting(slots)
        if shared_s is None or len({groups.of(self._numbers[log]) for log in (former, latter)}) > 1:
            return False
        logs = former.rows(slots), latter.rows(slots)
        fewer = min(log.between(*shared_s) for log in logs)
        same = len(np.intersect1d(logs[0].hashes, logs[1].hashes, assume_unique=True))
        return fewer > 0 and same >= _SAME_ROWS * fewer

    def _meeting(self, slots: Slots) -> Groups:
        """Return the logs that have these slots: of one group where rows of theirs are equal."""
        if slots not in self._groups:
            groups = self._groups[slots] = Groups(len(self._numbers))
            logs = [log for log in self._numbers if log.slots.issuperset(slots)]
            rows = [log.rows(slots).hashes for log in logs]
            order = np.argsort(hashes := np.concatenate(rows), kind="stable")
            owners = np.repeat([self._numbers[log] for log in logs], [len(own) for own in rows])
            pairs = np.column_stack((owners[order][:-1], owners[order][1:]))
            for pair in np.unique(pairs[np.diff(hashes[order]) == 0], axis=0).tolist():
                groups.join(*pair)
        return self._groups[slots]


def host_name(gpu: GpuIdentity) -> str | None:
    """Return the name of a device's machine, of an exporter's address without its port.

    None where the source does not tell it, or every machine calls itself so.
    """
    name = (gpu.host or "").rpartition(":")[0] or gpu.host
    return None if name is None or name in _NO_NAME or name.startswith(MACHINE) else name


def model_name(model: str, memory_gib: float | None = None) -> str:
    """Return the table's name of a model; without one, its own in lower case."""
    gpu = hardware.find(model, memory_gib=memory_gib)
    return gpu.name if gpu is not None else model.strip().lower()


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
    places: list[int] = []
    firsts: list[LoggedRows] = []
    problems: list[str] = []
    common = CommonRows(logs)
    for log in logs:
        occupied = set[int]()
        for latter, index in zip(logs, places, strict=False):
            if index not in occupied and contradict(log, latter, common):
                occupied.add(index)
        free = [index for index in range(len(firsts)) if index not in occupied]
        if len(free) > 1 and log.kind.unnamed:
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

    def compared_by(self, second: "_Kind", *, of_place: bool = False) -> Slots | None:
        """Return the slots by which rows are compared; None where the two do not meet.

        Devices that are named do not: their names tell, unless these are `of_place` alone.
        """
        columns = self.columns & second.columns
        rivals = self.form == second.form and columns and self.indices & second.indices
        if not (of_place or self.unnamed or second.unnamed) or not rivals:
            return None
        return tuple(sorted({s for s, _ in columns if s} & self.slots & second.slots))


def contradict(
    log: LoggedRows, latter: LoggedRows, common: CommonRows, *, of_place: bool = False
) -> bool:
    """Return whether two logs say different things of one index at one time.

    Those whose devices are named do not, unless they are so `of_place`, by host and index, alone.
    """
    slots = log.kind.compared_by(latter.kind, of_place=of_place)
    return (
        slots is not None and bool(log.shared_s(latter)) and not common.is_copy(log, latter, slots)
    )


def _told_apart(firsts: Sequence[LoggedRows]) -> str:
    names = [str(log.source.path) for log in firsts]
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    return Message("join.told-apart", files=shown, n=len(names))


def _either(log: LoggedRows, firsts: Sequence[LoggedRows]) -> str:
    names = [str(first.source.path) for first in firsts[:_SHOWN]]
    return Message("join.either-machine", file=str(log.source.path), files=names)


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
