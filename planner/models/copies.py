"""Copies of a service by the hour, and how long requests wait for a busy one.

How much longer requests take where their GPU is busier: the time in an M/M/1 queue.
It grows as 1 / (1 - load). Only the part of a latency that was spent on the GPU or in its queue
grows so; with a known rate of requests that part is known, else all of the latency is taken.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from msgspec import Struct

from planner.models.document import Number, need

_ROUNDING = 1e-9
_OF_99_PERCENT = 4.6  # ln 100: 99 % of requests take less than so many times the mean


def stretch(own: float, busy: float) -> float:
    """Return how much longer a request waits and runs on a GPU that is busier than measured.

    Args:
        own: share of the GPU's time that was taken when latency was measured.
        busy: share that is taken now.
    """
    return max(1.0 - own, _ROUNDING) / max(1.0 - busy, _ROUNDING)


def busiest(own: float, longest: float) -> float:
    """Return the share at which requests take `longest` times as long: `stretch` the other way."""
    return 1.0 - (1.0 - own) / longest


def on_gpu_ms(measured_ms: float, requests_per_s: float | None, share: float, peak: float) -> float:
    """Return the part of a latency that was spent on the GPU or in its queue, at the most.

    Args:
        measured_ms: the latency.
        requests_per_s: None where not measured: then all of it.
        share: of the GPU's time that the requests took, mean.
        peak: the same at its 95th percentile.
    """
    if not requests_per_s:
        return measured_ms
    mean_ms = 1000.0 * share / requests_per_s
    return min(measured_ms, _OF_99_PERCENT * mean_ms / max(1.0 - peak, _ROUNDING))


def load_of(measured_ms: float, share: float, requests_per_s: float) -> float:
    """Return the load at which 99 % of requests take less than a latency: `on_gpu_ms` solved."""
    return 1.0 - _OF_99_PERCENT * 1000.0 * share / requests_per_s / measured_ms


class Scaling(Struct, frozen=True, kw_only=True):
    """Copies of a service by the hour, where they follow its demand.

    Attributes:
        by_hour: copies in each hour of a day (24) or of a week from Monday 0 h (168); one number
            where they are the same at any time.
        fewest: at any time.
        peak: the most at any time.
        starts: copies started over that day or week.
        start_s: from a new machine to a copy that answers.
        busiest_fraction: the largest share of its GPU's time that a copy takes in any hour, mean.
        latency_ms: the longest in any hour; None where latency was not measured.
        limit: what sets how much one copy can answer, in words.
    """

    by_hour: tuple[int, ...]
    fewest: int
    peak: int
    starts: int
    start_s: Number
    busiest_fraction: Number
    latency_ms: Number | None
    limit: str

    def __post_init__(self) -> None:
        need(len(self.by_hour) in {1, 24, 168}, "by_hour has not 1, 24 or 168 numbers")
        need(max(self.by_hour) == self.peak >= 1, "peak is not the most of by_hour")


_DAY_H = 24
_MIN = 60
_LONGEST_LEAD_MIN = 59  # a copy that takes longer is late: an earlier hour may want fewer


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiesWindow:
    """A time of every day or week in which more copies run than the fewest.

    Attributes:
        start: as cron writes it: minute, hour, day, month, day of the week (0 is Sunday).
        end: the same.
        copies: that run then.
    """

    start: str
    end: str
    copies: int


def windows(by_hour: Sequence[int], start_s: float) -> tuple[CopiesWindow, ...]:
    """Return the times in which more copies run than the fewest, in the order of the hours.

    Where more copies are wanted than in the hour before, a window begins as much earlier as a copy
    takes to start, an hour at most.

    Args:
        by_hour: copies in each hour of a day (24) or of a week from Monday 0 h (168).
        start_s: from a new machine to a copy that answers.
    """
    fewest, period = min(by_hour), len(by_hour)
    first = by_hour.index(fewest)  # so that no time with more copies goes over the seam
    lead = min(_LONGEST_LEAD_MIN, math.ceil(start_s / _MIN))
    stretches = []
    hours = [(first + number) % period for number in range(period)]
    for copies, group in groupby(hours, key=by_hour.__getitem__):
        if copies == fewest:
            continue
        run = list(group)
        early = lead if copies > by_hour[run[0] - 1] else 0
        start, end = run[0] * _MIN - early, (run[-1] + 1) * _MIN
        stretches.append(
            (
                run[0],
                CopiesWindow(start=_cron(start, period), end=_cron(end, period), copies=copies),
            )
        )
    return tuple(window for _, window in sorted(stretches, key=lambda window: window[0]))


def _cron(minute: int, period_h: int) -> str:
    """Return a minute of a day or week as cron writes it; a week begins on Monday."""
    day, of_day = divmod(minute % (period_h * _MIN), _DAY_H * _MIN)
    weekday = "*" if period_h == _DAY_H else str((day + 1) % 7)
    return f"{of_day % _MIN} {of_day // _MIN} * * {weekday}"
