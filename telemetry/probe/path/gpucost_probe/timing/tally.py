"""Sums of steps, and the lines that tell them.

A line stands for `n` steps: sums of their times, the longest, and how often each length occurred,
in buckets of a logarithmic histogram: bucket b holds lengths of 2**(b/16) up to 2**((b+1)/16)
seconds, 4.4 % wide. So lines can cover more time, and be added up, and quantiles survive.
"""

from __future__ import annotations

import time
from math import floor, log2

from ..events import wall
from .pace import width_s

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..events import Events

BUCKETS = 16  # to a factor of 2
SHORTEST_S = 1e-6  # what is shorter counts as this
FEWEST = 5  # steps until it is known how long they usually are

_LINE = (
    '{"event":"%s",%s"t_s":%.6f,"step":%d,"n":%d,"step_s":%s,"data_wait_s":%s,"h2d_s":%s,'
    '"optimizer_s":%s,"checkpoint_s":%.6f,"evaluation_s":%.6f,"items":%s,"loader":%s,"loss":%s,'
    '"longest_s":%s,"lengths":{%s}}'
)


class Spent:
    """How one step, or the sum of several, was spent; None is unknown.

    Attributes:
        n: number of steps.
        step_s: time without evaluation.
        wait_s: time that training waited for batches.
        optimizer_s: time in optimizers.
        checkpoint_s: time of saving.
        evaluation_s: time of evaluation.
        items: items of the batches.
        longest_s: length of the longest step, without evaluation and saving.
        lengths: number of steps by bucket of that length.
        loss: of the last of them, a tensor of one number on the CPU, read when a line is written.
    """

    __slots__ = (  # noqa: RUF023 - the order of the docstring
        "n",
        "step_s",
        "wait_s",
        "optimizer_s",
        "checkpoint_s",
        "evaluation_s",
        "items",
        "longest_s",
        "lengths",
        "loss",
    )

    def __init__(self, n: int) -> None:
        self.n = n
        self.step_s: float | None = 0.0
        self.wait_s: float | None = 0.0
        self.optimizer_s: float | None = 0.0
        self.checkpoint_s = 0.0
        self.evaluation_s = 0.0
        self.items: int | None = 0
        self.longest_s = 0.0
        self.lengths: dict[int, int] = {}
        self.loss: Any = None

    def measured(self) -> float | None:
        """Enter the length of this one step, and return it; None where it is unknown."""
        if self.step_s is None:
            return None
        length_s = max(self.step_s - self.checkpoint_s, 0.0) / self.n
        self.longest_s = length_s
        self.lengths[bucket(length_s)] = self.n
        return length_s

    def add(self, other: Spent) -> None:
        """Add the steps of another."""
        self.n += other.n
        self.step_s = plus(self.step_s, other.step_s)
        self.wait_s = plus(self.wait_s, other.wait_s)
        self.optimizer_s = plus(self.optimizer_s, other.optimizer_s)
        self.checkpoint_s += other.checkpoint_s
        self.evaluation_s += other.evaluation_s
        self.items = plus(self.items, other.items)
        self.longest_s = max(self.longest_s, other.longest_s)
        _add(self.lengths, other.lengths)
        self.loss = other.loss


def bucket(length_s: float) -> int:
    """Return the bucket of a length."""
    return floor(log2(max(length_s, SHORTEST_S)) * BUCKETS)


def plus(sum_: Any, more: Any) -> Any:
    """Return a sum, None where a part is unknown."""
    return None if sum_ is None or more is None else sum_ + more


class Tally:
    """Steps of one kind: holds them back until a line is due, and knows how long they usually are.

    Attributes:
        count: steps so far.
    """

    def __init__(self, events: Events, event: str = "step", **said: str) -> None:
        self._events = events
        self._event = event
        self._said = "".join('"%s":"%s",' % each for each in said.items())
        self.count = 0
        self._held: Spent | None = None
        self._loader: int | None = None
        self._first_s: float | None = None
        self._due_s = 0.0
        self._lengths: dict[int, int] = {}

    def hold(self, spent: Spent, loader: int | None) -> None:
        """Keep a step for the next line; a first step of unknown length gets a line of its own.

        Args:
            spent: how it was spent.
            loader: number of the training loader.
        """
        held = self._held
        if held is not None and (
            loader != self._loader or (held.step_s is None) != (spent.step_s is None)
        ):
            self.flush()
            held = self._held
        self._loader = loader
        self.count += spent.n
        if held is None:
            self._held = spent
        else:
            held.add(spent)

    def is_due(self, end_s: float) -> bool:
        """Return whether a line is due when a step ends, by time.perf_counter()."""
        return end_s >= self._due_s

    def flush(self, end_s: float | None = None, copies_s: float | None = None) -> None:
        """Write the steps that were held back.

        Args:
            end_s: when the last of them ended, by time.perf_counter(); now when left out.
            copies_s: GPU time of copies since the last line, None where unknown.
        """
        held, self._held = self._held, None
        if held is None:
            return
        if end_s is None:
            end_s = time.perf_counter()
        if self._first_s is None:
            self._first_s = end_s
        self._due_s = end_s + width_s(end_s - self._first_s)
        lengths = held.lengths
        # The length of a single step is told by `longest_s`.
        told = ",".join(['"%d":%d' % each for each in lengths.items()]) if held.n > 1 else ""
        _add(self._lengths, lengths)
        values = (
            self._event,
            self._said,
            wall(end_s),
            self.count,
            held.n,
            _number(held.step_s),
            _number(held.wait_s),
            _number(copies_s),
            _number(held.optimizer_s),
            held.checkpoint_s,
            held.evaluation_s,
            "null" if held.items is None else "%d" % held.items,
            "null" if self._loader is None else "%d" % self._loader,
            _value(held.loss),
            _number(held.longest_s if lengths else None),
            told,
        )
        self._events.line(_LINE % values)

    def typical_s(self) -> float | None:
        """Return the median length of the steps that were written, None before there are five."""
        total = sum(self._lengths.values())
        if total < FEWEST:
            return None
        seen = 0
        for key in sorted(self._lengths):
            seen += self._lengths[key]
            if 2 * seen >= total:
                return float(2.0 ** ((key + 0.5) / BUCKETS))
        return None


def _add(sums: dict[int, int], more: dict[int, int]) -> None:
    for key, n in more.items():
        sums[key] = sums.get(key, 0) + n


def _value(loss: Any) -> str:
    """Return a loss in all its digits, so that two runs can be held against each other."""
    value = None if loss is None else float(loss)
    return "null" if value is None or value - value != 0.0 else repr(value)


def _number(value: float | None) -> str:
    return "null" if value is None else "%.6f" % value
