"""From the steps that the probe saw to the profile's step, work and window."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.profile.model import Step, Work

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from planner.profile.window import ActiveWindow
    from planner.telemetry.observed import Observed

_FEWEST_ROWS = 2
_FEWEST_READINGS = 2
_DIGITS = 9


def window_of_steps(
    observed: Observed | None, otherwise: ActiveWindow, t_s: NDArray[np.float64]
) -> ActiveWindow:
    """Return the window from the end of the first step to the end of the last.

    The first step carries start-up (libraries, autotuning, compilation), so it is left out.

    Args:
        observed: the job as it was watched.
        otherwise: the window by load, returned where steps or readings inside them are too few.
        t_s: when devices were read, seconds.
    """
    steps = observed.steps if observed is not None else None
    if steps is None or len(steps) < _FEWEST_ROWS:
        return otherwise
    first, last = float(steps["t_s"].iloc[0]), float(steps["t_s"].iloc[-1])
    inside = np.unique(t_s[(t_s >= first) & (t_s <= last)])
    if len(inside) < _FEWEST_READINGS or otherwise.interval_s is None:
        return otherwise
    before, after = first - otherwise.begin_s, otherwise.finish_s - last
    return replace(
        otherwise,
        start_s=first,
        end_s=last,
        last_s=last,
        slack_s=(0.0, 0.0),
        note=f"statistics run from the end of the first step to that of the last; {before:.4g} s "
        f"before and {after:.4g} s after are not in them.",
    )


def step_of(observed: Observed | None, window: ActiveWindow) -> Step | None:
    """Return where a step's time goes, means over the steps that ended in the window.

    `compute_s` is the rest: forward, backward, optimizer, launching. `count` is of the whole run.
    """
    if observed is None or observed.steps is None:
        return None
    rows = _counted(observed.steps, window)
    n = float(rows["n"].sum())
    mean = _mean(rows, "step_s", n) or 0.0
    parts = {name: _mean(rows, name, n) for name in ("data_wait_s", "h2d_s", "checkpoint_s")}
    rest = mean - sum(part or 0.0 for part in parts.values())
    return Step(
        count=observed.step_count,
        mean_s=_rounded(mean) or None,
        compute_s=_rounded(max(0.0, rest)),
        optimizer_s=_rounded(_mean(rows, "optimizer_s", n)),
        **{name: _rounded(part) for name, part in parts.items()},
    )


def work_of(observed: Observed | None, window: ActiveWindow) -> Work | None:
    """Return the work of all processes in the window: samples, or steps where batches have no size.

    The rate is over the whole window, so evaluation and checkpoints slow it down as they do the
    job.
    """
    if observed is None or observed.steps is None:
        return None
    rows = _counted(observed.steps, window)
    items = float(rows["items"].sum(min_count=1)) * observed.items
    sized = bool(np.isfinite(items)) and items > 0
    done = items if sized else float(rows["n"].sum())
    length = _length(rows, window)
    rate = done / length if length > 0 else None
    return Work(
        unit="sample" if sized else "step",
        done=done,
        rate_per_s=None if rate is None else round(rate, _DIGITS),
    )


def _counted(steps: pd.DataFrame, window: ActiveWindow) -> pd.DataFrame:
    """The steps that lie in the window as a whole; all of them where there are none."""
    times = steps["t_s"].to_numpy(dtype=float)
    inside = (times > window.start_s) & (times <= window.end_s)
    return steps[inside] if inside.any() else steps


def _length(rows: pd.DataFrame, window: ActiveWindow) -> float:
    times = rows["t_s"].to_numpy(dtype=float)
    begin = float(times[0] - rows["step_s"].fillna(0.0).iloc[0])
    held = window.start_s <= times[0] and times[-1] <= window.end_s
    return window.duration_s if held else float(times[-1]) - begin


def _mean(rows: pd.DataFrame, name: str, n: float) -> float | None:
    known = rows[name].notna()
    if n <= 0 or not known.any():
        return None
    return float(rows.loc[known, name].sum()) / float(rows.loc[known, "n"].sum())


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
