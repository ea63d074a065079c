"""One answer to a range query as columns of numbers: no point becomes an object of its own."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from planner.profile.model import Profile
from pricing.errors import InputError
from telemetry.formats.pods import by_job, shared
from telemetry.profiling import jobs
from telemetry.readers import series
from telemetry.readers.column_names import IDENTITY_METRIC
from telemetry.readers.hints import Hints
from telemetry.readers.payload import Payload
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.series import SampledSeries
from telemetry.recording.recording import JobLabels
from telemetry.stored_answers import RangeAnswer, StoredAnswers

_PLAIN = bytes.maketrans(b'[]"', b"   ")
_KEPT_AS = ("<i2", "<i4", "<f4", "<f8")  # the first that holds every value exactly


class AnswerError(Exception):
    """An answer that is not all of the data, or none; asked again it may be whole."""


def answer_of(body: bytes, begin_s: int, step_s: int) -> RangeAnswer:
    """Return an answer, its values in the smallest type that holds them exactly.

    Args:
        body: the server's words: a matrix.
        begin_s: the first instant asked for.
        step_s: time between instants.

    Raises:
        AnswerError: it is cut off, partial, no matrix, or of other times than those asked for.
    """
    try:
        answer = msgspec.json.decode(body, type=_Answer)
        pairs = [_pairs(item.values) for item in answer.data.result]
    except (ValueError, TypeError):
        raise AnswerError("the answer is cut off, or not a matrix of series") from None
    if answer.is_partial:
        raise AnswerError("the answer is partial: a part of its storage did not answer")
    if answer.data.result_type != "matrix":
        raise AnswerError("the answer is not a matrix of series")
    runs, values = _runs(pairs, begin_s, step_s)
    labels = tuple(item.metric for item in answer.data.result)
    warnings = tuple(text[:200] for text in answer.warnings or ())
    return RangeAnswer(labels=labels, runs=runs, values=_small(values), warnings=warnings)


class _Series(msgspec.Struct):
    """One series; its points as they are written."""

    metric: dict[str, str]
    values: msgspec.Raw


class _Data(msgspec.Struct, rename="camel"):
    result_type: str
    result: list[_Series]


class _Answer(msgspec.Struct, rename="camel"):
    data: _Data
    is_partial: bool = False
    warnings: list[str] | None = None


def _pairs(points: msgspec.Raw) -> NDArray[np.float64]:
    """Return times and values: of `[[1700000000,"80"],[1700000060,"NaN"]]`."""
    flat = b"[" + bytes(points).translate(_PLAIN) + b"]"
    try:
        pairs = np.array(msgspec.json.decode(flat), dtype=np.float64)
    except ValueError:  # NaN and +Inf are not JSON
        pairs = np.array([float(cell) for cell in flat[1:-1].split(b",")])
    return pairs.reshape(-1, 2)


def _runs(
    pairs: list[NDArray[np.float64]], begin_s: int, step_s: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    if not pairs:
        return np.empty((0, 3), dtype=np.int32), np.empty(0)
    points = np.concatenate(pairs)
    series = np.repeat(np.arange(len(pairs)), [len(part) for part in pairs])
    exact = (points[:, 0] - begin_s) / step_s
    slots = np.rint(exact)
    if not np.array_equal(exact, slots) or (slots < 0).any():
        raise AnswerError("the answer's times are not those asked for")
    broken = (np.diff(series) != 0) | (np.diff(slots) != 1)
    first = np.flatnonzero(np.concatenate(([True], broken)))
    length = np.diff(np.append(first, len(points)))
    runs = np.column_stack((series[first], slots[first], length))
    return runs.astype(np.int32), np.ascontiguousarray(points[:, 1])


def _small(values: NDArray[np.float64]) -> NDArray[Any]:
    """Return the values in the smallest type that holds each of them exactly."""
    for kind in _KEPT_AS[:-1]:
        with np.errstate(invalid="ignore", over="ignore"):
            small = values.astype(kind)
        if np.array_equal(small.astype(np.float64), values):
            return small
    return values


_SHOWN = 20
_LINES = 10  # that say how far the making of profiles is


@dataclass(frozen=True, slots=True)
class _ServerSeries:
    """What the labels of all series say.

    Attributes:
        series: each series without its points, with its job.
        positions: where each of them stands among the answers.
        devices: of each device, the numbers of its series that pods share.
        about: series that only name devices, by uuid.
        labels: whose each job is.
    """

    series: tuple[SampledSeries, ...]
    positions: Sequence[int]
    devices: Mapping[str | None, Sequence[int]]
    about: Mapping[str | None, Sequence[SampledSeries]]
    labels: Mapping[str, JobLabels]


def pods_of(answers: StoredAnswers) -> set[str]:
    """Return the pods that the series name."""
    named = (m.job for m in _unread(answers) if "exported_pod" in m.labels or "pod" in m.labels)
    return {name for name in named if name is not None}


def _unread(answers: StoredAnswers) -> list[SampledSeries]:
    """Return the series without their points."""
    empty = np.empty(0)
    return [
        SampledSeries(name=name, labels=labels, t_s=empty, readings=empty)
        for name, labels in answers.keys
    ]


def profiles_live(
    server: tuple[str, StoredAnswers, Iterable[Mapping[str, str]]],
    hints: Hints,
    say: Callable[[str], None],
) -> tuple[Profile, ...]:
    """Return one profile a workload, by name; a machine is one where no label names any.

    Args:
        server: its name, its answers to range queries, and label sets of `kube_pod_labels`.
        hints: what the server does not say; `job_label` names the workload.
        say: told what is in no profile, and how far it is.

    Raises:
        InputError: nothing of it can be read.
    """
    host, answers, about_pods = server
    server_series = _series_of_server(answers, about_pods, hints)
    groups = _groups(server_series.series, say)
    if hints.job is not None:
        if hints.job not in groups:
            names = ", ".join(sorted(groups)[:_SHOWN]) or "none"
            raise InputError(f"--job {hints.job}: no such job. Jobs on the server: {names}.")
        groups = {hints.job: groups[hints.job]}
    if hints.name is not None and len(groups) > 1:
        raise InputError(f"--name {hints.name}: {len(groups)} jobs cannot share a name.")
    profiles: list[Profile] = []
    for done, (name, members) in enumerate(sorted(groups.items()), start=1):
        profiles += _of_job(host, answers, server_series, (name, members), hints)
        if len(groups) > _LINES and done % -(-len(groups) // _LINES) == 0:
            say(f"{done:,} of {len(groups):,} profiles made")
    return tuple(profiles)


def _series_of_server(
    answers: StoredAnswers, about_pods: Iterable[Mapping[str, str]], hints: Hints
) -> _ServerSeries:
    light = _unread(answers)
    order = sorted(
        range(len(light)), key=lambda i: (light[i].name, sorted(light[i].labels.items()))
    )
    positions = [i for i in order if light[i].name.lower() != IDENTITY_METRIC]
    about: dict[str | None, list[SampledSeries]] = defaultdict(list)
    for i in order:
        if light[i].name.lower() == IDENTITY_METRIC:
            about[light[i].uuid].append(light[i])
    members, labels = by_job([light[i] for i in positions], about_pods, hints.job_label)
    devices: dict[str | None, list[int]] = defaultdict(list)
    for number, member in enumerate(members):
        if member.labels.get("vgpu"):
            devices[member.device].append(number)
    return _ServerSeries(members, positions, devices, about, labels)


def _of_job(
    host: str,
    answers: StoredAnswers,
    of_server: _ServerSeries,
    job: tuple[str, Sequence[int]],
    hints: Hints,
) -> tuple[Profile, ...]:
    name, members = job
    builder = RecordingBuilder(
        Payload(name=host, data=b"", sha256=None, path=host), "prometheus-json"
    )
    builder.notes += answers.notes
    own = set(members)
    sharing = sorted(
        {
            number
            for i in members
            if of_server.series[i].labels.get("vgpu")
            for number in of_server.devices[of_server.series[i].device]
        }
        - own
    )
    loaded = []
    for number in (*members, *sharing):
        t_s, readings = answers.read(of_server.positions[number])
        loaded.append(replace(of_server.series[number], t_s=t_s, readings=readings))
    if any(member.labels.get("vgpu") for member in loaded):
        separate, notes = shared(loaded)
        loaded = list(separate)
        builder.notes += notes
    uuids = {member.uuid for member in loaded}
    about = [
        member for uuid in uuids if uuid is not None for member in of_server.about.get(uuid, ())
    ]
    labels = {key: job_labels for key, job_labels in of_server.labels.items() if key == name}
    recording = series.recording(builder, [*loaded[: len(members)], *about], hints, labels=labels)
    return jobs.all_profiles([recording], replace(hints, job=None, name=hints.name or name))


def _groups(series: Sequence[SampledSeries], say: Callable[[str], None]) -> dict[str, list[int]]:
    """Return the numbers of each workload's series; of each machine's where none is named."""
    groups: dict[str, list[int]] = defaultdict(list)
    labelled: set[str | None] = set()
    free: set[str | None] = set()
    for number, member in enumerate(series):
        if (job := member.job) is not None:
            groups[job].append(number)
            labelled.add(member.device)
        else:
            free.add(member.device)
    if not groups:
        for number, member in enumerate(series):
            groups[member.host or "job"].append(number)
    elif free - labelled:
        count = len(free - labelled)
        say(f"{count} GPUs carry no job label all the time, so they are in no profile.")
    return dict(groups)
