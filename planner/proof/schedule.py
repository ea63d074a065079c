"""When a setting is on and when off: blocks of steps in fours, on-off-off-on or the reverse, drawn.

Each four holds both settings at the same mean time, so a drift that is a straight line over the
four cancels. Which of the two orders a four has is drawn anew: whatever else the machine does
meanwhile is then as likely to favour one setting as the other, however its steps hang together.
"""

import random
from dataclasses import dataclass

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

    @property
    def most_blocks(self) -> int:
        """Blocks of the longest experiment."""
        return FOUR * self.most_fours


def settings(design: Design) -> tuple[bool, ...]:
    """Return for each block, in order, whether the setting is on."""
    draw = random.Random(design.seed)  # noqa: S311 - a design, no secret
    return tuple(
        on is first
        for first in (draw.random() < 0.5 for _ in range(design.most_fours))  # noqa: PLR2004 - a fair coin
        for on in _ON_FIRST
    )


def block_of_step(design: Design, step: int) -> int | None:
    """Return the block that a step (from 0) belongs to; None before the first and after the last.

    The setting of a block holds from its first step, also in those that are left out.
    """
    block, _ = divmod(step - design.warmup_steps, design.block_steps)
    return block if 0 <= block < design.most_blocks else None


def is_settled(design: Design, step: int) -> bool:
    """Return whether a step of a block counts."""
    return (step - design.warmup_steps) % design.block_steps >= design.settle_steps
