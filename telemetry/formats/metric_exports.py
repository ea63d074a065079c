"""Reads metrics that were exported: OTLP JSON, CloudWatch JSON, and tables with a reading a row."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.profile.kinds import SLOTS
from telemetry.formats.serving import recording_by_job
from telemetry.formats.sniff import is_filled, reading_columns, wide_column
from telemetry.readers import clock, series
from telemetry.readers.column_names import LABELS, delimiter_of, key_of, meaning, metrics
from telemetry.readers.csv_text import number_in, numbers
from telemetry.readers.devices import timing
from telemetry.readers.hints import Hints
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import documents, mapping_of, mappings_in, number_of, refuse_twins
from telemetry.readers.series import Points, SampledSeries
from telemetry.readers.units import ROLES, Meaning
from telemetry.recording.recording import Recording

_KINDS = ("gauge", "sum")
_NS_A_S = 1e9


def read_otlp(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the gauges and sums of GPUs in one export request of OTLP JSON, or one a line.

    Names are OpenTelemetry's hardware metrics (`hw.gpu.*`, status Development in August 2026) and
    Google's `gpu.dcgm.*`. What was measured without attributes of a device lies in those of its
    resource.

    Raises:
        InputError: it holds no metric of a GPU.
    """
    points = Points()
    for request in documents(builder):
        for labels, metric in _metrics(request):
            _take_metric(metric, labels, points, builder)
    if not points:
        raise builder.empty_error()
    return recording_by_job(builder, points.series(), hints)


def _metrics(request: Mapping[str, object]) -> Iterator[tuple[dict[str, str], dict[str, object]]]:
    """Yield each metric with the attributes of its resource."""
    for resource in mappings_in(request.get("resourceMetrics")):
        labels = _attributes(mapping_of(resource.get("resource")))
        scopes = (resource.get(key) for key in ("scopeMetrics", "instrumentationLibraryMetrics"))
        for scope in mappings_in(
            next((listed for listed in scopes if isinstance(listed, list)), [])
        ):
            for metric in mappings_in(scope.get("metrics")):
                yield labels, metric


def _take_metric(
    metric: Mapping[str, object],
    labels: Mapping[str, str],
    points: Points,
    builder: RecordingBuilder,
) -> None:
    name = str(metric.get("name") or "")
    for kind in _KINDS:
        body = mapping_of(metric.get(kind))
        for point in mappings_in(body.get("dataPoints")):
            reading = _reading(point)
            if reading is None:
                builder.leave_out("point without a time or a value")
                continue
            counts = kind == "sum" and body.get("isMonotonic") is True
            points.add(name, {**labels, **_attributes(point)}, reading, counter=counts)


def _reading(point: Mapping[str, object]) -> tuple[float, float] | None:
    value = point.get("asDouble", point.get("asInt"))
    try:
        t_s = float(str(point.get("timeUnixNano"))) / _NS_A_S
        return (t_s, float(str(value))) if np.isfinite(t_s) and t_s > 0 else None
    except ValueError:
        return None


def _attributes(holder: Mapping[str, object]) -> dict[str, str]:
    """Return attributes as labels: names in lower case, underscores in place of dots."""
    labels: dict[str, str] = {}
    for attribute in mappings_in(holder.get("attributes")):
        value = attribute.get("value")
        if isinstance(value, dict) and len(value) == 1:
            (plain,) = value.values()
            labels[str(attribute.get("key")).lower().replace(".", "_")] = str(plain)
    return labels


_INSTANCE = re.compile(r"\bi-[0-9a-f]{8,17}\b")
_INDEX = re.compile(r"(?:^|[\s,;:=/])(\d{1,2})(?=$|[\s,;])")
_MODEL = re.compile(r"(?:NVIDIA|Tesla)[ \w-]+?(?=$|\s\d{1,2}(?:\s|$)|,|;)")


def read_cloudwatch(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the GPU metrics of `aws cloudwatch get-metric-data` and `get-metric-statistics`.

    Names are those of the CloudWatch agent's `nvidia_gpu` section and of Container Insights; the
    label, else the id says which metric and GPU it is. A value is the mean of a period: what
    happened inside a period is lost, so quantiles are those of the means.

    Raises:
        InputError: no result is of a metric that is known.
    """
    answers = documents(builder)
    results = [result for answer in answers for result in _results(answer)]
    if not results:
        raise builder.empty_error()
    if any(answer.get("NextToken") for answer in answers):
        builder.notes.append("the answer goes on on another page (NextToken), which is not here.")
    builder.notes.append("each value is the mean of a period: peaks inside a period are not seen.")
    members = [_cloudwatch_series(*result, hints) for result in results]
    return series.recording(builder, members, hints)


def _results(answer: Mapping[str, object]) -> Iterator[tuple[str, list[str], list[float | None]]]:
    """Yield label, times and values of each result of either command."""
    for result in mappings_in(answer.get("MetricDataResults")):
        times, values = result.get("Timestamps"), result.get("Values")
        if isinstance(times, list) and isinstance(values, list):
            # The id is what the caller called it: it may say what a label of theirs does not.
            label = str(result.get("Label") or "")
            text = label if _metric_in(label) else f"{result.get('Id') or ''} {label}"
            yield text, [str(t) for t in times], [number_of(v) for v in values]
    points = answer.get("Datapoints")
    if isinstance(points, list):
        rows = mappings_in(points)
        times = [str(row.get("Timestamp")) for row in rows]
        yield str(answer.get("Label") or ""), times, [number_of(row.get("Average")) for row in rows]


def _metric_in(text: str) -> str | None:
    tokens = re.split(r"[\s,;:=/]+", text)
    return next((word for word in tokens if word.lower() in metrics()), None)


def _cloudwatch_series(
    label: str, times: list[str], values: list[float | None], hints: Hints
) -> SampledSeries:
    metric = _metric_in(label)
    text = label.replace(metric, " ", 1) if metric else label
    instance, index, model = _INSTANCE.search(text), _INDEX.search(text), _MODEL.search(text)
    labels = {
        # Without an index a metric is of the instance's only GPU, or of all of them together.
        "index": index[1] if index else "0",
        **({"host": instance[0]} if instance else {}),
        **({"name": model[0].strip()} if model else {}),
    }
    count = min(len(times), len(values))
    t_s = clock.parse(pd.Series(times[:count], dtype=object), hints.zone).t_s
    order = np.argsort(t_s, kind="stable")
    return SampledSeries(
        name=metric or label,
        labels=labels,
        t_s=t_s[order],
        readings=np.array(values[:count], dtype=float)[order],
        counter=False,
    )


_MEASUREMENT = "_measurement"
_COLUMNS = {column: label for label, names in LABELS["columns"].items() for column in names}
_TIME_COLUMNS = ("time", "timestamp", "date", "datetime", "ts", "_time", "zeit", "zeitstempel")
_NUMBERED = re.compile(r"(gpu[._])(\d{1,4})(?=[._])", re.IGNORECASE)


def read_readings(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of a table with one reading a row: when, of what, how much, which GPU.

    DCGM's recorders, Telegraf and InfluxDB, exports of MLflow, Comet and Neptune write such tables.
    A name may carry the GPU's number (`system/gpu_0_power_usage_watts`), or a column does.

    Raises:
        InputError: it has no row, or no GPU is among what it names.
    """
    lines = [line for line in builder.text.splitlines() if is_filled(line)]
    columns = reading_columns(lines[0]) if lines else None
    if columns is None:
        raise builder.empty_error()
    names, table = _table(lines, builder)
    table = table.set_axis([name.lower() for name in names], axis="columns")
    table = table.loc[:, ~table.columns.duplicated()]
    table = table[table[columns[2]] != columns[2]]  # InfluxDB writes its header again
    members = _readings(table, columns, hints)
    return series.recording(builder, members, _with_columns(members, hints))


def _table(lines: list[str], builder: RecordingBuilder) -> tuple[list[str], pd.DataFrame]:
    """Return the names in the first line, and the complete rows below it by their place."""
    header, *rows = csv.reader(lines, delimiter=delimiter_of(lines[0]), skipinitialspace=True)
    complete = [[cell.strip() for cell in row] for row in rows if len(row) == len(header)]
    builder.leave_out("row that is not complete", len(rows) - len(complete))
    if not complete:
        raise builder.empty_error()
    table = pd.DataFrame(complete, columns=range(len(header)), dtype=object)
    refuse_twins(builder.name, header, {i: table[i] for i in range(len(header))})
    return [cell.strip() for cell in header], table


def _readings(
    table: pd.DataFrame, columns: tuple[str, str, str], hints: Hints
) -> list[SampledSeries]:
    time, name, value = columns
    t_s = clock.parse(table[time].astype(object), hints.zone).t_s
    numbers = pd.to_numeric(table[value].str.rstrip(" %WCMiBHz"), errors="coerce")
    by = [name, *(c for c in (_MEASUREMENT, *_COLUMNS) if c in table and c not in columns)]
    readings = numbers.to_numpy(dtype=float, na_value=np.nan)
    members = []
    for key, places in sorted(table.groupby(by, sort=False).indices.items()):
        texts = dict(zip(by, key if isinstance(key, tuple) else (key,), strict=True))
        order = places[np.argsort(t_s[places], kind="stable")]
        metric, labels = _metric_of(texts, name)
        members.append(
            SampledSeries(name=metric, labels=labels, t_s=t_s[order], readings=readings[order])
        )
    return members


def _metric_of(texts: Mapping[str, object], name: str) -> tuple[str, dict[str, str]]:
    """Return the metric of a row by the table of names, and its labels."""
    metric = str(texts[name])
    labels = {
        _COLUMNS[column]: str(text) for column, text in texts.items() if column in _COLUMNS and text
    }
    if "{" in metric and (labelled := wide_column(metric)) is not None:
        metric, labels = labelled[0], {**labels, **labelled[1]}
    metric = LABELS["dcgm-fields"].get(metric, metric)
    if (number := _NUMBERED.search(metric)) is not None:
        labels.setdefault("gpu", number[2])
        metric = _NUMBERED.sub(r"\1n", metric)
    full_name = f"{texts.get(_MEASUREMENT, '')}_{metric}"
    return (full_name if key_of(full_name, {}) in metrics() else metric), labels


_SPLIT = {part: re.compile(rf"(?<!\\){part}") for part in (",", " ", "=")}
_NAMES_OF_TAGS = {"index": "gpu", "name": "modelname", "host": "hostname"}


def read_lines(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of InfluxDB's line protocol: MEASUREMENT,TAG=.. FIELD=..,FIELD=.. TIME.

    Raises:
        InputError: no field of it is a GPU's reading.
    """
    points = Points()
    for line in builder.text.splitlines():
        parts = _SPLIT[" "].split(line.strip())
        when = number_in(parts[-1]) if len(parts) == 3 else None  # noqa: PLR2004 - tags, fields, time
        if when is None:
            builder.leave_out("row without fields or a time", int(bool(line.strip())))
            continue
        measurement, *tags = _SPLIT[","].split(parts[0])
        labels = {_NAMES_OF_TAGS.get(k, k): v for k, v in map(_pair, tags)}
        for field in _SPLIT[","].split(parts[1]):
            name, text = _pair(field)
            metric = f"{measurement}_{name}"
            value = number_in(text.rstrip("iu"))
            points.add(
                metric if key_of(metric, {}) in metrics() else name,
                labels,
                (when, np.nan if value is None else value),
            )
    members = [replace(m, t_s=clock.epoch(m.t_s).t_s, counter=None) for m in points.series()]
    return series.recording(builder, members, _with_columns(members, hints))


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.lower(), value.replace("\\", "").strip('"')


def read_wide(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of a table with a column a series: its labels stand in its name.

    Grafana's panels are downloaded so (`NAME{gpu="0"}`, or what a dashboard calls its lines, as
    `node1 / GPU 0`, in a file named for the panel), Lightning's CSVLogger writes `gpu_id: 0/NAME`,
    and people number their columns.

    Raises:
        InputError: it has no row, or no column is a GPU's reading.
    """
    lines = [line for line in builder.text.splitlines() if line.strip() and line[:4] != "sep="]
    header, table = _table(lines, builder)
    names = [name.lower() for name in header]
    builder.ledger.names.update(names)
    mapped = {column.strip().lower(): slot for column, slot in hints.map}
    timed = [name for name, slot in mapped.items() if slot == "timestamp"]
    column = next((names.index(name) for name in (*timed, *_TIME_COLUMNS) if name in names), None)
    times = None if column is None else clock.parse(table[column], hints.zone)
    step_s = hints.interval_s or 1.0
    t_s = step_s * np.arange(len(table), dtype=float) if times is None else times.t_s
    sign = "," if delimiter_of(lines[0]) == ";" else "."
    order = np.argsort(t_s, kind="stable")
    members = list[SampledSeries]()
    for i, cell in enumerate(header):
        labelled = wide_column(cell)
        if i != column and (labelled is not None or names[i] in mapped):
            name, labels = labelled or ("", {})
            name = cell if names[i] in mapped else name or _panel_of(builder.name)
            holds = metrics().get(key_of(name, labels)) or meaning(name or "value", hints)
            name = name if holds or "{" in cell else name and cell  # as `--map` has to name it
            readings = _in_unit_of(holds, table[i], sign)[order]
            members.append(
                SampledSeries(name=name, labels=labels, t_s=t_s[order], readings=readings)
            )
        elif i != column:
            builder.ledger.enter(cell, len(table), read=False)
    return recording_by_job(
        builder, members, _with_columns(members, hints), clocked=times is not None, **timing(times)
    )


def _in_unit_of(holds: Meaning | None, cells: pd.Series, sign: str) -> NDArray[np.float64]:
    """Return cells as numbers in the unit that a series' name tells, whatever unit they have."""
    holds = holds or Meaning(target="")
    scale = holds.scale or 1.0
    return numbers(cells, scale=scale, to=holds.to, sign=sign, typical=holds.unit).values() / scale


_PANEL = re.compile(r"(.+)-data-(?:as-\w+-)?\d{4}-\d\d-\d\d")


def _panel_of(file: str) -> str:
    """Return the title of the panel that Grafana names a file for, where it says what is drawn."""
    panel = _PANEL.match(file)
    return panel[1] if panel and meaning(panel[1], Hints()) else ""


def _with_columns(members: Sequence[SampledSeries], hints: Hints) -> Hints:
    """Return hints that also know names which are known as columns of a CSV."""
    more = []
    for name in sorted({member.name for member in members}):
        holds = meaning(name, hints) if key_of(name, {}) not in metrics() else None
        if holds is not None and holds.scale is not None and holds.target in (*SLOTS, *ROLES):
            more.append((key_of(name, {}), f"{holds.target}:{holds.unit}"))
    return replace(hints, map=(*hints.map, *more))
