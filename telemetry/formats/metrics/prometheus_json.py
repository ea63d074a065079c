"""Reads answers of the Prometheus HTTP API: matrix, and vector as a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pricing.errors import InputError
from telemetry.formats.metrics.serving import served
from telemetry.formats.pods import pods
from telemetry.readers import series
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import documents

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "prometheus-json"
_POINTS = {"matrix": "values", "vector": "value"}


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of one answer, an array of answers, or one a line.

    Raises:
        InputError: an answer is an error or of another kind, or holds no GPU metric.
    """
    builder = RecordingBuilder(payload, FORMAT)
    answers, damaged = documents(payload.text, payload.name)
    problems: list[str] = []
    found: list[series.SampledSeries] = []
    for number, answer in enumerate(answers):
        where = payload.name if len(answers) == 1 else f"{payload.name}: answer {number + 1}"
        try:
            found += series_of(answer, where, builder)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    if damaged:
        builder.rows_read += damaged
        builder.dropped["cut line"] += damaged
    if not found:
        raise InputError(
            f"{payload.name}: the query found no series that can be read, so nothing was measured. "
            "Check the metric's name and the time range of the query."
        )
    by_job = pods(found)
    builder.notes += by_job.notes
    told = served(by_job.series)
    return series.recording(builder, by_job.series, hints, served=told, labels=by_job.labels)


def series_of(
    answer: dict[str, object], where: str, builder: RecordingBuilder
) -> list[series.SampledSeries]:
    """Return the series of one answer.

    Raises:
        InputError: it is an error, or of another kind.
    """
    if answer.get("status") != "success":
        said = f"{answer.get('errorType', 'error')}: {answer.get('error', 'no reason given')}"
        raise InputError(
            f"{where}: Prometheus answered with an error ({said[:200]}), not with data. "
            "Correct the query and save its answer again."
        )
    body = answer.get("data")
    kind = body.get("resultType") if isinstance(body, dict) else None
    result = body.get("result") if isinstance(body, dict) else None
    if kind not in _POINTS or not isinstance(result, list):
        raise InputError(
            f"{where}: resultType is {kind!r}, which holds no series. Use /api/v1/query_range (a "
            "matrix), or /api/v1/query of a GPU metric (a vector)."
        )
    return [one for item in result if (one := _one(item, _POINTS[kind], builder)) is not None]


def _one(item: object, field: str, builder: RecordingBuilder) -> series.SampledSeries | None:
    labels = item.get("metric") if isinstance(item, dict) else None
    points = item.get(field) if isinstance(item, dict) else None
    if not isinstance(labels, dict) or not isinstance(points, list):
        builder.rows_read += 1
        builder.dropped["series of a wrong shape"] += 1
        return None
    times, values = _columns([points] if field == "value" else points, builder)
    named = {str(key).lower(): str(value) for key, value in labels.items()}
    return series.SampledSeries(
        name=named.pop("__name__", ""), labels=named, t_s=times, readings=values
    )


def _columns(
    points: list[Any], builder: RecordingBuilder
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    try:
        table = np.array(points, dtype=float).reshape(-1, 2)
    except (ValueError, TypeError, OverflowError):
        pairs = [pair for point in points if (pair := _pair(point)) is not None]
        builder.rows_read += len(points) - len(pairs)
        builder.dropped["point of a wrong shape"] += len(points) - len(pairs)
        builder.dropped = +builder.dropped
        table = np.array(pairs, dtype=float).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _pair(point: object) -> tuple[float, float] | None:
    if not isinstance(point, list) or len(point) != 2:  # noqa: PLR2004 - time and value
        return None
    try:
        time, value = float(point[0]), float(point[1])
    except (ValueError, TypeError, OverflowError):
        return None
    return (time, value) if np.isfinite(time) else None
