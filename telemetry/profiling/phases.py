"""Splits a recording into phases, such as start-up, steady, stall, evaluation; draws its time line.

Pauses that the probe timed (evaluation, checkpoint, stall) are taken from it, each out of the phase
in which it lies. Apart from them, a stretch is steady where steps run or a GPU is busy; a quiet
stretch (every GPU under 5 % busy for 10 s and 5 readings) is data preparation where the host works
meanwhile, and idle where nearly no reading shows a job's kernels. Before the first work it is
start-up, unless the host works for half a minute: libraries load faster than that. What follows the
last step is teardown. A hang is the end of a recording in which the kernels of several GPUs only
spin.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.profile.model import Phase
from telemetry.profiling import window
from telemetry.recording.observed import PAUSES, Observed, Pause
from telemetry.recording.recording import GPU, TIME, Recording

_BUSY_FRACTION = 0.05
_QUIET_S, _QUIET_READINGS, _PREPARES_S = 10.0, 5, 30.0
# A collective that waits for a lost rank reads as 100 % busy and draws a fraction of what the job
# drew. PyTorch gives it up no sooner than after ten minutes (the default timeout of NCCL there).
_SPINS, _SPINNING_POWER, _HANGS_S = 0.99, 0.4, 600.0
# A quarter of the cores at work is a job that prepares data, not one that waits.
HOST_WORKS = 0.25
LOADS = ("util.kernel_time", "util.sm_active")
_POWER, _MEMORY = "power.board_w", "mem.used_gib"
_SELDOM = 0.05  # of the readings of a pause: a monitor alone reads a few percent now and then
_TIMED = ("evaluation", "checkpoint", "stall")
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class _Ticks:
    """Readings on one clock: when, for how long, how busy the busiest GPU and the host were.

    `ran` is 1 where a job was on a GPU (`window.load_of`), else 0; `spins` is where the GPUs, of
    several, are busy all the time at a fraction of the usual power.
    """

    t_s: NDArray[np.float64]
    stood_s: NDArray[np.float64]
    busy: NDArray[np.float64]
    ran: NDArray[np.float64]
    host: NDArray[np.float64]
    spins: NDArray[np.bool_]


def phases(merged: Recording) -> tuple[Phase, ...]:
    """Return what the time of a recording went to, in the order of first appearance.

    Empty where neither load nor steps were recorded over time.
    """
    observed = merged.observed
    ticks = _ticks(merged.samples, merged.host, observed)
    if ticks is None:
        return ()
    labels = _labels(ticks, observed)
    timed = [p for p in observed.pauses if p.kind in _TIMED] if observed is not None else []
    kinds = dict.fromkeys((*labels, *(pause.kind for pause in timed)))
    by_kind = (_phase(kind, ticks, labels, timed) for kind in kinds)
    return tuple(phase for phase in by_kind if phase.total_s)


def _ticks(
    samples: pd.DataFrame, host: pd.DataFrame | None, observed: Observed | None
) -> _Ticks | None:
    columns = [name for name in (GPU, TIME, *LOADS, _POWER, _MEMORY) if name in samples]
    devices = [rows for _, rows in window.by_gpu(samples[columns])]
    loads = [load for rows in devices if (load := window.load_of(rows)) is not None]
    stepped = observed is not None and observed.steps is not None
    if loads:
        clock = loads[0][0]
    elif stepped and host is not None:
        clock = host["t_s"].to_numpy(dtype=float)
    else:
        return None
    if len(np.unique(clock)) < 2:  # noqa: PLR2004 - one instant has no phases
        return None
    busy = [_at(clock, times, values) for times, values, _ in loads]
    ran = [_at(clock, times, runs.astype(float)) for times, _, runs in loads]
    power = [_at(clock, *read) for rows in devices if (read := _read_of(rows, _POWER))]
    return _Ticks(
        t_s=clock,
        stood_s=window.durations(clock),
        busy=np.max(busy, axis=0) if busy else np.full(len(clock), np.nan),
        ran=np.max(ran, axis=0) if ran else np.zeros(len(clock)),
        host=_host(clock, host),
        spins=_spins(busy, power, len(clock)),
    )


def _spins(
    busy: list[NDArray[np.float64]], power: list[NDArray[np.float64]], readings: int
) -> NDArray[np.bool_]:
    if len(busy) < 2 or len(power) < len(busy):  # noqa: PLR2004 - one GPU waits for no other
        return np.zeros(readings, dtype=bool)
    drawn_w, loads = np.sum(power, axis=0), np.array(busy)
    waiting, lost = loads >= _SPINS, loads <= 1.0 - _SPINS  # the rank that died runs no kernel
    all_wait = (waiting | lost).all(axis=0) & waiting.any(axis=0)
    return np.asarray(all_wait & (drawn_w < _SPINNING_POWER * np.quantile(drawn_w, 0.95)))


def _read_of(
    rows: window.Columns, slot: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    if slot in rows and (finite := np.isfinite(rows[slot])).any():
        return rows["t_s"][finite], rows[slot][finite]
    return None


def _host(clock: NDArray[np.float64], host: pd.DataFrame | None) -> NDArray[np.float64]:
    if host is None or "cpu_util" not in host or not host["cpu_util"].notna().any():
        return np.full(len(clock), np.nan)
    rows = host[host["cpu_util"].notna()]
    return _at(
        clock, window.main_times(window.columns_of(rows)), rows["cpu_util"].to_numpy(dtype=float)
    )


def _at(
    clock: NDArray[np.float64], times: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the reading that stood at each instant of the clock."""
    index = np.clip(np.searchsorted(times, clock, side="right") - 1, 0, len(times) - 1)
    return np.asarray(values[index], dtype=float)


def _labels(ticks: _Ticks, observed: Observed | None) -> NDArray[np.object_]:
    labels = _by_load(ticks)
    steps = observed.steps if observed is not None else None
    if observed is None or steps is None:
        return labels
    ends, lengths = steps["t_s"].to_numpy(dtype=float), steps["step_s"].fillna(0.0).to_numpy(float)
    first, last = ends[0] - lengths[0], ends[-1]
    following = np.clip(np.searchsorted(ends, ticks.t_s), 0, len(ends) - 1)
    stepping = ticks.t_s >= (ends - lengths)[following]
    before, after = ticks.t_s < first, ticks.t_s > last
    labels[before & np.isin(labels, ["steady", "idle"])] = "start-up"
    labels[after & (labels == "steady")] = "teardown"
    labels[stepping & ~before & ~after] = "steady"
    return labels


def _by_load(ticks: _Ticks) -> NDArray[np.object_]:
    if not np.isfinite(ticks.busy).any():
        return np.full(len(ticks.busy), "idle", dtype=object)
    quiet = ~(ticks.busy >= _BUSY_FRACTION)
    labels = np.full(len(quiet), "steady", dtype=object)
    edges = np.flatnonzero(np.diff(quiet.astype(int), prepend=0, append=0))
    for first, end in edges.reshape(-1, 2).tolist():
        labels[first:end] = _quiet(ticks, slice(first, end))
    begun = int(np.flatnonzero(np.append(True, ~ticks.spins))[-1])  # after the last other reading
    if ticks.stood_s[begun:].sum() >= _HANGS_S:
        labels[begun:] = "hang"
    return labels


def _quiet(ticks: _Ticks, run: slice) -> str:
    """Return what a stretch without load is; what comes before it, if anything, is busy."""
    length_s, started = float(ticks.stood_s[run].sum()), run.start > 0
    long = length_s >= _QUIET_S and len(ticks.t_s[run]) >= _QUIET_READINGS
    works = float(np.nan_to_num(ticks.host[run]).mean()) >= HOST_WORKS
    if works and long and (started or length_s >= _PREPARES_S):
        return "data-preparation"
    if not started:
        return "start-up"
    return "idle" if long and float(ticks.ran[run].mean()) < _SELDOM else "steady"


def _phase(kind: str, ticks: _Ticks, labels: NDArray[np.object_], timed: list[Pause]) -> Phase:
    """Return one kind's stretches: labelled ones less what was timed in them, and timed ones."""
    own = [pause for pause in timed if pause.kind == kind]
    labelled = labels == kind
    weights = np.where(labelled, ticks.stood_s - _overlap(ticks, timed), 0.0).clip(0.0)
    weights += _overlap(ticks, own)
    whole_s = float(ticks.stood_s.sum())
    outside_s = sum(p.length_s for p in own) - float(_overlap(ticks, own).sum())
    total_s = float(weights.sum()) + max(0.0, outside_s)
    valid = np.isfinite(ticks.busy) & (weights > 0)
    load = float(np.average(ticks.busy[valid], weights=weights[valid])) if valid.any() else None
    waits = [pause.wait_s for pause in own]
    waited_s = sum(w for w in waits if w is not None) if waits and None not in waits else None
    return Phase(
        kind=kind,
        total_s=round(total_s, _DIGITS),
        time_fraction=round(min(1.0, total_s / whole_s), _DIGITS),
        count=sum(p.count for p in own) + int((np.diff(labelled.astype(int), prepend=0) > 0).sum()),
        kernel_time=None if load is None else round(load, _DIGITS),
        data_wait_s=None if waited_s is None else round(waited_s, _DIGITS),
    )


def _overlap(ticks: _Ticks, pauses: list[Pause]) -> NDArray[np.float64]:
    """Return how much of each tick lies in pauses, seconds."""
    return _paused(pauses).within(ticks.t_s, ticks.t_s + ticks.stood_s)


def _paused(pauses: list[Pause]) -> window.Covered:
    """Return the time in pauses; what stands for several is spread over the time of them all."""
    long = [pause for pause in pauses if pause.end_s > pause.start_s]
    begins, ends = [pause.start_s for pause in long], [pause.end_s for pause in long]
    return window.Covered(begins, ends, [p.length_s / (p.end_s - p.start_s) for p in long])


MOST_POINTS = 400
HOST_LOAD = "cpu_util"

_POINT_DIGITS = 3
_MOST_OF = 0.5  # of what was read in a point


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLine:
    """How busy the GPUs of a job were over time.

    Attributes:
        gpus: of which load was read.
        point_s: how long each point lasts, seconds.
        busy: mean over the GPUs, share of the time, 0-1; None where nothing was read.
        least: of the least busy GPU.
        most: of the busiest GPU.
        host: share of the host's cores that worked, 0-1; empty where it was not read.
        phases: what most of each point went to, as profile.json names phases.
    """

    gpus: int
    point_s: float
    busy: tuple[float | None, ...]
    least: tuple[float | None, ...]
    most: tuple[float | None, ...]
    host: tuple[float | None, ...] = ()
    phases: tuple[str | None, ...] = ()


def time_line(
    samples: pd.DataFrame,
    host: pd.DataFrame | None = None,
    observed: Observed | None = None,
    *,
    points: int = MOST_POINTS,
) -> TimeLine | None:
    """Return a recording at no more than so many points; None where no load was read over time.

    Args:
        samples: `t_s`, `gpu` and LOADS; the first of them that was read is drawn.
        host: `t_s` and `cpu_util`.
        observed: steps and pauses.
        points: points.
    """
    samples = samples.sort_values([GPU, TIME], kind="stable")
    slot = next((slot for slot in LOADS if slot in samples and samples[slot].notna().any()), None)
    if slot is None:
        return None
    read = [_read(rows, slot) for _, rows in samples.groupby(GPU, sort=True)]
    read = [load for load in read if len(load)]
    longest = max(map(len, read))
    if longest < 2:  # noqa: PLR2004 - one instant cannot be drawn
        return None
    times = [load.index.to_numpy(dtype=float) for load in read]
    last_s = max(float(t[-1] + window.durations(t)[-1]) for t in times)
    edges = np.linspace(min(float(t[0]) for t in times), last_s, min(points, longest) + 1)
    busy = np.array([_means(load, edges) for load in read])
    finite = np.isfinite(busy)
    count = finite.sum(axis=0)
    mean = np.where(count, np.where(finite, busy, 0.0).sum(axis=0) / count.clip(1), np.nan)
    return TimeLine(
        gpus=len(read),
        point_s=round(float(edges[1] - edges[0]), 6),
        busy=_shown(mean),
        least=_shown(np.where(count, np.where(finite, busy, np.inf).min(axis=0), np.nan)),
        most=_shown(np.where(count, np.where(finite, busy, -np.inf).max(axis=0), np.nan)),
        host=_host_busy(host, edges),
        phases=_phases(samples, host, observed, edges),
    )


def _read(rows: pd.DataFrame, slot: str) -> pd.Series:
    """Return what was read of one device, by instant."""
    return rows[rows[slot].notna()].groupby(TIME, sort=True)[slot].mean()


def _means(read: pd.Series, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the time-weighted mean between neighbouring edges; NaN where nothing stood."""
    t_s = read.index.to_numpy(dtype=float)
    until, spans = t_s + window.durations(t_s), (edges[:-1], edges[1:])
    total = window.Covered(t_s, until).within(*spans)
    part = window.Covered(t_s, until, read.to_numpy(dtype=float)).within(*spans)
    return np.where(total > 0, part / np.where(total > 0, total, 1.0), np.nan)


def _host_busy(host: pd.DataFrame | None, edges: NDArray[np.float64]) -> tuple[float | None, ...]:
    if host is None or HOST_LOAD not in host or not host[HOST_LOAD].notna().any():
        return ()
    return _shown(_means(_read(host, HOST_LOAD), edges))


def _phases(
    samples: pd.DataFrame,
    host: pd.DataFrame | None,
    observed: Observed | None,
    edges: NDArray[np.float64],
) -> tuple[str | None, ...]:
    """Return the phase that most of each point was; a pause that was timed, where it is half."""
    ticks = _ticks(samples, host, observed)
    if ticks is None:
        return ()
    names = _labels(ticks, observed)
    kinds = sorted(set(names))
    spans, until = (edges[:-1], edges[1:]), ticks.t_s + ticks.stood_s
    spent = np.array([window.Covered(ticks.t_s, until, names == k).within(*spans) for k in kinds])
    pauses = observed.pauses if observed is not None else ()
    by_kind = ([pause for pause in pauses if pause.kind == kind] for kind in PAUSES)
    paused = np.array([_paused(own).within(*spans) for own in by_kind])
    at_work = spent.sum(axis=0)
    phases: list[str | None] = [
        kinds[at] if worked > 0 else None
        for at, worked in zip(spent.argmax(axis=0), at_work, strict=True)
    ]
    for at, worked in enumerate(at_work):
        kind = int(paused[:, at].argmax())
        if paused[kind, at] > 0 and paused[kind, at] >= _MOST_OF * worked:
            phases[at] = PAUSES[kind]
    return tuple(phases)


def _shown(values: NDArray[np.float64]) -> tuple[float | None, ...]:
    return tuple(round(float(v), _POINT_DIGITS) if np.isfinite(v) else None for v in values)
