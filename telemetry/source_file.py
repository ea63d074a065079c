"""One file as a SOURCE: recognised, loaded, and turned into profiles with those beside it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from planner.profile.codec import parse_profiles
from telemetry.formats.sniff import recognise
from telemetry.formats.stored_runs import is_run_folder, is_run_table, run_payload, table_payload
from telemetry.profiling.fill import fill
from telemetry.readers.payload import HEAD_BYTES, MAGIC, Payload, Stream, footer_of, hash_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.profile.model import Profile
    from telemetry.formats.form import Format
    from telemetry.readers.hints import Hints

# A log of this size or more on disk is read by DuckDB; phases are told of smaller ones only.
LARGE_BYTES = 32 << 20
_LARGE_PACKED_BYTES = 2 << 20
_PACKED = b"\x1f\x8b"
_IN_BLOCKS = "nvidia-smi-csv"  # beside files of other formats it is loaded
_BY_READER = "prometheus-text"  # whose reader never needs the whole


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file, recognised.

    Attributes:
        format: None for a profile.json.
        payload: what is in it; without data where it is large.
        large: whether it is read from its file, and has not been loaded.
    """

    format: Format | None
    payload: Payload
    large: bool = False


def open_source(path: str, hints: Hints, stdin: BinaryIO | None = None) -> SourceFile:
    """Return one file, recognised, and loaded unless it is a large log.

    Raises:
        StrangerError: it is nothing that gpucost reads.
        InputError: it cannot be read.
    """
    if path != "-" and is_run_folder(path):
        payload = run_payload(path)
        form = recognise(payload.name, payload.data[:HEAD_BYTES], hints)
        return SourceFile(format=form, payload=payload)
    if path != "-" and is_run_table(path):
        payload = table_payload(path)
        form = recognise(payload.name, payload.data[:HEAD_BYTES], hints)
        return SourceFile(format=form, payload=payload)
    with Stream(path, stdin) as stream:
        form = recognise(stream.name, _head(path, stream), hints)
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
    """Return what a file is recognised by; Parquet names its columns at its end."""
    return stream.head + (footer_of(path) if stream.head.startswith(MAGIC) else b"")


def _is_large(path: str) -> bool:
    file = Path(path)
    if not file.is_file():  # what is not a file on disk can be read once only
        return False
    with file.open("rb") as stream:
        packed = stream.read(len(_PACKED)) == _PACKED
    return file.stat().st_size >= (_LARGE_PACKED_BYTES if packed else LARGE_BYTES)


def _logs(opened: Iterable[SourceFile]) -> list[str]:
    """Return the paths of logs that DuckDB reads to one profile; none for other sources.

    One of them is large, and the others are such logs, too.
    """
    files = tuple(opened)
    in_blocks = all(one.format is not None and one.format.name == _IN_BLOCKS for one in files)
    if not in_blocks or not any(one.large for one in files):
        return []
    once = {(one.payload.name, one.payload.sha256): one.payload.path for one in files}
    return list(once.values()) if "-" not in once.values() else []


def _namesakes_told(opened: Iterable[SourceFile]) -> list[SourceFile]:
    """Return files in an order of their own, those of one name with their content's hash."""
    files = list(opened)
    names = Counter(one.payload.name for one in files)
    told = [
        replace(one, payload=replace(one.payload, sha256=hash_of(one.payload.path)))
        if one.payload.sha256 is None and names[one.payload.name] > 1
        else one
        for one in files
    ]
    return sorted(told, key=lambda one: (one.payload.name, one.payload.sha256 or ""))


def _loaded(one: SourceFile) -> SourceFile:
    if not one.large or (one.format is not None and one.format.name == _BY_READER):
        return one
    with Stream(one.payload.path) as stream:
        return SourceFile(format=one.format, payload=stream.load())


def profiles_or_format(path: str, hints: Hints) -> tuple[Profile, ...] | Format:
    """Return the profiles of a finished profile; of other sources the format, by their first bytes.

    Raises:
        StrangerError: it is nothing that gpucost reads.
        InputError: it cannot be read.
    """
    if is_run_folder(path):
        opened = open_source(path, hints)
    else:
        with Stream(path) as stream:
            if stream.head.startswith(MAGIC) and is_run_table(path):
                opened = open_source(path, hints)
            else:
                form = recognise(stream.name, _head(path, stream), hints)
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
    ordered = _namesakes_told(opened)
    ready = [one.payload for one in ordered if one.format is None]
    if ready:
        return tuple(
            fill(profile, hints)
            for one in ready
            for profile in parse_profiles(one.data, one.path)
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
    while ordered:  # a capture of weeks is let go of before its readings are worked on
        one = _loaded(ordered.pop(0))
        if one.format is not None:
            recordings.append(one.format.read(one.payload, hints))
        del one
    return jobs.all_profiles(recordings, hints)
