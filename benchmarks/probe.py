"""What the probe costs: microseconds a step, and milliseconds a start of Python.

A loop of loader and optimizer that does next to nothing else is run with and without the probe, in
turns, in whole processes, and with the probe but without its look at stacks. What counts is time of
the processor, of all threads: the loop never waits, and what else runs on the machine counts less.
With PyTorch in .venv-torch (`make torch-test` makes it) the loop is PyTorch's own, on the CPU;
without, that of the tests' stand-in, and said so. The spread of the plain loop stands beside the
difference: what the probe costs must be seen against it. Prints figures and always exits 0.

Usage: python benchmarks/probe.py [RUNS]
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTORCH = ROOT / ".venv-torch" / "bin" / "python"
STAND_IN = ROOT / "tests" / "probe" / "stand_in"
PROBE = ROOT / "telemetry" / "probe" / "path"
RUNS = 9
PROMISED_US = 20.0

LOOP = """
import time
import torch
from torch.optim import SGD
from torch.utils.data import DataLoader

STEPS = 2000
parameter = torch.nn.Parameter(torch.zeros(1) if hasattr(torch, "zeros") else 1)
parameter.grad = torch.zeros(1) if hasattr(torch, "zeros") else None
optimizer, loader = SGD([parameter]), DataLoader(range(STEPS), 1)
least = float("inf")
for epoch in range(5):
    begin_s = time.process_time()
    for batch in loader:
        optimizer.step()
    least = min(least, time.process_time() - begin_s)
print(least / STEPS * 1e6)
"""


def environment(folder: str, *, probe: bool, stand_in: bool) -> dict[str, str]:
    """Return the environment of a run."""
    path = [str(PROBE)] * probe + [str(STAND_IN)] * stand_in
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    added = {"GPUCOST_PROBE_DIR": folder} if probe else {}
    return {**kept, **added, "PYTHONPATH": os.pathsep.join(path)}


def step_us(python: str, folder: str, *, probe: bool, stacks: bool = True) -> float:
    """Return the microseconds of a step, the least of five epochs of one process."""
    env = environment(folder, probe=probe, stand_in=python == sys.executable)
    env["GPUCOST_PROBE_STACKS"] = "1" if stacks else "0"
    command = [python, "-c", LOOP]
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    return float(done.stdout)


def start_ms(python: str, folder: str, *, probe: bool) -> float:
    """Return the milliseconds of a Python that does nothing, from start to exit."""
    env = environment(folder, probe=probe, stand_in=False)
    begin_s = time.perf_counter()
    subprocess.run([python, "-c", ""], env=env, check=True, capture_output=True)
    return (time.perf_counter() - begin_s) * 1000.0


def spread(values: Sequence[float]) -> str:
    """Return least, median and quartiles as text."""
    low, middle, high = statistics.quantiles(values, n=4)
    return f"least {min(values):5.1f}, median {middle:5.1f}, quartiles {low:.1f} to {high:.1f}"


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    runs = int(arguments[0]) if arguments else RUNS
    python = str(PYTORCH) if PYTORCH.exists() else sys.executable
    which = "PyTorch" if PYTORCH.exists() else "a stand-in for PyTorch"
    load = os.getloadavg()[0]
    print(f"{runs} processes each, in turns, {which}, {os.cpu_count()} cores, load {load:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        for name, measure, unit in (("step", step_us, "us"), ("start", start_ms, "ms")):
            measure(python, folder, probe=True)  # fill the caches of the disk and of bytecode
            pairs = [
                (measure(python, folder, probe=False), measure(python, folder, probe=True))
                for _ in range(runs)
            ]
            plain, probed = zip(*pairs, strict=True)
            cost = min(probed) - min(plain)  # what a busy machine disturbs least
            middle = statistics.median(probed) - statistics.median(plain)
            print(f"  {name}, plain      {spread(plain)} {unit}")
            print(f"  {name}, with probe {spread(probed)} {unit}")
            print(f"  the probe costs {cost:.1f} {unit} a {name}", end="")
            print(f" ({middle:.1f} by the medians)", end="")
            if unit == "us":
                without = [step_us(python, folder, probe=True, stacks=False) for _ in range(runs)]
                print(f"; promised: at most {PROMISED_US:g} us")
                print(f"  of it {min(probed) - min(without):.1f} us for looking at stacks", end="")
            print()


if __name__ == "__main__":
    main(sys.argv[1:])
