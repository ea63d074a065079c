"""How long `gpucost plan` takes for a fleet: the whole process, its memory, and where time goes.

Jobs are made by us: the bundled examples in turns, each time with other hours, load and memory (the
same for each run), so that no two jobs measure the same, while kinds of job, GPUs and providers
repeat as they do in a fleet. Everything is in one folder and is planned at the defaults, packing
included. The catalog is the bundled one. Nothing is asserted; the exit code is that of the plan.

Usage: python benchmarks/fleet_plan.py [JOBS]... [--stages]
       JOBS is 1000 where nothing is said; --stages plans once more in one process, timed by part
"""

import contextlib
import cProfile
import io
import json
import os
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from same_bytes import DAY, EXAMPLES, fleet

STAGES = {
    "read the profiles": "read_sources",
    "diagnose": "diagnose",
    "find candidates": "find_candidates",
    "rank them": "rank_candidates",
    "all of the jobs": "plan_jobs",
    "pack": "answer",
    "pack elsewhere": "find_alternatives",
    "pack who moves": "searched",
    "values of plan.json": "to_plan",
    "write it": "_write",
    "print": "_print",
}


def profiles(folder: Path, jobs: int) -> None:
    """Write so many profiles into a folder."""
    known = [
        *sorted(EXAMPLES.glob("*.json")),
        *sorted((EXAMPLES / "hard").glob("*.json")),
        *sorted((EXAMPLES / "fleet").glob("*.json")),
        *sorted((EXAMPLES / "hard" / "pods-one-machine").glob("*.json")),
    ]
    for number, profile in enumerate(fleet([json.loads(p.read_bytes()) for p in known], jobs)):
        (folder / f"{number:05}.json").write_text(json.dumps(profile), encoding="utf-8")


def timed(jobs: int, stages: bool) -> int:  # noqa: FBT001 - a flag of this script
    """Plan so many jobs and print what it takes; return the exit code."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "jobs").mkdir()
        (place / "settings.toml").touch()
        profiles(place / "jobs", jobs)
        words = ["plan", str(place / "jobs"), "--as-of", DAY, "-q", "-o", str(place / "plan.json")]
        environ = {
            **os.environ,
            "GPUCOST_CACHE_DIR": name,
            "GPUCOST_CONFIG": str(place / "settings.toml"),
            "GPUCOST_STATE_DIR": name,
        }
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        command = (sys.executable, "-m", "gpucost", *words)
        with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL) as done:
            most_kib = _most_memory_kib(done)
        wall_s = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        size = (place / "plan.json").stat().st_size if (place / "plan.json").exists() else 0
        print(
            f"{jobs} jobs: {wall_s:.1f} s, {cpu_s:.1f} s of CPU ({cpu_s / jobs * 1e3:.1f} ms a "
            f"job), most memory {most_kib / 1024:.0f} MiB in all processes together, "
            f"{after.ru_maxrss / 1024:.0f} MiB in one, plan.json {size / 2**20:.0f} MiB, exit code "
            f"{done.returncode}",
            flush=True,
        )
        if stages:
            os.environ.update(environ)
            _stages(words)
        return done.returncode


def _most_memory_kib(done: subprocess.Popen[bytes]) -> int:
    """Wait for a process; return the most memory that it and its children held at once (PSS).

    Looked at four times a second, on Linux alone; 0 elsewhere.
    """
    most = 0
    while done.poll() is None:
        most = max(most, _memory_kib(done.pid))
        time.sleep(0.25)
    return most


def _memory_kib(process: int) -> int:
    place, total = Path("/proc") / str(process), 0
    with contextlib.suppress(OSError):
        for line in (place / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
        children = (place / "task" / str(process) / "children").read_text().split()
        total += sum(_memory_kib(int(child)) for child in children)
    return total


def _stages(words: Sequence[str]) -> None:
    """Print the seconds in each part of one plan; a profiler is on, so all of them are longer."""
    from gpucost.cli import run  # noqa: PLC0415 - after the environment is set

    profiler = cProfile.Profile()
    with contextlib.redirect_stdout(io.StringIO()):
        profiler.runcall(run, list(words))
    seconds: dict[str, float] = {}
    for (_, _, function), (_, _, _, cumulative, _) in pstats.Stats(profiler).stats.items():  # type: ignore[attr-defined]
        seconds[function] = max(seconds.get(function, 0.0), cumulative)
    for title, function in STAGES.items():
        print(f"  {title:20} {seconds.get(function, 0.0):8.1f} s with the profiler")


def main(arguments: Sequence[str]) -> int:
    """Time each number of jobs."""
    stages = "--stages" in arguments
    counts = [int(one) for one in arguments if one != "--stages"] or [1000]
    return max(timed(jobs, stages) for jobs in counts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
