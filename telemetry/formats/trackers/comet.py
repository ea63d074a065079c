"""Reads the system metrics of a Comet experiment: what `APIExperiment.get_metrics()` answers.

`cometx download` writes the same as `metrics.jsonl`. Comet hands on what the driver says: power in
milliwatts, memory in bytes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, cast

import numpy as np

from pricing.errors import InputError
from telemetry.readers import series
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import documents

if TYPE_CHECKING:
    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "comet"
_NAME = re.compile(r"(?:.*[/.])?sys\.gpu\.(\d{1,4})\.([\w.]+)")
_POINT = ("timestamp", "metricValue")
_MS_A_S = 1000.0


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of an experiment.

    Raises:
        InputError: no GPU is among its metrics.
    """
    builder = RecordingBuilder(payload, FORMAT)
    found, damaged = documents(payload.text, payload.name)
    if damaged:
        builder.rows_read += damaged
        builder.dropped["cut line"] += damaged
    points: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for one in [item for each in found for item in _metrics(each)]:
        try:
            name = str(one["metricName"])
            if _NAME.fullmatch(name):
                time, value = (float(cast("float", one[key])) for key in _POINT)
                points[name].append((time / _MS_A_S, value))
        except (KeyError, TypeError, ValueError, OverflowError):
            builder.rows_read += 1
            builder.dropped["point of a wrong shape"] += 1
    if not points:
        raise InputError(
            f"{payload.name}: no sys.gpu metric among those of the experiment, so no GPU was "
            "measured. Comet logs them with nvidia-ml-py installed (`log_env_gpu`)."
        )
    return series.recording(builder, [_series(*item) for item in sorted(points.items())], hints)


def _metrics(document: dict[str, object]) -> list[dict[str, object]]:
    listed = document.get("metrics")
    inner = listed if isinstance(listed, list) else [document]
    return [one for one in inner if isinstance(one, dict)]


def _series(name: str, rows: list[tuple[float, float]]) -> series.SampledSeries:
    match = cast("re.Match[str]", _NAME.fullmatch(name))
    ordered = np.array(sorted(rows), dtype=float)
    return series.SampledSeries(
        name=f"sys.gpu.n.{match[2]}",
        labels={"gpu": match[1]},
        t_s=ordered[:, 0],
        readings=ordered[:, 1],
        counter=False,
    )
