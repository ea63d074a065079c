"""A server's answers to profiles: a job for each workload that labels name, else a machine."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from pricing.errors import InputError
from telemetry.formats.metrics.prometheus_json import FORMAT
from telemetry.formats.pods import by_job, shared
from telemetry.profiling import jobs
from telemetry.readers import series
from telemetry.readers.column_names import IDENTITY_METRIC
from telemetry.readers.payload import Payload
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.series import SampledSeries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from planner.profile.model import Profile
    from telemetry.readers.hints import Hints
    from telemetry.recording.recording import JobLabels

_SHOWN = 20
_LINES = 10  # that say how far the making of profiles is


class StoredSeries(Protocol):
    """What a server answered, by series.

    Attributes:
        keys: name and labels of each series, labels by name in lower case.
        notes: what a reader of the profiles should know.
    """

    keys: list[tuple[str, dict[str, str]]]
    notes: list[str]

    def read(self, series: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return times in seconds since 1970, and values, by time."""
        ...


@dataclass(frozen=True, slots=True)
class _ServerSeries:
    """What the labels of all series say.

    Attributes:
        found: each series without its points, with its job.
        place: where each of them stands among the answers.
        devices: of each device, the numbers of its series that pods share.
        about: series that only name devices, by uuid.
        labels: whose each job is.
    """

    found: tuple[SampledSeries, ...]
    place: Sequence[int]
    devices: Mapping[str, Sequence[int]]
    about: Mapping[str | None, Sequence[SampledSeries]]
    labels: Mapping[str, JobLabels]


def pods_of(answers: StoredSeries) -> set[str]:
    """Return the pods that the series name."""
    empty = np.empty(0)
    named = (
        SampledSeries(name=name, labels=labels, t_s=empty, readings=empty).job
        for name, labels in answers.keys
        if "exported_pod" in labels or "pod" in labels
    )
    return {name for name in named if name is not None}


def profiles_live(
    server: tuple[str, StoredSeries, Iterable[Mapping[str, str]]],
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
    known = _known(answers, about_pods, hints)
    groups = _groups(known.found, say)
    if hints.job is not None:
        if hints.job not in groups:
            names = ", ".join(sorted(groups)[:_SHOWN]) or "none"
            raise InputError(f"--job {hints.job}: no such job. Jobs on the server: {names}.")
        groups = {hints.job: groups[hints.job]}
    if hints.name is not None and len(groups) > 1:
        raise InputError(f"--name {hints.name}: {len(groups)} jobs cannot share a name.")
    profiles: list[Profile] = []
    for done, (name, ours) in enumerate(sorted(groups.items()), start=1):
        profiles += _of_job(host, answers, known, (name, ours), hints)
        if len(groups) > _LINES and done * _LINES // len(groups) > (done - 1) * _LINES // len(
            groups
        ):
            say(f"{done:,} of {len(groups):,} profiles made")
    return tuple(profiles)


def _known(
    answers: StoredSeries, about_pods: Iterable[Mapping[str, str]], hints: Hints
) -> _ServerSeries:
    empty = np.empty(0)
    light = [
        SampledSeries(name=name, labels=labels, t_s=empty, readings=empty)
        for name, labels in answers.keys
    ]
    order = sorted(
        range(len(light)), key=lambda i: (light[i].name, sorted(light[i].labels.items()))
    )
    place = [i for i in order if light[i].name.lower() != IDENTITY_METRIC]
    about: dict[str | None, list[SampledSeries]] = defaultdict(list)
    for i in order:
        if light[i].name.lower() == IDENTITY_METRIC:
            about[light[i].uuid].append(light[i])
    named = by_job([light[i] for i in place], about_pods, hints.job_label)
    devices: dict[str, list[int]] = defaultdict(list)
    for number, one in enumerate(named.series):
        if one.labels.get("vgpu"):
            devices[_device(one)].append(number)
    return _ServerSeries(named.series, place, devices, about, named.labels)


def _device(one: SampledSeries) -> str:
    return one.uuid or f"{one.host or ''} index {one.index}"


def _of_job(
    host: str,
    answers: StoredSeries,
    known: _ServerSeries,
    job: tuple[str, Sequence[int]],
    hints: Hints,
) -> tuple[Profile, ...]:
    name, ours = job
    builder = RecordingBuilder(Payload(name=host, data=b"", sha256=None, path=host), FORMAT)
    builder.notes += answers.notes
    mine = set(ours)
    beside = sorted(
        {
            number
            for i in ours
            if known.found[i].labels.get("vgpu")
            for number in known.devices[_device(known.found[i])]
        }
        - mine
    )
    loaded = [_loaded(answers, known, number) for number in (*ours, *beside)]
    if any(one.labels.get("vgpu") for one in loaded):
        told, notes = shared(loaded)
        loaded = list(told)
        builder.notes += notes
    uuids = {one.uuid for one in loaded}
    about = [one for uuid in uuids if uuid is not None for one in known.about.get(uuid, ())]
    labels = {key: whose for key, whose in known.labels.items() if key == name}
    recording = series.recording(builder, [*loaded[: len(ours)], *about], hints, labels=labels)
    return jobs.all_profiles([recording], replace(hints, job=None, name=hints.name or name))


def _loaded(answers: StoredSeries, known: _ServerSeries, number: int) -> SampledSeries:
    t_s, readings = answers.read(known.place[number])
    return replace(known.found[number], t_s=t_s, readings=readings)


def _groups(found: Sequence[SampledSeries], say: Callable[[str], None]) -> dict[str, list[int]]:
    """Return the numbers of each workload's series; of each machine's where none is named."""
    groups: dict[str, list[int]] = defaultdict(list)
    held: set[str] = set()
    free: set[str] = set()
    for number, one in enumerate(found):
        if (job := one.job) is not None:
            groups[job].append(number)
            held.add(_device(one))
        else:
            free.add(_device(one))
    if not groups:
        for number, one in enumerate(found):
            groups[one.host or "job"].append(number)
    elif free - held:
        say(f"{len(free - held)} GPUs carry no job label all the time, so they are in no profile.")
    return dict(groups)
