"""Unfolds what a long capture has folded: a block of hours as a few rows that tell the same.

A block (`measure.block`) keeps the distribution of each reading and how it went over time. Its rows
have that distribution and lie in time as the means of its
parts do: the least values where the mean was least. What went on within a part is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from telemetry.measure.capture_block import PARTS, Block
from telemetry.recording.recording import TIME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from telemetry.measure.capture_block import Point

ROWS_A_PART = 3
_ROWS = PARTS * ROWS_A_PART
# Of parts alike none comes first for being earlier: a noise would look like a slope.
_EVENLY = np.argsort(np.arange(PARTS) * 0.6180339887498949 % 1.0, kind="stable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfolded:
    """The rows of one block.

    Attributes:
        columns: `t_s` and the readings, equally long; NaN where something was not read.
        extremes: by reading, its least and its greatest value.
    """

    columns: Mapping[str, NDArray[np.float64]]
    extremes: Mapping[str, tuple[float, float]]


def unfolded(block: Block) -> Unfolded:
    """Return the rows of a block."""
    columns: dict[str, NDArray[np.float64]] = {}
    columns[TIME] = np.asarray(block.begin_s + np.arange(_ROWS) * (block.length_s / _ROWS))
    for name, points in block.points.items():
        columns[name] = _in_time(points, block.means[name])
    for name, counts in block.counts.items():
        columns[name] = np.full(_ROWS, np.nan)
        columns[name][::ROWS_A_PART] = [np.nan if v is None else v for v in counts]
    ends = {name: (p[0][0], p[-1][0]) for name, p in block.points.items() if p}
    return Unfolded(columns=columns, extremes=ends)


def together(blocks: Sequence[Unfolded]) -> pd.DataFrame:
    """Return the rows of the blocks of one series, with the extremes of all.

    Args:
        blocks: at least one.
    """
    names = sorted({name for block in blocks for name in block.columns})
    table = {name: np.full(len(blocks) * _ROWS, np.nan) for name in names}
    for i, block in enumerate(blocks):
        for name, values in block.columns.items():
            table[name][i * _ROWS : (i + 1) * _ROWS] = values
    for name in names:
        ends = [block.extremes[name] for block in blocks if name in block.extremes]
        if ends and np.isfinite(table[name]).any():
            table[name][np.nanargmin(table[name])] = min(least for least, _ in ends)
            table[name][np.nanargmax(table[name])] = max(greatest for _, greatest in ends)
    return pd.DataFrame(table)


def _in_time(points: Sequence[Point], means: Sequence[float | None]) -> NDArray[np.float64]:
    """Return values with the distribution of the points, in the order of the parts' means."""
    rows = np.full((PARTS, ROWS_A_PART), np.nan)
    mean = np.array([np.nan if value is None else value for value in means])
    ordered = _EVENLY[np.argsort(mean[_EVENLY], kind="stable")]
    known = ordered[np.isfinite(mean[ordered])]
    if len(known) and points:
        rows[known] = _ranked(points, len(known) * ROWS_A_PART).reshape(-1, ROWS_A_PART)
    return rows.reshape(-1)


def _ranked(points: Sequence[Point], count: int) -> NDArray[np.float64]:
    """Return `count` quantiles of the points; the end of the longer tail makes the means equal."""
    values, weights = np.array(points, dtype=float).T
    reached = np.cumsum(weights) / weights.sum()
    ranks = (np.arange(count) + 0.5) / count
    found = values[np.minimum(np.searchsorted(reached, ranks), len(values) - 1)]
    missing = float(np.average(values, weights=weights)) * count - float(found.sum())
    end = -1 if missing > 0 else 0
    found[end] = min(max(found[end] + missing, values[0]), values[-1])
    return np.asarray(found, dtype=float)
