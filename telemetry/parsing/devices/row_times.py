"""When rows of devices were read: at times of their own, or an interval apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import numpy as np

from telemetry.recording.recording import GPU, TIME

if TYPE_CHECKING:
    import pandas as pd

    from telemetry.parsing.clock import SourceClock
    from telemetry.parsing.recording_builder import RecordingBuilder

DEFAULT_INTERVAL_S = 1.0


class Timing(TypedDict):
    """The fields of a Recording that say what its times are."""

    timed: bool
    absolute: bool
    local_time: bool


def placed_in_time(
    samples: pd.DataFrame,
    times: SourceClock | None,
    builder: RecordingBuilder,
    interval_s: float | None,
) -> pd.DataFrame:
    """Return samples with their time; rows whose time cannot be read are dropped and counted.

    Args:
        samples: with their device in GPU.
        times: of the rows; None where the source has none.
        builder: where dropped rows are counted.
        interval_s: between two rows of a device without times; None: a second.
    """
    if times is None:
        step = interval_s or DEFAULT_INTERVAL_S
        return samples.assign(**{TIME: samples.groupby(GPU, sort=False).cumcount() * step})
    samples = samples.assign(**{TIME: times.t_s})
    lost = ~np.isfinite(times.t_s)
    if lost.any():
        builder.dropped["timestamp not readable"] += int(lost.sum())
        samples = samples[~lost]
    return samples


def timing(times: SourceClock | None) -> Timing:
    """Return what a recording says of its times."""
    return Timing(
        timed=times is not None,
        absolute=times is not None and times.absolute,
        local_time=times is not None and times.local,
    )
