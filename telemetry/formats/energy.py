"""Reads meters of energy: Zeus and CodeCarbon, as CSV with a row for each window or run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from telemetry.readers import clock
from telemetry.readers.csv_text import csv_rows
from telemetry.readers.devices import DeviceRow, device_recording

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from telemetry.readers.hints import Hints
    from telemetry.readers.recording_builder import RecordingBuilder
    from telemetry.recording.recording import Recording

_INCOMPLETE = "row that is not complete"
_ENERGY = re.compile(r"gpu(\d{1,3})_energy")
_START, _LENGTH = "start_time", "elapsed_time"
_EPOCH, _POWER, _LIMIT = "time_per_epoch", "average_power", "power_limit"


def read_zeus(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the mean power of each window of Zeus; of a table of runs, each row as a job.

    Raises:
        InputError: no row is complete.
    """
    rows: list[DeviceRow] = []
    for cells in csv_rows(builder, _INCOMPLETE):
        devices = list(_windows(cells) if _START in cells else _zeus_run(cells))
        if not devices:
            builder.dropped[_INCOMPLETE] += 1
        rows += devices
    builder.notes.append("power is the mean of each window, from the energy that Zeus counted.")
    return device_recording(builder, rows, hints, timed=True, whole=True)


def _windows(cells: Mapping[str, str]) -> Iterator[DeviceRow]:
    start, length = _decimal(cells.get(_START)), _decimal(cells.get(_LENGTH))
    if start is None or not length:
        return
    for column, cell in cells.items():
        gpu, energy = _ENERGY.fullmatch(column), _decimal(cell)
        if gpu is None or energy is None:
            continue
        for part in (0.25, 0.75):  # each stands for half of the window
            yield DeviceRow(
                cells={"power": repr(energy / length)},
                index=int(gpu[1]),
                time=repr(start + part * length),
            )


def _zeus_run(cells: Mapping[str, str]) -> Iterator[DeviceRow]:
    length, power = _decimal(cells.get(_EPOCH)), _decimal(cells.get(_POWER))
    if not length or power is None:
        return
    limit = cells.get(_LIMIT, "")
    job = " ".join(cell for name, cell in cells.items() if name not in (_EPOCH, _POWER))
    for part in (0.25, 0.75):
        yield DeviceRow(
            cells={"power": repr(power), **({"limit": limit} if limit else {})},
            index=0,
            time=repr(part * length),
            job=job[:200],
        )


def _decimal(text: str | None) -> float | None:
    match = re.fullmatch(r"\d{1,15}(\.\d{1,25})?", text or "")
    return float(match[0]) if match else None


_JOULES_A_KWH = 3.6e6
_MOST_GPUS = 1024
_MODELS = re.compile(r"(\d{1,4}) x ([^,]+)")


def read_codecarbon(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the mean power of each run of CodeCarbon's emissions.csv; runs are jobs of their own.

    A run's time is that of its last writing, its length is in seconds, energy in kWh over all its
    GPUs. A run that was written several times (`flush`) has a row for each, which count on: the
    longest is taken. Energy 0 of a GPU says that it was not measured.

    Raises:
        InputError: no run measured a GPU.
    """
    rows = _codecarbon_rows(_longest_runs(builder), builder, hints)
    reasons = ", ".join(f"{why}: {count}" for why, count in sorted(builder.dropped.items()))
    builder.notes.append(
        "power is the mean of each run, from the energy that CodeCarbon counted over its GPUs."
    )
    return device_recording(
        builder,
        rows,
        hints,
        empty=f"CodeCarbon measured no GPU in it ({reasons or 'no rows'}). It reads "
        "GPUs with nvidia-ml-py installed; or log nvidia-smi while the job runs.",
        whole=True,
        local_time=hints.tz is None,
    )


def _longest_runs(builder: RecordingBuilder) -> list[dict[str, str]]:
    runs: dict[str, dict[str, str]] = {}
    for number, run in enumerate(csv_rows(builder, _INCOMPLETE)):
        if not _number(run.get("duration")):
            builder.dropped[_INCOMPLETE] += 1
            continue
        key = run["run_id"] = run.get("run_id") or str(number)
        earlier = runs.get(key)
        if earlier is not None:
            builder.dropped["row of a run that is written again"] += 1
        if earlier is None or _number(run["duration"]) >= _number(earlier["duration"]):
            runs[key] = run
    return list(runs.values())


def _codecarbon_rows(
    runs: Sequence[Mapping[str, str]], builder: RecordingBuilder, hints: Hints
) -> list[DeviceRow]:
    texts = pd.Series([run.get("timestamp", "") for run in runs], dtype=object)
    ends = clock.parse(texts, hints.zone).t_s if len(runs) else np.empty(0)
    names = [run.get("project_name") or "run" for run in runs]
    rows: list[DeviceRow] = []
    for run, end, name in zip(runs, ends, names, strict=True):
        if not np.isfinite(end):
            builder.dropped["timestamp not readable"] += 1
            continue
        job = name if names.count(name) == 1 else f"{name}-{run['run_id'][:8]}"
        devices = list(_run_devices(run, float(end), job))
        if not devices:
            builder.dropped["run whose GPUs were not measured"] += 1
        rows += devices
    return rows


def _run_devices(run: Mapping[str, str], end: float, job: str) -> Iterator[DeviceRow]:
    """Yield two rows a GPU of a run, each for half of it."""
    length, energy = _number(run.get("duration")), _number(run.get("gpu_energy"))
    models = [
        name.strip()
        for n, name in _MODELS.findall(run.get("gpu_model", ""))
        for _ in range(min(int(n), _MOST_GPUS))
    ]
    count = int(_number(run.get("gpu_count"))) or len(models)
    if not energy or not 0 < count <= _MOST_GPUS:
        return
    cells = {"power": repr(energy * _JOULES_A_KWH / length / count)}
    if busy := _number(run.get("gpu_utilization_percent")):
        cells["busy"] = repr(busy)
    for index in range(count):
        model = models[index] if len(models) == count else None
        for part in (0.75, 0.25):
            yield DeviceRow(
                device=f"{model or ''} index {index}",
                cells=cells,
                index=index,
                model=model,
                time=repr(end - part * length),
                job=job[:200],
            )


def _number(text: str | None) -> float:
    match = re.fullmatch(r"\d{1,15}(\.\d{1,25})?(e-\d{1,2})?", (text or "").strip().lower())
    return float(match[0]) if match else 0.0
