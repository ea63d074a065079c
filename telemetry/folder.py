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
from telemetry.formats.form import Format
from telemetry.formats.sniff import StrangerError
from telemetry.formats.stored_runs import is_run_folder
from telemetry.source_file import open_source, profiles_of, profiles_or_format

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planner.profile.model import Profile
    from telemetry.readers.hints import Hints

# A folder of measurements holds hundreds of files, one of training data millions.
MOST_FILES = 20_000
_OURS = {"gpucost.toml": "the settings of gpucost"}


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


def _walk(folder: Path, listing: FolderListing, seen: dict[tuple[int, int], Path]) -> None:
    """Look at the entries of one folder, then into its subfolders."""
    try:
        state = folder.stat()
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        listing.skip(folder, f"cannot be listed ({_reason(error)})", expected=False)
        return
    first = seen.setdefault((state.st_dev, state.st_ino), folder)
    if first is not folder:
        listing.skip(folder, f"the same folder as {first}")
        return
    for entry in entries:
        path = folder / entry.name
        if len(listing.files) >= MOST_FILES:
            why = f"over {MOST_FILES:,} files are there; give the folder of the measurements"
            listing.skip(path, f"{why} (it and what follows is not read)", expected=False)
            return
        _take(path, listing, seen)


def _take(path: Path, listing: FolderListing, seen: dict[tuple[int, int], Path]) -> None:
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
        _walk(path, listing, seen)
        return
    first = seen.setdefault((state.st_dev, state.st_ino), path)
    if not stat.S_ISREG(state.st_mode):
        listing.skip(path, "no regular file")
    elif path.name in _OURS:
        listing.skip(path, _OURS[path.name])
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
        beside = (path.stem + ending for ending in (SAMPLES, STEPS))
        for name in (*beside, series.samples, series.steps):
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
class _Found:
    """A profile and the file that it came from, the first one by name where they are several."""

    path: Path
    profile: Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderManner:
    """How a folder is read.

    Attributes:
        jobs_by: "file": every telemetry file is a job, with what has no GPU of its own (a server's
            page) beside it, where it is the only one in its folder; "folder": the telemetry of one
            folder complements each other.
        told: called with the number of telemetry files read and of all.
    """

    jobs_by: str
    told: Callable[[int, int], None] | None = None


def read_folder(
    folder: str, hints: Hints, skipped: list[Skipped], manner: FolderManner
) -> tuple[Profile, ...]:
    """Return the profiles of every file in a folder and below it that gpucost knows, by path.

    The series of a profile, the telemetry it was made from and its own capture are not jobs beside
    it. Parts of one run (`Profile.run`) are joined. Jobs of one name in different folders get the
    folder's name, too.

    Args:
        folder: where to look.
        hints: what the files do not say themselves.
        skipped: takes what is left out, with the reason.
        manner: which files are of one job.

    Raises:
        InputError: nothing in it can be read.
    """
    listing = files_below(folder)
    ready, telemetry = _recognised(listing, hints)
    apart = manner.jobs_by == "file"
    found = ready + _of_telemetry(telemetry, ready, listing, hints, manner)
    if apart:
        found = _completed(found, telemetry, hints)
    skipped += listing.skipped
    if not found:
        reasons = [f"{one.path}: {one.why}." for one in listing.skipped]
        raise InputError([f"{folder}: nothing in it is a profile or telemetry.", *reasons])
    return _named_apart(_joined(sorted(found, key=lambda one: one.path)), Path(folder))


def _recognised(listing: FolderListing, hints: Hints) -> tuple[list[_Found], dict[Path, Hints]]:
    """Return the finished profiles, and the telemetry that is not part of one.

    Each file of telemetry comes with hints that name its format, so that it is recognised once.
    """
    ready: list[_Found] = []
    other: list[tuple[Path, Hints | str]] = []
    belonging = Belonging()
    for path in listing.files:
        try:
            found = profiles_or_format(str(path), hints)
            if isinstance(found, Format):
                other.append((path, replace(hints, format=found.name)))
                continue
            for profile in found:
                ready.append(_Found(path=path, profile=profile))
                belonging.add(path, profile)
        except StrangerError as error:
            other.append((path, error.what))
        except InputError as error:
            listing.damaged(path, error)
    telemetry = {}
    captures = {path.with_name(_CAPTURED.sub("", path.name)): path for path, _ in other}
    for path, known in other:
        part = belonging.why(path)
        name = None if isinstance(known, str) else _series_name(path, known)
        if part is not None:
            listing.skipped.append(part)
        elif name in captures:
            listing.skip(path, f"a series of {captures[name].name}")
        elif isinstance(known, str):
            listing.skip(path, known)
        else:
            telemetry[path] = known
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


def _completed(found: list[_Found], telemetry: dict[Path, Hints], hints: Hints) -> list[_Found]:
    """Return the jobs with what has no GPU of its own in the one job that lies beside it."""
    beside: dict[Path, list[_Found]] = defaultdict(list)
    for one in found:
        if one.path in telemetry and not is_run_folder(one.path):
            beside[one.path.parent].append(one)
    of_one_job = {path: group for group in _groups(telemetry, apart=True) for path in group}
    together: dict[Path, _Found] = {}
    parts: set[Path] = set()
    for members in beside.values():
        jobs = [one for one in members if one.profile.gpus]
        rest = [one for one in members if not one.profile.gpus]
        if len(jobs) != 1 or not rest:
            continue
        paths = [*of_one_job[jobs[0].path], *(one.path for one in rest)]
        try:
            joined = profiles_of([open_source(str(path), telemetry[path]) for path in paths], hints)
        except InputError:
            continue
        if len(joined) == 1:
            job = replace(joined[0].job, name=jobs[0].profile.job.name)
            together[jobs[0].path] = replace(jobs[0], profile=replace(joined[0], job=job))
            parts |= {one.path for one in rest}
    return [together.get(one.path, one) for one in found if one.path not in parts]


def _of_telemetry(
    telemetry: dict[Path, Hints],
    ready: list[_Found],
    listing: FolderListing,
    hints: Hints,
    manner: FolderManner,
) -> list[_Found]:
    found: list[_Found] = []
    total, done = len(telemetry), 0
    for group in _groups(telemetry, apart=manner.jobs_by == "file"):
        done += len(group)
        if manner.told is not None:
            manner.told(done, total)
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
            finished = next((one for one in ready if _captured(path, profile, one)), None)
            if finished is None:
                found.append(_Found(path=path, profile=profile))
            else:
                listing.skip(path, f"the capture of {finished.path.name}, which is finished")
    return found


def _captured(path: Path, profile: Profile, finished: _Found) -> bool:
    """Return whether a capture is of the measurement whose finished profile lies beside it."""
    beside = finished.path.with_suffix("") == path.with_name(_CAPTURED.sub("", path.name))
    if not beside or not _CAPTURED.search(path.name):
        return False
    same_job = finished.profile.job.name == profile.job.name
    starts = [one.window.start for one in (finished.profile, profile) if one.window]
    known = [start.timestamp() for start in starts if start is not None]
    return same_job and len(known) == _BOTH and abs(known[0] - known[1]) <= _SAME_START_S


def _joined(found: list[_Found]) -> list[_Found]:
    """Return the parts of one run as one, where its first part lies."""
    place = {id(one.profile): one.path for one in found}
    first = found[0].path
    return [
        _Found(path=place.get(id(profile), first), profile=profile)
        for profile in join_runs([one.profile for one in found])
    ]


def _named_apart(found: list[_Found], folder: Path) -> tuple[Profile, ...]:
    """Add the folder's name to jobs of one name in different folders."""
    folders = defaultdict(set)
    for one in found:
        folders[one.profile.job.name].add(one.path.parent)
    named = []
    for one in found:
        name, below = one.profile.job.name, one.path.parent.relative_to(folder)
        if len(folders[name]) > 1 and below.parts:
            job = replace(one.profile.job, name="-".join((name, *below.parts)))
            named.append(replace(one.profile, job=job))
        else:
            named.append(one.profile)
    return tuple(named)
