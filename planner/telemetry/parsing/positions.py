"""Tells GPUs apart by the order of rows, for logs that name no device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_GPUS = 16
_SAME_SIZE = 0.9
_LEAST_TICKS = 3
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
    starts = np.flatnonzero(np.diff(ticks, prepend=ticks[:1] - 1))
    sizes = np.diff(np.append(starts, len(ticks)))
    if len(sizes) < _LEAST_TICKS:
        return [ONLY] * len(ticks), None
    inner = sizes[1:-1]
    size = int(np.median(inner))
    if not 1 < size <= _MOST_GPUS or (inner == size).mean() < _SAME_SIZE:
        return [ONLY] * len(ticks), None
    place = np.arange(len(ticks)) - np.repeat(starts, sizes)
    note = f"no GPU index: {size} rows at a time, taken as {size} GPUs in their order."
    return [f"row {min(int(p), size - 1)}" for p in place], note


def _ticks(t_s: NDArray[np.float64]) -> NDArray[np.int64]:
    steps = np.diff(t_s, prepend=t_s[:1])
    known = np.abs(steps[np.isfinite(steps)])
    # With up to 16 GPUs at least one step in 16 is a whole interval.
    interval = float(np.quantile(known, 1 - 1 / (_MOST_GPUS + 4))) if len(known) else 0.0
    return np.asarray(np.cumsum(~(np.abs(steps) < interval / 2)), dtype=np.int64)
