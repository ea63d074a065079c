"""Tells GPUs apart by the order of rows, for logs that name no device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_GPUS = 16
_SAME_SIZE = 0.9
_LEAST_TICKS = 3
_ONE_QUERY_S = 0.1
ONLY = "only"


def keys_by_position(
    t_s: NDArray[np.float64] | None, blocks: NDArray[np.int64]
) -> tuple[list[str], str | None]:
    """Return a key for each row and what was assumed.

    Rows of one tick are one row per GPU, in the same order each time. A tick is a run of rows
    closer together than half the time between ticks; without times, the rows between two headers or
    date lines. The reading is taken only where nearly all ticks have the same number of rows.

    Args:
        t_s: the rows' times in seconds, None where there are none.
        blocks: how many headers or date lines came before each row.
    """
    ticks = blocks if t_s is None else _ticks(t_s)
    if t_s is not None and _at_once(t_s):
        ticks = np.zeros(len(ticks), dtype=np.int64)
    starts = np.flatnonzero(np.diff(ticks, prepend=ticks[:1] - 1))
    sizes = np.diff(np.append(starts, len(ticks)))
    size = _rows_of_a_tick(sizes, timed=t_s is not None)
    if size is None and t_s is None and 1 < len(ticks) <= _MOST_GPUS and len(sizes) == 1:
        note = (
            f"{len(ticks)} rows without time or index: taken as readings of one GPU after each "
            "other. If each is a GPU, log index or uuid, too."
        )
        return [ONLY] * len(ticks), note
    if size is None:
        return [ONLY] * len(ticks), None
    place = np.arange(len(ticks)) - np.repeat(starts, sizes)
    note = f"no GPU index: {size} rows at a time, taken as {size} GPUs in their order."
    return [f"row {min(int(p), size - 1)}" for p in place], note


def _at_once(t_s: NDArray[np.float64]) -> bool:
    """Return whether all rows are of one moment: one query that was answered GPU by GPU."""
    known = t_s[np.isfinite(t_s)]
    return 1 < len(known) <= _MOST_GPUS and float(np.ptp(known)) <= _ONE_QUERY_S


def _rows_of_a_tick(sizes: NDArray[np.int64], *, timed: bool) -> int | None:
    """Return how many rows nearly every tick has, None where that is one, or differs."""
    if len(sizes) >= _LEAST_TICKS:
        inner = sizes[1:-1]
        size = int(np.median(inner))
        same = bool((inner == size).mean() >= _SAME_SIZE)
    else:
        size = int(sizes[0])
        same = bool((sizes == size).all()) and (timed or len(sizes) > 1)
    return size if same and 1 < size <= _MOST_GPUS else None


def _ticks(t_s: NDArray[np.float64]) -> NDArray[np.int64]:
    steps = np.diff(t_s, prepend=t_s[:1])
    known = np.abs(steps[np.isfinite(steps)])
    # With up to 16 GPUs at least one step in 16 is a whole interval.
    interval = float(np.quantile(known, 1 - 1 / (_MOST_GPUS + 4))) if len(known) else 0.0
    return np.asarray(np.cumsum(~(np.abs(steps) < interval / 2)), dtype=np.int64)
