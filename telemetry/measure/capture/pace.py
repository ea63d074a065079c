"""How often a reading is made: not more often than it makes sense, nor than it may cost."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Pace:
    """The times of one reading.

    Args:
        least_s: between two readings.
        share: of one core that the reading may take; it waits longer where it costs more.
        early_s: how much earlier than `least_s` it may come, so that a tick that comes a little
            early does not skip a whole turn.
    """

    def __init__(self, least_s: float, share: float, early_s: float = 0.0) -> None:
        self._least_s = least_s - early_s
        self._share = share
        self._next_s = float("-inf")
        self._cost_s = 0.0

    def due(self, now_s: float) -> bool:
        """Return whether it is time."""
        return now_s >= self._next_s

    def took(self, now_s: float, cost_s: float) -> None:
        """Take note of a reading that began at a time and cost so much of the processor's time.

        One that was dear once, as the first is, is not dear: two in a row are.
        """
        dear_s, self._cost_s = min(cost_s, self._cost_s), cost_s
        self._next_s = now_s + max(self._least_s, dear_s / self._share)

    @contextmanager
    def taking(self, now_s: float) -> Iterator[None]:
        """Measure what a reading that begins at a time costs the processor."""
        start_s = time.thread_time()
        yield
        self.took(now_s, time.thread_time() - start_s)
