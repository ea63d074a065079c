"""One SOURCE of telemetry, read for a test."""

from typing import BinaryIO

from planner.profile.model import Profile
from telemetry.readers.hints import Hints
from telemetry.sources import BY_FILE, FolderReadOptions, Skipped, read_telemetry


def read_source(
    path: str,
    hints: Hints,
    stdin: BinaryIO | None = None,
    skipped: list[Skipped] | None = None,
    options: FolderReadOptions = BY_FILE,
) -> tuple[Profile, ...]:
    """Return the profiles of one SOURCE, each file a job unless they are of the same GPUs."""
    return read_telemetry([path], hints, stdin, skipped, options)
