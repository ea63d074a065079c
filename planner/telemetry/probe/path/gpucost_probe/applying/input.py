"""Gives a loader that the program left without workers the workers of the recipe.

The loader's settings stay as the program reads them. Its iterator is the one that PyTorch makes;
what gives it the next batch is replaced in the one object, and put back when anything is odd.
"""

from __future__ import annotations

import math
import os
import threading
import time
import weakref
from statistics import median
from time import perf_counter

from .asked import APPLIED, LEFT
from .certificate import (
    BATCHES,
    Evidence,
    Watch,
    affordable,
    milliseconds,
    why_no_gain,
    why_not_begin,
    why_not_share,
)
from .given import Given
from .workers import Ahead, Begin, Pool, in_forked_child, like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Iterator

    from .asked import Asked

WORKERS, PREFETCH = "dataloader-workers", "dataloader-prefetch"
_MOST_WORKERS = 16
_WAITS = 0.5  # share of the reading on a core: below it, items mostly wait for something else
_WARM, _JUDGED = 8, 32  # rounds with workers until they are held against those without
_SLOWER = 1.05
_NEXT = "_next_data"


class Reading:
    """One loader that may get workers.

    Attributes:
        where: its name for people.
        evidence: of its first batches.
        watch: over its data set.
        left: why it is left alone, None as long as it is not.
        repeated: whether workers have read the first batches again.
        workers: how many it has.
    """

    def __init__(self, loader: Any, where: str, left: str | None) -> None:
        self.loader = weakref.ref(loader)
        self.where, self.left = where, left
        self.evidence = Evidence()
        roots = (loader.dataset, loader.collate_fn, loader._index_sampler)
        self.watch = Watch(*(roots if left is None else ()))
        self.repeated = False
        self.workers = 0


class Inputs:
    """All loaders of a process that may get workers."""

    def __init__(self, module: ModuleType, asked: Asked) -> None:
        self.module: Any = module
        self.asked = asked
        self.busy = threading.local()  # reading a batch: a loader that begins now is within it
        self.live = 0  # workers of all loaders
        self._given = Given()
        self._readings: dict[int, Reading] = {}
        self._count = 0
        self._given.watch(module)
        os.register_at_fork(after_in_child=self._in_child)

    def begun(self, loader: Any, iterator: Any) -> None:
        """Take an iteration that begins.

        Args:
            loader: whose it is; None where another loader's data set reads it.
            iterator: that PyTorch made.
        """
        outer: Reading | None = getattr(self.busy, "reading", None)
        if outer is not None:
            outer.left = outer.left or "its items are read from another DataLoader"
            return
        if loader is None or self.module.get_worker_info() is not None:
            return
        reading = self._reading(loader, iterator)
        if reading is not None and reading.left is None:
            iterator.__dict__[_NEXT] = Feed(self, reading, loader, iterator)

    def _reading(self, loader: Any, iterator: Any) -> Reading | None:
        known = self._readings.get(id(loader))
        if known is not None and known.loader() is loader:
            return known
        self._count += 1
        where = "loader %d (%s)" % (self._count, type(loader.dataset).__name__)
        why = self._why_not(loader, iterator)
        known = Reading(loader, where, why)
        if why is not None:
            self.leave(where, why)
        self._readings[id(loader)] = known
        key, forget = id(loader), self._readings.pop
        known.loader = weakref.ref(loader, lambda _: forget(key, None))
        return known

    def _why_not(self, loader: Any, iterator: Any) -> str | None:
        given = self._given.of(loader)
        if given is None:
            return "how the program made it is unknown"
        if "num_workers" in given:
            said = "num_workers=%r" % loader.num_workers
            return (
                given["num_workers"] % said
                if given["num_workers"]
                else ("the program sets %s itself" % said)
            )
        if loader.num_workers > 0:
            return "it has %d workers already" % loader.num_workers
        return why_not_begin(loader, iterator)

    def _in_child(self) -> None:
        """Take that this process was forked: workers are those of its parent."""
        in_forked_child()
        self.live = 0
        self.busy.reading = None

    def leave(self, where: str, why: str) -> None:
        """Say that a loader stays as it is."""
        for code in (WORKERS, PREFETCH):
            if self.asked.settings(code) is not None:
                self.asked.tell(code, LEFT, why, where)

    def count_for(self, evidence: Evidence) -> tuple[int, int, str]:
        """Return workers and batches ahead for each, and what they follow from.

        The recipe's number is what the cores of its machine afford. Where items mostly wait, for a
        disk or a network, cores do not limit them: then as many as the program's pace needs.
        """
        recipe = self.asked.number(WORKERS, "num_workers", 1)
        ahead = self.asked.number(WORKERS, "prefetch_factor", 2)
        ahead = self.asked.number(PREFETCH, "prefetch_factor", ahead)
        own_s = max(evidence.round_typical_s - evidence.fetch_typical_s, 1e-4)
        needed = math.ceil(evidence.fetch_typical_s / own_s) + 1
        count, why = min(recipe, _MOST_WORKERS), "the recipe's"
        if evidence.cpu_share < _WAITS and needed > count:
            cores = len(os.sched_getaffinity(0))
            fit = int(cores / max(evidence.cpu_share, cores / _MOST_WORKERS))
            count = max(count, min(needed, fit))
            why = "items keep a core busy for %.0f %% of their time" % (100 * evidence.cpu_share)
        count, ahead = affordable(count, ahead, max(1, evidence.size))
        return max(0, min(count, _MOST_WORKERS - self.live)), ahead, why


class Feed:
    """What gives an iterator its next batch: as ever, then from workers, then as ever again.

    Everything of ours is guarded; what raises is the program's data set alone.
    """

    def __init__(self, inputs: Inputs, reading: Reading, loader: Any, iterator: Any) -> None:
        self._inputs, self._reading = inputs, reading
        self._loader = loader  # a program may have dropped it by now
        self._iterator = weakref.ref(iterator)
        self._source: Iterator[Any] = iterator._sampler_iter
        self._pool: Pool | None = None
        self._ahead: Ahead | None = None
        self._held: list[Any] = []
        self._asked_s: float | None = None
        self._looking_s = 0.0
        self._rounds_s: list[float] = []

    def __call__(self) -> Any:
        """Return the next batch."""
        iterator: Any = self._iterator()
        self._round()
        if self._pool is None and (self._reading.left or not self._may_begin(iterator)):
            return self._give_back(iterator)
        if self._pool is None:
            return self._read(iterator)
        try:
            taken = self._take(self._pool)
        except Exception as error:
            self._stop("workers ended in %s" % type(error).__name__, at_once=True)
            taken = ()
        return taken[0] if taken else self._give_back(iterator)

    def __del__(self) -> None:
        """End the workers of an iteration that the program left."""
        try:
            self._close()
        except Exception:
            return

    def _round(self) -> None:
        """Take the time since the last request."""
        now_s, looking_s, self._looking_s = perf_counter(), self._looking_s, 0.0
        if self._asked_s is not None:
            round_s = max(now_s - self._asked_s - looking_s, 0.0)
            if self._pool is None:
                self._reading.evidence.round_s.append(round_s)
            else:
                self._rounds_s.append(round_s)
        self._asked_s = now_s

    def _read(self, iterator: Any) -> Any:
        """Return a batch that the program reads itself, looked at."""
        reading = self._reading
        begin_s = perf_counter()
        before = self._guarded(reading.watch.look)
        asked_s = perf_counter()
        index = iterator._next_index()
        between = order = None
        if before is not None:
            if iterator._num_yielded:  # a sampler may draw when it begins
                order = self._guarded(reading.watch.changed, before)
            between = self._guarded(reading.watch.look)
        fetch_s, cpu_s = perf_counter(), time.process_time()
        self._inputs.busy.reading = reading
        try:
            batch = iterator._dataset_fetcher.fetch(index)
        finally:
            self._inputs.busy.reading = None
        end_s, cpu_s = perf_counter(), time.process_time() - cpu_s
        reading.evidence.fetch_s.append(end_s - fetch_s)
        reading.evidence.cpu_s.append(cpu_s)
        if between is not None:
            changed = self._guarded(reading.watch.changed, between)
            why = self._guarded(reading.evidence.add, index, batch, changed, order)
            if why is not None:
                self._leave(str(why))
        self._looking_s += (asked_s - begin_s) + (fetch_s - asked_s) + (perf_counter() - end_s)
        if iterator._pin_memory:
            pin = self._inputs.module._utils.pin_memory.pin_memory
            batch = pin(batch, iterator._pin_memory_device)
        return batch

    def _guarded(self, part: Any, *arguments: Any) -> Any:
        try:
            return part(*arguments)
        except Exception as error:
            self._leave("it could not be looked at: %r" % (error,))
            return None

    def _may_begin(self, iterator: Any) -> bool:
        """Start workers once enough is known; return whether the loader is not left alone."""
        if not self._reading.evidence.complete:
            return True
        begin_s = perf_counter()
        try:
            why = self._start(iterator)
        except Exception as error:
            why = "workers could not be started: %r" % (error,)
            self._close(at_once=True)
        self._looking_s += perf_counter() - begin_s
        if why is not None:
            self._leave(why)
            return False
        return True

    def _start(self, iterator: Any) -> str | None:
        """Start workers; return why not, where they must not or would gain nothing."""
        reading, inputs = self._reading, self._inputs
        loader, evidence = self._loader, reading.evidence
        # What was opened or made by the first items is looked at, too.
        reading.watch = Watch(loader.dataset, loader.collate_fn, loader._index_sampler)
        why = why_not_share(reading.watch.reach) or why_no_gain(evidence, _batches(loader))
        if why is not None:
            return why
        count, prefetch, reason = inputs.count_for(evidence)
        if count < 1:
            return "shared memory has no room for its batches, or other loaders have all workers"
        self._ahead = Ahead([] if reading.repeated else evidence.indices, self._source)
        self._held = reading.watch.reach.state()
        self._pool = Pool(
            inputs.module,
            like(
                loader,
                iterator,
                num_workers=count,
                prefetch_factor=prefetch,
                worker_init_fn=Begin(inputs.module, reading.watch, loader.worker_init_fn),
                _index_sampler=self._ahead,
            ),
            self._ahead,
            max(evidence.fetch_s),
        )
        inputs.live += count
        if not reading.repeated:
            why = self._repeated()
            if why is not None:
                self._close()
                return why
            reading.repeated, reading.workers = True, count
            what = (
                "num_workers 0 -> %d (%s), prefetch_factor %d; %d batches read twice are the same"
                " bit for bit; the program waited %s of a step of %s"
            )
            fetch_s, round_s = evidence.fetch_typical_s, evidence.round_typical_s
            told = (count, reason, prefetch, BATCHES, milliseconds(fetch_s), milliseconds(round_s))
            inputs.asked.tell(WORKERS, APPLIED, what % told, reading.where)
            if inputs.asked.settings(PREFETCH) is not None:
                inputs.asked.tell(PREFETCH, APPLIED, "prefetch_factor %d" % prefetch, reading.where)
        return None

    def _repeated(self) -> str | None:
        """Have workers read the first batches again; return what differs, None for nothing."""
        from .content import Content

        for mark in self._reading.evidence.marks:
            batch, changed = self._pool.take()  # type: ignore[union-attr]
            if changed is not None:
                return changed
            if Content(batch).mark != mark:
                return "workers read other batches than the program itself"
        return None

    def _take(self, pool: Pool) -> tuple[Any, ...]:
        """Return a batch of the workers, alone; nothing where the program reads it itself."""
        # In a forked child the workers are the parent's. Nothing pending: every batch was had.
        if not pool.ours or not pool.ahead.pending or self._too_slow():
            return ()
        if self._reading.watch.reach.state() != self._held:
            self._stop("the program changes the data set while it is read")
            return ()
        batch, said = pool.take()
        if said is not None:
            self._stop("in a worker, %s" % said)
            return ()
        pool.ahead.pending.popleft()
        return (batch,)

    def _too_slow(self) -> bool:
        """Hold the rounds with workers against those without, once."""
        if len(self._rounds_s) != _WARM + _JUDGED:
            return False
        before_s, now_s = self._reading.evidence.round_typical_s, median(self._rounds_s[_WARM:])
        if now_s <= _SLOWER * before_s:
            return False
        what = "with %d workers a step took %s instead of %s"
        told = (self._reading.workers, milliseconds(now_s), milliseconds(before_s))
        self._stop(what % told)
        return True

    def _stop(self, why: str, *, at_once: bool = False) -> None:
        """Take that the workers are not to be trusted any more."""
        self._leave(why)
        self._close(at_once=at_once)

    def _leave(self, why: str) -> None:
        if self._reading.left is None:
            self._reading.left = why
            self._inputs.leave(self._reading.where, why)

    def _close(self, *, at_once: bool = False) -> None:
        pool, ahead, iterator = self._pool, self._ahead, self._iterator()
        self._pool = self._ahead = None
        if ahead is not None and iterator is not None:
            iterator._sampler_iter = ahead.rest()
        if pool is not None:
            self._inputs.live -= pool.count
            pool.close(at_once=at_once)

    def _give_back(self, iterator: Any) -> Any:
        """Let the iterator be as PyTorch made it, from the next batch on."""
        self._close_quietly()
        iterator.__dict__.pop(_NEXT, None)
        return iterator._next_data()

    def _close_quietly(self) -> None:
        try:
            self._close()
        except Exception:
            return


def _batches(loader: Any) -> int | None:
    try:
        return len(loader._index_sampler)
    except Exception:
        return None
