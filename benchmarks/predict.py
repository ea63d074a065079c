"""How long it takes to predict one profile on every GPU of the catalog, in one process.

Times `planner.prediction.predict.Predictions` of each GPU that the bundled prices name, after one
warm-up that reads the tables. Prints figures, always exits 0.

Usage: python benchmarks/predict.py [RUNS]
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gpucost.api import load_profile
from planner.prediction.layout import Layout
from planner.prediction.predict import Predictions, split_time
from pricing.catalog.offer import bundled_offers
from pricing.hardware import gpus

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "visual-search.json"
RUNS = 20
PROMISED_S = 0.02


def main(arguments: Sequence[str]) -> None:
    """Measure and print the least and the middle time of a whole pass."""
    runs = int(arguments[0]) if arguments else RUNS
    profile = load_profile(EXAMPLE)
    parts = split_time(profile)
    names = sorted({offer.gpu for offer in bundled_offers() if offer.current})
    known = [gpus()[name] for name in names if name in gpus()]
    sold = [gpu for gpu in known if gpu.memory_bandwidth_gb_s]
    times = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        predictions = Predictions(profile=profile, parts=parts)
        for gpu in sold:
            predictions.speed(Layout(gpu=gpu))
        times.append(time.perf_counter() - start)
    times = sorted(times[1:])
    least, middle = times[0], times[len(times) // 2]
    print(f"one profile on {len(sold)} GPUs, {runs} runs, Python {sys.version.split()[0]}")
    print(f"  least {least * 1000:.2f} ms, median {middle * 1000:.2f} ms")
    print(f"  {middle / PROMISED_S:.2f} of the promised {PROMISED_S * 1000:.0f} ms")


if __name__ == "__main__":
    main(sys.argv[1:])
