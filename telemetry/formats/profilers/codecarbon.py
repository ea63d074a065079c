"""Reads CodeCarbon's emissions.csv: a row a run, with the energy that its GPUs drew.

A run's time is that of its last writing, its length is in seconds, energy in kWh over all its GPUs.
A run that was written several times (`flush`) has a row for each, which count on: the longest is
taken. Energy 0 of a GPU says that it was not measured.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pricing.errors import InputError
from telemetry.readers import clock
from telemetry.readers.column_names import cells_of
from telemetry.readers.devices import SeenDevice, recording
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.units import Meaning

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "codecarbon"
_NAMES = {
    "power": Meaning(target="power.board_w", unit="W"),
    "busy": Meaning(target="util.kernel_time", unit="%"),
}
_JOULES_A_KWH = 3.6e6
_MOST_GPUS = 1024
_MODELS = re.compile(r"(\d{1,4}) x ([^,]+)")
_MEANS = "power is the mean of each run, from the energy that CodeCarbon counted over its GPUs."


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the mean power of each run; runs of a file are jobs of their own.

    Raises:
        InputError: no run measured a GPU.
    """
    builder = RecordingBuilder(payload, FORMAT)
    header, *lines = [line for line in payload.text.splitlines() if line.strip()]
    names = [cell.strip() for cell in cells_of(header, ",")]
    runs: dict[str, dict[str, str]] = {}
    for number, line in enumerate(lines):
        builder.rows_read += 1
        cells = cells_of(line, ",")
        run = dict(zip(names, (cell.strip() for cell in cells), strict=False))
        if len(cells) != len(names) or not _number(run.get("duration")):
            builder.dropped["row that is not complete"] += 1
            continue
        key = run["run_id"] = run.get("run_id") or str(number)
        earlier = runs.get(key)
        if earlier is not None:
            builder.dropped["row of a run that is written again"] += 1
        if earlier is None or _number(run["duration"]) >= _number(earlier["duration"]):
            runs[key] = run
    rows = _devices(list(runs.values()), builder, hints)
    if not rows:
        left = ", ".join(f"{why}: {count}" for why, count in sorted(builder.dropped.items()))
        raise InputError(
            f"{payload.name}: CodeCarbon measured no GPU in it ({left or 'no rows'}). It reads "
            "GPUs with nvidia-ml-py installed; or log nvidia-smi while the job runs."
        )
    builder.notes.append(_MEANS)
    return recording(builder, rows, _NAMES, hints, whole=True, local_time=hints.tz is None)


def _devices(
    runs: Sequence[Mapping[str, str]], builder: RecordingBuilder, hints: Hints
) -> list[SeenDevice]:
    texts = pd.Series([run.get("timestamp", "") for run in runs], dtype=object)
    ends = clock.parse(texts, hints.zone).t_s if len(runs) else np.empty(0)
    names = [run.get("project_name") or "run" for run in runs]
    rows: list[SeenDevice] = []
    for run, end, name in zip(runs, ends, names, strict=True):
        if not np.isfinite(end):
            builder.dropped["timestamp not readable"] += 1
            continue
        job = name if names.count(name) == 1 else f"{name}-{run['run_id'][:8]}"
        found = list(_of_run(run, float(end), job))
        if not found:
            builder.dropped["run whose GPUs were not measured"] += 1
        rows += found
    return rows


def _of_run(run: Mapping[str, str], end: float, job: str) -> Iterator[SeenDevice]:
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
            yield SeenDevice(
                device=f"{model or ''} index {index}",
                cells=cells,
                index=index,
                model=model,
                time=repr(end - part * length),
                job=job[:200],
            )


def _number(text: str | None) -> float:
    found = re.fullmatch(r"\d{1,15}(\.\d{1,25})?(e-\d{1,2})?", (text or "").strip().lower())
    return float(found[0]) if found else 0.0
