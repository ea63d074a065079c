"""What a server of models told of itself: requests, waiting, cache, latency, tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.profile.serving import Latency, Serving


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What one server, or the copies of one, reported over a stretch of time.

    Attributes:
        job: the workload that its labels name; None where they name none.
        framework: the server's program.
        kind: what sort of job, as `kinds.KINDS` names it.
        serving: its queue and cache; None where it tells neither.
        requests_per_s: requests answered.
        latency_ms: of whole requests, milliseconds.
        unit: what `done` counts: `token` (generated ones) or `request`.
        done: units done; None where unknown.
        start_s: first reading, seconds.
        length_s: from the first reading to the last; 0 for a single one.
        interval_s: usual time between readings; None for a single one.
        points: readings behind it.
        notes: what a reader of the profile should know.
    """

    job: str | None = None
    framework: str | None = None
    kind: str | None = None
    serving: Serving | None = None
    requests_per_s: float | None = None
    latency_ms: Latency | None = None
    unit: str = "token"
    done: float | None = None
    start_s: float = 0.0
    length_s: float = 0.0
    interval_s: float | None = None
    points: int = 0
    notes: tuple[str, ...] = ()
