"""Labelled time series, as Prometheus keeps them, to a recording."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pricing.errors import InputError
from telemetry.readers import clock
from telemetry.readers.column_names import (
    BITMASK,
    BLANKS,
    IDENTITY_METRIC,
    METRICS,
    RATE_OR_COUNTER,
    key_of,
    meaning,
)
from telemetry.readers.csv_text import MOST, THROTTLE_MOST
from telemetry.readers.recording_builder import RecordingBuilder, real_uuid
from telemetry.readers.records import whole_of
from telemetry.readers.units import THROTTLE_BITS
from telemetry.recording.recording import GPU, JOB, TIME, GpuIdentity, Recording

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from telemetry.readers.hints import Hints
    from telemetry.readers.units import Meaning
    from telemetry.recording.recording import Served

_MEMORY = ("memory.total", "memory.free", "memory.reserved", "memory.rest")
_COUNTER_POINTS = 10
_LEAST_BLANK = min(BLANKS)
_HOST_LABELS = ("hostname", "host", "node", "host_name", "k8s_node_name", "instance")
_MIG_UUID = "dra_mig_device_uuid"
_PROFILE_LABELS = ("gpu_i_profile", "dra_mig_profile")
_UUID_LABELS = ("uuid", "gpu_uuid", "hw_id")
_ID_LABELS = (
    "gpu",
    "gpu_id",
    "index",
    "minor_number",
    "gpuindex",
    "gpu_index",
    "gpu_number",
    "hw_id",
)
_MODEL_LABELS = (
    "modelname",
    "model_name",
    "name",
    "dcgm_fi_dev_name",
    "card_model",
    "gpudevicename",
    "gpu_name",
    "gpu_model",
    "hw_model",
)
# The first label that names a workload is the job; `pod` and `job` are often the exporter's own.
JOB_LABELS = ("exported_pod", "pod", "k8s_pod_name", "hpc_job", "job")
_EXPORTER = ("exporter", "prometheus", "node-", "kube")


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledSeries:
    """One metric of one label set.

    Attributes:
        name: the metric as written, "" where a function dropped it.
        labels: its labels, names in lower case.
        t_s: seconds.
        readings: values as written, NaN where no number.
        counter: whether the source declares a counter; None where it does not say.
    """

    name: str
    labels: Mapping[str, str]
    t_s: NDArray[np.float64]
    readings: NDArray[np.float64]
    counter: bool | None = None

    @property
    def uuid(self) -> str | None:
        """The device's uuid."""
        found = (real_uuid(self.labels.get(label)) for label in _UUID_LABELS)
        return next((text for text in found if text and not text.isdecimal()), None)

    @property
    def index(self) -> int | None:
        """The device's index."""
        found = (self.labels.get(label, "") for label in _ID_LABELS)
        return next((known for text in found if (known := whole_of(text)) is not None), None)

    @property
    def host(self) -> str | None:
        """The machine."""
        return next((self.labels[label] for label in _HOST_LABELS if self.labels.get(label)), None)

    @property
    def instance(self) -> str | None:
        """The MIG instance, None for a whole device."""
        return self.labels.get("gpu_i_id") or self.labels.get(_MIG_UUID) or None

    @property
    def job(self) -> str | None:
        """The workload the labels name."""
        exporter = any(word in self.labels.get("container", "") for word in _EXPORTER)
        for label in JOB_LABELS:
            text = self.labels.get(label, "")
            own = label in {"pod", "job"} and (exporter or any(w in text for w in _EXPORTER))
            if text and not own:
                return text
        return None


def recording(
    builder: RecordingBuilder,
    found: Sequence[SampledSeries],
    hints: Hints,
    served: tuple[Served, ...] = (),
    **more: Any,  # noqa: ANN401 - the other fields of a Recording
) -> Recording:
    """Return the recording of many series.

    Args:
        builder: where rows and figures are counted.
        found: the series, in any order.
        hints: `map` names metrics the table does not know ("value" for one without a name).
        served: what servers of models among them told.
        **more: fields of `Recording`.

    Raises:
        InputError: none of the series is a GPU metric, and none is of a server of models.
    """
    builder.rows_read += sum(len(one.readings) for one in found)
    table = _table(hints)
    named = [one for one in found if _key(one) in table]
    if not served and not any(len(one.readings) for one in named):
        raise InputError(_nothing(builder.name, sorted({one.name for one in found})))
    others = sum(len(one.readings) for one in found) - sum(len(one.readings) for one in named)
    others -= sum(one.points for one in served)
    if others > 0:
        builder.dropped["point of a metric that is not used"] += others
    used = [_clean(one, builder) for one in named]
    _figures(builder, used, table)
    about = [one for one in found if one.name.lower() == IDENTITY_METRIC]
    members = _by_device(used, builder)
    gpus = tuple(_identity(key, ours, about, table) for key, ours in sorted(members.items()))
    parts = [frame for key, ours in sorted(members.items()) for frame in _frames(key, ours, table)]
    samples = pd.concat(parts, ignore_index=True) if parts else _no_samples()
    return builder.recording(
        samples, gpus, mig=any(one.instance for one in used), served=served, **more
    )


def _clean(one: SampledSeries, builder: RecordingBuilder) -> SampledSeries:
    """Return the points that are values."""
    size = np.abs(one.readings)
    if (size < _LEAST_BLANK).all() and (clock.placed(one.t_s) == one.t_s).all():
        return one
    missing = ~(size < MOST)
    blank = np.isin(one.readings, list(BLANKS))
    for reason, wrong in (("point that is not a number", missing), ("DCGM blank value", blank)):
        if wrong.any():
            builder.dropped[reason] += int(wrong.sum())
    lost = ~np.isfinite(clock.placed(one.t_s)) & ~(missing | blank)
    if lost.any():
        builder.dropped["timestamp not readable"] += int(lost.sum())
    kept = ~(missing | blank | lost)
    return replace(one, t_s=one.t_s[kept], readings=one.readings[kept])


def _no_samples() -> pd.DataFrame:
    return pd.DataFrame({TIME: np.empty(0), GPU: pd.Series(dtype=object)})


def _key(one: SampledSeries) -> str:
    return key_of(one.name, one.labels)


def _table(hints: Hints) -> dict[str, Meaning]:
    mapped = {column.lower(): meaning(column, hints) for column, _ in hints.map}
    return {**METRICS, **{name: known for name, known in mapped.items() if known is not None}}


def _nothing(name: str, others: list[str]) -> str:
    if others == [""]:
        return (
            f"{name}: its series carry no metric name (functions such as rate() drop it), so it is "
            "not known what they measure. Say it: --map value=util.kernel_time."
        )
    shown = ", ".join(other or "(no name)" for other in others[:5]) or "none"
    return (
        f"{name}: no GPU metric among its {len(others)} metrics ({shown}). Query "
        "DCGM_FI_DEV_GPU_UTIL, DCGM_FI_DEV_FB_USED and DCGM_FI_DEV_POWER_USAGE, or name one "
        "with --map METRIC=slot."
    )


def _figures(
    builder: RecordingBuilder, used: Sequence[SampledSeries], table: Mapping[str, Meaning]
) -> None:
    values: dict[tuple[str, str], list[NDArray[np.float64]]] = defaultdict(list)
    for one in used:
        values[one.name, _key(one)].append(one.readings)
    for (name, key), parts in sorted(values.items()):
        known = table[key]
        raw = np.sort(np.concatenate(parts))
        slot = "throttle.fraction" if known.target == BITMASK else known.target
        builder.column(name or "value", slot, known.scale, raw)


def _by_device(
    used: Sequence[SampledSeries], builder: RecordingBuilder
) -> dict[str, list[SampledSeries]]:
    """Return series by device: by uuid, else index if it names one uuid, else host and index.

    An index names no uuid of another host.
    """
    uuids: dict[int, set[tuple[str | None, str]]] = defaultdict(set)
    for one in used:
        if one.uuid is not None and one.index is not None:
            uuids[one.index].add((one.host, one.uuid))
    members: dict[str, list[SampledSeries]] = defaultdict(list)
    unlabelled: list[SampledSeries] = []
    for one in used:
        if one.labels.get("gpu_partition_id", "0") not in {"", "0"}:
            # AMD gives power and activity of a device to its first partition, 0 to the others.
            builder.dropped["point of a later partition (AMD)"] += len(one.readings)
            continue
        named = uuids.get(-1 if one.index is None else one.index, set())
        same = {uuid for host, uuid in named if None in {host, one.host} or host == one.host}
        uuid = one.uuid or (next(iter(same)) if len(same) == 1 else None)
        if uuid is None and one.index is None:
            unlabelled.append(one)
            continue
        device = uuid or f"{one.host or ''} index {one.index}"
        members[device if one.instance is None else f"{device}/{one.instance}"].append(one)
    if unlabelled and len(members) <= 1:
        members[next(iter(members), "only")] += unlabelled
    elif unlabelled:
        builder.dropped["point without a GPU label"] += sum(len(one.readings) for one in unlabelled)
    return dict(members)


def _identity(
    key: str,
    members: Sequence[SampledSeries],
    about: Sequence[SampledSeries],
    table: Mapping[str, Meaning],
) -> GpuIdentity:
    uuid = next((one.uuid for one in members if one.uuid), None)
    known = [*members, *(one for one in about if one.uuid == uuid)]
    memory = {target: _last_gib(members, table, target) for target in _MEMORY}
    used, free, reserved = (
        _last_gib(members, table, "mem.used_gib"),
        memory["memory.free"],
        memory["memory.reserved"],
    )
    total = memory["memory.total"]
    if total is None and used is not None and free is not None and reserved is not None:
        total = used + free + reserved
    if total is None and used is not None and memory["memory.rest"] is not None:
        total = used + memory["memory.rest"]
    instance = next((one.instance for one in members if one.instance), None)
    profiles = (one.labels.get(label) for one in members for label in _PROFILE_LABELS)
    profile = next((text for text in profiles if text), None)
    models = (one.labels.get(label) for one in known for label in _MODEL_LABELS)
    return GpuIdentity(
        key=key,
        index=next((one.index for one in known if one.index is not None), None),
        uuid=uuid,
        model=next((model for model in models if model), None),
        memory_gib=None if instance else total,
        partition=None if instance is None else f"{profile or 'instance'} {instance}",
        mig_uuid=next((u for one in members if (u := one.labels.get(_MIG_UUID))), None),
        host=next((one.host for one in members if one.host), None),
    )


def _last_gib(
    members: Sequence[SampledSeries], table: Mapping[str, Meaning], target: str
) -> float | None:
    for one in members:
        known = table[_key(one)]
        if known.target == target and known.scale is not None and len(one.readings):
            return float(one.readings[-1]) * known.scale
    return None


def _frames(
    key: str, members: Sequence[SampledSeries], table: Mapping[str, Meaning]
) -> list[pd.DataFrame]:
    """Return one frame a job of a device; readings without a label are the job's while it runs."""
    by_job: dict[str | None, list[SampledSeries]] = defaultdict(list)
    for one in members:
        by_job[one.job].append(one)
    rest = _wide(by_job.pop(None, []), table)
    taken = np.zeros(len(rest), dtype=bool)
    frames: list[pd.DataFrame] = []
    for job, ours in sorted(by_job.items(), key=lambda item: str(item[0])):
        wide = _wide(ours, table)
        if len(wide) and len(rest):
            during = (rest.index >= wide.index.min()) & (rest.index <= wide.index.max())
            taken |= during
            wide = wide.combine_first(rest[during])
        frames.append(wide.assign(**{JOB: job}))
    frames.append(rest[~taken])
    return [
        frame.rename_axis(TIME).reset_index().assign(**{GPU: key}) for frame in frames if len(frame)
    ]


def _wide(members: Sequence[SampledSeries], table: Mapping[str, Meaning]) -> pd.DataFrame:
    """Return one column a target, one row an instant."""
    ranked: dict[str, list[tuple[int, str, pd.Series]]] = defaultdict(list)
    times, index = np.empty(0), pd.Index(np.empty(0))
    for one in members:
        known = table[_key(one)]
        target, values = _in_slot_units(one, known)
        if not len(times) or not np.array_equal(times, one.t_s):  # most are read together
            times, index = one.t_s, pd.Index(one.t_s)
        column = pd.Series(values, index=index)
        if not (np.diff(one.t_s) > 0).all():
            column = column.groupby(level=0).last()
        ranked[target].append((known.rank, one.name, column))
    columns: dict[str, pd.Series] = {}
    for target, found in sorted(ranked.items()):
        ordered = [column for _, _, column in sorted(found, key=lambda item: item[:2])]
        merged = ordered[0]
        for column in ordered[1:]:
            # Causes of throttling add up; other metrics of one target repeat each other.
            merged = (
                merged.add(column, fill_value=0.0)
                if target == "counter.throttle_s"
                else merged.combine_first(column)
            )
        columns[target] = merged
    wide = pd.DataFrame(columns)
    return wide.drop(columns=[c for c in _MEMORY if c in wide]).dropna(how="all")


def _in_slot_units(one: SampledSeries, known: Meaning) -> tuple[str, NDArray[np.float64]]:
    if known.target == BITMASK:
        bits = np.clip(one.readings, 0, THROTTLE_MOST).astype(np.int64)
        held = (bits & THROTTLE_BITS) != 0
        return "throttle.fraction", held.astype(float)
    counter = RATE_OR_COUNTER.get(known.target)
    if counter is not None and _counts(one):
        return counter, one.readings * (known.scale or 1.0)
    return known.target, one.readings * (known.scale or 1.0)


def _counts(one: SampledSeries) -> bool:
    if one.counter is not None:
        return one.counter
    steps = np.diff(one.readings)
    return len(steps) >= _COUNTER_POINTS and bool((steps >= 0).all() and (steps > 0).any())
