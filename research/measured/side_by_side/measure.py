"""Measures jobs alone, then beside each other in turns and under MPS: `measure.py --out FOLDER`.

FOLDER/runs.csv gets each result as soon as it is there, FOLDER/profiles the profiles. The GPU's
settings are left alone; a daemon of MPS is started for the second half and ended after it.
"""

import argparse
import csv
import itertools
import json
import shutil
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from processes import RUN, Running, daemon, environment, loaded

from pricing.errors import GpucostError
from telemetry.measure.nvml_reader import NvmlReader

JOBS = (
    "resnet50-train",
    "bert-train",
    "policy-train",
    "jpeg-train",
    "llm-decode",
    "embed-serve",
    "vision-serve",
    "stream-fp32",
    "matmul-fp32",
)
TRIPLES = (
    ("embed-serve", "vision-serve", "jpeg-train"),
    ("policy-train", "embed-serve", "vision-serve"),
    ("policy-train", "jpeg-train", "llm-decode"),
    ("bert-train", "jpeg-train", "embed-serve"),
)
FIGURES = ("steps", "per_s", "service_s", "p50_s", "p95_s")
READINGS = {
    "gpu_kernel_time": "util.kernel_time",
    "gpu_sm_active": "util.sm_active",
    "gpu_dram_active": "util.dram_active",
    "gpu_power_w": "power.board_w",
}
START_S, LATE_S, READ_S = 0.1, 15.0, 0.15


class Table:
    """runs.csv."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", newline="", encoding="utf-8")
        names = ("run", "mode", "together", "job", *FIGURES, *READINGS)
        self._rows = csv.DictWriter(self._file, names, lineterminator="\n", extrasaction="ignore")
        self._rows.writeheader()
        self._run = 0

    def add(
        self,
        mode: str,
        found: dict[str, dict[str, float | None]],
        gpu: dict[str, float] | None = None,
    ) -> None:
        """Add a run: what each job says, and what the GPU read meanwhile."""
        self._run += 1
        read = {name: (gpu or {}).get(slot) for name, slot in READINGS.items()}
        row = {"run": self._run, "mode": mode, "together": "+".join(found)}
        for job, figures in found.items():
            told = {name: _short(value) for name, value in {**figures, **read}.items()}
            self._rows.writerow({**row, "job": job, **told})
        self._file.flush()


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


class Readings:
    """What the GPU says meanwhile, in a thread."""

    def __init__(self) -> None:
        self._rows: list[tuple[float, dict[str, float]]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            reader = NvmlReader()
        except GpucostError as error:
            print(error)
            return
        while True:
            self._rows += [(time.monotonic(), dict(row.values)) for row in reader.read()]
            time.sleep(READ_S)

    def means(self, from_s: float, until_s: float) -> dict[str, float]:
        """Return the means of what was read between two moments."""
        within = [values for at_s, values in list(self._rows) if from_s <= at_s <= until_s]
        found = {}
        for slot in READINGS.values():
            values = [one[slot] for one in within if slot in one]
            if values:
                found[slot] = sum(values) / len(values)
        return found


class Measuring:
    """What all runs of a mode share."""

    def __init__(
        self, mode: str, jobs: dict[str, Running], table: Table, asked: argparse.Namespace
    ):
        self._mode, self._jobs, self._table, self._asked = mode, jobs, table, asked
        self._readings = Readings()

    def run(self, names: Iterable[str], seed: int = 11) -> None:
        """Run jobs together; nothing where one of them did not get ready."""
        some = [self._jobs[name] for name in names if name in self._jobs]
        if len(some) < len(tuple(names)):
            return
        ramp_s, seconds = self._asked.ramp, self._asked.seconds
        at_s = time.monotonic() + START_S
        for one in some:
            with suppress(OSError):
                one.ask(at_s, ramp_s, seconds, seed)
        until_s = at_s + ramp_s + seconds
        found = {one.name: one.answer(until_s + LATE_S - time.monotonic()) or {} for one in some}
        self._table.add(self._mode, found, self._readings.means(at_s + ramp_s, until_s))

    def all(self, names: Sequence[str]) -> None:
        """Run everyone alone, all pairs and some triples; alone and pairs again; and alone."""
        mixed = sorted(itertools.combinations(names, 2), key=_mixed)
        for turn, pairs in enumerate((mixed, mixed[::-1])):
            for name in names:
                self.run((name,))
            for pair in pairs:
                self.run(pair, seed=11 + turn)
            for triple in TRIPLES if turn == 0 else ():
                self.run(triple)
        for name in names:
            self.run((name,))


def _mixed(pair: tuple[str, str]) -> int:
    """Return a place in an order in which a clock that drifts touches all jobs alike."""
    return zlib.crc32("".join(pair).encode())


def profiled(names: Sequence[str], seconds: float, out: Path, table: Table) -> None:
    """Measure each job alone by gpucost; the next gets ready meanwhile, without the GPU."""
    (out / "profiles").mkdir()
    with TemporaryDirectory() as folder:
        gates = {name: Path(folder) / name for name in names}

        def started(name: str) -> subprocess.Popen[str]:
            profile = out / "profiles" / f"{name}.json"
            words = [sys.executable, str(RUN), name, "--profile", str(profile)]
            words += ["--seconds", str(seconds), "--gate", str(gates[name])]
            return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment(None))

        current = started(names[0])
        for name, following in itertools.zip_longest(names, names[1:]):
            gates[name].touch()
            ready = started(following) if following else None
            said = current.communicate(timeout=seconds + 90)[0]
            lines = [line for line in said.splitlines() if line.startswith("{")]
            if lines:
                table.add("profiled", {name: json.loads(lines[-1])})
            if ready is not None:
                current = ready


def main() -> None:
    """Measure alone, in turns, under MPS."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=lambda text: tuple(text.split(",")), default=JOBS)
    parser.add_argument("--profiled", type=float, default=9.0, help="seconds alone, by gpucost")
    parser.add_argument("--seconds", type=float, default=1.35, help="of a run")
    parser.add_argument("--ramp", type=float, default=0.3, help="seconds before it")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True)
    table = Table(asked.out / "runs.csv")
    profiled(asked.jobs, asked.profiled, asked.out, table)
    with loaded(asked.jobs, None) as jobs:
        Measuring("time-slicing", jobs, table, asked).all(asked.jobs)
    mps = asked.out / "mps"
    with daemon(mps) as folder:
        if folder is None:
            print("MPS cannot be started: jobs were measured in turns alone.")
        else:
            with loaded(asked.jobs, folder) as jobs:
                Measuring("mps", jobs, table, asked).all(asked.jobs)
    shutil.rmtree(mps)


if __name__ == "__main__":
    main()
