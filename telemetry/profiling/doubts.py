"""What is odd about a recording and must be said, because it changes what a plan may conclude."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planner.profile.join import device_of
from planner.profile.kinds import SLOTS
from planner.profile.model import Health
from pricing import hardware
from pricing.errors import InputError
from pricing.listing import listed
from pricing.message import Message, join
from telemetry.profiling.window import (
    GAP_INTERVALS,
    ActiveWindow,
    Columns,
    durations,
    main_times,
    usual_interval,
)
from telemetry.recording.recording import JOB, TIME, GpuIdentity, Recording

_UTIL, _POWER = "util.kernel_time", "power.board_w"
_MEASURED = {_UTIL, "util.sm_active"}
_FEW = 10
_PERCENT = 0.01
_HOLDS_GIB = 1.0
_ABOVE_IDLE = 1.2
_FAST_S = 0.1
_STALE_SHARE = 0.5
_BUSY = 0.05
# A sensor's noise moves power by more than its last digit every few seconds.
_STUCK_S = 60.0
# Drivers hold a board to its limit; their readings are good to 5 %.
_OVER_LIMIT = 1.05
_GOOD_COVERAGE = 0.95
_SAME = 1e-9
_ROUNDED = 0.01  # two tools that write one reading differ by this share of it at most
# Loggers that write whole seconds and read more often have several rows a second.
_SLOWLY_S = 1.5


@dataclass(slots=True)
class Readings:
    """What is odd about the readings of the GPUs that have been looked at.

    Attributes:
        slots: which were read of any.
        gpus: keys of those that told anything.
        sentences: in the order of the GPUs.
        repeats: rows that repeat the one before.
        rows: their number.
    """

    slots: set[str] = field(default_factory=set)
    gpus: set[str] = field(default_factory=set)
    sentences: list[Message] = field(default_factory=list)
    repeats: int = 0
    rows: int = 0

    def look_at(self, key: str, rows: Columns, gpus: Sequence[GpuIdentity]) -> None:
        """Look at one GPU's rows, by time."""
        gpu = next(gpu for gpu in gpus if gpu.key == key)
        slots = {name for name in _slots(rows) if np.isfinite(rows[name]).any()}
        self.slots |= slots
        self.gpus |= {key} if slots else set()
        self.sentences += [text for doubt in _DOUBTS if (text := doubt(rows, gpu)) is not None]
        self.rows += len(rows[TIME])
        self.repeats += int((~_moved(rows)).sum())


def doubts_of(
    merged: Recording,
    seen: tuple[ActiveWindow, float | None],
    interval_hint_s: float | None,
    readings: Readings,
) -> Iterator[str]:
    """Yield sentences for `provenance.notes`, in a fixed order.

    Args:
        merged: the job; of its samples nothing is used.
        seen: window and coverage.
        interval_hint_s: the interval that the user gave.
        readings: of all its GPUs.
    """
    window, coverage = seen
    if not merged.timed and window.interval_s is not None:
        stated = Message("doubt.step-given", s=interval_hint_s) if interval_hint_s else None
        yield Message("doubt.no-times", step=stated or Message("doubt.step-guessed"))
    if window.interval_s is None:
        yield Message(f"doubt.one-{'instant' if merged.observed is None else 'reading'}")
    if coverage is not None and coverage < _GOOD_COVERAGE:
        yield Message("doubt.coverage", share=coverage)
    if not merged.gpus:
        yield Message("doubt.no-gpu")
    elif _MEASURED.isdisjoint(readings.slots):
        cause = Message(f"doubt.no-load-{'mig' if merged.mig else 'logged'}")
        yield Message("doubt.no-load", cause=cause)
    yield from (f"{fault.sentence}." for fault in lost(merged, readings.gpus))
    yield from _perhaps_fractions(merged)
    yield from _together(readings.sentences)
    if (
        window.interval_s is not None
        and window.interval_s < _FAST_S
        and readings.repeats > _STALE_SHARE * readings.rows
    ):
        yield Message("doubt.repeats", n=readings.repeats, rows=readings.rows)


def _together(sentences: Iterable[Message]) -> Iterator[Message]:
    """Yield sentences, those that differ in their GPU alone as one."""
    groups = defaultdict[str, list[Message]](list)
    for sentence in sentences:
        groups[Message(sentence.code, **{**sentence.params, "gpu": ""})].append(sentence)
    for first, *more in groups.values():
        gpus = [str(sentence.params.get("gpu")) for sentence in (first, *more)]
        yield Message(first.code, **{**first.params, "gpu": listed(gpus)}) if more else first


def lost(merged: Recording, read: set[str]) -> list[Health]:
    """Return devices that are named and told nothing of themselves, beside others that did."""
    boards = read | {device_of(key) for key in read}
    silent = [g for g in merged.gpus if g.key not in boards and g.partition is None]
    return [Health(gpu=_who(gpu), code="lost") for gpu in silent] if read else []


def _perhaps_fractions(merged: Recording) -> Iterator[str]:
    """Yield columns that are percent by name and never exceed 1, such as 0.93 for 93 %."""
    for source in merged.sources:
        for column in source.columns:
            unit_said = any(word in column.source.lower() for word in ("%", "percent", "pct"))
            small = column.max is not None and 0.0 < column.max <= 1.0 and (column.n or 0) >= _FEW
            if column.scale == _PERCENT and small and not unit_said:
                slot, highest = str(column.slot), column.max or 0.0
                yield Message("doubt.fraction", column=column.source, highest=highest, slot=slot)


def _slots(readings: Columns) -> list[str]:
    return [name for name in readings if name not in {TIME, JOB}]


def _moved(readings: Columns) -> NDArray[np.bool_]:
    """Return for each row whether any reading differs from the one before."""
    steps = (np.diff(np.nan_to_num(readings[slot], nan=-1.0)) != 0 for slot in _slots(readings))
    none = np.zeros(max(0, len(readings[TIME]) - 1), dtype=bool)
    return np.asarray(np.logical_or.reduce([none, *steps]))


def _constant(readings: Columns, gpu: GpuIdentity) -> Message | None:
    """Return doubt in utilisation that never moves from 0 or 100 % while the GPU is in use."""
    if _UTIL not in readings:
        return None
    values = readings[_UTIL][np.isfinite(readings[_UTIL])]
    if len(values) < _FEW or values.min() != values.max() or values[0] not in {0.0, 1.0}:
        return None
    if values[0] and _typical(readings, "util.sm_active"):  # another counter sees it at work
        return None
    used_gib = _typical(readings, "mem.used_gib")
    power = _typical(readings, _POWER)
    model = hardware.find(gpu.model, memory_gib=gpu.memory_gib)
    idle = model.idle_w if model is not None else None
    drawing = power is not None and idle is not None and power > _ABOVE_IDLE * idle
    if not drawing and (used_gib is None or used_gib <= _HOLDS_GIB) and not (values[0] and power):
        return None
    meanwhile = [
        Message("doubt.power-drawn", w=power) if power is not None else "",
        Message("doubt.memory-held", gib=used_gib) if used_gib is not None else "",
    ]
    counted = {"busy": float(values[0]), "n": len(values)}
    return Message("doubt.constant", gpu=_who(gpu), meanwhile=join(meanwhile, "and"), **counted)


def _above_limit(readings: Columns, gpu: GpuIdentity) -> Message | None:
    """Return doubt in power that stays above the enforced limit, which no board does."""
    limit = _typical(readings, "power.limit_w")
    power = None if limit is None else _typical(readings, _POWER)
    if power is None or limit is None or power <= _OVER_LIMIT * limit:
        return None
    return Message("doubt.above-limit", gpu=_who(gpu), w=power, limit=limit)


def _stuck(readings: Columns, gpu: GpuIdentity) -> Message | None:
    """Return a busy GPU whose readings, power too, never change: an old value is repeated."""
    if _UTIL not in readings or _POWER not in readings or len(readings[TIME]) < _FEW:
        return None
    power = np.nan_to_num(readings[_POWER], nan=-1.0)
    if np.diff(np.flatnonzero(np.diff(power)), prepend=-1, append=len(power) - 1).max() < _FEW:
        return None  # no run of rows is long enough, whatever the other columns say
    moved = np.append(True, _moved(readings))
    run = np.cumsum(moved)
    busy, t_s = readings[_UTIL] >= _BUSY, readings[TIME]
    first = np.flatnonzero(moved)
    last = np.append(first[1:], len(run)) - 1
    lengths_s = np.where(busy[first] & (last - first >= _FEW), t_s[last] - t_s[first], 0.0)
    worst = int(lengths_s.argmax())
    if lengths_s[worst] < _STUCK_S:
        return None
    return Message("doubt.stuck", gpu=_who(gpu), s=float(lengths_s[worst]))


def _load_unknown(readings: Columns, gpu: GpuIdentity) -> Message | None:
    """Return for how long other readings went on while the load was not told."""
    if _UTIL not in readings:
        return None
    times, loads = main_times(readings), readings[TIME][np.isfinite(readings[_UTIL])]
    usual_s = usual_interval(loads)
    if usual_s is None or len(times) == len(loads):
        return None
    steps = np.diff(np.concatenate((times[:1], loads, times[-1:])))
    unknown_s = float(steps[steps > GAP_INTERVALS * usual_s].sum())
    if not unknown_s:
        return None
    whole_s = float(times[-1] - times[0]) + usual_s
    return Message("doubt.load-unknown", gpu=_who(gpu), unknown=unknown_s, whole=whole_s)


def _contradicted(readings: Columns, gpu: GpuIdentity) -> Message | None:
    """Return what two rows of one instant say differently of a GPU.

    Raises:
        InputError: most instants are such: two GPUs are taken for one.
    """
    times = readings[TIME]
    same = np.diff(times, prepend=np.nan) == 0
    if not same.any():
        return None
    if JOB in readings:
        same &= np.diff(readings[JOB], prepend=np.nan) == 0
    slots = [name for name in readings if name in SLOTS]
    values = np.column_stack([readings[slot] for slot in slots] or [np.zeros(len(times))])
    before = np.concatenate((values[:1], values[:-1]))
    rounding = _SAME + _ROUNDED * np.maximum(np.abs(values), np.abs(before))
    steps = np.abs(values - before) > rounding
    places, instants = np.flatnonzero(same & steps.any(axis=1)), np.unique(times)
    if not len(places):
        return None
    odd = len(np.unique(times[places]))
    first, slot = int(places[0]), int(np.flatnonzero(steps[places[0]])[0])
    doubt = Message(
        "doubt.two-readings",
        gpu=_who(gpu),
        n=odd,
        instants=len(instants),
        slot=slots[slot],
        first=float(values[first - 1, slot]),
        second=float(values[first, slot]),
    )
    slow = len(instants) > 1 and np.median(np.diff(instants)) >= _SLOWLY_S
    if slow and odd > len(instants) / 2:
        raise InputError(Message("doubt.two-gpus", doubt=doubt))
    return Message("doubt.both-count", doubt=doubt)


_LEFT_S, _FEW_TIMES, _RISES = 600.0, 3, 1.2
_RELEASED, _RISE_S = 0.05, 900.0
# Two attempts that end full are one too many for chance; a cache that is full does not grow.
_AGAIN, _FULL, _GREW = 2, 0.95, 1.02
_CLIMBS = 0.02  # of the GPU, from one reading to the next
RAN_OUT = frozenset(("read.out-of-memory-again", "read.out-of-memory-once"))


def _job_left(readings: Columns, gpu: GpuIdentity) -> Message | None:
    """Return that a job left the GPU, its memory free and nothing running for ten minutes.

    Memory that rose before it left says that it ran out. Many such pauses are jobs one by one,
    unless each of them filled the GPU.
    """
    if _UTIL not in readings or "mem.used_gib" not in readings:
        return None
    finite = np.isfinite(readings[_UTIL]) & np.isfinite(readings["mem.used_gib"])
    t_s, busy, used_gib = (readings[slot][finite] for slot in ("t_s", _UTIL, "mem.used_gib"))
    usual_gib = float(np.median(used_gib)) if len(t_s) >= _FEW else 0.0
    free = (busy < _BUSY) & (used_gib < _RELEASED * usual_gib)
    if usual_gib < _HOLDS_GIB or not free.any():
        return None
    stood_s = durations(t_s)
    edges = np.flatnonzero(np.diff(free.astype(int), prepend=0, append=0))
    ends = [(a, b) for a, b in edges.reshape(-1, 2) if a]
    if len(ends) >= _AGAIN and all(
        _filled(used_gib, ends, at, gpu.memory_gib) for at in range(len(ends))
    ):
        idle_s = float(stood_s[free].sum())
        return Message(
            "read.out-of-memory-again",
            n=len(ends),
            last=float(used_gib.max()),
            minutes=idle_s / 60.0,
            share=idle_s / float(stood_s.sum()),
        )
    gaps = [(a, b) for a, b in ends if stood_s[a:b].sum() >= _LEFT_S]
    if [b for _, b in ends] == [len(t_s)] and _climbed(used_gib[: ends[0][0]], gpu.memory_gib):
        return Message("read.out-of-memory-once", last=float(used_gib.max()))
    if not 1 <= len(gaps) <= _FEW_TIMES:
        return None
    before = (t_s >= t_s[gaps[0][0]] - _RISE_S) & (t_s < t_s[gaps[0][0]])
    before[gaps[0][0] - 1] = True  # readings may be further apart than it takes to fill the GPU
    last_gib, first_gib = float(used_gib[before].max()), float(used_gib[before][0])
    left_s = sum(float(stood_s[a:b].sum()) for a, b in gaps)
    rose = last_gib >= _RISES * first_gib
    return Message(
        "read.out-of-memory" if rose else "read.job-ended",
        first=first_gib,
        last=last_gib,
        minutes=left_s / 60.0,
        share=left_s / float(stood_s.sum()),
    )


def _filled(
    held_gib: NDArray[np.float64], ends: list[tuple[int, int]], at: int, room_gib: float | None
) -> bool:
    """Return whether an attempt's memory still grew as it filled the GPU at its end."""
    begin, end = ends[at - 1][1] if at else 0, ends[at][0]
    half = (begin + end) // 2
    if room_gib is None or end - half < _FEW:
        return False
    first, second = float(held_gib[begin:half].max()), float(held_gib[half:end].max())
    return second >= _FULL * room_gib and second >= _GREW * first


def _climbed(held_gib: NDArray[np.float64], room_gib: float | None) -> bool:
    """Return whether memory climbed until the GPU was full, and no job worked on with it full.

    An allocator's cache is full from the start, or with one step: what climbs takes several.
    """
    half = len(held_gib) // 2
    if room_gib is None or len(held_gib) < _FEW:
        return False
    first, second = float(held_gib[:half].max()), float(held_gib[half:].max())
    steps = int((np.diff(held_gib) > _CLIMBS * room_gib).sum())
    return second >= _FULL * room_gib and second >= _RISES * first and steps >= _FEW_TIMES


_DOUBTS = (_job_left, _constant, _above_limit, _stuck, _load_unknown, _contradicted)


def _who(gpu: GpuIdentity) -> str:
    return f"GPU {gpu.index}" if gpu.index is not None else "the GPU"


def _typical(readings: Columns, slot: str) -> float | None:
    finite = readings[slot][np.isfinite(readings[slot])] if slot in readings else ()
    return float(np.median(finite)) if len(finite) else None
