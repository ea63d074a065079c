"""A week of 8 GPUs and 8 ranks at a reading a second, on a clock that is driven: disk and memory.

Driven through the real writer and the real readers; what it prints is quoted in
docs/how-to/measure-a-job.md. A full week takes some minutes of a core.
"""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from telemetry.recording.recording import GpuIdentity

GPUS, RANKS = 8, 8
WEEK_S, BEGIN_S = 7 * 86400, 1_790_000_000.0
MB = 1e6
_READ = """
import resource
from telemetry.readers.hints import Hints
from telemetry.sources import read_telemetry
(profile,) = read_telemetry([{path!r}], Hints())
print(profile.step.count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def main() -> None:
    """Print what a week costs: `python benchmarks/week.py [SECONDS]`."""
    length_s = int(float(sys.argv[1])) if len(sys.argv) > 1 else WEEK_S
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "week.capture.jsonl"
        begun_s = time.process_time()
        most_bytes = _drive(path, length_s)
        spent_s = time.process_time() - begun_s
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{length_s / 86400:.2f} days of {GPUS} GPUs and {RANKS} ranks, a reading a second")
        print(f"capture: at most {most_bytes / MB:.0f} MB on disk while it is written")
        print(
            f"writer: {memory:.0f} MiB of memory, {1e6 * spent_s / length_s:.0f} us of CPU a tick"
        )
        for size in _read(path):
            print(size)


def _drive(path: Path, length_s: int) -> int:
    from telemetry.measure.capture_file import CaptureFile  # noqa: PLC0415 - measured

    rng = random.Random(3)  # noqa: S311 - noise
    capture = CaptureFile(path)
    capture.begin(BEGIN_S, {"job": "week", "interval_s": 1.0, "cpu_cores": 96, "ram_gib": 1000.0})
    counts = [0.0] * GPUS
    most = 0
    lines = [_Lines(rank) for rank in range(RANKS)]
    capture.lines([line for rank in lines for line in rank.first()])
    for second in range(length_s):
        t_s = BEGIN_S + second
        for gpu in range(GPUS):
            capture.row(t_s, _identity(gpu), _readings(rng, counts, gpu))
        capture.row(t_s, None, _host(rng))
        capture.lines([line for rank in lines for line in rank.due(second)])
        if second % 600 == 0:
            most = max(most, sum(entry.stat().st_size for entry in path.parent.iterdir()))
    capture.end(BEGIN_S + length_s)
    return most


def _identity(gpu: int) -> "GpuIdentity":
    from telemetry.recording.recording import GpuIdentity  # noqa: PLC0415 - measured

    name = f"GPU-{gpu}"
    model = "NVIDIA H100 80GB HBM3"
    return GpuIdentity(key=name, index=gpu, uuid=name, model=model, memory_gib=80.0)


def _readings(rng: random.Random, counts: list[float], gpu: int) -> dict[str, float]:
    load = min(1.0, max(0.0, rng.gauss(0.7, 0.15)))
    watts = 100.0 + 550.0 * load + 10.0 * rng.random()
    counts[gpu] += watts
    return {
        "util.kernel_time": round(load, 2),
        "util.mem_controller": round(0.6 * load, 2),
        "mem.used_gib": 60.0 + rng.random(),
        "mem.process_gib": 59.0,
        "power.board_w": watts,
        "power.limit_w": 700.0,
        "temp.core_c": 45.0 + round(20.0 * load),
        "clock.sm_mhz": 1980.0 - 15.0 * rng.randrange(8),
        "throttle.fraction": 0.0,
        "counter.energy_j": counts[gpu],
        "counter.pcie_rx_mib": 3.0 * counts[gpu],
        "counter.pcie_tx_mib": counts[gpu],
        "counter.gpm_sm_active_s": counts[gpu] / 1000.0,
        "counter.gpm_tensor_active_s": counts[gpu] / 3000.0,
    }


def _host(rng: random.Random) -> dict[str, float]:
    return {
        "cpu_util": rng.random(),
        "cpu_busiest_core": rng.random(),
        "ram_used_gib": 200.0 + rng.random(),
        "disk_read_mib_s": rng.expovariate(0.01),
        "disk_write_mib_s": rng.expovariate(1.0),
        "net_rx_mib_s": rng.expovariate(0.01),
        "net_tx_mib_s": rng.expovariate(0.01),
    }


class _Lines:
    """What the probe of a rank writes: steps of a quarter of a second, in its widening lines."""

    def __init__(self, rank: int) -> None:
        from telemetry.probe.path.gpucost_probe.tally import width_s  # noqa: PLC0415

        self._width_s = width_s
        self._rank = rank
        self._process = f"{1000 + rank}-1"
        self._line_s = 0.0
        self._at = 0

    def first(self) -> list[str]:
        """Return who is speaking."""
        hello = {"event": "hello", "t_s": BEGIN_S, "ppid": 1, "framework": "pytorch"}
        rank = {"event": "rank", "t_s": BEGIN_S, "rank": self._rank, "world": RANKS}
        return [
            json.dumps({**event, "process": self._process}, separators=(",", ":"))
            for event in (hello, rank)
        ]

    def due(self, second: int) -> list[str]:
        """Return the lines that are due by a second."""
        found = []
        width = max(0.25, self._width_s(float(second)))
        while self._line_s + width <= second:
            self._line_s += width
            found.append(self._step(round(width / 0.25)))
        return found

    def _step(self, n: int) -> str:
        event = {"event": "step", "t_s": BEGIN_S + self._line_s, "step": int(self._line_s * 4)}
        event |= {"n": n, "step_s": 0.25 * n, "data_wait_s": 0.01 * n, "h2d_s": 0.002 * n}
        event |= {"optimizer_s": 0.01 * n, "checkpoint_s": 0.0, "evaluation_s": 0.0}
        event |= {"items": 64 * n, "loader": 1, "longest_s": 0.3}
        event |= {"lengths": {"-33": n - n // 2, "-31": n // 2} if n > 1 else {}}
        self._at += 300
        return json.dumps(
            {**event, "at": self._at, "process": self._process}, separators=(",", ":")
        )


def _read(path: Path) -> list[str]:
    script = _READ.format(path=str(path))
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)},
    )
    steps, memory = ran.stdout.split()
    size = path.stat().st_size / MB
    return [
        f"capture at the end: {size:.0f} MB",
        f"import: {float(memory):.0f} MiB of memory, {int(steps):,} steps",
    ]


if __name__ == "__main__":
    main()
