"""Labelled time series, as Prometheus keeps them, to a recording."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pricing.errors import InputError
from pricing.message import Message
from telemetry.readers import clock
from telemetry.readers.column_names import (
    BITMASK,
    BLANKS,
    IDENTITY_METRIC,
    LABELS,
    RATE_OR_COUNTER,
    key_of,
    label_of,
    meaning,
    metrics,
)
from telemetry.readers.csv_text import THROTTLE_MOST
from telemetry.readers.hints import Hints
from telemetry.readers.ledger import findings, kind_of
from telemetry.readers.recording_builder import RecordingBuilder, real_uuid
from telemetry.readers.units import HOST_UNITS, MOST, THROTTLE_BITS, Meaning, first_measure
from telemetry.recording.recording import GPU, JOB, TIME, GpuIdentity, Recording, Served

_SeriesKey = tuple[str, tuple[tuple[str, str], ...], bool]

_MEMORY = ("memory.total", "memory.free", "memory.reserved", "memory.rest")
_COUNTER_POINTS = 10
_LEAST_BLANK = min(BLANKS)
_DEVICE_BUSY = "dcgm_fi_dev_gpu_util"
# A container's own share; 0 throughout where HAMi does not watch it (Project-HAMi/HAMi#1864).
_OF_CONTAINER = ("device_utilization_desc_of_container", "hami_container_device_utilization_ratio")
_UTIL, _UTIL_OF_ALL = "util.kernel_time", "util.all_processes"
_MIG_UUID = "dra_mig_device_uuid"
# A device's number as tools write it: 0, nvidia0, GPU 0, and with a MIG instance 0:7.
_NUMBER = re.compile(r"(?:(?:nvidia|gpu|card|cuda)[ _:-]?)?(\d{1,4})(?::(\d{1,3}))?", re.IGNORECASE)
_UUID = re.compile(r"(?:GPU|MIG)-[0-9a-f]{8}.*", re.IGNORECASE)
# One GPU has one value of these at an instant.
_ONE_VALUE = (_UTIL, "mem.used_gib", "power.board_w")
_T = TypeVar("_T")
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
        uuids = (real_uuid(self.labels.get(label)) for label in LABELS["uuid"])
        named = next((text for text in uuids if text and not text.isdecimal()), None)
        text = label_of(self.labels, "index") or ""
        return named or (text if _UUID.fullmatch(text) else None)

    @property
    def _number(self) -> re.Match[str] | None:
        numbers = (_NUMBER.fullmatch(self.labels.get(label, "")) for label in LABELS["index"])
        return next((number for number in numbers if number is not None), None)

    @property
    def index(self) -> int | None:
        """The device's index."""
        number = self._number
        return int(number[1]) if number else None

    @property
    def device(self) -> str | None:
        """What tells the device from all others; None where no label does."""
        if self.uuid is not None:
            return self.uuid
        name = label_of(self.labels, "device") if self.index is None else f"index {self.index}"
        return name and f"{self.host or ''} {name}"

    @property
    def host(self) -> str | None:
        """The machine."""
        return label_of(self.labels, "host")

    @property
    def instance(self) -> str | None:
        """The MIG instance, None for a whole device."""
        named = self.labels.get("gpu_i_id") or self.labels.get(_MIG_UUID)
        return named or (self._number[2] if self._number else None)

    @property
    def job(self) -> str | None:
        """The workload the labels name."""
        exporter = any(word in self.labels.get("container", "") for word in _EXPORTER)
        for label in LABELS["job"]:
            text = self.labels.get(label, "")
            own = label in {"pod", "job"} and (exporter or any(w in text for w in _EXPORTER))
            if text and not own:
                return text
        return None


class Points:
    """Points that are told one by one, on their way to series."""

    def __init__(self) -> None:
        self._by_series: dict[_SeriesKey, list[tuple[float, float]]] = defaultdict(list)

    def __bool__(self) -> bool:
        return bool(self._by_series)

    def add(
        self,
        name: str,
        labels: Mapping[str, str],
        point: tuple[float, float],
        *,
        counter: bool = False,
    ) -> None:
        """Add a time in seconds and a value; labels are named in lower case."""
        self._by_series[name, tuple(sorted(labels.items())), counter].append(point)

    def series(self) -> list[SampledSeries]:
        """Return the series by name and labels, the points of each by time."""
        members = []
        for (name, labels, counter), points in sorted(self._by_series.items()):
            t_s, readings = np.array(sorted(points, key=lambda point: point[0]), dtype=float).T
            members.append(
                SampledSeries(
                    name=name, labels=dict(labels), t_s=t_s, readings=readings, counter=counter
                )
            )
        return members


def recording(
    builder: RecordingBuilder,
    series: Sequence[SampledSeries],
    hints: Hints,
    served: tuple[Served, ...] = (),
    of_servers: frozenset[str] = frozenset(),
    **more: Any,  # noqa: ANN401 - the other fields of a Recording
) -> Recording:
    """Return the recording of many series.

    Args:
        builder: where rows and figures are counted.
        series: in any order.
        hints: `map` names metrics the table does not know ("value" for one without a name).
        served: what servers of models among them told.
        of_servers: names of metrics that it was read from.
        **more: fields of `Recording`.

    Raises:
        InputError: none of the series is a GPU metric, and none is of a server of models.
    """
    builder.rows_read += _points(series)
    table = _table(hints)
    named = [member for member in series if _key(member) in table]
    _enter(series, table, of_servers, builder)
    if not served and not any(len(member.readings) for member in named):
        raise InputError(_no_match(builder.name, sorted({member.name for member in series})))
    unused = _points(series) - _points(named) - sum(member.points for member in served)
    builder.dropped["point of a metric that is not used"] += max(0, unused)
    cleaned = [_clean(member, builder) for member in named]
    used = _separated(_counted(cleaned, table, builder), table, builder)
    _figures(builder, used, table)
    identities = [member for member in series if member.name.lower() == IDENTITY_METRIC]
    of_host = [_wide([m], table) for m in used if table[_key(m)].target in HOST_UNITS]
    used = [member for member in used if table[_key(member)].target not in HOST_UNITS]
    members = sorted(_by_device(used, builder).items())
    gpus = tuple(_identity(key, of_device, identities, table) for key, of_device in members)
    parts = [frame for key, of_device in members for frame in _frames(key, of_device, table)]
    samples = pd.concat(parts, ignore_index=True) if parts else no_samples()
    if of_host:
        more["host"] = builder.host(pd.concat(of_host).rename_axis(TIME).reset_index())
    return builder.recording(
        samples, gpus, mig=any(member.instance for member in used), served=served, **more
    )


def _points(series: Sequence[SampledSeries]) -> int:
    return sum(len(member.readings) for member in series)


def _counted(
    members: Sequence[SampledSeries], table: Mapping[str, Meaning], builder: RecordingBuilder
) -> list[SampledSeries]:
    """Return the series without busy times of 0 that stand for what nobody counts.

    The driver does not count a sliced GPU's (NVIDIA/dcgm-exporter#216), nor HAMi its containers'
    where it does not watch them: there all are 0 while the GPU itself is busy.
    """
    sliced = {member.device for member in members if member.instance} - {None}
    busy: dict[bool, set[str | None]] = {True: set(), False: set()}
    for member in members:
        if table[_key(member)].target == _UTIL and member.readings.any():
            busy[_key(member) in _OF_CONTAINER].add(member.device)
    unwatched = busy[False] - busy[True]
    counted, silent = list[SampledSeries](), list[SampledSeries]()
    for member in members:
        is_sliced = _key(member) == _DEVICE_BUSY and member.device in sliced
        is_unwatched = _key(member) in _OF_CONTAINER and member.device in unwatched
        uncounted = is_unwatched or (is_sliced and not member.readings.any())
        (silent if uncounted else counted).append(member)
    builder.dropped["busy time of 0 that is not counted"] += _points(silent)
    return counted


def _who(member: SampledSeries) -> str:
    where = f" of {member.host}" if member.host else ""
    return f"GPU {member.uuid if member.index is None else member.index}{where}"


def _separated(
    members: list[SampledSeries], table: Mapping[str, Meaning], builder: RecordingBuilder
) -> list[SampledSeries]:
    """Return the series with what else tells their devices apart in the host's or device's name.

    Federation and Thanos bring together clusters whose hosts have the same names. One GPU has one
    value at an instant: where copies contradict each other, their labels tell several GPUs.
    """
    copies: dict[tuple[str | None, ...], list[SampledSeries]] = defaultdict(list)
    for member in members:
        if member.uuid is None and table[_key(member)].target in _ONE_VALUE:
            copies[member.device, member.instance, _key(member), member.job].append(member)
    contradicting = (_differing(same) for same in copies.values() if differ(same))
    labels = set().union(*contradicting) - {*LABELS["reader"], *LABELS["cluster"]}
    if labels:
        builder.notes.append(Message("read.apart", labels=", ".join(sorted(labels))))
    labels |= _differing(members) & {*LABELS["cluster"]}

    def named(member: SampledSeries) -> SampledSeries:
        texts = [member.labels[name] for name in sorted(labels) if name in member.labels]
        label, host = ("hostname", member.host or "") if member.device else ("device", "")
        text = " ".join([*texts, host]).strip()
        return replace(member, labels={**member.labels, label: text}) if texts else member

    return [named(member) for member in members]


def _differing(members: Sequence[SampledSeries]) -> set[str]:
    """Return the labels that have several texts."""
    texts: dict[str, set[str]] = defaultdict(set)
    for member in members:
        for name, text in member.labels.items():
            texts[name].add(text)
    return {name for name, several in texts.items() if len(several) > 1}


def _enter(
    series: Sequence[SampledSeries],
    table: Mapping[str, Meaning],
    of_servers: frozenset[str],
    builder: RecordingBuilder,
) -> None:
    """Note every metric in the ledger, and what some tell of a card's health."""
    points: dict[str, int] = defaultdict(int)
    servers = set(of_servers)
    for member in series:
        points[member.name or "value"] += len(member.readings)
        if _key(member) in table:
            servers.add(member.name or "value")
    for name, count in points.items():
        builder.ledger.enter(name, count, read=name in servers, metric=True)
    builder.health += findings(
        (_who(member), kind, float(np.max(member.readings, initial=-np.inf)))
        for member in series
        if (kind := kind_of(member.name))
    )


def _clean(member: SampledSeries, builder: RecordingBuilder) -> SampledSeries:
    """Return the points that are values."""
    size = np.abs(member.readings)
    if (size < _LEAST_BLANK).all() and (clock.placed(member.t_s) == member.t_s).all():
        return member
    missing = ~(size < MOST)
    blank = np.isin(member.readings, list(BLANKS))
    lost = ~np.isfinite(clock.placed(member.t_s)) & ~(missing | blank)
    builder.dropped["point that is not a number"] += int(missing.sum())
    builder.dropped["DCGM blank value"] += int(blank.sum())
    builder.dropped["timestamp not readable"] += int(lost.sum())
    good = ~(missing | blank | lost)
    return replace(member, t_s=member.t_s[good], readings=member.readings[good])


def no_samples() -> pd.DataFrame:
    """Return samples without a row."""
    return pd.DataFrame({TIME: np.empty(0), GPU: pd.Series(dtype=object)})


def _key(member: SampledSeries) -> str:
    return key_of(member.name, member.labels)


def _table(hints: Hints) -> dict[str, Meaning]:
    mapped = {key_of(column, {}): meaning(column, hints) for column, _ in hints.map}
    return {**metrics(), **{name: holds for name, holds in mapped.items() if holds is not None}}


def _no_match(name: str, names: list[str]) -> str:
    if names == [""]:
        return Message("read.no-series-name", file=name)
    shown = ", ".join(label or "(no name)" for label in names[:5]) or "none"
    return Message("read.no-gpu-metric", file=name, n=len(names), names=shown)


def _figures(
    builder: RecordingBuilder, used: Sequence[SampledSeries], table: Mapping[str, Meaning]
) -> None:
    values: dict[tuple[str, str], list[NDArray[np.float64]]] = defaultdict(list)
    for member in used:
        values[member.name, _key(member)].append(member.readings)
    for (name, key), parts in sorted(values.items()):
        holds = table[key]
        raw = np.sort(np.concatenate(parts))
        slot = "throttle.fraction" if holds.target == BITMASK else holds.target
        builder.column(name or "value", slot, holds.scale, raw)


def _by_device(
    used: Sequence[SampledSeries], builder: RecordingBuilder
) -> dict[str, list[SampledSeries]]:
    """Return series by device: by uuid, else index if it names one uuid, else host and index.

    An index names no uuid of another host.
    """
    uuids: dict[int, set[tuple[str | None, str]]] = defaultdict(set)
    for member in used:
        if member.uuid is not None and member.index is not None:
            uuids[member.index].add((member.host, member.uuid))
    owners = Counter(owner for named in uuids.values() for owner in named)
    members: dict[str, list[SampledSeries]] = defaultdict(list)
    for member in used:
        if member.labels.get("gpu_partition_id", "0") not in {"", "0"}:
            # AMD gives power and activity of a device to its first partition, 0 to the others.
            builder.dropped["point of a later partition (AMD)"] += len(member.readings)
            continue
        named = uuids.get(-1 if member.index is None else member.index, set())
        same = {uuid for host, uuid in named if None in {host, member.host} or host == member.host}
        uuid = member.uuid or (next(iter(same)) if len(same) == 1 else None)
        if owners[member.host, uuid or ""] > 1:
            uuid = f"{uuid} index {member.index}"  # blanked, as in what people post
        device = uuid or member.device or ""
        members[device if member.instance is None else f"{device}/{member.instance}"].append(member)
    unlabelled = members.pop("", [])
    if unlabelled and len(members) <= 1:
        members[next(iter(members), "only")] += unlabelled
    elif unlabelled:
        builder.dropped["point without a GPU label"] += _points(unlabelled)
    return dict(members)


def differ(members: Sequence[SampledSeries]) -> bool:
    """Return whether copies of one metric differ where they were read at the same time."""
    first = members[0]
    for copy in members[1:]:
        _, first_places, other_places = np.intersect1d(first.t_s, copy.t_s, return_indices=True)
        if len(first_places) and not np.array_equal(
            first.readings[first_places], copy.readings[other_places]
        ):
            return True
    return False


def _identity(
    key: str,
    members: Sequence[SampledSeries],
    about: Sequence[SampledSeries],
    table: Mapping[str, Meaning],
) -> GpuIdentity:
    uuid = next((m.uuid for m in members if m.uuid and " index " not in key), None)
    labelled = [*members, *(member for member in about if member.uuid == uuid)]
    used, total, free, reserved, remaining = (
        _last_gib(members, table, target) for target in ("mem.used_gib", *_MEMORY)
    )
    if total is None and used is not None and free is not None and reserved is not None:
        total = used + free + reserved
    if total is None and used is not None and remaining is not None:
        total = used + remaining

    def first(texts: Iterable[_T | None]) -> _T | None:
        return next((text for text in texts if text is not None), None)

    instance = first(member.instance for member in members)
    profile = first(label_of(member.labels, "mig-profile") for member in members)
    return GpuIdentity(
        key=key,
        index=first(member.index for member in labelled),
        uuid=uuid,
        model=first(label_of(member.labels, "model") for member in labelled),
        memory_gib=None if instance else total,
        partition=None if instance is None else f"{profile or 'instance'} {instance}",
        mig_uuid=first(member.labels.get(_MIG_UUID) or None for member in members),
        host=first(member.host for member in members),
    )


def _last_gib(
    members: Sequence[SampledSeries], table: Mapping[str, Meaning], target: str
) -> float | None:
    for member in members:
        holds = table[_key(member)]
        if holds.target == target and holds.scale is not None and len(member.readings):
            return float(member.readings[-1]) * holds.scale
    return None


def _frames(
    key: str, members: Sequence[SampledSeries], table: Mapping[str, Meaning]
) -> list[pd.DataFrame]:
    """Return one frame a job of a device; readings without a label are the job's while it runs."""
    by_job: dict[str | None, list[SampledSeries]] = defaultdict(list)
    for member in members:
        by_job[member.job].append(member)
    unlabelled = _wide(by_job.pop(None, []), table)
    used = np.zeros(len(unlabelled), dtype=bool)
    frames: list[pd.DataFrame] = []
    for job, of_job in sorted(by_job.items(), key=lambda item: str(item[0])):
        wide = _wide(of_job, table)
        if len(wide) and len(unlabelled):
            during = (unlabelled.index >= wide.index.min()) & (unlabelled.index <= wide.index.max())
            used |= during
            of_all = unlabelled[during]
            if _UTIL in wide and _UTIL in of_all:
                wide[_UTIL_OF_ALL] = of_all[_UTIL]
            wide = wide.combine_first(of_all)
        frames.append(wide.assign(**{JOB: job}))
    frames.append(unlabelled[~used])
    return [
        frame.rename_axis(TIME).reset_index().assign(**{GPU: key}) for frame in frames if len(frame)
    ]


def _wide(members: Sequence[SampledSeries], table: Mapping[str, Meaning]) -> pd.DataFrame:
    """Return one column a target, one row an instant."""
    ranked: dict[str, list[tuple[int, str, pd.Series]]] = defaultdict(list)
    times, index = np.empty(0), pd.Index(np.empty(0))
    for member in members:
        holds = table[_key(member)]
        target, values = _in_slot_units(member, holds)
        if not len(times) or not np.array_equal(times, member.t_s):  # most are read together
            times, index = member.t_s, pd.Index(member.t_s)
        column = pd.Series(values, index=index)
        if not (np.diff(member.t_s) > 0).all():
            column = column.groupby(level=0).last()
        ranked[target].append((holds.rank, member.name, column))
    columns: dict[str, pd.Series] = {}
    for target, parts in sorted(ranked.items()):
        filled = [part for part in parts if len(part[2])] or parts
        first = first_measure(rank for rank, _, _ in filled)
        ordered = [c for rank, _, c in sorted(filled, key=lambda item: item[:2]) if rank < first]
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


def _in_slot_units(member: SampledSeries, holds: Meaning) -> tuple[str, NDArray[np.float64]]:
    if holds.target == BITMASK:
        bits = np.clip(member.readings, 0, THROTTLE_MOST).astype(np.int64)
        throttled = (bits & THROTTLE_BITS) != 0
        return "throttle.fraction", throttled.astype(float)
    counter = RATE_OR_COUNTER.get(holds.target)
    target = counter if counter is not None and _counts(member) else holds.target
    # HAMi sums the shares of a container's processes: above 100 % it says nothing of the GPU.
    readings = member.readings
    if _key(member) in _OF_CONTAINER:
        readings = np.where(readings > 100.0, np.nan, readings)  # noqa: PLR2004 - percent
    return target, readings * (holds.scale or 1.0)


def _counts(member: SampledSeries) -> bool:
    if member.counter is not None:
        return member.counter
    steps = np.diff(member.readings)
    return len(steps) >= _COUNTER_POINTS and bool((steps >= 0).all() and (steps > 0).any())
