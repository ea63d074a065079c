"""What an engine counted, batch by batch, as numbers of each device and slot."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa
    from numpy.typing import NDArray

Device = tuple[str, str, str, str]
"""Job, host, uuid, index."""
_KEYS = ("job", "host", "uuid", "idx")
_NUMBERS = ("code", "micros", "n", "area", "area_millionths", "least", "most", "slot")
_MILLION = 1e6


@dataclass(slots=True)
class SlotCounts:
    """The different values of one slot of one device, and how long each stood.

    Attributes:
        parts: codes (values over the slot's step) and microseconds, in the order they came in.
        area: the sum of values times seconds, the whole part of each.
        area_millionths: the sum of the rests.
        least: the least value.
        most: the greatest.
        dropped: values out of range.
    """

    parts: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = field(default_factory=list)
    area: int = 0
    area_millionths: int = 0
    least: float = np.inf
    most: float = -np.inf
    dropped: int = 0

    def stood(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the codes, ascending, and the seconds of each."""
        if not self.parts:
            return np.empty(0), np.empty(0)
        codes, micros = (np.concatenate(part) for part in zip(*self.parts, strict=True))
        order = np.argsort(codes, kind="stable")
        return codes[order], micros[order] / _MILLION

    @property
    def value_seconds(self) -> float:
        """Values times seconds, to the millionth."""
        return (self.area * int(_MILLION) + self.area_millionths) / _MILLION

    def add(self, rows: NDArray[np.float64]) -> None:
        """Add rows of code, micros, n, area, its millionths, least, most, by column."""
        good = np.isfinite(rows[0])
        if not good.all():
            self.dropped += int(rows[2][~good].sum())
            rows = rows[:, good]
        if rows.shape[1]:
            self.parts.append((rows[0], rows[1]))
            # Sums of whole numbers up to 2^53 are exact, whatever their order.
            self.area += int(rows[3].sum())
            self.area_millionths += int(rows[4].sum())
            self.least = min(self.least, float(rows[5].min()))
            self.most = max(self.most, float(rows[6].max()))


def counted_by_device(batches: Iterable[pa.RecordBatch]) -> dict[Device, dict[int, SlotCounts]]:
    """Return the counts of `histogram.values` by device and slot.

    Args:
        batches: its rows, in any order. Only numbers are kept of them, so that an engine's answer
            never lies here as texts.
    """
    found: dict[Device, dict[int, SlotCounts]] = {}
    for batch in batches:
        if not batch.num_rows:
            continue
        numbers = np.vstack(
            [
                batch.column(name).to_numpy(zero_copy_only=False).astype(np.float64)
                for name in _NUMBERS
            ]
        )
        keys, texts = _keys(batch)
        keys.append(numbers[-1].astype(np.int64))
        order = np.lexsort(keys)
        ordered = np.vstack([key[order] for key in keys])
        begins = np.flatnonzero((ordered[:, 1:] != ordered[:, :-1]).any(axis=0)) + 1
        numbers = numbers[:-1, order]
        edges = [0, *begins.tolist(), batch.num_rows]
        for first, last in itertools.pairwise(edges):
            job, host, uuid, idx = (t[k] for t, k in zip(texts, ordered[:-1, first], strict=True))
            slots = found.setdefault((job, host, uuid, idx), {})
            slot = int(ordered[-1, first])
            slots.setdefault(slot, SlotCounts()).add(numbers[:, first:last].copy())
    return found


def _keys(batch: pa.RecordBatch) -> tuple[list[NDArray[np.int64]], list[list[str]]]:
    """Return each key's texts as numbers, and the texts that they stand for."""
    encoded = [batch.column(name).dictionary_encode() for name in _KEYS]
    codes = [one.indices.to_numpy(zero_copy_only=False).astype(np.int64) for one in encoded]
    return codes, [one.dictionary.to_pylist() for one in encoded]
