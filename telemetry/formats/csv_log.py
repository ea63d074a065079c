"""Reads `nvidia-smi --query-gpu ... --format=csv` logs and the CSV of people's own loggers."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pricing.errors import InputError
from telemetry.formats.sniff import booking, refused
from telemetry.readers import clock, csv_text, health
from telemetry.readers.column_names import BITMASK, FLAG, ambiguous, meanings
from telemetry.readers.csv_text import Numbers, numbers, throttled
from telemetry.readers.devices import timing
from telemetry.readers.recording_builder import RecordingBuilder, real_uuid
from telemetry.readers.units import HOST_UNITS
from telemetry.recording.recording import GPU, TIME, GpuIdentity, Recording

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from telemetry.readers.hints import Hints
    from telemetry.readers.units import Meaning

_MEMORY = "memory.total"
_DEFAULT_INTERVAL_S = 1.0
_LEAST_USED = 0.1  # of the rows; a log cut or garbled here and there keeps far more
_HEAD_CHARACTERS = 65_536


def read(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of a CSV log.

    Raises:
        InputError: no header names a measurement, or no row stands under one.
    """
    text = builder.text
    rows = csv_text.split(text, hints)
    if rows is None:
        raise InputError(_no_header(builder.name, text[:_HEAD_CHARACTERS]))
    filled = [table for table in rows.tables if table.lines]
    if not filled:
        raise InputError(
            f"{builder.name}: a header and no row under it, so nothing was measured. "
            "Let nvidia-smi run with `-l 1` while the job runs."
        )
    builder.dropped += rows.dropped
    sheet = joined([sheet_of(table, rows.delimiter, hints, builder) for table in filled])
    blocks = np.concatenate([np.array(table.blocks, dtype=np.int64) for table in filled])
    builder.rows_read = len(blocks) + sum(rows.dropped.values())
    recording = _recording(builder, sheet, blocks, hints)
    if recording.rows_used < _LEAST_USED * len(blocks):
        raise InputError(
            f"{builder.name}: only {recording.rows_used:,} of {len(blocks):,} rows below it "
            "could be read, so this is not a log of GPU readings, or a damaged one. Give another, "
            "or name its columns with --map COLUMN=SLOT."
        )
    return recording


def _no_header(name: str, head: str) -> str:
    row = refused(head, late=True)
    if row is not None:
        return row.refusal(name)
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
    if sheet.uuid is not None and sheet.index is not None:
        places = sheet.index.groupby(sheet.uuid.map(real_uuid)).nunique()
        if len(places) and places.max() > 1:  # blanked, as in what people post
            sheet = replace(sheet, uuid=None)
    keys = keys_of(sheet, t_s, blocks, builder)
    parts = None if sheet.partition is None else sheet.partition.where(sheet.partition != "")
    if parts is not None and parts.notna().any():
        keys = keys.where(parts.isna(), keys + "/part " + parts.astype(object))
    samples = sheet.readings.drop(columns=[_MEMORY], errors="ignore")
    samples[GPU] = keys
    if t_s is None:
        ticks = samples.groupby(GPU, sort=False).cumcount().to_numpy(dtype=float)
        t_s = np.asarray(ticks * (hints.interval_s or _DEFAULT_INTERVAL_S), dtype=np.float64)
    samples[TIME] = t_s
    readable = np.isfinite(samples[TIME].to_numpy(dtype=np.float64))
    if not readable.all():
        builder.dropped["timestamp not readable"] += int((~readable).sum())
    if times is not None and times.stepped_back:
        builder.notes.append("the clock was set back within the file (end of summer time?).")
    samples, host = host_of(samples[readable], builder)
    return builder.recording(
        samples,
        identities_of(sheet, keys),
        host=host,
        **timing(times),
        mig=sheet.mig is not None and bool((sheet.mig == "Enabled").any()),
    )


def keys_of(
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


def identities_of(sheet: Sheet, keys: pd.Series) -> tuple[GpuIdentity, ...]:
    """Return what the first rows of each key say of its device."""
    grouping = keys.to_numpy()

    def firsts(column: pd.Series | None) -> dict[Hashable, Any]:
        return {} if column is None else column.groupby(grouping).first().to_dict()

    index, uuid, model = firsts(sheet.index), firsts(sheet.uuid), firsts(sheet.model)
    host = firsts(sheet.host)
    memory = firsts(sheet.readings[_MEMORY]) if _MEMORY in sheet.readings else {}
    return tuple(
        GpuIdentity(
            key=key,
            index=_index_of(index.get(key), key),
            uuid=real_uuid(uuid.get(key)),
            model=_name(model.get(key)),
            memory_gib=_number(memory.get(key)),
            host=_name(host.get(key)),
            partition=key.rpartition("/")[2] if "/part " in key else None,
        )
        for key in sorted(set(grouping))
    )


def _number(cell: object) -> float | None:
    return cell if isinstance(cell, float) and cell > 0 else None


def _index_of(cell: object, key: str) -> int | None:
    if isinstance(cell, float) and np.isfinite(cell):
        return int(cell)
    place = key.removeprefix("row ")
    return int(place) if place.isdecimal() else None


def _name(cell: object) -> str | None:
    text = cell.strip() if isinstance(cell, str) else ""
    return text if text and not text.startswith("[") and text != "N/A" else None


_THROTTLE = "throttle.fraction"
_MOSTLY = 0.5
_SIGNS = {",": ".", "|": ""}  # of decimals, by what stands between cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Typed columns of the same length.

    Attributes:
        readings: one float column per slot, counter or `memory.total`; NaN where missing.
        index: the driver's index, as floats; None where no column has it, likewise below.
        uuid: as written.
        bus: PCI address as written.
        host: the machine's name as written.
        model: product name as written.
        time: timestamp as written.
        mig: whether MIG is on, as written.
        partition: which part of the device, as written.
    """

    readings: pd.DataFrame
    index: pd.Series | None = None
    uuid: pd.Series | None = None
    bus: pd.Series | None = None
    host: pd.Series | None = None
    model: pd.Series | None = None
    time: pd.Series | None = None
    mig: pd.Series | None = None
    partition: pd.Series | None = None


def sheet_of(
    table: csv_text.CsvTable, delimiter: str, hints: Hints, builder: RecordingBuilder
) -> Sheet:
    """Return a table's columns; figures and missing values are counted in the draft."""
    named = meanings(table.header, hints)
    for i, cell in enumerate(table.header):
        builder.ledger.enter(cell, len(table.lines), read=named[i] is not None)
    builder.ledger.names |= {str(i + 1) for i in range(len(table.header))}
    columns = {i: holds for i, holds in named.items() if holds is not None}
    for i, cell in enumerate(table.header):
        if ambiguous(cell) and named[i] is None:
            builder.notes.append(
                f"column {cell.strip()!r} may be capacity or controller time, so it is not used; "
                f"say which with --map '{cell.strip()}=util.mem_controller'."
            )
    of_health = {i: kind for i, cell in enumerate(table.header) if (kind := health.kind_of(cell))}
    cells = csv_text.frame(table, delimiter, sorted({*columns, *of_health}))
    index, model = _index(cells, columns, builder)
    builder.health += health.findings(_of_health(cells, of_health, index))
    named_model = _text(cells, columns, "name")
    time, day = _text(cells, columns, "timestamp"), _text(cells, columns, "date")
    if day is not None:
        time = day if time is None or day.str.contains(":").all() else day + " " + time
    if time is None and any(table.dates):
        time = pd.Series(table.dates, dtype=object)
    return Sheet(
        readings=_readings(table, cells, columns, delimiter, builder),
        index=index,
        uuid=_text(cells, columns, "uuid"),
        bus=_text(cells, columns, "bus"),
        host=_text(cells, columns, "host"),
        model=model if named_model is None else named_model,
        time=time,
        mig=_text(cells, columns, "mig"),
        partition=_text(cells, columns, "partition"),
    )


def _of_health(
    cells: pd.DataFrame, kinds: Mapping[int, str], index: pd.Series | None
) -> Iterator[tuple[str, str, float]]:
    """Yield GPU, kind and greatest value of each column that tells of health."""
    whose = pd.Series("the GPU", index=cells.index) if index is None else index.ffill().bfill()
    for i, kind in kinds.items():
        words = cells[i].str.strip().replace({"Yes": "1", "No": "0"})
        values = pd.to_numeric(words.str.extract(r"^([\d.]+)")[0], errors="coerce")
        for gpu, value in values.groupby(whose).max().dropna().items():
            yield gpu if isinstance(gpu, str) else f"GPU {gpu:g}", kind, float(value)


def joined(sheets: Sequence[Sheet]) -> Sheet:
    """Return the rows of several tables as one, in their order."""
    if len(sheets) == 1:
        return sheets[0]
    columns: dict[str, pd.Series | None] = {}
    for name in (field.name for field in fields(Sheet) if field.name != "readings"):
        parts = [getattr(sheet, name) for sheet in sheets]
        columns[name] = None
        if any(part is not None for part in parts):
            filled = [
                pd.Series([None] * len(sheet.readings), dtype=object)
                if part is None
                else part.astype(object)
                for part, sheet in zip(parts, sheets, strict=True)
            ]
            columns[name] = pd.concat(filled, ignore_index=True)
    readings = pd.concat([sheet.readings for sheet in sheets], ignore_index=True)
    return Sheet(readings=readings, **columns)


def _readings(
    table: csv_text.CsvTable,
    cells: pd.DataFrame,
    columns: dict[int, Meaning],
    delimiter: str,
    builder: RecordingBuilder,
) -> pd.DataFrame:
    parsed: dict[str, list[tuple[int, int, Numbers]]] = {}
    readings: dict[str, NDArray[np.float64]] = {}
    for i, holds in sorted(columns.items()):
        if holds.target in {BITMASK, FLAG}:
            flags = throttled(cells[i])
            readings[_THROTTLE] = np.fmax(readings.get(_THROTTLE, flags), flags)
        elif holds.scale is not None:
            sign = _SIGNS.get(delimiter, ",")
            got = numbers(cells[i], scale=holds.scale, to=holds.to, sign=sign, typical=holds.unit)
            parsed.setdefault(holds.target, []).append((holds.rank, i, got))
    for target, parts in parsed.items():
        best = sorted(parts, key=lambda item: (not np.isfinite(item[2].raw).any(), *item[:2]))
        used = range(len(best) if target.startswith("counter.") else 1)
        for n, (_, i, got) in enumerate(best):
            slot = target if n in used else None
            builder.column(table.header[i].strip(), slot, columns[i].scale, got.raw)
        # Causes of throttling add up; other columns of one target repeat each other.
        readings[target] = np.sum([best[n][2].scaled for n in used], axis=0)
        builder.missing += best[0][2].missing
    return pd.DataFrame(readings, index=cells.index)


def _text(cells: pd.DataFrame, columns: dict[int, Meaning], target: str) -> pd.Series | None:
    places = sorted((holds.rank, i) for i, holds in columns.items() if holds.target == target)
    return cells[places[0][1]].str.strip() if places else None


def _index(
    cells: pd.DataFrame, columns: dict[int, Meaning], builder: RecordingBuilder
) -> tuple[pd.Series | None, pd.Series | None]:
    """Return the index column that tells most devices apart, and a `gpu` column that holds names.

    Some loggers write a second index column that is always 0.
    """
    numbered: list[tuple[int, int, int, pd.Series]] = []
    model: pd.Series | None = None
    for i, holds in sorted(columns.items()):
        if holds.target != "index":
            continue
        codes, unique = pd.factorize(cells[i])
        texts = pd.Series(unique.astype(object))
        digits = texts.str.extract(r"^\s*(?:[A-Za-z_: ]*?)(\d{1,4})\s*$")[0].astype(float)
        column = pd.Series(digits.to_numpy()[codes])
        if column.notna().mean() > _MOSTLY:
            numbered.append((-column.nunique(), holds.rank, i, column))
        elif model is None:
            model = cells[i].str.strip()
    numbered.sort(key=lambda item: item[:3])
    if len(numbered) > 1 and numbered[0][0] != numbered[1][0]:
        builder.notes.append("two index columns disagree; the one that tells GPUs apart is used.")
    return (numbered[0][3] if numbered else None), model


_MOST_GPUS = 16
_SAME_SIZE = 0.9
_LEAST_TICKS = 3
_ONE_QUERY_S = 0.1
ONLY = "only"


def keys_by_position(
    t_s: NDArray[np.float64] | None, blocks: NDArray[np.int64]
) -> tuple[list[str], str | None]:
    """Return a key for each row and what was assumed.

    Rows of one tick are one row per GPU, in the same order each time. A tick is a run of rows
    closer together than half the time between ticks; without times, the rows between two headers or
    date lines. The reading is taken only where nearly all ticks have the same number of rows.

    Args:
        t_s: the rows' times in seconds, None where there are none.
        blocks: how many headers or date lines came before each row.
    """
    ticks = blocks if t_s is None else _ticks(t_s)
    if t_s is not None and _at_once(t_s):
        ticks = np.zeros(len(ticks), dtype=np.int64)
    starts = np.flatnonzero(np.diff(ticks, prepend=ticks[:1] - 1))
    sizes = np.diff(np.append(starts, len(ticks)))
    size = _rows_of_a_tick(sizes, timed=t_s is not None)
    if size is None and t_s is None and 1 < len(ticks) <= _MOST_GPUS and len(sizes) == 1:
        note = (
            f"{len(ticks)} rows without time or index: taken as readings of one GPU after each "
            "other. If each is a GPU, log index or uuid, too."
        )
        return [ONLY] * len(ticks), note
    if size is None:
        return [ONLY] * len(ticks), None
    place = np.arange(len(ticks)) - np.repeat(starts, sizes)
    note = f"no GPU index: {size} rows at a time, taken as {size} GPUs in their order."
    return [f"row {min(int(p), size - 1)}" for p in place], note


def _at_once(t_s: NDArray[np.float64]) -> bool:
    """Return whether all rows are of one moment: one query that was answered GPU by GPU."""
    times = t_s[np.isfinite(t_s)]
    return 1 < len(times) <= _MOST_GPUS and float(np.ptp(times)) <= _ONE_QUERY_S


def _rows_of_a_tick(sizes: NDArray[np.int64], *, timed: bool) -> int | None:
    """Return how many rows nearly every tick has, None where that is one, or differs."""
    if len(sizes) >= _LEAST_TICKS:
        inner = sizes[1:-1]
        size = int(np.median(inner))
        same = bool((inner == size).mean() >= _SAME_SIZE)
    else:
        size = int(sizes[0])
        same = bool((sizes == size).all()) and (timed or len(sizes) > 1)
    return size if same and 1 < size <= _MOST_GPUS else None


def _ticks(t_s: NDArray[np.float64]) -> NDArray[np.int64]:
    steps = np.diff(t_s, prepend=t_s[:1])
    finite = np.abs(steps[np.isfinite(steps)])
    # With up to 16 GPUs at least one step in 16 is a whole interval.
    interval = float(np.quantile(finite, 1 - 1 / (_MOST_GPUS + 4))) if len(finite) else 0.0
    return np.asarray(np.cumsum(~(np.abs(steps) < interval / 2)), dtype=np.int64)


_PREFIX = "host."
_NEARLY_ONE = 1.1


def host_of(
    samples: pd.DataFrame, builder: RecordingBuilder
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return the readings of the GPUs, and those of the host, once an instant; None without any.

    Where several machines are in the table, the host's are their mean.
    """
    columns = [str(name) for name in samples.columns if name in HOST_UNITS]
    if not columns:
        return samples, None
    host = samples[[TIME, *columns]].copy()
    for name in columns:
        host[name] = _possible(host[name], name, builder)
    rows = host.groupby(TIME, as_index=False).mean().dropna(how="all", subset=columns)
    host = rows.rename(columns=lambda name: name.removeprefix(_PREFIX))
    return samples.drop(columns=columns), host if len(host) else None


def _possible(values: pd.Series, name: str, builder: RecordingBuilder) -> pd.Series:
    most = _NEARLY_ONE if HOST_UNITS[name] == "fraction" else np.inf
    wrong = (values < 0) | (values > most)
    if wrong.any():
        reason = "below 0 or above 100 %" if np.isfinite(most) else "below 0"
        builder.missing[f"{name} {reason}"] += int(wrong.sum())
        builder.notes.append(f"{name}: {int(wrong.sum())} values left out: {reason}.")
    possible = values.where(~wrong)
    return possible.clip(upper=1.0) if np.isfinite(most) else possible
