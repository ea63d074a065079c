"""Reads `gpustat --json`, once or in a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.telemetry.parsing.devices.device_rows import SeenDevice, recording
from planner.telemetry.parsing.devices.json_stream import objects
from planner.telemetry.parsing.devices.json_texts import text_of, whole_of
from planner.telemetry.parsing.recording_builder import RecordingBuilder
from planner.telemetry.parsing.units import Meaning
from pricing.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.telemetry.parsing.hints import Hints
    from planner.telemetry.parsing.payload import Payload
    from planner.telemetry.recording.recording import Recording

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


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of every query.

    Raises:
        InputError: no GPU is in any of them.
    """
    builder = RecordingBuilder(payload, FORMAT)
    queries, damaged = objects(payload.text)
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
