"""How fast the host feeds a GPU: loader throughput against the cores that each GPU has, or workers.

Throughput ~ cores^g: in proportion up to 3 cores a GPU, then with the power g (fitted,
`planner/models/data/host.toml`), flat beyond 12 cores, the most that was measured.

A program that reads by itself waits w of each second, and keeps c cores busy in all. With k workers
beside it on n cores its input takes max(w / k, c / n) of the time that it took (the loader law of
Synergy, with the disk or network out of the way): reads that wait overlap, work is shared by cores.
"""

import math
from dataclasses import dataclass

from planner.models.coefficients import coefficients

_KNEE_CORES = 3.0
_MOST_CORES = 12.0
MOST_WORKERS = 16
WAITS = 0.5
"""Cores that reading keeps busy, below which it mostly waits for something else: our choice."""
# Shares of a step that wait for input from which on the loader is late at every step: soonest,
# expected, latest. The fetch of a batch itself takes a few percent, and a loader as slow as the GPU
# waits for a tenth where times vary. Our choice: no data have such waits on two GPUs.
LATE = (0.1, 0.2, 0.4)
NEVER = math.inf
"""Instead of those: reading and computing take turns."""
# Six loaders that we measured on 2 cores took 1.02 to 1.28 times as long as the law says.
_SLOWER = (1.0, 1.1, 1.3)


def loader_rate(cores: float, power: float | None = None) -> float:
    """Return the relative throughput of so many cores a GPU; `power` None = as shipped."""
    above = loader_power() if power is None else power
    cores = min(cores, _MOST_CORES)
    return float(min(cores, _KNEE_CORES) * max(1.0, cores / _KNEE_CORES) ** above)


def loader_power() -> float:
    """Return the fitted power of the cores above the knee."""
    return float(coefficients("host")["loader_power"])


def loader_factor() -> float:
    """Return the factor x/: of the 90 % interval of the loader's rate."""
    return float(coefficients("host")["loader_factor"])


def fed_time(work: float, waiting: float, faster: float, late: float) -> float:
    """Return the time of a step over today's; 1 where nothing changes.

    A loader that is late at every step sets the pace: with prefetching it delivers one batch in
    each of today's steps, however fast the GPU. A wait that nothing overlaps is a part of each
    step. The longer the wait, the surer it is the former.

    Args:
        work: what else a step takes, over today's whole step.
        waiting: share of today's step that waits for input.
        faster: how much faster the input comes.
        late: the share from which on the loader is late at every step, or `NEVER`.
    """
    share = min(1.0, waiting / late)
    paced = share**2 * (3.0 - 2.0 * share)  # smooth at both ends
    in_turns = work + waiting / faster
    return (1.0 - paced) * in_turns + paced * max(work, 1.0 / faster)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnReading:
    """A program that reads its input by itself, between its steps.

    Attributes:
        waiting: share of its time in which it reads, above 0.
        reading_cores: cores that reading keeps busy at most, 0 to 1.
        used_cores: cores that all of it keeps busy.
        cores: that it may use.
        known_slow: whether disk and network read far less than they can, so that more of them at
            a time is more in all.
    """

    waiting: float
    reading_cores: float
    used_cores: float
    cores: float
    known_slow: bool

    def workers(self, affordable: int) -> int:
        """Return how many workers end the wait: more than cores only where reads mostly wait."""
        own = max(1.0 - self.waiting, self.waiting / MOST_WORKERS)
        needed = math.ceil(self.waiting / own) + 1
        if self.reading_cores >= WAITS or needed <= affordable:
            return affordable
        fit = int(self.cores / max(self.reading_cores, self.cores / MOST_WORKERS))
        return max(affordable, min(needed, fit, MOST_WORKERS))

    def faster(self, workers: int) -> tuple[float, float, float]:
        """Return how much faster the input comes with so many workers: low, mid, high.

        The low end is by overlap alone where nothing shows that more reads at a time are more in
        all; where they are few, halfway to the law in logarithms, for a far store may limit them.
        It also holds the program's own time, which workers beside it make no shorter.
        """
        shared = self.used_cores / self.cores
        best = max(1.0, 1.0 / max(self.waiting / workers, shared))
        overlap = max(1.0, 1.0 / max(self.waiting, shared))
        limit = min(best, 1.0 / max(1.0 - self.waiting, 1.0 / best))
        high, mid = (max(1.0, best / slower) for slower in _SLOWER[:2])
        low = max(1.0, limit / _SLOWER[2])
        if self.reading_cores < WAITS:
            halfway = math.sqrt(best * overlap)
            low = min(low, halfway if self.known_slow else overlap)
            mid = mid if self.known_slow else min(mid, halfway)
        return low, mid, high
