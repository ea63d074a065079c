"""How long it takes to load, filter and quote many offers, against reading the file with pandas.

One process, run on a file of offers in the package's own columns, made from the bundled ones with
prices of their own, all billed by the rules of one provider. What is timed: reading the file into
checked offers, choosing the row that holds on a day for each of them, filtering by GPU and price,
and quoting every offer (compute line, total, warnings). Prints figures and ratios, always exits 0.

Usage: python benchmarks/catalog.py [RUNS] [OFFERS]. CPU seconds, as machines are shared.
"""

import csv
import gc
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path

import pandas as pd

from pricing.billing.quote import Usage, quote
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import COLUMNS, bundled_offers, offers_from_file, row_from_offer

OFFERS = 20_000
RUNS = 7
PROMISED_S = 0.5
DAY = date(2026, 11, 21)
USE = Usage(duration_s=5400, as_of=DAY)


def write_offers(path: Path, offers: int) -> None:
    """Write the file: the bundled offers again and again, each time as other types."""
    rows = [row_from_offer(offer) for offer in bundled_offers() if offer.current]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for number in range(offers):
            turn, place = divmod(number, len(rows))
            row = dict(rows[place])
            row["instance_type"] += f"-{turn}"
            row["usd_per_hour"] = str(Decimal(row["usd_per_hour"]) + Decimal(turn) / 100)
            writer.writerow(row)


def load(path: Path) -> Catalog:
    """Return the catalog of the file's offers, in the file's order."""
    return Catalog(as_of=DAY, rows=tuple(offers_from_file("digitalocean", str(path))))


def work(path: Path, wanted: int) -> None:
    """Load, filter and quote; raise if anything is missing."""
    offers = load(path).offers
    chosen = [o for o in offers if o.gpu.startswith("H100") and o.usd_per_hour < 50]  # noqa: PLR2004 - dollars
    totals = [quote(offer, USE).total for offer in offers]
    if len(totals) != wanted or not chosen:
        raise SystemExit(f"{len(totals)} offers were quoted, {wanted} were written")


def seconds(call: Callable[[], object]) -> float:
    """Return how long one call takes on the CPU, in seconds."""
    start = time.process_time()
    call()
    return time.process_time() - start


def main(arguments: Sequence[str]) -> None:
    """Measure in turns and print the least times."""
    runs = int(arguments[0]) if arguments else RUNS
    offers = int(arguments[1]) if len(arguments) > 1 else OFFERS
    gc.set_threshold(50_000)  # as the command does (gpucost/entry.py)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "offers.csv"
        write_offers(path, offers)
        mine, base = [], []
        for _ in range(runs):
            base.append(seconds(lambda: pd.read_csv(path)))
            mine.append(seconds(lambda: work(path, offers)))
    least, read = min(mine), min(base)
    print(f"{offers:,} offers, {runs} runs in turns, Python {sys.version.split()[0]}")
    print(
        f"  load, filter and quote all   least {least * 1000:6.0f} ms ({least / PROMISED_S:.2f} of"
    )
    print(f"                               the promised {PROMISED_S * 1000:.0f} ms)")
    print(f"  pandas.read_csv of the file  least {read * 1000:6.0f} ms; ratio {least / read:.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
