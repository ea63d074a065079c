"""Finds the zone of a log whose times have none, by a source of the same GPUs whose times do."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from telemetry.profiling.same_gpus import SAME_MEAN_PLUS, FileReadings, fit, has_same_mean

_Minutes = tuple[NDArray[np.int64], NDArray[np.float64]]

_QUARTER_MIN, _MOST_QUARTERS = 15, 56  # zones are up to 14 hours from UTC
_FEWEST_MIN = 20
_MOST_DATED = 8  # of one folder; more are not one job's
# The readings agree where they go up and down together, and at no other shift nearly as much.
_AGREE, _CLEARLY = 0.85, 0.2


def zones_of(files: Sequence[FileReadings]) -> Iterator[tuple[int, int, float]]:
    """Yield the place of a file without a zone, of one that tells it, and seconds ahead of UTC."""
    dated = [i for i, f in enumerate(files) if f.absolute and not f.local and f.has_gpus]
    for i, file in enumerate(files):
        near = [j for j in dated if files[j].folder == file.folder]
        if not file.local or not file.has_gpus or len(near) > _MOST_DATED:
            continue
        shifts = [(j, shift) for j in near if (shift := _ahead_s(file, files[j])) is not None]
        if len({shift for _, shift in shifts}) == 1 and shifts[0][1]:
            yield i, *shifts[0]


def _ahead_s(local: FileReadings, dated: FileReadings) -> float | None:
    """Return how far the times of one file are ahead of the other's; None where it is not clear."""
    if len(local.rows.gpus) != len(dated.rows.gpus) or not fit(local, dated):
        return None
    slots = [slot for slot in SAME_MEAN_PLUS if slot in local.rows.slots & dated.rows.slots]
    pairs = [(slot, _minutes(local, slot), _minutes(dated, slot)) for slot in slots]
    if not pairs:
        return None
    scores = {
        quarters: min(_agreement(*pair, quarters * _QUARTER_MIN) for pair in pairs)
        for quarters in range(-_MOST_QUARTERS, _MOST_QUARTERS + 1)
    }
    best, *rivals = sorted(scores, key=lambda quarters: -scores[quarters])
    clear = scores[best] >= _AGREE and scores[rivals[0]] <= scores[best] - _CLEARLY
    return best * _QUARTER_MIN * 60.0 if clear else None


def _minutes(file: FileReadings, slot: str) -> _Minutes:
    """Return the mean reading of all GPUs in each minute."""
    _, t_s, values = file.rows.readings(slot)
    finite = np.isfinite(values) & np.isfinite(t_s)
    at, index, counts = np.unique(
        (t_s[finite] // 60).astype(np.int64), return_inverse=True, return_counts=True
    )
    return at, np.bincount(index, values[finite], len(at)) / counts


def _agreement(slot: str, local: _Minutes, dated: _Minutes, ahead_min: int) -> float:
    """Return how well readings go together, at most 1, if one clock is so far ahead."""
    shared, at, dated_at = np.intersect1d(local[0] - ahead_min, dated[0], return_indices=True)
    first, second = local[1][at], dated[1][dated_at]
    if len(shared) < max(_FEWEST_MIN, min(len(local[0]), len(dated[0])) / 2):
        return -1.0
    if not (np.ptp(first) and np.ptp(second)):
        return -1.0
    same = has_same_mean(slot, float(first.mean()), float(second.mean()))
    return float(np.corrcoef(first, second)[0, 1]) if same else -1.0


def offset(ahead_s: float) -> str:
    """Return the zone as `--tz` takes it."""
    hours, minutes = divmod(round(abs(ahead_s) / 60), 60)
    return f"{'-' if ahead_s < 0 else '+'}{hours:02d}:{minutes:02d}"
