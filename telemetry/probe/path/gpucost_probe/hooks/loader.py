"""PyTorch's DataLoader: how long the program waits for batches, and how many items they hold."""

from __future__ import annotations

import weakref
from time import perf_counter

from ..stacks import core_times_s
from ..steps import Loader
from .instrument import Hook, Outermost, attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable, Optional, Sized, Tuple

    from ..foreign import Foreign
    from ..process import Probe

    _Start = Tuple[Foreign, Optional["_LoaderRecord"], float]
    _Fetch = Tuple["_LoaderRecord", Foreign, float, Optional[Tuple[float, float]]]


_ATTRIBUTE = "_gpucost_loader"
MOST_TOLD = 1000  # a loader made for each step is not told for ever
_LOOKED_AT, _EVERY = 32, 8  # waits of each loader whose work is looked at: the first, then one in 8


class _LoaderRecord(Loader):
    """A loader with what it takes to know it again and to count its items."""

    __slots__ = ("batch_size", "generation", "looked", "sampled", "waited_s", "waits", "wanted_s")

    def __init__(self, number: int, generation: int) -> None:
        super().__init__(number)
        self.generation = generation
        self.batch_size: int | None = None
        self.sampled: int | None = None
        self.waits = self.looked = 0
        self.waited_s = self.wanted_s = 0.0

    def is_looked_at(self) -> bool:
        """Return whether the work of the wait that begins is to be looked at."""
        self.waits += 1
        return self.waits <= _LOOKED_AT or self.waits % _EVERY == 0

    def worked(self, waited_s: float, before: tuple[float, float]) -> bool:
        """Take a wait and the core times at its begin; return whether to tell the sums.

        Waiting for a core is left out: without others on the machine there would be none.
        """
        running_s, ready_s = core_times_s()
        self.looked += 1
        self.waited_s += max(0.0, waited_s - (ready_s - before[1]))
        self.wanted_s += running_s - before[0]
        return self.looked & (self.looked - 1) == 0


class Loaders:
    """The loaders of this process, each with its number."""

    def __init__(self, module: ModuleType, probe: Probe) -> None:
        self._probe = probe
        self._outermost = Outermost()  # a data set may read loaders of its own
        self._module = module
        self._records: dict[int, tuple[Callable[[], object], _LoaderRecord]] = {}
        self._generation = probe.generation
        self._count = 0

    def record(self, loader: Foreign) -> _LoaderRecord | None:
        """Return what is known of a loader, reported the first time; None in a loader's worker."""
        if self._module.get_worker_info() is not None:
            return None
        if self._generation != self._probe.generation:
            self._generation, self._count = self._probe.generation, 0
            self._records.clear()
        entry = self._records.get(id(loader))
        if entry is not None and entry[0]() is loader:
            return entry[1]
        self._count += 1
        record = _LoaderRecord(self._count, self._generation)
        key, forget = id(loader), self._records.pop
        self._records[key] = (weakref.ref(loader, lambda _: forget(key, None)), record)
        if self._count <= MOST_TOLD:
            self._tell(loader, record)
        return record

    def _tell(self, loader: Foreign, record: _LoaderRecord) -> None:
        events = self._probe.events
        events.hello("pytorch")
        if not loader._dataset_kind:  # of an iterable data set nobody knows the items
            record.batch_size = loader.batch_size
            record.sampled = _length(loader.sampler) if record.batch_size else None
        size = loader.batch_size
        if size is None:  # a batch sampler of the program's own may know it
            size = getattr(loader.batch_sampler, "batch_size", None)
        events.write(
            "loader",
            loader=record.number,
            batch_size=size if isinstance(size, int) else None,
            num_workers=loader.num_workers,
        )

    def starts(self, loader: Foreign) -> _Start | None:
        """Take the start of an iteration; None where another loader's data set reads this one."""
        if not self._outermost.enter():
            return None
        return loader, self.record(loader), perf_counter()

    def started(self, start: _Start | None, iterator: Foreign) -> None:
        """Take the new iterator."""
        if start is None:
            return
        end_s = perf_counter()
        self._outermost.leave()
        loader, record, begin_s = start
        if record is None:
            return
        iterator.__dict__[_ATTRIBUTE] = record
        self._probe.steps.started(record, begin_s, end_s)
        if loader.num_workers > 0:
            self._probe.steps.spans.add("loader-start", begin_s, end_s - begin_s)

    def not_started(self, start: _Start | None) -> None:
        """Take that no iteration began."""
        if start is not None:
            self._outermost.leave()

    def fetches(self, iterator: Foreign) -> _Fetch | None:
        """Take the begin of a wait; None where another loader's data set reads this one."""
        record: _LoaderRecord | None = iterator.__dict__.get(_ATTRIBUTE)
        if record is None or record.generation != self._probe.generation:
            return None
        if not self._outermost.enter():
            return None
        core_s = core_times_s() if record.is_looked_at() else None
        return record, iterator, perf_counter(), core_s

    def fetched(self, fetch: _Fetch | None, batch: object) -> None:
        """Take a batch."""
        if fetch is None:
            return
        end_s = perf_counter()
        record, iterator, begin_s, core_s = fetch
        self._outermost.leave()
        if core_s is not None and record.worked(end_s - begin_s, core_s):
            self._tell_work(record)
        items = items_of_place(record, iterator._num_yielded)
        if items is None:
            items = items_of_batch(batch)
        self._probe.steps.fetched(record, begin_s, end_s, items)

    def exhausted(self, fetch: _Fetch | None) -> None:
        """Take the end of the iteration, or an error of the data set."""
        if fetch is not None:
            self._outermost.leave()
            self._probe.steps.exhausted(fetch[0], fetch[2], perf_counter())

    def _tell_work(self, record: _LoaderRecord) -> None:
        """Tell how much of the waits so far was on a core, whenever twice as many are known."""
        if record.number <= MOST_TOLD:
            self._probe.events.write(
                "reading", loader=record.number, waited_s=record.waited_s, wanted_s=record.wanted_s
            )


def _length(sized: Sized) -> int | None:
    """Return a length, None where there is none."""
    try:
        return len(sized)
    except Exception:
        return None


def patch_loaders(module: ModuleType, probe: Probe) -> None:
    """Patch torch.utils.data.dataloader."""
    if probe.trial is not None:
        probe.trial.watch(module)
    if probe.recipe is not None:
        from ..applying.feed import Inputs

        Inputs(module, probe.recipe)
    tell, loaders = probe.events.odd, Loaders(module, probe)
    starts = Hook(tell, loaders.starts, loaders.started, loaders.not_started)
    attach(module.DataLoader, "__iter__", ("self",), starts)
    fetches = Hook(tell, loaders.fetches, loaders.fetched, loaders.exhausted)
    attach(module._BaseDataLoaderIter, "__next__", ("self",), fetches)


DEEPEST = 8


def items_of_place(record: _LoaderRecord, number: int) -> int | None:
    """Return the items of batch `number`, from 1, of a loader that cuts the batches itself.

    Then each has `batch_size` items, but for a rest at the end; what a collate function makes of
    them does not matter.
    """
    size, sampled = record.batch_size, record.sampled
    if not size or sampled is None:
        return None
    return max(min(size, sampled - size * (number - 1)), 0) or None


def items_of_batch(batch: object) -> int | None:
    """Return the length of the first tensor of a batch, None if none is found."""
    for _ in range(DEEPEST):
        shape = getattr(batch, "shape", None)
        if shape is not None:
            return int(shape[0]) if len(shape) else None
        if isinstance(batch, (list, tuple)):
            batch = batch[0] if batch else None
        elif hasattr(batch, "values") and hasattr(batch, "keys"):
            batch = next(iter(batch.values()), None)
        else:
            return None
    return None
