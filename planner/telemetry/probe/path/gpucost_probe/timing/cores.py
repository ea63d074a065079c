"""How long the own thread wanted a core: on one, or in wait for one."""

from __future__ import annotations

import time

_SCHEDULED = "/proc/thread-self/schedstat"


def wanting_a_core_s() -> float:
    """Return how long this thread was on a core or waited for one, since it began.

    On a machine that is busy with others, work looks like waiting by the clock of the thread alone.
    """
    try:
        with open(_SCHEDULED, "rb") as stream:
            running_ns, ready_ns = stream.read().split()[:2]
    except (OSError, ValueError):
        return time.thread_time()
    return (int(running_ns) + int(ready_ns)) / 1e9
