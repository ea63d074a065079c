"""A large log to a profile: for each GPU and slot, how many seconds each value stood."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from planner.profile.kinds import SLOTS
from planner.profile.model import GpuReadings, Statistics
from pricing.errors import InputError
from telemetry.large.columns import MISSING
from telemetry.large.recording import Counted, LargeRecording, joined, read_large
from telemetry.large.table import NeedsSlowReaderError
from telemetry.profiling.build import Taken, assembled, nothing_left
from telemetry.profiling.doubts import AboutGpu, about_gpu, doubts_of
from telemetry.profiling.merge import Merged
from telemetry.profiling.window import durations, main_times, statistics, window_over
from telemetry.recording.recording import TIME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from planner.profile.model import Profile
    from telemetry.profiling.window import ActiveWindow
    from telemetry.readers.hints import Hints
    from telemetry.recording.recording import GpuIdentity

_ENERGY, _POWER = "energy.total_j", "power.board_w"
_MOST_BINS = 1 << 20
_FAST_S = 1.0  # mean time between rows from which repeats are not counted


@dataclass(frozen=True, slots=True)
class _Device:
    """The rows of one GPU, in the order of their times."""

    gpu: GpuIdentity
    t_s: NDArray[np.float64]
    slots: Mapping[str, Counted]
    rows: NDArray[np.int64]

    def frame(self) -> pd.DataFrame:
        """Return the readings as `Recording.samples`."""
        columns = {slot: column.floats(self.rows) for slot, column in self.slots.items()}
        return pd.DataFrame({TIME: self.t_s, **columns}, copy=False)


def profile_of_logs(paths: Sequence[str], hints: Hints) -> Profile | None:
    """Return the profile of large logs of one job; None where one is not plain.

    Args:
        paths: the logs, in the order of their names.
        hints: what they do not say.

    Raises:
        InputError: one cannot be read, may be of either of two machines, or no reading is left.
    """
    try:
        recordings = [read_large(path, hints) for path in paths]
        whole = recordings.pop() if len(recordings) == 1 else joined(recordings)
    except NeedsSlowReaderError:
        return None
    return profile_of(whole, hints)


def profile_of(recording: LargeRecording, hints: Hints) -> Profile:
    """Return the profile of one job: what `profiling.build` makes of it, without phases.

    Raises:
        InputError: no reading is left.
    """
    measured = {slot for slot, column in recording.slots.items() if _any(column)}
    if not measured or not len(recording.t_s):
        raise InputError(nothing_left(recording.sources))
    about: list[AboutGpu] = []
    window = window_over(_looked_at(recording, about))
    readings, shares = [], []
    for device in _devices(recording):
        gpu_readings, share = _statistics(device, window)
        readings.append(gpu_readings)
        shares.append(share)
    over_time = window.interval_s is not None and window.duration_s > 0
    coverage = round(float(np.mean(shares)), 6) if over_time else None
    merged = Merged(
        gpus=recording.gpus,
        sources=recording.sources,
        absolute=recording.absolute,
        local_time=recording.local_time,
        mig=recording.mig,
        notes=recording.notes,
    )
    looked_at = ((window, coverage), hints.interval_s, (measured, _in_key_order(recording, about)))
    doubts = tuple(doubts_of(merged, *looked_at))
    statistics_taken = Taken(window=window, coverage=coverage, gpus=tuple(readings), doubts=doubts)
    return assembled(merged, statistics_taken, None, hints)


def _any(column: Counted) -> bool:
    if column.per == 0:
        return bool(np.isfinite(column.counts).any())
    return bool((column.counts != MISSING).any())


def _in_key_order(recording: LargeRecording, about: list[AboutGpu]) -> list[AboutGpu]:
    order = sorted(range(len(about)), key=lambda i: recording.gpus[i].key)
    return [about[i] for i in order]


def _looked_at(recording: LargeRecording, about: list[AboutGpu]) -> Iterator[pd.DataFrame]:
    for device in _devices(recording):
        frame = device.frame()
        about.append(about_gpu(frame, device.gpu, fast=_is_fast(device.t_s)))
        yield frame


def _is_fast(t_s: NDArray[np.float64]) -> bool:
    return len(t_s) > 1 and float(t_s[-1] - t_s[0]) / (len(t_s) - 1) < _FAST_S


def _devices(recording: LargeRecording) -> Iterator[_Device]:
    """Yield each GPU's rows by time, those that repeat another at the same time once."""
    codes = recording.codes
    narrow = codes.astype(np.int16) if len(recording.gpus) < 1 << 15 else codes
    order = np.argsort(narrow, kind="stable")
    ends = np.searchsorted(narrow[order], np.arange(len(recording.gpus)), side="right")
    for i, gpu in enumerate(recording.gpus):
        rows = order[ends[i - 1] if i else 0 : ends[i]]
        t_s = recording.t_s[rows]
        steps = np.diff(t_s)
        if (steps < 0).any():
            by_time = np.argsort(t_s, kind="stable")
            rows, t_s = rows[by_time], t_s[by_time]
            steps = np.diff(t_s)
        device = _Device(gpu, t_s, recording.slots, rows)
        if (steps == 0).any():
            once = ~device.frame().duplicated().to_numpy()
            device = replace(device, t_s=t_s[once], rows=rows[once])
        yield device


def _statistics(device: _Device, window: ActiveWindow) -> tuple[GpuReadings, float]:
    """Return a GPU's statistics, and the share of the window that its samples cover."""
    stood = durations(device.t_s)
    inside = window.holds(device.t_s)
    metrics: dict[str, Statistics] = {}
    energy: float | None = None
    share: float | None = None
    for slot, column in device.slots.items():
        values = column.counts[device.rows]
        read = np.isfinite(values) if column.per == 0 else values != MISSING
        whole = bool(read.all())
        t_s = device.t_s if whole else device.t_s[read]
        weights = stood if whole else durations(t_s)
        within = inside if whole else window.holds(t_s)
        values = values if whole else values[read]
        if (
            slot in SLOTS
            and (slot_statistics := _slot(values, weights, within, column, window)) is not None
        ):
            metrics[slot] = slot_statistics
        if slot == _POWER and window.interval_s is not None and within.any():
            joules = Counted(values, column.per, column.scale).floats(slice(None)) * weights
            energy = round(float(joules[within].sum()), 3)
        if whole and share is None:
            share = float(stood[inside].sum())
    if share is None:
        times = main_times(device.frame())
        share = float(durations(times)[window.holds(times)].sum())
    if energy is not None:
        metrics[_ENERGY] = Statistics(mean=energy, max=energy)
    ordered = {slot: metrics[slot] for slot in (*SLOTS,) if slot in metrics}
    part = min(1.0, share / window.duration_s) if window.duration_s > 0 else 0.0
    return GpuReadings(index=device.gpu.index, uuid=device.gpu.uuid, metrics=ordered), part


def _slot(
    values: NDArray[np.int32] | NDArray[np.float64],
    weights: NDArray[np.float64],
    within: NDArray[np.bool_],
    column: Counted,
    window: ActiveWindow,
) -> Statistics | None:
    if window.interval_s is not None and not within.all():
        values, weights = values[within], weights[within]
    if not len(values):
        return None
    whole = statistics(*_histogram(values, weights, column))
    if whole is None or window.interval_s is not None:
        return whole
    return Statistics(mean=whole.mean, min=whole.min, max=whole.max)


def _histogram(
    values: NDArray[np.int32] | NDArray[np.float64], weights: NDArray[np.float64], column: Counted
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the different values in the slot's unit, and how long each stood."""
    if column.per == 0:
        return Counted(values, 0).floats(slice(None)), weights
    low = int(values.min())
    if int(values.max()) - low < _MOST_BINS:
        shifted = values - low
        stood = np.bincount(shifted, weights)
        counts = np.bincount(shifted)
        places = np.flatnonzero(counts)
        distinct, stood = places + low, stood[places]
    else:
        distinct, place = np.unique(values, return_inverse=True)
        stood = np.bincount(place, weights)
    return distinct / float(column.per) * column.scale, np.asarray(stood, dtype=np.float64)
