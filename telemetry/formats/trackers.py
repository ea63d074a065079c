"""Reads experiment trackers besides W&B: MLflow, Comet, ClearML and TensorBoard's event files."""

import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

import numpy as np

from pricing.errors import InputError
from pricing.message import Message
from telemetry.readers import series
from telemetry.readers.column_names import key_of, metrics
from telemetry.readers.hints import Hints
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import (
    documents,
    mapping_of,
    mappings_in,
    protobuf_fields,
    protobuf_parts,
)
from telemetry.readers.series import Points, SampledSeries
from telemetry.recording.recording import Recording

_MS_A_S = 1000.0

_MLFLOW = re.compile(r"system/(?:([\w.-]+)/)?(?:gpu_(\d+)_)?(\w+)")


def read_mlflow(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of an MLflow run: its folder in `mlruns`, or answers of get-history.

    MLflow logs all GPUs of the machine, every 10 s, each value a mean rounded to 0.1. Folders come
    as one line of JSON that `stored_runs` makes of them.

    Raises:
        InputError: no GPU is among the metrics.
    """
    read, names = Points(), set[str]()
    listed = (answer.get("metrics") for answer in documents(builder))
    items = (item for metrics_ in listed if isinstance(metrics_, list) for item in metrics_)
    for key, point in _points(map(mapping_of, items), ("key", "timestamp", "value"), builder):
        names.add(key)
        host, index, name = named.groups() if (named := _MLFLOW.fullmatch(key)) else ("", "", "")
        if index:
            labels = {"gpu": index} | ({"host": host} if host else {})
            read.add(f"system/gpu_N_{name}", labels, point)
        elif f"system/{name}" in metrics():
            read.add(f"system/{name}", {"host": host} if host else {}, point)
    members = read.series()
    if all(member.index is None for member in members):
        raise InputError(Message("read.mlflow", file=builder.name, names=_shown(names)))
    builder.notes.append(
        "MLflow logs every GPU of the machine, also those that the run does not use."
    )
    return series.recording(builder, members, hints)


def _points(
    items: Iterable[Mapping[str, object]], keys: tuple[str, str, str], builder: RecordingBuilder
) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield metrics, each with a time in seconds and a value; keys name these, time is in ms."""
    name, *numbers = keys
    for item in items:
        try:
            time, value = (float(cast("float", item[key])) for key in numbers)
            yield str(item[name]), (time / _MS_A_S, value)
        except (KeyError, TypeError, ValueError, OverflowError):
            builder.leave_out("point of a wrong shape")


def _shown(points: Iterable[str]) -> str:
    return ", ".join(sorted(points)[:5]) or "none"


_COMET_GPU = re.compile(r"(?:.*[/.])?sys\.gpu\.(\d{1,4})\.([\w.]+)")


def read_comet(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the system metrics of a Comet experiment: answers of `APIExperiment.get_metrics()`.

    `cometx download` writes the same as `metrics.jsonl`. Comet passes on what the driver says:
    power in milliwatts, memory in bytes.

    Raises:
        InputError: no GPU is among its metrics.
    """
    points, items = Points(), list[dict[str, object]]()
    for document in documents(builder):
        listed = document.get("metrics")
        items += mappings_in(listed if isinstance(listed, list) else [document])
    own = (i for i in items if "metricName" not in i or _COMET_GPU.fullmatch(str(i["metricName"])))
    for key, point in _points(own, ("metricName", "timestamp", "metricValue"), builder):
        gpu = cast("re.Match[str]", _COMET_GPU.fullmatch(key))
        points.add(f"sys.gpu.n.{gpu[2]}", {"gpu": gpu[1]}, point)
    if not points:
        raise builder.empty_error()
    return series.recording(builder, points.series(), hints)


_CLEARML_TITLE = ":monitor:gpu"
_CLEARML_GPU = re.compile(r"gpu_(\d+)_(\w+)")
_EPOCH_MS = 1e11
_FULL, _FEW = 100.0, 10


def read_clearml(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the scalars of a ClearML task: `Task.get_reported_scalars()`, written as JSON.

    Its monitor averages over 30 s. Where a driver reports no utilization (MIG), ClearML writes a
    constant 100 %: that is taken for unknown. Without `x_axis="timestamp"` times are seconds since
    the task's start.

    Raises:
        InputError: no GPU is among its scalars.
    """
    members = []
    for task in documents(builder):
        scalars = task.get("scalars") if isinstance(task.get("scalars"), dict) else task
        for name, plot in sorted(mapping_of(mapping_of(scalars).get(_CLEARML_TITLE)).items()):
            member = _clearml_series(str(name), plot)
            if member is not None and not _is_always_full(member, builder):
                members.append(member)
    if not members:
        raise InputError(Message("read.clearml", file=builder.name, title=_CLEARML_TITLE))
    dated = all(member.t_s.min() > _EPOCH_MS / _MS_A_S for member in members)
    return series.recording(builder, members, hints, absolute=dated)


def _clearml_series(name: str, plot: object) -> SampledSeries | None:
    match = _CLEARML_GPU.fullmatch(name)
    x, y = mapping_of(plot).get("x"), mapping_of(plot).get("y")
    if match is None or not isinstance(x, list) or not isinstance(y, list) or not x or not y:
        return None
    try:
        times, values = np.array(x, dtype=float), np.array(y, dtype=float)
    except (TypeError, ValueError):
        return None
    count = min(len(times), len(values))
    order = np.argsort(times[:count], kind="stable")
    t_s = times[:count][order]
    return SampledSeries(
        name=f"{_CLEARML_TITLE}/gpu_N_{match[2]}",
        labels={"gpu": match[1]},
        t_s=t_s / _MS_A_S if t_s[0] > _EPOCH_MS else t_s,
        readings=values[:count][order],
        counter=False,
    )


def _is_always_full(member: SampledSeries, builder: RecordingBuilder) -> bool:
    is_long = member.name.endswith("utilization") and len(member.readings) >= _FEW
    if not is_long or not (member.readings == _FULL).all():
        return False
    builder.leave_out("constant 100 %", len(member.readings))
    builder.notes.append(Message("read.always-full", index=str(member.index)))
    return True


# The framing of TensorBoard's files is TFRecord's: length, checksum, data, checksum. The fields are
# those of TensorFlow's `event.proto` and `summary.proto`: wall time 1, summary 5; of its values tag
# 1, simple value 2, tensor 8 with float values 5, double values 6 or raw content 4.
_HEAD, _TAIL = 12, 4
_WALL_TIME, _SUMMARY, _VALUE = 1, 5, 1
_TAG, _SIMPLE, _TENSOR = 1, 2, 8
_CONTENT, _FLOATS, _DOUBLES = 4, 5, 6
_FLOAT_FORMS = {4: "<f", 8: "<d"}
# Where a tag says which GPU: `gpu_id: 0/utilization.gpu (%)`, `system/gpu_0_...`, `gpu.0.memory`.
_TAG_GPU = re.compile(r"(?:gpu|device)_id[:_][ _](\d+)/|gpu[_.](\d+)[_./]|cuda:(\d+)[./]")


def read_tensorboard(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the scalars of GPUs that Lightning and others log to TensorBoard's event files.

    Checksums are not compared; a damaged end is left out and counted.

    Raises:
        InputError: no scalar of the file is a reading of a GPU.
    """
    mapped = {column.lower() for column, _ in hints.map}
    points, skipped = Points(), Counter[str]()
    for event in _events(builder):
        try:
            for t_s, tag, value in _scalars(event):
                name, index = _tag_name(tag)
                if name.lower() in mapped or key_of(name, {}) in metrics():
                    points.add(name, {"gpu": index}, (t_s, value))
                else:
                    skipped[tag] += 1
        except (ValueError, struct.error, IndexError, RecursionError):
            builder.leave_out("damaged event")
    builder.leave_out("point of a metric that is not used", skipped.total())
    if not points:
        raise InputError(Message("read.tensorboard", file=builder.name, names=_shown(skipped)))
    return series.recording(builder, points.series(), hints)


def _tag_name(tag: str) -> tuple[str, str]:
    """Return a tag without what comes before the metric, with N for the GPU, and the GPU."""
    match = _TAG_GPU.search(tag)
    index = next((text for text in match.groups() if text), "0") if match else "0"
    if match and match[1]:
        return tag[match.end() :], index
    plain = tag.replace(f"gpu_{index}_", "gpu_N_")
    return (plain if key_of(plain, {}) in metrics() else plain.rpartition("/")[2]), index


def _events(builder: RecordingBuilder) -> Iterator[bytes]:
    data, at = builder.payload.data, 0
    while at + _HEAD <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        start = at + _HEAD
        if start + length + _TAIL > len(data):
            break
        yield data[start : start + length]
        at = start + length + _TAIL
    if at < len(data):
        builder.leave_out("cut event")


def _scalars(event: bytes) -> Iterator[tuple[float, str, float]]:
    """Yield time, tag and value of each scalar of an event."""
    times = [struct.unpack("<d", time)[0] for time in protobuf_parts(event, _WALL_TIME)]
    for value in protobuf_parts(event, _SUMMARY, _VALUE):
        tag, scalar = _scalar(value)
        if tag and scalar is not None and times:
            yield times[-1], tag, scalar


def _scalar(value: bytes) -> tuple[str, float | None]:
    tag, scalar = "", None
    for number, part in protobuf_fields(value):
        if not isinstance(part, bytes):
            continue
        if number == _TAG:
            tag = part.decode("utf-8", "replace")
        elif number == _SIMPLE and len(part) == struct.calcsize("<f"):
            (scalar,) = struct.unpack("<f", part)
        elif number == _TENSOR:
            scalar = _tensor_scalar(part)
    return tag, scalar


def _tensor_scalar(tensor: bytes) -> float | None:
    """Return the number in a tensor of one element; None for any other."""
    for number, part in protobuf_fields(tensor):
        if number in (_CONTENT, _FLOATS, _DOUBLES) and isinstance(part, bytes):
            form = _FLOAT_FORMS.get(len(part))
            if form is not None:
                return float(struct.unpack(form, part)[0])
    return None
