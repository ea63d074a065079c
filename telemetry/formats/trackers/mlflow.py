"""Reads the system metrics of an MLflow run: its folder in `mlruns`, or answers of get-history.

MLflow logs all GPUs of the machine, every 10 s, each value a mean rounded to 0.1. Folders come as
one line of JSON that `stored_runs` makes of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd

from pricing.errors import InputError
from telemetry.readers import series
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import documents
from telemetry.readers.units import SCALES
from telemetry.recording.recording import TIME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "mlflow"
_KEY = re.compile(r"system/(?:([\w.-]+)/)?gpu_(\d+)_(\w+)")
_HOST = {
    "cpu_utilization_percentage": ("cpu_util", 0.01),
    "system_memory_usage_megabytes": ("ram_used_gib", SCALES["MB", "GiB"]),
}
_HOST_KEY = re.compile(rf"system/(?:[\w.-]+/)?({'|'.join(_HOST)})")
_MS_A_S = 1000.0
_ALL_GPUS = "MLflow logs every GPU of the machine, also those that the run does not use."


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of a run.

    Raises:
        InputError: no GPU is among the metrics.
    """
    builder = RecordingBuilder(payload, FORMAT)
    answers, damaged = documents(payload.text, payload.name)
    if damaged:
        builder.rows_read += damaged
        builder.dropped["cut line"] += damaged
    points: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for answer in answers:
        metrics = answer.get("metrics")
        for one in cast("list[object]", metrics) if isinstance(metrics, list) else []:
            point = _point(one)
            if point is None:
                builder.rows_read += 1
                builder.dropped["point of a wrong shape"] += 1
            else:
                points[point[0]].append(point[1:])
    found = [_series(key, rows) for key, rows in sorted(points.items()) if _KEY.fullmatch(key)]
    if not found:
        shown = ", ".join(sorted(points)[:5]) or "none"
        raise InputError(
            f"{payload.name}: no system metric of a GPU among its metrics ({shown}). Run with "
            "mlflow.enable_system_metrics_logging(); ask for system/gpu_0_utilization_percentage."
        )
    builder.notes.append(_ALL_GPUS)
    return series.recording(builder, found, hints, host=_host(points))


def _point(one: object) -> tuple[str, float, float] | None:
    if not isinstance(one, dict):
        return None
    try:
        return str(one["key"]), float(one["timestamp"]) / _MS_A_S, float(one["value"])
    except (KeyError, TypeError, ValueError):
        return None


def _series(key: str, rows: list[tuple[float, float]]) -> series.SampledSeries:
    match = cast("re.Match[str]", _KEY.fullmatch(key))
    ordered = np.array(sorted(rows), dtype=float)
    return series.SampledSeries(
        name=f"system/gpu_N_{match[3]}",
        labels={"gpu": match[2], **({"host": match[1]} if match[1] else {})},
        t_s=ordered[:, 0],
        readings=ordered[:, 1],
        counter=False,
    )


def _host(points: Mapping[str, list[tuple[float, float]]]) -> pd.DataFrame | None:
    columns = {}
    for key, rows in points.items():
        match = _HOST_KEY.fullmatch(key)
        if match is not None:
            name, scale = _HOST[match[1]]
            times, values = np.array(sorted(rows), dtype=float).T
            columns[name] = pd.Series(values * scale, index=times).groupby(level=0).last()
    if not columns:
        return None
    return pd.DataFrame(columns).rename_axis(TIME).reset_index()
