"""The parts of the public API that take files or plain arguments."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from planner.models.estimate import Estimate
from planner.profile.codec import parse_profiles
from planner.profile.model import Profile
from pricing.errors import InputError, NotBuiltYetError

_NO_TENANCY = "only mode='mps' is predicted in this version; mig and time-slicing come later."


def load_profile(path: str | Path) -> Profile:
    """Return the profile in a file.

    Raises:
        InputError: the file cannot be read, is no profile, or holds several.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}.") from error
    profiles = parse_profiles(data, str(path))
    if len(profiles) != 1:
        raise InputError(f"{path}: holds {len(profiles)} profiles; one is wanted here.")
    return profiles[0]


def read_telemetry(
    paths: str | Path | Sequence[str | Path],
    **hints: Any,  # noqa: ANN401 - see Hints
) -> Profile:
    """Return the profile of one job measured in telemetry files.

    Args:
        paths: one file or several that complement each other.
        hints: what the files do not say: see `planner.telemetry.parsing.hints.Hints`.

    Raises:
        InputError: a file is no telemetry, or the files hold several jobs.
    """
    from planner.telemetry.parsing.hints import Hints  # noqa: PLC0415 - pandas only when it is needed
    from planner.telemetry.sources import read_telemetry as read  # noqa: PLC0415 - the same

    several = [paths] if isinstance(paths, str | Path) else paths
    profiles = read([str(path) for path in several], Hints(**hints))
    if len(profiles) != 1:
        names = ", ".join(profile.job.name for profile in profiles)
        raise InputError(f"several jobs are in there: {names}; choose one with job=NAME.")
    return profiles[0]


def predict_sharing(profiles: Iterable[Profile], mode: str = "mps") -> tuple[Estimate, ...]:
    """Return each job's relative speed when all share one GPU, 1.0 = alone, in order of input.

    Args:
        profiles: the jobs; GPU use must be measured.
        mode: `mps`.

    Raises:
        NotBuiltYetError: another mode.
        InputError: GPU use of a job was not measured.
    """
    from planner.prediction.sharing import shared_speed  # noqa: PLC0415 - keeps the import of gpucost light

    if mode != "mps":
        raise NotBuiltYetError(_NO_TENANCY)
    return shared_speed(tuple(profiles))
