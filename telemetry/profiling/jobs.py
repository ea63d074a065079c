"""Says which readings belong to which job, and has each job's profile built."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from planner.profile.model import Profile
from pricing.errors import InputError
from pricing.message import Message
from telemetry.profiling.build import build
from telemetry.profiling.machines import host_name, model_name
from telemetry.profiling.merge import ANY_JOB, merge
from telemetry.profiling.window import Covered, durations
from telemetry.readers.hints import Hints
from telemetry.readers.payload import stem
from telemetry.recording.recording import GPU, JOB, TIME, GpuIdentity, Recording, boards_of

_UTIL, _UNLIKE = "util.kernel_time", 0.5
_METER = "counter.energy_j"  # of a device, so it does not go on where the job moves
_MOVING = 0.05  # of the time of a job, in which two machines may name it
_LONG_S = 600.0  # for less machines of one job may differ, too: at its start, at a checkpoint


def all_profiles(
    recordings: Sequence[Recording], hints: Hints, say: Callable[[str], None] = lambda _: None
) -> tuple[Profile, ...]:
    """Return the profiles of files that lie together: as `profiles`, but a job for each capture.

    One capture of `gpucost profile` is complemented by other telemetry; several are of several
    jobs, and the other telemetry is of none of them.
    """
    captures = [recording for recording in recordings if recording.observed is not None]
    if len(captures) < 2:  # noqa: PLR2004 - one job is not a choice
        return profiles(recordings, hints, say)
    telemetry = [recording for recording in recordings if recording.observed is None]
    groups = [[capture] for capture in captures] + ([telemetry] if telemetry else [])
    return tuple(profile for group in groups for profile in profiles(group, hints, say))


def profiles(
    recordings: Sequence[Recording], hints: Hints, say: Callable[[str], None] = lambda _: None
) -> tuple[Profile, ...]:
    """Return one profile a job, by name; where fewer than two are named, one of all GPUs.

    Of several jobs, a machine none of whose GPUs any job held has a profile, too. Where no job is
    named, machines of unlike use and GPUs of unlike models are not one job: each has a profile.
    `say` is told.

    Raises:
        InputError: `hints.job` names no job of the data, or `hints.name` would name several.
    """
    merged = merge(recordings)
    labels = merged.samples[JOB]
    names = sorted({str(name) for name in labels.dropna().unique()} - {ANY_JOB})
    if hints.job is not None and hints.job not in names:
        job_names = ", ".join(names) or "none: the data carries no pod or job label"
        raise InputError(f"--job {hints.job}: no such job. Jobs in the data: {job_names}.")
    if hints.job is None and len(names) < 2 and not (names and _has_free_machine(merged)):  # noqa: PLR2004 - one job is not a choice
        is_unnamed = not names and hints.name is None
        if is_unnamed and (machines := _unlike_machines(merged)):
            say(Message("join.unlike-machines", n=len(machines)))
            return tuple(
                build(_of_gpus(merged, gpus), host, hints) for host, gpus in machines.items()
            )
        if is_unnamed and hints.gpu is None and (models := _unlike_models(merged)):
            say(Message("join.unlike-models", models=list(models)))
            source = stem(str(merged.sources[0].path))
            return tuple(
                build(replace(_of_gpus(merged, gpus), host=merged.host), f"{source}-{gpu}", hints)
                for gpu, gpus in models.items()
            )
        recording, name = _as_single_job(merged, names)
        return (build(_at_last_place(recording, *names), name, hints),)
    picked = names if hints.job is None else [hints.job]
    if hints.name is not None and len(picked) > 1:
        raise InputError(Message("join.one-name", name=hints.name, n=len(picked), jobs=picked))
    users = labels[labels != ANY_JOB].dropna().groupby(merged.samples[GPU]).agg(["min", "max"])
    jobs = ((_at_last_place(_of_job(merged, name, users), name), name) for name in picked)
    own = tuple(build(recording, name, hints) for recording, name in jobs)
    return own if hints.job is not None else (*own, *_of_no_job(merged, hints, say))


def _of_no_job(merged: Recording, hints: Hints, say: Callable[[str], None]) -> Iterator[Profile]:
    """Yield a profile of each machine whose GPUs no job held, and of each other free GPU."""
    job_gpus, read = _labelled(merged.samples), set(merged.samples[GPU].unique())
    for host, gpus in _by_machine(gpu for gpu in merged.gpus if gpu.key in read).items():
        free = [gpu for gpu in gpus if gpu.key not in job_gpus]
        in_use = boards_of([gpu for gpu in gpus if gpu.key in job_gpus])  # in part, too
        boards: dict[str, str | int] = {
            "host": host,
            "free": len(set(boards_of(free)) - in_use),
            "gpus": len(boards_of(gpus)),
        }
        if host and len(free) == len(gpus):
            say(Message("join.machine-of-no-job", **boards))
            yield build(_of_gpus(merged, free), host, hints)
        elif free:
            say(Message("join.free-gpus" if host else "join.free-gpus-nowhere", **boards))
            for gpu in free if host else ():
                if gpu.partition is None:
                    number = gpu.key if gpu.index is None else gpu.index
                    yield build(_of_gpus(merged, [gpu]), f"{host}-gpu{number}-unassigned", hints)


def _has_free_machine(merged: Recording) -> bool:
    """Return whether no GPU of one of several machines has a job's label."""
    machines, labelled = _by_machine(merged.gpus), _labelled(merged.samples)
    return "" not in machines and any(
        labelled.isdisjoint(gpu.key for gpu in gpus) for gpus in machines.values()
    )


def _labelled(samples: pd.DataFrame) -> set[str]:
    """Return the keys of the GPUs that a job's label was read of."""
    return set(samples.loc[samples[JOB].notna(), GPU].unique())


def _by_machine(gpus: Iterable[GpuIdentity]) -> dict[str, list[GpuIdentity]]:
    """Return GPUs by the name of their machine, sorted; "" where it has none."""
    machines = defaultdict[str, list[GpuIdentity]](list)
    for gpu in gpus:
        machines[host_name(gpu) or ""].append(gpu)
    return dict(sorted(machines.items()))


def _of_gpus(merged: Recording, gpus: Sequence[GpuIdentity]) -> Recording:
    """Return the readings of some GPUs alone."""
    samples = merged.samples
    rows = samples[samples[GPU].isin([gpu.key for gpu in gpus])].reset_index(drop=True)
    return replace(merged, samples=rows, gpus=tuple(gpus), host=None, served=())


def _unlike_machines(merged: Recording) -> dict[str, list[GpuIdentity]]:
    """Return the GPUs of each machine where one is used less than half as much as another.

    The GPUs of one job wait for each other in kernels, so that the slow and those that wait read
    busy. Empty where they are alike, where the program itself was watched, and where it is unknown.
    """
    machines = _by_machine(merged.gpus)
    if len(machines) < 2 or "" in machines or merged.observed or _UTIL not in merged.samples:  # noqa: PLR2004
        return {}
    hosts = {gpu.key: host for host, gpus in machines.items() for gpu in gpus}
    samples = merged.samples
    is_long = np.ptp(samples[TIME].to_numpy(dtype=float)) >= _LONG_S
    use = samples[_UTIL].astype(float).groupby(samples[GPU].map(hosts)).mean()
    unlike = len(use) == len(machines) and use.min() < _UNLIKE * use.max()
    return machines if is_long and unlike else {}


def _unlike_models(merged: Recording) -> dict[str, list[GpuIdentity]]:
    """Return the GPUs of each model; empty where it is one, or a GPU's is not known."""
    models = defaultdict[str, list[GpuIdentity]](list)
    for gpu in merged.gpus:
        models[model_name(gpu.model or "")].append(gpu)
    is_known = len(models) > 1 and "" not in models and merged.observed is None
    return dict(sorted(models.items())) if is_known else {}


def _as_single_job(merged: Recording, names: list[str]) -> tuple[Recording, str | None]:
    """Return all readings as one job, named by its label where every GPU carries it."""
    if not names:
        return merged, None
    labelled = set(merged.samples.loc[merged.samples[JOB] == names[0], GPU].unique())
    bare = [gpu for gpu in merged.gpus if gpu.key not in labelled]
    if not bare:
        return merged, names[0]
    own = _listed([gpu for gpu in merged.gpus if gpu not in bare])
    note = Message("join.labelled-in-part", job=names[0], gpus=own)
    return replace(merged, notes=(*merged.notes, note)), None


def _of_job(merged: Recording, name: str, users: pd.DataFrame) -> Recording:
    """Return the readings labelled with a job, and bare ones of its GPUs meanwhile.

    A GPU that no other job had stays the job's after its end, too: it is on, and nobody gave it
    back. What it was before is nobody's.

    Args:
        merged: all readings.
        name: of the job.
        users: of each GPU that a job named, the first and the last job by name (`min`, `max`).
    """
    samples = merged.samples
    labels = samples[JOB]
    own_gpus = users.index[(users["min"] == name) & (users["max"] == name)]
    own = samples[samples[JOB] == name]
    spans = own.groupby(GPU)[TIME].agg(["min", "max"])
    first = samples[GPU].map(spans["min"]).to_numpy(dtype=float)
    last = samples[GPU].map(spans["max"]).to_numpy(dtype=float)
    times = samples[TIME].to_numpy(dtype=float)
    with np.errstate(invalid="ignore"):
        meanwhile = (labels == ANY_JOB).to_numpy() & (times >= first) & (times <= last)
        left_on = (labels.isna() & samples[GPU].isin(own_gpus)).to_numpy() & (times > last)
    rows = samples[(labels == name).to_numpy() | meanwhile | left_on].reset_index(drop=True)
    keys = set(rows[GPU].unique())
    free = [
        g for g in merged.gpus if g.key not in users.index and (g.partition or not host_name(g))
    ]
    notes = merged.notes
    if free:
        notes = (*notes, f"without a job label, so in no profile: {_listed(free)}.")
    return replace(
        merged, samples=rows, gpus=tuple(gpu for gpu in merged.gpus if gpu.key in keys), notes=notes
    )


def _at_last_place(recording: Recording, job: str = "") -> Recording:
    """Return a job that moved as one of the GPUs where it ran last: those before are paid no more.

    It moved where no two of its GPUs, or no two of its machines with as many of one model, name it
    at one time, but for the moments of the move.
    """
    for places in ({gpu.key: [gpu] for gpu in recording.gpus}, _by_machine(recording.gpus)):
        last = _last_of_a_move(recording, job, places) if job and "" not in places else None
        if last is not None:
            return _held_at(recording, job, places, last)
    return recording


def _last_of_a_move(
    recording: Recording, job: str, places: Mapping[str, Sequence[GpuIdentity]]
) -> str | None:
    """Return where a job ran last; None where it was in one place, or in two at once."""
    kinds = {tuple(gpu.model and model_name(gpu.model) for gpu in p) for p in places.values()}
    if len(places) < 2 or len(kinds) > 1 or not recording.absolute:  # noqa: PLR2004
        return None
    samples, keys = recording.samples, {g.key: name for name, own in places.items() for g in own}
    own = samples[(samples[JOB] == job).to_numpy()]
    read = {
        name: np.unique(rows[TIME].to_numpy(float))
        for name, rows in own.groupby(own[GPU].astype(object).map(keys))
    }
    if len(read) < len(places):
        return None
    begins = np.concatenate(list(read.values()))
    ends = begins + np.concatenate([durations(t_s) for t_s in read.values()])
    at_once = 1 - Covered(begins, ends).total / (ends - begins).sum()
    return None if at_once > _MOVING else max(read, key=lambda name: float(read[name][-1]))


def _held_at(
    recording: Recording, job: str, places: Mapping[str, Sequence[GpuIdentity]], last: str
) -> Recording:
    """Return a job's readings, wherever they were taken, as those of the GPUs of one place."""
    stays, samples = places[last], recording.samples.drop(columns=_METER, errors="ignore")
    keys = {g.key: at.key for own in places.values() for g, at in zip(own, stays, strict=True)}
    devices = samples[GPU].astype(object)
    is_own = (samples[JOB] == job) | devices.isin([gpu.key for gpu in stays])
    rows = samples.assign(**{GPU: devices.map(keys)})[is_own.to_numpy()]
    return replace(
        recording,
        samples=rows.sort_values([GPU, TIME], kind="stable", ignore_index=True),
        gpus=tuple(stays),
        notes=(*recording.notes, Message("read.moved", n=len(places))),
    )


def _listed(gpus: Sequence[GpuIdentity]) -> str:
    names = [str(gpu.index) if gpu.index is not None else gpu.key for gpu in gpus]
    return f"GPU {', '.join(names)}"
