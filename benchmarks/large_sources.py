"""How large logs and tables fare: `python benchmarks/large_sources.py [MILLION ROWS] [DAYS]`.

A made log of nvidia-smi against duckdb's own average of one of its columns, as many rows in four
logs of one job, and made Parquet of 1,000 GPUs at a reading every 15 s to a profile a GPU. Each is
done in a process of its own, those of the log in turns, three times. Prints seconds of CPU and the
most memory; nothing is judged.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from telemetry.readers.hints import Hints
from telemetry.sources import read_telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

HEADER = (
    "timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], "
    "power.draw [W], temperature.gpu"
)
GPUS, TICKS = 8, 10_000
TURNS, NODES = 3, 4
FLEET = """
copy (
  select 1795176000 + t as ts, 'job-' || g as job, 'node-' || (g // 8) as host,
    g % 8 as gpu_index, 'GPU-f' || g as uuid, 'NVIDIA H100 80GB HBM3' as name,
    (hash(t * 1009 + g) % 101)::double as gpu_util, 20000.0 + hash(t + g) % 50000 as memory_used,
    90 + (hash(t * 7 + g) % 60000) / 100.0 as power
  from range(0, {seconds}, 15) a(t), range(1000) b(g)
) to '{file}' (format parquet)
"""


def write_log(file: Path, rows: int, node: int = 0) -> None:
    """Write a node's log of eight GPUs at a reading a second."""
    draw = np.random.default_rng(1)
    start = np.datetime64("2026-11-01T00:00:00.100", "ms")
    with file.open("w", encoding="utf-8") as out:
        out.write(HEADER + "\n")
        for first in range(0, rows // GPUS, TICKS):
            stamps = np.datetime_as_string(start + np.arange(first, first + TICKS) * 1000)
            load = draw.integers(0, 101, (TICKS, GPUS))
            watts = draw.uniform(80, 690, (TICKS, GPUS))
            out.writelines(
                f"{stamp.replace('-', '/').replace('T', ' ')}, {g}, "
                f"GPU-1b0f0c1e-000{node}-4000-8000-00000000000{g}, NVIDIA H100 80GB HBM3, "
                f"{load[i, g]} %, {20000 + load[i, g]} MiB, 81559 MiB, {watts[i, g]:.2f} W, "
                f"{30 + load[i, g] // 2}\n"
                for i, stamp in enumerate(stamps)
                for g in range(GPUS)
            )


def timed(what: str, work: Callable[[], object]) -> float:
    """Print how long something takes in a process of its own; return its seconds of CPU."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        cpu, wall, most = pool.submit(_measured, work).result()
    print(f"{what}: {cpu:.1f} s of CPU, {wall:.1f} s, at most {most} MiB", flush=True)
    return cpu


def _measured(work: Callable[[], object]) -> tuple[float, float, int]:
    cpu, wall = time.process_time(), time.monotonic()
    work()
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    return cpu, wall, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def average(log: Path) -> None:
    """Let duckdb tell the average of one column."""
    cell = "cast(replace(\"utilization.gpu [%]\", ' %', '') as double)"
    base = duckdb.connect()
    base.execute("set enable_progress_bar = false")
    base.execute(f"select avg({cell}) from '{log}'").fetchall()  # noqa: S608 - ours


def profile(source: Path) -> None:
    """Make profiles of a source."""
    read_telemetry([str(source)], Hints())


def joined(logs: list[Path]) -> None:
    """Make one profile of several logs."""
    read_telemetry([str(log) for log in logs], Hints(name="joined"))


def main() -> None:
    """Time a log, then a fleet's table."""
    millions = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    days = float(sys.argv[2]) if len(sys.argv) > 2 else 0.1  # noqa: PLR2004 - the second argument
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "smi.csv"
        write_log(log, int(millions * 1e6))
        ratios = []
        for _ in range(TURNS):
            base = timed("duckdb's average", partial(average, log))
            ours = timed(f"profile of {millions:g} M rows", partial(profile, log))
            ratios.append(ours / base)
        print(f"ratio of CPU: {', '.join(f'{one:.2f}' for one in sorted(ratios))}")
        log.unlink()
        logs = [Path(folder) / f"node-{node}.csv" for node in range(NODES)]
        for node, part in enumerate(logs):
            write_log(part, int(millions * 1e6 / NODES), node)
        timed(f"one profile of {NODES} logs of {millions / NODES:g} M rows", partial(joined, logs))
        fleet = Path(folder) / "fleet.parquet"
        duckdb.connect().execute(FLEET.format(seconds=int(days * 86400), file=fleet))
        timed(f"1,000 profiles of {days:g} days", partial(profile, fleet))


if __name__ == "__main__":
    main()
