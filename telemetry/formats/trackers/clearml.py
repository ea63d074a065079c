"""Reads scalars of a ClearML task: what `Task.get_reported_scalars()` returns, written as JSON.

Its monitor averages over 30 s. Where a driver reports no utilisation (MIG), ClearML writes a
constant 100 %: that is taken for unknown. Without `x_axis="timestamp"` times are seconds since the
task's start.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

import numpy as np

from pricing.errors import InputError
from telemetry.readers import series
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import documents

if TYPE_CHECKING:
    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "clearml"
_TITLE = ":monitor:gpu"
_NAME = re.compile(r"gpu_(\d+)_(\w+)")
_MS_A_S, _EPOCH_MS = 1000.0, 1e11
_FULL, _FEW = 100.0, 10
_ALWAYS_FULL = (
    "GPU {index}: 100 % at every reading, which ClearML also writes where the driver reports no "
    "utilisation (MIG): taken for unknown."
)


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of a task.

    Raises:
        InputError: no GPU is among its scalars.
    """
    builder = RecordingBuilder(payload, FORMAT)
    tasks, damaged = documents(payload.text, payload.name)
    if damaged:
        builder.rows_read += damaged
        builder.dropped["cut line"] += damaged
    found = []
    for task in tasks:
        scalars = task.get("scalars") if isinstance(task.get("scalars"), dict) else task
        plots = cast("dict[str, object]", scalars).get(_TITLE)
        for name, plot in sorted(plots.items()) if isinstance(plots, dict) else ():
            one = _series(str(name), plot)
            if one is not None and not _always_full(one, builder):
                found.append(one)
    if not found:
        raise InputError(
            f"{payload.name}: no readings of {_TITLE} among its scalars, so no GPU was measured. "
            "Write Task.get_reported_scalars(x_axis='timestamp') as JSON."
        )
    dated = all(one.t_s.min() > _EPOCH_MS / _MS_A_S for one in found)
    return series.recording(builder, found, hints, absolute=dated)


def _series(name: str, plot: object) -> series.SampledSeries | None:
    match = _NAME.fullmatch(name)
    x, y = (plot.get("x"), plot.get("y")) if isinstance(plot, dict) else (None, None)
    if match is None or not isinstance(x, list) or not isinstance(y, list) or not x or not y:
        return None
    try:
        times, values = np.array(x, dtype=float), np.array(y, dtype=float)
    except (TypeError, ValueError):
        return None
    count = min(len(times), len(values))
    order = np.argsort(times[:count], kind="stable")
    t_s = times[:count][order]
    return series.SampledSeries(
        name=f"{_TITLE}/gpu_N_{match[2]}",
        labels={"gpu": match[1]},
        t_s=t_s / _MS_A_S if t_s[0] > _EPOCH_MS else t_s,
        readings=values[:count][order],
        counter=False,
    )


def _always_full(one: series.SampledSeries, builder: RecordingBuilder) -> bool:
    full = one.name.endswith("utilization") and len(one.readings) >= _FEW
    if not full or not (one.readings == _FULL).all():
        return False
    builder.rows_read += len(one.readings)
    builder.dropped["constant 100 %"] += len(one.readings)
    builder.notes.append(_ALWAYS_FULL.format(index=one.index))
    return True
