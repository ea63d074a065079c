"""One file as a SOURCE: recognised, loaded, and turned into profiles with those beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from planner.profile.codec import parse_profiles
from planner.telemetry.formats.sniff import recognise
from planner.telemetry.parsing.payload import Payload, Stream
from planner.telemetry.profiling.fill import fill

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.profile.model import Profile
    from planner.telemetry.formats.form import Format
    from planner.telemetry.parsing.hints import Hints


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file, recognised and loaded; `format` is None for a profile.json."""

    format: Format | None
    payload: Payload


def open_source(path: str, hints: Hints, stdin: BinaryIO | None = None) -> SourceFile:
    """Return one file, recognised and loaded.

    Raises:
        StrangerError: it is nothing that gpucost reads.
        InputError: it cannot be read.
    """
    with Stream(path, stdin) as stream:
        return SourceFile(format=recognise(stream.name, stream.head, hints), payload=stream.load())


def profiles_of(opened: Iterable[SourceFile], hints: Hints) -> tuple[Profile, ...]:
    """Return the profiles of finished profiles, or of telemetry of one job.

    Each capture of `gpucost profile` is a job of its own.

    Raises:
        InputError: what is in them cannot be read, or no job has the name that is asked for.
    """
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
    from planner.telemetry.profiling import jobs  # noqa: PLC0415 - lazy on purpose

    del opened
    recordings = []
    while ordered:  # a capture of weeks is let go of before its readings are worked on
        one = ordered.pop(0)
        if one.format is not None:
            recordings.append(one.format.read(one.payload, hints))
        del one
    return jobs.all_profiles(recordings, hints)
