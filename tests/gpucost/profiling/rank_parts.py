"""Parts of a run as the tests of joining make them; light, for processes of their own import it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
from msgspec.structs import replace

from gpucost.files.writing import write_file
from gpucost.profiling import run_files
from gpucost.profiling.profile_target import OutputName
from planner.profile.codec import dump
from planner.profile.model import (
    Hardware,
    Host,
    Job,
    Profile,
    Rank,
    Run,
    Series,
    Statistics,
    Step,
    Window,
    Work,
)

_PATIENCE_S = 120.0
START = datetime(2026, 11, 22, 10, tzinfo=UTC)
WORLD = 4


def part_of(rank: int, *, node: str = "a", start: datetime = START, run: str = "77") -> Profile:
    """Return what one rank measured."""
    return Profile(
        job=Job(name="train", kind="training"),
        hardware=Hardware(cpu_cores=4.0),
        window=Window(start=start, duration_s=60.0),
        work=Work(unit="sample", done=100.0, rate_per_s=2.0),
        step=Step(count=10 + (rank == 2), mean_s=0.1),
        ranks=(Rank(rank=rank, steps=10),),
        host=Host(cpu_util=Statistics(mean=0.1, max=0.2), ram_used_gib=Statistics(max=3.0)),
        run=Run(id=run, node=node, world=WORLD, cpus="0-3"),
    )


def _write(profile: Profile, path: Path) -> Profile:
    """Write a part as a measurement does."""
    samples, steps = (
        path.with_name(f"{path.stem}{end}") for end in (".samples.parquet", ".steps.jsonl")
    )
    gpu = profile.ranks[0].rank
    duckdb.sql(f"SELECT {gpu}.5 AS t_s, '{gpu}' AS gpu").write_parquet(str(samples))
    steps.write_text(json.dumps({"step": gpu}) + "\n", encoding="utf-8")
    write_file(str(path), dump((profile,)))
    return replace(profile, series=Series(samples=samples.name, steps=steps.name))


def put(folder: Path, part: Profile, *, asked: bool = False) -> run_files.Joined:
    """Add a part to the run's profile in a folder."""
    run_name = OutputName(path=str(folder / "profile.json"), requested=asked)
    return run_files.add_part(part, run_name, folder / f"own.{part.ranks[0].rank}.json", _write)


def put_with_others(folder: Path, rank: int, all_there: Any) -> None:
    """Add a rank's part once the other ranks are there, too."""
    all_there.wait(_PATIENCE_S)
    put(folder, part_of(rank))
