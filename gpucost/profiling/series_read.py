"""Reads the raw series beside profiles back, drawn together to what a page can show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from planner.profile.codec import parse_profiles
from planner.profile.model import SAMPLES, STEPS
from pricing.errors import InputError
from pricing.message import Message
from telemetry.formats.stored_runs import HOST
from telemetry.profiling.phases import HOST_LOAD, LOADS, MOST_POINTS, TimeLine, time_line
from telemetry.readers.hints import Hints
from telemetry.recording.observed import Observed
from telemetry.source_file import TelemetryFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

_HOST = f"{HOST}{HOST_LOAD}"
_MOST_ROWS = 500_000  # above it readings are averaged as they are read
_ALL_POINTS = 8_000  # of one page
_FEWEST_POINTS = 40


def time_lines(plan: str, sources: Sequence[str], jobs: Sequence[str]) -> dict[str, TimeLine]:
    """Return what was recorded over time of the jobs of a plan, by name.

    Args:
        plan: the file; where nothing is given, series beside it are looked at.
        sources: profiles, their samples, or folders of either.
        jobs: names of the jobs of the plan.

    Raises:
        InputError: nothing is where it was said to be, or a series cannot be read.
    """
    files = _files(sources) if sources else sorted(Path(plan).parent.glob(f"*{SAMPLES}"))
    named = [(_job(file), file) for file in files]
    chosen = {name: file for name, file in named if name is not None and name in jobs}
    if sources and not chosen:
        raise InputError(
            Message("input.no-series", sources=" ".join(sources), plan=plan, ending=SAMPLES)
        )
    points = max(_FEWEST_POINTS, min(MOST_POINTS, _ALL_POINTS // max(1, len(chosen))))
    lines = {name: _line(file, points) for name, file in sorted(chosen.items())}
    return {name: line for name, line in lines.items() if line is not None}


def _files(names: Iterable[str]) -> list[Path]:
    """Return the samples that are named.

    Raises:
        InputError: a path is not there.
    """
    files: list[Path] = []
    for name in names:
        path = Path(name)
        if path.is_dir():
            below = sorted(path.rglob(f"*{SAMPLES}"))
            files += [
                p for p in below if not any(part[0] == "." for part in p.relative_to(path).parts)
            ]
            continue
        samples = path if name.endswith(SAMPLES) else path.with_name(f"{path.stem}{SAMPLES}")
        if not samples.is_file():
            raise InputError(Message("input.no-samples", name=name, samples=samples.name))
        files.append(samples)
    return files


def _job(samples: Path) -> str | None:
    """Return the job that samples are of; None where no profile lies beside them."""
    profile = samples.with_name(f"{samples.name.removesuffix(SAMPLES)}.json")
    try:
        text = profile.read_bytes()
    except OSError:
        return None
    try:
        return parse_profiles(text, str(profile))[0].job.name
    except (InputError, IndexError):
        return None


def _line(samples: Path, points: int) -> TimeLine | None:
    """Return the time line of samples and of the steps beside them."""
    frame = _frame(samples)
    host = None
    if _HOST in frame:
        host = frame[["t_s", _HOST]].drop_duplicates("t_s").sort_values("t_s")
        host = host.rename(columns={_HOST: HOST_LOAD})
    steps = samples.with_name(f"{samples.name.removesuffix(SAMPLES)}{STEPS}")
    return time_line(frame, host, _steps(steps), points=points)


def _frame(samples: Path) -> pd.DataFrame:
    """Return the loads of every device and instant; of a long series means of short stretches.

    Raises:
        InputError: it cannot be read.
    """
    import duckdb  # noqa: PLC0415 - only where a series is drawn

    try:
        with duckdb.connect() as database:
            series = database.read_parquet(str(samples))
            span = "max(t_s) - min(t_s), count(distinct gpu), count(*)"
            length, gpus, rows = series.aggregate(span).fetchall()[0]
            width = length * gpus / _MOST_ROWS if rows > _MOST_ROWS else 0.0
            instant = f"floor(t_s / {width!r}) * {width!r}" if width > 0 else "t_s"
            loads = [name for name in (*LOADS, _HOST) if name in series.columns]
            projected = series.project(
                ", ".join((f"{instant} as t_s", "gpu", *map(_quoted, loads)))
            )
            means = ("t_s", "gpu", *(f"avg({_quoted(name)}) as {_quoted(name)}" for name in loads))
            frame: pd.DataFrame = projected.aggregate(", ".join(means), "t_s, gpu").df()
            return frame.sort_values(["gpu", "t_s"])
    except duckdb.Error as error:
        why = str(error).splitlines()[0]
        raise InputError(f"{samples}: cannot be read as a series: {why}.") from error


def _quoted(name: str) -> str:
    return f'"{name}"'


def _steps(path: Path) -> Observed:
    """Return what a steps file tells; nothing where it is not there.

    Raises:
        InputError: a line cannot be read.
    """
    if not path.is_file() or not path.stat().st_size:
        return Observed()
    recording = TelemetryFile(path=path, hints=Hints(format="gpucost-steps")).load()
    if recording.rows_used < recording.rows_read:
        why = "a line is not a step of `gpucost profile`; delete the file to draw without steps"
        raise InputError(f"{path}: {why}.")
    return recording.observed or Observed()
