"""How long the own thread wanted a core: on one, or in wait for one."""

from __future__ import annotations

import time

_SCHEDULED = "/proc/thread-self/schedstat"


def core_times_s() -> tuple[float, float]:
    """Return how long this thread was on a core, and how long it waited for one, since it began."""
    try:
        with open(_SCHEDULED, "rb") as stream:
            running_ns, ready_ns = stream.read().split()[:2]
    except (OSError, ValueError):
        return time.thread_time(), 0.0
    return int(running_ns) / 1e9, int(ready_ns) / 1e9


def wanting_a_core_s() -> float:
    """Return both together.

    On a machine that is busy with others, work looks like waiting by the clock of the thread alone.
    """
    return sum(core_times_s())
