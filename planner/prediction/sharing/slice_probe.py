"""How fast a job runs on a slice (MIG) when it was measured on the whole GPU and on another slice.

With x the slowdown on a slice, whole time / time there - 1 upside down (1 / speed - 1), c a slice's
share of the compute and m of the memory:

    x there = x seen ^ b  ((1 / c there - 1) / (1 / c seen - 1)) ^ a  (m seen / m there) ^ e

Amdahl's law where a = b = 1 and e = 0. Fitted on published iteration times (16 jobs of four models
on an A100; `planner/models/data/sharing.toml`); the form is our own.
"""

from planner.models.coefficients import coefficients
from planner.models.estimate import Estimate

_LEAST = 0.001
"""The slowdown that is taken where a slice was as fast as the whole GPU."""
OFFSET = 0.1
"""Added to a slowdown before it is compared as a ratio: small ones differ by chance."""
_BASIS = "the job's speed on a measured slice"


def slowdown_there(
    slowdown: float,
    seen: tuple[float, float],
    there: tuple[float, float],
    law: tuple[float, float, float],
) -> float:
    """Return the slowdown, 1 / speed - 1, on a slice.

    Args:
        slowdown: on the slice that was measured.
        seen: its share of the GPU's compute and of its memory, the first below 1.
        there: those of the other slice.
        law: a, b and e.
    """
    by_compute, by_slowdown, by_memory = law
    ratio = (1.0 / there[0] - 1.0) / (1.0 / seen[0] - 1.0)
    memory = seen[1] / there[1]
    return float(max(_LEAST, slowdown) ** by_slowdown * ratio**by_compute * memory**by_memory)


def speed_by_probe(speed: float, seen: tuple[float, float], there: tuple[float, float]) -> Estimate:
    """Return the speed on a slice relative to the whole GPU (1.0).

    Args:
        speed: measured on another slice, relative to the whole GPU, above 0.
        seen: that slice's share of the GPU's compute and of its memory, below 1.
        there: those of the slice in question.
    """
    fitted = coefficients("sharing")["probe"]
    by_compute, by_slowdown, by_memory = (float(one) for one in fitted["law"])
    slowdown = slowdown_there(1.0 / speed - 1.0, seen, there, (by_compute, by_slowdown, by_memory))
    low, mid, high = (
        1.0 / (1.0 + max(0.0, (slowdown + OFFSET) * factor - OFFSET))
        for factor in (float(fitted["factor"]), 1.0, 1.0 / float(fitted["factor"]))
    )
    return Estimate(low=low, mid=mid, high=high, basis=_BASIS)
