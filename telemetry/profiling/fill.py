"""Fills the gaps of a finished profile from hints; what the profile says itself stays."""

from collections.abc import Iterator

from msgspec.structs import replace

from planner.profile.kinds import JobKind
from planner.profile.model import Host, Job, Profile, Statistics, Work
from pricing.catalog.offer import parse_place
from pricing.hardware import find
from pricing.message import Message
from telemetry.readers.hints import LABELS, Hints
from telemetry.recording.recording import JobLabels


def fill(profile: Profile, hints: Hints) -> Profile:
    """Return the profile with its gaps filled; a hint that contradicts it is noted, not used."""
    job, hardware, labels = profile.job, profile.hardware, hints.job_labels
    notes = tuple(_contradictions(profile, hints))
    return replace(
        profile,
        job=replace(
            job,
            name=hints.name or job.name,
            kind=JobKind(hints.kind) if hints.kind and job.kind is JobKind.UNKNOWN else job.kind,
            precision=job.precision or hints.precision,
            batch_per_gpu=job.batch_per_gpu or hints.batch,
            team=job.team or labels.get("team"),
            owner=job.owner or labels.get("owner"),
            cost_center=job.cost_center or labels.get("cost_center"),
        ),
        hardware=replace(hardware, gpu=hardware.gpu or hints.gpu),
        work=profile.work or _work(profile, hints),
        provenance=replace(profile.provenance, notes=(*profile.provenance.notes, *notes)),
    )


def fill_machine(profile: Profile, hints: Hints) -> Profile:
    """Return the profile with the gaps of its machine filled from hints.

    Raises:
        InputError: `hints.machine` is not PROVIDER/TYPE.
    """
    hardware, host = profile.hardware, profile.host or Host()
    if hints.machine and not hardware.instance_type:
        provider, instance_type, region = parse_place(hints.machine)
        hardware = replace(hardware, provider=provider, instance_type=instance_type, region=region)
    if hints.cpu_fraction is not None and host.cpu_util is None:
        host = replace(host, cpu_util=Statistics(mean=hints.cpu_fraction))
    return replace(
        profile,
        hardware=replace(hardware, cpu_cores=hardware.cpu_cores or hints.cores),
        host=host if host != Host() else profile.host,
    )


def labels_not_used(own: Job | JobLabels, hints: Hints) -> Iterator[str]:
    """Yield a sentence for each label that the source tells otherwise."""
    for name, value in hints.labels:
        recorded = getattr(own, LABELS[name])
        if recorded is not None and recorded != value.strip():
            yield f"--label {name}={value} is not used: the data says {recorded}."


def _work(profile: Profile, hints: Hints) -> Work | None:
    if hints.work is None:
        return None
    unit, done = hints.work
    length_s = profile.window.duration_s if profile.window else None
    return Work(unit=unit, done=done, rate_per_s=done / length_s if length_s else None)


def _contradictions(profile: Profile, hints: Hints) -> Iterator[str]:
    job = profile.job
    claims = (
        ("--kind", hints.kind, None if job.kind is JobKind.UNKNOWN else job.kind),
        ("--precision", hints.precision, job.precision),
        ("--batch", hints.batch, job.batch_per_gpu),
        ("--gpu", _model(hints.gpu), _model(profile.hardware.gpu)),
        ("--work", hints.work and hints.work[0], profile.work and profile.work.unit),
    )
    for flag, hint, own in claims:
        if hint is not None and own is not None and hint != own:
            yield Message("read.hint", flag=flag, hint=str(hint), own=str(own))
    yield from labels_not_used(job, hints)


def _model(name: str | None) -> str | None:
    gpu = find(name)
    return gpu.name if gpu else name
