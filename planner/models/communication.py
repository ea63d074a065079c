"""What communication costs a step of several GPUs: measured, computed, or typical of the links.

A step takes compute + communication that nothing hides. The overhead o is that communication over
compute, so n GPUs do n / (1 + o) times the work of one. A ring all-reduce passes 2 (n - 1) / n of
the gradients through every link, so inside a machine o grows with that (faster on GeForce boards,
whose peers share the host's bridge). Between machines part of it hides behind the compute:
T = (compute^g + s^g)^(1/g).

How long an all-reduce takes: a measured table, piecewise in log size, per kind of link.
`planner/models/data/allreduce.csv` holds our own fit of published nccl measurements: microseconds
at a few sizes for each GPU and number of ranks. Between two sizes the time runs straight in
log-log; beyond the largest it grows in proportion, below the smallest it stays (latency).
"""

import csv
import math
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from planner.models.coefficients import coefficients, memoize
from pricing.hardware import is_geforce_rtx

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
    curves: dict[tuple[str, int, int], list[tuple[float, float]]] = {}
    with _TABLE.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        for row in rows:
            key = (row["gpu"], int(row["ranks"]), int(row["nodes"]))
            curves.setdefault(key, []).append((float(row["bytes"]), float(row["time_us"])))
    return {key: tuple(sorted(knots)) for key, knots in curves.items()}


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
    upper = next(index for index, size in enumerate(sizes) if size >= message_bytes)
    (s0, t0), (s1, t1) = knots[upper - 1], knots[upper]
    share = math.log(message_bytes / s0) / math.log(s1 / s0)
    time: float = t0 * (t1 / t0) ** share
    return time


BRIDGES = "nvlink-bridge"
_FAST_LINKS = ("nvlink", "xgmi", BRIDGES)
# A slower link loses no less; where PCIe boxes did better than NVLink ones, other parts did it.
BY_SPEED = ("nvlink", "pcie", "geforce")
_POWER = 2.0  # best on the clusters of docs/accuracy.md, as on each of them by the others
# Eight nodes did at least 2.8 times the work of one in MLPerf Training v4.0, so two lose at most
# (8 / 2.8 - 1) / ring(8); a fast network may be set up no better.
_WORST_OF_TWO = 1.06
# Share of a network's rate that all-reduces reach: 0.07 over 16 ranks and 0.24 over 2 on two DGX
# A100 (profiles of microsoft/vidur); the ends are our estimate.
NETWORK_REACHED = (0.5, 0.12, 0.05)
_SAMPLE = 8  # GPUs for which typical overheads are tabled


class Overhead(NamedTuple):
    """Communication that nothing hides, over compute: 0 = none; `good` and `bad` bound 90 %."""

    good: float
    mid: float
    bad: float

    def times(self, factor: float) -> "Overhead":
        """Return the overhead grown by a factor."""
        return Overhead(good=self.good * factor, mid=self.mid * factor, bad=self.bad * factor)


NOTHING = Overhead(good=0.0, mid=0.0, bad=0.0)


def ring(ranks: int) -> float:
    """Return the share of the gradients that a ring all-reduce passes through each link."""
    return 2.0 * (ranks - 1) / ranks


def combine(compute_s: float, sync_s: float, power: float = _POWER) -> float:
    """Return the time of a step whose synchronising is partly hidden: (c^g + s^g)^(1/g)."""
    return float((compute_s**power + sync_s**power) ** (1.0 / power))


@lru_cache(maxsize=1024)  # kinds of link x models
def link_class(link: str | None, gpu: str | None) -> str:
    """Return `nvlink`, `geforce` or `pcie`; unknown links count as PCIe."""
    if link in _FAST_LINKS:
        return "nvlink"
    # GeForce boards from the 20 series on have no peer-to-peer access over PCIe.
    return "geforce" if gpu is not None and is_geforce_rtx(gpu) else "pcie"


def growth(before: int, after: int, of_link: str, geforce: float | None = None) -> float:
    """Return by how much the overhead grows from some GPUs of a machine to others.

    Args:
        before: GPUs, >= 2.
        after: GPUs, >= 2.
        of_link: as `link_class`.
        geforce: growth of GeForce boards from 2 to 8 GPUs; None = as shipped.
    """
    if of_link != "geforce":
        return ring(after) / ring(before)
    factor = float(coefficients("scale")["geforce_growth"]) if geforce is None else geforce
    steps = (ring(after) - ring(before)) / (ring(_SAMPLE) - ring(2))
    return float(factor**steps)


def of_one_copy(gpus: int, *, nvlink: bool) -> tuple[float, float, float]:
    """Return how much faster GPUs serve one copy of a language model than one GPU.

    A power of their number, fitted on tensor parallel over NVLink and over PCIe: least, expected,
    most. The least of more GPUs is none below that of fewer: some can be left out.
    """
    row = coefficients("scale")["tensor"]["nvlink" if nvlink else "pcie"]
    mid, spread = row["exponent"], row["spread"]
    return gpus ** max(0.0, mid - spread), gpus**mid, gpus ** (mid + spread)


@memoize(1024)
def typical(of_link: str, ranks: int) -> Overhead:
    """Return the overhead of so many GPUs in one machine, as benchmarks over such links had it."""
    if ranks == 1:
        return NOTHING
    rows = coefficients("scale")["inside"]
    no_faster = [rows[name] for name in BY_SPEED[: BY_SPEED.index(of_link) + 1]]
    worst = {end: max(row[end] for row in no_faster) for end in ("good", "mid", "bad")}
    return Overhead(**worst).times(growth(_SAMPLE, ranks, of_link))


@memoize(1024)
def typical_network(machines: int, *, fast: bool) -> Overhead:
    """Return the overhead of several machines, as measured clusters of such networks had it."""
    if machines == 1:
        return NOTHING
    row = coefficients("scale")["between"]["fast" if fast else "slow"]
    worst = max(row["bad"], _WORST_OF_TWO)
    return Overhead(good=row["good"], mid=row["mid"], bad=worst).times(ring(machines))
