"""What `gpucost profile` costs around a job: its start, its signals, its end; beside a bare run.

Whole processes on this machine, bare and measured in turns. The NVIDIA driver is a stand-in
(tests/fake_nvml), once as it should be and once hanging. Prints times and always exits 0: on a
shared machine a time is a measurement, not a test.

Usage: python benchmarks/around.py [RUNS]
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.fake_nvml.fixture import build, environment  # noqa: E402 - of this checkout
from tests.fake_nvml.machines import h100, machine  # noqa: E402
from tests.fake_nvml.scenario import HANGS, Failure, Scenario  # noqa: E402

PYTHON = sys.executable
GPUCOST = str(Path(PYTHON).with_name("gpucost"))
RUNS = 7
START_S, SIGNAL_S, END_S = 0.1, 0.1, 1.0
# A job without a start of its own: the shell says when it ran, was signalled, and ended.
STARTED = "date +%s.%N >started"
JOB = (
    "trap 'date +%s.%N >caught' USR1; date +%s.%N >started; "
    "n=0; while [ $n -lt {ticks} ]; do sleep 0.1; n=$((n+1)); done; date +%s.%N >ended"
)
LASTS = 40  # ticks of the job that is signalled: more than four seconds


def moment(folder: Path, name: str) -> float:
    """Return the time that the job wrote down, once it is there."""
    path = folder / name
    while not (path.exists() and path.read_text()):
        time.sleep(0.001)
    return float(path.read_text())


def start_delay(front: Sequence[str], folder: Path, environ: Mapping[str, str]) -> float:
    """Return the seconds from our start of the command to its own first act."""
    (folder / "started").unlink(missing_ok=True)
    begun_s = time.time()
    quiet = subprocess.DEVNULL
    command = [*front, "sh", "-c", STARTED]
    subprocess.run(command, cwd=folder, env=dict(environ), check=True, stderr=quiet)
    return moment(folder, "started") - begun_s


def around(front: Sequence[str], folder: Path, environ: Mapping[str, str]) -> tuple[float, float]:
    """Return the seconds that a signal takes, and those from the job's end to ours."""
    for name in ("started", "caught", "ended"):
        (folder / name).unlink(missing_ok=True)
    command = [*front, "sh", "-c", JOB.format(ticks=LASTS)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=folder, env=dict(environ), stderr=quiet) as process:
        moment(folder, "started")
        time.sleep(2.03)
        sent_s = time.time()
        process.send_signal(signal.SIGUSR1)
        caught_s = moment(folder, "caught") - sent_s
        process.wait()
        return caught_s, time.time() - moment(folder, "ended")


def line(name: str, times: Sequence[float], base: Sequence[float], promised_s: float) -> str:
    """Return a line of medians, in milliseconds, beside the bare run."""
    mine, bare = statistics.median(times) * 1e3, statistics.median(base) * 1e3
    return (
        f"  {name:<34} median {mine:6.0f} ms (worst {max(times) * 1e3:6.0f}), bare {bare:6.0f}: "
        f"{mine - bare:+6.0f} ms; promised at most {promised_s * 1e3:.0f}"
    )


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    runs = int(arguments[0]) if arguments else RUNS
    load = os.getloadavg()[0]
    print(f"{runs} runs in turns, {os.cpu_count()} cores, load {load:.1f}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = build(folder / "nvml")
        hang = [Failure(function="*", device="0", code=HANGS, from_s=1.0)]
        never = [Failure(function="nvmlInitWithFlags", code=HANGS)]
        worlds: dict[str, Callable[[], Scenario]] = {
            "8 GPUs": lambda: Scenario(devices=machine(8, h100)),
            "NVML hangs after 1 s": lambda: Scenario(devices=machine(8, h100), failures=hang),
            "NVML never answers": lambda: Scenario(devices=machine(8, h100), failures=never),
        }
        for world, scenario in worlds.items():
            trace = folder / "trace.txt"
            trace.write_text(scenario().text())
            environ = environment(library, trace)
            front = (GPUCOST, "profile", "-q", "-o", "p.json", "--")
            # What any Python program with a command line of this kind costs before it can start.
            click = (PYTHON, "-c", "import click, os, sys; os.execvp(sys.argv[1], sys.argv[1:])")
            starts, bare_starts, mine, bare = [], [], [], []
            for _ in range(runs):
                starts.append(start_delay(front, folder, environ))
                bare_starts.append(start_delay(click, folder, environ))
                mine.append(around(front, folder, environ))
                bare.append(around((), folder, environ))
            print(world)
            print(line("start, beyond Python and click", starts, bare_starts, START_S))
            signals, ends = zip(*mine, strict=True)
            bare_signals, bare_ends = zip(*bare, strict=True)
            # The shell takes a signal when its `sleep 0.1` is over, bare as well.
            print(line("a signal sent to us alone", signals, bare_signals, SIGNAL_S))
            print(line("from the job's end to ours", ends, bare_ends, END_S))


if __name__ == "__main__":
    main(sys.argv[1:])
