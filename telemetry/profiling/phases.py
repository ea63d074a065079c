"""Splits a recording into phases: start-up, steady, stall, evaluation, checkpoint, idle and others.

Pauses that the probe timed (evaluation, checkpoint, stall) are taken from it, each out of the phase
in which it lies. Apart from them, a stretch is steady where steps run or a GPU is busy; a quiet
stretch (every GPU under 5 % busy for 10 s and 5 readings) is data preparation where the host works
meanwhile, and idle otherwise. Before the first work it is start-up, unless the host works for half
a minute: libraries load faster than that. What follows the last step is teardown.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

import numpy as np

from planner.profile.model import Phase
from telemetry.profiling.statistics import durations
from telemetry.profiling.window import main_times

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from numpy.typing import NDArray

    from telemetry.profiling.merge import Merged
    from telemetry.recording.observed import Observed, Pause

_BUSY_FRACTION = 0.05
_QUIET_S, _QUIET_READINGS, _PREPARES_S = 10.0, 5, 30.0
# A quarter of the cores at work is a job that prepares data, not one that waits.
_HOST_WORKS = 0.25
_LOADS = ("util.kernel_time", "util.sm_active")
_TIMED = ("evaluation", "checkpoint", "stall")
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class _Ticks:
    """Readings on one clock: when, for how long, how busy the busiest GPU and the host were."""

    t_s: NDArray[np.float64]
    stood_s: NDArray[np.float64]
    busy: NDArray[np.float64]
    host: NDArray[np.float64]


def phases(merged: Merged) -> tuple[Phase, ...]:
    """Return what the time of a recording went to, in the order of first appearance.

    Empty where neither load nor steps were recorded over time.
    """
    observed = merged.observed
    ticks = _ticks(merged.samples, merged.host, observed)
    if ticks is None:
        return ()
    labels = np.array(_labels(ticks, observed), dtype=object)
    timed = [p for p in observed.pauses if p.kind in _TIMED] if observed is not None else []
    kinds = dict.fromkeys((*labels, *(pause.kind for pause in timed)))
    found = (_phase(kind, ticks, labels, timed) for kind in kinds)
    return tuple(phase for phase in found if phase.total_s)


def labelled(
    samples: pd.DataFrame, host: pd.DataFrame | None, observed: Observed | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[str, ...]] | None:
    """Return when the phase was told, how long each reading stood, and the phase, by time.

    None where neither load nor steps were recorded over time. Pauses that the probe timed are not
    in it. Times are seconds on the clock of the samples, which are sorted by it.
    """
    ticks = _ticks(samples, host, observed)
    if ticks is None:
        return None
    return ticks.t_s, ticks.stood_s, tuple(_labels(ticks, observed))


def _ticks(
    samples: pd.DataFrame, host: pd.DataFrame | None, observed: Observed | None
) -> _Ticks | None:
    groups = [rows for _, rows in samples.groupby("gpu", sort=True)]
    loads = [load for rows in groups if (load := _load(rows)) is not None]
    stepped = observed is not None and observed.steps is not None
    if loads:
        clock = loads[0][0]
    elif stepped and host is not None:
        clock = host["t_s"].to_numpy(dtype=float)
    else:
        return None
    if len(np.unique(clock)) < 2:  # noqa: PLR2004 - one instant has no phases
        return None
    busy = [_at(clock, times, values) for times, values in loads]
    return _Ticks(
        t_s=clock,
        stood_s=durations(clock),
        busy=np.max(busy, axis=0) if busy else np.full(len(clock), np.nan),
        host=_host(clock, host),
    )


def _load(rows: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    for slot in _LOADS:
        if slot in rows and rows[slot].notna().any():
            known = rows[rows[slot].notna()]
            return known["t_s"].to_numpy(dtype=float), known[slot].to_numpy(dtype=float)
    return None


def _host(clock: NDArray[np.float64], host: pd.DataFrame | None) -> NDArray[np.float64]:
    if host is None or "cpu_util" not in host or not host["cpu_util"].notna().any():
        return np.full(len(clock), np.nan)
    known = host[host["cpu_util"].notna()]
    return _at(clock, main_times(known), known["cpu_util"].to_numpy(dtype=float))


def _at(
    clock: NDArray[np.float64], times: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the reading that stood at each instant of the clock."""
    place = np.clip(np.searchsorted(times, clock, side="right") - 1, 0, len(times) - 1)
    return np.asarray(values[place], dtype=float)


def _labels(ticks: _Ticks, observed: Observed | None) -> list[str]:
    labels = _by_load(ticks)
    steps = observed.steps if observed is not None else None
    if observed is None or steps is None:
        return labels
    ends, lengths = steps["t_s"].to_numpy(dtype=float), steps["step_s"].fillna(0.0).to_numpy(float)
    first, last = ends[0] - lengths[0], ends[-1]
    following = np.clip(np.searchsorted(ends, ticks.t_s), 0, len(ends) - 1)
    stepping = ticks.t_s >= (ends - lengths)[following]
    for i, t in enumerate(ticks.t_s):
        if t < first:
            labels[i] = "start-up" if labels[i] in {"steady", "idle"} else labels[i]
        elif t > last:
            labels[i] = "teardown" if labels[i] == "steady" else labels[i]
        elif stepping[i]:
            labels[i] = "steady"
    return labels


def _by_load(ticks: _Ticks) -> list[str]:
    if not np.isfinite(ticks.busy).any():
        return ["idle"] * len(ticks.busy)
    quiet = ~(ticks.busy >= _BUSY_FRACTION)
    labels = ["steady"] * len(quiet)
    started = False
    for is_quiet, members in groupby(range(len(quiet)), key=lambda i: bool(quiet[i])):
        run = list(members)
        if not is_quiet:
            started = True
            continue
        for i in run:
            labels[i] = _quiet(ticks, run, started=started)
    return labels


def _quiet(ticks: _Ticks, run: list[int], *, started: bool) -> str:
    length_s = float(ticks.stood_s[run].sum())
    long = length_s >= _QUIET_S and len(run) >= _QUIET_READINGS
    works = float(np.nan_to_num(ticks.host[run]).mean()) >= _HOST_WORKS
    if works and long and (started or length_s >= _PREPARES_S):
        return "data-preparation"
    if not started:
        return "start-up"
    return "idle" if long else "steady"


def _phase(kind: str, ticks: _Ticks, labels: NDArray[np.object_], timed: list[Pause]) -> Phase:
    """Return one kind's stretches: labelled ones less what was timed in them, and timed ones."""
    own = [pause for pause in timed if pause.kind == kind]
    labelled = labels == kind
    weights = np.where(labelled, ticks.stood_s - _overlap(ticks, timed), 0.0).clip(0.0)
    weights += _overlap(ticks, own)
    whole_s = float(ticks.stood_s.sum())
    outside_s = sum(p.length_s for p in own) - float(_overlap(ticks, own).sum())
    total_s = float(weights.sum()) + max(0.0, outside_s)
    known = np.isfinite(ticks.busy) & (weights > 0)
    load = float(np.average(ticks.busy[known], weights=weights[known])) if known.any() else None
    waits = [pause.wait_s for pause in own]
    waited_s = sum(w for w in waits if w is not None) if waits and None not in waits else None
    return Phase(
        kind=kind,
        total_s=round(total_s, _DIGITS),
        time_fraction=round(min(1.0, total_s / whole_s), _DIGITS),
        count=sum(p.count for p in own) + sum(1 for _ in _starts(labelled)),
        kernel_time=None if load is None else round(load, _DIGITS),
        data_wait_s=None if waited_s is None else round(waited_s, _DIGITS),
    )


def _overlap(ticks: _Ticks, pauses: list[Pause]) -> NDArray[np.float64]:
    """Return how much of each tick lies in pauses, seconds.

    A pause that stands for several is spread evenly over the time that they took in all.
    """
    if not pauses:
        return np.zeros(len(ticks.t_s))
    edges = np.array(sorted({edge for p in pauses for edge in (p.start_s, p.end_s)}))
    density = np.zeros(len(edges))
    for pause in pauses:
        length_s = pause.end_s - pause.start_s
        if length_s > 0:
            first, last = np.searchsorted(edges, (pause.start_s, pause.end_s))
            density[first:last] += pause.length_s / length_s
    passed = np.concatenate(([0.0], np.cumsum(np.diff(edges) * density[:-1].clip(max=1.0))))
    until = np.interp(ticks.t_s + ticks.stood_s, edges, passed)
    return np.asarray(until - np.interp(ticks.t_s, edges, passed))


def _starts(at: NDArray[np.bool_]) -> Iterator[int]:
    for i, (before, now) in enumerate(pairwise([False, *at.tolist()])):
        if now and not before:
            yield i
