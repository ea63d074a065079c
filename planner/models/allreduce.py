"""How long an all-reduce takes: a measured table, piecewise in log size, per kind of link.

`planner/models/data/allreduce.csv` holds our own fit of published nccl measurements: microseconds
at a few sizes for each GPU and number of ranks. Between two sizes the time runs straight in
log-log; beyond the largest it grows in proportion, below the smallest it stays (latency).
"""

import csv
import math
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

_TABLE = Path(__file__).parent / "data" / "allreduce.csv"
# Which rows stand for which link of an architecture that the table has not: the nearest below.
_NVLINK = {
    "Volta": "A100-SXM-80GB",
    "Ampere": "A100-SXM-80GB",
    "Hopper": "H100-SXM-80GB",
    "Blackwell": "B200-SXM",
    "Blackwell Ultra": "B200-SXM",
}
_PCIE = "L40S"
_SLOWEST_NVLINK = "A100-SXM-80GB"  # stands for architectures that the table has not
_LARGE_BYTES = 1e9  # where the time is in proportion to the size

Knots = tuple[tuple[float, float], ...]


@cache
def _table() -> Mapping[tuple[str, int, int], Knots]:
    found: dict[tuple[str, int, int], list[tuple[float, float]]] = {}
    with _TABLE.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        for row in rows:
            key = (row["gpu"], int(row["ranks"]), int(row["nodes"]))
            found.setdefault(key, []).append((float(row["bytes"]), float(row["time_us"])))
    return {key: tuple(sorted(knots)) for key, knots in found.items()}


@lru_cache(maxsize=1024)  # targets of one job ask for the same gradients
def typical_all_reduce_s(
    message_bytes: float, architecture: str, ranks: int, *, nvlink: bool
) -> float:
    """Return seconds of an all-reduce inside one machine, by the nearest measured kind of link."""
    if ranks == 1:
        return 0.0
    gpu = _NVLINK.get(architecture, _SLOWEST_NVLINK) if nvlink else _PCIE
    nearest = _nearest(gpu, ranks)
    time_s = interpolate(_table()[gpu, nearest, 1], message_bytes) / 1e6
    return time_s * (ranks - 1) / ranks * nearest / (nearest - 1)


@cache
def _nearest(gpu: str, ranks: int) -> int:
    """Return the number of ranks of one machine in the table that is nearest, as a ratio."""
    measured = sorted(r for g, r, nodes in _table() if g == gpu and nodes == 1)
    return min(measured, key=lambda count: abs(math.log(count / ranks)))


def large_all_reduce_s(architecture: str, ranks: int, *, nvlink: bool) -> float:
    """Return seconds a byte of a large all-reduce inside one machine; 0 for one rank."""
    return typical_all_reduce_s(_LARGE_BYTES, architecture, ranks, nvlink=nvlink) / _LARGE_BYTES


def interpolate(knots: Knots, message_bytes: float) -> float:
    """Return the time at a size from rising (bytes, time) knots, straight in log-log."""
    sizes = [size for size, _ in knots]
    if message_bytes <= sizes[0]:
        return knots[0][1]
    if message_bytes >= sizes[-1]:
        return knots[-1][1] * message_bytes / sizes[-1]
    upper = next(place for place, size in enumerate(sizes) if size >= message_bytes)
    (s0, t0), (s1, t1) = knots[upper - 1], knots[upper]
    share = math.log(message_bytes / s0) / math.log(s1 / s0)
    time: float = t0 * (t1 / t0) ** share
    return time
