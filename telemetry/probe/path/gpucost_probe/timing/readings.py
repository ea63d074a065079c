"""What loaders did since the last optimizer step, and which of it was training.

A loader is *open* after it has given a batch until it is exhausted. The training loader is the open
one that gave a batch last when the optimizer steps. What else was read since the step before is
evaluation, if it was read from begin to end, or gave more batches than the training loader did;
else it is read alongside (two data sets in step), and its waits count as well. Reading the training
loader itself once through, without a step, before training goes on with it, is evaluation, too.
"""

from __future__ import annotations


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

    __slots__ = (  # noqa: RUF023 - the order of the docstring
        "loader",
        "begin_s",
        "end_s",
        "wait_s",
        "batches",
        "items",
        "saved_s",
        "pending_s",
        "is_start",
        "is_end",
    )

    def __init__(self, loader: Loader, begin_s: float) -> None:
        self.loader = loader
        self.begin_s = self.end_s = begin_s
        self.wait_s = 0.0
        self.batches = 0
        self.items: int | None = 0
        self.saved_s = self.pending_s = 0.0
        self.is_start = self.is_end = False

    def extend(self, end_s: float) -> None:
        """Take that it has lasted until now."""
        self.end_s = end_s
        self.saved_s += self.pending_s
        self.pending_s = 0.0

    def length_s(self, start_s: float = 0.0) -> float:
        """Return how long it lasted, after `start_s`, without saving."""
        return max(self.end_s - max(self.begin_s, start_s) - self.saved_s, 0.0)


class Interval:
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
            last = Reading(loader, begin_s)
            last.is_start = starts
            self.readings.append(last)
        last.wait_s += end_s - begin_s
        last.extend(end_s)
        return last

    def training(self, known: Loader | None, *, stepped: bool) -> Loader | None:
        """Return the loader that the step was trained with.

        Args:
            known: the training loader until now; it may have given this step's batch earlier.
            stepped: there were steps before: those without a loader make no loader that was read
                to its end between two of them the training one.
        """
        for reading in reversed(self.readings):
            if reading.batches and reading.loader.is_open:
                return reading.loader
        if known is None and self.readings and not stepped:
            return self.readings[-1].loader
        return known

    def split(self, training: Loader | None) -> tuple[list[Reading], list[Reading]]:
        """Return what was read for training and what for evaluation."""
        if len(self.readings) == 1 and self.readings[0].loader is training:
            return self.readings, _NOTHING  # nearly every step
        last, given = -1, 0
        for index, reading in enumerate(self.readings):
            if reading.loader is training and reading.batches:
                last, given = index, reading.batches
        trained: list[Reading] = []
        evaluated: list[Reading] = []
        for index, reading in enumerate(self.readings):
            if reading.loader is training:
                whole = reading.is_start and reading.is_end and reading.batches > 1
                aside = whole and index < last
            else:
                aside = reading.batches > max(given, 0 if reading.is_end else 1)
                aside = aside or (reading.is_end and reading.batches > 0)
            (evaluated if aside else trained).append(reading)
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
    starts = [each.started_s for each in (training, *loaders) if each is not None]
    return min((start_s for start_s in starts if start_s is not None), default=None)
