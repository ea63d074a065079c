"""Reads `gpustat --json`, and what gpustat prints for people, once or in a loop."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pricing.errors import InputError
from telemetry.formats.smi.gpustat_heads import GPU
from telemetry.readers import clock
from telemetry.readers.devices import SeenDevice, recording
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import objects, text_of, whole_of
from telemetry.readers.units import Meaning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "gpustat"
# Its MB are NVML's bytes over 1024 x 1024.
_NAMES = {
    "utilization.gpu": Meaning(target="util.kernel_time", unit="%"),
    "utilization.enc": Meaning(target="util.encoder", unit="%"),
    "utilization.dec": Meaning(target="util.decoder", unit="%"),
    "memory.used": Meaning(target="mem.used_gib", unit="MiB"),
    "memory.total": Meaning(target="memory.total", unit="MiB"),
    "power.draw": Meaning(target="power.board_w", unit="W"),
    "enforced.power.limit": Meaning(target="power.limit_w", unit="W"),
    "temperature.gpu": Meaning(target="temp.core_c", unit="C"),
}

_HEAD = re.compile(r"(?P<host>\S{1,80})\s+(?P<time>\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4})(?:\s.*)?")
_PRINTED = {
    "temperature": "temperature.gpu",
    "utilization": "utilization.gpu",
    "power": "power.draw",
    "limit": "enforced.power.limit",
    "used": "memory.used",
    "total": "memory.total",
}


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of every query.

    Raises:
        InputError: no GPU is in any of them.
    """
    builder = RecordingBuilder(payload, FORMAT)
    text = payload.text
    if GPU.search(text):
        rows, damaged = _printed(text), 0
    else:
        queries, damaged = objects(text)
        rows = [row for query in queries for row in _rows(query)]
    builder.rows_read += len(rows) + damaged
    if damaged:
        builder.dropped["cut query"] += damaged
    if not rows:
        raise InputError(
            f"{payload.name}: no GPU in this gpustat output, so nothing was measured. "
            "Run `gpustat --json` where the driver is loaded."
        )
    return recording(builder, rows, _NAMES, hints)


def _rows(query: dict[str, object]) -> Iterator[SeenDevice]:
    gpus = query.get("gpus")
    host, time = text_of(query.get("hostname")), text_of(query.get("query_time"))
    for place, gpu in enumerate(gpus if isinstance(gpus, list) else []):
        if not isinstance(gpu, dict):
            continue
        index = whole_of(gpu.get("index"))
        cells = {name: text for name in _NAMES if (text := text_of(gpu.get(name))) is not None}
        yield SeenDevice(
            device=f"{host or ''} index {place if index is None else index}",
            cells=cells,
            index=place if index is None else index,
            uuid=text_of(gpu.get("uuid")),
            model=text_of(gpu.get("name")),
            time=time,
            host=host,
        )


def _printed(text: str) -> list[SeenDevice]:
    """Return the GPUs of every query, by gpustat's names of their readings; "?" is missing."""
    found = []
    host = time = None
    for line in text.splitlines():
        head = _HEAD.fullmatch(line.strip(" \t>"))
        if head is not None and clock.is_date_line(head["time"]):
            host, time = head["host"], head["time"]
        elif seen := GPU.match(line):
            cells = {name: seen[part] for part, name in _PRINTED.items() if seen[part] is not None}
            index = int(seen["index"])
            found.append(
                SeenDevice(
                    device=f"{host or ''} index {index}",
                    cells={name: cell for name, cell in cells.items() if cell.isdigit()},
                    index=index,
                    model=seen["model"].strip(),
                    time=time,
                    host=host,
                )
            )
    return found
