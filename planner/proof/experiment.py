"""What a setting gains, tried on and off in turns within one run.

The unit is a four of blocks (`schedule`): the mean log time of its two blocks without the setting
less that of its two with it. Because the order of each four was drawn, these differences are
independent of each other given all that the machine did, and symmetric about the gain: Student's t
over them holds under drift, under steps that hang together and under heavy tails.

How many fours there are is fixed from the spread of a pilot alone (Stein 1945), never from its
gain: nobody looks at the answer to decide whether to go on.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from planner.proof.interval import CONFIDENCE, MeasuredRatio, ratio_of_logs, t_quantile
from planner.proof.schedule import FOUR, Design, block_of_step, is_settled, settings

_POWER = 0.8
_TWO_SIDED = (1.0 + CONFIDENCE) / 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """What an experiment found.

    Attributes:
        speedup: of the setting on over off, with its 95 % interval.
        fours: of blocks that it rests on.
        planned: that the pilot asked for; more than `fours` where the design had no room.
        smallest: the least speed-up that so many would find with a power of 80 %.
    """

    speedup: MeasuredRatio
    fours: int
    planned: int
    smallest: float


def gains(design: Design, steps_s: Sequence[float]) -> tuple[float, ...]:
    """Return the log speed-up of each whole four of blocks.

    Args:
        design: of the experiment.
        steps_s: length of every step of the run, from its first, seconds; all above 0.
    """
    on, logs = settings(design), _block_logs(design, steps_s)
    whole = len(logs) - len(logs) % FOUR
    return tuple(
        sum(logs[at] * (-0.5 if on[at] else 0.5) for at in range(first, first + FOUR))
        for first in range(0, whole, FOUR)
    )


def _block_logs(design: Design, steps_s: Sequence[float]) -> list[float]:
    """Return the log of the mean settled step of each block that is whole."""
    sums = [0.0] * design.most_blocks
    for step in range(design.warmup_steps, len(steps_s)):
        block = block_of_step(design, step)
        if block is not None and is_settled(design, step):
            sums[block] += steps_s[step]
    whole = max(0, len(steps_s) - design.warmup_steps) // design.block_steps
    settled = design.block_steps - design.settle_steps
    return [math.log(total / settled) for total in sums[:whole]]


def fours_needed(design: Design, pilot: Sequence[float]) -> int:
    """Return how many fours find `design.detect` with a power of 80 %, by the pilot's spread alone.

    Never fewer than the pilot; may be more than the design has room for.

    Raises:
        ValueError: the pilot is shorter than designed.
    """
    if len(pilot) < design.pilot_fours:
        raise ValueError(f"{len(pilot)} fours; the pilot has {design.pilot_fours}")
    first = pilot[: design.pilot_fours]
    factor = _factor(len(first))
    needed = (factor * stdev(first) / math.log(design.detect)) ** 2
    return max(design.pilot_fours, math.ceil(needed))


def conclude(design: Design, found: Sequence[float]) -> Conclusion:
    """Return what the fours tell that the pilot asked for; later ones are not looked at.

    Raises:
        ValueError: there are fewer than the pilot asked for, and the design had room for them.
    """
    planned = fours_needed(design, found)
    used = min(planned, design.most_fours)
    if len(found) < used:
        raise ValueError(f"{len(found)} fours of blocks; {used} were planned: go on until then")
    known = found[:used]
    error = stdev(known) / math.sqrt(used)
    basis = (
        f"{used * FOUR} blocks of {design.block_steps} steps, on and off in drawn order, "
        f"{design.settle_steps} steps a switch left out; Student's t over fours of blocks"
    )
    return Conclusion(
        speedup=ratio_of_logs(fmean(known), t_quantile(_TWO_SIDED, used - 1) * error, basis),
        fours=used,
        planned=planned,
        smallest=math.exp(_factor(used) * error),
    )


def experiment(design: Design, steps_s: Iterable[float]) -> Conclusion:
    """Return what a whole run tells; see `gains` and `conclude`."""
    return conclude(design, gains(design, tuple(steps_s)))


def _factor(fours: int) -> float:
    """Return how many standard errors an effect must be to be found with a power of 80 %."""
    return t_quantile(_TWO_SIDED, fours - 1) + t_quantile(_POWER, fours - 1)
