"""What a large CSV log holds, as readings in slot units with the checks that no reader may skip."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from planner.profile.kinds import SLOTS
from planner.profile.model import Column
from telemetry.large.columns import MISSING, NumberColumn, as_floats, recounted
from telemetry.large.smi_log import SmiLog, columns_by_target, read_log
from telemetry.large.table import NeedsSlowReaderError
from telemetry.profiling.machines import (
    Different,
    LoggedRows,
    device_names,
    identities,
    machines_of,
    placed,
)
from telemetry.readers.column_names import meanings
from telemetry.readers.payload import Payload, Stream
from telemetry.readers.recording_builder import (
    BUSY,
    FEWEST_BLANKS,
    NEVER_ZERO,
    NOT_WHILE_BUSY,
    RecordingBuilder,
    plausible_identity,
    real_uuid,
)
from telemetry.recording.recording import GPU, TIME, GpuIdentity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from planner.profile.model import Source
    from telemetry.profiling.machines import Readings
    from telemetry.readers.hints import Hints

FORMAT = "nvidia-smi-csv"
_MEMORY, _LIMIT, _POWER, _USED = "memory.total", "power.limit_w", "power.board_w", "mem.used_gib"
_INDEX = re.compile(r"\s*(?:[A-Za-z_: ]*?)(\d{1,4})\s*")
_LEAST_USED = 0.1
_MOST_WATTS = 3000.0


@dataclass(frozen=True, slots=True)
class Counted:
    """A slot's values, in `scale / per` of its unit; in the unit itself where per is 0."""

    counts: NDArray[np.int32] | NDArray[np.float64]
    per: int
    scale: float = 1.0

    def floats(self, rows: slice | NDArray[np.int64]) -> NDArray[np.float64]:
        """Return some rows in the slot's unit, NaN where missing."""
        values = as_floats(self.counts[rows], self.per)
        return values if self.per == 0 else values * self.scale


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeRecording:
    """The readings of a large source.

    Attributes:
        t_s: when each row was taken, seconds.
        codes: which of `gpus` it is of.
        gpus: the devices, in the order of a profile.
        slots: readings by slot.
        sources: of each log, its name, figures and what was left out.
        notes: what a reader of the profile should know.
        absolute: whether times count from 1970 UTC.
        local_time: whether they carry no zone.
        mig: whether a device was split.
    """

    t_s: NDArray[np.float64]
    codes: NDArray[np.int32]
    gpus: tuple[GpuIdentity, ...]
    slots: Mapping[str, Counted]
    sources: tuple[Source, ...]
    notes: tuple[str, ...]
    absolute: bool
    local_time: bool
    mig: bool


def read_large(path: str, hints: Hints) -> LargeRecording:
    """Return the readings of a CSV log.

    Raises:
        NeedsSlowReaderError: it is not a plain log; the exact reader takes it.
        InputError: it cannot be read.
    """
    with Stream(path) as stream:
        log = read_log(stream, hints)
        payload = Payload(name=stream.name, data=b"", sha256=None, path=path)
    builder = RecordingBuilder(payload, FORMAT)
    builder.dropped += log.dropped
    builder.rows_read = log.rows + sum(log.dropped.values())
    for i, holds in meanings(log.header, hints).items():
        builder.ledger.enter(log.header[i], log.rows, read=holds is not None)
    gpus, place = _identities(log)
    codes = np.asarray(place[log.codes], dtype=np.int32)
    times = log.times
    timed = np.isfinite(times.t_s)
    if timed.sum() < _LEAST_USED * log.rows:
        raise NeedsSlowReaderError
    readings = _readings(log, builder)
    gpus = _with_memory(gpus, readings.pop(_MEMORY, None), codes)
    t_s = times.t_s
    if not timed.all():
        builder.dropped["timestamp not readable"] += int((~timed).sum())
        t_s, codes = t_s[timed], codes[timed]
        readings = {s: Counted(c.counts[timed], c.per, c.scale) for s, c in readings.items()}
        if not np.bincount(codes, minlength=len(gpus)).all():
            raise NeedsSlowReaderError  # a device without a single time
    _leave_out_blanks(readings, gpus, codes, builder)
    _leave_out_impossible(readings, gpus, codes, builder)
    if times.stepped_back:
        builder.notes.append("the clock was set back within the file (end of summer time?).")
    source, notes = builder.source_and_notes(gpus)
    return LargeRecording(
        t_s=t_s,
        codes=codes,
        gpus=gpus,
        slots={slot: column for slot, column in readings.items() if slot in SLOTS},
        sources=(source,),
        notes=notes,
        absolute=times.absolute,
        local_time=times.local,
        mig=any(column.get("mig") == "Enabled" for column in log.devices),
    )


def _identities(log: SmiLog) -> tuple[tuple[GpuIdentity, ...], NDArray[np.int32]]:
    """Return the devices in their order, and the place of each device code among them."""
    by_uuid = all(real_uuid(device.get("uuid")) for device in log.devices)
    gpus_by_key: dict[str, GpuIdentity] = {}
    keys = []
    for device in log.devices:
        index = _INDEX.fullmatch(device.get("index", ""))
        if "index" in device and index is None:
            raise NeedsSlowReaderError
        name = index[1] if index else device.get("bus")
        host = _text(device.get("host"))
        if not by_uuid and not name:
            raise NeedsSlowReaderError
        key = (
            str(device["uuid"])
            if by_uuid
            else f"{host or ''} index {int(index[1]) if index else name}"
        )
        keys.append(key)
        gpu = GpuIdentity(
            key=key,
            index=int(index[1]) if index else None,
            uuid=real_uuid(device.get("uuid")),
            model=_text(device.get("name")),
            host=host,
        )
        if gpus_by_key.setdefault(key, gpu).index != gpu.index:
            raise NeedsSlowReaderError  # one uuid, blanked, of several devices
    last = 1 << 30
    gpus = sorted(
        gpus_by_key.values(),
        key=lambda g: (g.host or "", last if g.index is None else g.index, g.key),
    )
    place = {gpu.key: i for i, gpu in enumerate(gpus)}
    return tuple(gpus), np.array([place[key] for key in keys], dtype=np.int32)


def _text(cell: str | None) -> str | None:
    text = (cell or "").strip()
    return text if text and not text.startswith("[") and text != "N/A" else None


def _readings(log: SmiLog, builder: RecordingBuilder) -> dict[str, Counted]:
    """Return the readings by slot, and keep the figures of their columns."""
    readings: dict[str, Counted] = {}
    if log.throttle is not None:
        readings["throttle.fraction"] = Counted(log.throttle, 1)
    for target, columns in columns_by_target(log):
        for n, numbers in enumerate(columns):
            column = _figures(numbers, target if n == 0 else None, builder)
            if n == 0:
                readings[target] = column
                builder.missing += numbers.missing
    return readings


def _with_memory(
    gpus: tuple[GpuIdentity, ...], memory: Counted | None, codes: NDArray[np.int32]
) -> tuple[GpuIdentity, ...]:
    """Return the devices with the first size of memory that is read of each."""
    if memory is not None:
        sizes = (memory.floats(np.flatnonzero(codes == place)) for place in range(len(gpus)))
        firsts = (size[np.isfinite(size)][:1].tolist() for size in sizes)
        gpus = tuple(
            replace(gpu, memory_gib=first[0] if first and first[0] > 0 else None)
            for gpu, first in zip(gpus, firsts, strict=True)
        )
    return tuple(plausible_identity(gpu) for gpu in gpus)


def _leave_out_impossible(
    readings: dict[str, Counted],
    gpus: tuple[GpuIdentity, ...],
    codes: NDArray[np.int32],
    builder: RecordingBuilder,
) -> None:
    """Leave out what cannot be, as the exact reader does, in slots that may have such values."""
    for slot, column in list(readings.items()):
        if not _plausible(slot, column, readings, gpus):
            frame = pd.DataFrame({slot: column.floats(slice(None))})
            frame[GPU] = pd.Categorical.from_codes(codes, pd.Index([gpu.key for gpu in gpus]))
            if slot == _POWER and _LIMIT in readings:
                frame[_LIMIT] = readings[_LIMIT].floats(slice(None))
            readings[slot] = Counted(builder.checked(frame, slot, gpus), 0)


def _leave_out_blanks(
    readings: dict[str, Counted],
    gpus: tuple[GpuIdentity, ...],
    codes: NDArray[np.int32],
    builder: RecordingBuilder,
) -> None:
    """Leave out zeros that stand for a reading that a device does not give."""
    for slot in (*NEVER_ZERO, *NOT_WHILE_BUSY):
        column = readings.get(slot)
        extremes = None if column is None else _extremes(column)
        if column is None or (extremes is not None and extremes[0] != 0):
            continue
        values = column.floats(slice(None))
        blank = np.zeros(len(values), dtype=bool)
        for place in range(len(gpus)):
            rows = np.flatnonzero(codes == place)
            read = np.isfinite(values[rows])
            all_zero = read.any() and not values[rows][read].any()
            if all_zero and (slot in NEVER_ZERO or _is_busy(readings, rows, int(read.sum()))):
                blank[rows] = read
        if blank.any():
            builder.blanks(slot, int(blank.sum()))
            readings[slot] = Counted(np.where(blank, np.nan, values), 0)


def _is_busy(readings: dict[str, Counted], rows: NDArray[np.int64], read_rows: int) -> bool:
    busy = readings.get(BUSY)
    return (
        busy is not None and read_rows >= FEWEST_BLANKS and bool(np.nanmax(busy.floats(rows)) > 0)
    )


def _figures(column: NumberColumn, slot: str | None, builder: RecordingBuilder) -> Counted:
    values, per = column.counts, column.per
    scale = column.meaning.scale or 1.0
    if per == 0:
        builder.column(column.source, slot, column.meaning.scale, as_floats(values, per))
        return Counted(np.asarray(values, dtype=np.float64) * scale, 0)
    numbers = _without_missing(values)
    row = Column(source=column.source, slot=slot, scale=column.meaning.scale, n=len(numbers))
    builder.figures(row, _mean_least_most(numbers, per) if len(numbers) else None)
    return Counted(values, per, scale)


def _mean_least_most(numbers: NDArray[Any], per: int) -> tuple[float, float, float]:
    mean = float(numbers.sum(dtype=np.int64)) / len(numbers)
    return mean / per, float(numbers.min()) / per, float(numbers.max()) / per


def _without_missing(values: NDArray[np.int32] | NDArray[np.float64]) -> NDArray[Any]:
    missing = values == MISSING
    return values[~missing] if missing.any() else values


def _extremes(column: Counted) -> tuple[float, float] | None:
    """Return the least and the greatest value; None where there is none, or a fraction."""
    if column.per == 0:
        return None
    numbers = _without_missing(column.counts)
    if not len(numbers):
        return None
    low, high = (float(v) / column.per * column.scale for v in (numbers.min(), numbers.max()))
    return low, high


def _plausible(
    slot: str, column: Counted, readings: dict[str, Counted], gpus: tuple[GpuIdentity, ...]
) -> bool:
    """Return whether no value can fail a check, so that none is made."""
    extremes, metric = _extremes(column), SLOTS.get(slot)
    if extremes is None or metric is None:
        return False
    low, high = extremes
    most = [metric.high] if metric.high is not None else []
    if slot == _POWER:
        limits = _extremes(readings[_LIMIT]) if _LIMIT in readings else None
        if _LIMIT in readings and limits is None:
            return False
        most.append(limits[0] if limits else _MOST_WATTS)
    totals = [gpu.memory_gib for gpu in gpus if gpu.memory_gib]
    if slot == _USED and totals:
        most.append(min(totals))
    return low >= (metric.low if metric.low is not None else low) and all(high <= m for m in most)


_Number = TypeVar("_Number", bound=np.generic)
_BLOCK_ROWS = 1 << 18


def joined(recordings: list[LargeRecording]) -> LargeRecording:
    """Return recordings as one, as `profiling.merge` does; they are let go of one by one.

    Raises:
        NeedsSlowReaderError: some have dates and some have none.
        InputError: one may be of either of two machines.
    """
    if len({recording.absolute for recording in recordings}) > 1:
        raise NeedsSlowReaderError
    notes = [note for recording in recordings for note in recording.notes]
    places = machines_of([logged_large(recording) for recording in recordings], notes)
    devices = placed([recording.gpus for recording in recordings], places)
    names = device_names(devices, places)
    gpus = identities(devices, names)
    order = {gpu.key: i for i, gpu in enumerate(gpus)}
    codes = [
        np.array([order[named[gpu.key]] for gpu in recording.gpus], dtype=np.int32)[recording.codes]
        for recording, named in zip(recordings, names, strict=True)
    ]
    times = [recording.t_s for recording in recordings]
    columns = [dict(recording.slots) for recording in recordings]
    lengths = [len(t_s) for t_s in times]
    whole = replace(
        recordings[0],
        t_s=np.empty(0),
        codes=np.empty(0, dtype=np.int32),
        slots={},
        gpus=gpus,
        sources=tuple(source for recording in recordings for source in recording.sources),
        notes=tuple(notes),
        local_time=any(recording.local_time for recording in recordings),
        mig=any(recording.mig for recording in recordings),
    )
    recordings.clear()
    return replace(
        whole,
        t_s=_end_to_end(times, np.empty(sum(lengths))),
        codes=_end_to_end(codes, np.empty(sum(lengths), dtype=np.int32)),
        slots={
            slot: _column([recording.pop(slot, None) for recording in columns], lengths)
            for slot in sorted({slot for recording in columns for slot in recording})
        },
    )


def _end_to_end(parts: list[NDArray[_Number]], whole: NDArray[_Number]) -> NDArray[_Number]:
    """Return parts as one, which they are written to; each is let go of."""
    begin = len(whole)
    while parts:
        part = parts.pop()
        whole[begin - len(part) : begin] = part
        begin -= len(part)
    return whole


def _column(parts: list[Counted | None], lengths: Sequence[int]) -> Counted:
    """Return one column of all logs, missing where a log has none; the parts are let go."""
    forms = {(part.per, part.scale) for part in parts if part is not None}
    per, scale = max(forms)
    if min(forms)[0] == 0 or len({scale for _, scale in forms}) > 1:
        per, scale = 0, 1.0
    whole = np.full(sum(lengths), np.nan) if per == 0 else _missing(sum(lengths))
    begin = sum(lengths)
    for length in reversed(lengths):
        part = parts.pop()
        if part is not None:
            values = part.floats(slice(None)) if per == 0 else part.counts
            same = per in {0, part.per}
            rows = slice(begin - length, begin)
            whole[rows] = values if same else recounted(part.counts, part.per, per)
        begin -= length
    return Counted(whole, per, scale)


def _missing(length: int) -> NDArray[np.int32]:
    return np.full(length, MISSING, dtype=np.int32)


def logged_large(recording: LargeRecording) -> LoggedRows:
    """Return what of a log tells its machine."""

    @cache
    def rows(slots: tuple[str, ...]) -> Different:
        return Different.of(_hashes(recording, slots), recording.t_s)

    def readings(slot: str) -> Readings:
        values = recording.slots[slot].floats(slice(None))
        return recording.codes.astype(np.int64), recording.t_s, values

    return LoggedRows(
        source=recording.sources[0],
        gpus=recording.gpus,
        slots=frozenset(recording.slots),
        span_s=(float(recording.t_s.min()), float(recording.t_s.max()))
        if len(recording.t_s)
        else None,
        rows=rows,
        readings=readings,
    )


def _hashes(recording: LargeRecording, slots: tuple[str, ...]) -> NDArray[np.uint64]:
    """Return a number for each row: the same for the same index, time and readings."""
    index = np.array([-1.0 if gpu.index is None else gpu.index for gpu in recording.gpus])
    hashes = np.empty(len(recording.t_s), dtype=np.uint64)
    for begin in range(0, len(hashes), _BLOCK_ROWS):
        rows = slice(begin, begin + _BLOCK_ROWS)
        columns = {slot: recording.slots[slot].floats(rows) for slot in slots}
        frame = pd.DataFrame(
            {TIME: recording.t_s[rows], **columns, GPU: index[recording.codes[rows]]}
        )
        hashes[rows] = pd.util.hash_pandas_object(frame, index=False).to_numpy()
    return hashes
