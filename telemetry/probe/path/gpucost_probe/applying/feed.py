"""Gives one iterator its batches: as ever, then from workers, then as ever again.

Its iterator is the one that PyTorch makes; what gives it the next batch is replaced in the one
object, and put back when anything is odd.

How many workers end the wait for batches is found by trying more of them while the program runs,
each number over the same count of rounds; no batch is left out or read for nothing. The search ends
where the program waits for less than a twentieth of a step, or more workers do not make it faster.
"""

from __future__ import annotations

import math
import os
import weakref
from statistics import median
from time import perf_counter

from ..steps import wanting_a_core_s
from .certificate import (
    BATCHES,
    Watch,
    milliseconds,
    why_no_gain,
    why_not_share,
)
from .reach import Content
from .recipe import APPLIED, LEFT, Check
from .workers import Pool, PrefetchQueue, WorkerStart, clone_loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .certificate import Evidence
    from .input import Inputs, Reading


NUMBERS = (1, 2, 3, 4, 6, 8, 12, 16)
_ROUNDS = 24  # that count, at least: our choice
_ENOUGH = 0.05  # of a step that may be waited for
_GAIN = 0.05  # faster than with fewer, or it is not worth its workers
_PATIENCE = 2  # numbers that gained nothing, until it is over


class Search:
    """What was tried of one loader, and what comes next.

    Args:
        evidence: of its batches without workers.

    Attributes:
        workers: how many it has now, or gets next.
        over: whether the number is found.
        changed: whether `workers` is another number than that of the workers that run.
        tried: number, seconds of a step, seconds of it that were waited.
        why: what ended it, in words.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.workers = NUMBERS[0]
        self.over = self.changed = False
        self.tried = [(0, evidence.round_typical_s, evidence.fetch_typical_s)]
        self.why = ""
        self._begin()

    def _begin(self) -> None:
        self._seen = 0
        self._step_s = self._wait_s = 0.0

    def refused(self) -> None:
        """Take that there is no room for so many workers."""
        self._choose("there is no room for %d" % self.workers)

    def took(self, round_s: float, wait_s: float) -> None:
        """Take a round of the program's loop, and what of it was waited."""
        if self.over or self.changed:
            return
        self._seen += 1
        # They began together: their first rounds are of empty hands, and batches come in bursts.
        settle = 2 * self.workers + 2
        if self._seen <= settle:
            return
        self._step_s += round_s
        self._wait_s += wait_s
        counted = -(-_ROUNDS // self.workers) * self.workers
        if self._seen == settle + counted:
            self.tried.append((self.workers, self._step_s / counted, self._wait_s / counted))
            self._go_on()

    def started(self) -> None:
        """Take that as many workers run as it says."""
        self.changed = False
        self._begin()

    def _go_on(self) -> None:
        workers, step_s, wait_s = self.tried[-1]
        if wait_s <= _ENOUGH * step_s:
            self._choose("the wait has ended")
        elif workers == NUMBERS[-1]:
            self._choose("more were not tried")
        elif self._since_gain() >= _PATIENCE:
            self._choose("more make it no faster")
        else:
            self.workers = NUMBERS[NUMBERS.index(workers) + 1]
            self.changed = True

    def _since_gain(self) -> int:
        """Return how many numbers in a row were not faster than the best before them."""
        best_s, since = self.tried[0][1], 0
        for _, step_s, _ in self.tried[1:]:
            since = 0 if step_s < best_s * (1.0 - _GAIN) else since + 1
            best_s = min(best_s, step_s)
        return since

    def _choose(self, why: str) -> None:
        """Take the fewest workers that are as fast as the fastest."""
        running = self.tried[-1][0]
        best_s = min(step_s for _, step_s, _ in self.tried)
        fast = [n for n, step_s, _ in self.tried if step_s * (1.0 - _GAIN) <= best_s]
        self.workers = min(fast)
        self.over, self.why = True, why
        self.changed = self.workers != running

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        parts = ["%d: %.3g ms (%.3g waited)" % (n, s * 1e3, w * 1e3) for n, s, w in self.tried]
        return "num_workers %d found, %s; a step by workers: %s" % (
            self.workers,
            self.why,
            ", ".join(parts),
        )

    def trials(self) -> list[dict[str, Any]]:
        """Return what was tried, as events tell it."""
        return [
            {
                "setting": "num_workers",
                "value": workers,
                "step_s": round(step_s, 9),
                "wait_s": round(wait_s, 9),
                "chosen": self.over and workers == self.workers,
            }
            for workers, step_s, wait_s in self.tried
        ]


WORKERS, PREFETCH, PINNED = "dataloader-workers", "dataloader-prefetch", "pinned-memory"
NEXT = "_next_data"
_WARM, _JUDGED = 8, 32  # rounds with workers until they are held against those without
_SLOWER, _FASTER = 1.25, 1.25  # as long or as short a round says enough; between, turns decide
_WORTH = 0.02  # of a round that workers must gain to stay: our choice
_CORE_SHARE = 0.1  # of the reading on a core, from which reading ahead costs the program something
_RANKS = "WORLD_SIZE"


class Feed:
    """What gives an iterator its next batch: as ever, then from workers, then as ever again.

    Everything of ours is guarded; what raises is the program's data set alone.
    """

    def __init__(self, inputs: Inputs, reading: Reading, loader: Any, iterator: Any) -> None:
        self._inputs, self._reading = inputs, reading
        self._loader = loader  # a program may have dropped it by now
        self._iterator = weakref.ref(iterator)
        self._pool: Pool | None = None
        self._ahead: PrefetchQueue | None = None
        self._held: list[Any] = []
        self._asked_s: float | None = None
        self._count = 0
        self._looking_s = 0.0
        self._rounds_s: list[float] = []
        self._turns = inputs.recipe.turns or reading.check
        self._since: tuple[int, int] | None = None
        self._waited_s = 0.0

    def __call__(self) -> Any:
        """Return the next batch."""
        iterator: Any = self._iterator()
        reading = self._reading
        self._round()
        if self._check_is_lost():
            return self._give_back(iterator)
        if self._pool is not None and reading.search is not None and reading.search.changed:
            self._close_quietly()
            if reading.search.over and not reading.search.workers:
                reading.left = reading.search.sentence
                return self._give_back(iterator)
        if self._is_off() and (self._pool is None or not self._pool.ahead.is_used):
            return self._as_ever(iterator)
        if self._pool is None and (self._reading.left or not self._may_begin(iterator)):
            return self._give_back(iterator)
        if self._pool is None:
            return self._read(iterator)
        try:
            batch_and_change = self._take(self._pool)
        except Exception as error:
            self._stop("workers ended in %s" % type(error).__name__, at_once=True)
            batch_and_change = ()
        except BaseException:  # an interrupt: the batch that was on its way comes again
            self._stop("the program was interrupted", at_once=True)
            raise
        return batch_and_change[0] if batch_and_change else self._give_back(iterator)

    def __del__(self) -> None:
        """End the workers of an iteration that the program left."""
        self._reading.lengths.append(self._count)
        self._close_quietly()

    def _is_off(self) -> bool:
        """Return whether it is the turn of the loader as the program made it."""
        return self._turns is not None and not self._turns.on and self._reading.repeated

    def _as_ever(self, iterator: Any) -> Any:
        """Return a batch that the program reads itself, while its workers wait for their turn."""
        try:
            return type(iterator)._next_data(iterator)
        except StopIteration:
            self._close_quietly()
            raise

    def _may_hand_out(self) -> bool:
        """Return whether workers may read one more batch before their turn ends."""
        turns, pool = self._turns, self._pool
        if turns is None or pool is None:
            return True
        remaining = turns.steps_left() if turns.on else 0
        if remaining is None:
            return True
        if self._since is None:
            self._since = self._count, turns.steps
        steps = turns.steps - self._since[1]
        a_step = max(1, round((self._count - self._since[0]) / steps)) if steps > 0 else 1
        return len(pool.ahead.pending) < remaining * a_step

    def _searched(self, round_s: float) -> None:
        """Take a round while the number of workers is searched."""
        search = self._reading.search
        if search is None or search.over:
            return
        search.took(round_s, self._waited_s)
        if search.over:
            self._inputs.tell_search(self._reading)

    def _round(self) -> None:
        """Take the time since the last request."""
        self._count += 1
        now_s, looking_s, self._looking_s = perf_counter(), self._looking_s, 0.0
        if self._asked_s is not None:
            round_s = max(now_s - self._asked_s - looking_s, 0.0)
            if self._reading.check is not None:
                self._reading.check.stepped(round_s)
            elif self._pool is None:
                self._reading.evidence.round_s.append(round_s)
            elif self._reading.search is not None:
                self._searched(round_s)
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
        fetch_s, busy_s = perf_counter(), wanting_a_core_s()
        self._inputs.busy.reading = reading
        try:
            batch = iterator._dataset_fetcher.fetch(index)
        finally:
            self._inputs.busy.reading = None
        end_s, busy_s = perf_counter(), wanting_a_core_s() - busy_s
        reading.evidence.fetch_s.append(end_s - fetch_s)
        reading.evidence.busy_s.append(busy_s)
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
        batches = reading.lengths[-1] if reading.lengths else _batches(loader)
        why = why_not_share(reading.watch.reach) or why_no_gain(evidence, batches)
        if why is not None:
            return why
        if inputs.recipe.finds_workers:
            count, prefetch, reason = inputs.searched(reading)
        else:
            count, prefetch, reason = inputs.count_for(evidence, batches)
        if count < 1:
            return "shared memory has no room for its batches, or other loaders have all workers"
        costly = evidence.busy_share >= _CORE_SHARE
        reading.costly_ahead = count * prefetch if costly else 0
        repeated = [] if reading.repeated else evidence.indices
        self._ahead = PrefetchQueue(repeated, iterator._sampler_iter)
        begin_s = perf_counter()
        self._pool = Pool(
            inputs.module,
            clone_loader(
                loader,
                num_workers=count,
                prefetch_factor=prefetch,
                pin_memory=iterator._pin_memory or inputs.why_not_pin(loader) is None,
                worker_init_fn=WorkerStart(inputs.module, reading.watch, loader.worker_init_fn),
                _index_sampler=self._ahead,
            ),
            self._ahead,
            max(evidence.fetch_s),
        )
        reading.start_s = perf_counter() - begin_s
        inputs.live += count
        self._ahead.may_hand_out = self._may_hand_out
        self._held = reading.watch.reach.state()  # the sampler has begun by now
        if not reading.repeated:
            why = self._repeated()
            if why is not None:
                self._close()
                return why
            reading.repeated, reading.workers = True, count
            if reading.search is None:
                self._tell_applied(reason, prefetch)
            else:
                inputs.leave(reading.where, "the program ended before the number was found")
            self._enter_turns()
        return None

    def _enter_turns(self) -> None:
        """Enter the turns with what was asked for, where there are some."""
        reading, recipe, turns = self._reading, self._inputs.recipe, self._turns
        if turns is None:
            return
        for code in (WORKERS, PREFETCH, PINNED):
            if recipe.settings(code) is not None:
                turns.join(code, workers=reading.workers, ahead=reading.costly_ahead)

    def _tell_applied(self, reason: str, prefetch: int) -> None:
        """Say what the loader has now."""
        reading, recipe, evidence = self._reading, self._inputs.recipe, self._reading.evidence
        sentence = (
            "num_workers 0 -> %d (%s), prefetch_factor %d; %d batches read twice are the same bit "
            "for bit; the program waited %s of a step of %s"
        )
        waited = (milliseconds(evidence.fetch_typical_s), milliseconds(evidence.round_typical_s))
        values = (reading.workers, reason, prefetch, BATCHES, *waited)
        recipe.tell(WORKERS, APPLIED, sentence % values, reading.where)
        if recipe.settings(PREFETCH) is not None:
            recipe.tell(PREFETCH, APPLIED, "prefetch_factor %d" % prefetch, reading.where)
        if recipe.settings(PINNED) is not None:
            why = self._inputs.why_not_pin(self._loader)
            words = "pin_memory, by a thread beside the workers" if why is None else why
            recipe.tell(PINNED, APPLIED if why is None else LEFT, words, reading.where)

    def _repeated(self) -> str | None:
        """Have workers read the first batches again; return what differs, None for nothing."""
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
        if self._turns is not None and self._turns.on and pool.started_here:
            pool.fill()
        if not pool.started_here or not pool.ahead.pending or self._too_slow():
            return ()
        if self._reading.watch.reach.state() != self._held:
            self._stop("the program changes the data set while it is read")
            return ()
        begin_s = perf_counter()
        batch, changed = pool.take()
        self._waited_s = perf_counter() - begin_s
        if changed is not None:
            self._stop("in a worker, %s" % changed)
            return ()
        pool.ahead.pending.popleft()
        return (batch,)

    def _too_slow(self) -> bool:
        """Hold the rounds with workers against those without, once; begin turns if it is close."""
        if self._turns is not None or len(self._rounds_s) != _WARM + _JUDGED:
            return False
        reading = self._reading
        before_s, now_s = reading.evidence.round_typical_s, median(self._rounds_s[_WARM:])
        if now_s > _SLOWER * before_s:
            self._stop(self._slower(now_s, before_s))
            return True
        # Ranks wait for each other, so that one's turns would be in the other's rounds.
        if now_s * _FASTER > before_s and os.environ.get(_RANKS, "1") == "1":
            batches = _batches(self._loader)
            start_share = reading.start_s / (batches * before_s) if batches else 0.0
            worth = math.log(1.0 + _WORTH + start_share)
            reading.check = Check(reading.workers, reading.costly_ahead, worth)
            self._turns = reading.check
        return False

    def _slower(self, with_s: float, without_s: float) -> str:
        values = (self._reading.workers, milliseconds(with_s), milliseconds(without_s))
        return "with %d workers a step took %s instead of %s" % values

    def _check_is_lost(self) -> bool:
        """Return whether turns have just shown that workers are not worth it."""
        check = self._reading.check
        if check is None or check.kept is not False or self._reading.left is not None:
            return False
        took_s = check.typical_s(on=True), check.typical_s(on=False)
        self._stop("%s, tried in turns: not worth them" % self._slower(*took_s))
        return True

    def _stop(self, why: str, *, at_once: bool = False) -> None:
        """Take that the workers are not to be trusted any more."""
        self._leave(why)
        if self._turns is not None:
            self._turns.lose(why)
        self._close(at_once=at_once)

    def _leave(self, why: str) -> None:
        if self._reading.left is None:
            self._reading.left = why
            self._inputs.leave(self._reading.where, why)

    def _close(self, *, at_once: bool = False) -> None:
        pool, ahead, iterator = self._pool, self._ahead, self._iterator()
        self._pool = self._ahead = None
        if ahead is not None and iterator is not None:
            iterator._sampler_iter = ahead.remaining()
        if pool is not None:
            self._inputs.live -= pool.count
            pool.close(at_once=at_once)

    def _give_back(self, iterator: Any) -> Any:
        """Let the iterator be as PyTorch made it, from the next batch on."""
        self._close_quietly()
        iterator.__dict__.pop(NEXT, None)
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
