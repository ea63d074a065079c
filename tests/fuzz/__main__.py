"""Tries damaged inputs in several processes, and prints what failed with the seed that makes it."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.fuzz.inputs import Failure, damaged, run

CHUNK = 250


def chunk(seeds: range, folder: str, until: float) -> tuple[int, list[Failure]]:
    """Return how many of the seeds were tried, and the failures; warnings are failures, too."""
    warnings.simplefilter("error")
    return run(seeds, Path(folder), until)


def main() -> int:
    """Return 0 where every input was read or refused, 1 where one was not."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("count", type=int, help="inputs")
    parser.add_argument("--seed", type=int, default=0, help="of the first; the next ones follow")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seconds", type=float, default=600.0, help="after which it ends")
    parser.add_argument("--show", type=int, help="write the input of this seed to standard output")
    asked = parser.parse_args()
    if asked.show is not None:
        sys.stdout.buffer.write(damaged(asked.show)[1])
        return 0
    until = time.monotonic() + asked.seconds
    last = asked.seed + asked.count
    parts = [range(n, min(n + CHUNK, last)) for n in range(asked.seed, last, CHUNK)]
    tried, failures = 0, []
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(asked.jobs) as pool:
        arguments = (parts, [folder] * len(parts), [until] * len(parts))
        for count, found in pool.map(chunk, *arguments):
            tried += count
            failures += found
    kinds: dict[str, list[Failure]] = defaultdict(list)
    for failure in failures:
        kinds[failure.problem.strip().splitlines()[-1]].append(failure)
    for kind, same in sorted(kinds.items()):
        print(f"\n{len(same)} x {kind}: {same[0].origin}, seeds {[f.seed for f in same[:5]]}")
        print(same[0].problem)
    print(f"{tried} inputs, {len(failures)} failures of {len(kinds)} kinds")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
