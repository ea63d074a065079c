"""Tells machines apart whose logs name GPUs by index alone: two nodes are never one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from planner.telemetry.recording.recording import GPU, TIME
from pricing.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.telemetry.recording.recording import GpuIdentity, Recording

MACHINE = "machine "  # and its number, in place of a host that the sources do not name
# Share of one log's rows that stand in the other to the digit: a copy, or a rotation with overlap.
_SAME_ROWS = 0.5
_SHOWN = 4


def machines_of(recordings: Sequence[Recording], notes: list[str]) -> list[int]:
    """Return for each recording the number of its machine, from 0.

    Recordings without uuid and host are of one machine as long as they complement each other:
    other readings, other times, or another tool. Where the same columns were logged for the same
    index at the same time, and not the same rows, they are of two.

    Args:
        recordings: in the order of their names.
        notes: takes a sentence where machines were told apart.

    Raises:
        InputError: a recording could be of either of two machines.
    """
    machines: list[list[Recording]] = []
    places: list[int] = []
    problems: list[str] = []
    rows = _Rows()
    for one in recordings:
        free = [
            place
            for place, members in enumerate(machines)
            if not any(_conflict(one, other, rows) for other in members)
        ]
        if len(free) > 1 and _unnamed(one):
            problems.append(_either(one, [machines[place][0] for place in free]))
        if free:
            machines[free[0]].append(one)
        else:
            machines.append([one])
        places.append(free[0] if free else len(machines) - 1)
    if problems:
        raise InputError(problems)
    if len(machines) > 1:
        notes.append(_told_apart([members[0] for members in machines]))
    return places


def named(gpu: GpuIdentity) -> bool:
    """Return whether a device says which one it is among those of all machines."""
    return gpu.uuid is not None or gpu.host is not None


def _unnamed(one: Recording) -> bool:
    return any(not named(gpu) for gpu in one.gpus)


def _conflict(one: Recording, other: Recording, rows: _Rows) -> bool:
    """Return whether two recordings say different things of one index at one time."""
    if not (_unnamed(one) or _unnamed(other)) or not (len(one.samples) and len(other.samples)):
        return False
    mine, theirs = rows.about(one), rows.about(other)
    columns = mine.columns & theirs.columns
    if not columns or not mine.indices & theirs.indices:
        return False
    if one.source.format != other.source.format:
        return False
    begin, end = max(mine.first_s, theirs.first_s), min(mine.last_s, theirs.last_s)
    if begin > end:
        return False
    slots = tuple(sorted({slot for slot, _ in columns} & set(one.slots) & set(other.slots)))
    # A row that stands in both lies between both times, for its time is a part of it.
    here, there = rows.different(one, slots), rows.different(other, slots)
    same = np.isin(here.hashes, there.hashes, assume_unique=True, kind="sort").sum()
    fewer = min(here.between(begin, end), there.between(begin, end))
    return not (fewer > 0 and same >= _SAME_ROWS * fewer)


@dataclass(frozen=True, slots=True)
class _About:
    """What recordings are compared by: columns and slots, indices, first and last time."""

    columns: frozenset[tuple[str, str]]
    indices: frozenset[int | None]
    first_s: float
    last_s: float


@dataclass(frozen=True, slots=True)
class _Different:
    """Different rows of a recording: a number for each, and when it was read."""

    hashes: NDArray[np.uint64]
    t_s: NDArray[np.float64]

    def between(self, begin: float, end: float) -> int:
        return int(((self.t_s >= begin) & (self.t_s <= end)).sum())


@dataclass(slots=True)
class _Rows:
    """Rows of recordings as numbers, so that a thousand logs are compared in a minute."""

    _about: dict[int, _About] = field(default_factory=dict)
    _different: dict[tuple[int, tuple[str, ...]], _Different] = field(default_factory=dict)

    def about(self, one: Recording) -> _About:
        if id(one) not in self._about:
            times = one.samples[TIME].to_numpy(dtype=float)
            self._about[id(one)] = _About(
                frozenset((c.slot, c.source) for c in one.source.columns if c.slot and c.n),
                frozenset(gpu.index for gpu in one.gpus),
                float(times.min()),
                float(times.max()),
            )
        return self._about[id(one)]

    def different(self, one: Recording, slots: tuple[str, ...]) -> _Different:
        key = (id(one), slots)
        if key not in self._different:
            index = {gpu.key: -1 if gpu.index is None else gpu.index for gpu in one.gpus}
            frame = one.samples[[TIME, *slots]].assign(**{GPU: one.samples[GPU].map(index)})
            every = pd.util.hash_pandas_object(frame.astype(float), index=False).to_numpy()
            hashes, place = np.unique(np.asarray(every, dtype=np.uint64), return_index=True)
            self._different[key] = _Different(hashes, frame[TIME].to_numpy(dtype=float)[place])
        return self._different[key]


def _told_apart(firsts: Sequence[Recording]) -> str:
    names = [str(one.source.path) for one in firsts]
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    return (
        f"{shown}: the same columns of the same GPU index at the same time, and no uuid, so they "
        f"are taken as {len(names)} machines. Log uuid, and it is known."
    )


def _either(one: Recording, firsts: Sequence[Recording]) -> str:
    names = " or of ".join(str(first.source.path) for first in firsts[:_SHOWN])
    return (
        f"{one.source.path}: names no uuid and no host, so it may be of the machine of {names}. "
        "Import the files of each machine alone (a folder a machine), or log uuid."
    )
