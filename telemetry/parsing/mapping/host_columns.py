"""The columns of a table that are of the machine around the GPUs, told apart from theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from telemetry.parsing.units import HOST_UNITS
from telemetry.recording.recording import TIME

if TYPE_CHECKING:
    import pandas as pd

    from telemetry.parsing.recording_builder import RecordingBuilder

_PREFIX = "host."
_NEARLY_ONE = 1.1


def host_of(
    samples: pd.DataFrame, builder: RecordingBuilder
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return the readings of the GPUs, and those of the host, once an instant; None without any.

    Where several machines are in the table, the host's are their mean.
    """
    columns = [str(name) for name in samples.columns if name in HOST_UNITS]
    if not columns:
        return samples, None
    found = samples[[TIME, *columns]].copy()
    for name in columns:
        found[name] = _possible(found[name], name, builder)
    rows = found.groupby(TIME, as_index=False).mean().dropna(how="all", subset=columns)
    host = rows.rename(columns=lambda name: name.removeprefix(_PREFIX))
    return samples.drop(columns=columns), host if len(host) else None


def _possible(values: pd.Series, name: str, builder: RecordingBuilder) -> pd.Series:
    most = _NEARLY_ONE if HOST_UNITS[name] == "fraction" else np.inf
    wrong = (values < 0) | (values > most)
    if wrong.any():
        reason = "below 0 or above 100 %" if np.isfinite(most) else "below 0"
        builder.missing[f"{name} {reason}"] += int(wrong.sum())
        builder.notes.append(f"{name}: {int(wrong.sum())} values left out: {reason}.")
    kept = values.where(~wrong)
    return kept.clip(upper=1.0) if np.isfinite(most) else kept
