"""The clock of optimizer steps: how the time between two was spent, and what was read in it.

A loader is *open* after it has given a batch until it is exhausted. The training loader is the open
one that gave a batch last when the optimizer steps. What else was read since the step before is
evaluation, if it was read from begin to end, or gave more batches than the training loader did;
else it is read alongside (two data sets in step), and its waits count as well. Reading the training
loader itself once through, without a step, before training goes on with it, is evaluation, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import get_ident, main_thread
from time import perf_counter

from .stacks import Samples, core_times_s
from .tally import Iterations, Spans, Spent, Tally, plus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from .events import Events
    from .foreign import Foreign


def wanting_a_core_s() -> float:
    """Return both together.

    On a machine that is busy with others, work looks like waiting by the clock of the thread alone.
    """
    return sum(core_times_s())


class Loader:
    """What the clock must know of a loader.

    Attributes:
        number: as the events name it.
        started_s: when its last iteration began, None before.
        is_open: it has given a batch and has more, as far as is known.
        evaluates: it was found to be evaluation.
        is_timed: waits for its batches are seen.
    """

    __slots__ = ("evaluates", "is_open", "is_timed", "number", "started_s")

    def __init__(self, number: int, *, is_timed: bool = True) -> None:
        self.number = number
        self.is_timed = is_timed
        self.started_s: float | None = None
        self.is_open = False
        self.evaluates = False


@dataclass(eq=False)
class Reading:
    """Reading one loader, with no other in between.

    Attributes:
        loader: which.
        begin_s: when it began.
        end_s: when it ended; the last batch was there, or another loader was read.
        wait_s: time of it that was spent waiting for batches.
        batches: their number.
        items: their items, None if unknown.
        saved_s: time of it that was spent saving.
        pending_s: time of saving since `end_s`; part of it if the reading goes on.
        is_start: the iteration began here.
        is_end: the loader was exhausted here.
    """

    loader: Loader
    begin_s: float
    end_s: float
    wait_s: float = 0.0
    batches: int = 0
    items: int | None = 0
    saved_s: float = 0.0
    pending_s: float = 0.0
    is_start: bool = False
    is_end: bool = False

    def extend(self, end_s: float) -> None:
        """Take that it has lasted until now."""
        self.end_s = end_s
        self.saved_s += self.pending_s
        self.pending_s = 0.0

    def length_s(self, start_s: float = 0.0) -> float:
        """Return how long it lasted, after `start_s`, without saving."""
        return max(self.end_s - max(self.begin_s, start_s) - self.saved_s, 0.0)


class _Interval:
    """What one thread did since the last step.

    Attributes:
        readings: of loaders, in order.
        checkpoint_s: time spent saving.
        evaluation_s: time of evaluation that was already written.
    """

    __slots__ = ("checkpoint_s", "evaluation_s", "readings")

    def __init__(self) -> None:
        self.readings: list[Reading] = []
        self.checkpoint_s = 0.0
        self.evaluation_s = 0.0

    def waited(self, loader: Loader, begin_s: float, end_s: float, *, starts: bool) -> Reading:
        """Return the reading of a loader that was waited for, with the wait in it."""
        last = self.readings[-1] if self.readings else None
        if last is None or last.loader is not loader or last.is_end or starts:
            if last is not None and last.loader is not loader and last.loader.is_open:
                last.extend(begin_s)  # it was left before its end: it lasted until now
            last = Reading(loader, begin_s, begin_s, is_start=starts)
            self.readings.append(last)
        last.wait_s += end_s - begin_s
        last.extend(end_s)
        return last

    def training(self, current: Loader | None, *, stepped: bool) -> Loader | None:
        """Return the loader that the step was trained with.

        Args:
            current: the training loader until now; it may have given this step's batch earlier.
            stepped: there were steps before: those without a loader make no loader that was read
                to its end between two of them the training one.
        """
        for reading in reversed(self.readings):
            if reading.batches and reading.loader.is_open:
                return reading.loader
        if current is None and self.readings and not stepped:
            return self.readings[-1].loader
        return current

    def split(self, training: Loader | None) -> tuple[list[Reading], list[Reading]]:
        """Return what was read for training and what for evaluation."""
        if len(self.readings) == 1 and self.readings[0].loader is training:
            return self.readings, _NOTHING  # nearly every step
        last, batches = -1, 0
        for index, reading in enumerate(self.readings):
            if reading.loader is training and reading.batches:
                last, batches = index, reading.batches
        trained: list[Reading] = []
        evaluated: list[Reading] = []
        for index, reading in enumerate(self.readings):
            if reading.loader is training:
                is_complete = reading.is_start and reading.is_end and reading.batches > 1
                alongside = is_complete and index < last
            else:
                alongside = reading.batches > max(batches, 0 if reading.is_end else 1)
                alongside = alongside or (reading.is_end and reading.batches > 0)
            (evaluated if alongside else trained).append(reading)
        return trained, evaluated


_NOTHING: list[Reading] = []


def waited_s(readings: list[Reading], start_s: float) -> float:
    """Return how long all readings since a moment waited for batches."""
    wait_s = 0.0
    for reading in readings:
        if reading.begin_s >= start_s:
            wait_s += reading.wait_s
    return wait_s


def items_of(readings: list[Reading], loader: Loader | None) -> int | None:
    """Return the items of all batches of a loader, None if a batch was not understood."""
    items = 0
    for reading in readings:
        if reading.loader is loader:
            if reading.items is None:
                return None
            items += reading.items
    return items


def first_start_s(readings: list[Reading], training: Loader | None) -> float | None:
    """Return when the iteration began that the first step belongs to, None without a loader."""
    loaders = {r.loader for r in readings if r.batches and r.loader.is_open}
    starts = [loader.started_s for loader in (training, *loaders) if loader is not None]
    return min((start_s for start_s in starts if start_s is not None), default=None)


PIECE_S = 1.0  # a known evaluation is written in pieces, so that a kill does not lose it
MOST_READINGS = 100  # a program that only reads is told about before its end
# A step this much longer than usual, and this long, is a stall: allocators, garbage collection and
# the first batch of an epoch stay below.
STALL_TIMES, STALL_S = 5.0, 0.5


class Steps:
    """Counts the steps of one process and writes how long they took.

    Attributes:
        training: the training loader, None before the first step.
        waits_known: whether the waits of the training loop are seen.
        copies_s: returns the GPU time of copies since it was last asked, None where unknown.
        spans: where evaluation, saving and stalls are told.
        samples: where the stepping thread was seen.
        thread: the one in which the last step ended, 0 before.
        loss: what the last backward pass began from, a tensor; None where it is not to be read.
        taken: called with the length of each step, without evaluation and saving; None: unknown.
        traced: a profiler works meanwhile, so the lengths of steps are not the program's own.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        events.flush, events.finish = self.flush, self.finish
        self.training: Loader | None = None
        self.waits_known = True
        self.copies_s: Callable[[], float | None] = lambda: None
        self.spans = Spans(events)
        self.samples = Samples(events)
        self.thread = 0
        self._tally = Tally(events)
        self.loss: Foreign | None = None
        self.taken: Callable[[float | None], None] | None = None
        self.traced = False
        self._otherwise: Iterations | None = Iterations(events, self.samples)
        self._intervals: dict[int, _Interval] = {}
        self._end_s: float | None = None
        self._main = main_thread().ident or 0

    @property
    def count(self) -> int:
        """Return the optimizer steps so far."""
        return self._tally.count

    def _interval(self) -> _Interval:
        thread = get_ident()
        interval = self._intervals.get(thread)
        if interval is None:
            interval = self._intervals[thread] = _Interval()
        return interval

    def started(self, loader: Loader, begin_s: float, end_s: float) -> None:
        """Take the start of an iteration, worker start included."""
        interval = self._interval()
        interval.waited(loader, begin_s, end_s, starts=True)
        loader.is_open = False
        loader.started_s = begin_s
        if self._otherwise is not None:
            self._otherwise.waited(begin_s, end_s)
        if len(interval.readings) > MOST_READINGS:
            reading = interval.readings.pop()
            self._write_evaluations(interval.readings)
            interval.readings = [reading]

    def fetched(self, loader: Loader, begin_s: float, end_s: float, items: int | None) -> None:
        """Take one batch that was waited for."""
        reading = self._interval().waited(loader, begin_s, end_s, starts=False)
        reading.batches += 1
        reading.items = plus(reading.items, items)
        loader.is_open = True
        if self._otherwise is not None:
            self._otherwise.fetched(loader.number, begin_s, end_s, items)
        if loader.started_s is None:
            loader.started_s = begin_s
        if loader.evaluates and loader is not self.training and end_s - reading.begin_s >= PIECE_S:
            self._interval().evaluation_s += reading.length_s()
            self._write_evaluations([reading])
            self.samples.settle("evaluation", until_s=end_s)
            reading.begin_s, reading.wait_s, reading.saved_s = end_s, 0.0, 0.0

    def exhausted(self, loader: Loader, begin_s: float, end_s: float) -> None:
        """Take the last call, which found no batch."""
        self._interval().waited(loader, begin_s, end_s, starts=False).is_end = True
        if self._otherwise is not None:
            self._otherwise.waited(begin_s, end_s)
        loader.is_open = False

    def saved(self, seconds: float) -> None:
        """Take the time of a checkpoint file."""
        interval = self._interval()
        interval.checkpoint_s += seconds
        if interval.readings:
            interval.readings[-1].pending_s += seconds

    def went_back(self, end_s: float) -> None:
        """Take the end of a backward pass: in a loop without an optimizer it tells the steps."""
        if self._otherwise is not None:
            self._otherwise.went_back(end_s)

    def is_reading(self, but: Loader | None = None) -> bool:
        """Return whether a loader was read since the last step, leaving one out of account."""
        interval = self._intervals.get(get_ident())
        return interval is not None and any(
            reading.loader is not but and not reading.loader.evaluates
            for reading in interval.readings
        )

    def stepped(
        self, end_s: float, optimizer_s: float | None, n: int = 1, items: int | None = None
    ) -> None:
        """Take one optimizer step.

        Args:
            end_s: when it ended, by time.perf_counter().
            optimizer_s: time in optimizers since the last step; None where a step ran the model.
            n: number of steps that ended together.
            items: of the steps, where the program says so.
        """
        interval = self._of_step()
        self._note_thread()
        self._otherwise = None  # what an optimizer steps needs no other count
        training = interval.training(self.training, stepped=self.count > 0)
        trained, evaluated = interval.split(training)
        start_s = self._end_s
        if start_s is None:
            start_s = first_start_s(trained, training)
        spent = Spent(n, optimizer_s=optimizer_s, checkpoint_s=interval.checkpoint_s)
        spent.loss, self.loss = self.loss, None
        apart_s = interval.evaluation_s
        if evaluated:
            self._write_evaluations(evaluated)
            apart_s += sum(reading.length_s(start_s or 0.0) for reading in evaluated)
        spent.evaluation_s = apart_s
        spent.step_s = None if start_s is None or self.traced else end_s - start_s - apart_s
        is_timed = self.waits_known and training is not None and training.is_timed
        if training is None or start_s is None or spent.step_s is None or not is_timed:
            spent.wait_s = spent.items = None
        else:
            spent.wait_s = waited_s(trained, start_s)
            spent.items = items_of(trained, training)
        if items is not None:
            spent.items = items
        length_s = spent.measured()
        stalled = length_s is not None and self._is_stall(length_s)
        if self.samples.waiting:
            self._settle(start_s, evaluated, stalled=stalled)
        if stalled and length_s is not None:
            self._write_stall(spent, length_s, end_s)
        number = None if training is None else training.number
        if training is not self.training:
            self.flush()  # its line tells the loader of the steps before
            self.training = training
        self._tally.hold(spent, number)
        self._end_s = end_s
        if self._tally.is_due(end_s):
            self.flush()
        self._tell_taken(length_s)

    def _note_thread(self) -> None:
        if self.thread != get_ident():
            self.thread = get_ident()
            if self.thread != self._main:  # autograd's, or a trainer's
                self._events.write("thread", ident=self.thread)

    def _tell_taken(self, length_s: float | None) -> None:
        """Tell the length of a step; the next begins after what is done then."""
        if self.taken is None:
            return
        begin_s = perf_counter()
        self.taken(length_s)
        if self._end_s is not None:
            self._end_s += perf_counter() - begin_s

    def _is_stall(self, length_s: float) -> bool:
        """Return whether a step was much longer than usual."""
        if length_s < STALL_S:
            return False
        typical_s = self._tally.typical_s()
        return typical_s is not None and length_s >= STALL_TIMES * typical_s

    def _settle(self, start_s: float | None, evaluated: list[Reading], *, stalled: bool) -> None:
        """Say what the samples since the last step were taken in."""
        if start_s is None or not self.count:
            self.samples.settle("start-up")
            self.samples.meanwhile = "stall"
            return
        for reading in evaluated:
            self.samples.settle("evaluation", reading.begin_s, reading.end_s)
        self.samples.settle("stall" if stalled else "steady")

    def _write_stall(self, spent: Spent, length_s: float, end_s: float) -> None:
        """Write the part of a long step in which nothing that is timed went on."""
        unknown_s = length_s - (spent.wait_s or 0.0)
        if unknown_s >= STALL_S:
            self.spans.add("stall", end_s - unknown_s, unknown_s)

    def resume(self, moment_s: float) -> None:
        """Leave out of the next step what the probe itself did after the last."""
        self._end_s = moment_s

    def _of_step(self) -> _Interval:
        """Return the interval that this step ends.

        Loaders may be read in the main thread while steps happen in a thread of the autograd
        engine. A loader that only a thread in the background reads makes nobody wait in this one.
        """
        interval = self._intervals.pop(get_ident(), None)
        if interval is not None and (interval.readings or interval.evaluation_s):
            return interval
        if get_ident() != self._main:
            return self._intervals.pop(self._main, None) or interval or _Interval()
        if self.training is None and any(i.readings for i in self._intervals.values()):
            self._intervals.clear()
            if self.waits_known:
                self.waits_known = False
                self._events.odd("loaders are read in another thread: their waits are unknown")
        return interval or _Interval()

    def _write_evaluations(self, readings: list[Reading]) -> None:
        for reading in readings:
            reading.loader.evaluates = True
            wait_s = reading.wait_s if reading.loader.is_timed else None
            self.spans.add("evaluation", reading.begin_s, reading.length_s(), wait_s)

    def flush(self) -> None:
        """Write the steps that were held back."""
        self._tally.flush(self._end_s, self.copies_s())

    def finish(self) -> dict[str, object]:
        """Write what was read since the last step, and return the fields of the last event."""
        for interval in list(self._intervals.values()):
            training = self.training
            unfinished = [r for r in interval.readings if r.batches and r.loader is not training]
            self._write_evaluations(unfinished)
            for reading in unfinished if self.count else ():
                self.samples.settle("evaluation", reading.begin_s, reading.end_s)
        self._intervals.clear()
        if self._otherwise is not None:
            self._otherwise.flush()
        self.spans.flush()
        self.samples.settle("teardown" if self.count else "unstepped")
        self.samples.write()
        return {"steps": self.count}


class Reporter:
    """Where a process writes; both are made anew in a forked child.

    Attributes:
        events: the event file.
        steps: the clock of the optimizer steps.
    """

    events: Events
    steps: Steps
