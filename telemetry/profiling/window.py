"""Statistics weighted by time, over the part of a recording in which the job ran."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from planner.profile.model import Statistics, UseByHour
from pricing.message import Message
from telemetry.recording.recording import GPU, JOB

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
GAP_INTERVALS = 3.0
# The usual interval is taken among this many neighbours, so that a source that changes its pace,
# or two sources of different pace, each keep their own.
_NEIGHBOURS = 15
_DIGITS = 6
_SAME = 1e-9


Columns = Mapping[str, "NDArray[np.float64]"]
"""The rows of one device: times, jobs by number and readings, NaN where missing."""


def by_gpu(samples: pd.DataFrame) -> Iterator[tuple[str, Columns]]:
    """Yield each device's key and its rows as numbers, by key; jobs are numbered."""
    columns = {
        str(name): column.array if column.dtype == "category" else column.to_numpy()
        for name, column in samples.items()
        if name not in (GPU, JOB)
    }
    if JOB in samples:
        numbers = samples[JOB].astype("category").cat.codes.to_numpy()
        columns[JOB] = np.where(numbers >= 0, numbers, np.nan)
    devices = samples[GPU].astype("category").cat
    codes, keys = devices.codes.to_numpy(), [str(key) for key in devices.categories]
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        codes, columns = codes[order], {name: of[order] for name, of in columns.items()}
    bounds = np.searchsorted(codes, np.arange(len(keys) + 1))
    for index in sorted(range(len(keys)), key=keys.__getitem__):
        own = slice(*bounds[index : index + 2])
        if own.start < own.stop:
            yield keys[index], {n: np.asarray(of[own], float) for n, of in columns.items()}


def columns_of(frame: pd.DataFrame) -> Columns:
    """Return the columns of a table of numbers."""
    return {str(name): frame[name].to_numpy(dtype=float) for name in frame.columns}


def durations(t_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how long each sample stood, in seconds.

    That is the time until the next one, at most 3 times the usual interval before or after it (a
    gap is not filled, a change of pace is none);
    samples of one instant share its time; the last one stands for the usual interval. A single
    instant stands for one second.

    Args:
        t_s: times of the samples, ascending, seconds.
    """
    if len(t_s) > 1 and bool((t_s[1:] > t_s[:-1]).all()):
        return _stood(t_s)
    instants, index, counts = np.unique(t_s, return_inverse=True, return_counts=True)
    if len(instants) == 0:
        return np.empty(0)
    if len(instants) == 1:
        return np.full(len(t_s), 1.0 / len(t_s))
    return np.asarray((_stood(instants) / counts)[index], dtype=float)


def _stood(instants: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how long each of at least two instants stood."""
    steps = np.diff(instants)
    # No usual interval is shorter than the shortest step: few steps can be above three of them.
    long = np.flatnonzero(steps > GAP_INTERVALS * steps.min())
    if not len(long):
        lengths = (_NEIGHBOURS // 2 + 1, _NEIGHBOURS)[: 1 + (len(steps) >= _NEIGHBOURS)]
        return np.append(steps, max(median(steps[-n:].tolist()) for n in lengths))
    places = np.append(long, len(steps) - 1)
    usual = _usual_at(steps, places)
    stood = np.append(steps, usual[-1])
    stood[long] = np.minimum(steps[long], GAP_INTERVALS * usual[:-1])
    return stood


def _usual_at(steps: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the usual interval around some steps, on one side where the pace changes."""
    edge = np.full(_NEIGHBOURS - 1, np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(
        np.concatenate((edge, steps, edge)), _NEIGHBOURS
    )
    firsts = np.stack((places + _NEIGHBOURS // 2, places, places + _NEIGHBOURS - 1))
    ordered = np.sort(windows[firsts])  # NaN last
    finite = np.isfinite(ordered).sum(axis=-1, keepdims=True)
    middle = np.concatenate(((finite - 1) // 2, finite // 2), axis=-1)
    medians = np.take_along_axis(ordered, middle, axis=-1).mean(axis=-1)
    medians[1:][finite[1:, :, 0] < _NEIGHBOURS] = np.nan
    return np.asarray(np.fmax.reduce(medians))


class Covered:
    """How much of the time lies in any of some stretches, in whatever order they come.

    Args:
        begins: of each, in one unit of time.
        ends: the same.
        shares: how much of each is meant, spread evenly over it; two at once are never above 1.

    Attributes:
        edges: their different begins and ends, ascending.
        total: the time in all of them.
    """

    def __init__(self, begins: ArrayLike, ends: ArrayLike, shares: ArrayLike = 1.0) -> None:
        edges = np.concatenate((np.asarray(begins, float), np.asarray(ends, float)))
        self.edges, places = np.unique(edges, return_inverse=True)
        weights = np.broadcast_to(np.asarray(shares, float), (len(places) // 2,))
        steps = np.bincount(places, np.concatenate((weights, -weights)), len(self.edges))
        lengths = np.diff(self.edges) * np.cumsum(steps)[:-1].clip(0.0, 1.0)
        self._sums = np.append(0.0, np.cumsum(lengths))
        self.total = float(self._sums[-1])

    def within(self, begins: ArrayLike, ends: ArrayLike) -> NDArray[np.float64]:
        """Return how much of each stretch is covered."""
        at = np.asarray([begins, ends], dtype=float)
        before, after = np.interp(at, self.edges, self._sums) if self.total else np.zeros_like(at)
        return np.asarray(np.maximum(0.0, after - before))


def usual_interval(t_s: NDArray[np.float64]) -> float | None:
    """Return the median time between instants, seconds; None for fewer than two."""
    steps = np.diff(t_s)
    if not (steps > 0).all():
        steps = np.diff(np.unique(t_s))
    return float(np.median(steps)) if len(steps) else None


def statistics(values: NDArray[np.float64], weights: NDArray[np.float64]) -> Statistics | None:
    """Return the weighted statistics of the values that are not NaN; None when there are none.

    A quantile q is the least value at or below which the share q of the time lies; where the share
    is met exactly, the middle between it and the next value.
    """
    finite = np.isfinite(values)
    values, weights = values[finite], weights[finite]
    total = float(weights.sum())
    if len(values) == 0 or total <= 0:
        return None
    order = np.argsort(values)
    values, weights = values[order], weights[order]
    mean = float(np.dot(values, weights) / total)
    ranks = np.cumsum(weights) / total
    places = np.searchsorted(ranks, np.subtract(QUANTILES, _SAME)).tolist()
    quantiles = [_quantile(values, ranks, *of) for of in zip(QUANTILES, places, strict=True)]
    names = (f"p{round(100 * q):02d}" for q in QUANTILES)
    return Statistics(
        mean=_rounded(min(max(mean, values[0]), values[-1])),
        min=_rounded(values[0]),
        max=_rounded(values[-1]),
        **{name: _rounded(value) for name, value in zip(names, quantiles, strict=True)},
    )


def _quantile(
    values: NDArray[np.float64], ranks: NDArray[np.float64], q: float, index: int
) -> float:
    index = min(index, len(values) - 1)
    if abs(ranks[index] - q) <= _SAME and index + 1 < len(values):
        return float(values[index] + values[index + 1]) / 2
    return float(values[index])


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS)


_BUSY_FRACTION = 0.05
_RUNS_FRACTION = 0.005  # of the time; 0 % where tools round it
_CONTEXT_GIB = 2.0  # what a context alone holds at most
# Power says something about load only where it moves; then a fifth of the way up is busy.
_POWER_MOVES = 1.25
_POWER_BUSY = 0.2
# Less than this of the whole, and shorter than this, is a burst on an idle machine, not a job.
_LEAST_SHARE, _BURST_S = 0.05, 600.0
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
        idle_s: recorded before it and after it, gaps left out, with every GPU idle, seconds.
        note: what was left out, or why nothing was; None where there is nothing to say.
    """

    start_s: float
    end_s: float
    last_s: float
    slack_s: tuple[float, float] = (0.0, 0.0)
    begin_s: float
    whole_s: float
    interval_s: float | None
    idle_s: tuple[float, float] = (0.0, 0.0)
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


def window_over(spans: "Sequence[Span]", *, active: bool = False) -> ActiveWindow:
    """Return the window from the first to the last busy sample of any GPU.

    Busy is a GPU whose kernels (or SMs) run 5 % of the time, or, where that is not known or never
    moves from 0, whose power is clearly above its least; so is one that a job is on (`load_of`) for
    ten minutes or more, and not now and then only. Pauses inside the window stay in it. Where
    nothing is busy, or only for under ten minutes and 5 % of the recording, it is all of it.

    Args:
        spans: of each GPU, at least one.
        active: whether nothing in them is idle: all of it is the window.
    """
    uncut = _full_window(spans)
    bounds = [] if active else [span.busy for span in spans if span.busy is not None]
    if not bounds or uncut.interval_s is None:
        return uncut
    start, end, length, usual = uncut.start_s, uncut.end_s, uncut.whole_s, uncut.interval_s
    begin, stop = min(begin for begin, _ in bounds), max(stop for _, stop in bounds)
    (first, first_stood), (last, last_stood) = begin[:2], stop[:2]
    until = min(float(last + last_stood), end)
    if until - first < min(_LEAST_SHARE * length, _BURST_S):
        note = Message("read.short-burst", busy=until - first, whole=length)
        return replace(uncut, note=note)
    lead, tail = float(first - start), float(end - until)
    if max(lead, tail) <= usual / 2:
        return uncut
    return replace(
        uncut,
        start_s=float(first),
        end_s=until,
        last_s=float(last),
        slack_s=(float(first_stood) * _SAME_TICK, float(last_stood) * _SAME_TICK),
        idle_s=(begin[2], stop[2]),
        note=Message("read.idle-ends", lead=lead, tail=tail),
    )


_Edge = tuple[float, float, float]
"""A GPU's first or last busy sample: when it was read, how long it stood, and how long the GPU was
read, and idle, before the first or after the last; seconds."""


@dataclass(frozen=True, slots=True)
class Span:
    """When one GPU was read: first, last, usual interval, first and last busy sample."""

    start_s: float
    newest_s: float
    interval_s: float | None
    busy: tuple[_Edge, _Edge] | None


def span_of(rows: Columns) -> Span:
    """Return when one GPU was read; its rows are sorted by time, and at least one."""
    times = rows["t_s"]
    interval = usual_interval(main_times(rows))
    return Span(float(times[0]), float(times[-1]), interval, _busy_bounds(rows))


def _full_window(spans: Sequence[Span]) -> ActiveWindow:
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


def _busy_bounds(rows: Columns) -> tuple[_Edge, _Edge] | None:
    """Return one GPU's first and last busy sample.

    A stretch in which the load is unknown while other readings go on is not idle.
    """
    read, busy, runs = _busy(rows)
    if not busy.any():
        return None
    stood, busy_at, runs_at = durations(read), np.flatnonzero(busy), np.flatnonzero(runs)

    def reached(edge: int, farthest: int) -> int:
        low, high = sorted((edge, farthest))
        stays = read[high] - read[low] >= _BURST_S and runs[low : high + 1].mean() >= _LEAST_SHARE
        return farthest if stays else edge

    at, end = reached(busy_at[0], runs_at[0]), reached(busy_at[-1], runs_at[-1])
    first = (read[at], stood[at], float(stood[:at].sum()))
    last = (read[end], stood[end], float(stood[end + 1 :].sum()))
    times, usual = main_times(rows), usual_interval(read) or 0.0
    # Nothing was idle between what is not known and what is busy; else the idle outweighs a little.
    if times[0] < read[0] - usual * (GAP_INTERVALS if at else 1 / 2):
        first = (times[0], stood[0], 0.0)
    if times[-1] > read[-1] + usual * (GAP_INTERVALS if end + 1 < len(read) else 1 / 2):
        last = (times[-1], stood[-1], 0.0)
    return first, last


def main_times(rows: Columns) -> NDArray[np.float64]:
    """Return when one GPU's most often read slot was read, seconds.

    Slots may be read at moments of their own; mixing them would make the pace look faster.
    """
    times = rows["t_s"]
    slots = sorted(slot for slot in rows if slot not in {"t_s", "job"})
    if not slots:
        return times
    main: NDArray[np.bool_] | None = None
    for slot in slots:
        finite = np.isfinite(rows[slot])
        if finite.all():
            return times
        if main is None or finite.sum() > main.sum():
            main = finite
    return times[main]


def _busy(
    rows: Columns,
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return when load was read, whether the GPU was busy then, and whether a job was on it."""
    load = load_of(rows)
    if load is not None and load[1].max() > 0:
        return load[0], load[1] >= _BUSY_FRACTION, load[2]
    times, power = rows["t_s"], rows.get("power.board_w", np.empty(0))
    finite = np.isfinite(power)
    if finite.any() and power[finite].max() > _POWER_MOVES * power[finite].min():
        low, high = power[finite].min(), power[finite].max()
        busy = power[finite] >= low + _POWER_BUSY * (high - low)
        return times[finite], busy, busy
    never = np.zeros(len(times), dtype=bool)
    return times, never, never


def load_of(
    rows: Columns,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]] | None:
    """Return when load was read, the share of the time, and whether a job was on the GPU.

    It is where kernels run, however few; a display or a monitor alone reads up to a few percent,
    beside next to no memory. None where no load was read.
    """
    used_gib = np.nan_to_num(rows.get("mem.used_gib", np.zeros(len(rows["t_s"]))), nan=np.inf)
    most_gib = float(used_gib.max(initial=0.0, where=np.isfinite(used_gib)))
    limit_gib = min(_CONTEXT_GIB, 0.5 * most_gib)
    for slot in _BUSY_SLOTS:
        if slot in rows and (finite := np.isfinite(rows[slot])).any():
            load = rows[slot]
            runs = (load >= _RUNS_FRACTION) & ~((load < _BUSY_FRACTION) & (used_gib < limit_gib))
            return rows["t_s"][finite], load[finite], runs[finite]
    return None


_LOADS = ("util.sm_active", "util.kernel_time")  # the better reading of a GPU's share first
_POINT_S, _POINTS_AN_HOUR = 300, 12
_DAY_H, _WEEK_H = 24, 168
_MONDAY_H = 72  # 1970 began on a Thursday
_DAYS_DIFFER = 1.5
"""Ratio of the variance between days to that within an hour (F) from which days are told apart. Of
a week of five-minute points chance alone gives 1.4 in one of a thousand cases."""
_HOUR_DIGITS = 4


class Points(NamedTuple):
    """Means of one GPU's load over five minutes each.

    Attributes:
        at: which five minutes, counted from 1970 UTC.
        busy: share of the time, 0-1.
    """

    at: NDArray[np.int64]
    busy: NDArray[np.float64]


def points_of(rows: Columns) -> Points:
    """Return one GPU's load; its rows have `t_s`, seconds since 1970 UTC."""
    loads = (rows[name] for name in _LOADS if name in rows and np.isfinite(rows[name]).any())
    busy = next(loads, np.full(len(rows["t_s"]), np.nan))
    read = np.isfinite(busy)
    at = (rows["t_s"][read] // _POINT_S).astype(np.int64)
    return _means(at, busy[read])


def use_by_hour(points: Sequence[Points]) -> UseByHour | None:
    """Return the load in each hour of the week, else of the day, mean over the GPUs.

    The week is told where all of it was read and its days differ by more than chance: numbers of a
    whole day are steadier. None where not every hour of a day was read.
    """
    if not points:
        return None
    at, busy = _means(*(np.concatenate(column) for column in zip(*points, strict=True)))
    hours = at // _POINTS_AN_HOUR
    day = _of(hours % _DAY_H, busy, _DAY_H)
    if day is None:
        return None
    week = _of((hours + _MONDAY_H) % _WEEK_H, busy, _WEEK_H)
    return week.use if week is not None and _days_differ(day, week) else day.use


class _Bins(NamedTuple):
    """Sums over hours: points, their mean, sum of squares around it."""

    points: NDArray[np.float64]
    mean: NDArray[np.float64]
    squares: NDArray[np.float64]

    @property
    def use(self) -> UseByHour:
        """The same as a profile keeps it."""
        spread = np.sqrt(self.squares / self.points)
        return UseByHour(mean=_numbers(self.mean), spread=_numbers(spread))


def _of(hours: NDArray[np.int64], busy: NDArray[np.float64], period: int) -> _Bins | None:
    count = np.bincount(hours, minlength=period).astype(float)
    if not count.all():
        return None
    mean = np.bincount(hours, busy, period) / count
    squares = np.bincount(hours, (busy - mean[hours]) ** 2, period).astype(float)
    return _Bins(count, mean, squares)


def _days_differ(day: _Bins, week: _Bins) -> bool:
    within = float(week.squares.sum()) / max(1, int(week.points.sum()) - _WEEK_H)
    between = float(day.squares.sum() - week.squares.sum()) / (_WEEK_H - _DAY_H)
    return between > _DAYS_DIFFER * within + 10.0**-_HOUR_DIGITS


def _means(at: NDArray[np.int64], busy: NDArray[np.float64]) -> Points:
    places, which = np.unique(at, return_inverse=True)
    return Points(places, np.bincount(which, busy, len(places)) / np.bincount(which))


def _numbers(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(np.clip(values, 0.0, 1.0).round(_HOUR_DIGITS).tolist())
