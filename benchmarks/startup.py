"""How long gpucost takes to start and to plan, against processes that everyone can run.

Whole processes, from start to exit, with the interpreter that runs this script. The processes of a
comparison take turns, so that a busy machine slows both. Prints ratios and always exits 0: on a
shared machine a time is a measurement, not a test.

Usage: python benchmarks/startup.py [RUNS]
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "visual-search.json"
PYTHON = sys.executable
GPUCOST = str(Path(PYTHON).with_name("gpucost"))
RUNS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One command beside its baseline.

    Attributes:
        name: what is measured.
        command: the process that is measured.
        baseline_name: what it is compared with.
        baseline: the process that it is compared with.
        limit: ratio that the project promises to stay under.
    """

    name: str
    command: tuple[str, ...]
    baseline_name: str
    baseline: tuple[str, ...]
    limit: float


COMPARISONS = (
    Comparison(
        name="gpucost plan examples/visual-search.json",
        command=(GPUCOST, "plan", str(EXAMPLE)),
        baseline_name='python -c "import pandas"',
        baseline=(PYTHON, "-c", "import pandas"),
        limit=1.0,
    ),
    Comparison(
        name="gpucost --version",
        command=(GPUCOST, "--version"),
        baseline_name='python -c "import click"',
        baseline=(PYTHON, "-c", "import click"),
        limit=2.0,
    ),
)


def seconds(command: Sequence[str], folder: str) -> float:
    """Return the wall time of one whole process, in seconds."""
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - start


def measure(comparison: Comparison, runs: int) -> tuple[list[float], list[float]]:
    """Return the times of the command and of its baseline, taken in turns, in seconds."""
    mine, base = [], []
    with tempfile.TemporaryDirectory() as folder:  # no settings file of this machine's user
        for command in (comparison.command, comparison.baseline):
            seconds(command, folder)  # fill the caches of the disk and of bytecode
        for _ in range(runs):
            mine.append(seconds(comparison.command, folder))
            base.append(seconds(comparison.baseline, folder))
    return mine, base


def report(comparison: Comparison, mine: list[float], base: list[float]) -> str:
    """Return the measured times and their ratios as three lines of text."""
    ratios = {
        word: figure(mine) / figure(base)
        for word, figure in (("least", min), ("median", statistics.median))
    }
    verdict = (
        f"  ratio: {ratios['least']:.2f} of the least times, {ratios['median']:.2f} of the "
        f"medians; promised: at most {comparison.limit:g}"
    )
    lines = (_line(comparison.name, mine), _line(comparison.baseline_name, base), verdict)
    return "\n".join(lines)


def _line(name: str, times: list[float]) -> str:
    least, median = min(times) * 1000.0, statistics.median(times) * 1000.0
    return f"  {name:<42} least {least:6.0f} ms, median {median:6.0f} ms"


def main(arguments: Sequence[str]) -> None:
    """Measure every comparison and print it."""
    runs = int(arguments[0]) if arguments else RUNS
    print(
        f"whole processes, {runs} runs each in turns, Python {sys.version.split()[0]}, "
        f"{os.cpu_count()} cores"
    )
    for comparison in COMPARISONS:
        print(report(comparison, *measure(comparison, runs)))


if __name__ == "__main__":
    main(sys.argv[1:])
