"""How often jobs on many GPUs fail, and what a run needs to survive it: checkpoints and restarts.

Mean time between failures: 419 unexpected interruptions of 16,384 H100 in 54 days (Llama 3 report,
2024), one in 50,676 GPU-hours.
"""

import math
from dataclasses import dataclass

from planner.models.interruption import CHECKPOINTS, CheckpointCosts, checkpoint_interval_s

GPU_HOURS_A_FAILURE = 16384 * 54 * 24 / 419
MOST_LOST_S = 3600.0  # an hour of work, our choice: runs write every 15 to 60 minutes
_MOST_WRITING = 0.1  # of the time, where a checkpoint takes so long that an hour is too often
_SURE = 0.99  # that the restarts allowed are enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    """What a run needs to survive the failures that are to be expected.

    Attributes:
        failures: expected over its hours, >= 0.
        max_restarts: torchrun's --max-restarts, enough with 99 %, >= 1.
        checkpoint_every_s: work between checkpoints, seconds, > 0.
    """

    failures: float
    max_restarts: int
    checkpoint_every_s: float


def survival(
    gpus: float,
    hours: float,
    checkpoints: CheckpointCosts = CHECKPOINTS,
    spot_up_s: float | None = None,
) -> Survival:
    """Return what a run on so many GPUs for so many hours needs.

    Args:
        gpus: at work, > 0.
        hours: of the run, >= 0.
        checkpoints: what one costs.
        spot_up_s: mean time between interruptions of spot capacity; None where there are none or
            their rate is unknown. Restarts do not count them: they end the machine, and torchrun.
    """
    failures = gpus * hours / GPU_HOURS_A_FAILURE
    return Survival(
        failures=failures,
        max_restarts=max(1, _restarts(failures)),
        checkpoint_every_s=checkpoint_every_s(gpus, checkpoints, spot_up_s),
    )


def mean_up_s(gpus: float) -> float:
    """Return the mean time between failures of so many GPUs, seconds."""
    return GPU_HOURS_A_FAILURE * 3600.0 / gpus


def checkpoint_every_s(
    gpus: float,
    checkpoints: CheckpointCosts = CHECKPOINTS,
    spot_up_s: float | None = None,
) -> float:
    """Return the time of work between checkpoints, seconds: what is set and what is billed.

    Young's and Daly's optimum, and no more than people care to lose at once: for one GPU and
    machines that hardly fail the optimum is days, and a crash of the program itself is likelier.
    Failures and interruptions of spot capacity (`spot_up_s` between them) add up as rates.
    """
    up_s = mean_up_s(gpus)
    if spot_up_s is not None:
        up_s = 1.0 / (1.0 / up_s + 1.0 / spot_up_s)
    optimum = checkpoint_interval_s(up_s, checkpoints)
    return min(optimum, max(MOST_LOST_S, checkpoints.write_s / _MOST_WRITING))


def _restarts(expected: float) -> int:
    """Return the least number that a Poisson count of this mean stays under with 99 %."""
    count, probability = 0, math.exp(-expected)
    total = probability
    while total < _SURE and count < 10_000:  # noqa: PLR2004 - beyond any real fleet
        count += 1
        probability *= expected / count
        total += probability
    return count
