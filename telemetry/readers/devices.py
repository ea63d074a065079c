"""Rows of texts, each of one device at one instant, to a recording by a table of names."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pricing.errors import InputError
from telemetry.readers import clock
from telemetry.readers.column_names import BITMASK, FLAG, meaning, names_of
from telemetry.readers.csv_text import numbers, throttled
from telemetry.readers.recording_builder import real_uuid
from telemetry.readers.units import first_measure
from telemetry.recording.recording import GPU, JOB, TIME, GpuIdentity, Recording

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from telemetry.readers.clock import SourceClock
    from telemetry.readers.hints import Hints
    from telemetry.readers.recording_builder import RecordingBuilder
    from telemetry.readers.units import Meaning

_MEMORY = "memory.total"
_THROTTLE = "throttle.fraction"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRow:
    """What a source says of one device at one instant.

    Attributes:
        device: what tells the device from the others of the source.
        cells: texts by the source's names of them.
        index: the driver's index, None where unknown, likewise below.
        uuid: as written.
        model: product name as written.
        time: when, as written.
        host: which machine.
        partition: which part of the device, None for the whole.
        job: whose readings they are.
    """

    device: str
    cells: Mapping[str, str]
    index: int | None = None
    uuid: str | None = None
    model: str | None = None
    time: str | None = None
    host: str | None = None
    partition: str | None = None
    job: str | None = None


def device_recording(
    builder: RecordingBuilder,
    rows: Sequence[DeviceRow],
    hints: Hints,
    *,
    empty: str | None = None,
    **more: Any,  # noqa: ANN401 - the other fields of a Recording
) -> Recording:
    """Return the recording of rows; those without a time of their own lie an interval apart.

    Args:
        builder: where figures and missing values are counted; the rows are counted by the caller.
            Its format has a table of names in columns.toml, to which `hints.map` adds.
        rows: in the order of the source.
        hints: `map`, `interval_s` and `tz` are used.
        empty: what is said where there is no row; None: what the table of formats says.
        **more: fields of `Recording`.

    Raises:
        InputError: there is no row.
    """
    if not rows:
        raise InputError(f"{builder.name}: {empty or builder.empty}")
    mapped = {column: holds for column, _ in hints.map if (holds := meaning(column, hints))}
    readings = _readings(builder, rows, {**names_of(builder.form), **mapped})
    totals = readings.pop(_MEMORY) if _MEMORY in readings else pd.Series(np.nan, index=range(0))
    samples = readings.assign(**{GPU: pd.Series([row.device for row in rows], dtype=object)})
    if any(row.job is not None for row in rows):
        samples[JOB] = pd.Series([row.job for row in rows], dtype=object)
    times = _times(rows, hints)
    return builder.recording(
        placed_in_time(samples, times, builder, hints.interval_s),
        _identities(rows, totals),
        **{**timing(times), **more},
    )


def _times(rows: Sequence[DeviceRow], hints: Hints) -> clock.SourceClock | None:
    if not any(row.time for row in rows):
        return None
    times = clock.parse(pd.Series([row.time or "" for row in rows], dtype=object), hints.zone)
    return times if np.isfinite(times.t_s).any() else None


def _readings(
    builder: RecordingBuilder, rows: Sequence[DeviceRow], table: Mapping[str, Meaning]
) -> pd.DataFrame:
    present: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        for name in row.cells:
            if name in table:
                present[name].append(i)
    parts: dict[str, list[tuple[int, str, NDArray[np.float64]]]] = defaultdict(list)
    for name, places in sorted(present.items()):
        holds = table[name]
        texts = pd.Series([rows[i].cells[name] for i in places], dtype=object)
        column = np.full(len(rows), np.nan)
        if holds.target in {BITMASK, FLAG}:
            column[places] = throttled(texts)
            parts[_THROTTLE].append((0, name, column))
        elif holds.scale is not None:
            cells = numbers(texts, scale=holds.scale, to=holds.to, typical=holds.unit)
            builder.column(name, holds.target, holds.scale, cells.raw)
            builder.missing += cells.missing
            column[places] = cells.scaled
            parts[holds.target].append((holds.rank, name, column))
    columns = {target: _merged(target, columns) for target, columns in sorted(parts.items())}
    return pd.DataFrame(columns, index=range(len(rows)))


def _merged(target: str, parts: list[tuple[int, str, NDArray[np.float64]]]) -> NDArray[np.float64]:
    """Return one column: flags and counters of causes together, else the first name's with it."""
    filled = [part for part in parts if np.isfinite(part[2]).any()] or parts
    most = first_measure(rank for rank, _, _ in filled)
    ordered = [
        values for rank, _, values in sorted(filled, key=lambda part: part[:2]) if rank < most
    ]
    merged = ordered[0]
    for values in ordered[1:]:
        if target == _THROTTLE:
            merged = np.fmax(merged, values)
        elif target.startswith("counter."):
            finite = np.isfinite(merged) | np.isfinite(values)
            merged = np.where(finite, np.nan_to_num(merged) + np.nan_to_num(values), np.nan)
        else:
            merged = np.where(np.isfinite(merged), merged, values)
    return merged


def _identities(rows: Sequence[DeviceRow], totals: pd.Series) -> tuple[GpuIdentity, ...]:
    of_device: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        of_device[row.device].append(i)
    return tuple(
        _identity(device, [rows[i] for i in places], totals.reindex(places))
        for device, places in sorted(of_device.items())
    )


def _identity(device: str, rows: Sequence[DeviceRow], totals: pd.Series) -> GpuIdentity:
    def first(name: str) -> Any:  # noqa: ANN401 - of whichever type the field is
        values = (getattr(row, name) for row in rows)
        return next((value for value in values if value is not None), None)

    uuids = (uuid for row in rows if (uuid := real_uuid(row.uuid)))
    sizes = totals.dropna()
    partition = first("partition")
    total = float(sizes.iloc[0]) if len(sizes) and sizes.iloc[0] > 0 else None
    return GpuIdentity(
        key=device,
        index=first("index"),
        uuid=next(uuids, None),
        model=first("model"),
        memory_gib=total if partition is None else None,
        partition=partition,
        host=first("host"),
    )


DEFAULT_INTERVAL_S = 1.0


def placed_in_time(
    samples: pd.DataFrame,
    times: SourceClock | None,
    builder: RecordingBuilder,
    interval_s: float | None,
) -> pd.DataFrame:
    """Return samples with their time; rows whose time cannot be read are dropped and counted.

    Args:
        samples: with their device in GPU.
        times: of the rows; None where the source has none.
        builder: where dropped rows are counted.
        interval_s: between two rows of a device without times; None: a second.
    """
    if times is None:
        step = interval_s or DEFAULT_INTERVAL_S
        return samples.assign(**{TIME: samples.groupby(GPU, sort=False).cumcount() * step})
    samples = samples.assign(**{TIME: times.t_s})
    lost = ~np.isfinite(times.t_s)
    if lost.any():
        builder.dropped["timestamp not readable"] += int(lost.sum())
        samples = samples[~lost]
    return samples


def timing(times: SourceClock | None) -> dict[str, bool]:
    """Return what a recording says of its times."""
    absolute, local = (times.absolute, times.local) if times is not None else (False, False)
    return {"timed": times is not None, "absolute": absolute, "local_time": local}
