"""Reads OTLP JSON, as the file exporter of the OpenTelemetry collector writes it.

Names: OpenTelemetry's hardware metrics (`hw.gpu.*`, status Development in August 2026) and Google's
`gpu.dcgm.*`. What was measured without attributes of a device lies in those of its resource.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np

from pricing.errors import InputError
from telemetry.formats.metrics.serving import served
from telemetry.formats.pods import pods
from telemetry.readers import series
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "otlp-json"
_KINDS = ("gauge", "sum")
_NS_A_S = 1e9


@dataclass(slots=True)
class _Points:
    """Points of one metric and label set; whether it counts up."""

    counter: bool
    t_s: list[float] = field(default_factory=list)
    readings: list[float] = field(default_factory=list)


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the gauges and sums of GPUs in one export request, or one a line.

    Raises:
        InputError: it holds no metric of a GPU.
    """
    builder = RecordingBuilder(payload, FORMAT)
    requests, damaged = documents(payload.text, payload.name)
    if damaged:
        builder.rows_read += damaged
        builder.dropped["cut line"] += damaged
    found: dict[tuple[str, tuple[tuple[str, str], ...]], _Points] = {}
    for request in requests:
        for labels, metric in _metrics(request):
            _take(metric, labels, found, builder)
    if not found:
        raise InputError(
            f"{payload.name}: OpenTelemetry data without a gauge or a sum, so no GPU was measured. "
            "Export metrics (hw.gpu.*), not traces or logs."
        )
    by_job = pods(
        series.SampledSeries(
            name=name,
            labels=dict(labels),
            t_s=np.array(points.t_s),
            readings=np.array(points.readings),
            counter=points.counter,
        )
        for (name, labels), points in sorted(found.items(), key=lambda item: item[0])
    )
    builder.notes += by_job.notes
    told = served(by_job.series)
    return series.recording(builder, by_job.series, hints, served=told, labels=by_job.labels)


def _metrics(request: Mapping[str, object]) -> Iterator[tuple[dict[str, str], dict[str, object]]]:
    """Yield each metric with the attributes of its resource."""
    for resource in _records(request, "resourceMetrics"):
        about = resource.get("resource")
        labels = _attributes(about) if isinstance(about, dict) else {}
        for scope in _records(resource, "scopeMetrics", "instrumentationLibraryMetrics"):
            for metric in _records(scope, "metrics"):
                yield labels, metric


def _take(
    metric: Mapping[str, object],
    labels: Mapping[str, str],
    found: dict[tuple[str, tuple[tuple[str, str], ...]], _Points],
    builder: RecordingBuilder,
) -> None:
    name = str(metric.get("name") or "")
    for kind in _KINDS:
        body = metric.get(kind)
        if not isinstance(body, dict):
            continue
        for point in _records(body, "dataPoints"):
            reading = _reading(point)
            if reading is None:
                builder.rows_read += 1
                builder.dropped["point without a time or a value"] += 1
                continue
            own = tuple(sorted({**labels, **_attributes(point)}.items()))
            counts = kind == "sum" and body.get("isMonotonic") is True
            points = found.setdefault((name, own), _Points(counter=counts))
            points.t_s.append(reading[0])
            points.readings.append(reading[1])


def _reading(point: Mapping[str, object]) -> tuple[float, float] | None:
    value = point.get("asDouble", point.get("asInt"))
    try:
        t_s = float(str(point.get("timeUnixNano"))) / _NS_A_S
        return (t_s, float(str(value))) if np.isfinite(t_s) and t_s > 0 else None
    except ValueError:
        return None


def _attributes(holder: Mapping[str, object]) -> dict[str, str]:
    """Return attributes as labels: names in lower case, underscores in place of dots."""
    labels: dict[str, str] = defaultdict(str)
    for one in _records(holder, "attributes"):
        value = one.get("value")
        if isinstance(value, dict) and len(value) == 1:
            (plain,) = value.values()
            labels[str(one.get("key")).lower().replace(".", "_")] = str(plain)
    return dict(labels)


def _records(holder: Mapping[str, object], *keys: str) -> list[dict[str, object]]:
    items = next((holder[key] for key in keys if isinstance(holder.get(key), list)), [])
    return [one for one in cast("list[object]", items) if isinstance(one, dict)]
