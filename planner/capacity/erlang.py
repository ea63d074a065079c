"""The textbook's waiting time, as the simple rule beside the replay: M/M/c with jobs of one GPU."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ErlangWait:
    """How long a job waits by Erlang's formula, in seconds.

    Attributes:
        mean_s: of all jobs.
        p95_s: of 95 % of them at most.
    """

    mean_s: float
    p95_s: float


def erlang_wait(load_gpus: float, mean_duration_s: float, gpus: int) -> ErlangWait | None:
    """Return the waits of M/M/c: jobs at random, durations exponential (Erlang 1917, formula C).

    Args:
        load_gpus: GPUs that are busy on average.
        mean_duration_s: of a job, weighted by its GPUs.
        gpus: of the pool.

    Returns:
        None where the load is as large as the pool: the queue grows without end.
    """
    if load_gpus >= gpus:
        return None
    blocked = 1.0  # Erlang B by its recursion, which does not overflow
    for servers in range(1, gpus + 1):
        blocked = load_gpus * blocked / (servers + load_gpus * blocked)
    waiting = gpus * blocked / (gpus - load_gpus * (1 - blocked))
    rate = (gpus - load_gpus) / mean_duration_s  # the wait of those who wait is exponential
    p95 = math.log(waiting / 0.05) / rate if waiting > 0.05 else 0.0  # noqa: PLR2004 - 95 %
    return ErlangWait(mean_s=waiting / rate, p95_s=p95)
