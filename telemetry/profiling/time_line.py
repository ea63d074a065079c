"""Draws a recording together: how busy the GPUs were at a few hundred points, and in what phase.

A reading counts for as long as it stood, so a point is the time-weighted mean of what was read in
it, and one in which nothing was read stays unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from telemetry.profiling.phases import labelled
from telemetry.profiling.statistics import durations
from telemetry.recording.observed import STEP_COLUMNS, Observed, Pause
from telemetry.recording.recording import GPU, TIME

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

MOST_POINTS = 400
LOADS = ("util.kernel_time", "util.sm_active")
HOST_LOAD = "cpu_util"
_SUMMED = tuple(name for name in STEP_COLUMNS if name not in {"t_s", "step", "n", "loss"})
_PAUSES = ("evaluation", "checkpoint")
_DIGITS = 3
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
    most: int = MOST_POINTS,
) -> TimeLine | None:
    """Return a recording at no more than so many points; None where no load was read over time.

    Args:
        samples: `t_s`, `gpu` and LOADS; the first of them that was read is drawn.
        host: `t_s` and `cpu_util`.
        observed: steps and pauses.
        most: points.
    """
    samples = samples.sort_values([GPU, TIME], kind="stable")
    slot = next((one for one in LOADS if one in samples and samples[one].notna().any()), None)
    if slot is None:
        return None
    read = [_read(rows, slot) for _, rows in samples.groupby(GPU, sort=True)]
    read = [one for one in read if len(one)]
    longest = max(len(one) for one in read)
    if longest < 2:  # noqa: PLR2004 - one instant cannot be drawn
        return None
    edges = _edges(read, min(most, longest))
    busy = np.array([_means(one, edges) for one in read])
    known = np.isfinite(busy)
    count = known.sum(axis=0)
    mean = np.where(count, np.where(known, busy, 0.0).sum(axis=0) / count.clip(1), np.nan)
    return TimeLine(
        gpus=len(read),
        point_s=round(float(edges[1] - edges[0]), 6),
        busy=_shown(mean),
        least=_shown(np.where(count, np.where(known, busy, np.inf).min(axis=0), np.nan)),
        most=_shown(np.where(count, np.where(known, busy, -np.inf).max(axis=0), np.nan)),
        host=_host(host, edges),
        phases=_phases(samples, host, observed, edges),
    )


def observed_steps(lines: Iterable[Mapping[str, float]]) -> Observed:
    """Return steps and pauses as far as the lines of a steps file tell them.

    A line stands for `n` steps and holds means over them. What it spent on an evaluation lies
    before its steps, what it spent on a checkpoint at their begin.
    """
    rows, pauses = [], []
    for line in lines:
        n = line.get("n", 1)
        row = {name: line[name] * n for name in _SUMMED if name in line}
        rows.append({"t_s": line["t_s"], "step": line.get("step", 0), "n": n, **row})
        begun = line["t_s"] - row.get("step_s", 0.0)
        length = {kind: row.get(f"{kind}_s", 0.0) for kind in _PAUSES}
        starts = {"evaluation": begun - length["evaluation"], "checkpoint": begun}
        pauses += [
            Pause(kind=kind, start_s=starts[kind], length_s=length[kind])
            for kind in _PAUSES
            if length[kind] > 0
        ]
    if not rows:
        return Observed()
    steps = pd.DataFrame(rows, columns=list(STEP_COLUMNS)).sort_values("t_s", kind="stable")
    return Observed(steps=steps.reset_index(drop=True), pauses=tuple(pauses))


def _read(rows: pd.DataFrame, slot: str) -> pd.Series:
    """Return what was read of one device, by instant."""
    known = rows[rows[slot].notna()]
    return known.groupby(TIME, sort=True)[slot].mean()


def _edges(read: list[pd.Series], points: int) -> NDArray[np.float64]:
    ends = [one.index.to_numpy(dtype=float) for one in read]
    last = max(float(t[-1] + durations(t)[-1]) for t in ends)
    return np.linspace(min(float(t[0]) for t in ends), last, points + 1)


def _means(read: pd.Series, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the time-weighted mean between neighbouring edges; NaN where nothing stood."""
    t_s = read.index.to_numpy(dtype=float)
    stood = durations(t_s)
    whole = _within(t_s, stood, np.ones(len(t_s)), edges)
    part = _within(t_s, stood, read.to_numpy(dtype=float), edges)
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), np.nan)


def _within(
    t_s: NDArray[np.float64],
    stood_s: NDArray[np.float64],
    values: NDArray[np.float64],
    edges: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the integral between neighbouring edges of values that stood for a while."""
    knots = np.column_stack([t_s, t_s + stood_s]).ravel()
    sums = np.cumsum(values * stood_s)
    heights = np.column_stack([np.append(0.0, sums[:-1]), sums]).ravel()
    return np.diff(np.interp(edges, knots, heights))


def _host(host: pd.DataFrame | None, edges: NDArray[np.float64]) -> tuple[float | None, ...]:
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
    found = labelled(samples, host, observed)
    if found is None:
        return ()
    t_s, stood_s, labels = found
    kinds = sorted(set(labels))
    names = np.array(labels, dtype=object)
    spent = np.array([_within(t_s, stood_s, (names == kind) * 1.0, edges) for kind in kinds])
    paused = np.array([_paused(observed, kind, edges) for kind in _PAUSES])
    at_work = spent.sum(axis=0)
    phases: list[str | None] = [
        kinds[at] if known > 0 else None
        for at, known in zip(spent.argmax(axis=0), at_work, strict=True)
    ]
    for at, known in enumerate(at_work):
        kind = int(paused[:, at].argmax())
        if paused[kind, at] > 0 and paused[kind, at] >= _MOST_OF * known:
            phases[at] = _PAUSES[kind]
    return tuple(phases)


def _paused(
    observed: Observed | None, kind: str, edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how long pauses of a kind lasted between neighbouring edges."""
    own = [p for p in observed.pauses if p.kind == kind] if observed is not None else []
    if not own:
        return np.zeros(len(edges) - 1)
    starts = np.array([pause.start_s for pause in own])
    lengths = np.array([pause.length_s for pause in own])
    order = starts.argsort(kind="stable")
    return _within(starts[order], lengths[order], np.ones(len(own)), edges)


def _shown(values: NDArray[np.float64]) -> tuple[float | None, ...]:
    return tuple(round(float(v), _DIGITS) if np.isfinite(v) else None for v in values)
