"""Of a capture: what servers told of themselves while they were measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from telemetry.formats.metrics.serving import served
from telemetry.readers.series import SampledSeries
from telemetry.recording.recording import SERVING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from telemetry.recording.recording import Served

_TWICE = 2


def served_in(facts: Mapping[str, Any]) -> tuple[Served, ...]:
    """Return what the servers of the job told together; nothing of one that did not tell twice.

    A tally that was damaged tells nothing.
    """
    try:
        found = [
            series
            for i, one in enumerate(facts.get(SERVING) or ())
            if one["pages"] >= _TWICE
            for series in _series(one, f"copy {i}")
        ]
        return served(found)[:1]
    except (ValueError, TypeError, KeyError, AttributeError):
        return ()


def _series(tally: Mapping[str, Any], copy: str) -> Iterator[SampledSeries]:
    """Yield the first and the last point of each series; what grew did so from 0."""
    times = np.array([tally["from_s"], tally["to_s"]], dtype=float)
    for part in ("grown", "means"):
        for name, labels, value in tally[part]:
            first = 0.0 if part == "grown" else value
            yield SampledSeries(
                name=str(name),
                labels={**labels, "copy": copy},
                t_s=times,
                readings=np.array([first, value], dtype=float),
                counter=part == "grown",
            )
