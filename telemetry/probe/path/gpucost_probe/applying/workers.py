"""Workers beside a loader that has none: PyTorch's own, fed with the order of the loader itself.

The program's iterator stays; it takes batches from the workers as long as nothing is odd. Every
batch comes with what changed in the worker while it was read. Indices are kept until their batch is
in the program's hands, so at any moment the program can go on by itself, with the next batch.
"""

from __future__ import annotations

import os
import signal
import sys
import weakref
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator

    from .certificate import Watch

_ALL: weakref.WeakSet[Pool] = weakref.WeakSet()
_SHORTEST_WAIT_S = 60.0
_TIMES = 50.0
# Served by the program alone: a worker would run the program's handlers, too.
_SIGNALS = ("SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCONT", "SIGTSTP")


class PrefetchQueue:
    """The order of batches, asked ahead of the program; what was not handed out yet is kept.

    Attributes:
        pending: indices of batches that the workers were told of and the program does not have.
        error: what the sampler raised, to be raised when its turn comes.
        may_hand_out: whether one more may be handed out now.
    """

    def __init__(self, again: list[Any], source: Iterator[Any]) -> None:
        self.pending: deque[Any] = deque()
        self.error: Exception | None = None
        self.may_hand_out: Callable[[], bool] = _always
        self._exhausted = False
        self._again = deque(again)
        self._source = source

    def __iter__(self) -> PrefetchQueue:
        return self

    def __next__(self) -> Any:
        if self._again:
            return self._again.popleft()
        if self.error is not None or self._exhausted or not self.may_hand_out():
            raise StopIteration
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

    def remaining(self) -> Iterator[Any]:
        """Yield what is left for the program, as its sampler would."""
        while self.pending:
            yield self.pending.popleft()
        if self.error is not None:
            raise self.error
        yield from self._source


def _always() -> bool:
    return True


class _ClonedLoader:
    """A loader with some settings changed, as the iterators of PyTorch look at it."""

    def __init__(self, loader: Any, **settings: Any) -> None:
        self.__dict__.update(settings)
        self.__dict__["_loader"] = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_loader"], name)


class WorkerStart:
    """What a worker does first: leaves signals to the program, and tells what items change."""

    def __init__(self, module: Any, watch: Watch, own: Any) -> None:
        self.mask: Any = ()
        self._module, self._watch, self._own = module, watch, own

    def __call__(self, worker_id: int) -> None:
        """Begin."""
        for name in _SIGNALS:
            number = getattr(signal, name)
            if name == "SIGINT" or callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)
        fetcher: Any = self._module._utils.fetch._MapDatasetFetcher
        fetcher.fetch = _checked(fetcher.fetch, self._watch)
        if self._own is not None:
            self._own(worker_id)


def _checked(fetch: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    def checked(self: Any, index: Any) -> Any:
        before = watch.look()
        batch = fetch(self, index)
        return batch, watch.changed(before)

    return checked


def clone_loader(loader: Any, **settings: Any) -> Any:
    """Return what PyTorch's iterator with workers takes for the loader.

    Args:
        loader: the program's.
        settings: that differ from the loader's.
    """
    torch: Any = sys.modules["torch"]
    return _ClonedLoader(
        loader,
        persistent_workers=False,
        generator=torch.Generator(),  # no stream of the program is drawn from
        in_order=True,
        multiprocessing_context=torch.multiprocessing.get_context("fork"),
        _IterableDataset_len_called=None,
        **settings,
    )


class Pool:
    """The workers of one iteration.

    Args:
        module: torch.utils.data.dataloader.
        settings: see `clone_loader`.
        ahead: the order of the batches.
        slowest_s: of the batches read until now; workers that say nothing for much longer hang.

    Attributes:
        ahead: the order of the batches.
        count: of workers.
    """

    def __init__(self, module: Any, settings: Any, ahead: PrefetchQueue, slowest_s: float) -> None:
        self.ahead, self.count = ahead, int(settings.num_workers)
        self._pid = os.getpid()
        handlers = module._utils.signal_handling
        installed = handlers._SIGCHLD_handler_set
        # Its handler raises wherever the program stands when a worker dies; we look ourselves.
        handlers._SIGCHLD_handler_set = True
        settings.timeout = max(_SHORTEST_WAIT_S, _TIMES * slowest_s)
        blocked = {getattr(signal, name) for name in _SIGNALS}
        settings.worker_init_fn.mask = mask = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
        try:
            self._iterator = module._MultiProcessingDataLoaderIter(settings)
        finally:
            handlers._SIGCHLD_handler_set = installed
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        handlers._remove_worker_pids(id(self._iterator))
        self._iterator._worker_pids_set = False
        _ALL.add(self)

    @property
    def started_here(self) -> bool:
        """Whether this process started the workers, and not its parent."""
        return self._pid == os.getpid()

    def take(self) -> tuple[Any, str | None]:
        """Return the next batch, and what changed in its worker while it was read."""
        batch, changed = self._iterator._next_data()
        return batch, changed

    def fill(self) -> None:
        """Hand out as many batches as the workers may have, where fewer are on their way."""
        inner = self._iterator
        most = inner._prefetch_factor * inner._num_workers
        while inner._send_idx - inner._rcvd_idx < most:
            before = inner._send_idx
            inner._try_put_index()
            if inner._send_idx == before:
                return

    def close(self, *, at_once: bool = False) -> None:
        """End the workers.

        Args:
            at_once: do not wait for the item that each is reading.
        """
        if not self.started_here:
            self.abandon()
            return
        for worker in self._iterator._workers if at_once else ():
            worker.kill()
        self._iterator._shutdown_workers()

    def abandon(self) -> None:
        """Take that the workers are those of a parent: nothing of them is ours to end."""
        self._iterator._shutdown = True


def in_forked_child() -> None:
    """Forget the workers of the parent."""
    for pool in list(_ALL):
        pool.abandon()
