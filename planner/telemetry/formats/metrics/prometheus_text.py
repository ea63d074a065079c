"""Reads scrapes of exporters and of servers of models, also hand-elided and appended ones."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from planner.telemetry.formats.metrics.pods import pods
from planner.telemetry.formats.metrics.serving import served
from planner.telemetry.parsing import series
from planner.telemetry.parsing.recording_builder import RecordingBuilder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.telemetry.parsing.hints import Hints
    from planner.telemetry.parsing.payload import Payload
    from planner.telemetry.recording.recording import Recording

FORMAT = "prometheus-text"
_DEFAULT_INTERVAL_S = 1.0
_LINE = re.compile(r"([A-Za-z_:][\w:]*)\s*(?:\{(.*)\})?\s+(\S+)(?:\s+(-?\d+))?")
_LABEL = re.compile(r'([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"')
_TYPE = re.compile(r"# TYPE (\S+) (\w+)")
_SHOWN_LINES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    name: str
    labels: tuple[tuple[str, str], ...]
    value: float
    t_s: float | None
    counter: bool | None


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of one or more scrapes.

    A scrape is one instant. Where a file holds several, one after the other and without times of
    their own, they count as `hints.interval_s` apart.

    Raises:
        InputError: no line is a metric of a GPU or of a server of models.
    """
    builder = RecordingBuilder(payload, FORMAT)
    text = payload.text.replace("\r", "")
    try:
        points = _parsed(text)
    except (ValueError, KeyError, IndexError):
        points = _tolerated(text, builder)
    timed = bool(points) and all(point.t_s is not None for point in points)
    step = hints.interval_s or _DEFAULT_INTERVAL_S
    values: dict[tuple[str, tuple[tuple[str, str], ...]], list[_Point]] = defaultdict(list)
    for point in points:
        values[point.name, point.labels].append(point)
    found = [
        series.SampledSeries(
            name=name,
            labels=dict(labels),
            t_s=np.array([p.t_s if timed else i * step for i, p in enumerate(same)], dtype=float),
            readings=np.array([p.value for p in same]),
            counter=same[0].counter,
        )
        for (name, labels), same in sorted(values.items(), key=lambda item: item[0])
    ]
    by_job = pods(found)
    builder.notes += by_job.notes
    return series.recording(
        builder,
        by_job.series,
        hints,
        served=served(by_job.series, clocked=timed or hints.interval_s is not None),
        labels=by_job.labels,
        timed=timed,
        absolute=timed,
    )


def _parsed(text: str) -> list[_Point]:
    return [
        _Point(
            name=sample.name,
            labels=_lowered(sample.labels.items()),
            value=float(sample.value),
            t_s=None if sample.timestamp is None else float(sample.timestamp),
            counter=_counter(family.type),
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


def _counter(kind: str | None) -> bool | None:
    return {"counter": True, "gauge": False}.get(kind or "")


def _lowered(labels: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name.lower(), value) for name, value in labels))


def _tolerated(text: str, builder: RecordingBuilder) -> list[_Point]:
    """Read line by line: a line with a plain value counts by the labels that are still there."""
    kinds = dict(_TYPE.findall(text))
    points: list[_Point] = []
    broken: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        value = _number(match[3]) if match else None
        if match is None or value is None:
            builder.rows_read += 1
            builder.dropped["line without a plain value"] += 1
            continue
        labels = _LABEL.findall(match[2] or "")
        if _LABEL.sub("", match[2] or "").strip(", "):
            broken.append(number)
        points.append(
            _Point(
                name=match[1],
                labels=_lowered(labels),
                value=value,
                t_s=int(match[4]) / 1000 if match[4] else None,
                counter=_counter(kinds.get(match[1])),
            )
        )
    if broken:
        shown = ", ".join(map(str, broken[:_SHOWN_LINES]))
        more = f" and {len(broken) - _SHOWN_LINES} more" if len(broken) > _SHOWN_LINES else ""
        builder.notes.append(f"labels elided or broken, read by what is left: lines {shown}{more}.")
    return points


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
