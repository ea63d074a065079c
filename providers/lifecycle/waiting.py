"""Time as the lifecycle sees it: a clock that tests replace, and waits counted in rounds."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

_LEAST_SKEW_S = 2.0  # the Date header has whole seconds and travelled for a while


def _now() -> datetime:
    return datetime.now(UTC)


def skew_s(date: str) -> float | None:
    """How far a provider's clock is ahead of ours, by the Date header of its answer.

    0 where it is too little to be told from the way of the answer, None where the header is no
    date.
    """
    try:
        ahead_s = (parsedate_to_datetime(date) - _now()).total_seconds()
    except (TypeError, ValueError):
        return None
    return ahead_s if abs(ahead_s) > _LEAST_SKEW_S else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The time, and a pause.

    Attributes:
        now: the local time, aware.
        sleep: waits so many seconds.
    """

    now: Callable[[], datetime] = _now
    sleep: Callable[[float], None] = field(default=time.sleep)

    def at(self, skew_s: float) -> datetime:
        """The time by a clock that is ahead of ours by so much, in whole seconds."""
        return (self.now() + timedelta(seconds=skew_s)).replace(microsecond=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long each wait may take, in rounds of a pause.

    Attributes:
        pause_s: between two looks at machines that start or end.
        running_rounds: until a machine runs.
        bootstrap_rounds: until it says that it is ready.
        gone_rounds: until everything of a run is gone.
        settle_pause_s: between two looks for what a lost answer may have made.
        settle_rounds: such looks before nothing is believed to have been made.
        calls: tries of a call that may be repeated.
        longest_wait_s: before it is repeated, also where the provider asks for more.
    """

    pause_s: float = 5.0
    running_rounds: int = 180
    bootstrap_rounds: int = 240
    gone_rounds: int = 120
    settle_pause_s: float = 5.0
    settle_rounds: int = 6
    calls: int = 5
    longest_wait_s: float = 60.0
