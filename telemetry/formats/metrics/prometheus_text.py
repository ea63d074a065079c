"""Reads scrapes of exporters and of servers of models, also hand-elided and appended ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pricing.listing import listed
from telemetry.formats.metrics.scrape_lines import scrapes_of
from telemetry.formats.metrics.serving import served
from telemetry.formats.pods import pods
from telemetry.readers import series
from telemetry.readers.recording_builder import RecordingBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "prometheus-text"
_DEFAULT_INTERVAL_S = 1.0
_SHOWN_LINES = 20


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of one or more scrapes.

    A scrape is one instant. Where a file holds several, one after the other and without times of
    their own, they count as `hints.interval_s` apart.

    Raises:
        InputError: no line is a metric of a GPU or of a server of models.
    """
    builder = RecordingBuilder(payload, FORMAT)
    scrapes = scrapes_of(payload)
    builder.rows_read += sum(scrapes.dropped.values())
    builder.dropped += scrapes.dropped
    if scrapes.broken:
        builder.notes.append(_broken(scrapes.broken))
    timed = scrapes.timed
    step = hints.interval_s or _DEFAULT_INTERVAL_S
    found = [
        series.SampledSeries(
            name=name,
            labels=dict(labels),
            t_s=np.array(one.times) if timed else step * np.arange(len(one.values), dtype=float),
            readings=np.array(one.values),
            counter=scrapes.counter(name),
        )
        for (name, labels), one in sorted(scrapes.columns.items(), key=lambda item: item[0])
    ]
    by_job = pods(found)
    builder.notes += by_job.notes
    return series.recording(
        builder,
        by_job.series,
        hints,
        served=served(by_job.series, clocked=timed or hints.interval_s is not None),
        labels=by_job.labels,
        timed=timed,
        absolute=timed,
    )


def _broken(lines: Sequence[int]) -> str:
    shown = listed([str(line) for line in lines], _SHOWN_LINES)
    return f"labels elided or broken, read by what is left: lines {shown}."
