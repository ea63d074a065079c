"""Lists the files of a SOURCE that is a folder, and says of the others why they are left out."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from planner.profile.join import join_runs
from planner.profile.model import SAMPLES, STEPS, Profile, Series
from pricing.errors import InputError
from telemetry.formats.sniff import Format, UnknownFormatError
from telemetry.formats.stored_runs import is_run_folder
from telemetry.source_file import open_source, profiles_of, profiles_or_format

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planner.profile.model import Profile
    from telemetry.readers.hints import Hints

# A folder of measurements holds hundreds of files, one of training data millions.
MOST_FILES = 20_000
_OWN_FILES = {"gpucost.toml": "the settings of gpucost"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """One thing in a folder that was not read.

    Attributes:
        path: where it lies.
        why: the reason, as the end of a sentence.
        expected: whether that is nothing to worry about: no telemetry, or a part of what was read.
    """

    path: str
    why: str
    expected: bool = True

    def __str__(self) -> str:
        """Return the sentence for people."""
        return f"skipped {self.path}: {self.why}"


@dataclass(slots=True)
class FolderListing:
    """What lies in a folder and below it.

    Attributes:
        files: regular files, sorted by their path.
        skipped: what is none, or is hidden, or cannot be looked into.
    """

    files: list[Path] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    def skip(self, path: Path, why: str, *, expected: bool = True) -> None:
        """Note that something is left out."""
        self.skipped.append(Skipped(path=str(path), why=why, expected=expected))

    def damaged(self, path: Path, error: InputError) -> None:
        """Note that a file is telemetry or a profile, and cannot be read."""
        sentences = (problem.removeprefix(f"{path.name}: ") for problem in error.problems)
        self.skip(path, " ".join(sentences).rstrip("."), expected=False)


def files_below(folder: str) -> FolderListing:
    """Return the files of a folder and its subfolders; links are followed, each file comes once.

    Raises:
        InputError: the folder itself cannot be listed, or nothing is in it.
    """
    listing = FolderListing()
    try:
        empty = not any(Path(folder).iterdir())
    except OSError as error:
        raise InputError(f"{folder}: cannot be listed ({error.strerror}).") from None
    if empty:
        raise InputError(f"{folder}: the directory is empty; put telemetry files in it.")
    _walk(Path(folder), listing, {})
    listing.files.sort()
    return listing


def _walk(folder: Path, listing: FolderListing, visited: dict[tuple[int, int], Path]) -> None:
    """Look at the entries of one folder, then into its subfolders."""
    try:
        state = folder.stat()
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        listing.skip(folder, f"cannot be listed ({_reason(error)})", expected=False)
        return
    first = visited.setdefault((state.st_dev, state.st_ino), folder)
    if first is not folder:
        listing.skip(folder, f"the same folder as {first}")
        return
    for entry in entries:
        path = folder / entry.name
        if len(listing.files) >= MOST_FILES:
            why = f"over {MOST_FILES:,} files are there; give the folder of the measurements"
            listing.skip(path, f"{why} (it and what follows is not read)", expected=False)
            return
        _take(path, listing, visited)


def _take(path: Path, listing: FolderListing, visited: dict[tuple[int, int], Path]) -> None:
    if path.name.startswith("."):
        listing.skip(path, "hidden")
        return
    try:
        state = path.stat()
    except OSError as error:
        listing.skip(path, f"cannot be read ({_reason(error)})", expected=False)
        return
    if stat.S_ISDIR(state.st_mode) and is_run_folder(path):
        listing.files.append(path)
        return
    if stat.S_ISDIR(state.st_mode):
        _walk(path, listing, visited)
        return
    first = visited.setdefault((state.st_dev, state.st_ino), path)
    if not stat.S_ISREG(state.st_mode):
        listing.skip(path, "no regular file")
    elif path.name in _OWN_FILES:
        listing.skip(path, _OWN_FILES[path.name])
    elif first is not path:
        listing.skip(path, f"the same file as {first}")
    else:
        listing.files.append(path)


def _reason(error: OSError) -> str:
    return (error.strerror or "unreadable").lower()


@dataclass(slots=True)
class Belonging:
    """Which files of a folder are parts of the profiles in it, and no jobs of their own."""

    _series: dict[Path, Path] = field(default_factory=dict)
    _sources: dict[Path, tuple[Path, str | None]] = field(default_factory=dict)

    def add(self, path: Path, profile: Profile) -> None:
        """Note which files beside it a profile names: its series, and what it was made from."""
        series = profile.series or Series()
        names = (path.stem + ending for ending in (SAMPLES, STEPS))
        for name in (*names, series.samples, series.steps):
            if name and Path(name).name == name:
                self._series[path.with_name(name)] = path
        for source in profile.provenance.sources:
            if source.path and Path(source.path).name == source.path:
                self._sources.setdefault(path.with_name(source.path), (path, source.sha256))

    def why(self, path: Path) -> Skipped | None:
        """Return why a file is not a job of its own, None where it is one."""
        if path in self._series:
            return Skipped(path=str(path), why=f"a series of {self._series[path].name}")
        if path not in self._sources:
            return None
        profile, sha256 = self._sources[path]
        if sha256 is None or sha256 == _sha256(path):
            return Skipped(path=str(path), why=f"{profile.name} was made from it")
        why = f"it has changed since {profile.name} was made from it; import it alone to read it"
        return Skipped(path=str(path), why=why, expected=False)


def _sha256(path: Path) -> str | None:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


_CAPTURED = re.compile(r"\.capture(-\d+)?\.jsonl$")
_SERIES = {"gpucost-samples": SAMPLES, "gpucost-steps": STEPS}
_SAME_START_S = 1.0
_BOTH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileProfile:
    """A profile and the file that it came from, the first one by name where they are several."""

    path: Path
    profile: Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderReadOptions:
    """How a folder is read.

    Attributes:
        jobs_by: "file": every telemetry file is a job, with what has no GPU of its own (a server's
            page) beside it, where it is the only one in its folder; "folder": the telemetry of one
            folder complements each other.
        progress: called with the number of telemetry files read and of all.
    """

    jobs_by: str
    progress: Callable[[int, int], None] | None = None


def read_folder(
    folder: str, hints: Hints, skipped: list[Skipped], options: FolderReadOptions
) -> tuple[Profile, ...]:
    """Return the profiles of every file in a folder and below it that gpucost knows, by path.

    The series of a profile, the telemetry it was made from and its own capture are not jobs beside
    it. Parts of one run (`Profile.run`) are joined. Jobs of one name in different folders get the
    folder's name, too.

    Args:
        folder: where to look.
        hints: what the files do not say themselves.
        skipped: takes what is left out, with the reason.
        options: which files are of one job.

    Raises:
        InputError: nothing in it can be read.
    """
    listing = files_below(folder)
    ready, telemetry = _recognize(listing, hints)
    jobs = ready + _of_telemetry(telemetry, ready, listing, hints, options)
    if options.jobs_by == "file":
        jobs = _completed(jobs, telemetry, hints)
    skipped += listing.skipped
    if not jobs:
        reasons = [
            f"{skip.path}: {skip.why}{'' if skip.why.endswith('?') else '.'}"
            for skip in listing.skipped
        ]
        raise InputError([f"{folder}: nothing in it is a profile or telemetry.", *reasons])
    return _named_apart(_joined(sorted(jobs, key=lambda job: job.path)), Path(folder))


def _recognize(
    listing: FolderListing, hints: Hints
) -> tuple[list[_FileProfile], dict[Path, Hints]]:
    """Return the finished profiles, and the telemetry that is not part of one.

    Each file of telemetry comes with hints that name its format, so that it is recognized once.
    """
    ready: list[_FileProfile] = []
    remaining: list[tuple[Path, Hints | str]] = []
    belonging = Belonging()
    for path in listing.files:
        try:
            content = profiles_or_format(str(path), hints)
            if isinstance(content, Format):
                remaining.append((path, replace(hints, format=content.name)))
                continue
            for profile in content:
                ready.append(_FileProfile(path=path, profile=profile))
                belonging.add(path, profile)
        except UnknownFormatError as error:
            remaining.append((path, error.kind))
        except InputError as error:
            listing.damaged(path, error)
    telemetry = {}
    captures = {path.with_name(_CAPTURED.sub("", path.name)): path for path, _ in remaining}
    for path, holds in remaining:
        part = belonging.why(path)
        name = None if isinstance(holds, str) else _series_name(path, holds)
        if part is not None:
            listing.skipped.append(part)
        elif name in captures:
            listing.skip(path, f"a series of {captures[name].name}")
        elif isinstance(holds, str):
            listing.skip(path, holds)
        else:
            telemetry[path] = holds
    return ready, telemetry


def _series_name(path: Path, hints: Hints) -> Path | None:
    """Return the name that the samples and the steps of a job share; None for other files."""
    ending = _SERIES.get(str(hints.format))
    return None if ending is None else path.with_name(path.name.removesuffix(ending))


def _groups(telemetry: Mapping[Path, Hints], *, apart: bool) -> list[list[Path]]:
    """Return the files that are of one job.

    Samples and steps of one name are; of several names in one folder each is a job.
    """
    series = {path: name for path in telemetry if (name := _series_name(path, telemetry[path]))}
    groups: dict[Path, list[Path]] = defaultdict(list)
    for path in telemetry:
        several = sum(name.parent == path.parent for name in set(series.values())) > 1
        if path in series and (apart or several):
            groups[series[path]].append(path)
        else:
            groups[path if apart or is_run_folder(path) else path.parent].append(path)
    return list(groups.values())


def _completed(
    jobs: list[_FileProfile], telemetry: dict[Path, Hints], hints: Hints
) -> list[_FileProfile]:
    """Return the jobs with what has no GPU of its own in the one job that lies beside it."""
    by_folder: dict[Path, list[_FileProfile]] = defaultdict(list)
    for job in jobs:
        if job.path in telemetry and not is_run_folder(job.path):
            by_folder[job.path.parent].append(job)
    of_one_job = {path: group for group in _groups(telemetry, apart=True) for path in group}
    completed: dict[Path, _FileProfile] = {}
    parts: set[Path] = set()
    for members in by_folder.values():
        with_gpus = [job for job in members if job.profile.gpus]
        without = [job.path for job in members if not job.profile.gpus]
        if len(with_gpus) != 1 or not without:
            continue
        job = with_gpus[0]
        paths = [*of_one_job[job.path], *without]
        try:
            joined = profiles_of([open_source(str(path), telemetry[path]) for path in paths], hints)
        except InputError:
            continue
        if len(joined) == 1:
            named = replace(joined[0].job, name=job.profile.job.name)
            completed[job.path] = replace(job, profile=replace(joined[0], job=named))
            parts |= set(without)
    return [completed.get(job.path, job) for job in jobs if job.path not in parts]


def _of_telemetry(
    telemetry: dict[Path, Hints],
    ready: list[_FileProfile],
    listing: FolderListing,
    hints: Hints,
    options: FolderReadOptions,
) -> list[_FileProfile]:
    jobs: list[_FileProfile] = []
    total, done = len(telemetry), 0
    for group in _groups(telemetry, apart=options.jobs_by == "file"):
        done += len(group)
        if options.progress is not None:
            options.progress(done, total)
        opened = []
        for path in group:
            try:
                opened.append(open_source(str(path), telemetry[path]))
            except InputError as error:
                listing.damaged(path, error)
        try:
            profiles = profiles_of(opened, hints) if opened else ()
        except InputError as error:
            listing.damaged(group[0], error)
            continue
        for profile in profiles:
            path = group[0].with_name(str(profile.provenance.sources[0].path))
            finished = next((job for job in ready if _is_capture_of(job, path, profile)), None)
            if finished is None:
                jobs.append(_FileProfile(path=path, profile=profile))
            else:
                listing.skip(path, f"the capture of {finished.path.name}, which is finished")
    return jobs


def _is_capture_of(finished: _FileProfile, path: Path, profile: Profile) -> bool:
    """Return whether a capture is of the measurement whose finished profile lies beside it."""
    same_name = finished.path.with_suffix("") == path.with_name(_CAPTURED.sub("", path.name))
    if not same_name or not _CAPTURED.search(path.name):
        return False
    same_job = finished.profile.job.name == profile.job.name
    windows = [job.window for job in (finished.profile, profile)]
    starts = [w.start.timestamp() for w in windows if w is not None and w.start is not None]
    return same_job and len(starts) == _BOTH and abs(starts[0] - starts[1]) <= _SAME_START_S


def _joined(jobs: list[_FileProfile]) -> list[_FileProfile]:
    """Return the parts of one run as one, where its first part lies."""
    place = {id(job.profile): job.path for job in jobs}
    first = jobs[0].path
    return [
        _FileProfile(path=place.get(id(profile), first), profile=profile)
        for profile in join_runs([job.profile for job in jobs])
    ]


def _named_apart(jobs: list[_FileProfile], folder: Path) -> tuple[Profile, ...]:
    """Add the folder's name to jobs of one name in different folders."""
    folders = defaultdict(set)
    for job in jobs:
        folders[job.profile.job.name].add(job.path.parent)
    named = []
    for job in jobs:
        name, below = job.profile.job.name, job.path.parent.relative_to(folder)
        if len(folders[name]) > 1 and below.parts:
            renamed = replace(job.profile.job, name="-".join((name, *below.parts)))
            named.append(replace(job.profile, job=renamed))
        else:
            named.append(job.profile)
    return tuple(named)
