"""One file as a SOURCE: recognized, loaded, and turned into profiles with those beside it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from planner.profile.codec import parse_profiles
from pricing.errors import InputError
from telemetry.formats.sniff import Format, recognize
from telemetry.formats.stored_runs import is_run_folder, is_run_table, run_payload, table_payload
from telemetry.profiling.fill import fill
from telemetry.readers.payload import HEAD_BYTES, MAGIC, Payload, Stream, footer_of, hash_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.profile.model import Profile
    from telemetry.readers.hints import Hints

# A log of this size or more on disk is read by DuckDB; phases are told of smaller ones only.
LARGE_BYTES = 32 << 20
_LARGE_PACKED_BYTES = 2 << 20
_PACKED = b"\x1f\x8b"
_IN_BLOCKS = "nvidia-smi-csv"  # beside files of other formats it is loaded
_BY_READER = "prometheus-text"  # whose reader never needs the whole


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file, recognized.

    Attributes:
        format: None for a profile.json.
        payload: what is in it; without data where it is large.
        large: whether it is read from its file, and has not been loaded.
    """

    format: Format | None
    payload: Payload
    large: bool = False


def open_source(path: str, hints: Hints, stdin: BinaryIO | None = None) -> SourceFile:
    """Return one file, recognized, and loaded unless it is a large log.

    Raises:
        UnknownFormatError: it is nothing that gpucost reads.
        InputError: it cannot be read.
    """
    if path != "-" and (is_run_folder(path) or is_run_table(path)):
        payload = run_payload(path) if is_run_folder(path) else table_payload(path)
        form = recognize(payload.name, payload.data[:HEAD_BYTES], hints)
        return SourceFile(format=form, payload=payload)
    with Stream(path, stdin) as stream:
        form = recognize(stream.name, _head(path, stream), hints)
        if (
            form is not None
            and form.name in {_IN_BLOCKS, _BY_READER}
            and path != "-"
            and _is_large(path)
        ):
            payload = Payload(name=stream.name, data=b"", sha256=None, path=path)
            return SourceFile(format=form, payload=payload, large=True)
        return SourceFile(format=form, payload=stream.load())


def _head(path: str, stream: Stream) -> bytes:
    """Return what a file is recognized by; Parquet names its columns at its end."""
    return stream.head + (footer_of(path) if stream.head.startswith(MAGIC) else b"")


def _is_large(path: str) -> bool:
    place = Path(path)
    if not place.is_file():  # what is not a file on disk can be read once only
        return False
    with place.open("rb") as stream:
        packed = stream.read(len(_PACKED)) == _PACKED
    return place.stat().st_size >= (_LARGE_PACKED_BYTES if packed else LARGE_BYTES)


def _logs(opened: Iterable[SourceFile]) -> list[str]:
    """Return the paths of logs that DuckDB reads to one profile; none for other sources.

    One of them is large, and the others are such logs, too.
    """
    files = tuple(opened)
    in_blocks = all(file.format is not None and file.format.name == _IN_BLOCKS for file in files)
    if not in_blocks or not any(file.large for file in files):
        return []
    once = {(file.payload.name, file.payload.sha256): file.payload.path for file in files}
    return list(once.values()) if "-" not in once.values() else []


def _in_order(opened: Iterable[SourceFile]) -> list[SourceFile]:
    """Return files by name, those of one name with their content's hash, and by it."""
    files = list(opened)
    names = Counter(file.payload.name for file in files)
    hashed = [
        replace(file, payload=replace(file.payload, sha256=hash_of(file.payload.path)))
        if file.payload.sha256 is None and names[file.payload.name] > 1
        else file
        for file in files
    ]
    return sorted(hashed, key=lambda file: (file.payload.name, file.payload.sha256 or ""))


def _loaded(file: SourceFile) -> SourceFile:
    if not file.large or (file.format is not None and file.format.name == _BY_READER):
        return file
    with Stream(file.payload.path) as stream:
        return SourceFile(format=file.format, payload=stream.load())


def profiles_or_format(path: str, hints: Hints) -> tuple[Profile, ...] | Format:
    """Return the profiles of a finished profile; of other sources the format, by their first bytes.

    Raises:
        UnknownFormatError: it is nothing that gpucost reads.
        InputError: it cannot be read.
    """
    if is_run_folder(path):
        opened = open_source(path, hints)
    else:
        with Stream(path) as stream:
            if stream.head.startswith(MAGIC) and is_run_table(path):
                opened = open_source(path, hints)
            else:
                form = recognize(stream.name, _head(path, stream), hints)
                if form is not None:
                    return form
                opened = SourceFile(format=None, payload=stream.load())
    return profiles_of([opened], hints) if opened.format is None else opened.format


def profiles_of(opened: Iterable[SourceFile], hints: Hints) -> tuple[Profile, ...]:
    """Return the profiles of finished profiles, or of telemetry of one job.

    Each capture of `gpucost profile` is a job of its own.

    Raises:
        InputError: what is in them cannot be read, or no job has the name that is asked for.
    """
    ordered = _in_order(opened)
    ready = [file.payload for file in ordered if file.format is None]
    if ready:
        return tuple(
            fill(profile, hints)
            for file in ready
            for profile in parse_profiles(file.data, file.path)
            if hints.job in (None, profile.job.name)
        )
    # pandas comes in here and not before: a plan of ready profiles starts without it.
    from telemetry.profiling import jobs  # noqa: PLC0415 - lazy on purpose

    logs = _logs(ordered) if hints.job is None else []
    if logs:
        from telemetry.large.profile import profile_of_logs  # noqa: PLC0415 - the same

        profile = profile_of_logs(logs, hints)
        if profile is not None:
            return (profile,)
    recordings = []
    while ordered:  # a capture of weeks is released before its readings are worked on
        file = _loaded(ordered.pop(0))
        if file.format is not None:
            recordings.append(file.format.read(file.payload, hints))
        del file
    from telemetry.readers.ledger import unmatched_map  # noqa: PLC0415 - the same

    if problems := unmatched_map(hints, [recording.names for recording in recordings]):
        raise InputError(problems)
    return jobs.all_profiles(recordings, hints)
