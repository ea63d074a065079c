"""What a server of models told of itself, as parts of the profile of its job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.profile.model import Work
from telemetry.profiling.window import ActiveWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telemetry.recording.served import Served

_DIGITS = 9


def server_of(served: Sequence[Served], label: str | None) -> Served | None:
    """Return what the server of a job told: the one that its label names, else the only one."""
    named = [one for one in served if one.job == label]
    if len(named) == 1:
        return named[0]
    return served[0] if len(served) == 1 and (label is None or served[0].job is None) else None


def window_served(server: Served) -> ActiveWindow:
    """Return the time from a server's first reading to its last, for sources of no GPU."""
    end = server.start_s + server.length_s
    return ActiveWindow(
        start_s=server.start_s,
        end_s=end,
        last_s=end,
        begin_s=server.start_s,
        whole_s=server.length_s,
        interval_s=server.interval_s,
    )


def work_served(server: Served | None) -> Work | None:
    """Return the tokens that a server generated, or the requests that it answered."""
    if server is None or server.done is None:
        return None
    rate = server.done / server.length_s if server.length_s > 0 else None
    return Work(
        unit=server.unit,
        done=server.done,
        rate_per_s=None if rate is None else round(rate, _DIGITS),
    )
