"""What the probe had written and a sampler that was killed had not yet read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from telemetry.measure.capture_events import event_lines, event_of, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NAME = "gpucost-probe-"


def left_events(folder: object, taken: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return the events in the probe's folder that are not in the capture.

    Args:
        folder: as the capture names it; nothing is looked for elsewhere.
        taken: the events of the capture; each tells where the next one of its process begins.
    """
    if not isinstance(folder, str) or _NAME not in folder:
        return []
    reached: dict[str, int] = {}
    for event in taken:
        process, at = str(event.get("process")), event.get("at")
        reached[process] = max(reached.get(process, 0), at if isinstance(at, int) else 0)
    return [
        json.loads(named(left, path.stem, end))
        for path in sorted(Path(folder).glob("*.jsonl"))
        for line, end in event_lines(path, reached.get(path.stem, 0))
        if (left := event_of(line)) is not None
    ]
