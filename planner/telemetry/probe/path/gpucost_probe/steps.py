"""The clock of optimizer steps: how the time between two of them was spent."""

from __future__ import annotations

import time
from threading import get_ident, main_thread

from .events import wall
from .readings import Interval, first_start_s, items_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .events import Events
    from .readings import Loader, Reading

LINE_EVERY_S = 0.05
PIECE_S = 1.0  # a known evaluation is written in pieces, so that a kill does not lose it
MOST_READINGS = 100  # a program that only reads is told about before its end

_LINE = (
    '{"event":"step","t_s":%.6f,"step":%d,"n":%d,"step_s":%s,"data_wait_s":%s,"h2d_s":%s,'
    '"optimizer_s":%s,"checkpoint_s":%.6f,"evaluation_s":%.6f,"items":%s,"loader":%s}'
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
    """

    __slots__ = (  # noqa: RUF023 - the order of the docstring
        "n",
        "step_s",
        "wait_s",
        "optimizer_s",
        "checkpoint_s",
        "evaluation_s",
        "items",
    )

    def __init__(self, n: int) -> None:
        self.n = n
        self.step_s: float | None = 0.0
        self.wait_s: float | None = 0.0
        self.optimizer_s: float | None = 0.0
        self.checkpoint_s = 0.0
        self.evaluation_s = 0.0
        self.items: int | None = 0

    def add(self, other: Spent) -> None:
        """Add the steps of another."""
        self.n += other.n
        self.step_s = _plus(self.step_s, other.step_s)
        self.wait_s = _plus(self.wait_s, other.wait_s)
        self.optimizer_s = _plus(self.optimizer_s, other.optimizer_s)
        self.checkpoint_s += other.checkpoint_s
        self.evaluation_s += other.evaluation_s
        self.items = _plus(self.items, other.items)


class Steps:
    """Counts the steps of one process and writes how long they took.

    Attributes:
        count: optimizer steps so far.
        training: the training loader, None before the first step.
        waits_known: whether the waits of the training loop are seen.
        copies_s: returns the GPU time of copies since it was last asked, None where unknown.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        events.flush, events.finish = self.flush, self.finish
        self.count = 0
        self.training: Loader | None = None
        self.waits_known = True
        self.copies_s: Callable[[], float | None] = _unknown
        self._intervals: dict[int, Interval] = {}
        self._held: Spent | None = None
        self._end_s: float | None = None
        self._line_s = 0.0
        self._main = main_thread().ident or 0

    def _interval(self) -> Interval:
        thread = get_ident()
        interval = self._intervals.get(thread)
        if interval is None:
            interval = self._intervals[thread] = Interval()
        return interval

    def started(self, loader: Loader, begin_s: float, end_s: float) -> None:
        """Take the start of an iteration, worker start included."""
        interval = self._interval()
        interval.waited(loader, begin_s, end_s, starts=True)
        loader.is_open = False
        loader.started_s = begin_s
        if len(interval.readings) > MOST_READINGS:
            kept = interval.readings.pop()
            self._write_evaluations(interval.readings)
            interval.readings = [kept]

    def fetched(self, loader: Loader, begin_s: float, end_s: float, items: int | None) -> None:
        """Take one batch that was waited for."""
        reading = self._interval().waited(loader, begin_s, end_s, starts=False)
        reading.batches += 1
        reading.items = _plus(reading.items, items)
        loader.is_open = True
        if loader.started_s is None:
            loader.started_s = begin_s
        if loader.evaluates and loader is not self.training and end_s - reading.begin_s >= PIECE_S:
            self._interval().evaluation_s += reading.length_s()
            self._write_evaluations([reading])
            reading.begin_s, reading.wait_s, reading.saved_s = end_s, 0.0, 0.0

    def exhausted(self, loader: Loader, begin_s: float, end_s: float) -> None:
        """Take the last call, which found no batch."""
        self._interval().waited(loader, begin_s, end_s, starts=False).is_end = True
        loader.is_open = False

    def saved(self, seconds: float) -> None:
        """Take the time of a checkpoint file."""
        interval = self._interval()
        interval.checkpoint_s += seconds
        if interval.readings:
            interval.readings[-1].pending_s += seconds

    def is_reading(self, but: Loader | None = None) -> bool:
        """Return whether a loader was read since the last step, leaving one out of account."""
        interval = self._intervals.get(get_ident())
        return interval is not None and any(
            reading.loader is not but and not reading.loader.evaluates
            for reading in interval.readings
        )

    def stepped(self, end_s: float, optimizer_s: float | None, n: int = 1) -> None:
        """Take one optimizer step.

        Args:
            end_s: when it ended, by time.perf_counter().
            optimizer_s: time in optimizers since the last step; None where a step ran the model.
            n: number of steps that ended together.
        """
        interval = self._of_step()
        training = interval.training(self.training)
        trained, evaluated = interval.split(training)
        start_s = self._end_s
        if start_s is None:
            start_s = first_start_s(trained, training)
        spent = Spent(n)
        spent.optimizer_s, spent.checkpoint_s = optimizer_s, interval.checkpoint_s
        spent.evaluation_s = interval.evaluation_s
        if evaluated:
            self._write_evaluations(evaluated)
            spent.evaluation_s += sum(reading.length_s(start_s or 0.0) for reading in evaluated)
        spent.step_s = None if start_s is None else end_s - start_s - spent.evaluation_s
        if training is None or start_s is None or not self.waits_known:
            spent.wait_s = spent.items = None
        else:
            spent.wait_s = sum(r.wait_s for r in trained if r.begin_s >= start_s)
            spent.items = items_of(trained, training)
        self._hold(spent, training)
        self._end_s = end_s
        if end_s - self._line_s >= LINE_EVERY_S:
            self.flush()

    def resume(self, moment_s: float) -> None:
        """Leave out of the next step what the probe itself did after the last."""
        self._end_s = moment_s

    def _of_step(self) -> Interval:
        """Return the interval that this step ends.

        Loaders may be read in the main thread while steps happen in a thread of the autograd
        engine. A loader that only a thread in the background reads makes nobody wait in this one.
        """
        interval = self._intervals.pop(get_ident(), None)
        if interval is not None and (interval.readings or interval.evaluation_s):
            return interval
        if get_ident() != self._main:
            return self._intervals.pop(self._main, None) or interval or Interval()
        if self.training is None and any(i.readings for i in self._intervals.values()):
            self._intervals.clear()
            if self.waits_known:
                self.waits_known = False
                self._events.odd("loaders are read in another thread: their waits are unknown")
        return interval or Interval()

    def _write_evaluations(self, readings: list[Reading]) -> None:
        for reading in readings:
            reading.loader.evaluates = True
            seconds = round(reading.length_s(), 6)
            self._events.write("span", wall(reading.begin_s), kind="evaluation", s=seconds)

    def _hold(self, spent: Spent, training: Loader | None) -> None:
        """Keep a step for the next line; a first step of unknown length gets a line of its own."""
        held = self._held
        if held is not None and (
            training is not self.training or (held.step_s is None) != (spent.step_s is None)
        ):
            self.flush()
            held = self._held
        self.training = training
        self.count += spent.n
        if held is None:
            self._held = spent
        else:
            held.add(spent)

    def flush(self) -> None:
        """Write the steps that were held back."""
        held, self._held = self._held, None
        if held is None:
            return
        self._line_s = time.perf_counter()
        values = (
            wall(self._line_s if self._end_s is None else self._end_s),
            self.count,
            held.n,
            _number(held.step_s),
            _number(held.wait_s),
            _number(self.copies_s()),
            _number(held.optimizer_s),
            held.checkpoint_s,
            held.evaluation_s,
            "null" if held.items is None else "%d" % held.items,
            "null" if self.training is None else "%d" % self.training.number,
        )
        self._events.line(_LINE % values)

    def finish(self) -> dict[str, Any]:
        """Write what was read since the last step, and return the fields of the last event."""
        for interval in list(self._intervals.values()):
            training = self.training
            self._write_evaluations(
                [r for r in interval.readings if r.batches and r.loader is not training]
            )
        self._intervals.clear()
        return {"steps": self.count}


def _unknown() -> None:
    return None


def _plus(sum_: Any, more: Any) -> Any:
    return None if sum_ is None or more is None else sum_ + more


def _number(value: float | None) -> str:
    return "null" if value is None else "%.6f" % value
