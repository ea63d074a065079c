"""Rows of texts, each of one device at one instant, to a recording by a table of names."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pricing.errors import InputError
from pricing.message import Message
from telemetry.readers import clock
from telemetry.readers.clock import SourceClock, Texts
from telemetry.readers.column_names import BITMASK, FLAG, meaning, names_of
from telemetry.readers.csv_text import Numbers, numbers, throttled
from telemetry.readers.hints import Hints
from telemetry.readers.recording_builder import RecordingBuilder, real_uuid
from telemetry.readers.units import Meaning, first_measure
from telemetry.recording.recording import GPU, JOB, TIME, GpuIdentity, Recording

_MEMORY = "memory.total"
_THROTTLE = "throttle.fraction"
_IDENTITY = ("index", "uuid", "model", "host", "partition")
_MANY_ROWS = 500_000  # from here on columns are kept as categories
DEFAULT_INTERVAL_S = 1.0
ONE_ROW = 1.5  # of each device for a date above them; a lost date line makes few of them two
_CLOCK_SET_S = 946_684_800.0  # 2000-01-01: no GPU was logged before


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRow:
    """What a source says of one device at one instant.

    Attributes:
        cells: texts by the source's names of them.
        device: what tells the device from the others of the source; "": host and index.
        index: the driver's index, None where unknown, likewise below.
        uuid: as written.
        model: product name as written.
        time: when, as written.
        host: which machine.
        partition: which part of the device, None for the whole.
        job: whose readings they are.
    """

    cells: Mapping[str, str]
    device: str = ""
    index: int | None = None
    uuid: str | None = None
    model: str | None = None
    time: str | None = None
    host: str | None = None
    partition: str | None = None
    job: str | None = None

    @property
    def key(self) -> str:
        """What tells the device from the others."""
        return self.device or f"{self.host or ''} index {self.index}".lstrip()

    def at(self, *times_s: float) -> "list[DeviceRow]":
        """Return the same at some instants: of means over a stretch, each stands for its part."""
        return [replace(self, time=repr(t_s)) for t_s in times_s]


def device_recording(
    builder: RecordingBuilder,
    rows: Sequence[DeviceRow],
    hints: Hints,
    *,
    empty: str | None = None,
    counted: bool = False,
    **more: Any,  # noqa: ANN401 - the other fields of a Recording
) -> Recording:
    """Return the recording of rows; those without a time of their own lie an interval apart.

    Args:
        builder: where rows, figures and missing values are counted.
            Its format has a table of names in columns.toml, to which `hints.map` adds.
        rows: in the order of the source.
        hints: `map`, `interval_s` and `tz` are used.
        empty: what is said where there is no row; None: what the table of formats says.
        counted: whether the caller has counted what the rows were made of.
        **more: fields of `Recording`.

    Raises:
        InputError: there is no row.
    """
    if not rows:
        raise InputError(f"{builder.name}: {empty or builder.empty}")
    if not counted:
        builder.rows_read += len(rows)
    mapped = {column: holds for column, _ in hints.map if (holds := meaning(column, hints))}
    table = {**names_of(builder.form), **mapped}
    names = sorted({name for row in rows for name in row.cells if name in table})

    def column(texts: Iterable[object]) -> pd.Series:
        return pd.Series(list(texts), dtype=object)

    columns = [(n, table[n], column(row.cells.get(n) for row in rows)) for n in names]
    who = {name: column(getattr(row, name) for row in rows) for name in (*_IDENTITY, "job")}
    who["uuid"] = who["uuid"].map(real_uuid)
    times = None
    if any(row.time for row in rows):
        times = clock.parse(column(row.time or "" for row in rows), hints.zone)
    sheet = pd.DataFrame({**who, **readings(columns, builder)})
    return table_recording(builder, sheet, column(row.key for row in rows), times, hints, **more)


def readings(
    columns: Iterable[tuple[str, Meaning, Texts]],
    builder: RecordingBuilder,
    sign: str = ".",
) -> dict[str, object]:
    """Return the readings of columns of texts, one column a target; figures are counted.

    Args:
        columns: name, what it holds, and cells; None where a row has none.
        builder: where figures and missing values are counted.
        sign: of decimals, as `csv_text.numbers` takes it.
    """
    of_target: dict[str, list[tuple[int, str, Meaning, Texts]]] = defaultdict(list)
    for name, holds, texts in columns:
        if holds.target in {BITMASK, FLAG}:
            of_target[_THROTTLE].append((0, name, holds, texts))
        elif holds.scale is not None:
            of_target[holds.target].append((holds.rank, name, holds, texts))
    merged: dict[str, object] = {}
    for target, members in sorted(of_target.items()):
        parts: list[tuple[int, NDArray[np.float64]]] = []
        for rank, name, holds, texts in sorted(members, key=lambda member: member[0]):
            if holds.scale is None:
                parts.append((rank, throttled(texts)))
                continue
            cells = numbers(texts, scale=holds.scale, to=holds.to, sign=sign, typical=holds.unit)
            builder.column(name, target, holds.scale, cells.raw, cells.counts)
            builder.missing += cells.missing
            if count := cells.missing["not a number"]:
                builder.notes.append(Message("read.no-numbers", column=repr(name), n=count))
            if len(members) == 1 and len(texts) >= _MANY_ROWS:
                merged[target] = _compact(cells)
            else:
                parts.append((rank, cells.values()))
        if parts:
            merged[target] = _merged(target, parts)
    return merged


def _compact(cells: Numbers) -> "pd.Categorical[float]":
    """Return numbers that repeat each other in a tenth of the memory, as categories in order."""
    values, places = np.unique(cells.scaled, return_inverse=True)
    places = np.where(np.isfinite(cells.scaled), places, -1)
    categories = pd.Index(values[np.isfinite(values)])
    return pd.Categorical.from_codes(np.asarray(places[cells.codes]), categories)


def _merged(target: str, parts: list[tuple[int, NDArray[np.float64]]]) -> NDArray[np.float64]:
    """Return one column: flags and counters of causes together, else the first name's with it."""
    filled = [part for part in parts if np.isfinite(part[1]).any()] or parts
    first = first_measure(rank for rank, _ in filled)
    merged, *later = [values for rank, values in filled if rank < first]
    for values in later:
        if target == _THROTTLE:
            merged = np.fmax(merged, values)
        elif target.startswith("counter."):
            finite = np.isfinite(merged) | np.isfinite(values)
            merged = np.where(finite, np.nan_to_num(merged) + np.nan_to_num(values), np.nan)
        else:
            merged = np.where(np.isfinite(merged), merged, values)
    return merged


def table_recording(
    builder: RecordingBuilder,
    sheet: pd.DataFrame,
    keys: pd.Series,
    times: SourceClock | None,
    hints: Hints,
    **more: Any,  # noqa: ANN401 - the other fields of a Recording
) -> Recording:
    """Return the recording of a table.

    Args:
        builder: where dropped rows are counted.
        sheet: a row for a device at an instant: who it is, by the names of `_IDENTITY`, and what it
            read, by slots and the like; `job` where the source names jobs.
        keys: the device of each row.
        times: when the rows were read; None where the source does not say.
        hints: `interval_s` is used.
        **more: fields of `Recording`.
    """
    if times is not None and not np.isfinite(times.t_s).any():
        times = None
    if times is not None and (rows := _rows_of_a_date(times, keys)) > ONE_ROW:
        builder.notes.append(Message("read.date-above-rows", rows=rows))
        times = None
    gpus = _identities(sheet, keys)
    columns = [c for c in sheet.columns if c not in {*_IDENTITY, "bus", "mig", "job", _MEMORY}]
    samples = sheet[columns].assign(**{GPU: keys})
    if "job" in sheet and sheet["job"].notna().any():
        samples[JOB] = sheet["job"]
    if times is None:
        step = hints.interval_s or DEFAULT_INTERVAL_S
        samples[TIME] = samples.groupby(GPU, sort=False, observed=True).cumcount() * step
    else:
        unset = np.asarray(times.absolute & (times.t_s < _CLOCK_SET_S))
        if unset.any() and not unset.all():  # before the machine asked for the time
            builder.notes.append(Message("read.clock-unset", n=int(unset.sum())))
            times = replace(times, t_s=np.where(unset, np.nan, times.t_s))
        samples[TIME] = times.t_s
        readable = np.isfinite(times.t_s)
        if not readable.all():
            builder.dropped["timestamp not readable"] += int((~readable).sum())
            samples = samples[readable]
        if times.stepped_back:
            builder.notes.append("the clock was set back within the file (end of summer time?).")
        if times.order:
            builder.notes.append(
                f"dates that can be read in two ways (05/11/2026) are taken as {times.order}."
            )
    return builder.recording(samples, gpus, **{**timing(times), **more})


def _rows_of_a_date(times: SourceClock, keys: pd.Series) -> float:
    """Return how many rows of a device a date above them stands for; 1 for times of the rows."""
    if not times.above_rows and np.ptp(times.t_s[np.isfinite(times.t_s)]) > 0:
        return 1.0
    dated = pd.DataFrame({GPU: clock.distinct(keys)[0], TIME: times.t_s}).dropna()
    return len(dated) / len(dated.drop_duplicates())


def _identities(sheet: pd.DataFrame, keys: pd.Series) -> tuple[GpuIdentity, ...]:
    """Return what the first rows of each device say of it."""
    names = [name for name in (*_IDENTITY, _MEMORY) if name in sheet]
    codes, texts = clock.distinct(keys)
    firsts = {}
    for name in names:
        rows = np.flatnonzero(sheet[name].notna().to_numpy() & (codes >= 0))[::-1]
        first = np.full(len(texts), -1)
        first[codes[rows]] = rows  # the last that is put there stays: of each device its first row
        devices = np.flatnonzero(first >= 0)
        cells = sheet[name].iloc[first[devices]].tolist()
        firsts[name] = dict(zip(devices.tolist(), cells, strict=True))
    gpus = []
    for key, device in sorted((texts[device], device) for device in set(codes.tolist()) - {-1}):
        who = {name: first.get(device) for name, first in firsts.items()}
        index, total = who.pop("index", None), who.pop(_MEMORY, None)
        is_sized = who.get("partition") is None and total and total > 0
        gpus.append(
            GpuIdentity(
                key=key,
                index=None if index is None else int(index),
                memory_gib=float(total) if is_sized and total else None,
                **who,
            )
        )
    return tuple(gpus)


def timing(times: SourceClock | None) -> dict[str, bool]:
    """Return what a recording says of its times."""
    absolute, local = (times.absolute, times.local) if times is not None else (False, False)
    return {"timed": times is not None, "absolute": absolute, "local_time": local}
