"""Answers of a server to profiles: a job for each workload that labels name, else a machine."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.telemetry.formats.metrics.prometheus_json import FORMAT, series_of
from planner.telemetry.parsing import series
from planner.telemetry.parsing.payload import Payload
from planner.telemetry.parsing.prometheus_metrics import IDENTITY_METRIC
from planner.telemetry.parsing.recording_builder import RecordingBuilder
from planner.telemetry.profiling import jobs
from pricing.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from planner.profile.model import Profile
    from planner.telemetry.parsing.hints import Hints
    from planner.telemetry.parsing.series import SampledSeries

_JOB = "exported_pod"  # the label that series take first for the workload
_WORKLOADS = ("exported_pod", "pod", "k8s_pod_name", "hpc_job", "job")


def profiles_live(
    server: tuple[str, Iterable[dict[str, object]]],
    hints: Hints,
    say: Callable[[str], None],
) -> tuple[Profile, ...]:
    """Return one profile a workload, by name; a machine is one where no label names any.

    Args:
        server: its name, and its answers to range queries.
        hints: what the server does not say; `job_label` names the workload.
        say: told what is in no profile.

    Raises:
        InputError: nothing of it can be read.
    """
    host, answers = server
    builder = _builder(host)
    found = _joined(one for answer in answers for one in series_of(answer, host, builder))
    if hints.job_label is not None:
        found = [_labelled(one, hints.job_label.lower()) for one in found]
    about = [one for one in found if one.name.lower() == IDENTITY_METRIC]
    groups = _groups([one for one in found if one.name.lower() != IDENTITY_METRIC], say)
    if hints.job is not None:
        if hints.job not in groups:
            names = ", ".join(sorted(groups)[:20]) or "none"
            raise InputError(f"--job {hints.job}: no such job. Jobs on the server: {names}.")
        groups = {hints.job: groups[hints.job]}
    if hints.name is not None and len(groups) > 1:
        raise InputError(f"--name {hints.name}: {len(groups)} jobs cannot share a name.")
    profiles: list[Profile] = []
    for name, ours in sorted(groups.items()):
        recording = series.recording(_builder(host), [*ours, *about], hints)
        own = replace(hints, job=None, name=hints.name or name)
        profiles += jobs.all_profiles([recording], own)
    return tuple(profiles)


def _builder(host: str) -> RecordingBuilder:
    return RecordingBuilder(Payload(name=host, data=b"", sha256=None, path=host), FORMAT)


def _joined(parts: Iterable[SampledSeries]) -> list[SampledSeries]:
    """Return the parts of each series as one."""
    together: dict[tuple[str, tuple[tuple[str, str], ...]], list[SampledSeries]] = defaultdict(list)
    for part in parts:
        together[part.name, tuple(sorted(part.labels.items()))].append(part)
    return [
        replace(
            same[0],
            t_s=np.concatenate([one.t_s for one in same]),
            readings=np.concatenate([one.readings for one in same]),
        )
        for _, same in sorted(together.items(), key=lambda item: item[0])
    ]


def _labelled(one: SampledSeries, job_label: str) -> SampledSeries:
    """Return a series whose workload is what one label says, or nothing."""
    labels = {name: text for name, text in one.labels.items() if name not in _WORKLOADS}
    job = one.labels.get(job_label)
    return replace(one, labels={**labels, _JOB: job} if job else labels)


def _groups(
    found: Sequence[SampledSeries], say: Callable[[str], None]
) -> dict[str, list[SampledSeries]]:
    """Return the series of each workload; of each machine where none is named."""
    groups: dict[str, list[SampledSeries]] = defaultdict(list)
    for one in found:
        if one.job is not None:
            groups[one.job].append(one)
    if not groups:
        for one in found:
            groups[one.host or "job"].append(one)
        return dict(groups)
    held = {one.uuid or (one.host, one.index) for ours in groups.values() for one in ours}
    free = {one.uuid or (one.host, one.index) for one in found if one.job is None} - held
    if free:
        say(f"{len(free)} GPUs carry no job label all the time, so they are in no profile.")
    return dict(groups)
