"""The door of telemetry: from the SOURCE of a command line to profiles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from planner.profile.join import join_runs
from pricing.errors import InputError
from telemetry.folder import FolderReadOptions, read_folder
from telemetry.formats.stored_runs import is_run_folder
from telemetry.lake.place import place_of
from telemetry.source_file import SourceFile, open_source, profiles_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.profile.model import Profile
    from telemetry.folder import Skipped
    from telemetry.readers.hints import Hints


BY_FILE, BY_FOLDER = FolderReadOptions(jobs_by="file"), FolderReadOptions(jobs_by="folder")


def read_source(
    path: str,
    hints: Hints,
    stdin: BinaryIO | None = None,
    skipped: list[Skipped] | None = None,
    options: FolderReadOptions = BY_FILE,
) -> tuple[Profile, ...]:
    """Return the profiles of one SOURCE.

    Args:
        path: a profile.json or an array of them, a telemetry file (also gzipped), `-` for standard
            input, a Parquet file or a folder of nothing but Parquet (one table), or another folder:
            every file in it and below it that is one of these, each read by itself.
        hints: what the source does not say itself.
        stdin: what `-` reads; the process's standard input when None.
        skipped: takes what was left out of a folder.
        options: how folders are read; each telemetry file in them is a job unless they say else.

    Returns:
        The profiles of a file in its order, those of telemetry by job name, those of a folder by
        path. Parts of one run that lie in a folder are one profile.

    Raises:
        InputError: nothing of it can be read, with every problem of every file.
    """
    if (of_table := _of_table(path, hints)) is not None:
        return of_table
    if _is_folder(path):
        return read_folder(path, hints, [] if skipped is None else skipped, options)
    return profiles_of([open_source(path, hints, stdin)], hints)


def read_telemetry(
    paths: Sequence[str],
    hints: Hints,
    stdin: BinaryIO | None = None,
    skipped: list[Skipped] | None = None,
    options: FolderReadOptions = BY_FOLDER,
) -> tuple[Profile, ...]:
    """Return the profiles of files that complement each other, usually one.

    The order of the paths does not matter. Where labels in the data name several jobs, there is a
    profile a job, by name; `hints.job` selects one. In a folder, the telemetry beside each
    other is of one job, each capture of `gpucost profile` is a job, a finished profile stays
    what it is; parts of one run are one profile.

    Args:
        paths: files and folders; `-` is standard input.
        hints: what they do not say themselves.
        stdin: what `-` reads.
        skipped: takes what was left out of folders.
        options: how folders are read.

    Raises:
        InputError: a file cannot be read, with every problem of every file; a profile beside
            telemetry; no such job; one name for several.
    """
    profiles: list[Profile] = []
    opened, problems = list[SourceFile](), list[str]()
    left_out: list[Skipped] = [] if skipped is None else skipped
    for path in paths:
        try:
            if (of_table := _of_table(path, hints)) is not None:
                profiles += of_table
            elif _is_folder(path):
                profiles += read_folder(path, hints, left_out, options)
            else:
                opened.append(open_source(path, hints, stdin))
        except InputError as error:
            problems += error.problems
    problems += _mixed(opened)
    if not (problems or opened or profiles):
        problems.append("no SOURCE given. Give telemetry files: gpucost import smi.csv.")
    if problems:
        raise InputError(sorted(problems))
    if opened:
        profiles += profiles_of((opened.pop() for _ in tuple(opened)), hints)  # frees them
    joined = join_runs(profiles)
    if hints.name is not None and len(joined) > 1:
        names = ", ".join(profile.job.name for profile in joined)
        raise InputError(f"--name {hints.name}: {len(joined)} jobs ({names}) cannot share a name.")
    return joined


def _of_table(path: str, hints: Hints) -> tuple[Profile, ...] | None:
    """Return the profiles of a Parquet file or a folder of nothing else; None for other sources."""
    place = place_of(path) if path != "-" and hints.format is None else None
    if place is None:
        return None
    from telemetry.lake.profiles import profiles_of_place  # noqa: PLC0415 - an extra

    return profiles_of_place(place, {}, hints)


def _mixed(opened: Sequence[SourceFile]) -> list[str]:
    ready = [file.payload.name for file in opened if file.format is None]
    if not 0 < len(ready) < len(opened):
        return []
    names = ", ".join(sorted(ready))
    sentence = f"{names}: a finished profile is not merged with telemetry. Import the telemetry "
    return [f"{sentence}alone, or give both to `gpucost plan`."]


def _is_folder(path: str) -> bool:
    try:
        return path != "-" and Path(path).is_dir() and not is_run_folder(path)
    except (OSError, ValueError):
        return False
