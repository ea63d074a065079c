"""A table of readings to profiles: which columns it has, what an engine counted, one a job."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec.structs import replace
from numpy.typing import NDArray

from planner.profile.kinds import SLOTS
from planner.profile.model import GpuReadings, Profile, Source, Statistics
from pricing.errors import InputError
from pricing.message import Message
from telemetry.lake.place import SlotColumn, TableColumns, TablePlace, in_batches, opened
from telemetry.profiling.build import Taken, assembled
from telemetry.profiling.window import ActiveWindow, Span, statistics, window_over
from telemetry.readers.column_names import meaning, metrics
from telemetry.readers.hints import Hints
from telemetry.readers.recording_builder import real_uuid
from telemetry.readers.series import no_samples
from telemetry.recording.recording import GpuIdentity, Recording

_JOBS = ("job", "job_id", "jobid", "job_name", "slurm_job_id", "exported_pod", "pod", "workload")
_ROLES = ("timestamp", "host", "uuid", "index", "name", "memory.total")
# Quantiles are told apart to these, in a slot's unit.
_STEPS = {"fraction": 0.001, "GiB": 0.01, "W": 1.0, "°C": 1.0, "MHz": 5.0, "MiB/s": 1.0}


def columns_of(names: Sequence[str], table: str, hints: Hints) -> TableColumns:
    """Return which columns of a table are used.

    Raises:
        InputError: no column says when, or none is a reading, or the job's column is not there.
    """
    by_target: dict[str, tuple[int, str, float]] = {}
    for name in names:
        named_as = meaning(name, hints) or metrics().get(name.lower())
        target = name if name in SLOTS else named_as.target if named_as is not None else None
        scale = 1.0 if name in SLOTS or named_as is None else named_as.scale
        if name == "t_s":
            target, scale = "timestamp", None
        rank = -1 if name in SLOTS or named_as is None else named_as.rank
        usable = target in _ROLES or (target in SLOTS and scale is not None)
        if target is not None and usable and rank < by_target.get(target, (1 << 30,))[0]:
            by_target[target] = (rank, name, scale or 1.0)
    slots = tuple(
        SlotColumn(
            slot=s, column=by_target[s][1], scale=by_target[s][2], step=_STEPS[SLOTS[s].unit]
        )
        for s in SLOTS
        if s in by_target and SLOTS[s].unit in _STEPS
    )
    job_column = hints.job_label
    lower = {name.lower(): name for name in names}
    job_names = (job_column.lower(),) if job_column else _JOBS
    job = next((lower[name] for name in job_names if name in lower), None)
    _refuse(names, table, hints, (bool(slots), "timestamp" in by_target, job is not None))
    memory = by_target.pop("memory.total", None)
    named = {role: by_target[role][1] for role in _ROLES if role in by_target}
    return TableColumns(
        named=named | ({"job": job} if job is not None else {}),
        memory=memory and memory[1:],
        slots=slots,
    )


def _refuse(
    names: Sequence[str], table: str, hints: Hints, present: tuple[bool, bool, bool]
) -> None:
    slots, time, job = present
    shown: dict[str, str | list[str]] = {"table": table, "columns": list(names[:12])}
    counted = {*_ROLES, *(name for name, slot in SLOTS.items() if slot.unit in _STEPS)}
    problems = [
        Message("read.table-map", column=column, slot=mapping, table=table)
        for column, mapping in hints.map
        if mapping.partition(":")[0] not in counted
    ]
    if not time:
        problems.append(Message("read.table-time", **shown))
    if not slots:
        problems.append(Message("read.table-slots", **shown))
    if hints.job_label and not job:
        problems.append(Message("read.table-job", label=hints.job_label, **shown))
    if problems:
        raise InputError(problems)


Device = tuple[str, str, str, str]
"""Job, host, uuid, index."""
_KEYS = ("job", "host", "uuid", "idx")
_NUMBERS = ("code", "micros", "n", "area", "area_millionths", "least", "most")
_MILLION = 1e6


@dataclass(slots=True)
class SlotCounts:
    """The different values of one slot of one device, and how long each stood.

    Attributes:
        parts: codes (values over the slot's step) and microseconds, in the order they came in.
        area: the sum of values times seconds, the whole part of each.
        area_millionths: the sum of the rests.
        minimum: the least value.
        maximum: the greatest.
        dropped: values out of range.
    """

    parts: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = field(default_factory=list)
    area: int = 0
    area_millionths: int = 0
    minimum: float = np.inf
    maximum: float = -np.inf
    dropped: int = 0

    def stood(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the codes, ascending, and the seconds of each."""
        if not self.parts:
            return np.empty(0), np.empty(0)
        codes, micros = (np.concatenate(part) for part in zip(*self.parts, strict=True))
        order = np.argsort(codes, kind="stable")
        return codes[order], micros[order] / _MILLION

    @property
    def value_seconds(self) -> float:
        """Values times seconds, to the millionth."""
        return (self.area * int(_MILLION) + self.area_millionths) / _MILLION

    def add(self, rows: NDArray[np.float64]) -> None:
        """Add rows of code, micros, n, area, its millionths, least, most, by column."""
        good = np.isfinite(rows[0])
        if not good.all():
            self.dropped += int(rows[2][~good].sum())
            rows = rows[:, good]
        if rows.shape[1]:
            self.parts.append((rows[0], rows[1]))
            # Sums of whole numbers up to 2^53 are exact, whatever their order.
            self.area += int(rows[3].sum())
            self.area_millionths += int(rows[4].sum())
            self.minimum = min(self.minimum, float(rows[5].min()))
            self.maximum = max(self.maximum, float(rows[6].max()))


def counted_by_device(batches: Iterable[pa.RecordBatch]) -> dict[Device, dict[int, SlotCounts]]:
    """Return the counts of `histogram.values` by device and slot.

    Args:
        batches: its rows, in any order.
    """
    counted: dict[Device, dict[int, SlotCounts]] = {}
    for batch in batches:
        by_slot = batch.to_pandas().groupby([*_KEYS, "slot"], sort=False)
        for (job, host, uuid, idx, slot), rows in by_slot:
            slots = counted.setdefault((job, host, uuid, idx), {})
            numbers = rows[list(_NUMBERS)].to_numpy(dtype=float).T
            slots.setdefault(int(slot), SlotCounts()).add(numbers)
    return counted


_ENERGY, _POWER = "energy.total_j", "power.board_w"
_EPOCHS = ((6e17, 1e-9), (6e14, 1e-6), (6e11, 1e-3))
_ABSOLUTE_S = 6e8


def profiles_of_place(
    source: TablePlace, who: Mapping[str, str | None], hints: Hints
) -> tuple[Profile, ...]:
    """Return one profile a job of a table, wherever it lies.

    Args:
        source: where.
        who: as `place.opened` takes it.
        hints: what the table does not say; `job_label` is the column that names jobs.

    Raises:
        InputError: it cannot be read, or what reads it is not installed.
        UnreachableError: the engine does not answer.
    """
    with opened(source, who) as table:
        return profiles_of_table(table, source.name, hints)


def profiles_of_table(
    table: Any,  # noqa: ANN401 - an Ibis table
    name: str,
    hints: Hints,
) -> tuple[Profile, ...]:
    """Return one profile a job, by name; a machine is one where no column names jobs.

    Raises:
        InputError: the table has no such columns, or no row.
    """
    from telemetry.lake import histogram  # noqa: PLC0415 - Ibis is an extra

    columns = columns_of(table.columns, name, hints)
    time = table[columns.named["timestamp"]]
    unit_s = 1.0
    if not time.type().is_timestamp():
        latest = time.cast("float64").max().execute()
        unit_s = next((unit for floor, unit in _EPOCHS if latest and latest >= floor), 1.0)
    rows = histogram.readings(table, columns, unit_s)
    if "job" not in columns.named and "host" in columns.named:
        rows = rows.mutate(job=rows.host)
    if hints.job is not None:
        rows = rows.filter(rows.job == hints.job)
    devices = histogram.devices(rows, columns).execute()
    if not len(devices):
        raise InputError(f"{name}: no row that is used (of job {hints.job or 'any'}).")
    steps = histogram.steps(rows).execute()
    interval_s = _usual(steps)
    windows = {str(job): _window(own, interval_s) for job, own in devices.groupby("job", sort=True)}
    if hints.name is not None and len(windows) > 1:
        raise InputError(f"--name {hints.name}: {len(windows)} jobs cannot share a name.")
    uncut = [job for job, w in windows.items() if w.note and w.duration_s == w.whole_s]
    lacking = {i for i in range(len(columns.slots)) if devices[f"n{i}"].sum() < devices["n"].sum()}
    value_counts = histogram.values(rows, columns, interval_s or 1.0, (uncut, lacking))
    counted = counted_by_device(in_batches(value_counts))
    return tuple(
        _profile((name, job), (own, counted), windows[str(job)], columns, hints)
        for job, own in devices.groupby("job", sort=True)
    )


def _usual(steps: pd.DataFrame) -> float | None:
    """Return the time between rows that is met most often; None for single instants."""
    if not len(steps):
        return None
    counts = steps.groupby("step", as_index=False)["n"].sum()
    return float(counts["step"].iloc[int(counts["n"].to_numpy().argmax())])


def _window(devices: pd.DataFrame, interval_s: float | None) -> ActiveWindow:
    spans = []
    for read in devices[["first", "last", "busy_from", "busy_to"]].to_numpy(dtype=float).tolist():
        stood_s = interval_s or 0.0
        busy = None if np.isnan(read[2]) else ((read[2], stood_s, 0.0), (read[3], stood_s, 0.0))
        spans.append(Span(read[0], read[1], interval_s, busy))
    return window_over(spans)


def _profile(
    names: tuple[str, Any],
    read: tuple[pd.DataFrame, Mapping[Device, Mapping[int, SlotCounts]]],
    window: ActiveWindow,
    columns: TableColumns,
    hints: Hints,
) -> Profile:
    (table, job), (devices, counted) = names, read
    order = sorted(devices.to_dict("records"), key=_device_of)
    gpus, readings, shares = [], [], []
    dropped: dict[str, int] = defaultdict(int)
    for device in order:
        gpu = _identity(device)
        counts = counted.get((device["job"], device["host"], device["uuid"], device["idx"]), {})
        metrics, share = _metrics(counts, window, columns, dropped)
        gpus.append(gpu)
        shares.append(share)
        readings.append(GpuReadings(index=gpu.index, uuid=gpu.uuid, metrics=metrics))
    coverage = None
    if window.interval_s is not None and window.duration_s > 0:
        coverage = round(float(np.mean([min(1.0, s / window.duration_s) for s in shares])), 6)
    readings_of_job = Taken(window=window, coverage=coverage, gpus=tuple(readings))
    rows = int(devices["n"].sum())
    source = Source(path=table, sha256=None, format="table", dropped=dict(sorted(dropped.items())))
    note = f"{table}: counted where it lies: {rows} rows, GPUs: {len(gpus)}; quantiles in steps."
    merged = Recording(
        samples=no_samples(),
        gpus=tuple(gpus),
        sources=(source,),
        absolute=window.begin_s >= _ABSOLUTE_S,
        notes=(note,),
    )
    return assembled(merged, readings_of_job, str(job) or None, hints)


def _device_of(device: Mapping[Any, Any]) -> tuple[str, int, str, str]:
    index = int(device["idx"]) if str(device["idx"]).isdecimal() else 1 << 30
    return (device["host"], index, device["idx"], device["uuid"])


def _identity(device: Mapping[Any, Any]) -> GpuIdentity:
    memory = device["memory"]
    uuid = real_uuid(device["uuid"])
    return GpuIdentity(
        key=uuid or f"{device['host']} index {device['idx']}",
        index=int(device["idx"]) if str(device["idx"]).isdecimal() else None,
        uuid=uuid,
        model=device["model"] or None,
        memory_gib=float(memory) if pd.notna(memory) and memory > 0 else None,
        host=device["host"] or None,
    )


def _metrics(
    counted: Mapping[int, SlotCounts],
    window: ActiveWindow,
    columns: TableColumns,
    dropped: dict[str, int],
) -> tuple[dict[str, Statistics], float]:
    metrics: dict[str, Statistics] = {}
    share, energy = 0.0, None
    for index, column in enumerate(columns.slots):
        counts = counted.get(index)
        if counts is None:
            continue
        if counts.dropped:
            dropped[f"value {column.slot} out of range"] += counts.dropped
        codes, seconds = counts.stood()
        low, high, area = counts.minimum, counts.maximum, counts.value_seconds
        by_target = (
            statistics(np.clip(codes * column.step, low, high), seconds) if len(codes) else None
        )
        if by_target is None:
            continue
        total = float(seconds.sum())
        exact = {"mean": round(area / total, 6), "min": round(low, 6), "max": round(high, 6)}
        if window.interval_s is None:
            metrics[column.slot] = Statistics(**exact)
            continue
        metrics[column.slot] = replace(by_target, **exact)
        share = max(share, total)
        energy = round(area, 3) if column.slot == _POWER else energy
    if energy is not None:
        metrics[_ENERGY] = Statistics(mean=energy, max=energy)
    return metrics, share
