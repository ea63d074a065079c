"""The regions of an account, asked all at once: one that is slow or silent delays no other."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

MOST_AT_ONCE = 40
"""More than AWS has regions; each has its own connection."""

ANSWER_S = 90.0
"""How long they may take together; what a region needs with one repetition ends before that."""

Told = TypeVar("Told")


def in_each(
    regions: Iterable[str], asks: Callable[[str], Told], *, answer_s: float = ANSWER_S
) -> Mapping[str, Told | None]:
    """Return each region's answer, in the order of the regions; None where it is silent.

    Args:
        regions: their names.
        asks: one of them; what it raises is raised here.
        answer_s: how long to wait for all of them; who is silent then is not waited for.
    """
    names = tuple(dict.fromkeys(regions))
    if len(names) <= 1:
        return {name: asks(name) for name in names}
    work = _Work(asks, names)
    until_s = time.perf_counter() + answer_s
    for thread in [work.started() for _ in names[:MOST_AT_ONCE]]:
        thread.join(max(0.0, until_s - time.perf_counter()))
    if work.errors:
        raise work.errors[0]
    return {name: work.told.get(name) for name in names}


class _Work(Generic[Told]):
    """Questions that wait, and the answers so far."""

    def __init__(self, asks: Callable[[str], Told], names: Iterable[str]) -> None:
        self.told: dict[str, Told] = {}
        self.errors: list[Exception] = []
        self._asks = asks
        self._waiting: SimpleQueue[str] = SimpleQueue()
        for name in names:
            self._waiting.put(name)

    def started(self) -> threading.Thread:
        """Return a thread that asks while anybody waits; a process does not wait for it to end."""
        thread = threading.Thread(target=self._work, daemon=True)
        thread.start()
        return thread

    def _work(self) -> None:
        while True:
            try:
                name = self._waiting.get_nowait()
            except Empty:
                return
            try:
                self.told[name] = self._asks(name)
            except Exception as error:  # noqa: BLE001 - raised again by who waits
                self.errors.append(error)
