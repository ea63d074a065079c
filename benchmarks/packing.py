"""How few GPUs a packing takes, and how close that is proven to be, beside rules; seconds of CPU.

Jobs are drawn from a list of pods (CSV with num_gpu and gpu_milli, 1/1000 of a GPU): those of one
GPU. The list records no GPU memory, so it is drawn (lognormal around 16 GiB of 80, our choice).
With `--tight` a third of the jobs also has a limit on what is taken beside it, as a latency target
is; with `--small` each takes 10 to 70 % of what it asked for, so that many share a GPU. Where the
bound is not reached, the exit code is still 0: nothing is asserted, except that no packing breaks a
limit or takes more GPUs than first fit decreasing.

Usage: python benchmarks/packing.py POD_LIST [--tight] [--small]
"""

import csv
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planner.fleet.search import pack_rows
from planner.fleet.sizes import Bins, Sizes, best_fit, decreasing, first_fit

COUNTS = (300, 5000)
SEEDS = (1, 2, 3)
ROOM_GIB = 0.95 * 80.0
BUSIEST = 0.9


def drawn(pods: NDArray[np.float64], count: int, seed: int, asked: Sequence[str]) -> Sizes:
    """Return so many jobs of the list."""
    draw = np.random.default_rng(seed)
    share = draw.choice(pods, count, replace=count > len(pods))
    if "--small" in asked:
        share = share * draw.uniform(0.1, 0.7, count)
    most = np.full(count, BUSIEST)
    if "--tight" in asked:
        tight = draw.random(count) < 1 / 3
        most = np.where(tight, np.minimum(most, share + draw.uniform(0.05, 0.6, count)), most)
    memory = np.clip(draw.lognormal(np.log(16.0), 0.8, count), 1.0, 75.0) + 0.6
    limits = np.stack([most, np.full(count, ROOM_GIB)], axis=1)
    takes = np.minimum(np.stack([share, memory], axis=1), limits)
    return Sizes(takes=takes, limits=limits, hours=np.ones(count))


def check(sizes: Sizes, bins: Bins) -> None:
    """Exit where a packing breaks a limit or loses a job."""
    whole = sorted(row for group in bins for row in group) == list(range(len(sizes)))
    if not whole or not all(sizes.fits(group) for group in bins):
        raise SystemExit("a packing is wrong")


def main(arguments: Sequence[str]) -> int:
    """Print one line for each draw."""
    if not arguments:
        print(__doc__)
        return 2
    with Path(arguments[0]).open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["num_gpu"] == "1"]
    pods = np.array([float(row["gpu_milli"]) / 1000.0 for row in rows])
    print("jobs seed | random fit, best fit, first fit | found, bound, gap | CPU s")
    for count in COUNTS:
        for seed in SEEDS:
            sizes = drawn(pods, count, seed, arguments[1:])
            largest = decreasing(sizes)
            shuffled = np.random.default_rng(0).permutation(count)
            rules = (
                len(first_fit(sizes, shuffled)),
                min(len(best_fit(sizes, order)) for order in largest),
                min(len(first_fit(sizes, order)) for order in largest),
            )
            begun = time.process_time()
            found = pack_rows(sizes, lambda: False)
            spent = time.process_time() - begun
            check(sizes, found.bins)
            if len(found.bins) > rules[-1]:
                raise SystemExit("more GPUs than by first fit")
            gap = len(found.bins) / found.bound - 1.0
            print(
                f"{count:5} {seed} | {rules[0]} {rules[1]} {rules[2]} | "
                f"{len(found.bins)} {found.bound} {gap:.2%} | {spent:.1f}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
