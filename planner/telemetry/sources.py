"""The door of telemetry: from the SOURCE of a command line to profiles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from planner.profile.codec import parse_profiles
from planner.telemetry.fill import fill
from planner.telemetry.payload import Payload, Stream, base_name
from planner.telemetry.sniff import Format, recognise
from pricing.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.profile.model import Profile
    from planner.telemetry.hints import Hints


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """One file, recognised and loaded; `format` is None for a profile.json."""

    format: Format | None
    payload: Payload


def read_source(path: str, hints: Hints, stdin: BinaryIO | None = None) -> tuple[Profile, ...]:
    """Return the profiles of one SOURCE.

    Args:
        path: a profile.json or an array of them, a telemetry file (also gzipped), `-` for standard
            input, or a directory of such files, each read by itself.
        hints: what the source does not say itself.
        stdin: what `-` reads; the process's standard input when None.

    Returns:
        The profiles of a file in its order, those of telemetry by job name, those of a directory
        by file name.

    Raises:
        InputError: nothing of it can be read, with every problem of every file.
    """
    if not _is_directory(path):
        return _profiles([_open(path, hints, stdin)], hints)
    found: list[Profile] = []
    problems: list[str] = []
    for member in _members(path):
        try:
            found += _profiles([_open(member, hints, None)], hints)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return tuple(found)


def read_telemetry(
    paths: Sequence[str], hints: Hints, stdin: BinaryIO | None = None
) -> tuple[Profile, ...]:
    """Return the profile of one job whose files complement each other.

    The order of the paths does not matter. Where labels in the data name two or more jobs, there is
    one profile a job, by name; `hints.job` selects one.

    Raises:
        InputError: a file cannot be read, with every problem of every file; profiles and telemetry
            mixed; no such job.
    """
    opened: list[_Opened] = []
    problems: list[str] = []
    for path in paths:
        for member in _members(path) if _is_directory(path) else [path]:
            try:
                opened.append(_open(member, hints, stdin))
            except InputError as error:
                problems += error.problems
    if not problems and not opened:
        problems.append("no SOURCE given. Give telemetry files: gpucost import smi.csv.")
    ready = [one.payload.name for one in opened if one.format is None]
    if 0 < len(ready) < len(opened):
        problems.append(
            f"{', '.join(sorted(ready))}: a finished profile is not merged with telemetry. Import "
            "the telemetry alone, or give both to `gpucost plan`."
        )
    if problems:
        raise InputError(sorted(problems))
    return _profiles(opened, hints)


def _profiles(opened: Iterable[_Opened], hints: Hints) -> tuple[Profile, ...]:
    ordered = sorted(opened, key=lambda one: (one.payload.name, one.payload.sha256))
    ready = [one.payload for one in ordered if one.format is None]
    if ready:
        return tuple(
            fill(profile, hints)
            for one in ready
            for profile in parse_profiles(one.data, one.path)
            if hints.job in (None, profile.job.name)
        )
    # pandas comes in here and not before: a plan of ready profiles starts without it.
    from planner.telemetry import jobs  # noqa: PLC0415 - lazy on purpose

    return jobs.profiles(
        [one.format.read(one.payload, hints) for one in ordered if one.format is not None], hints
    )


def _open(path: str, hints: Hints, stdin: BinaryIO | None) -> _Opened:
    with Stream(path, stdin) as stream:
        return _Opened(format=recognise(stream.name, stream.head, hints), payload=stream.load())


def _is_directory(path: str) -> bool:
    try:
        return path != "-" and Path(path).is_dir()
    except (OSError, ValueError):
        return False


def _members(path: str) -> list[str]:
    try:
        entries = sorted(entry for entry in Path(path).iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise InputError(f"{path}: cannot be listed ({error.strerror}).") from None
    if not entries:
        raise InputError(f"{base_name(path)}: the directory is empty; put telemetry files in it.")
    return [str(entry) for entry in entries]
