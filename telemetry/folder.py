"""Lists the files of a SOURCE that is a folder, and says of the others why they are left out."""

import os
import re
import stat
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import structs

from planner.profile.model import SAMPLES, STEPS, Profile, Series
from pricing.errors import InputError
from pricing.message import Message
from telemetry.formats.sniff import UnknownFormatError
from telemetry.formats.stored_runs import is_run_folder
from telemetry.readers.hints import Hints
from telemetry.readers.payload import hash_of
from telemetry.source_file import TelemetryFile, finished_profiles, open_source

# A folder of measurements holds hundreds of files, one of training data millions.
MOST_FILES = 20_000
_TRACKERS = frozenset(("wandb", "mlruns"))
_OWN_FILES = {
    "gpucost.toml": "the settings of gpucost",
    "wandb-metadata.json": "read with the W&B run beside it",
    "wandb-summary.json": "the last values of the W&B run beside it",
}


class NothingToReadError(InputError):
    """A folder holds no telemetry, whole or damaged."""


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
        deep: whether other folders below it than those of trackers are looked into.
    """

    files: list[Path] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    deep: bool = True

    def skip(self, path: Path, why: str, *, expected: bool = True) -> None:
        """Note that something is left out."""
        self.skipped.append(Skipped(path=str(path), why=why, expected=expected))

    def damaged(self, path: Path, error: InputError) -> None:
        """Note that a file is telemetry or a profile, and cannot be read."""
        sentences = (problem.removeprefix(f"{path.name}: ") for problem in error.problems)
        self.skip(path, " ".join(sentences).rstrip("."), expected=False)


def files_below(folder: str, *, deep: bool = True) -> FolderListing:
    """Return the files of a folder and its subfolders; links are followed, each file comes once.

    Raises:
        NothingToReadError: nothing is in it.
        InputError: the folder itself cannot be listed.
    """
    listing = FolderListing(deep=deep)
    try:
        empty = not any(Path(folder).iterdir())
    except OSError as error:
        raise InputError(f"{folder}: cannot be listed ({error.strerror}).") from None
    if empty:
        raise NothingToReadError(f"{folder}: the directory is empty; put telemetry files in it.")
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
        if listing.deep or not _TRACKERS.isdisjoint(path.parts):
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
class _Belonging:
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
        files = {
            path.with_name(source.path): source.sha256
            for source in profile.provenance.sources
            if source.path and Path(source.path).name == source.path
        }
        is_copy = not all(file.exists() for file in files)  # of one that lies with all of them
        for file, sha256 in files.items():
            if not (is_copy and file.exists() and sha256 not in {None, _sha256(file)}):
                self._sources.setdefault(file, (path, sha256))

    def why(self, path: Path) -> Skipped | None:
        """Return why a file is not a job of its own, None where it is one."""
        if path in self._series:
            return Skipped(path=str(path), why=f"a series of {self._series[path].name}")
        if path not in self._sources:
            return None
        profile, sha256 = self._sources[path]
        if sha256 is None or sha256 == _sha256(path):
            return Skipped(path=str(path), why=f"{profile.name} was made from it")
        why = Message("read.other-file", profile=profile.name)
        return Skipped(path=str(path), why=why, expected=False)


def _sha256(path: Path) -> str | None:
    try:
        return hash_of(str(path))
    except InputError:
        return None


_RANK = re.compile(r"(?i)rank[-_.]?\d+")
_NUMBERED = re.compile(r"(?i)(rank|node|host|worker|pod)[-_.]?\d+")
_CAPTURED = re.compile(r"\.capture(-\d+)?\.jsonl$")
_SERIES = {"gpucost-samples": SAMPLES, "gpucost-steps": STEPS}
_SAME_START_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProfile:
    """A profile and the file that it came from, the first one by name where they are several.

    Attributes:
        path: the file.
        profile: what was read from it.
        source: the folder that was given; None for a file that was.
    """

    path: Path
    profile: Profile
    source: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderReadOptions:
    """Which files are of one job.

    Attributes:
        jobs_by: "file": those of the same GPUs, with what has no GPU of its own (a server's page)
            beside them; "folder": all that lies in one folder, too, or was given file by file.
        deep: whether other folders below it than those of trackers are looked into.
        progress: called with the number of telemetry files read and of all.
        on_join: called with a sentence for each job that was joined from several files.
    """

    jobs_by: str
    deep: bool = True
    progress: Callable[[int, int], None] = lambda *_: None
    on_join: Callable[[str], None] = lambda _: None


def open_folder(
    folder: str, hints: Hints, options: FolderReadOptions
) -> tuple[list[FileProfile], list[TelemetryFile], FolderListing]:
    """Return the finished profiles, the telemetry and the listing of a folder and below it.

    The series of a profile and the telemetry it was made from are not jobs beside it.

    Args:
        folder: where to look.
        hints: what the files do not say themselves.
        options: which files are of one job.

    Raises:
        InputError: the folder cannot be listed.
    """
    listing = files_below(folder, deep=options.deep)
    ready, hints_of = _recognize(listing, hints)
    series = {path: name for path in hints_of if (name := _series_name(path, hints_of[path]))}
    telemetry = []
    for path, own in hints_of.items():
        several = sum(name.parent == path.parent for name in set(series.values())) > 1
        bundle: str | None = str(path if is_run_folder(path) else path.parent)
        if path in series and (several or options.jobs_by == "file"):
            bundle = str(series[path])
        elif options.jobs_by == "file":
            bundle = ranks_of(path, str(own.format))
        telemetry.append(TelemetryFile(path=path, hints=own, root=Path(folder), bundle=bundle))
    return [replace(job, source=Path(folder)) for job in ready], telemetry, listing


def ranks_of(path: Path, form: str) -> str | None:
    """Return what names the job of a log of a rank, as rank7.csv; None for other files.

    A capture of `gpucost profile` names its run itself.
    """
    is_rank = _RANK.search(path.name) and not form.startswith("gpucost")
    return _NUMBERED.sub(r"\1", str(path)) if is_rank else None


def _recognize(listing: FolderListing, hints: Hints) -> tuple[list[FileProfile], dict[Path, Hints]]:
    """Return the finished profiles, and the telemetry that is not part of one.

    Each file of telemetry comes with hints that name its format, so that it is recognized once.
    """
    ready: list[FileProfile] = []
    remaining: list[tuple[Path, Hints | str]] = []
    belonging = _Belonging()
    for path in listing.files:
        try:
            opened = open_source(str(path), hints, load=False)
            if opened.format is not None:
                remaining.append((path, replace(hints, format=opened.format.name)))
                continue
            for profile in finished_profiles(opened, hints):
                ready.append(FileProfile(path=path, profile=profile))
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


def is_capture_of(finished: FileProfile, path: Path, profile: Profile) -> bool:
    """Return whether a capture is of the measurement whose finished profile lies beside it."""
    same_name = finished.path.with_suffix("") == path.with_name(_CAPTURED.sub("", path.name))
    if not same_name or not _CAPTURED.search(path.name):
        return False
    same_job = finished.profile.job.name == profile.job.name
    windows = [job.window for job in (finished.profile, profile)]
    starts = [w.start.timestamp() for w in windows if w is not None and w.start is not None]
    return same_job and len(starts) > 1 and abs(starts[0] - starts[1]) <= _SAME_START_S


def named_apart(jobs: Sequence[FileProfile]) -> tuple[Profile, ...]:
    """Add the folder's name to jobs of one name in different folders of one SOURCE."""
    folders = defaultdict(set)
    for job in jobs:
        folders[job.source, job.profile.job.name].add(job.path.parent)
    named = []
    for job in jobs:
        name = job.profile.job.name
        below = job.path.parent.relative_to(job.source).parts if job.source else ()
        if len(folders[job.source, name]) > 1 and below:
            renamed = structs.replace(job.profile.job, name="-".join((name, *below)))
            named.append(structs.replace(job.profile, job=renamed))
        else:
            named.append(job.profile)
    return tuple(named)
