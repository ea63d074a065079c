"""Gives loaders that the program left without workers the workers of the recipe.

The loader's settings stay as the program reads them.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import weakref

from .asked import APPLIED, LEFT
from .certificate import Evidence, Watch, affordable, why_not_begin
from .feed import NEXT, PINNED, PREFETCH, WORKERS, Feed
from .given import Given
from .search import Search
from .workers import in_forked_child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from .asked import Asked
    from .turns import Check

_MOST_WORKERS = 16
_START_S, _START_SHARE = 0.03, 0.1  # a worker's start, measured: 25-36 ms; of an epoch's reading
_WAITS = 0.5  # share of the reading on a core: below it, items mostly wait for something else


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
        search: for the number of workers; None where none is made.
        check: of whether they are worth it, in turns; None where that is plain.
        costly_ahead: batches that workers read ahead at the cost of the program's cores.
        start_s: that starting them took.
    """

    def __init__(self, loader: Any, where: str, left: str | None) -> None:
        self.loader = weakref.ref(loader)
        self.where, self.left = where, left
        self.evidence = Evidence()
        roots = (loader.dataset, loader.collate_fn, loader._index_sampler)
        self.watch = Watch(*(roots if left is None else ()))
        self.lengths: list[int] = []
        self.repeated = False
        self.workers = 0
        self.search: Search | None = None
        self.check: Check | None = None
        self.costly_ahead = 0
        self.start_s = 0.0


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
            if outer.left is None:
                outer.left = "its items are read from another DataLoader"
                self.leave(outer.where, outer.left)
            return
        if loader is None or self.module.get_worker_info() is not None:
            return
        reading = self._reading(loader, iterator)
        if reading is not None and reading.left is None:
            iterator.__dict__[NEXT] = Feed(self, reading, loader, iterator)

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
        if self.asked.settings(WORKERS) is None:
            return "it has no workers, and none were asked for"
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
        for code in (WORKERS, PREFETCH, PINNED):
            if self.asked.settings(code) is not None:
                self.asked.tell(code, LEFT, why, where)

    def why_not_pin(self, loader: Any) -> str | None:
        """Return why batches of workers are not pinned; None where they are."""
        if self.asked.settings(PINNED) is None:
            return "it was not asked for"
        if "pin_memory" in (self._given.of(loader) or ()):
            return "the program sets pin_memory itself"
        torch: Any = sys.modules["torch"]
        return None if torch.cuda.is_available() else "there is no GPU to copy to"

    def searched(self, reading: Reading) -> tuple[int, int, str]:
        """Return workers and batches ahead that the search for their number tries next."""
        if reading.search is None:
            reading.search = Search(reading.evidence)
        search, ahead = reading.search, self.asked.number(PREFETCH, "prefetch_factor", 2)
        count, fits = affordable(search.workers, ahead, max(1, reading.evidence.size))
        if count < search.workers or search.workers > _MOST_WORKERS - self.live:
            search.refused()
            self.tell_search(reading)
            count, fits = search.workers, 2
        search.started()
        return count, fits, "the search's"

    def tell_search(self, reading: Reading) -> None:
        """Say what the search of a loader found."""
        search = reading.search
        if search is None or not search.over:
            return
        for trial in search.trials():
            self.asked.probe.events.write("trial", where=reading.where, **trial)
        outcome = APPLIED if search.workers else LEFT
        self.asked.tell(WORKERS, outcome, search.sentence, reading.where)

    def count_for(self, evidence: Evidence, batches: int | None) -> tuple[int, int, str]:
        """Return workers and batches ahead for each, and what they follow from.

        The recipe's number is what the cores of its machine afford. Where items mostly wait, for a
        disk or a network, cores do not limit them: then as many as the program's pace needs. Never
        so many that starting them takes more than a tenth of the reading.
        """
        recipe = self.asked.number(WORKERS, "num_workers", 1)
        ahead = self.asked.number(WORKERS, "prefetch_factor", 2)
        ahead = self.asked.number(PREFETCH, "prefetch_factor", ahead)
        own_s = max(evidence.round_typical_s - evidence.fetch_typical_s, 1e-4)
        needed = math.ceil(evidence.fetch_typical_s / own_s) + 1
        count, why = min(recipe, _MOST_WORKERS), "the recipe's"
        if evidence.busy_share < _WAITS and needed > count:
            cores = len(os.sched_getaffinity(0))
            fit = int(cores / max(evidence.busy_share, cores / _MOST_WORKERS))
            count = max(count, min(needed, fit))
            why = "items keep a core busy for %.0f %% of their time" % (100 * evidence.busy_share)
        if batches is not None:
            read_s = evidence.fetch_typical_s * batches
            count = max(1, min(count, int(_START_SHARE * read_s / _START_S)))
        count, ahead = affordable(count, ahead, max(1, evidence.size))
        return max(0, min(count, _MOST_WORKERS - self.live)), ahead, why
