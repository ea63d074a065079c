"""Gives loaders that the program left without workers the workers of the recipe.

The loader's settings stay as the program reads them. Its iterator is the one that PyTorch makes, of
a loader whose sampler and data set are our feed: as ever, then from workers, then as ever again.
The feed reads from the program's own as PyTorch's documentation says, and is nothing more than that
as soon as anything is odd.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import threading
import weakref
from statistics import median
from time import perf_counter

from ..steps import wanting_a_core_s
from .certificate import (
    BATCHES,
    Evidence,
    Watch,
    affordable,
    indices_of,
    milliseconds,
    why_no_gain,
    why_not_begin,
)
from .input import WrittenSettings, give_workers
from .reach import Content
from .recipe import APPLIED, LEFT, MOST_WORKERS, PINNED, PREFETCH, WORKERS, Recipe
from .workers import Pool, PrefetchQueue, WatchedSet, as_it_is, in_forked_child, read_batch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable, Iterator, TypeVar

    from ..foreign import Foreign

    _Value = TypeVar("_Value")


_WARM, _JUDGED = 8, 32  # rounds with workers until they are held against those without
_RANKS_SLOWER = 0.8  # a step of ranks may get longer by a quarter until they are given up
_WORTH = 0.02  # of a round that workers must gain to stay: our choice
_CORE_SHARE = 0.1  # of the reading on a core, from which reading ahead costs the program something
_START_S, _START_SHARE = 0.03, 0.1  # a worker's start, measured: 25-36 ms; of an epoch's reading
_WAITS = 0.5  # share of the reading on a core: below it, items mostly wait for something else


class Feed:
    """Sampler and data set of an iterator: as ever, then from workers, then as ever again.

    Everything of ours is guarded; what raises is the program's data set alone.

    Attributes:
        loader: the program's, but that it reads from here.
    """

    def __init__(self, inputs: Inputs, reading: Reading, loader: Foreign) -> None:
        self._inputs, self._reading = inputs, reading
        self._own = loader  # a program may have dropped it by now
        fed: Foreign = object.__new__(type(loader))
        fed.__dict__.update(loader.__dict__)
        parts = {"dataset": self, "sampler": self, "batch_sampler": None, "collate_fn": as_it_is}
        fed.__dict__.update(parts)
        self.loader: Foreign | None = fed
        self._source: Iterator[object] = iter(())
        self._pool: Pool | None = None
        self._ahead: PrefetchQueue | None = None
        self._ready: list[object] = []  # a batch of a worker
        self._looks = self._over = False
        self._order: str | None = None
        self._held: list[object] = []
        self._asked_s: float | None = None
        self._count = 0
        self._looking_s = 0.0
        self._rounds_s: list[float] = []
        self._turns = inputs.recipe.turns
        self._since: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(indices_of(self._own))

    def __iter__(self) -> Feed:
        self._source = iter(indices_of(self._own))
        self.loader = None  # it has an iterator by now, which has us
        return self

    def __next__(self) -> object:
        """Return the index of the next batch, or have the batch itself ready."""
        self._looks = False
        if self._over:
            return next(self._source)
        self._round()
        if self._is_fed():
            return None
        self._looks = not (self._over or self._is_off())
        try:
            return self._next_index() if self._looks else next(self._source)
        except StopIteration:
            self._close_quietly()
            raise

    def __getitem__(self, index: Foreign) -> object:
        """Return the batch."""
        if self._ready:
            return self._ready.pop()
        return self._read(index) if self._looks else read_batch(self._own, index)

    def _is_fed(self) -> bool:
        """Return whether a batch of a worker is ready; without workers for good, it is over."""
        reading = self._reading
        if self._is_off() and (self._pool is None or not self._pool.ahead.is_used):
            return False
        if self._pool is None and (reading.left or not self._may_begin()):
            return self._give_back()
        if self._pool is None:
            return False
        try:
            self._ready += self._take(self._pool)
        except Exception as error:
            self._stop("workers ended in %s" % type(error).__name__, at_once=True)
        except BaseException:  # an interrupt: the batch that was on its way comes again
            self._stop("the program was interrupted", at_once=True)
            raise
        return bool(self._ready) or self._give_back()

    def __del__(self) -> None:
        """End the workers of an iteration that the program left."""
        self._reading.lengths.append(self._count)
        self._close_quietly()

    def _is_off(self) -> bool:
        """Return whether it is the turn of the loader as the program made it."""
        return self._turns is not None and not self._turns.on and self._reading.repeated

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

    def _round(self) -> None:
        """Take the time since the last request."""
        self._count += 1
        now_s, looking_s, self._looking_s = perf_counter(), self._looking_s, 0.0
        if self._asked_s is not None:
            round_s = max(now_s - self._asked_s - looking_s, 0.0)
            if self._pool is None:
                self._reading.evidence.round_s.append(round_s)
            else:
                self._rounds_s.append(round_s)
        self._asked_s = now_s

    def _next_index(self) -> object:
        """Return what the program's sampler gives, looked at."""
        watch, begin_s = self._reading.watch, perf_counter()
        before = self._guarded(watch.look)
        asked_s = perf_counter()
        index = next(self._source)
        end_s = perf_counter()
        self._order = None
        if before is not None and self._count > 1:  # a sampler may draw when it begins
            self._order = self._guarded(watch.changed, before)
        self._looking_s += (asked_s - begin_s) + (perf_counter() - end_s)
        return index

    def _read(self, index: Foreign) -> object:
        """Return a batch that the program reads itself, looked at."""
        reading, begin_s = self._reading, perf_counter()
        before = self._guarded(reading.watch.look)
        fetch_s, busy_s = perf_counter(), wanting_a_core_s()
        self._inputs.busy.reading = reading
        try:
            batch = read_batch(self._own, index)
        finally:
            self._inputs.busy.reading = None
        end_s, busy_s = perf_counter(), wanting_a_core_s() - busy_s
        reading.evidence.fetch_s.append(end_s - fetch_s)
        reading.evidence.busy_s.append(busy_s)
        if before is not None:
            changed = self._guarded(reading.watch.changed, before)
            why = self._guarded(reading.evidence.add, index, batch, changed, self._order)
            if why is not None:
                self._leave(str(why))
        self._looking_s += (fetch_s - begin_s) + (perf_counter() - end_s)
        return batch

    def _guarded(self, part: Callable[..., _Value], *arguments: object) -> _Value | None:
        try:
            return part(*arguments)
        except Exception as error:
            self._leave("it could not be looked at: %r" % (error,))
            return None

    def _may_begin(self) -> bool:
        """Start workers once enough is known; return whether the loader is not left alone."""
        if not self._reading.evidence.complete:
            return True
        begin_s = perf_counter()
        try:
            why = self._start()
        except Exception as error:
            why = "workers could not be started: %r" % (error,)
            self._close(at_once=True)
        self._looking_s += perf_counter() - begin_s
        if why is not None:
            self._leave(why)
            return False
        return True

    def _start(self) -> str | None:
        """Start workers; return why not, where they must not or would gain nothing."""
        reading, inputs = self._reading, self._inputs
        loader, evidence = self._own, reading.evidence
        # What was opened or made by the first items is looked at, too.
        reading.watch = Watch(loader.dataset, loader.collate_fn, indices_of(loader))
        batches = reading.lengths[-1] if reading.lengths else _batches(loader)
        if reading.watch.reach.shared is not None:
            return "the data set holds %s" % reading.watch.reach.shared
        why = why_no_gain(evidence, batches)
        if why is not None:
            return why
        count, prefetch, reason = inputs.count_for(evidence, batches)
        if count < 1:
            return "shared memory has no room for its batches, or other loaders have all workers"
        costly = evidence.busy_share >= _CORE_SHARE
        reading.costly_ahead = count * prefetch if costly else 0
        repeated = [] if reading.repeated else evidence.indices
        self._ahead = PrefetchQueue(repeated, self._source)
        begin_s = perf_counter()
        self._pool = Pool(
            loader,
            reading.watch,
            self._ahead,
            max(evidence.fetch_s),
            num_workers=count,
            prefetch_factor=prefetch,
            pin_memory=loader.pin_memory or inputs.why_not_pin(loader) is None,
        )
        reading.start_s = perf_counter() - begin_s
        inputs.live += count
        itself = weakref.ref(self)  # no circle: who drops the iterator ends the workers
        self._ahead.may_hand_out = lambda: (feed := itself()) is None or feed._may_hand_out()
        self._held = reading.watch.reach.state()  # the sampler has begun by now
        if not reading.repeated:
            why = self._repeated()
            if why is not None:
                self._close()
                return why
            reading.repeated, reading.workers = True, count
            self._tell_applied(reason, prefetch)
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
            why = self._inputs.why_not_pin(self._own)
            detail = "pin_memory, by a thread beside the workers" if why is None else why
            recipe.tell(PINNED, APPLIED if why is None else LEFT, detail, reading.where)

    def _repeated(self) -> str | None:
        """Have workers read the first batches again; return what differs, None for nothing."""
        for mark in self._reading.evidence.marks:
            batch_and_change = self._pool.take()  # type: ignore[union-attr]
            if batch_and_change is None or batch_and_change[1] is not None:
                return "workers ended early" if batch_and_change is None else batch_and_change[1]
            if Content(batch_and_change[0]).mark != mark:
                return "workers read other batches than the program itself"
        return None

    def _take(self, pool: Pool) -> tuple[object, ...]:
        """Return a batch of the workers, alone; nothing where the program reads it itself."""
        # In a forked child the workers are the parent's.
        if not pool.started_here or self._too_slow():
            return ()
        if self._reading.watch.reach.state() != self._held:
            self._stop("the program changes the data set while it is read")
            return ()
        batch_and_change = pool.take()
        if batch_and_change is None:  # every batch was had
            return ()
        if batch_and_change[1] is not None:
            self._stop("in a worker, %s" % batch_and_change[1])
            return ()
        pool.ahead.pending.popleft()
        return batch_and_change[:1]

    def _too_slow(self) -> bool:
        """Return whether rounds with workers gain too little to stay, held against those before."""
        if self._turns is not None or len(self._rounds_s) != _WARM + _JUDGED:
            return False
        reading = self._reading
        before_s, now_s = reading.evidence.round_typical_s, median(self._rounds_s[_WARM:])
        batches = _batches(self._own)
        start_share = reading.start_s / (batches * before_s) if batches else 0.0
        # Ranks wait for each other: what one gains is not to be seen in its own rounds.
        is_single = os.environ.get("WORLD_SIZE", "1") == "1"
        if now_s * (1.0 + _WORTH + start_share if is_single else _RANKS_SLOWER) <= before_s:
            return False
        values = (reading.workers, milliseconds(now_s), milliseconds(before_s))
        self._stop("with %d workers a step took %s instead of %s: not worth them" % values)
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
        pool, ahead = self._pool, self._ahead
        self._pool = self._ahead = None
        if ahead is not None:
            self._source = ahead.remaining()
        if pool is not None:
            self._inputs.live -= pool.count
            pool.close(at_once=at_once)

    def _give_back(self) -> bool:
        """Let the rest be read as the program made it; no batch of a worker is ready."""
        self._close_quietly()
        self._over = True
        return False

    def _close_quietly(self) -> None:
        try:
            self._close()
        except Exception:
            return


def _batches(loader: Foreign) -> int | None:
    try:
        return len(indices_of(loader))
    except Exception:
        return None


class Reading:
    """One loader that may get workers.

    Attributes:
        where: its name for people.
        evidence: of its first batches.
        watch: over its data set.
        left: why it is left alone, None as long as it is not.
        lengths: batches of each iteration that ended or was left.
        repeated: whether workers have read the first batches again.
        workers: how many it has.
        costly_ahead: batches that workers read ahead at the cost of the program's cores.
        start_s: that starting them took.
    """

    def __init__(self, loader: Foreign, where: str, reason: str | None) -> None:
        self.loader = weakref.ref(loader)
        self.where, self.left = where, reason
        self.evidence = Evidence()
        roots = (loader.dataset, loader.collate_fn, indices_of(loader))
        self.watch = Watch(*(roots if reason is None else ()))
        self.lengths: list[int] = []
        self.repeated = False
        self.workers = 0
        self.costly_ahead = 0
        self.start_s = 0.0


class Inputs:
    """All loaders of a process that may get workers."""

    def __init__(self, module: ModuleType, recipe: Recipe) -> None:
        self.module = module
        self.recipe = recipe
        recipe.refuse_versions(str(sys.modules["torch"].__version__))
        self.busy = threading.local()  # reading a batch: a loader that begins now is within it
        self.live = 0  # workers of all loaders
        self._written = WrittenSettings()
        self._readings: dict[int, Reading] = {}
        self._count = 0
        if all(recipe.settings(code) is None for code in (WORKERS, PREFETCH, PINNED)):
            pass
        elif (recipe.settings(WORKERS) or {}).get("any_loader"):
            give_workers(module, recipe)
        else:
            self._written.watch(module)
            self.feed()
        os.register_at_fork(after_in_child=self._in_child)

    def feed(self) -> None:
        """Wrap `DataLoader.__iter__`: its iterator reads from our feed, where there is one."""
        owner, fed = self.module.DataLoader, self._fed
        original = owner.__iter__

        @functools.wraps(original)
        def __iter__(self: Foreign) -> object:  # noqa: N807
            return original(fed(self))

        owner.__iter__ = __iter__

    def _fed(self, loader: Foreign) -> object:
        """Return the loader, or one that is the same but for what it reads from."""
        try:
            outer: Reading | None = getattr(self.busy, "reading", None)
            if outer is not None and outer.left is None:
                outer.left = "its items are read from another DataLoader"
                self.leave(outer.where, outer.left)
            if outer is not None or isinstance(loader.dataset, WatchedSet):
                return loader
            if self.module.get_worker_info() is not None:
                return loader
            reading = self._reading(loader)
            return loader if reading.left is not None else Feed(self, reading, loader).loader
        except Exception as error:
            self.recipe.probe.events.odd("a loader is left as it is: %r" % (error,))
            return loader

    def _reading(self, loader: Foreign) -> Reading:
        reading = self._readings.get(id(loader))
        if reading is not None and reading.loader() is loader:
            return reading
        self._count += 1
        where = "loader %d (%s)" % (self._count, type(loader.dataset).__name__)
        why = self._why_not(loader)
        reading = Reading(loader, where, why)
        if why is not None:
            self.leave(where, why)
        self._readings[id(loader)] = reading
        key, forget = id(loader), self._readings.pop
        reading.loader = weakref.ref(loader, lambda _: forget(key, None))
        return reading

    def _why_not(self, loader: Foreign) -> str | None:
        written = self._written.of(loader)
        if written is None:
            return "how the program made it is unknown"
        if "num_workers" in written:
            setting = "num_workers=%r" % loader.num_workers
            return (
                written["num_workers"] % setting
                if written["num_workers"]
                else ("the program sets %s itself" % setting)
            )
        if self.recipe.settings(WORKERS) is None:
            return "it has no workers, and none were asked for"
        if loader.num_workers > 0:
            return "it has %d workers already" % loader.num_workers
        return why_not_begin(loader)

    def _in_child(self) -> None:
        """Take that this process was forked: workers are those of its parent."""
        in_forked_child()
        self.live = 0
        self.busy.reading = None

    def leave(self, where: str, why: str) -> None:
        """Say that a loader stays as it is."""
        for code in (WORKERS, PREFETCH, PINNED):
            if self.recipe.settings(code) is not None:
                self.recipe.tell(code, LEFT, why, where)

    def why_not_pin(self, loader: Foreign) -> str | None:
        """Return why batches of workers are not pinned; None where they are."""
        if self.recipe.settings(PINNED) is None:
            return "it was not asked for"
        if "pin_memory" in (self._written.of(loader) or ()):
            return "the program sets pin_memory itself"
        torch = sys.modules["torch"]
        return None if torch.cuda.is_available() else "there is no GPU to copy to"

    def count_for(self, evidence: Evidence, batches: int | None) -> tuple[int, int, str]:
        """Return workers and batches ahead for each, and what they follow from.

        The recipe's number is what the cores of its machine afford. Where items mostly wait, for a
        disk or a network, cores do not limit them: then as many as the program's pace needs. Never
        so many that starting them takes more than a tenth of the reading.
        """
        workers = self.recipe.number(WORKERS, "num_workers", 1)
        ahead = self.recipe.number(WORKERS, "prefetch_factor", 2)
        ahead = self.recipe.number(PREFETCH, "prefetch_factor", ahead)
        own_s = max(evidence.round_typical_s - evidence.fetch_typical_s, 1e-4)
        needed = math.ceil(evidence.fetch_typical_s / own_s) + 1
        count, why = min(workers, MOST_WORKERS), "the recipe's"
        if evidence.busy_share < _WAITS and needed > count:
            cores = len(os.sched_getaffinity(0))
            fit = int(cores / max(evidence.busy_share, cores / MOST_WORKERS))
            count = max(count, min(needed, fit))
            why = "items keep a core busy for %.0f %% of their time" % (100 * evidence.busy_share)
        if batches is not None:
            read_s = evidence.fetch_typical_s * batches
            count = max(1, min(count, int(_START_SHARE * read_s / _START_S)))
        count, ahead = affordable(count, ahead, max(1, evidence.size))
        return max(0, min(count, MOST_WORKERS - self.live)), ahead, why
