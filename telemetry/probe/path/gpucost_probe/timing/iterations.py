"""Rounds of a loop in which no optimizer of PyTorch steps: inference, or steps made by hand.

A round is a batch that a loader gave, or a backward pass. Both are told in lines of their own until
an optimizer steps; the reader takes the best that there is: steps, backward passes, batches.
"""

from __future__ import annotations

from .tally import Spent, Tally, plus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..events import Events
    from .readings import Loader
    from .stacks import Samples

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

    def fetched(self, loader: Loader, begin_s: float, end_s: float, items: int | None) -> None:
        """Take a batch."""
        self._started(self._batches)
        for rounds in (self._batches, self._backwards):
            rounds.waited(end_s - begin_s, items)
        self._batches.ended(end_s, loader.number)

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
