"""Turns BEFORE and AFTER of a command into measured runs: profile and, beside it, its steps."""

from collections.abc import Callable
from pathlib import Path

from gpucost.files.sources import read_sources
from planner.profile.model import Profile
from planner.proof.speed import MeasuredRun, StepRow, parse_steps
from pricing.errors import InputError


def read_run(path: str, job: str | None, say: Callable[[str], None]) -> MeasuredRun:
    """Return the run in a SOURCE, with its series of steps where that lies beside its profile.

    Args:
        path: as the command line gives it.
        job: which of several jobs; None where there is one.
        say: told what was left out.

    Raises:
        InputError: it cannot be read, holds several jobs, or has no such job.
    """
    profile = _chosen(path, read_sources((path,), say), job)
    return MeasuredRun(name=path, profile=profile, steps=_steps(path, profile, say))


def _chosen(path: str, profiles: tuple[Profile, ...], job: str | None) -> Profile:
    fitting = [one for one in profiles if job is None or one.job.name == job]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(one.job.name for one in profiles)
    if job is not None:
        raise InputError(f"{path}: {len(fitting)} jobs are called {job!r}; it has {names}.")
    raise InputError(f"{path}: holds {len(profiles)} jobs ({names}); say which: --job NAME.")


def _steps(path: str, profile: Profile, say: Callable[[str], None]) -> tuple[StepRow, ...]:
    named = profile.series.steps if profile.series else None
    if named is None or path == "-":
        return ()
    beside = Path(path).parent / Path(named).name
    try:
        text = beside.read_text(encoding="utf-8")
    except (OSError, ValueError):
        say(f"{path}: its steps ({beside}) cannot be read; its interval is the wider for it.")
        return ()
    return parse_steps(text, str(beside))
