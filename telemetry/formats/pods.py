"""Pods in labels: which job a pod is of, whose it is, and which pods share one GPU.

`kube_pod_labels` is the metric of kube-state-metrics; dcgm-exporter copies labels of pods by their
own names where that is switched on. Names of labels are those that Kubernetes, Kubeflow, JobSet,
LeaderWorkerSet and Ray set.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from telemetry.readers.series import JOB_LABELS
from telemetry.recording.recording import JobLabels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from telemetry.readers.series import SampledSeries

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
_UNFIT = re.compile(r"[^a-z0-9_]")  # of which Kubernetes' labels lose it in Prometheus
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
    about = [one.labels for one in every if one.name.lower() == LABELS_METRIC]
    by = by_job([one for one in every if one.name.lower() != LABELS_METRIC], about)
    series, notes = shared(by.series)
    return replace(by, series=series, notes=notes)


def by_job(
    found: Sequence[SampledSeries],
    about: Iterable[Mapping[str, str]],
    job_label: str | None = None,
) -> Pods:
    """Return the series in their order, each with its job in place of its pod.

    Jobs of one name in several namespaces are several jobs.

    Args:
        found: series of other metrics than `kube_pod_labels`.
        about: the label sets of `kube_pod_labels`.
        job_label: the one label, of a series or else of its pod, that names jobs; None for those
            that Kubernetes and its operators set, and else the pod.
    """
    known = _labels_of_pods(about)
    told = [known.get((_namespace(one), str(one.job)), {}) for one in found]
    if job_label is None:
        names = [
            next((own[key] for key in _JOB if own.get(key)), one.job)
            for one, own in zip(found, told, strict=True)
        ]
    else:
        label = _UNFIT.sub("_", job_label.lower())
        names = [
            one.labels.get(job_label.lower()) or one.labels.get(label) or own.get(label) or None
            for one, own in zip(found, told, strict=True)
        ]
    spaces: dict[str, set[str]] = defaultdict(set)
    for one, name in zip(found, names, strict=True):
        if name is not None and job_label is None:
            spaces[name].add(_namespace(one))
    series: list[SampledSeries] = []
    labels: dict[str, JobLabels] = {}
    for one, own, name in zip(found, told, names, strict=True):
        job = name
        if name is not None and len(spaces[name]) > 1 and _namespace(one):
            job = f"{_namespace(one)}/{name}"
        series.append(one if job == one.job else _renamed(one, job))
        whose = _whose({**one.labels, **own})
        if job is not None and whose != JobLabels():
            labels[job] = whose
    return Pods(series=tuple(series), labels=labels, notes=())


def _labels_of_pods(about: Iterable[Mapping[str, str]]) -> dict[tuple[str, str], dict[str, str]]:
    """Return the labels of each pod, by namespace and name; those that changed are left out."""
    found: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for labels in about:
        pod = next((labels[label] for label in _POD if labels.get(label)), None)
        if pod is not None:
            space = labels.get("exported_namespace") or labels.get("namespace", "")
            for key, value in labels.items():
                if value:
                    found[space, pod][key.removeprefix(_PREFIX)].add(value)
    return {
        pod: {key: next(iter(values)) for key, values in keys.items() if len(values) == 1}
        for pod, keys in found.items()
    }


def _namespace(one: SampledSeries) -> str:
    exported = one.labels.get("exported_namespace")
    return exported or one.labels.get("namespace", "")


def _renamed(one: SampledSeries, job: str | None) -> SampledSeries:
    """Return a series whose workload is a job, or nothing."""
    if job is not None:
        return replace(one, labels={**one.labels, _POD[0]: job})
    return replace(one, labels={k: v for k, v in one.labels.items() if k not in JOB_LABELS})


def _whose(labels: Mapping[str, str]) -> JobLabels:
    told = {
        field: next((labels[name] for name in names if labels.get(name)), None)
        for field, names in _WHOSE.items()
    }
    return JobLabels(**told)


def shared(series: Sequence[SampledSeries]) -> tuple[tuple[SampledSeries, ...], tuple[str, ...]]:
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
