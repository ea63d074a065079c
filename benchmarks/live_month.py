"""A month of 1,000 GPUs out of a real Prometheus or VictoriaMetrics: time, CPU and memory of both.

The fleet is drawn (`tests/live/fleet.py`): 12 metrics of dcgm-exporter, pods, jobs, four teams. It
is written through the server's remote-write door, a series' last reading followed by the mark that
a scraper leaves when a pod ends. Then the server is started anew and asked.

Usage: python benchmarks/live_month.py [--days 30] [--gpus 1000] [--step 60] [--server prometheus]
[--folder FOLDER [--fill]] [--twice] [--kill 3]. Printed are seconds of CPU and the most memory of
each process; with --kill the import is killed (SIGKILL) that many times on its way, and must give
the same bytes. A folder that has been filled is not filled again. A month needs some 20 GB of disk.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.live.fleet import DAY_S, METRICS, Fleet
from tests.live.servers import STALE, encoded_labels, free_port, remote_write, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.live.servers import Server

BEGIN_S = 1_792_368_000  # 2026-10-19, a midnight
# Prometheus takes nothing that is an hour older than what it had before a request, so that all
# series come together; the longest of these that is at most 120 points a series.
_MINUTES = (1440, 720, 480, 360, 240, 120, 60)
_POINTS = 120
_MIB = 1 << 20


def main() -> None:
    """Fill, ask, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--gpus", type=int, default=1000)
    parser.add_argument(
        "--server", choices=("prometheus", "victoria-metrics"), default="prometheus"
    )
    parser.add_argument("--step", type=int, default=60)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--kill", type=int, default=0)
    parser.add_argument("--fill", action="store_true")
    parser.add_argument("--twice", action="store_true")
    asked = parser.parse_args()
    fleet = Fleet(gpus=asked.gpus, begin_s=BEGIN_S, step_s=asked.step)
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.folder or Path(scratch) / "server"
        _fill(fleet, asked.days, asked.server, folder)
        if asked.fill:
            return
        digests, port = set(), free_port()  # its address stands in the profiles
        for kills in (0,) * (2 if asked.twice else 1) + ((asked.kill,) if asked.kill else ()):
            with running(asked.server, folder, port) as server:
                digests.add(_import(server, fleet, asked.days, Path(scratch), kills))
        print("the same bytes each time" if len(digests) == 1 else "DIFFERENT BYTES")


def _fill(fleet: Fleet, days: int, kind: str, folder: Path) -> None:
    done = folder / f"filled-{fleet.gpus}-{days}-{fleet.step_s}"
    if done.exists():
        return
    began = time.monotonic()
    length = next(one for one in _MINUTES if one * 60 <= _POINTS * fleet.step_s)
    with running(kind, folder) as server:
        for day in range(days):
            for minute in range(0, DAY_S // 60, length):
                whole = chain(_pods(fleet, day, minute), _stretch(fleet, day, (minute, length)))
                server.write(remote_write(whole))
            print(f"filled day {day + 1} of {days}, {time.monotonic() - began:.0f} s", flush=True)
        time.sleep(5)
        print(f"server while it was filled: {_spent(server)}")
    done.touch()


_drawn: dict[int, list[tuple[str, list[bytes], np.ndarray]]] = {}


def _stretch(
    fleet: Fleet, day: int, stretch: tuple[int, int]
) -> Iterator[tuple[bytes, np.ndarray, np.ndarray]]:
    """Yield some minutes of every GPU's series; a mark where they end with the day."""
    if day not in _drawn:
        _drawn.clear()
        _drawn[day] = [
            (name, [encoded_labels({"__name__": name, **one}) for one in labels], values)
            for name, labels, values in fleet.readings(range(fleet.gpus), day)
        ]
    minute, length = stretch
    rows = slice(minute * 60 // fleet.step_s, (minute + length) * 60 // fleet.step_s)
    times = 1000 * (BEGIN_S + day * DAY_S + fleet.step_s * np.arange(DAY_S // fleet.step_s))[rows]
    last = minute + length == DAY_S // 60
    ends = [last and fleet.tenant(g, day) != fleet.tenant(g, day + 1) for g in range(fleet.gpus)]
    for _, labels, values in _drawn[day]:
        for gpu in range(fleet.gpus):
            mine, when = values[gpu, rows], times
            if ends[gpu]:
                mine = np.append(mine, STALE)
                when = np.append(when, when[-1] + 30_000)
            yield labels[gpu], when, mine


def _pods(fleet: Fleet, day: int, minute: int) -> Iterator[tuple[bytes, np.ndarray, np.ndarray]]:
    when = np.array([1000 * (BEGIN_S + day * DAY_S + minute * 60)])
    for labels in fleet.pods(day):
        yield encoded_labels({"__name__": "kube_pod_labels", **labels}), when, np.ones(1)


def _import(server: Server, fleet: Fleet, days: int, scratch: Path, kills: int) -> str:
    out, cache = scratch / f"out-{time.monotonic_ns()}", scratch / "cache"
    # The last instant asked for is the last one that was scraped.
    until = time.strftime("%Y-%m-%dT%H:%M", time.gmtime(BEGIN_S + days * DAY_S - fleet.step_s))
    since = f"{days * DAY_S - fleet.step_s}s"
    source = f"prometheus+{server.url}"
    command = [sys.executable, "-m", "gpucost", "import", source, "--since", since]
    command += ["--until", until, "--step", f"{fleet.step_s}s", "-o", f"{out}/"]
    env = {**os.environ, "GPUCOST_CACHE_DIR": str(cache)}
    began, cpu_s, most_kib, killed = time.monotonic(), 0.0, 0, 0
    kept_bytes = 0
    while True:
        with (scratch / "told").open("wb") as told:
            process = subprocess.Popen(command, env=env, stdout=told, stderr=told)
            had = _parts(cache)
            while killed < kills and process.poll() is None:
                time.sleep(0.05)
                if _parts(cache) >= had + len(METRICS) * max(1, days // 4):
                    process.send_signal(signal.SIGKILL)
                    killed += 1
                    break
            _, status, used = os.wait4(process.pid, 0)
        cpu_s += used.ru_utime + used.ru_stime
        most_kib = max(most_kib, used.ru_maxrss)
        if not os.WIFSIGNALED(status):
            break
        kept_bytes = sum(file.stat().st_size for file in cache.rglob("*.part"))
    if os.waitstatus_to_exitcode(status):
        raise SystemExit((scratch / "told").read_text()[-2000:])
    files = sorted(out.iterdir())
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + file.read_bytes())
    text = [file.read_text(encoding="utf-8") for file in files]
    teams = sum('"team": "' in one for one in text)
    machines = sum('"machine": "' in one for one in text)
    points = fleet.gpus * len(METRICS) * days * DAY_S // fleet.step_s
    wall_s = time.monotonic() - began
    print(
        f"{points / 1e6:.1f} million points to {len(files):,} profiles ({teams:,} with a team, "
        f"{machines:,} with a machine): {wall_s:.0f} s, import {cpu_s:.0f} s of CPU and "
        f"{most_kib / 1024:.0f} MiB at most; server {_spent(server)}"
        + (f"; killed {killed} times, {kept_bytes / _MIB:.0f} MiB were kept" if killed else ""),
        flush=True,
    )
    return digest.hexdigest()


def _parts(cache: Path) -> int:
    return sum(1 for _ in cache.rglob("*.part")) if cache.exists() else 0


def _spent(server: Server) -> str:
    process = psutil.Process(server.process.pid)
    times = process.cpu_times()
    peak = next(
        int(line.split()[1]) / 1024
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines()
        if line.startswith("VmHWM")
    )
    return f"{times.user + times.system:.0f} s of CPU and {peak:.0f} MiB at most"


if __name__ == "__main__":
    main()
