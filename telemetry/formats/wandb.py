"""Reads Weights & Biases: system metrics as JSON lines, as CSV of a chart, and a run's own log."""

import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pricing.errors import InputError
from pricing.message import Message
from telemetry.formats.stored_runs import settings_of
from telemetry.profiling.merge import per_second
from telemetry.readers import clock, records
from telemetry.readers.clock import SourceClock
from telemetry.readers.column_names import names_of
from telemetry.readers.devices import DeviceRow, device_recording, timing
from telemetry.readers.hints import Hints
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.series import no_samples
from telemetry.readers.units import MIB, MOST
from telemetry.recording.recording import GPU, TIME, GpuIdentity, Recording

_Columns = dict[str, NDArray[np.float64]]

_GPU_KEY = re.compile(r"(?:system[./])?gpu\.(process\.)?(\d{1,4})\.(\w+)(?:/l:.*)?")
_HOST = re.compile(
    r"(?:system[./])?(cpu|memory|memory_percent|proc\.memory\.availableMB|network\."
    r"(?:recv|sent)|disk\.[^/]+\.(?:in|out)|disk\.(?:in|out))(?:/l:.*)?"
)
_CORE = re.compile(r"(?:system[./])?cpu\.\d+\.cpu_percent(?:/l:.*)?")
_METADATA = "wandb-metadata.json"
_ALMOST_ALL = 0.999
_MEGABYTE_COUNTERS = {"in": "disk_read_mib_s", "out": "disk_write_mib_s"}
_BYTE_COUNTERS = {"recv": "net_rx_mib_s", "sent": "net_tx_mib_s"}


def read_events(builder: RecordingBuilder, _: Hints) -> Recording:
    """Return the readings of an event stream: one JSON object a line, GPUs and CPU apart.

    Raises:
        InputError: no row is JSON, or none holds a reading.
    """
    rows = records.documents(builder)
    builder.rows_read += len(rows)
    return _events(builder, rows)


def _events(builder: RecordingBuilder, rows: list[dict[str, object]]) -> Recording:
    """Return the recording of events, the figures of each by W&B's names of them.

    Args:
        builder: where they are counted, apart from `rows_read`.
        rows: at least one.

    Raises:
        InputError: none holds a reading.
    """
    key = "_timestamp" if any("_timestamp" in row for row in rows) else "_runtime"
    wide = _numbers(rows)
    t_s = clock.placed(wide.get(key, np.arange(len(rows), dtype=float)))
    samples, gpus = _gpus(wide, t_s, builder)
    host = _host(wide, t_s)
    if not gpus and host is None:
        raise InputError(Message("read.wandb", file=builder.name))
    _count_unused(wide, t_s, builder)
    steps = wide.get("_step", np.empty(0))
    done = float(np.nanmax(steps) - np.nanmin(steps)) if np.isfinite(steps).any() else 0.0
    return builder.recording(
        samples,
        gpus,
        host=host,
        work=("step", done) if done > 0 else None,
        host_ram_gib=_ram_gib(wide),
        absolute=key == "_timestamp",
        timed=key in wide,
    )


def _numbers(rows: list[dict[str, object]]) -> _Columns:
    """Return each key as a column over all rows, NaN where a row has no number under it."""
    numbers = [{key: records.number_of(value) for key, value in row.items()} for row in rows]
    frame = pd.DataFrame(numbers, dtype=float).dropna(axis="columns", how="all")
    return {str(key): frame[key].where(frame[key].abs() < MOST).to_numpy() for key in frame}


def _gpus(
    wide: _Columns, t_s: NDArray[np.float64], builder: RecordingBuilder
) -> tuple[pd.DataFrame, tuple[GpuIdentity, ...]]:
    names = names_of("wandb-jsonl")
    columns: dict[int, _Columns] = defaultdict(dict)
    owned: set[int] = set()
    for key in sorted(wide):
        match = _GPU_KEY.fullmatch(key)
        holds = names.get(match[3]) if match else None
        if match is None or holds is None or holds.scale is None:
            continue
        index = int(match[2])
        if match[1]:
            owned.add(index)  # the same device values, there only where the run uses the device
        builder.column(key, holds.target, holds.scale, wide[key])
        scaled = wide[key] * holds.scale
        before = columns[index].get(holds.target, scaled)
        columns[index][holds.target] = np.where(np.isfinite(before), before, scaled)
    if owned and owned < set(columns):
        unused = ", ".join(str(i) for i in sorted(set(columns) - owned))
        builder.notes.append(f"left out, as the machine's and not the run's: GPU {unused}.")
        columns = defaultdict(dict, {i: columns[i] for i in sorted(owned)})
    frames = [
        pd.DataFrame({TIME: t_s, GPU: f"index {i}", **own}).dropna(subset=list(own), how="all")
        for i, own in sorted(columns.items())
    ]
    gpus = tuple(
        GpuIdentity(key=f"index {i}", index=i, memory_gib=_total_gib(own))
        for i, own in sorted(columns.items())
    )
    if not frames:
        return no_samples(), gpus
    samples = pd.concat(frames, ignore_index=True)
    return samples[np.isfinite(samples[TIME])], gpus


def _total_gib(columns: _Columns) -> float | None:
    """Return the device's memory: bytes in use over the share in use."""
    used, share = columns.get("mem.used_gib"), columns.get("fraction.memory")
    if used is None or share is None:
        return None
    with np.errstate(over="ignore"):  # of a damaged figure
        total = used[share > 0] / share[share > 0]
    sizes = total[np.isfinite(total)]
    return round(float(np.median(sizes)), 6) if len(sizes) else None


def _host(wide: _Columns, t_s: NDArray[np.float64]) -> pd.DataFrame | None:
    columns: _Columns = {}
    disks: dict[str, list[NDArray[np.float64]]] = defaultdict(list)
    for key in sorted(wide):
        match = _HOST.fullmatch(key)
        if match is None:
            continue
        name = match[1]
        last = name.rsplit(".", 1)[-1]
        if name == "cpu":
            columns["cpu_util"] = np.minimum(wide[key] * 0.01, 1.0)
        elif name in {"memory", "memory_percent"} or last == "availableMB":
            continue
        elif name.startswith("network"):
            columns[_BYTE_COUNTERS[last]] = per_second(wide[key] / MIB, t_s)
        else:
            disks[_MEGABYTE_COUNTERS[last]].append(per_second(wide[key], t_s))
    if cores := [column for key, column in wide.items() if _CORE.fullmatch(key)]:
        columns["cpu_busiest_core"] = np.minimum(np.fmax.reduce(cores) * 0.01, 1.0)
    for name, parts in disks.items():
        columns[name] = np.sum(parts, axis=0)
    if (ram := _ram(wide)) is not None:
        columns["ram_used_gib"] = ram[0]
    if not columns:
        return None
    possible = {name: np.where(column >= 0, column, np.nan) for name, column in columns.items()}
    frame = pd.DataFrame({TIME: t_s, **possible}).dropna(subset=list(columns), how="all")
    frame = frame[np.isfinite(frame[TIME])]
    return frame if len(frame) else None


def _ram(wide: _Columns) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return host memory in use and in all, GiB: from what is available and the share in use."""
    share = _ending(wide, "memory_percent", "system.memory")
    available = _ending(wide, "proc.memory.availableMB")
    if share is None or available is None:
        return None
    total = available / 1024 / (1 - np.minimum(share * 0.01, _ALMOST_ALL))
    return total - available / 1024, total


def _ending(wide: _Columns, *ends: str) -> NDArray[np.float64] | None:
    return next((column for key, column in sorted(wide.items()) if key.endswith(ends)), None)


def _ram_gib(wide: _Columns) -> float | None:
    ram = _ram(wide)
    sizes = ram[1][np.isfinite(ram[1])] if ram is not None else np.empty(0)
    return round(float(np.median(sizes)), 3) if len(sizes) else None


def _count_unused(wide: _Columns, t_s: NDArray[np.float64], builder: RecordingBuilder) -> None:
    names = names_of("wandb-jsonl")
    used = [
        column
        for key, column in wide.items()
        if _HOST.fullmatch(key) or ((gpu := _GPU_KEY.fullmatch(key)) and gpu[3] in names)
    ]
    some = np.any([np.isfinite(v) for v in used], axis=0) & np.isfinite(t_s)
    if unused := int((~some).sum()):
        builder.dropped["row without a reading"] += unused


# RUN - system/gpu.0.powerWatts; beside it stand RUN - ...__MIN and __MAX of the same points.
_CHART_COLUMN = re.compile(
    r"(?:(.{1,200}) - )?system[./]gpu\.(?:process\.)?(\d{1,3})\.([A-Za-z0-9]+)"
)
_CHART_HOST = re.compile(rf"(?:(.{{1,200}}) - )?({_HOST.pattern})")
_TIMES = ("_timestamp", "wall time", "relative time (wall)", "relative time (process)", "_runtime")


def read_chart(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of the CSV that W&B's web page exports of a chart.

    It has one column a run and metric; several runs are several jobs.

    Raises:
        InputError: no column is a system metric, or no row stands under the header.
    """
    rows = list(records.csv_rows(builder, "wrong number of fields"))
    builder.rows_read += len(rows)
    columns = {name: match for name in rows[0] if (match := _chart_column(name))} if rows else {}
    several = len({column[1] for column in columns.values()}) > 1
    host, times = _chart_host(rows, hints)
    if host is not None and not columns:
        return builder.recording(no_samples(), (), host=host, **timing(times))
    recording = device_recording(
        builder,
        [row for cells in rows for row in _chart_rows(cells, columns, several=several)],
        hints,
        counted=True,
    )
    return replace(recording, host=host)


def _chart_host(
    rows: list[dict[str, str]], hints: Hints
) -> tuple[pd.DataFrame | None, SourceClock | None]:
    """Return the host's readings of one run, and when they were taken.

    Of several runs' nobody knows whose GPUs they feed.
    """
    header = rows[0] if rows else {}
    names = {name: match for name in header if (match := _CHART_HOST.fullmatch(name))}
    time = next((name for usual in _TIMES for name in header if name.lower() == usual), None)
    if time is None or len({match[1] for match in names.values()}) != 1:
        return None, None
    columns = {match[2]: pd.Series([row[name] for row in rows]) for name, match in names.items()}
    wide = {name: pd.to_numeric(c, errors="coerce").to_numpy(float) for name, c in columns.items()}
    times = clock.parse(pd.Series([row[time] for row in rows], dtype=object), hints.zone)
    return _host(wide, times.t_s), times


def _chart_column(name: str) -> re.Match[str] | None:
    match = _CHART_COLUMN.fullmatch(name)
    return match if match is not None and match[3] in names_of("wandb-jsonl") else None


def _chart_rows(
    cells: dict[str, str], columns: dict[str, re.Match[str]], *, several: bool
) -> Iterator[DeviceRow]:
    lowered = {name.lower(): cell for name, cell in cells.items()}
    time = next((lowered[name] for name in _TIMES if name in lowered), None)
    readings: dict[tuple[str, int], dict[str, str]] = defaultdict(dict)
    for name, column in columns.items():
        if cells[name]:
            readings[column[1] or "", int(column[2])].setdefault(column[3], cells[name])
    for (run, index), of_gpu in sorted(readings.items()):
        yield DeviceRow(
            cells=of_gpu, index=index, time=time, host=run if several else None, job=run or None
        )


def with_metadata(recording: Recording, path: Path) -> Recording:
    """Return the readings of a run with what `wandb-metadata.json` beside it says of its machine.

    Args:
        recording: of any file of the run.
        path: of that file.
    """
    places = (path.parent / _METADATA, path.parent / "files" / _METADATA)
    try:
        facts = json.loads(next(f for f in places if f.is_file()).read_text(encoding="utf-8"))
    except (StopIteration, OSError, ValueError):
        return recording
    if not isinstance(facts, dict):
        return recording
    devices = facts.get("gpu_nvidia") or facts.get("gpu_devices") or []
    by_index = {i: gpu for i, gpu in enumerate(devices) if isinstance(gpu, dict)}
    host = facts.get("host")
    gpus = []
    for gpu in recording.gpus:
        device = by_index.get(gpu.index or 0, {})
        total = records.float_of(device.get("memoryTotal") or device.get("memory_total"))
        named = replace(
            gpu,
            model=gpu.model or device.get("name") or facts.get("gpu"),
            uuid=gpu.uuid or device.get("uuid"),
            memory_gib=gpu.memory_gib or (total and total / 2**30),
            host=gpu.host or (host if isinstance(host, str) else None),
        )
        gpus.append(named)
    cores = records.float_of(facts.get("cpu_count_logical") or facts.get("cpu_count"))
    return replace(recording, gpus=tuple(gpus), cpu_cores=cores)


# The framing of run-ID.wandb is that of LevelDB's log format (blocks of 32 KiB, records in
# fragments), its checksum zlib's CRC-32 over kind and fragment; the fields are those of wandb's
# `wandb_internal.proto`: statistics are field 7 of a record, its history field 2.
_BLOCK, _FRAME = 32_768, 7
_BROKEN, _FULL, _FIRST, _MIDDLE, _LAST = 0, 1, 2, 3, 4
_HISTORY, _CONFIG, _STATS, _RUN, _CONFIG_OF_RUN, _UPDATE = 2, 5, 7, 17, 4, 1
_STATS_TIME, _STATS_ITEM, _HISTORY_ITEM = 2, 3, 1
_KEY, _NESTED_KEY, _VALUE_JSON = 1, 2, 16
_HISTORY_KEYS = ("_step", "_runtime")


def read_log(builder: RecordingBuilder, _: Hints) -> Recording:
    """Return the system metrics of a run's own log; what is damaged is left out and counted.

    Raises:
        InputError: it holds no record that can be read, or no system metric.
    """
    rows: list[dict[str, object]] = []
    config: dict[str, object] = {}
    for record in _records(builder):
        try:
            row = _row(record)
            config |= _config(record)
        except (ValueError, IndexError, RecursionError):
            builder.leave_out("damaged record")
            continue
        if row:
            rows.append(row)
    builder.rows_read += len(rows)
    if not rows:
        raise builder.empty_error()
    return replace(_events(builder, rows), settings=settings_of(config.items()))


def _records(builder: RecordingBuilder) -> Iterator[bytes]:
    """Yield whole records; one of which a fragment is damaged or missing is left out."""
    parts: bytes | None = None
    for kind, fragment in _fragments(builder):
        if kind in {_FULL, _FIRST}:
            parts = fragment
        elif kind == _BROKEN:
            parts = None
        elif parts is not None:
            parts += fragment
        if kind in {_FULL, _LAST} and parts is not None:
            yield parts
            parts = None


def _fragments(builder: RecordingBuilder) -> Iterator[tuple[int, bytes]]:
    """Yield kind and content of every fragment whose checksum is right."""
    data = builder.payload.data
    at = _FRAME  # the file's own header is as long as a frame's
    while at + _FRAME <= len(data):
        room = _BLOCK - at % _BLOCK
        if room < _FRAME:
            at += room
            continue
        checksum = int.from_bytes(data[at : at + 4], "little")
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        if kind not in {_FULL, _FIRST, _MIDDLE, _LAST} or length > room - _FRAME:
            # Zeros fill a block that was preallocated; anything else is damage. Both end the block.
            builder.leave_out("damaged block", int(kind != 0))
            at += room
            continue
        fragment = data[at + _FRAME : at + _FRAME + length]
        at += _FRAME + length
        if len(fragment) < length:
            builder.leave_out("cut record")
        elif zlib.crc32(fragment, zlib.crc32(bytes([kind]))) != checksum:
            builder.leave_out("damaged record")
            yield _BROKEN, b""
        else:
            yield kind, fragment


def _row(record: bytes) -> dict[str, object]:
    """Return the figures of a record by key; empty for records of other kinds."""
    row: dict[str, object] = dict(map(_item, records.protobuf_parts(record, _STATS, _STATS_ITEM)))
    for time in records.protobuf_parts(record, _STATS, _STATS_TIME):
        row["_timestamp"] = _seconds(time)
    steps = dict(map(_item, records.protobuf_parts(record, _HISTORY, _HISTORY_ITEM)))
    return row | {key: steps[key] for key in _HISTORY_KEYS if key in steps}


def _config(record: bytes) -> dict[str, object]:
    """Return what a record says of the run's configuration."""
    updates = records.protobuf_parts(record, _CONFIG, _UPDATE)
    return dict(
        map(_item, (*updates, *records.protobuf_parts(record, _RUN, _CONFIG_OF_RUN, _UPDATE)))
    )


def _item(data: bytes) -> tuple[str, object]:
    key, value = "", b"null"
    for field, part in records.protobuf_fields(data):
        if field in {_KEY, _NESTED_KEY} and isinstance(part, bytes) and not key:
            key = part.decode("utf-8", "replace")
        elif field == _VALUE_JSON and isinstance(part, bytes):
            value = part
    return key, json.loads(value)


def _seconds(data: bytes) -> float:
    """Return a protobuf Timestamp as seconds since 1970."""
    parts = {
        field: value for field, value in records.protobuf_fields(data) if isinstance(value, int)
    }
    return parts.get(1, 0) + parts.get(2, 0) / 1e9
