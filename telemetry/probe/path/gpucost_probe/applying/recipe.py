"""What is to be applied, what became of it, and the experiment that tries it on and off in turns.

The settings of a recipe are switched in blocks of steps whose order was drawn by who started the
program, who also says how many blocks a pilot has. How many there are in all follows from how much
the pilot's fours differ from each other without their signs: so nobody looks at the answer to
decide whether to go on. When they are over, the faster of the two stays.

Workers read ahead. Where that takes cores from the program, the first steps of their turn pay for
batches that its last steps get for nothing: both are left out of what is compared.
"""

from __future__ import annotations

import json
import math
import os
import re
from statistics import mean, stdev

from ..events import APPLY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from ..events import Events
    from ..steps import Reporter


APPLIED, LEFT = "applied", "left"
MOST_TOLD = 200  # a program that makes a loader for each step is not told for ever


# Action: the first PyTorch that has what it uses. Tried with 2.13; the next major is not known yet.
_FIRST = {
    "dataloader-workers": (2, 0),  # batches by `__getitems__`
    "dataloader-prefetch": (2, 0),
    "pinned-memory": (2, 0),
    "mixed-precision": (2, 1),  # modules that can be called in another way
    "compile": (2, 1),
    "channels-last": (2, 1),
    "fused-optimizer": (2, 2),
    "tf32": (2, 0),
}
_NEXT_MAJOR = (3, 0)


class Recipe:
    """The actions of a recipe that the probe may apply.

    Attributes:
        probe: of this process.
        turns: where they are tried on and off in turns; None where they stay on.
    """

    def __init__(
        self, probe: Reporter, actions: dict[str, dict[str, object]], turns: Turns | None = None
    ) -> None:
        self.probe = probe
        self.turns = turns
        self._actions = actions
        self._told: dict[tuple[str, str], tuple[str, str]] = {}

    def refuse_versions(self, version: str) -> None:
        """Leave, named, what this version of PyTorch is not known to take."""
        own = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
        for code in [*self._actions]:
            first = _FIRST.get(code, (2, 0))
            if not first <= own < _NEXT_MAJOR:
                reason = "PyTorch %s: this is written for %d.%d up to, but not including, %d.%d"
                del self._actions[code]
                self.tell(code, LEFT, reason % (version, *first, *_NEXT_MAJOR))

    def settings(self, code: str) -> dict[str, object] | None:
        """Return the settings of an action, None where it is not asked for."""
        return self._actions.get(code)

    def number(self, code: str, name: str, default: int) -> int:
        """Return a whole number that an action sets."""
        value = (self._actions.get(code) or {}).get(name)
        return int(value) if isinstance(value, (int, float)) and value >= 1 else default

    def tell(self, code: str, outcome: str, sentence: str, where: str = "") -> None:
        """Write what became of an action; the same is not said twice.

        Args:
            code: of the action.
            outcome: APPLIED or LEFT.
            sentence: what is set now, or why it is not.
            where: the loader, model or optimizer that it is about.
        """
        if self._told.get((code, where)) == (outcome, sentence) or len(self._told) >= MOST_TOLD:
            return
        self._told[code, where] = (outcome, sentence)
        events = self.probe.events
        events.hello("pytorch")
        events.write("change", action=code, outcome=outcome, what=sentence, where=where)

    def forget(self) -> None:
        """Forget what the parent of a forked process has told and tried."""
        self._told.clear()
        if self.turns is not None:
            self.turns.forget()


def read_orders(folder: str) -> dict[str, Any]:
    """Return what lies in the folder of events to be applied; its `actions` may be none."""
    try:
        with open(os.path.join(folder, APPLY), encoding="utf-8") as stream:
            orders = json.load(stream)
        return orders if isinstance(orders["actions"], dict) else {"actions": {}}
    except (OSError, ValueError, KeyError, TypeError):
        return {"actions": {}}


FOUR = 4
MOST_WORKERS = 16
_RANKS = "WORLD_SIZE"
_RANKS_AHEAD = 2 * MOST_WORKERS  # ranks must switch together, so none follows its own loader
WORKERS, PREFETCH, PINNED = "dataloader-workers", "dataloader-prefetch", "pinned-memory"


class Turns:
    """The state of an experiment in this process.

    Args:
        events: returns where it is told.
        design: `on` of each block, `block_steps`, `settle_steps`, `warmup_steps`, `pilot_fours`,
            `factor` (of that spread, what an effect must be) and `detect` (its logarithm).

    Attributes:
        on: whether the settings are, from the next step on.
        steps: seen so far.
        kept: whether they stay on in the end; None as long as it is not there.
    """

    def __init__(self, events: Callable[[], Events], design: dict[str, Any]) -> None:
        self._events, self._design = events, design
        self._order: list[bool] = [bool(on) for on in design["on"]]
        self._block_steps = int(design["block_steps"])
        self._settle_steps = int(design["settle_steps"])
        self.on = True
        self.steps = 0
        self.kept: bool | None = None
        self._parts: list[Callable[[bool], None]] = []
        self._codes: list[str] = []
        self._workers = self._ahead = self._drain_steps = 0
        self._block: int | None = None
        self._over = False
        self._at = self._n = 0
        self._sum_s = 0.0
        self._logs: list[float] = []
        self._gains: list[float] = []

    def join(
        self,
        code: str,
        switch: Callable[[bool], None] | None = None,
        *,
        workers: int = 0,
        ahead: int = 0,
    ) -> None:
        """Take a setting that is on now.

        Args:
            code: its action.
            switch: called with whether it is on, where asking `on` is not enough.
            workers: that come and go with it: batches come in rounds of so many.
            ahead: batches that they read ahead at the cost of the program's cores.
        """
        if self._block is None and code not in self._codes:
            self._codes.append(code)
        if switch is not None:
            self._parts.append(switch)
        self._workers = max(self._workers, workers)
        self._ahead = max(self._ahead, ahead)

    def forget(self) -> None:
        """Take that this process was forked: the experiment is its parent's."""
        self._over = True

    def lose(self, why: str) -> None:
        """Take that a setting which was joined is off for good: what follows compares nothing."""
        if self._over:
            return
        self._over = True
        if self._block is not None:
            self._events().write("turns-over", kept=None, lost=why)

    def steps_left(self) -> int | None:
        """Return how many steps more are on, the one to come included; None: without an end."""
        if self._over or self._block is None:
            return None
        remaining, block = self._block_steps - self._at, self._block + 1
        while block < len(self._order) and self._order[block]:
            remaining += self._block_steps
            block += 1
        return remaining

    def stepped(self, length_s: float | None) -> None:
        """Take a step that ended; it was `length_s` long, None where that is not known."""
        self.steps += 1
        if self._over:
            return
        try:
            self._stepped(length_s)
        except Exception as error:
            self._over = True
            self._events().odd("the turns ended early: %r" % (error,))

    def _stepped(self, length_s: float | None) -> None:
        if self._block is None:
            if self._codes and self.steps >= self._design["warmup_steps"]:
                self._begin()
            return
        self._at += 1
        last = self._block_steps - self._drain_steps
        if self._settle_steps < self._at <= last and length_s is not None:
            self._sum_s += length_s
            self._n += 1
        if self._at == self._block_steps:
            self._end_block()

    def _begin(self) -> None:
        """Make blocks whole rounds of the workers, and begin with the first."""
        workers, ahead = max(1, self._workers), self._ahead
        if os.environ.get(_RANKS, "1") != "1":
            workers, ahead = MOST_WORKERS, int(self._design.get("ahead", 0))
        counted = self._block_steps - self._settle_steps
        # At least a round to settle in, and whole rounds that count: batches come in bursts.
        self._settle_steps = _round_up(max(self._settle_steps, workers + 1 + ahead), workers)
        self._drain_steps = _round_up(ahead, workers)
        left_out = self._settle_steps + self._drain_steps
        self._block_steps = left_out + _round_up(max(counted, 2 * workers), workers)
        self._events().write(
            "turns",
            actions=self._codes,
            block_steps=self._block_steps,
            settle_steps=left_out,
            first_step=self.steps + 1,
            pilot_fours=self._design["pilot_fours"],
            most_fours=len(self._order) // FOUR,
        )
        self._block = 0
        self._switch(on=self._order[0])

    def _end_block(self) -> None:
        block = self._block or 0
        self._events().write(
            "block", block=block, on=self._order[block], n=self._n, s=round(self._sum_s, 9)
        )
        self._logs.append(math.log(max(self._sum_s, 1e-9) / max(self._n, 1)))
        self._at, self._n, self._sum_s = 0, 0, 0.0
        self._block = block + 1
        if self._is_enough():
            self._end()
        else:
            self._switch(on=self._order[self._block])

    def _is_enough(self) -> bool:
        """Return whether as many fours are there as the pilot's spread without signs asks for."""
        if len(self._logs) % FOUR:
            return False
        first = len(self._logs) - FOUR
        signs = [-0.5 if on else 0.5 for on in self._order[first:]]
        self._gains.append(sum(x * sign for x, sign in zip(self._logs[first:], signs)))
        pilot = int(self._design["pilot_fours"])
        if len(self._gains) < pilot:
            return False
        factor, detect = float(self._design["factor"]), float(self._design["detect"])
        spread = stdev(abs(gain) for gain in self._gains[:pilot])
        needed = math.ceil((factor * spread / detect) ** 2)
        return len(self._gains) >= min(max(pilot, needed), len(self._order) // FOUR)

    def _end(self) -> None:
        """Let the faster of the two stay."""
        self._over = True
        self.kept = mean(self._gains) >= 0.0
        self._events().write("turns-over", kept=self.kept)
        self._switch(on=self.kept)

    def _switch(self, *, on: bool) -> None:
        if on != self.on:
            self.on = on
            for part in self._parts:
                part(on)


def _round_up(steps: int, round_: int) -> int:
    """Return at least so many steps in whole rounds."""
    return -(-steps // round_) * round_


def turns_of(probe: Reporter, orders: dict[str, Any]) -> Turns | None:
    """Return the experiment that was asked for, None where none was."""
    design = orders.get("experiment")
    if not isinstance(design, dict):
        return None
    try:
        ahead = _RANKS_AHEAD if WORKERS in orders["actions"] else 0
        return Turns(lambda: probe.events, {**design, "ahead": ahead})
    except (KeyError, TypeError, ValueError):
        return None
