"""What an engine counted, as profiles."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from planner.profile.model import GpuReadings, Source, Statistics
from pricing.errors import InputError
from telemetry.lake.columns import columns_of
from telemetry.lake.counts import counted_by_device
from telemetry.lake.place import TablePlace, in_batches, opened
from telemetry.parsing.recording_builder import real_uuid
from telemetry.profiling.build import Taken, assembled
from telemetry.profiling.merge import Merged
from telemetry.profiling.statistics import statistics
from telemetry.profiling.window import ActiveWindow
from telemetry.recording.recording import GPU, JOB, TIME, GpuIdentity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.profile.model import Profile
    from telemetry.lake.columns import TableColumns
    from telemetry.lake.counts import Device, SlotCounts
    from telemetry.parsing.hints import Hints

_ENERGY, _POWER = "energy.total_j", "power.board_w"
_LEAST_SHARE = 0.05
_EPOCHS = ((6e17, 1e-9), (6e14, 1e-6), (6e11, 1e-3))
_ABSOLUTE_S = 6e8


def profiles_of_place(
    place: TablePlace, who: Mapping[str, str | None], hints: Hints
) -> tuple[Profile, ...]:
    """Return one profile a job of a table, wherever it lies.

    Args:
        place: where.
        who: as `place.opened` takes it.
        hints: what the table does not say; `job_label` is the column that names jobs.

    Raises:
        InputError: it cannot be read, or what reads it is not installed.
        UnreachableError: the engine does not answer.
    """
    with opened(place, who) as table:
        return profiles_of_table(table, place.name, hints)


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
    time = table[columns.time]
    unit_s = 1.0
    if not time.type().is_timestamp():
        most = time.cast("float64").max().execute()
        unit_s = next((unit for least, unit in _EPOCHS if most and most >= least), 1.0)
    rows = histogram.readings(table, columns, unit_s)
    if columns.job is None and columns.host is not None:
        rows = rows.mutate(job=rows.host)
    if hints.job is not None:
        rows = rows.filter(rows.job == hints.job)
    devices = histogram.devices(rows, columns).execute()
    if not len(devices):
        raise InputError(f"{name}: no row that is used (of job {hints.job or 'any'}).")
    steps = histogram.steps(rows).execute()
    interval_s = _usual(steps)
    windows = {
        str(job): _window(ours, interval_s) for job, ours in devices.groupby("job", sort=True)
    }
    if hints.name is not None and len(windows) > 1:
        raise InputError(f"--name {hints.name}: {len(windows)} jobs cannot share a name.")
    whole = [job for job, window in windows.items() if window.note and "nothing" in window.note]
    lacking = {i for i in range(len(columns.slots)) if devices[f"n{i}"].sum() < devices["n"].sum()}
    found = histogram.values(rows, columns, interval_s or 1.0, (whole, lacking))
    counted = counted_by_device(in_batches(found))
    return tuple(
        _profile((name, job), (ours, counted), windows[str(job)], columns, hints)
        for job, ours in devices.groupby("job", sort=True)
    )


def _usual(steps: pd.DataFrame) -> float | None:
    """Return the time between rows that is met most often; None for single instants."""
    if not len(steps):
        return None
    counts = steps.groupby("step", as_index=False)["n"].sum()
    return float(counts["step"].iloc[int(counts["n"].to_numpy().argmax())])


def _window(devices: pd.DataFrame, interval_s: float | None) -> ActiveWindow:
    first, last = float(devices["first"].min()), float(devices["last"].max())
    length = interval_s or 0.0
    begin, until = devices["busy_from"].min(), devices["busy_to"].max()
    start, newest, note = first, last, None
    if pd.notna(begin) and interval_s is not None:
        busy_s, whole_s = float(until) + length - float(begin), last + length - first
        if busy_s < _LEAST_SHARE * whole_s:
            note = f"busy for {busy_s:.4g} s of {whole_s:.4g} s only; nothing was cut off as idle."
        elif max(float(begin) - first, last - float(until)) > length / 2:
            start, newest = float(begin), float(until)
            lead, tail = start - first, last - newest
            note = (
                f"idle lead-in of {lead:.4g} s and tail of {tail:.4g} s are not in the statistics."
            )
    return ActiveWindow(
        start_s=start,
        end_s=newest + length,
        last_s=newest,
        begin_s=first,
        whole_s=last + length - first,
        interval_s=interval_s,
        note=note,
    )


def _profile(
    names: tuple[str, Any],
    read: tuple[pd.DataFrame, Mapping[Device, Mapping[int, SlotCounts]]],
    window: ActiveWindow,
    columns: TableColumns,
    hints: Hints,
) -> Profile:
    (table, job), (devices, counted) = names, read
    order = sorted(devices.to_dict("records"), key=_place)
    gpus, readings, shares = [], [], []
    dropped: dict[str, int] = defaultdict(int)
    for one in order:
        gpu = _identity(one)
        mine = counted.get((one["job"], one["host"], one["uuid"], one["idx"]), {})
        metrics, share = _metrics(mine, window, columns, dropped)
        gpus.append(gpu)
        shares.append(share)
        readings.append(GpuReadings(index=gpu.index, uuid=gpu.uuid, metrics=metrics))
    coverage = None
    if window.interval_s is not None and window.duration_s > 0:
        coverage = round(float(np.mean([min(1.0, s / window.duration_s) for s in shares])), 6)
    taken = Taken(window=window, coverage=coverage, gpus=tuple(readings))
    rows = int(devices["n"].sum())
    source = Source(path=table, sha256=None, format="table", dropped=dict(sorted(dropped.items())))
    note = f"{table}: counted where it lies: {rows} rows, GPUs: {len(gpus)}; quantiles in steps."
    merged = _merged(tuple(gpus), source, note, absolute=window.begin_s >= _ABSOLUTE_S)
    return assembled(merged, taken, str(job) or None, hints)


def _place(one: Mapping[Any, Any]) -> tuple[str, int, str, str]:
    index = int(one["idx"]) if str(one["idx"]).isdecimal() else 1 << 30
    return (one["host"], index, one["idx"], one["uuid"])


def _identity(one: Mapping[Any, Any]) -> GpuIdentity:
    memory = one["memory"]
    uuid = real_uuid(one["uuid"])
    return GpuIdentity(
        key=uuid or f"{one['host']} index {one['idx']}",
        index=int(one["idx"]) if str(one["idx"]).isdecimal() else None,
        uuid=uuid,
        model=one["model"] or None,
        memory_gib=float(memory) if pd.notna(memory) and memory > 0 else None,
        host=one["host"] or None,
    )


def _metrics(
    counted: Mapping[int, SlotCounts],
    window: ActiveWindow,
    columns: TableColumns,
    dropped: dict[str, int],
) -> tuple[dict[str, Statistics], float]:
    metrics: dict[str, Statistics] = {}
    share, energy = 0.0, None
    for place, one in enumerate(columns.slots):
        mine = counted.get(place)
        if mine is None:
            continue
        if mine.dropped:
            dropped[f"value {one.slot} out of range"] += mine.dropped
        codes, seconds = mine.stood()
        low, high, area = mine.least, mine.most, mine.value_seconds
        found = statistics(np.clip(codes * one.step, low, high), seconds) if len(codes) else None
        if found is None:
            continue
        total = float(seconds.sum())
        exact = {"mean": round(area / total, 6), "min": round(low, 6), "max": round(high, 6)}
        if window.interval_s is None:
            metrics[one.slot] = Statistics(**exact)
            continue
        quantiles = {
            q: getattr(found, q) for q in ("p05", "p25", "p50", "p75", "p90", "p95", "p99")
        }
        metrics[one.slot] = Statistics(**exact, **quantiles)
        share = max(share, total)
        energy = round(area, 3) if one.slot == _POWER else energy
    if energy is not None:
        metrics[_ENERGY] = Statistics(mean=energy, max=energy)
    return metrics, share


def _merged(gpus: tuple[GpuIdentity, ...], source: Source, note: str, *, absolute: bool) -> Merged:
    columns = {TIME: pd.Series(dtype=float), GPU: pd.Series(dtype=object)}
    return Merged(
        samples=pd.DataFrame({**columns, JOB: pd.Series(dtype=object)}),
        host=None,
        gpus=gpus,
        sources=(source,),
        absolute=absolute,
        timed=True,
        local_time=False,
        mig=False,
        work=None,
        host_ram_gib=None,
        observed=None,
        served=(),
        notes=(note,),
    )
