"""Turns the SOURCE arguments of a command into profiles."""

from collections.abc import Callable, Sequence
from pathlib import Path

from gpucost.arguments.parameters import DEFAULT_PROFILE
from planner.models.interruption import Availability, parse_trace
from planner.profile.model import Profile
from pricing.errors import InputError
from telemetry.folder import FolderReadOptions, Skipped
from telemetry.readers.hints import Hints
from telemetry.sources import read_telemetry

# More lines than this about files that nobody meant hide the ones that matter.
_MOST_LINES = 5
ProgressCallback = Callable[[int, int], None]
"""Is told how much is done, and of how much."""


def read_sources(
    paths: tuple[str, ...],
    say: Callable[[str], None] = lambda _: None,
    jobs_by: str | None = None,
    told: ProgressCallback = lambda *_: None,
) -> tuple[Profile, ...]:
    """Return the profiles of all sources; parts of one run are one profile.

    Args:
        paths: as the command line gives them; none is ./profile.json.
        say: told what was left out of folders.
        jobs_by: whether each file of a folder is a job, or what lies in one folder.
        told: how many files of a folder are read.

    Raises:
        InputError: a source is missing, unreadable, or neither a profile nor telemetry; the
            problems of all sources together.
    """
    options = FolderReadOptions(jobs_by=jobs_by or "file", progress=told, on_join=say)
    skipped: list[Skipped] = []
    profiles = read_telemetry(paths or (_default_source(),), Hints(), None, skipped, options)
    tell_skipped(skipped, say)
    return profiles


def tell_skipped(skipped: Sequence[Skipped], say: Callable[[str], None]) -> None:
    """Say what was left out of folders: a line each, what was to be expected in a few lines."""
    for file in (file for file in skipped if not file.expected):
        say(f"warning: {file}.")
    expected = [file for file in skipped if file.expected]
    shown = expected if len(expected) <= _MOST_LINES else expected[: _MOST_LINES - 1]
    for file in shown:
        say(f"{file}.")
    if hidden := expected[len(shown) :]:
        names = ", ".join(Path(file.path).name for file in hidden[:_MOST_LINES])
        more = ", ..." if len(hidden) > _MOST_LINES else ""
        say(f"skipped {len(hidden)} more that are not measurements: {names}{more}")


def read_trace(path: str) -> Availability:
    """Return the availability trace in a file.

    Raises:
        InputError: it cannot be read or has another form.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}.") from error
    return parse_trace(text, path)


def _default_source() -> str:
    if not Path(DEFAULT_PROFILE).exists():
        profiles = sorted(str(path) for path in Path().glob("profile.*.json"))
        if profiles:
            raise InputError(
                f"{DEFAULT_PROFILE}: no such file, but {', '.join(profiles[:_MOST_LINES])}"
                f"{', ...' if len(profiles) > _MOST_LINES else ''}: name the ones that you mean, "
                "or give `.` for all of them."
            )
        raise InputError(
            f"{DEFAULT_PROFILE}: no such file. `gpucost profile -- COMMAND` measures one, "
            "`gpucost import TELEMETRY` makes one from a log of nvidia-smi, DCGM, Prometheus or "
            "W&B; `gpucost demo` shows a finished example."
        )
    return DEFAULT_PROFILE
