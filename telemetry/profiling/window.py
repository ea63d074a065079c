"""Finds the part of a recording in which the job ran, apart from an idle lead-in and tail."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from telemetry.profiling.statistics import durations, usual_interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd
    from numpy.typing import NDArray

_BUSY_FRACTION = 0.05
# Power says something about load only where it moves; then a fifth of the way up is busy.
_POWER_MOVES = 1.25
_POWER_BUSY = 0.2
# Less than this of the whole is not a job with an idle lead-in but an idle machine with a burst.
_LEAST_SHARE = 0.05
# Readings nearer than this share of an interval belong to one tick.
_SAME_TICK = 0.25
_BUSY_SLOTS = ("util.kernel_time", "util.sm_active")


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveWindow:
    """Where a recording's statistics are taken.

    Attributes:
        start_s: first instant, seconds on the recording's clock.
        end_s: end of the last sample.
        slack_s: how far outside start and last sample readings still belong to the same tick, as
            the readings of several GPUs lie milliseconds apart: before the start, after the last.
        last_s: instant of the last sample.
        begin_s: first instant of the whole recording.
        whole_s: length of the whole recording.
        interval_s: usual time between samples of a GPU; None for a single instant.
        note: what was left out, or why nothing was; None where there is nothing to say.
    """

    start_s: float
    end_s: float
    last_s: float
    slack_s: tuple[float, float] = (0.0, 0.0)
    begin_s: float
    whole_s: float
    interval_s: float | None
    note: str | None = None

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return self.end_s - self.start_s

    @property
    def finish_s(self) -> float:
        """End of the whole recording."""
        return self.begin_s + self.whole_s

    def holds(self, t_s: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which instants lie in the window."""
        first, last = self.start_s - self.slack_s[0], self.last_s + self.slack_s[1]
        return np.asarray((t_s >= first) & (t_s <= last))


def active_window(samples: pd.DataFrame, *, whole: bool = False) -> ActiveWindow:
    """Return the window from the first to the last busy sample of any GPU.

    Busy is a GPU whose kernels (or SMs) run 5 % of the time, or, where that is not known or never
    moves from 0, whose power is clearly above its least. Pauses inside the window stay in it. Where
    nothing is busy, or the window would be under 5 % of the recording, it is the whole recording.

    Args:
        samples: columns `t_s`, `gpu` and slots, at least one row, sorted by GPU and time.
        whole: whether nothing in them is idle: all of it is the window.
    """
    groups = (rows for _, rows in samples.groupby("gpu", sort=True))
    return window_over(groups, whole=whole)


def window_over(groups: Iterable[pd.DataFrame], *, whole: bool = False) -> ActiveWindow:
    """Return the active window of readings that come as one table a GPU, each looked at once."""
    spans = [_span(rows) for rows in groups]
    every = _whole(spans)
    bounds = [] if whole else [span.busy for span in spans if span.busy is not None]
    if not bounds or every.interval_s is None:
        return every
    start, end, length, usual = every.start_s, every.end_s, every.whole_s, every.interval_s
    first, first_stood = min(begin for begin, _ in bounds)
    last, last_stood = max(stop for _, stop in bounds)
    until = min(float(last + last_stood), end)
    if until - first < _LEAST_SHARE * length:
        note = (
            f"busy for {until - first:.4g} s of {length:.4g} s only; nothing was cut off as idle."
        )
        return replace(every, note=note)
    lead, tail = float(first - start), float(end - until)
    if max(lead, tail) <= usual / 2:
        return every
    note = f"idle lead-in of {lead:.4g} s and tail of {tail:.4g} s are not in the statistics."
    return replace(
        every,
        start_s=float(first),
        end_s=until,
        last_s=float(last),
        slack_s=(float(first_stood) * _SAME_TICK, float(last_stood) * _SAME_TICK),
        note=note,
    )


@dataclass(frozen=True, slots=True)
class _Span:
    """When one GPU was read: first, last, usual interval, first and last busy sample."""

    start_s: float
    newest_s: float
    interval_s: float | None
    busy: tuple[tuple[float, float], tuple[float, float]] | None


def _span(rows: pd.DataFrame) -> _Span:
    times = rows["t_s"].to_numpy(dtype=float)
    interval = usual_interval(main_times(rows))
    return _Span(float(times[0]), float(times[-1]), interval, _busy_bounds(rows))


def _whole(spans: Sequence[_Span]) -> ActiveWindow:
    """Return the whole recording as a window."""
    start = min(span.start_s for span in spans)
    end, newest = max((span.newest_s + (span.interval_s or 0.0), span.newest_s) for span in spans)
    intervals = [span.interval_s for span in spans if span.interval_s is not None]
    usual = float(np.median(intervals)) if intervals else None
    slack_s = (usual or 0.0) * _SAME_TICK
    return ActiveWindow(
        start_s=start,
        end_s=end,
        last_s=newest,
        slack_s=(slack_s, slack_s),
        begin_s=start,
        whole_s=end - start,
        interval_s=usual,
    )


def _busy_bounds(rows: pd.DataFrame) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Return one GPU's first and last busy sample: when it was read and how long it stood."""
    read, busy = _busy(rows)
    if not busy.any():
        return None
    stood, place = durations(read), np.flatnonzero(busy)
    return (read[place[0]], stood[place[0]]), (read[place[-1]], stood[place[-1]])


def main_times(rows: pd.DataFrame) -> NDArray[np.float64]:
    """Return when one GPU's most often read slot was read, seconds.

    Slots may be read at moments of their own; mixing them would make the pace look faster.
    """
    times = rows["t_s"].to_numpy(dtype=float)
    slots = sorted(slot for slot in rows.columns if slot not in {"t_s", "gpu", "job"})
    if not slots:
        return times
    known = rows[slots].notna().to_numpy()
    return np.asarray(times[known[:, int(known.sum(axis=0).argmax())]])


def _busy(rows: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return when load was read, and whether the GPU was busy then."""
    times = rows["t_s"].to_numpy(dtype=float)
    for slot in (*_BUSY_SLOTS, "power.board_w"):
        if slot not in rows:
            continue
        values = rows[slot].to_numpy(dtype=float)
        known = np.isfinite(values)
        if not known.any():
            continue
        low, high = float(values[known].min()), float(values[known].max())
        if slot in _BUSY_SLOTS and high > 0:
            return times[known], values[known] >= _BUSY_FRACTION
        if slot not in _BUSY_SLOTS and high > _POWER_MOVES * low:
            return times[known], values[known] >= low + _POWER_BUSY * (high - low)
    return times, np.zeros(len(times), dtype=bool)
