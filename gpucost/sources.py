"""Turns the SOURCE arguments of a command into profiles."""

from pathlib import Path

from planner.interruption import Availability, parse_trace
from planner.profile.model import Profile
from pricing.errors import InputError

DEFAULT_PROFILE = "profile.json"


def read_sources(paths: tuple[str, ...]) -> tuple[Profile, ...]:
    """Return the profiles of all sources; the problems of all sources are raised together.

    Raises:
        InputError: a source is missing, unreadable, or neither a profile nor telemetry.
    """
    if not paths:
        paths = (_default_source(),)
    from planner.telemetry.hints import Hints  # noqa: PLC0415 - kept off `gpucost --help`
    from planner.telemetry.sources import read_source  # noqa: PLC0415 - the same

    profiles: list[Profile] = []
    problems: list[str] = []
    for path in paths:
        try:
            profiles.extend(read_source(path, Hints()))
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError(problems)
    return tuple(profiles)


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
        raise InputError(
            f"{DEFAULT_PROFILE}: no such file. `gpucost profile -- COMMAND` measures one, "
            "`gpucost import TELEMETRY` makes one from a log of nvidia-smi, DCGM, Prometheus or "
            "W&B; `gpucost demo` shows a finished example."
        )
    return DEFAULT_PROFILE
