"""Reads what `aws cloudwatch get-metric-data` and `get-metric-statistics` print.

Names are those of the CloudWatch agent's `nvidia_gpu` section and of Container Insights. A value is
the mean of a period: what went on inside a period is lost, so quantiles are those of the means.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd

from pricing.errors import InputError
from telemetry.readers import clock, series
from telemetry.readers.column_names import METRICS
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "cloudwatch-json"
_INSTANCE = re.compile(r"\bi-[0-9a-f]{8,17}\b")
_INDEX = re.compile(r"(?:^|[\s,;:=/])(\d{1,2})(?=$|[\s,;])")
_MODEL = re.compile(r"(?:NVIDIA|Tesla)[ \w-]+?(?=$|\s\d{1,2}(?:\s|$)|,|;)")
_MEANS = "each value is the mean of a period: peaks inside a period are not seen."


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the metrics of GPUs; which metric and GPU is told by the label, else by the id.

    Raises:
        InputError: no result is of a metric that is known.
    """
    builder = RecordingBuilder(payload, FORMAT)
    answers, damaged = documents(payload.text, payload.name)
    if damaged:
        builder.rows_read += damaged
        builder.dropped["cut line"] += damaged
    found = [one for answer in answers for one in _results(answer)]
    if not found:
        raise InputError(
            f"{payload.name}: the answer holds no results. Ask for nvidia_smi_utilization_gpu, "
            "nvidia_smi_memory_used and nvidia_smi_power_draw of namespace CWAgent."
        )
    if any(answer.get("NextToken") for answer in answers):
        builder.notes.append("the answer goes on on another page (NextToken), which is not here.")
    builder.notes.append(_MEANS)
    return series.recording(builder, [_series(*one, hints) for one in found], hints)


def _results(answer: Mapping[str, object]) -> Iterator[tuple[str, list[str], list[float]]]:
    """Yield label, times and values of each result of either command."""
    results = answer.get("MetricDataResults")
    for one in cast("list[object]", results) if isinstance(results, list) else []:
        if isinstance(one, dict):
            times, values = one.get("Timestamps"), one.get("Values")
            if isinstance(times, list) and isinstance(values, list):
                # The id is what the caller called it: it may say what a label of theirs does not.
                label = str(one.get("Label") or "")
                told = label if _known(label) else f"{one.get('Id') or ''} {label}"
                yield told, [str(t) for t in times], [_number(v) for v in values]
    points = answer.get("Datapoints")
    if isinstance(points, list):
        rows = [one for one in cast("list[object]", points) if isinstance(one, dict)]
        times = [str(one.get("Timestamp")) for one in rows]
        yield str(answer.get("Label") or ""), times, [_number(one.get("Average")) for one in rows]


def _known(text: str) -> str | None:
    return next((word for word in re.split(r"[\s,;:=/]+", text) if word.lower() in METRICS), None)


def _series(
    label: str, times: list[str], values: list[float], hints: Hints
) -> series.SampledSeries:
    metric = _known(label)
    rest = label.replace(metric, " ", 1) if metric else label
    instance, index, model = _INSTANCE.search(rest), _INDEX.search(rest), _MODEL.search(rest)
    labels = {
        # Without an index a metric is of the instance's only GPU, or of all of them together.
        "index": index[1] if index else "0",
        **({"host": instance[0]} if instance else {}),
        **({"name": model[0].strip()} if model else {}),
    }
    count = min(len(times), len(values))
    t_s = clock.parse(pd.Series(times[:count], dtype=object), hints.zone).t_s
    order = np.argsort(t_s, kind="stable")
    return series.SampledSeries(
        name=metric or label,
        labels=labels,
        t_s=t_s[order],
        readings=np.array(values[:count])[order],
        counter=False,
    )


def _number(value: object) -> float:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(cast("float", value)) if known else float("nan")
