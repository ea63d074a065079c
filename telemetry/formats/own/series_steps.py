"""Reads the steps that stand beside a profile, `NAME.steps.jsonl`, as a source themselves."""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pricing.errors import InputError
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.recording.observed import STEP_COLUMNS, Observed, add_up, of_line
from telemetry.recording.recording import GPU, TIME, Recording

if TYPE_CHECKING:
    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload

FORMAT = "gpucost-steps"
_AS_IT_IS = ("t_s", "step", "n", "loss")  # the others are means over the row's steps
_MOST = 1e15


def read(payload: Payload, hints: Hints) -> Recording:  # noqa: ARG001 - one signature for readers
    """Return the job's steps; no reading of a device is among them.

    Raises:
        InputError: no step is in it.
    """
    builder = RecordingBuilder(payload, FORMAT)
    rows = []
    for line in payload.text.splitlines():
        if not line.strip():
            continue
        builder.rows_read += 1
        row = _row(line)
        if row is None:
            builder.dropped["no step"] += 1
        else:
            rows.append(row)
    if not rows:
        raise InputError(
            f"{payload.name}: no step in it, so it tells nothing. Measure again: gpucost profile "
            "-- COMMAND."
        )
    rows.sort(key=lambda row: row["t_s"])
    empty = pd.DataFrame({TIME: np.empty(0), GPU: pd.Series(dtype=object)})
    return builder.recording(empty, (), observed=_observed(rows))


def _row(line: str) -> dict[str, float] | None:
    """Return the sums over a row's steps; None where that cannot be read."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    known = {name: said[name] for name in STEP_COLUMNS if _is_number(said.get(name))}
    if "t_s" not in known:
        return None
    n = float(known.setdefault("n", 1))
    if n < 0:
        return None
    return {name: float(v if name in _AS_IT_IS else v * n) for name, v in known.items()}


def _is_number(value: Any) -> bool:  # noqa: ANN401 - of JSON
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and isfinite(value) and abs(value) < _MOST


def _observed(rows: list[dict[str, float]]) -> Observed:
    """Return the steps; the first row carries start-up, so its lengths do not count."""
    frame = pd.DataFrame(rows, columns=list(STEP_COLUMNS)).astype(float)
    return Observed(
        steps=frame,
        step_count=int(sum(row["n"] for row in rows)),
        step_times=add_up(of_line(row) for row in rows[1:]),
    )
