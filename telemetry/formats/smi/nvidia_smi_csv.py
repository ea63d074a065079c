"""Reads `nvidia-smi --query-gpu ... --format=csv` logs and the CSV of people's own loggers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pricing.errors import InputError
from telemetry.formats.unread import UNREAD_LAST, booking, refusal, unread
from telemetry.parsing import clock, csv_text
from telemetry.parsing.mapping.host_columns import host_of
from telemetry.parsing.positions import keys_by_position
from telemetry.parsing.recording_builder import RecordingBuilder, real_uuid
from telemetry.parsing.sheet import Sheet, joined, sheet_of
from telemetry.recording.recording import GPU, TIME, GpuIdentity, Recording

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from telemetry.parsing.hints import Hints
    from telemetry.parsing.payload import Payload

FORMAT = "nvidia-smi-csv"
_MEMORY = "memory.total"
_DEFAULT_INTERVAL_S = 1.0
_LEAST_USED = 0.1  # of the rows; a log cut or garbled here and there keeps far more
_HEAD_CHARACTERS = 65_536


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of a CSV log.

    Raises:
        InputError: no header names a measurement, or no row stands under one.
    """
    text = payload.text
    rows = csv_text.split(text, hints)
    if rows is None:
        raise InputError(_no_header(payload.name, text[:_HEAD_CHARACTERS]))
    filled = [table for table in rows.tables if table.lines]
    if not filled:
        raise InputError(
            f"{payload.name}: a header and no row under it, so nothing was measured. "
            "Let nvidia-smi run with `-l 1` while the job runs."
        )
    builder = RecordingBuilder(payload, FORMAT)
    builder.dropped += rows.dropped
    sheet = joined([sheet_of(table, rows.delimiter, hints, builder) for table in filled])
    blocks = np.concatenate([np.array(table.blocks, dtype=np.int64) for table in filled])
    builder.rows_read = len(blocks) + sum(rows.dropped.values())
    recording = _recording(builder, sheet, blocks, hints)
    if recording.rows_used < _LEAST_USED * len(blocks):
        raise InputError(
            f"{payload.name}: only {recording.rows_used:,} of {len(blocks):,} rows below it "
            "could be read, so this is not a log of GPU readings, or a damaged one. Give another, "
            "or name its columns with --map COLUMN=SLOT."
        )
    return recording


def _no_header(name: str, head: str) -> str:
    known = unread(head, UNREAD_LAST)
    if known is not None:
        return refusal(name, known)
    first = next((line.strip() for line in head.splitlines() if line.strip()), "")[:70]
    if re.search(r"\d{3}|\d [%MW]", first):
        return (
            f"{name}: no header line names a measurement (first line: {first!r}), so the columns "
            "cannot be told apart. Log without `noheader`, or name them by number: "
            "--map 1=timestamp --map 2=util.kernel_time."
        )
    return (
        f"{name}: none of its columns ({first!r}) is a GPU reading that gpucost knows."
        f"{booking(first)} Name columns with --map COLUMN=slot if there are any."
    )


def _recording(
    builder: RecordingBuilder, sheet: Sheet, blocks: NDArray[np.int64], hints: Hints
) -> Recording:
    times = clock.parse(sheet.time, hints.zone) if sheet.time is not None else None
    if times is not None and not np.isfinite(times.t_s).any():
        builder.notes.append("no timestamp could be read; the rows' order is used.")
        times = None
    t_s: NDArray[np.float64] | None = times.t_s if times is not None else None
    keys = _keys(sheet, t_s, blocks, builder)
    samples = sheet.readings.drop(columns=[_MEMORY], errors="ignore")
    samples[GPU] = keys
    if t_s is None:
        ticks = samples.groupby(GPU, sort=False).cumcount().to_numpy(dtype=float)
        t_s = np.asarray(ticks * (hints.interval_s or _DEFAULT_INTERVAL_S), dtype=np.float64)
    samples[TIME] = t_s
    known = np.isfinite(samples[TIME].to_numpy(dtype=np.float64))
    if not known.all():
        builder.dropped["timestamp not readable"] += int((~known).sum())
    if times is not None and times.stepped_back:
        builder.notes.append("the clock was set back within the file (end of summer time?).")
    samples, host = host_of(samples[known], builder)
    return builder.recording(
        samples,
        _identities(sheet, keys),
        host=host,
        absolute=times is not None and times.absolute,
        timed=times is not None,
        local_time=times is not None and times.local,
        mig=sheet.mig is not None and bool((sheet.mig == "Enabled").any()),
    )


def _keys(
    sheet: Sheet,
    t_s: NDArray[np.float64] | None,
    blocks: NDArray[np.int64],
    builder: RecordingBuilder,
) -> pd.Series:
    """Return a key for each row: uuid, else index, else PCI address, else place in the tick.

    The host is part of it where a column names one.
    """
    if sheet.uuid is not None:
        uuids = sheet.uuid.map(real_uuid)
        if uuids.notna().all():
            return uuids.astype(object)
    for column in (sheet.index, sheet.bus):
        if column is not None and column.notna().any():
            own = "device " + column.ffill().bfill().astype(str)
            return (own if sheet.host is None else _hosts(sheet.host) + " " + own).astype(object)
    if sheet.host is not None and len(set(sheet.host)) > 1:
        return _hosts(sheet.host).astype(object)
    keys, note = keys_by_position(t_s, blocks)
    if note:
        builder.notes.append(note)
    return pd.Series(keys, dtype=object)


def _hosts(column: pd.Series) -> pd.Series:
    return column.fillna("").astype(str)


def _identities(sheet: Sheet, keys: pd.Series) -> tuple[GpuIdentity, ...]:
    grouping = keys.to_numpy()

    def firsts(column: pd.Series | None) -> dict[Hashable, Any]:
        return {} if column is None else column.groupby(grouping).first().to_dict()

    index, uuid, model = firsts(sheet.index), firsts(sheet.uuid), firsts(sheet.model)
    host = firsts(sheet.host)
    memory = firsts(sheet.readings[_MEMORY]) if _MEMORY in sheet.readings else {}
    return tuple(
        GpuIdentity(
            key=key,
            index=_index(index.get(key), key),
            uuid=real_uuid(uuid.get(key)),
            model=_name(model.get(key)),
            memory_gib=_number(memory.get(key)),
            host=_name(host.get(key)),
        )
        for key in sorted(set(grouping))
    )


def _number(cell: object) -> float | None:
    return cell if isinstance(cell, float) and cell > 0 else None


def _index(cell: object, key: str) -> int | None:
    if isinstance(cell, float) and np.isfinite(cell):
        return int(cell)
    place = key.removeprefix("row ")
    return int(place) if place.isdecimal() else None


def _name(cell: object) -> str | None:
    text = cell.strip() if isinstance(cell, str) else ""
    return text if text and not text.startswith("[") and text != "N/A" else None
