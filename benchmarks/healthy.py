"""What `gpucost run` costs a program that has nothing to gain: pairs of runs, in drawn order.

Each pair is the same program alone and under `gpucost run` with loader workers asked for. The
program computes all the time (`examples/loop/train.py --wait-ms 0 --width 1024`), so nothing is to
be kept. Compared are the time of its own process from its first line to its last, and the processor
time in it, of all threads; the second hardly depends on what else runs. Prints the ratio with its
95 % interval, from the logarithms of the pairs; losses must be the same in every run.

PyTorch is that of .venv-torch (`make torch-test` makes it), or PYTORCH names its Python.

Usage: python benchmarks/healthy.py [PAIRS] [STEPS]
"""

import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from planner.proof.speed import t_quantile  # noqa: E402 - of this checkout

PYTORCH = os.environ.get("PYTORCH", str(ROOT / ".venv-torch" / "bin" / "python"))
GPUCOST = str(Path(sys.executable).with_name("gpucost"))
PROGRAM = ROOT / "examples" / "loop" / "train.py"
PAIRS, STEPS = 12, 3000
WORKERS = {"code": "dataloader-workers", "settings": {"num_workers": 2, "prefetch_factor": 2}}
RECIPE = {"schema": "gpucost.recipe/v1", "job": "train", "actions": [WORKERS]}
# Runs the program as it is and says how long it took.
TIMED = """
import runpy, sys, time
path = sys.argv[1]
sys.argv = sys.argv[1:]
wall_s, own_s = time.perf_counter(), time.process_time()
runpy.run_path(path, run_name="__main__")
print(time.perf_counter() - wall_s, time.process_time() - own_s)
"""


def run(folder: Path, steps: int, *, applied: bool) -> tuple[str, float, float]:
    """Return what the program printed, its seconds and its seconds of processor time."""
    options = ("--wait-ms", "0", "--width", "1024", "--steps", str(steps))
    command = [PYTORCH, str(folder / "timed.py"), str(PROGRAM), *options]
    own = ("--no-gpu", "--no-metadata", "--recipe", "recipe.json", "-q", "--")
    words = [GPUCOST, "run", *own, *command] if applied else command
    done = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True)
    printed, _, last = done.stdout.rstrip().rpartition("\n")
    wall_s, own_s = map(float, last.split())
    return printed, wall_s, own_s


def told(logs: list[float]) -> str:
    """Return the ratio of the pairs with its 95 % interval, as changes in percent."""
    middle = statistics.fmean(logs)
    half = t_quantile(0.975, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    low, mid, high = (math.expm1(middle + way * half) for way in (-1, 0, 1))
    return f"{mid:+.2%} ({low:+.2%} to {high:+.2%})"


def main(arguments: list[str]) -> None:
    """Measure and print."""
    pairs, steps = (int(given) for given in (*arguments, *(PAIRS, STEPS)[len(arguments) :]))
    print(f"{pairs} pairs of {steps} steps, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    wall: list[float] = []
    own: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "timed.py").write_text(TIMED, encoding="utf-8")
        (folder / "recipe.json").write_text(json.dumps(RECIPE), encoding="utf-8")
        for _ in range(pairs):
            order = random.sample((False, True), 2)
            both = {applied: run(folder, steps, applied=applied) for applied in order}
            if both[True][0] != both[False][0]:
                sys.exit("losses differ")
            wall.append(math.log(both[True][1] / both[False][1]))
            own.append(math.log(both[True][2] / both[False][2]))
            print(f"  {math.expm1(wall[-1]):+.2%} of its time, {math.expm1(own[-1]):+.2%} of work")
        after = json.loads((folder / "after.json").read_text(encoding="utf-8"))
    for change in after["changes"]:
        print(f"{change['outcome']} {change['action']}: {change['what']}")
    print(f"under `gpucost run` the program takes {told(wall)} of its time,")
    print(f"and {told(own)} of processor time (its own process and threads)")


if __name__ == "__main__":
    main(sys.argv[1:])
