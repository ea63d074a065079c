"""Processes that share the trials: each has a stand-in, a time and a folder of its own."""

import multiprocessing
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from queue import Empty
from typing import Any

from tests.chaos.trials import Job, Stage, stage
from tests.chaos.truth import Count

Task = tuple[str, str]
"""Provider, and what is tried there."""

_LOOK_S = 1.0


def work_all(tasks: Mapping[Task, Job], *, jobs: int) -> Iterator[tuple[Task, Count, float]]:
    """What came of each task, as it is done, and its seconds; one that breaks has a bug."""
    forked = multiprocessing.get_context("fork")
    waiting, told = forked.Queue(), forked.Queue()
    for task in tasks:
        waiting.put(task)
    for _ in range(jobs):
        waiting.put(None)
    workers = [forked.Process(target=_work, args=(tasks, waiting, told)) for _ in range(jobs)]
    for worker in workers:
        worker.start()
    left = len(tasks)
    while left:
        try:
            yield told.get(timeout=_LOOK_S)
            left -= 1
        except Empty:
            if not any(worker.is_alive() for worker in workers):
                return
    for worker in workers:
        worker.join()


def _work(tasks: Mapping[Task, Job], waiting: Any, told: Any) -> None:
    """Do tasks until there is none; a provider is set up once for all tasks that follow."""
    with ExitStack() as stack:
        here: Stage | None = None
        while (task := waiting.get()) is not None:
            if here is None or here.kind != task[0]:
                stack.close()
                here = stack.enter_context(stage(task[0]))
            start_s = time.perf_counter()
            try:
                count = tasks[task](here)
            except Exception:  # noqa: BLE001 - told by the parent
                count = Count(trials=1, bugs=1, told=[traceback.format_exc()])
            told.put((task, count, time.perf_counter() - start_s))
