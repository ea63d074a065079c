"""Where the jobs of a plan are worked out: processes of this machine, or a cluster's workers."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from pricing.errors import InputError, UnreachableError
from pricing.message import Message

FEWEST_JOBS = 64
"""Fewer are planned sooner in this process alone."""


def processes() -> int:
    """Return how many processes may plan; 1 where a process cannot copy itself safely.

    A copy has none of its other threads, and may wait forever for what they held.
    """
    single = len(sys._current_frames()) == 1  # noqa: SLF001 - documented, and of every thread
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" and single else 1


@contextmanager
def planning_executor(jobs: int, dask: str | None = None) -> Iterator[Executor | None]:
    """Hold the executor that so many jobs are planned on; None where this process plans them.

    Args:
        jobs: how many.
        dask: address of the scheduler of a Dask cluster whose workers have gpucost installed.

    Raises:
        InputError: `distributed` is not installed.
        UnreachableError: no scheduler answers at the address.
    """
    if dask is not None:
        with _cluster(dask) as cluster:
            yield cluster
        return
    several = processes() if jobs >= FEWEST_JOBS else 1
    if several == 1:
        yield None
        return
    import multiprocessing  # noqa: PLC0415 - of large fleets alone
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - the same

    pool = ProcessPoolExecutor(
        several,
        mp_context=multiprocessing.get_context("fork"),
        initializer=_begin,
        initargs=(os.getpid(),),
    )
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise InputError(Message("input.dask-missing")) from error
    try:
        client = Client(address)
    except (OSError, ValueError) as error:
        raise UnreachableError(
            Message("input.dask-silent", address=address, why=str(error))
        ) from error
    try:
        yield client.get_executor()
    finally:
        client.close()


def _begin(parent: int) -> None:
    """Leave Ctrl-C to the parent of this process, and end when that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
