"""What a large CSV log holds, as readings in slot units with the checks that no reader may skip."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from planner.profile.metrics import SLOTS
from planner.profile.model import Column
from telemetry.large.fields import MISSING, NumberColumn, as_floats
from telemetry.large.lines import UnfitError
from telemetry.large.profile import Counted, LargeRecording
from telemetry.large.smi_log import SmiLog, columns_by_target, read_log
from telemetry.readers.payload import Payload, Stream
from telemetry.readers.recording_builder import (
    BUSY,
    FEWEST_BLANKS,
    NEVER_ZERO,
    NOT_WHILE_BUSY,
    RecordingBuilder,
    real_uuid,
    with_known_memory,
)
from telemetry.recording.recording import GPU, GpuIdentity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from telemetry.readers.hints import Hints

FORMAT = "nvidia-smi-csv"
_MEMORY, _LIMIT, _POWER, _USED = "memory.total", "power.limit_w", "power.board_w", "mem.used_gib"
_INDEX = re.compile(r"\s*(?:[A-Za-z_: ]*?)(\d{1,4})\s*")
_LEAST_USED = 0.1
_MOST_WATTS = 3000.0


def read_large(path: str, hints: Hints) -> LargeRecording:
    """Return the readings of a CSV log.

    Raises:
        UnfitError: it is not a plain log; the exact reader takes it.
        InputError: it cannot be read.
    """
    with Stream(path) as stream:
        log = read_log(stream.chunks(), hints)
        payload = Payload(name=stream.name, data=b"", sha256=None, path=path)
    builder = RecordingBuilder(payload, FORMAT)
    builder.dropped += log.dropped
    builder.rows_read = log.rows + sum(log.dropped.values())
    gpus, place = _identities(log)
    codes = np.concatenate(log.codes) if len(log.codes) > 1 else log.codes[0]
    log.codes.clear()
    codes = np.asarray(place[codes], dtype=np.int32)
    times = log.time.parsed(hints.zone)
    known = np.isfinite(times.t_s)
    if known.sum() < _LEAST_USED * log.rows:
        raise UnfitError
    gpus, slots = _slots(log, builder, gpus, codes)
    t_s = times.t_s
    if not known.all():
        builder.dropped["timestamp not readable"] += int((~known).sum())
        t_s, codes = t_s[known], codes[known]
        slots = {s: Counted(one.counts[known], one.per, one.scale) for s, one in slots.items()}
    if times.stepped_back:
        builder.notes.append("the clock was set back within the file (end of summer time?).")
    source, notes = builder.told(gpus)
    return LargeRecording(
        t_s=t_s,
        codes=codes,
        gpus=gpus,
        slots=slots,
        sources=(source,),
        notes=notes,
        absolute=times.absolute,
        local_time=times.local,
        mig=any(one.get("mig") == "Enabled" for one in log.devices),
    )


def _identities(log: SmiLog) -> tuple[tuple[GpuIdentity, ...], NDArray[np.int32]]:
    """Return the devices in their order, and the place of each device code among them."""
    by_uuid = all(real_uuid(one.get("uuid")) for one in log.devices)
    found: dict[str, GpuIdentity] = {}
    keys = []
    for one in log.devices:
        index = _INDEX.fullmatch(one.get("index", ""))
        if "index" in one and index is None:
            raise UnfitError
        name = index[1] if index else one.get("bus")
        host = _text(one.get("host"))
        if not by_uuid and not name:
            raise UnfitError
        key = (
            str(one["uuid"])
            if by_uuid
            else f"{host or ''} index {int(index[1]) if index else name}"
        )
        keys.append(key)
        mine = GpuIdentity(
            key=key,
            index=int(index[1]) if index else None,
            uuid=real_uuid(one.get("uuid")),
            model=_text(one.get("name")),
            host=host,
        )
        found.setdefault(key, mine)
    last = 1 << 30
    gpus = sorted(
        found.values(),
        key=lambda g: (g.host or "", last if g.index is None else g.index, g.key),
    )
    place = {gpu.key: i for i, gpu in enumerate(gpus)}
    return tuple(gpus), np.array([place[key] for key in keys], dtype=np.int32)


def _text(cell: str | None) -> str | None:
    text = (cell or "").strip()
    return text if text and not text.startswith("[") and text != "N/A" else None


def _slots(
    log: SmiLog,
    builder: RecordingBuilder,
    gpus: tuple[GpuIdentity, ...],
    codes: NDArray[np.int32],
) -> tuple[tuple[GpuIdentity, ...], dict[str, Counted]]:
    """Return the devices with their memory, and the checked readings by slot."""
    found: dict[str, Counted] = {}
    if log.throttle is not None:
        found["throttle.fraction"] = Counted(np.concatenate(log.throttle.parts), 1)
    for target, columns in columns_by_target(log):
        for n, column in enumerate(columns):
            one = _figures(column, target if n == 0 else None, builder)
            if n == 0:
                found[target] = one
                builder.missing += column.missing
    memory = found.pop(_MEMORY, None)
    if memory is not None:
        gpus = tuple(_with_memory(gpu, i, memory, codes) for i, gpu in enumerate(gpus))
    gpus = tuple(with_known_memory(gpu) for gpu in gpus)
    _leave_out_blanks(found, gpus, codes, builder)
    for slot, one in list(found.items()):
        if not _plausible(slot, one, found, gpus):
            frame = pd.DataFrame({slot: one.floats(slice(None))})
            frame[GPU] = pd.Categorical.from_codes(codes, pd.Index([gpu.key for gpu in gpus]))
            if slot == _POWER and _LIMIT in found:
                frame[_LIMIT] = found[_LIMIT].floats(slice(None))
            found[slot] = Counted(builder.checked(frame, slot, gpus), 0)
    return gpus, {slot: one for slot, one in found.items() if slot in SLOTS}


def _leave_out_blanks(
    found: dict[str, Counted],
    gpus: tuple[GpuIdentity, ...],
    codes: NDArray[np.int32],
    builder: RecordingBuilder,
) -> None:
    """Leave out zeros that stand for a reading that a device does not give."""
    for slot in (*NEVER_ZERO, *NOT_WHILE_BUSY):
        one = found.get(slot)
        extremes = None if one is None else _extremes(one)
        if one is None or (extremes is not None and extremes[0] != 0):
            continue
        values = one.floats(slice(None))
        blank = np.zeros(len(values), dtype=bool)
        for place in range(len(gpus)):
            rows = np.flatnonzero(codes == place)
            known = np.isfinite(values[rows])
            all_zero = known.any() and not values[rows][known].any()
            if all_zero and (slot in NEVER_ZERO or _is_busy(found, rows, int(known.sum()))):
                blank[rows] = known
        if blank.any():
            builder.blanks(slot, int(blank.sum()))
            found[slot] = Counted(np.where(blank, np.nan, values), 0)


def _is_busy(found: dict[str, Counted], rows: NDArray[np.int64], known: int) -> bool:
    busy = found.get(BUSY)
    return busy is not None and known >= FEWEST_BLANKS and bool(np.nanmax(busy.floats(rows)) > 0)


def _figures(column: NumberColumn, slot: str | None, builder: RecordingBuilder) -> Counted:
    values, per = column.joined()
    scale = column.known.scale or 1.0
    if per == 0:
        builder.column(column.source, slot, column.known.scale, as_floats(values, per))
        return Counted(np.asarray(values, dtype=np.float64) * scale, 0)
    known = _known(values)
    row = Column(source=column.source, slot=slot, scale=column.known.scale, n=len(known))
    builder.figures(row, _mean_least_most(known, per) if len(known) else None)
    return Counted(values, per, scale)


def _mean_least_most(known: NDArray[Any], per: int) -> tuple[float, float, float]:
    mean = float(known.sum(dtype=np.int64)) / len(known)
    return mean / per, float(known.min()) / per, float(known.max()) / per


def _known(values: NDArray[np.int32] | NDArray[np.float64]) -> NDArray[Any]:
    missing = values == MISSING
    return values[~missing] if missing.any() else values


def _with_memory(
    gpu: GpuIdentity, place: int, memory: Counted, codes: NDArray[np.int32]
) -> GpuIdentity:
    rows = np.flatnonzero(codes == place)
    sizes = memory.floats(rows)
    first = sizes[np.isfinite(sizes)][:1]
    size = float(first[0]) if len(first) and first[0] > 0 else None
    return GpuIdentity(
        key=gpu.key,
        index=gpu.index,
        uuid=gpu.uuid,
        model=gpu.model,
        memory_gib=size,
        host=gpu.host,
    )


def _extremes(one: Counted) -> tuple[float, float] | None:
    """Return the least and the greatest value; None where there is none, or a fraction."""
    if one.per == 0:
        return None
    known = _known(one.counts)
    if not len(known):
        return None
    low, high = (float(v) / one.per * one.scale for v in (known.min(), known.max()))
    return low, high


def _plausible(
    slot: str, one: Counted, found: dict[str, Counted], gpus: tuple[GpuIdentity, ...]
) -> bool:
    """Return whether no value can fail a check, so that none is made."""
    extremes, known = _extremes(one), SLOTS.get(slot)
    if extremes is None or known is None:
        return False
    low, high = extremes
    most = [known.high] if known.high is not None else []
    if slot == _POWER:
        limits = _extremes(found[_LIMIT]) if _LIMIT in found else None
        if _LIMIT in found and limits is None:
            return False
        most.append(limits[0] if limits else _MOST_WATTS)
    totals = [gpu.memory_gib for gpu in gpus if gpu.memory_gib]
    if slot == _USED and totals:
        most.append(min(totals))
    return low >= (known.low if known.low is not None else low) and all(high <= m for m in most)
