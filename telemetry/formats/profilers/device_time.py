"""When devices were busy, as a profiler saw it, to samples of equal length."""

from __future__ import annotations

from array import array
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from telemetry.formats.profilers.intervals import Covered, union
from telemetry.recording.recording import GPU, TIME

if TYPE_CHECKING:
    from telemetry.readers.recording_builder import RecordingBuilder

PARTS = 100
_MOST_S = 1e8  # three years: nobody profiles longer


def _doubles() -> array[float]:
    return array("d")


@dataclass(slots=True)
class DeviceTime:
    """What ran on the devices; times in seconds.

    Attributes:
        begins: by device, of everything that ran on it, likewise `lengths`.
        exchange_begins: of what exchanged data between GPUs, of all devices, likewise the lengths.
        compute_begins: of the other kernels.
    """

    begins: dict[int, array[float]] = field(default_factory=lambda: defaultdict(_doubles))
    lengths: dict[int, array[float]] = field(default_factory=lambda: defaultdict(_doubles))
    exchange_begins: array[float] = field(default_factory=_doubles)
    exchange_lengths: array[float] = field(default_factory=_doubles)
    compute_begins: array[float] = field(default_factory=_doubles)
    compute_lengths: array[float] = field(default_factory=_doubles)

    def add(self, device: int, begin_s: float, length_s: float, kernel: str | None) -> None:
        """Add what ran; `kernel` is its name, None for copies and fills."""
        self.begins[device].append(begin_s)
        self.lengths[device].append(length_s)
        if kernel is None:
            return
        lowered = kernel.lower()
        if "nccl" in lowered or "rccl" in lowered:
            self.exchange_begins.append(begin_s)
            self.exchange_lengths.append(length_s)
        else:
            self.compute_begins.append(begin_s)
            self.compute_lengths.append(length_s)

    def busy(self) -> dict[int, Covered]:
        """Return when each device was busy."""
        return {d: union(self.begins[d], self.lengths[d]) for d in sorted(self.begins)}

    def exchange(self) -> Covered:
        """Return when data were exchanged between GPUs."""
        return union(self.exchange_begins, self.exchange_lengths)

    def compute(self) -> Covered:
        """Return when other kernels ran."""
        return union(self.compute_begins, self.compute_lengths)


def samples_of(
    busy: dict[int, Covered], begin_s: float, end_s: float, builder: RecordingBuilder
) -> pd.DataFrame:
    """Return the busy share of each device in equal parts of a window, at their begins."""
    edges = np.linspace(begin_s, end_s, PARTS + 1)
    frames = []
    for device, covered in busy.items():
        share = covered.within(edges[:-1], edges[1:]) / ((end_s - begin_s) / PARTS)
        share = np.minimum(share, 1.0)  # sums of binary fractions
        builder.column(f"GPU {device}: busy share", "util.kernel_time", 1.0, share)
        builder.column(f"GPU {device}: busy [s]", None, None, np.array([covered.total]))
        frames.append(
            pd.DataFrame({TIME: edges[:-1], GPU: f"index {device}", "util.kernel_time": share})
        )
    if not frames:
        return pd.DataFrame({TIME: np.empty(0), GPU: pd.Series(dtype=object)})
    return pd.concat(frames, ignore_index=True)


def plausible(begin_s: float, length_s: float) -> bool:
    """Return whether a time and a length are some that a profiler measures."""
    return 0.0 <= length_s < _MOST_S and 0.0 <= begin_s < 1e11  # noqa: PLR2004 - the year 5138
