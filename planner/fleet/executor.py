"""Work in parts that do not depend on each other: in this process, or on any executor."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_on(
    executor: Executor | None, work: Callable[[Item], Result], items: Sequence[Item]
) -> Iterator[Result]:
    """Yield the result of each item, in their order.

    What an executor loses because one of its processes died or ran out of memory is done here.

    Args:
        executor: where to work; None: here, each item when its result is asked for.
        work: what is done; pickled together with its item where there is an executor.
        items: what it is done with.
    """
    if executor is None:
        yield from map(work, items)
        return
    futures: list[Future[Result]] = []
    with suppress(BrokenExecutor):
        futures.extend(executor.submit(work, item) for item in items)
    try:
        for index, item in enumerate(items):
            try:
                result = futures[index].result() if index < len(futures) else work(item)
            except (BrokenExecutor, MemoryError):
                result = work(item)
            yield result
    finally:
        for future in futures:
            future.cancel()
