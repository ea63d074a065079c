"""The files beside a profile: its series, and the parts of a run measured in several places.

Readings are written as Parquet, steps as JSON lines. Each part of a run (one rank, or one machine)
puts its own profile into a folder beside the target and writes the run's profile anew from the
parts that are there.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from gpucost.files.writing import write_file
from gpucost.profiling.profile_target import OutputName, free_for_run
from planner.models.document import encode
from planner.profile.codec import dump, parse_profiles
from planner.profile.join import join, overlap
from planner.profile.model import SAMPLES, STEPS, Profile, Series, Source
from planner.proof.speed import MeasuredRun, StepRow, parse_steps
from pricing.errors import InputError
from telemetry.recording.observed import SUMMED
from telemetry.recording.recording import GPU, TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import duckdb
    import pandas as pd

    from telemetry.recording.recording import Recording


_DIGITS = 9


class StepLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `profile.steps.jsonl`: steps in a row, their figures as means over them.

    Attributes:
        t_s: when the last of them ended, since 1970 UTC.
        step: number of the last of them.
        n: how many.
        step_s: length; left out where it was not measured, as what follows.
        data_wait_s: waiting for data.
        h2d_s: copying to the GPU.
        optimizer_s: in the optimizer's step.
        checkpoint_s: writing checkpoints.
        evaluation_s: evaluating.
        items: of the data, a step.
        loss: of the last of them.
    """

    t_s: float
    step: int
    n: int
    step_s: float | UnsetType = UNSET
    data_wait_s: float | UnsetType = UNSET
    h2d_s: float | UnsetType = UNSET
    optimizer_s: float | UnsetType = UNSET
    checkpoint_s: float | UnsetType = UNSET
    evaluation_s: float | UnsetType = UNSET
    items: float | UnsetType = UNSET
    loss: float | UnsetType = UNSET


def write_series(profile: Profile, recording: Recording, target: Path) -> Profile:
    """Write the series of a recording beside a profile and return the profile that names them.

    Args:
        profile: made from the recording.
        recording: what was measured; times are seconds since 1970 UTC.
        target: where the profile goes: `profile.json` gives `profile.samples.parquet` and
            `profile.steps.jsonl`.

    Raises:
        InputError: a file cannot be written.
    """
    samples = target.with_name(f"{target.stem}{SAMPLES}")
    frame = _wide(recording)
    _write_parquet(samples, lambda database: database.from_df(frame))
    steps = recording.observed.steps if recording.observed is not None else None
    target_steps = target.with_name(f"{target.stem}{STEPS}")
    if steps is not None:
        write_file(str(target_steps), _step_lines(steps))
    sha256 = hashlib.sha256(samples.read_bytes()).hexdigest()
    source: Source = replace(recording.source, path=samples.name, sha256=sha256)
    return replace(
        profile,
        series=Series(samples=samples.name, steps=None if steps is None else target_steps.name),
        provenance=replace(profile.provenance, sources=(source,)),
    )


def _wide(recording: Recording) -> pd.DataFrame:
    """Return one row a device and instant; the host's readings stand beside them as `host.*`."""
    names = {
        gpu.key: f"{gpu.index if gpu.index is not None else gpu.key}"
        + (f"/{gpu.partition}" if gpu.partition else "")
        for gpu in recording.gpus
    }
    samples = recording.samples.assign(**{GPU: recording.samples[GPU].map(names).astype(object)})
    if recording.host is None:
        return samples
    host = recording.host.rename(columns=lambda c: c if c == TIME else f"host.{c}")
    if samples.empty:
        import pandas as pd  # noqa: PLC0415 - only where a measurement ends

        samples = pd.DataFrame(
            {TIME: host[TIME], GPU: pd.Series([None] * len(host), dtype="string")}
        )
    return samples.merge(host, on=TIME, how="left")


def _write_parquet(
    target: Path, rows: Callable[[duckdb.DuckDBPyConnection], duckdb.DuckDBPyRelation]
) -> None:
    """Write rows by time, whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    import duckdb  # noqa: PLC0415 - only where a measurement ends

    draft = target.with_name(f".{target.name}.{os.uname().nodename}-{os.getpid()}.draft")
    try:
        with duckdb.connect() as database:
            rows(database).order("t_s, gpu").write_parquet(str(draft))
        draft.replace(target)
    except (duckdb.Error, OSError) as error:
        draft.unlink(missing_ok=True)
        first = str(error).splitlines()[0]
        raise InputError(f"{target}: cannot be written: {first}.") from error


def _step_lines(steps: pd.DataFrame) -> str:
    """Return a line a row, means over its `n` steps; a figure that was not measured is left out."""
    lines = []
    for row in steps.to_dict("records"):
        n = row["n"]
        means = {name: round(row[name] / n, _DIGITS) for name in SUMMED if row[name] == row[name]}
        if row["loss"] == row["loss"]:
            means["loss"] = row["loss"]
        line = StepLine(t_s=round(row["t_s"], 6), step=int(row["step"]), n=int(n), **means)
        lines.append(json.dumps(encode(line), separators=(",", ":")))
    return "\n".join(lines) + "\n"


_TARGET = "target"

_RUN_DIGITS = 8
_TRIES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The profile of a run, as far as its parts are there.

    Attributes:
        profile: of the parts that are there.
        target: where it lies.
        parts: measured until now.
        world: processes of the whole run.
        complete: whether all are there.
    """

    profile: Profile
    target: Path
    parts: int
    world: int
    complete: bool


def is_part(profile: Profile) -> bool:
    """Return whether a profile is of some processes of a run, and the others are measured apart."""
    run = profile.run
    if run is None or run.id is None or not run.world or run.world <= 1:
        return False
    return len(profile.ranks) < run.world


def add_part(
    profile: Profile, run_name: OutputName, own: Path, write: Callable[[Profile, Path], Profile]
) -> Joined:
    """Add a part to its run, and write the run's profile anew.

    Args:
        profile: the part, for which `is_part` holds.
        run_name: where the profile of the run goes.
        own: the name that the part has claimed for itself.
        write: writes the part with its series under a name, and returns it with the series named.

    Raises:
        InputError: something cannot be written.
    """
    run = str(profile.run.id if profile.run else None)
    digits = hashlib.sha256(run.encode()).hexdigest()[:_RUN_DIGITS]
    folder = Path(run_name.path).with_name(f".profile.{digits}.parts")
    for _ in range(_TRIES):
        try:
            folder.mkdir(exist_ok=True)
            target = _agreed(folder, free_for_run(run_name, own, profile.job.name, digits))
            name = folder / f"{os.uname().nodename}-{os.getpid()}-{own.name}"
            write(profile, name)
            with _locked(folder):
                return _joined(folder, target, name)
        except (FileNotFoundError, InputError):
            # The part that made the run whole has just removed the folder.
            if folder.exists():
                raise
    raise InputError(f"{folder}: cannot be written to; the part of this run is lost.")


def _agreed(folder: Path, name: Path) -> Path:
    """Return the name that the first part of the run chose."""
    chosen = folder / _TARGET
    draft = folder / f".{_TARGET}-{os.uname().nodename}-{os.getpid()}"
    if not chosen.exists():
        draft.write_text(name.name, encoding="utf-8")
        with contextlib.suppress(FileExistsError):
            os.link(draft, chosen)
        draft.unlink()
    return folder.with_name(chosen.read_text(encoding="utf-8"))


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other parts of the run from writing meanwhile, where the file system can."""
    with (folder / "lock").open("ab") as lock:
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _joined(folder: Path, target: Path, own: Path) -> Joined:
    """Write the run's profile from the parts that are there, until no new one has come."""
    while True:
        if not folder.exists():  # a later part has joined this one, too, and the run is whole
            return _read(target)
        names = _parts(folder)
        parts = {name: _load(name) for name in names}
        # Others are of an earlier run of that name, of which a part was lost.
        same = {name: part for name, part in parts.items() if overlap(part, parts[own])}
        profile = _with_note(join([*same.values()]) if len(same) > 1 else parts[own], len(same))
        profile = _with_series(profile, same, target)
        write_file(str(target), dump((profile,)))
        if _parts(folder) == names:
            break
    measured, world = _counts(profile, len(same))
    if measured >= world:
        shutil.rmtree(folder, ignore_errors=True)
    return Joined(
        profile=profile, target=target, parts=measured, world=world, complete=measured >= world
    )


def _counts(profile: Profile, parts: int) -> tuple[int, int]:
    """Return how many processes of the run are measured, and how many it has."""
    world = (profile.run.world if profile.run else None) or parts
    return len(profile.ranks) or parts, world


def _read(target: Path) -> Joined:
    profile = _load(target)
    world = (profile.run.world if profile.run else None) or 1
    return Joined(profile=profile, target=target, parts=world, world=world, complete=False)


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("[!.]*.json"))


def _load(path: Path) -> Profile:
    (profile,) = parse_profiles(path.read_bytes(), path.name)
    return profile


def _with_note(profile: Profile, parts: int) -> Profile:
    """Return the profile of a run, which says so where some of its ranks are not in it."""
    measured, world = _counts(profile, parts)
    if measured >= world:
        return profile
    note = f"{measured} of {world} processes of the run are in this profile."
    provenance = profile.provenance
    return replace(profile, provenance=replace(provenance, notes=(note, *provenance.notes)))


def _with_series(profile: Profile, parts: Mapping[Path, Profile], target: Path) -> Profile:
    """Put the leading part's steps and the readings of all parts beside the run's profile."""
    lead = max(parts, key=lambda name: ((step := parts[name].step) and step.count) or 0)
    steps, led = (_sibling(name, STEPS) for name in (target, lead))
    if led.exists():
        write_file(str(steps), led.read_text(encoding="utf-8"))
    samples = _sibling(target, SAMPLES)
    _write_together(parts, samples)
    sha256 = hashlib.sha256(samples.read_bytes()).hexdigest()
    sources = [
        replace(source, path=samples.name, sha256=sha256) for source in profile.provenance.sources
    ]
    return replace(
        profile,
        series=Series(samples=samples.name, steps=steps.name if led.exists() else None),
        provenance=replace(profile.provenance, sources=tuple(sources[:1])),
    )


def _sibling(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.stem}{ending}")


def _write_together(parts: Mapping[Path, Profile], target: Path) -> None:
    """Write the readings of all parts as one file, by time.

    Where they are of several machines, a GPU is named with its machine's number: `1/0`.
    """
    nodes = [part.run.node if part.run else None for part in parts.values()]
    numbers = {node: i for i, node in enumerate(dict.fromkeys(nodes))}
    queries = []
    for name, node in zip(parts, nodes, strict=True):
        prefix = f"{numbers[node]}/" if len(numbers) > 1 else ""
        path = str(_sibling(name, SAMPLES)).replace("'", "''")
        named = f"SELECT * REPLACE ('{prefix}' || gpu AS gpu) FROM read_parquet('{path}')"  # noqa: S608 - names of ours
        queries.append(named)
    _write_parquet(target, lambda database: database.sql(" UNION ALL BY NAME ".join(queries)))


def read_run(path: str, job: str | None, say: Callable[[str], None]) -> MeasuredRun:
    """Return the run in a SOURCE, with its series of steps where that lies beside its profile.

    Args:
        path: as the command line gives it.
        job: which of several jobs; None where there is one.
        say: told what was left out.

    Raises:
        InputError: it cannot be read, holds several jobs, or has no such job.
    """
    from gpucost.live.sources import read_sources  # noqa: PLC0415 - no measurement needs the planner

    profile = _chosen(path, read_sources((path,), say), job)
    return MeasuredRun(name=path, profile=profile, steps=_steps_beside(path, profile, say))


def _chosen(path: str, profiles: tuple[Profile, ...], job: str | None) -> Profile:
    fitting = [profile for profile in profiles if job is None or profile.job.name == job]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(profile.job.name for profile in profiles)
    if job is not None:
        raise InputError(f"{path}: {len(fitting)} jobs are called {job!r}; it has {names}.")
    raise InputError(f"{path}: holds {len(profiles)} jobs ({names}); say which: --job NAME.")


def _steps_beside(path: str, profile: Profile, say: Callable[[str], None]) -> tuple[StepRow, ...]:
    named = profile.series.steps if profile.series else None
    if named is None or path == "-":
        return ()
    steps_file = Path(path).parent / Path(named).name
    try:
        text = steps_file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        say(f"{path}: its steps ({steps_file}) cannot be read; its interval is the wider for it.")
        return ()
    return parse_steps(text, str(steps_file))
