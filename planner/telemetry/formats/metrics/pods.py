"""Pods in labels: which job a pod is of, whose it is, and which pods share one GPU.

`kube_pod_labels` is the metric of kube-state-metrics; dcgm-exporter copies labels of pods by their
own names where that is switched on. Names of labels are those that Kubernetes, Kubeflow, JobSet,
LeaderWorkerSet and Ray set.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.telemetry.recording.labels import JobLabels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from planner.telemetry.parsing.series import SampledSeries

LABELS_METRIC = "kube_pod_labels"
# The most telling first: a pod of a job also carries the label of its application.
_JOB = (
    "batch_kubernetes_io_job_name",
    "job_name",
    "training_kubeflow_org_job_name",
    "jobset_sigs_k8s_io_jobset_name",
    "leaderworkerset_sigs_k8s_io_name",
    "ray_io_cluster",
    "app_kubernetes_io_instance",
    "app_kubernetes_io_name",
    "app",
)
_WHOSE = {
    "team": ("team", "squad"),
    "owner": ("owner",),
    "cost_center": ("cost_center", "costcenter", "cost_centre"),
}
_PREFIX = "label_"
_POD = ("exported_pod", "pod")
_PROCESS_MEMORY = "dcgm_fi_dev_fb_used"
PROCESS_MEMORY_METRIC = "gpucost_process_fb_used"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """Series with the jobs of their pods.

    Attributes:
        series: those of other metrics, with the job as `exported_pod` where it is known.
        labels: whose each job is.
        notes: what a reader of the profile should know.
    """

    series: tuple[SampledSeries, ...]
    labels: Mapping[str, JobLabels]
    notes: tuple[str, ...]


def pods(found: Iterable[SampledSeries]) -> Pods:
    """Return the series by job in place of by pod, and whose the jobs are."""
    every = tuple(found)
    about = {
        (one.labels.get("exported_namespace") or one.labels.get("namespace", ""), pod): {
            key.removeprefix(_PREFIX): value for key, value in one.labels.items() if value
        }
        for one in every
        if one.name.lower() == LABELS_METRIC and (pod := _pod(one)) is not None
    }
    series: list[SampledSeries] = []
    labels: dict[str, JobLabels] = {}
    for one in (one for one in every if one.name.lower() != LABELS_METRIC):
        pod = one.job
        own = about.get((_namespace(one), str(pod))) or {}
        job = next((own[key] for key in _JOB if own.get(key)), None)
        series.append(one if job is None else _renamed(one, job))
        told = _whose({**one.labels, **own})
        if pod is not None and told != JobLabels():
            labels[job or pod] = told
    shared, notes = _shared(series)
    return Pods(series=shared, labels=labels, notes=notes)


def _pod(one: SampledSeries) -> str | None:
    return next((one.labels[label] for label in _POD if one.labels.get(label)), None)


def _namespace(one: SampledSeries) -> str:
    exported = one.labels.get("exported_namespace")
    return exported or one.labels.get("namespace", "")


def _renamed(one: SampledSeries, job: str) -> SampledSeries:
    return replace(one, labels={**one.labels, "exported_pod": job})


def _whose(labels: Mapping[str, str]) -> JobLabels:
    told = {
        field: next((labels[name] for name in names if labels.get(name)), None)
        for field, names in _WHOSE.items()
    }
    return JobLabels(**told)


def _shared(series: Sequence[SampledSeries]) -> tuple[tuple[SampledSeries, ...], tuple[str, ...]]:
    """Return the series with memory of processes told apart, and what shared GPUs show.

    A GPU in turns (`vgpu`) carries a copy of each metric for each pod: older exporters copy the
    device's own value, newer ones give each pod what its processes use.
    """
    turns: dict[tuple[str, str, str], list[SampledSeries]] = defaultdict(list)
    for one in series:
        if one.labels.get("vgpu"):
            device = one.uuid or f"{one.host} {one.index}"
            turns[device, one.instance or "", one.name.lower()].append(one)
    own = {key for key, members in turns.items() if len(members) > 1 and _differ(members)}
    apart = {(device, part) for device, part, _ in own}
    copied = {(device, part) for device, part, _ in turns} - apart
    notes = []
    if copied:
        notes.append(
            f"{len(copied)} GPUs are shared by pods in turns, and each pod shows what the whole "
            "GPU does: how much of it is one pod's is not known."
        )
    if apart:
        notes.append(
            f"{len(apart)} GPUs are shared by pods in turns; readings are those of a pod's own "
            "processes where they differ."
        )
    memory = {key for key in own if key[2] == _PROCESS_MEMORY}
    found = tuple(
        replace(one, name=PROCESS_MEMORY_METRIC)
        if one.labels.get("vgpu")
        and (one.uuid or f"{one.host} {one.index}", one.instance or "", one.name.lower()) in memory
        else one
        for one in series
    )
    return found, tuple(notes)


def _differ(members: Sequence[SampledSeries]) -> bool:
    """Return whether copies of one metric differ where they were read at the same time."""
    first = members[0]
    for other in members[1:]:
        _, mine, theirs = np.intersect1d(first.t_s, other.t_s, return_indices=True)
        if len(mine) and not np.array_equal(first.readings[mine], other.readings[theirs]):
            return True
    return False
