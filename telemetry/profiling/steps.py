"""From the steps that the probe saw, and what servers told, to the profile's step and work."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.profile.model import Stalls, Step, Work
from pricing.message import Message, join
from telemetry.profiling.window import ActiveWindow
from telemetry.recording.observed import Observed, StepTimes
from telemetry.recording.recording import Served

_DIGITS = 9
# As in the probe (gpucost_probe/timing/steps.py): this much longer than usual, and this long.
STALL_TIMES, STALL_S = 5.0, 0.5


def window_of_steps(
    observed: Observed | None, otherwise: ActiveWindow, t_s: NDArray[np.float64]
) -> ActiveWindow:
    """Return the window from the end of the first step to the end of the last.

    The first step carries start-up (libraries, autotuning, compilation), so it is left out; so are
    slow first steps, up to the change to the pace that stays.

    Args:
        observed: the job as it was watched.
        otherwise: the window by load, returned where steps or readings inside them are too few.
        t_s: when devices were read, seconds.
    """
    steps = observed.steps if observed is not None else None
    if steps is None or len(steps) <= 1:
        return otherwise
    early = early_steps(observed)
    first = float(steps["t_s"].iloc[0]) if early is None else early.until_s
    last = float(steps["t_s"].iloc[-1])
    inside = np.unique(t_s[(t_s >= first) & (t_s <= last)])
    if len(inside) <= 1 or otherwise.interval_s is None:
        return otherwise
    before, after = max(0.0, first - otherwise.begin_s), max(0.0, otherwise.finish_s - last)
    # A first row of no steps says when the first one began: a profiler starts after warm-up.
    full = steps["n"].iloc[0] == 0
    window = Message(f"read.window-of-{'all-' if full else ''}steps", before=before, after=after)
    slow = ""
    if early is not None:
        lengths = {"mean": early.mean_s, "later": early.later_s}
        slow = Message("read.early-steps", n=early.count, **lengths)
    return replace(
        otherwise,
        start_s=first,
        end_s=last,
        last_s=last,
        slack_s=(0.0, 0.0),
        note=join([window, slow], "sentences"),
    )


@dataclass(frozen=True, slots=True)
class EarlySteps:
    """Slow first steps: a cache fills, code is compiled or tuned.

    Attributes:
        count: their number, the very first left out.
        mean_s: a mean one of them.
        later_s: a mean one of the others.
        until_s: when the last of them ended, seconds since 1970.
    """

    count: int
    mean_s: float
    later_s: float
    until_s: float


def early_steps(observed: Observed | None) -> EarlySteps | None:
    """Return the slow first steps; None where the first steps are as long as the others.

    They end at the change that divides the lengths of the steps best (the greatest variance
    between the two parts, Otsu 1979), where the later ones are much shorter, and nearly all are.
    """
    rows = None if observed is None else observed.steps
    if rows is None or observed is None or observed.changes or observed.turns:
        return None
    rows = rows.iloc[1:]
    rows = rows[rows["step_s"].notna() & (rows["n"] > 0)]
    if len(rows) < _FEWEST_TO_DIVIDE:
        return None
    n = rows["n"].to_numpy(dtype=float)
    lengths = (rows["step_s"] - rows["checkpoint_s"].fillna(0.0)).to_numpy(dtype=float)
    step_s, counts, sums = lengths / n, n.cumsum(), lengths.cumsum()
    before = counts[:-1]
    between = (sums[:-1] - before * sums[-1] / counts[-1]) ** 2 / (before * (counts[-1] - before))
    k = int(np.argmax(between)) + 1
    count, later = int(counts[k - 1]), float(counts[-1] - counts[k - 1])
    mean_s, later_s = float(sums[k - 1]) / count, float(sums[-1] - sums[k - 1]) / later
    settled = later >= max(_FEWEST_LATER, _LEAST_LATER * counts[-1])
    usual_s = float(np.quantile(step_s[k:], 0.9))
    if not settled or mean_s < _MUCH_LONGER * later_s or usual_s >= float(np.median(step_s[:k])):
        return None
    return EarlySteps(count, mean_s, later_s, float(rows["t_s"].iloc[k - 1]))


_FEWEST_TO_DIVIDE = 8  # rows
_FEWEST_LATER, _LEAST_LATER = 20, 0.2  # steps, and of all: what stays must have been seen
_MUCH_LONGER = 2.0  # others' work on a machine slows steps by less, mostly


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
    parts["comm_s"] = _mean(rows, "comm_s", n) if "comm_s" in rows else None
    early = early_steps(observed)
    other_s = mean - sum(part or 0.0 for part in parts.values())
    times = observed.step_times
    as_it_is = not observed.changes  # a recipe changes how input is read
    return Step(
        count=observed.step_count,
        counted_by=observed.counted_by,
        loader_workers=observed.loader_workers if as_it_is else None,
        reading_cores=_rounded(observed.reading_cores) if as_it_is else None,
        p50_s=_rounded(times.quantile(0.5)),
        p95_s=_rounded(times.quantile(0.95)),
        max_s=_rounded(times.longest_s),
        stalls=_stalls(times),
        early_count=early.count if early else None,
        early_s=_rounded(early.mean_s) if early else None,
        mean_s=_rounded(mean) or None,
        compute_s=_rounded(max(0.0, other_s)),
        optimizer=observed.optimizer,
        optimizer_s=_rounded(_mean(rows, "optimizer_s", n)),
        **{name: _rounded(part) for name, part in parts.items()},
    )


def _stalls(times: StepTimes) -> Stalls | None:
    """Return the steps that took much longer than the median; None where there are no steps."""
    usual_s = times.quantile(0.5)
    if usual_s is None:
        return None
    threshold_s = max(STALL_S, STALL_TIMES * usual_s)
    count, total_s = times.from_length(threshold_s)
    return Stalls(
        count=count,
        total_s=_rounded(total_s),
        longest_s=_rounded(times.longest_s) if count else None,
        threshold_s=_rounded(threshold_s),
    )


def work_of(observed: Observed | None, window: ActiveWindow) -> Work | None:
    """Return the work of all processes in the window: samples, or steps where batches have no size.

    The rate is over the time from the first of these steps to the last, so evaluation and
    checkpoints slow it down as they do the job, and start-up does not. One step has no rate.
    """
    if observed is None or observed.steps is None:
        return None
    rows = _counted(observed.steps, window)
    items = float(rows["items"].sum(min_count=1)) * observed.items
    sized = bool(np.isfinite(items)) and items > 0
    done = items if sized else float(rows["n"].sum())
    length = _length(rows, observed.steps)
    rate = done / length if length > 0 and observed.step_count > 1 else None
    return Work(
        unit="sample" if sized else "step",
        done=done,
        rate_per_s=None if rate is None else round(rate, _DIGITS),
    )


def _counted(steps: pd.DataFrame, window: ActiveWindow) -> pd.DataFrame:
    """Return the steps that lie in the window as a whole; all of them where there are none."""
    times = steps["t_s"].to_numpy(dtype=float)
    inside = (times > window.start_s) & (times <= window.end_s)
    return steps[inside] if inside.any() else steps


def _length(rows: pd.DataFrame, steps: pd.DataFrame) -> float:
    """Return the seconds from the first row's start to the last row's end; 0 if unknown."""
    first = int(rows.index[0])
    if first > 0:
        begin_s = float(steps["t_s"].iloc[first - 1])
    else:
        length_s = rows["step_s"].iloc[0]
        begin_s = float(rows["t_s"].iloc[0]) - (0.0 if np.isnan(length_s) else float(length_s))
    return float(rows["t_s"].iloc[-1]) - begin_s


def _mean(rows: pd.DataFrame, name: str, n: float) -> float | None:
    timed = rows[name].notna()
    if n <= 0 or not timed.any():
        return None
    return float(rows.loc[timed, name].sum()) / float(rows.loc[timed, "n"].sum())


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)


def server_of(served: Sequence[Served], label: str | None) -> Served | None:
    """Return what the server of a job told: the one that its label names, else the only one."""
    named = [load for load in served if load.job == label]
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
