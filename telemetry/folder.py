"""Lists the files of a SOURCE that is a folder, and says of the others why they are left out."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from planner.profile.model import SAMPLES, STEPS, Profile, Series
from pricing.errors import InputError
from telemetry.run_folder import is_run_folder

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
