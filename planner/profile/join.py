"""Joins the profiles of one run, and says which profiles are of the same GPUs.

Parts of a run were measured on one of its machines each, or around one rank.
"""

from __future__ import annotations

import math
from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec.structs import replace

from planner.profile.model import Host, Profile, Provenance, Run, Statistics, Work
from pricing.errors import InputError
from pricing.listing import counted
from pricing.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from planner.profile.model import GpuReadings, Machine, Rank

_DIGITS = 6
_SAME_MEAN = 0.1  # of the larger one: profiles of one job, GPU and time say the same


def device_of(key: str) -> str:
    """Return the physical device that a uuid stands for; a slice has the one of its GPU."""
    return key.partition("/")[0]


def devices_of(profile: Profile) -> frozenset[str]:
    """Return the physical GPUs of a job that have a uuid."""
    return frozenset(device_of(gpu.uuid) for gpu in profile.gpus if gpu.uuid)


class Groups:
    """Disjoint sets of places, each named by its first.

    Args:
        size: the number of places, each a set of its own at first.
    """

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))

    def of(self, index: int) -> int:
        """Return the set that a place is in."""
        parent = self._parent
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    def join(self, index: int, latter: int) -> None:
        """Put the sets of two places together."""
        low, high = sorted((self.of(index), self.of(latter)))
        self._parent[high] = low

    def all(self) -> list[list[int]]:
        """Return the places of each set, in their order."""
        members: dict[int, list[int]] = defaultdict(list)
        for index in range(len(self._parent)):
            members[self.of(index)].append(index)
        return list(members.values())


def by_shared_gpus(profiles: Sequence[Profile]) -> list[list[int]]:
    """Return the places of the profiles that share GPUs, directly or through others, by group."""
    groups, owner = Groups(len(profiles)), dict[str, int]()
    for index, profile in enumerate(profiles):
        for device in devices_of(profile):
            groups.join(owner.setdefault(device, index), index)
    return groups.all()


def join_profiles(profiles: Sequence[Profile]) -> tuple[Profile, ...]:
    """Return the profiles, a copy of one left out, with the parts of one run as one.

    Raises:
        InputError: two are of one job, on one GPU, at one time, and say different things.
    """
    once: list[Profile] = []
    problems: list[str] = []
    by_measurement: dict[object, Profile] = {}
    for profile in profiles:
        window, devices = profile.window, devices_of(profile)
        if not devices or window is None or window.start is None or profile.run is not None:
            once.append(profile)
            continue
        key = (profile.job.name, devices, window.start, window.duration_s)
        before = by_measurement.setdefault(key, profile)
        if before is profile:
            once.append(profile)
        elif difference := _difference(before, profile):
            problems.append(
                f"{_path(before)} and {_path(profile)}: both are of job {profile.job.name} on the "
                f"same GPU at the same time, and contradict each other: {difference}. Leave out "
                "the wrong one."
            )
    if problems:
        raise InputError(problems)
    return join_runs(once)


def _path(profile: Profile) -> str:
    names = [str(source.path) for source in profile.provenance.sources]
    return names[0] if names else profile.job.name


def _difference(before: Profile, profile: Profile) -> str | None:
    for gpu, after in zip(before.gpus, profile.gpus, strict=False):
        for slot in gpu.metrics.keys() & after.metrics.keys():
            mean, other_mean = gpu.metrics[slot].mean, after.metrics[slot].mean
            if mean is None or other_mean is None:
                continue
            if abs(mean - other_mean) > _SAME_MEAN * max(abs(mean), abs(other_mean)):
                return f"{slot} is {mean:g} and {other_mean:g} on average"
    return None


_SHARE = "cpu_util"
# The machine's own counters, or the most of one: what each part saw of the same is not added up.
_SEEN_BY_ALL = ("cpu_busiest_core", "net_rx_mib_s", "net_tx_mib_s")


def cores_of(parts: Sequence[Profile]) -> float | None:
    """Return the cores that the parts may use together: those of each set of cores once."""
    cores_of_sets = [cores for cores in _by_cores(parts).values() if cores is not None]
    return sum(cores_of_sets) if cores_of_sets else None


def host_of(parts: Sequence[Profile]) -> Host | None:
    """Return what the parts used together; quantiles and maxima are at most so much.

    Of one part it is what that part says.
    """
    read = [part for part in parts if part.host is not None]
    if len(read) < len(parts) or len(parts) == 1:
        return read[0].host if read else None
    statistics: dict[str, Statistics | None] = {}
    for name in Host.__struct_fields__:
        values = [getattr(part.host, name) for part in parts]
        present = [value for value in values if value is not None]
        if len(present) < len(parts):
            continue
        once = [1.0] * len(present)
        statistics[name] = (
            _shared(present, parts)
            if name == _SHARE
            else _combined(present, once, greatest=name in _SEEN_BY_ALL)
        )
    return Host(**statistics)


def _by_cores(parts: Sequence[Profile]) -> dict[str, float | None]:
    """Return each set of cores, with how many of it may be used; sets do not overlap in part."""
    cores_by_set: dict[str, list[float]] = defaultdict(list)
    for part in parts:
        name = (part.run.cpus if part.run else None) or ""
        cores_by_set[name] += [part.hardware.cpu_cores] if part.hardware.cpu_cores else []
    return {name: max(cores, default=None) for name, cores in cores_by_set.items()}


def _shared(values: Sequence[Statistics], parts: Sequence[Profile]) -> Statistics | None:
    """Return the share of all their cores in use; None where a part does not know its cores."""
    all_cores = cores_of(parts)
    own = [part.hardware.cpu_cores for part in parts]
    cores_known = [cores for cores in own if cores]
    if not all_cores or len(cores_known) < len(own):
        return None
    return _combined(values, [cores / all_cores for cores in cores_known], limit=1.0)


def _combined(
    values: Sequence[Statistics],
    weights: Sequence[float],
    *,
    limit: float = float("inf"),
    greatest: bool = False,
) -> Statistics:
    combined = {}
    for name in Statistics.__struct_fields__:
        values_of_field = [getattr(value, name) for value in values]
        if None in values_of_field:
            continue
        scaled = [value * weight for value, weight in zip(values_of_field, weights, strict=True)]
        combined[name] = round(min(limit, max(scaled) if greatest else sum(scaled)), _DIGITS)
    return Statistics(**combined)


_STEPS = "step"
OTHERS_WORK = "others' work slows what was measured here."
"""How a note ends that says so: beside one part of a run, other parts are the others."""
_SAME = "{count} profiles of run {run} are joined: {gpus} GPUs on {nodes}."


def join_runs(profiles: Iterable[Profile]) -> tuple[Profile, ...]:
    """Return the profiles with those of one run as one, where its first part stood.

    Parts of one run carry the same `run.id`, are of several processes (`run.world`), and were
    measured at the same time; a profile without one, or of another hour, stays as it is.
    """
    runs: list[list[Profile]] = []
    by_id: dict[str, list[list[Profile]]] = defaultdict(list)
    for profile in profiles:
        run = profile.run
        is_part = run is not None and run.id is not None and (run.world or 1) > 1
        parts_of_run = by_id[str(run.id)] if run is not None and is_part else []
        joined = next((run for run in parts_of_run if _is_of(profile, run)), None)
        if joined is not None:
            joined.append(profile)
            continue
        parts_of_run.append([profile])
        runs.append(parts_of_run[-1])
    return tuple(_of_world(parts[0] if len(parts) == 1 else join(parts)) for parts in runs)


def _is_of(profile: Profile, parts: Sequence[Profile]) -> bool:
    """Return whether a profile is a part of a run; of unknown machines no two read one rank."""
    numbers = {rank.rank for part in parts for rank in part.ranks}
    placed = profile.run is not None and profile.run.node is not None
    free = placed or numbers.isdisjoint(rank.rank for rank in profile.ranks)
    return overlap(parts[0], profile) and free


def _of_world(profile: Profile) -> Profile:
    """Return a job of which some ranks were read, each on its GPU, with the GPUs of all ranks."""
    world = (profile.run.world if profile.run else None) or 0
    read, hardware = len(profile.ranks), profile.hardware
    if not 0 < read == len(profile.gpus) == profile.gpu_count < world:
        return profile
    machines = hardware.nodes if profile.run is not None and profile.run.node else None
    nodes = math.ceil(machines * world / read) if machines else None
    notes = (*profile.provenance.notes, Message("read.world", n=read, world=world))
    return replace(
        profile,
        hardware=replace(hardware, gpu_count=world, nodes=nodes),
        provenance=replace(profile.provenance, notes=notes),
    )


def join(parts: Sequence[Profile]) -> Profile:
    """Return the parts of one run as one profile, whatever their order.

    GPUs add up (each device once), machines are counted, work done in samples or tokens adds up.
    All ranks are kept. Steps, phases, window and the job itself are those of the leading part: the
    one that saw the most steps. Host readings are per machine: what the parts on one machine used
    is added up, then means over the machines are taken, and quantiles and maxima of the busiest, as
    every machine of the run has to hold them.

    Args:
        parts: at least one.
    """
    ordered = sorted(parts, key=_leading)
    lead = ordered[0]
    by_machine: dict[str, list[Profile]] = defaultdict(list)
    for i, part in enumerate(ordered):
        by_machine[_machine(part, i)].append(part)
    gpus, count = _gpus(ordered)
    own = by_machine[_machine(lead, 0)]
    nodes = sum(same[0].hardware.nodes or 1 for same in by_machine.values())
    machines = counted(nodes, "machine")
    run = lead.run.id if lead.run is not None else "?"
    note = _SAME.format(count=len(parts), run=run, gpus=count, nodes=machines)
    return replace(
        lead,
        hardware=replace(
            lead.hardware, gpu_count=count or None, nodes=nodes, cpu_cores=cores_of(own)
        ),
        run=Run(id=run, world=next((p.run.world for p in ordered if p.run and p.run.world), None)),
        work=_work(ordered),
        ranks=_ranks(ordered),
        health=tuple(dict.fromkeys(fault for part in ordered for fault in part.health)),
        gpus=gpus,
        host=_host([host for same in by_machine.values() if (host := host_of(same)) is not None]),
        machine=_without_own(lead.machine, gpus),
        series=None,
        provenance=Provenance(
            sources=tuple(source for part in ordered for source in part.provenance.sources),
            notes=tuple(dict.fromkeys([note, *_notes(by_machine.values())])),
        ),
    )


def _notes(by_machine: Iterable[Sequence[Profile]]) -> Iterator[str]:
    """Yield the notes of all parts; of parts side by side none is of the work of others."""
    for same in by_machine:
        for note in (note for part in same for note in part.provenance.notes):
            if len(same) == 1 or not note.endswith(OTHERS_WORK):
                yield note


def _without_own(machine: Machine | None, gpus: Sequence[GpuReadings]) -> Machine | None:
    """Return the leading part's machine; GPUs of other parts of the run are not others' there."""
    if machine is None:
        return None
    own = {gpu.uuid for gpu in gpus} - {None}
    return replace(
        machine,
        others=tuple(other_gpu for other_gpu in machine.others if other_gpu.uuid not in own),
    )


def _leading(part: Profile) -> tuple[int, str, str]:
    steps = part.step.count if part.step and part.step.count else 0
    uuids = "".join(gpu.uuid or "" for gpu in part.gpus)
    return -steps, (part.run.node if part.run and part.run.node else ""), uuids


def _machine(part: Profile, index: int) -> str:
    """Return which machine a part was measured on; a part that does not say has one of its own."""
    return (part.run.node if part.run else None) or f"unknown {index}"


def _gpus(parts: Sequence[Profile]) -> tuple[tuple[GpuReadings, ...], int]:
    """Return each device once, and how many there are, those included that a part only counts."""
    gpus: dict[str, GpuReadings] = {}
    unread = 0
    for i, part in enumerate(parts):
        for gpu in part.gpus:
            key = gpu.uuid or f"{_machine(part, i)} {gpu.index}"
            gpus.setdefault(key, gpu)
        unread += max(0, (part.hardware.gpu_count or 0) - len(part.gpus))
    return tuple(gpus.values()), len(gpus) + unread


def _work(parts: Sequence[Profile]) -> Work | None:
    """Return what all did together: a step is one step of all parts, a sample is of one part."""
    lead = next((part.work for part in parts if part.work is not None), None)
    if lead is None or lead.unit == _STEPS or not lead.is_counted:
        return lead
    same = [part.work for part in parts if part.work is not None and part.work.unit == lead.unit]
    done = [work.done for work in same if work.done is not None]
    rates = [work.rate_per_s for work in same if work.rate_per_s is not None]
    return replace(
        lead,
        done=sum(done) if len(done) == len(same) else None,
        rate_per_s=sum(rates) if len(rates) == len(same) else None,
    )


def _ranks(parts: Sequence[Profile]) -> tuple[Rank, ...]:
    """Return the ranks of all parts, by number.

    A rank that two parts saw is that of the leading one.
    """
    ranks: dict[int | None, Rank] = {}
    for part in parts:
        for rank in part.ranks:
            ranks.setdefault(rank.rank, rank)
    return tuple(sorted(ranks.values(), key=lambda rank: rank.rank or 0))


def _host(hosts: Sequence[Host]) -> Host | None:
    if not hosts:
        return None
    statistics = {}
    for name in Host.__struct_fields__:
        present = [value for host in hosts if (value := getattr(host, name)) is not None]
        statistics[name] = _per_machine(present) if present else None
    return Host(**statistics)


def _per_machine(statistics: Sequence[Statistics]) -> Statistics:
    combined = {}
    for name in Statistics.__struct_fields__:
        values = [
            v
            for machine_statistics in statistics
            if (v := getattr(machine_statistics, name)) is not None
        ]
        if values:
            combined[name] = _over_machines(name, values)
    return Statistics(**combined)


def _over_machines(name: str, values: Sequence[float]) -> float:
    if name == "mean":
        return round(sum(values) / len(values), _DIGITS)
    return min(values) if name == "min" else max(values)


def overlap(part: Profile, counterpart: Profile) -> bool:
    """Return whether two parts were measured at the same time, as far as that is known."""
    spans = [_span(part), _span(counterpart)]
    if None in spans:
        return True
    (begin, end), (other_begin, other_end) = (span for span in spans if span is not None)
    return begin <= other_end and other_begin <= end


def _span(part: Profile) -> tuple[datetime, datetime] | None:
    if part.window is None or part.window.start is None:
        return None
    length = timedelta(seconds=part.window.duration_s or 0.0)
    return part.window.start, part.window.start + length
