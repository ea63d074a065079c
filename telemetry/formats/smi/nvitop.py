"""Reads what nvitop's `ResourceMetricCollector` collects, as JSON lines or as CSV."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from typing import TYPE_CHECKING

from pricing.errors import InputError
from telemetry.readers.devices import SeenDevice, recording
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import objects, text_of
from telemetry.readers.units import Meaning

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "nvitop"
_NAMES = {
    "gpu_utilization (%)": Meaning(target="util.kernel_time", unit="%"),
    "memory_utilization (%)": Meaning(target="util.mem_controller", unit="%"),
    "memory_used (MiB)": Meaning(target="mem.used_gib", unit="MiB"),
    "memory_total (MiB)": Meaning(target="memory.total", unit="MiB"),
    "power_usage (W)": Meaning(target="power.board_w", unit="W"),
    "temperature (C)": Meaning(target="temp.core_c", unit="C"),
}
# TAG/cuda:0 (gpu:3)/memory_used (MiB)/mean. What stands below pid:1234 is of one process.
_KEY = re.compile(r"(?:[^/]+/)?(?:cuda:\d+ \()?gpu:(\d{1,4})\)?/([^/]+)/mean")
_TIME = re.compile(r"(?:[^/]+/)?timestamp")
_OF_PROCESS = "pid:"


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the means of every collection; min and max within one are left.

    Raises:
        InputError: no row names a reading of a GPU.
    """
    builder = RecordingBuilder(payload, FORMAT)
    text = payload.text
    if text.lstrip()[:1] in ("{", "["):
        items, damaged = objects(text)
        tables: list[Mapping[str, object]] = list(items)
    else:
        tables, damaged = _of_csv(text)
    rows = [row for item in tables for row in _rows(item)]
    builder.rows_read += len(rows) + damaged
    if damaged:
        builder.dropped["cut line"] += damaged
    if not rows:
        raise InputError(
            f"{payload.name}: no mean of a GPU's reading in this nvitop log, so nothing was "
            "measured. Log what ResourceMetricCollector.collect() returns."
        )
    return recording(builder, rows, _NAMES, hints)


def _of_csv(text: str) -> tuple[list[Mapping[str, object]], int]:
    try:
        header, *lines = csv.reader(line for line in text.splitlines() if line.strip())
    except (csv.Error, ValueError):
        return [], 1
    whole = [line for line in lines if len(line) == len(header)]
    return [dict(zip(header, line, strict=True)) for line in whole], len(lines) - len(whole)


def _rows(item: Mapping[str, object]) -> Iterator[SeenDevice]:
    cells: dict[int, dict[str, str]] = defaultdict(dict)
    time: str | None = None
    for key, value in item.items():
        text = text_of(value)
        if key is None or text is None or _OF_PROCESS in key:
            continue
        if (found := _KEY.fullmatch(key)) is not None:
            cells[int(found[1])][found[2]] = text
        elif _TIME.fullmatch(key):
            time = text
    for index, known in sorted(cells.items()):
        yield SeenDevice(device=f"index {index}", cells=known, index=index, time=time)
