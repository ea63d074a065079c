"""The door of telemetry: from the SOURCE arguments of a command line to profiles."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import itemgetter, le
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from planner.profile.join import by_shared_gpus, join_profiles
from pricing.errors import InputError
from pricing.message import Message
from telemetry.folder import (
    FileProfile,
    FolderListing,
    FolderReadOptions,
    NothingToReadError,
    Skipped,
    is_capture_of,
    named_apart,
    open_folder,
    ranks_of,
)
from telemetry.formats.sniff import UnknownFormatError
from telemetry.formats.stored_runs import is_run_folder
from telemetry.lake.place import place_of
from telemetry.profiling.fill import fill_machine
from telemetry.readers.ledger import unmatched_map
from telemetry.readers.payload import hash_of
from telemetry.source_file import TelemetryFile, finished_profiles, open_source, profiles_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.profile.model import Profile
    from telemetry.profiling.same_gpus import FileReadings
    from telemetry.readers.hints import Hints


BY_FILE, BY_FOLDER = FolderReadOptions(jobs_by="file"), FolderReadOptions(jobs_by="folder")
_SHOWN = 4


def read_telemetry(
    paths: Sequence[str],
    hints: Hints,
    stdin: BinaryIO | None = None,
    skipped: list[Skipped] | None = None,
    options: FolderReadOptions = BY_FOLDER,
) -> tuple[Profile, ...]:
    """Return the profiles of the jobs in files and folders; no GPU is in two of them unsaid.

    Files of the same GPUs are one job's (`telemetry.profiling.same_gpus`); where labels in the data
    name several jobs, there is a profile a job, by name; `hints.job` selects one. Each capture of
    `gpucost profile` is a job, a finished profile stays what it is; parts of one run are one
    profile. Jobs on the same GPUs share a machine (`planner.profile.join`). The order of the paths
    does not matter.

    Args:
        paths: a profile.json or an array of them, a telemetry file (also packed), `-` for standard
            input, a Parquet file or a folder of nothing but Parquet (one table), or another folder:
            every file in it and below it that is one of these.
        hints: what they do not say themselves.
        stdin: what `-` reads; the process's standard input when None.
        skipped: takes what was left out of folders.
        options: which files are of one job.

    Raises:
        InputError: a file cannot be read, with every problem of every file; two contradict each
            other; no such job; one name for several.
    """
    opened = _open_all(paths, hints, stdin, options)
    opened.without_sources(options)
    jobs = opened.ready + _of_telemetry(opened, hints, options)
    for path, listing in opened.folders.items():
        if not any(str(job.source) == path for job in jobs) and path not in opened.used:
            damaged = any(not skip.expected for skip in listing.skipped)
            kind = InputError if damaged else NothingToReadError
            why = [
                f"{s.path}: {s.why}{'' if s.why.endswith('?') else '.'}" for s in listing.skipped
            ]
            raise kind([f"{path}: nothing in it is a profile or telemetry.", *why])
        if skipped is not None:
            skipped += listing.skipped
    placed = sorted(jobs, key=lambda job: str(job.source and job.path))
    profiles = tuple(fill_machine(profile, hints) for profile in _joined(placed))
    _tell_shared(profiles, options)
    if hints.name is not None and len(profiles) > 1:
        names = [profile.job.name for profile in profiles]
        raise InputError(Message("join.one-name", name=hints.name, n=len(names), jobs=names))
    return profiles


def _first(names: Sequence[str]) -> tuple[str, ...]:
    """Return the first names, and how many more there are."""
    more = len(names) - _SHOWN
    return (*names[:_SHOWN], *([Message("join.more", n=more)] if more > 0 else []))


def _tell_shared(profiles: Sequence[Profile], options: FolderReadOptions) -> None:
    groups = [group for group in by_shared_gpus(profiles) if len(group) > 1]
    for group in groups[:_SHOWN]:
        names = _first([profiles[index].job.name for index in group])
        options.on_join(Message("join.shared", jobs=names))
    if len(groups) > _SHOWN:
        options.on_join(Message("join.more-shared", n=len(groups) - _SHOWN))


@dataclass(slots=True)
class _Opened:
    """What the paths hold, recognized."""

    ready: list[FileProfile] = field(default_factory=list)
    files: list[TelemetryFile] = field(default_factory=list)
    folders: dict[str, FolderListing] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)  # folders of which a file is in a profile

    def without_sources(self, options: FolderReadOptions) -> None:
        """Leave out telemetry that a profile beside it was made from."""
        made_from = {
            (source.path, source.sha256): job.path
            for job in self.ready
            for source in job.profile.provenance.sources
            if source.sha256
        }
        names = {name for name, _ in made_from}
        for file in [file for file in self.files if file.path.name in names]:
            profile = made_from.get((file.path.name, hash_of(str(file.path))))
            if profile is not None:
                self.files.remove(file)
                options.on_join(
                    Message("join.made-from", file=str(file.path), profile=str(profile))
                )

    def damaged(self, file: TelemetryFile, error: InputError, problems: list[str]) -> None:
        """Note that a file cannot be read: in a folder it is left out, else it is a problem."""
        if file.root is None:
            problems += error.problems
        else:
            self.folders[str(file.root)].damaged(file.path, error)


def _open_all(
    paths: Sequence[str], hints: Hints, stdin: BinaryIO | None, options: FolderReadOptions
) -> _Opened:
    opened, problems, refused = _Opened(), list[str](), dict[str, InputError]()
    for path in dict.fromkeys(paths):
        try:
            _open(path, hints, stdin, options, opened)
        except InputError as error:
            if len(paths) == 1:
                raise
            refused[path] = error
    for path, refusal in refused.items():
        if isinstance(refusal, UnknownFormatError) and (opened.ready or opened.files):
            options.on_join(Message("join.left-out", file=path, why=refusal.kind))
        else:
            problems += refusal.problems
    if options.jobs_by == "folder":
        problems += _mixed(opened)
    if not (problems or opened.ready or opened.files or opened.folders):
        problems.append("no SOURCE given. Give telemetry files: gpucost import smi.csv.")
    if problems:
        raise InputError(sorted(problems))
    return opened


def _open(
    path: str, hints: Hints, stdin: BinaryIO | None, options: FolderReadOptions, opened: _Opened
) -> None:
    if (of_table := _of_table(path, hints)) is not None:
        opened.ready += [FileProfile(path=Path(path), profile=profile) for profile in of_table]
    elif _is_folder(path):
        ready, files, listing = open_folder(path, hints, options)
        opened.folders[str(Path(path))] = listing  # as its files name it: `runs/` is `runs`
        opened.ready += ready
        opened.files += files
    else:
        source = open_source(path, hints, stdin)
        if source.format is None:
            profiles = finished_profiles(source, hints)
            opened.ready += [FileProfile(path=Path(path), profile=profile) for profile in profiles]
        else:
            bundle = "" if options.jobs_by == "folder" else ranks_of(Path(path), source.format.name)
            opened.files.append(
                TelemetryFile(path=Path(path), hints=hints, source=source, bundle=bundle)
            )


def _of_table(path: str, hints: Hints) -> tuple[Profile, ...] | None:
    """Return the profiles of a Parquet file or a folder of nothing else; None for other sources."""
    table = place_of(path) if path != "-" and hints.format is None else None
    if table is None:
        return None
    from telemetry.lake.profiles import profiles_of_place  # noqa: PLC0415 - an extra

    return profiles_of_place(table, {}, hints)


def _is_folder(path: str) -> bool:
    try:
        return path != "-" and Path(path).is_dir() and not is_run_folder(path)
    except (OSError, ValueError):
        return False


def _mixed(opened: _Opened) -> list[str]:
    ready = sorted({job.path.name for job in opened.ready if job.source is None})
    if not ready or all(file.root for file in opened.files):
        return []
    sentence = f"{', '.join(ready)}: a finished profile is not merged with telemetry. Import the "
    return [f"{sentence}telemetry alone, or give both to `gpucost plan`."]


def _joined(jobs: Sequence[FileProfile]) -> tuple[Profile, ...]:
    """Return the parts of one run as one, where its first part lies."""
    own = {id(job.profile): job for job in jobs}
    return named_apart(
        [
            replace(own.get(id(profile), jobs[0]), profile=profile)
            for profile in join_profiles([job.profile for job in jobs])
        ]
    )


def _of_telemetry(opened: _Opened, hints: Hints, options: FolderReadOptions) -> list[FileProfile]:
    """Return the profiles of telemetry; what of a folder is damaged is noted in its listing.

    Raises:
        InputError: a file that was given by name cannot be read, or two contradict each other.
    """
    problems: list[str] = []
    jobs: list[FileProfile] = []
    columns: list[frozenset[str] | None] = []
    for group in _groups(opened, options, problems):
        try:
            profiles = profiles_of(group, hints, columns, options.on_join)
        except InputError as error:
            opened.damaged(group[0], error, problems)
            continue
        opened.used |= {str(file.root) for file in group}
        if len(group) > 1:
            names = _first([str(file.path) for file in group])
            code = "join.files-of-one" if len(profiles) == 1 else "join.files"
            options.on_join(Message(code, n=len(profiles), files=names))
        jobs += _unfinished(group, profiles, opened)
    problems += unmatched_map(hints, columns) if hints.map else []
    if problems:
        raise InputError(sorted(problems))
    return jobs


def _groups(
    opened: _Opened, options: FolderReadOptions, problems: list[str]
) -> list[list[TelemetryFile]]:
    """Return the files that are read together, those of the same GPUs."""
    files = [*_by_server(opened.files, options)]
    if len(files) < 2:  # noqa: PLR2004 - nothing to join; what is large is read once
        return [files] if files else []
    from telemetry.profiling.same_gpus import offset, rotation_of, same_gpus, zones_of  # noqa: PLC0415 - pandas

    readings: dict[int, FileReadings] = {}
    for index, file in enumerate(files):
        with suppress(InputError):
            readings[index] = file.readings()
        options.progress(index + 1, len(files))
    for index in sorted({*range(len(files))} - set(readings)):
        file, log = files[index], rotation_of(files[index].path)
        parts = [files[member] for member in readings if rotation_of(files[member].path) == log]
        try:
            borrowed = bool(parts) and file.with_header_of(parts)
            readings[index] = file.readings()
        except InputError as error:
            opened.damaged(file, error, problems)
            continue
        if borrowed:
            names = {"file": str(file.path), "other": str(parts[0].path)}
            options.on_join(Message("join.header", **names))
    places = sorted(readings)
    for local, dated, ahead_s in zones_of([readings[index] for index in places]):
        file, zone = files[places[local]], offset(ahead_s)
        file.in_zone(zone, ahead_s)
        readings[places[local]] = file.readings()
        reference = str(files[places[dated]].path)
        options.on_join(Message("join.zone", file=str(file.path), other=reference, zone=zone))
    groups = same_gpus([readings[index] for index in places], options.on_join)
    return [[files[places[index]] for index in group] for group in groups]


def _by_server(
    files: Sequence[TelemetryFile], options: FolderReadOptions
) -> Iterator[TelemetryFile]:
    """Yield the files by path, but scrapes of one server as one, in the order of its counters."""
    scrapes: dict[object, list[tuple[list[float], TelemetryFile]]] = defaultdict(list)
    for file in sorted(files, key=lambda file: str(file.path)):
        server, counts = file.server_counts() if len(files) > 1 else (None, [])
        scrapes[server or id(file)].append((counts, file))
    for group in scrapes.values():
        group.sort(key=itemgetter(0))
        members = [file for _, file in group]
        pairs = [*pairwise(counts for counts, _ in group)]
        if pairs and all(a < b and all(map(le, a, b)) for a, b in pairs):
            members[0].append(members[1:])
            names = _first([str(file.path) for file in members])
            options.on_join(Message("join.scrapes", files=names))
            members = members[:1]
        yield from members


def _unfinished(
    group: Sequence[TelemetryFile], profiles: Sequence[Profile], opened: _Opened
) -> Iterator[FileProfile]:
    """Yield the profiles of a group, but for a capture whose finished profile lies beside it."""
    for profile in profiles:
        sources = {source.path for source in profile.provenance.sources}
        file = next((f for f in group if f.open().payload.name in sources), group[0])
        finished = next(
            (job for job in opened.ready if is_capture_of(job, file.path, profile)), None
        )
        if finished is None or file.root is None:
            yield FileProfile(path=file.path, profile=profile, source=file.root)
        else:
            why = f"the capture of {finished.path.name}, which is finished"
            opened.folders[str(file.root)].skip(file.path, why)
