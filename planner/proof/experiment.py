"""What a setting gains, tried on and off in turns within one run.

Blocks of steps come in fours, on-off-off-on or the reverse. Each four holds both settings at the
same mean time, so a drift that is a straight line over the four cancels. Which of the two orders a
four has is drawn anew: whatever else the machine does meanwhile is then as likely to favor one
setting as the other.

The unit is the four: the mean log time of its two blocks without the setting less that of its two
with it. Because the order of each four was drawn, these differences are independent of each other
given all that the machine did, and symmetric about the gain: Student's t over them holds under
drift, under autocorrelated steps and under heavy tails.

How many fours there are is fixed from the spread of a pilot (Stein 1945), never from its gain:
nobody looks at the answer to decide whether to go on. The spread is that of the differences without
their signs. Without a gain the signs are as good as drawn, so what is looked at then tells nothing
of what is concluded; a plan from the standard deviation ends early where that happens to be small,
which proves up to 3.4 % of nothing instead of 2.5 %.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from msgspec.structs import replace

from planner.profile.trials import TriedInTurns, TurnsSeen
from planner.proof.speed import UPPER, MeasuredRatio, ratio_of_logs, t_quantile

FOUR = 4
_ON_FIRST = (True, False, False, True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How an experiment within one run is made.

    Attributes:
        block_steps: steps a block.
        settle_steps: of them, the first ones that are left out: the switch itself is in them.
        warmup_steps: before the first block: start-up, compilation, full caches.
        pilot_fours: fours of blocks from which the number of the rest is planned.
        most_fours: never more than these.
        detect: the speed-up that is to be found with a power of 80 %.
        seed: of the draw.

    Raises:
        ValueError: no step of a block is left, the pilot is too short or too long, or there is
            nothing to detect.
    """

    block_steps: int = 20
    settle_steps: int = 5
    warmup_steps: int = 100
    pilot_fours: int = 8
    most_fours: int = 50
    detect: float = 1.1
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.settle_steps < self.block_steps or self.warmup_steps < 0:
            raise ValueError(f"blocks of {self.block_steps} steps, {self.settle_steps} left out")
        if not 3 <= self.pilot_fours <= self.most_fours:  # noqa: PLR2004 - Student's t needs 3
            raise ValueError(f"a pilot of {self.pilot_fours} of {self.most_fours} fours")
        if not self.detect > 1.0:
            raise ValueError(f"a speed-up of {self.detect} is none")


def settings(design: Design) -> tuple[bool, ...]:
    """Return for each block, in order, whether the setting is on."""
    draw = random.Random(design.seed)  # noqa: S311 - a design, no secret
    return tuple(
        on is first
        for first in (draw.random() < 0.5 for _ in range(design.most_fours))  # noqa: PLR2004 - a fair coin
        for on in _ON_FIRST
    )


FEWEST_FOURS = 3
"""Student's t needs as many."""
_POWER = 0.8


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


def gains_of_blocks(on: Sequence[bool], logs: Sequence[float]) -> tuple[float, ...]:
    """Return the log speed-up of each whole four of blocks.

    Args:
        on: of each block, whether the setting was.
        logs: of each block that is whole, the log of its mean step.
    """
    complete = len(logs) - len(logs) % FOUR
    return tuple(
        sum(logs[at] * (-0.5 if on[at] else 0.5) for at in range(first, first + FOUR))
        for first in range(0, complete, FOUR)
    )


def fours_needed(design: Design, pilot: Sequence[float]) -> int:
    """Return how many fours find `design.detect` with a power of 80 %, by the pilot without signs.

    Never fewer than the pilot; may be more than the design has room for.

    Raises:
        ValueError: the pilot is shorter than designed.
    """
    if len(pilot) < design.pilot_fours:
        raise ValueError(f"{len(pilot)} fours; the pilot has {design.pilot_fours}")
    spread = stdev(map(abs, pilot[: design.pilot_fours]))
    needed = (_pilot_factor(design) * spread / math.log(design.detect)) ** 2
    return max(design.pilot_fours, math.ceil(needed))


def conclude(design: Design, gains_seen: Sequence[float], *, ended: bool = False) -> Conclusion:
    """Return what the fours tell that the pilot asked for; later ones are not looked at.

    Args:
        design: of the experiment.
        gains_seen: log speed-up of each four.
        ended: the program came to its end: what there is counts, for a program does not look at
            the gain to decide how long it is. `planned` is then 0 where the pilot is not whole.

    Raises:
        ValueError: there are fewer than the pilot asked for, and the design had room for them; or
            fewer than 3.
    """
    cut = ended and len(gains_seen) < design.pilot_fours
    planned = 0 if cut else fours_needed(design, gains_seen)
    used = len(gains_seen) if cut else min(planned, design.most_fours)
    if ended:
        used = min(used, len(gains_seen))
    if len(gains_seen) < used or used < FEWEST_FOURS:
        raise ValueError(
            f"{len(gains_seen)} fours of blocks; {used} were planned: go on until then"
        )
    counted = gains_seen[:used]
    error = stdev(counted) / math.sqrt(used)
    basis = (
        f"{used * FOUR} blocks of {design.block_steps} steps, on and off in drawn order, "
        f"{design.settle_steps} steps a switch left out; Student's t over fours of blocks"
    )
    return Conclusion(
        speedup=ratio_of_logs(fmean(counted), t_quantile(UPPER, used - 1) * error, basis),
        fours=used,
        planned=planned,
        smallest=math.exp(_factor(used) * error),
    )


def hand_over(design: Design) -> dict[str, object]:
    """Return what the process is told that switches: the order, and how a pilot plans the rest."""
    return {
        "on": list(settings(design)),
        "block_steps": design.block_steps,
        "settle_steps": design.settle_steps,
        "warmup_steps": design.warmup_steps,
        "pilot_fours": design.pilot_fours,
        "factor": _pilot_factor(design),
        "detect": math.log(design.detect),
    }


def of_blocks(turns: TurnsSeen) -> TriedInTurns:
    """Return what was found in the blocks that a run made."""
    blocks = [(on, seconds / n) for on, n, seconds in turns.blocks if n and seconds > 0.0]
    design = Design(
        block_steps=turns.block_steps,
        settle_steps=turns.settle_steps,
        pilot_fours=turns.pilot_fours,
        most_fours=turns.most_fours,
    )
    full = len(blocks) == len(turns.blocks)
    on = [is_on for is_on, _ in blocks]
    log_gains = gains_of_blocks(on, [math.log(step_s) for _, step_s in blocks]) if full else ()
    result = TriedInTurns(
        actions=turns.actions,
        ended="too-few",
        fours=len(log_gains),
        block_steps=turns.block_steps,
        settle_steps=turns.settle_steps,
        first_step=turns.first_step,
        kept=None if turns.kept is None else ("on" if turns.kept else "off"),
    )
    if turns.lost is not None:
        return replace(result, ended="lost", why=turns.lost)
    if len(log_gains) < FEWEST_FOURS:
        return result
    conclusion = conclude(design, log_gains, ended=True)
    used = blocks[: conclusion.fours * FOUR]
    ended = "no-room" if conclusion.planned > design.most_fours else "planned"
    if conclusion.fours < min(conclusion.planned or design.pilot_fours, design.most_fours):
        ended = "run-ended"
    return replace(
        result,
        ended=ended,
        low=conclusion.speedup.low,
        mid=conclusion.speedup.mid,
        high=conclusion.speedup.high,
        smallest=conclusion.smallest,
        on_s=fmean(step_s for is_on, step_s in used if is_on),
        off_s=fmean(step_s for is_on, step_s in used if not is_on),
        fours=conclusion.fours,
        planned_fours=conclusion.planned or None,
    )


def _pilot_factor(design: Design) -> float:
    """Return that many, over the spread without signs: of a normal law, sqrt(1 - 2 / pi) of it."""
    return _factor(design.pilot_fours) / math.sqrt(1.0 - 2.0 / math.pi)


def _factor(fours: int) -> float:
    """Return how many standard errors an effect must be to be found with a power of 80 %."""
    return t_quantile(UPPER, fours - 1) + t_quantile(_POWER, fours - 1)
