"""Tells machines apart whose logs name GPUs by index alone: two nodes are never one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.telemetry.recording.recording import GPU, TIME
from pricing.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

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
    for one in recordings:
        free = [
            place
            for place, members in enumerate(machines)
            if not any(_conflict(one, other) for other in members)
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


def _conflict(one: Recording, other: Recording) -> bool:
    """Return whether two recordings say different things of one index at one time."""
    if not (_unnamed(one) or _unnamed(other)) or not (len(one.samples) and len(other.samples)):
        return False
    columns = _columns(one) & _columns(other)
    indices = _indices(one) & _indices(other)
    if not columns or not indices or one.source.format != other.source.format:
        return False
    begin = max(float(one.samples[TIME].min()), float(other.samples[TIME].min()))
    end = min(float(one.samples[TIME].max()), float(other.samples[TIME].max()))
    if begin > end:
        return False
    slots = sorted({slot for slot, _ in columns} & set(one.slots) & set(other.slots))
    return not _same_log(_between(one, begin, end, slots), _between(other, begin, end, slots))


def _columns(one: Recording) -> set[tuple[str, str]]:
    """Return which slots a source fills from columns of which names."""
    return {(c.slot, c.source) for c in one.source.columns if c.slot is not None and c.n}


def _indices(one: Recording) -> set[int | None]:
    return {gpu.index for gpu in one.gpus}


def _between(one: Recording, begin: float, end: float, slots: list[str]) -> pd.DataFrame:
    rows = one.samples[(one.samples[TIME] >= begin) & (one.samples[TIME] <= end)]
    index = {gpu.key: -1 if gpu.index is None else gpu.index for gpu in one.gpus}
    return rows[[TIME, *slots]].assign(**{GPU: rows[GPU].map(index)}).drop_duplicates()


def _same_log(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    fewer = min(len(one), len(other))
    return fewer > 0 and len(one.merge(other)) >= _SAME_ROWS * fewer


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
