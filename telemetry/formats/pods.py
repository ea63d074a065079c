"""Pods in labels: which job a pod is of, whose it is, and which pods share one GPU.

`kube_pod_labels` is the metric of kube-state-metrics; dcgm-exporter copies labels of pods by their
own names where that is switched on. Names of labels are those that Kubernetes, Kubeflow, JobSet,
LeaderWorkerSet and Ray set.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from pricing.errors import InputError
from pricing.message import Message
from telemetry.readers.column_names import LABELS, LABELS_METRIC, label_of
from telemetry.readers.series import SampledSeries, differ
from telemetry.recording.recording import JobLabels

_POD = ("exported_pod", "pod")
# Prometheus' name of the scrape, and a workload's where nothing else names one. What stands beside
# a pod's name in one series is the scrape in all; those with it alone are of GPUs of no pod.
_SCRAPE = "job"
_UNFIT = re.compile(r"[^a-z0-9_]")  # of which Kubernetes' labels lose it in Prometheus
_PROCESS_MEMORY = "dcgm_fi_dev_fb_used"
PROCESS_MEMORY_METRIC = "gpucost_process_fb_used"


_Series = tuple[SampledSeries, ...]


def pods(
    members: Iterable[SampledSeries], job_label: str | None = None
) -> tuple[_Series, Mapping[str, JobLabels], tuple[str, ...]]:
    """Return the series by job in place of by pod, whose the jobs are, and notes on shared GPUs.

    Raises:
        InputError: no series has the label that is to name jobs.
    """
    about: list[Mapping[str, str]] = []
    measured: list[SampledSeries] = []
    for member in members:
        if member.name.lower() == LABELS_METRIC:
            about.append(member.labels)
        else:
            measured.append(member)
    named, labels = by_job(measured, about, job_label)
    if job_label is not None and not any(member.job for member in named):
        label_keys = sorted({key for member in measured for key in member.labels})
        raise InputError(Message("read.no-job-label", label=job_label, labels=label_keys))
    series, notes = shared(named)
    return series, labels, notes


def by_job(
    members: Sequence[SampledSeries],
    about: Iterable[Mapping[str, str]],
    job_label: str | None = None,
) -> tuple[_Series, Mapping[str, JobLabels]]:
    """Return the series in their order, each with its job as `exported_pod`, and whose jobs are.

    Jobs of one name in several namespaces, or clusters, are several jobs.

    Args:
        members: series of other metrics than `kube_pod_labels`.
        about: the label sets of `kube_pod_labels`.
        job_label: the one label, of a series or else of its pod, that names jobs; None for those
            that Kubernetes and its operators set, and else the pod.
    """
    labels_of_pods = _labels_of_pods(about)
    pod_labels = [labels_of_pods.get((_namespace(m), str(m.job)), {}) for m in members]
    pairs = list(zip(members, pod_labels, strict=True))
    scrapes = {m.labels.get(_SCRAPE) for m in members if m.job != m.labels.get(_SCRAPE)}
    names = [_job_name(member, own, job_label, scrapes) for member, own in pairs]
    spaces: dict[str, set[str]] = defaultdict(set)
    clusters: dict[str, set[str | None]] = defaultdict(set)
    for member, name in zip(members, names, strict=True):
        if name is not None and job_label is None:
            spaces[name].add(_namespace(member))
            clusters[name].add(label_of(member.labels, "cluster"))
    series: list[SampledSeries] = []
    labels: dict[str, JobLabels] = {}
    for (member, own), name in zip(pairs, names, strict=True):
        job = name
        if name is not None and len(spaces[name]) > 1 and _namespace(member):
            job = f"{_namespace(member)}/{name}"
        cluster = label_of(member.labels, "cluster")
        if name is not None and cluster is not None and len(clusters[name] - {None}) > 1:
            job = f"{cluster}/{job}"
        series.append(member if job == member.job else _renamed(member, job))
        job_labels = _job_labels({**member.labels, **own})
        if job_labels.team is None:
            job_labels = replace(job_labels, team=_own_namespace(member) or None)
        if job is not None and job_labels != JobLabels():
            labels[job] = job_labels
    return tuple(series), labels


def _job_name(
    member: SampledSeries,
    pod_labels: Mapping[str, str],
    job_label: str | None,
    scrapes: Collection[str | None],
) -> str | None:
    if job_label is None:
        is_scrape = member.job in scrapes and member.job == member.labels.get(_SCRAPE)
        return label_of(pod_labels, "pod-job") or (None if is_scrape else member.job)
    label = _UNFIT.sub("_", job_label.lower())
    own = member.labels.get(job_label.lower()) or member.labels.get(label)
    return own or pod_labels.get(label) or None


def _labels_of_pods(about: Iterable[Mapping[str, str]]) -> dict[tuple[str, str], dict[str, str]]:
    """Return the labels of each pod, by namespace and name; those that changed are left out."""
    pods: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for labels in about:
        pod = next((labels[label] for label in _POD if labels.get(label)), None)
        if pod is not None:
            space = labels.get("exported_namespace") or labels.get("namespace", "")
            for key, value in labels.items():
                if value:
                    pods[space, pod][key.removeprefix("label_")].add(value)
    return {
        pod: {key: next(iter(values)) for key, values in keys.items() if len(values) == 1}
        for pod, keys in pods.items()
    }


def _namespace(member: SampledSeries) -> str:
    exported = member.labels.get("exported_namespace")
    return exported or member.labels.get("namespace", "")


def _own_namespace(member: SampledSeries) -> str:
    """Return the namespace of the pod that a series names, not that of an exporter beside it."""
    if member.labels.get("exported_pod"):
        return member.labels.get("exported_namespace", "")
    return _namespace(member) if member.labels.get("pod") == member.job else ""


def _renamed(member: SampledSeries, job: str | None) -> SampledSeries:
    """Return a series whose workload is a job, or nothing."""
    if job is not None:
        return replace(member, labels={**member.labels, _POD[0]: job})
    foreign = {k: v for k, v in member.labels.items() if k not in LABELS["job"]}
    return replace(member, labels=foreign)


def _job_labels(labels: Mapping[str, str]) -> JobLabels:
    texts = {
        field: next((labels[name] for name in names if labels.get(name)), None)
        for field, names in LABELS["owners"].items()
    }
    return JobLabels(**texts, is_complete=False)


def shared(series: Sequence[SampledSeries]) -> tuple[_Series, tuple[str, ...]]:
    """Return the series with memory of processes told apart, and what shared GPUs show.

    A GPU in turns (`vgpu`) carries a copy of each metric for each pod: older exporters copy the
    device's own value, newer ones give each pod what its processes use.
    """
    turns: dict[tuple[str, str, str], list[SampledSeries]] = defaultdict(list)
    for member in series:
        if member.labels.get("vgpu"):
            turns[_turn(member)].append(member)
    differing = {key for key, copies in turns.items() if len(copies) > 1 and differ(copies)}
    ambiguous = {(device, part) for device, part, _ in differing}
    copied = {(device, part) for device, part, _ in turns} - ambiguous
    notes: list[str] = []
    if copied:
        notes.append(Message("read.shared-whole", n=len(copied)))
    if ambiguous:
        notes.append(Message("read.shared-own", n=len(ambiguous)))
    memory = {key for key in differing if key[2] == _PROCESS_MEMORY}
    renamed = tuple(
        replace(member, name=PROCESS_MEMORY_METRIC)
        if member.labels.get("vgpu") and _turn(member) in memory
        else member
        for member in series
    )
    return renamed, tuple(notes)


def _turn(member: SampledSeries) -> tuple[str, str, str]:
    return member.device or "", member.instance or "", member.name.lower()
