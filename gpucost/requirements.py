"""What is asked of a plan on the command line, as the planner takes it."""

import time
from collections.abc import Callable
from typing import Any

from gpucost.files.outcomes import read_history
from gpucost.files.sources import read_sources, read_trace
from planner.choice.requirements import Requirements, Site
from planner.models.interruption import CheckpointCosts

_LEAST_CHECKPOINT_S = 0.001  # a checkpoint that costs nothing would be written all the time


def requirements_of(asked: dict[str, Any]) -> Requirements:
    """Return what is asked of a plan, the files that its options name read.

    Args:
        asked: the options of `gpucost plan` by name; it is used up.

    Raises:
        InputError: a file of them cannot be read.
    """
    deadline, trace = asked.pop("deadline"), asked.pop("spot_trace")
    probes, history = asked.pop("probes"), asked.pop("history")
    limit = asked.pop("time_limit")
    checkpoints = CheckpointCosts(
        write_s=max(float(asked.pop("checkpoint_time")), _LEAST_CHECKPOINT_S),
        restart_s=float(asked.pop("restart_time")),
    )
    return Requirements(
        site=Site(
            grid_g_per_kwh=asked.pop("grid_g_per_kwh"),
            pue=asked.pop("pue"),
            host_fraction=asked.pop("host_power_share"),
        ),
        spot_trace=None if trace is None else read_trace(trace),
        checkpoints=checkpoints,
        deadline_h=None if deadline is None else float(deadline) / 3600.0,
        budget_usd=asked.pop("budget"),
        purchases=asked.pop("purchases"),
        egress_bytes=asked.pop("egress"),
        egress_to=asked.pop("egress_to") or "",
        storage_bytes=asked.pop("storage"),
        boot_disk_bytes=asked.pop("boot_disk"),
        include=frozenset(asked.pop("include")),
        engineer_usd_per_hour=asked.pop("engineer_rate"),
        probes=read_sources(probes) if probes else (),
        history=None if history is None else read_history(history),
        ends_search=_never if limit is None else _after(float(limit)),
        **asked,
    )


def _never() -> bool:
    return False


def _after(limit_s: float) -> Callable[[], bool]:
    """Return what says whether the limit has passed since it was first asked."""
    first: list[float] = []

    def passed() -> bool:
        now = time.monotonic()
        first[:] = first or [now]
        return now - first[0] >= limit_s

    return passed
