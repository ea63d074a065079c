"""Sums of steps and of other stretches of time, and the lines that tell them.

A line stands for `n` steps: sums of their times, the longest, and how often each length occurred,
in buckets of a logarithmic histogram: bucket b holds lengths of 2**(b/16) up to 2**((b+1)/16)
seconds, 4.4 % wide. So lines can cover more time, and be added up, and quantiles survive. A line
covers little time at first, and more the longer a process runs: at 300 bytes a line the step lines
of eight ranks take 70 MB in a week.

Where no optimizer of PyTorch steps (inference, or steps made by the program itself), rounds of the
loop are counted: a batch that a loader gave, or a backward pass. Both have lines of their own until
an optimizer steps; the reader takes the best that there is: steps, backward passes, batches.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from math import floor, log2

from .events import Events, wall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import SupportsFloat, TypeVar

    from .stacks import Samples

    _Number = TypeVar("_Number", int, float)

# Until this age of the process, seconds: seconds that a line covers at least.
WIDTHS = ((60.0, 0.05), (600.0, 0.25), (3600.0, 1.0), (21600.0, 10.0))
LAST_WIDTH_S = 30.0


def width_s(age_s: float) -> float:
    """Return how long a line covers, seconds.

    Args:
        age_s: since the first line of its kind.
    """
    for until_s, width in WIDTHS:
        if age_s < until_s:
            return width
    return LAST_WIDTH_S


BUCKETS = 16  # to a factor of 2
SHORTEST_S = 1e-6  # what is shorter counts as this
FEWEST = 5  # steps until it is known how long they usually are

_LINE = (
    '{"event":"%s",%s"t_s":%.6f,"step":%d,"n":%d,"step_s":%s,"data_wait_s":%s,"h2d_s":%s,'
    '"optimizer_s":%s,"checkpoint_s":%.6f,"evaluation_s":%.6f,"items":%s,"loader":%s,"loss":%s,'
    '"longest_s":%s,"lengths":{%s}}'
)


@dataclass(eq=False)
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

    n: int
    step_s: float | None = 0.0
    wait_s: float | None = 0.0
    optimizer_s: float | None = 0.0
    checkpoint_s: float = 0.0
    evaluation_s: float = 0.0
    items: int | None = 0
    longest_s: float = 0.0
    lengths: dict[int, int] = field(default_factory=dict)
    loss: SupportsFloat | None = None

    def measured(self) -> float | None:
        """Enter the length of this one step, and return it; None where it is unknown."""
        if self.step_s is None:
            return None
        length_s = max(self.step_s - self.checkpoint_s, 0.0) / self.n
        self.longest_s = length_s
        self.lengths[bucket(length_s)] = self.n
        return length_s

    def add(self, more: Spent) -> None:
        """Add the steps of another."""
        self.n += more.n
        self.step_s = plus(self.step_s, more.step_s)
        self.wait_s = plus(self.wait_s, more.wait_s)
        self.optimizer_s = plus(self.optimizer_s, more.optimizer_s)
        self.checkpoint_s += more.checkpoint_s
        self.evaluation_s += more.evaluation_s
        self.items = plus(self.items, more.items)
        self.longest_s = max(self.longest_s, more.longest_s)
        _add(self.lengths, more.lengths)
        self.loss = more.loss


def bucket(length_s: float) -> int:
    """Return the bucket of a length."""
    return floor(log2(max(length_s, SHORTEST_S)) * BUCKETS)


def plus(sum_: _Number | None, more: _Number | None) -> _Number | None:
    """Return a sum, None where a part is unknown."""
    return None if sum_ is None or more is None else sum_ + more


class Tally:
    """Steps of one kind: holds them back until a line is due, and knows how long they usually are.

    Attributes:
        count: steps so far.
    """

    def __init__(self, events: Events, event: str = "step", **labels: str) -> None:
        self._events = events
        self._event = event
        self._said = "".join('"%s":"%s",' % label for label in labels.items())
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
        spent_before = self._held
        if spent_before is not None and (
            loader != self._loader or (spent_before.step_s is None) != (spent.step_s is None)
        ):
            self.flush()
            spent_before = self._held
        self._loader = loader
        self.count += spent.n
        if spent_before is None:
            self._held = spent
        else:
            spent_before.add(spent)

    def is_due(self, end_s: float) -> bool:
        """Return whether a line is due when a step ends, by time.perf_counter()."""
        return end_s >= self._due_s

    def flush(self, end_s: float | None = None, copies_s: float | None = None) -> None:
        """Write the steps that were held back.

        Args:
            end_s: when the last of them ended, by time.perf_counter(); now when left out.
            copies_s: GPU time of copies since the last line, None where unknown.
        """
        spent, self._held = self._held, None
        if spent is None:
            return
        if end_s is None:
            end_s = time.perf_counter()
        if self._first_s is None:
            self._first_s = end_s
        self._due_s = end_s + width_s(end_s - self._first_s)
        lengths = spent.lengths
        # The length of a single step is told by `longest_s`.
        buckets = ",".join(['"%d":%d' % entry for entry in lengths.items()]) if spent.n > 1 else ""
        _add(self._lengths, lengths)
        values = (
            self._event,
            self._said,
            wall(end_s),
            self.count,
            spent.n,
            _number(spent.step_s),
            _number(spent.wait_s),
            _number(copies_s),
            _number(spent.optimizer_s),
            spent.checkpoint_s,
            spent.evaluation_s,
            "null" if spent.items is None else "%d" % spent.items,
            "null" if self._loader is None else "%d" % self._loader,
            _value(spent.loss),
            _number(spent.longest_s if lengths else None),
            buckets,
        )
        self._events.line(_LINE % values)

    def typical_s(self) -> float | None:
        """Return the median length of the steps that were written, None before there are five."""
        total = sum(self._lengths.values())
        if total < FEWEST:
            return None
        passed = 0
        for key in sorted(self._lengths):
            passed += self._lengths[key]
            if 2 * passed >= total:
                return float(2.0 ** ((key + 0.5) / BUCKETS))
        return None


def _add(sums: dict[int, int], more: dict[int, int]) -> None:
    for key, n in more.items():
        sums[key] = sums.get(key, 0) + n


def _value(loss: SupportsFloat | None) -> str:
    """Return a loss in all its digits, so that two runs can be held against each other."""
    value = None if loss is None else float(loss)
    return "null" if value is None or value - value != 0.0 else repr(value)


def _number(value: float | None) -> str:
    return "null" if value is None else "%.6f" % value


AT_ONCE_S = 1.0  # while a line covers less than this, each stretch is written as it ends


class Spans:
    """Writes stretches: each at once in the first ten minutes, later several of a kind as one.

    One that stands for several carries their number `n` and the time `over_s` from the begin of the
    first to the end of the last.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._first_s: float | None = None
        self._held: dict[str, Held] = {}

    def add(
        self,
        kind: str,
        begin_s: float,
        length_s: float,
        wait_s: float | None = None,
    ) -> None:
        """Take a stretch.

        Args:
            kind: what went on.
            begin_s: when it began, by time.perf_counter().
            length_s: how long it took.
            wait_s: time of it that was spent waiting for input, None where unknown.
        """
        if self._first_s is None:
            self._first_s = begin_s
        width = width_s(begin_s - self._first_s)
        span = self._held.get(kind)
        if span is None:
            span = self._held[kind] = Held(begin_s)
        span.n += 1
        span.length_s += length_s
        span.end_s = begin_s + length_s
        span.wait_s = plus(span.wait_s, wait_s)
        if width < AT_ONCE_S or span.end_s - span.begin_s >= width:
            self._write(kind, self._held.pop(kind))

    def flush(self) -> None:
        """Write what was held back."""
        for kind in list(self._held):
            self._write(kind, self._held.pop(kind))

    def _write(self, kind: str, span: Held) -> None:
        fields = {"kind": kind, "s": round(span.length_s, 6)}
        if span.n > 1:
            fields.update(n=span.n, over_s=round(span.end_s - span.begin_s, 6))
        if kind == "evaluation":
            fields["wait_s"] = None if span.wait_s is None else round(span.wait_s, 6)
        self._events.write("span", wall(span.begin_s), **fields)


class Held:
    """Stretches of one kind that are not written yet."""

    __slots__ = ("begin_s", "end_s", "length_s", "n", "wait_s")

    def __init__(self, begin_s: float) -> None:
        self.begin_s = self.end_s = begin_s
        self.n = 0
        self.length_s = 0.0
        self.wait_s: float | None = 0.0


PATIENCE_S = 1.0  # an optimizer that steps has mostly done so by then


class Rounds:
    """Rounds of one kind, from end to end.

    Attributes:
        end_s: when the last one ended, None before.
        wait_s: waited for batches since, None where no loader was read.
        items: of the batches since.
    """

    def __init__(self, events: Events, by: str) -> None:
        self._tally = Tally(events, "iteration", by=by)
        self.end_s: float | None = None
        self.wait_s: float | None = None
        self.items: int | None = None
        self._first_s = 0.0

    def waited(self, seconds: float, items: int | None) -> None:
        """Take a wait for a batch."""
        self.wait_s = (self.wait_s or 0.0) + seconds
        self.items = plus(0 if self.items is None else self.items, items)

    def ended(self, end_s: float, loader: int | None) -> None:
        """Take the end of a round; the first has no length, as nobody knows when it began.

        Args:
            end_s: by time.perf_counter().
            loader: number of the loader that fed it.
        """
        spent = Spent(1)
        spent.step_s = None if self.end_s is None else end_s - self.end_s
        spent.optimizer_s = None
        spent.wait_s, spent.items = self.wait_s, self.items
        spent.measured()
        if self.end_s is None:
            self._first_s = end_s
        self.end_s, self.wait_s, self.items = end_s, None, None
        self._tally.hold(spent, loader)
        if self._tally.is_due(end_s) and end_s - self._first_s >= PATIENCE_S:
            self._tally.flush(end_s)

    def flush(self) -> None:
        """Write what was held back."""
        self._tally.flush(self.end_s)


class Iterations:
    """Batches and backward passes of a process in which no optimizer has stepped."""

    def __init__(self, events: Events, samples: Samples) -> None:
        self._samples = samples
        self._batches = Rounds(events, "batch")
        self._backwards = Rounds(events, "backward")

    def waited(self, begin_s: float, end_s: float) -> None:
        """Take a wait that gave no batch: the start of an iteration, or its end."""
        for rounds in (self._batches, self._backwards):
            rounds.waited(end_s - begin_s, 0)

    def fetched(self, loader: int, begin_s: float, end_s: float, items: int | None) -> None:
        """Take a batch of the loader of that number."""
        self._started(self._batches)
        for rounds in (self._batches, self._backwards):
            rounds.waited(end_s - begin_s, items)
        self._batches.ended(end_s, loader)

    def went_back(self, end_s: float) -> None:
        """Take the end of a backward pass."""
        self._started(self._backwards)
        self._backwards.ended(end_s, None)

    def flush(self) -> None:
        """Write what was held back."""
        for rounds in (self._batches, self._backwards):
            rounds.flush()

    def _started(self, rounds: Rounds) -> None:
        if rounds.end_s is None:
            self._samples.settle("start-up")
