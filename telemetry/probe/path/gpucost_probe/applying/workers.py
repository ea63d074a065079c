"""Workers beside a loader that has none: PyTorch's own, fed with the order of the loader itself.

The program's iterator stays; it takes batches from the workers as long as nothing is odd. Every
batch comes with what changed in the worker while it was read. Indices are kept until their batch is
in the program's hands, so at any moment the program can go on by itself, with the next batch.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import warnings
import weakref
from collections import deque
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable, Iterator

    from ..foreign import Foreign
    from .certificate import Watch

_ALL: weakref.WeakSet[Pool] = weakref.WeakSet()
_ABANDONED: list[object] = []  # of a parent: to let go of them would be to end them
PAUSE = None  # in place of an index, while none is to be handed out
_SHORTEST_WAIT_S = 60.0
_TIMES = 50.0
_LOOK_S = 2.0  # a wait, until it is looked whether all workers live
# Served by the program alone: a worker would run the program's handlers, too.
_SIGNALS = ("SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCONT", "SIGTSTP")


class PrefetchQueue:
    """The order of batches, asked ahead of the program; what was not handed out yet is kept.

    Attributes:
        pending: indices of batches that the workers were told of and the program does not have.
        error: what the sampler raised, to be raised when its turn comes.
        may_hand_out: whether one more may be handed out now.
    """

    def __init__(self, again: list[object], source: Iterator[object]) -> None:
        self.pending: deque[object] = deque()
        self.error: Exception | None = None
        self.may_hand_out: Callable[[], bool] = lambda: True
        self._exhausted = False
        self._again = deque(again)
        self._source = source

    def __iter__(self) -> PrefetchQueue:
        return self

    def __next__(self) -> object:
        if self._again:
            return self._again.popleft()
        if self.error is not None or self._exhausted:
            raise StopIteration
        if not self.may_hand_out():
            return PAUSE
        try:
            index = next(self._source)
        except StopIteration:
            self._exhausted = True
            raise
        except Exception as error:
            self.error = error
            raise StopIteration from error
        self.pending.append(index)
        return index

    @property
    def is_used(self) -> bool:
        """Whether something is left of what was asked ahead."""
        return bool(self.pending) or self.error is not None

    def remaining(self) -> Iterator[object]:
        """Yield what is left for the program, as its sampler would."""
        while self.pending:
            yield self.pending.popleft()
        if self.error is not None:
            raise self.error
        yield from self._source


class _WorkerStart:
    """What a worker does first: leaves signals to the program."""

    def __init__(self, own: Callable[[int], None] | None) -> None:
        self.mask: Iterable[int] = ()
        self._own = own

    def __call__(self, worker_id: int) -> None:
        """Begin."""
        for name in _SIGNALS:
            number = getattr(signal, name)
            if name == "SIGINT" or callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)
        if self._own is not None:
            self._own(worker_id)


class WatchedSet:
    """The data set of a worker: whole batches, each with what changed while it was read.

    Everything else that it is asked is the program's own data set's.
    """

    def __init__(self, loader: Foreign, watch: Watch) -> None:
        self.__dict__.update(_loader=loader, _watch=watch)

    def __getattr__(self, name: str) -> object:
        return getattr(self.__dict__["_loader"].dataset, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.__dict__["_loader"].dataset, name, value)

    def __getitem__(self, index: Foreign | None) -> object:
        if index is PAUSE:
            return None
        watch: Watch = self.__dict__["_watch"]
        before = watch.look()
        batch = read_batch(self.__dict__["_loader"], index)
        return batch, watch.changed(before)


def read_batch(loader: Foreign, index: Foreign) -> object:
    """Return the batch of an index as the documentation of DataLoader says that it is read."""
    dataset = loader.dataset
    if loader.batch_sampler is None:
        return loader.collate_fn(dataset[index])
    if getattr(dataset, "__getitems__", None):
        return loader.collate_fn(dataset.__getitems__(index))
    return loader.collate_fn([dataset[i] for i in index])


def as_it_is(batch: object) -> object:
    """Return a batch that is one already."""
    return batch


class Pool:
    """The workers of one iteration: a DataLoader of PyTorch's beside the program's.

    Args:
        loader: the program's.
        watch: over what items may change.
        ahead: the order of the batches.
        slowest_s: of the batches read until now; workers that say nothing for much longer hang.
        settings: of the DataLoader: `num_workers`, `prefetch_factor`, `pin_memory`.

    Attributes:
        ahead: the order of the batches.
        count: of workers.
    """

    def __init__(
        self, loader: Foreign, watch: Watch, ahead: PrefetchQueue, slowest_s: float, **settings: int
    ) -> None:
        torch = sys.modules["torch"]
        self.ahead, self.count = ahead, int(settings["num_workers"])
        self._pid, self._patience_s = os.getpid(), max(_SHORTEST_WAIT_S, _TIMES * slowest_s)
        earlier = set(multiprocessing.active_children())
        start = _WorkerStart(loader.worker_init_fn)
        handler = signal.getsignal(signal.SIGCHLD)
        blocked = {getattr(signal, name) for name in _SIGNALS}
        start.mask = mask = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of more workers than cores: that is considered
                own = torch.utils.data.DataLoader(
                    WatchedSet(loader, watch),
                    batch_size=None,
                    sampler=ahead,
                    collate_fn=as_it_is,
                    worker_init_fn=start,
                    generator=torch.Generator(),  # no stream of the program is drawn from
                    multiprocessing_context="fork",
                    timeout=_LOOK_S,
                    **settings,
                )
                self._batches: Iterator[tuple[object, str | None]] | None = iter(own)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            # PyTorch's raises wherever the program stands when a worker dies; we look ourselves.
            if handler is not None and signal.getsignal(signal.SIGCHLD) is not handler:
                signal.signal(signal.SIGCHLD, handler)
        self._workers = set(multiprocessing.active_children()) - earlier
        _ALL.add(self)

    @property
    def started_here(self) -> bool:
        """Whether this process started the workers, and not its parent."""
        return self._pid == os.getpid()

    def take(self) -> tuple[object, str | None] | None:
        """Return the next batch, and what changed in its worker meanwhile; None for the end."""
        until_s = monotonic() + self._patience_s
        while True:
            try:
                return self._next()
            except RuntimeError as error:  # noqa: PERF203 - once in _LOOK_S
                silent = str(error).startswith("DataLoader timed out")
                dead = not all(worker.is_alive() for worker in self._workers)
                if not silent or dead or monotonic() > until_s:
                    raise

    def _next(self) -> tuple[object, str | None] | None:
        # Pauses come first after a time without handing out.
        batches = iter(()) if self._batches is None else self._batches
        return next((item for item in batches if item is not PAUSE), None)

    def close(self, *, at_once: bool = False) -> None:
        """End the workers.

        Args:
            at_once: do not wait for the item that each is reading.
        """
        if not self.started_here:
            self.abandon()
            return
        for worker in self._workers if at_once else ():
            worker.kill()
        self._batches = None  # its end is that of the workers

    def abandon(self) -> None:
        """Take that the workers are those of a parent: nothing of them is ours to end."""
        _ABANDONED.append(self._batches)
        self._batches = None


def in_forked_child() -> None:
    """Forget the workers of the parent."""
    for pool in list(_ALL):
        pool.abandon()
