"""Reads `amd-smi metric` and `amd-smi monitor`, JSON and CSV, once or watched."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from pricing.errors import InputError
from telemetry.readers.devices import SeenDevice, recording
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import text_of, values, whole_of
from telemetry.readers.units import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "amd-smi"
# Its MB of memory are MiB: 294,896 of them are an MI355X's 288 GiB less what is kept back. By the
# last part of a name: older releases nest less.
_NAMES = {
    **names("util.kernel_time", "%", "gfx_activity gfx_util gfx"),
    **names("util.mem_controller", "%", "umc_activity mem_util mem"),
    **names("mem.used_gib", "MiB", "used_vram vram_used"),
    **names("memory.total", "MiB", "total_vram vram_total"),
    **names(
        "power.board_w",
        "W",
        "socket_power current_socket_power average_socket_power power_usage power",
    ),
    **names("power.limit_w", "W", "power_limit max_power"),
    **names("temp.core_c", "C", "edge edge_temperature hotspot hotspot_temperature gpu_temp"),
    **names("counter.energy_j", "J", "total_energy_consumption"),
}
_DEEPEST = 4


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of every GPU of every answer.

    Raises:
        InputError: no GPU is in it.
    """
    builder = RecordingBuilder(payload, FORMAT)
    text = payload.text
    # `--watch` prints a line for people before the JSON.
    if "[" in text or "{" in text:
        found, damaged = values(text)
        items = list(_gpus(found))
    else:
        items, damaged = list(_of_csv(text)), 0
    rows = [row for item in items if (row := _row(item)) is not None]
    builder.rows_read += len(rows) + damaged
    if damaged:
        builder.dropped["cut answer"] += damaged
    if not rows:
        raise InputError(
            f"{payload.name}: no GPU in this amd-smi output, so nothing was measured. Run "
            "`amd-smi metric --json -w 1` while the job runs."
        )
    return recording(builder, rows, _NAMES, hints)


def _gpus(found: Iterable[object]) -> Iterator[Mapping[str, object]]:
    for value in found:
        inner = value.get("gpu_data", [value]) if isinstance(value, dict) else value
        for item in inner if isinstance(inner, list) else []:
            if isinstance(item, dict):
                yield item


def _row(item: Mapping[str, object]) -> SeenDevice | None:
    index = whole_of(item.get("gpu", item.get("GPU")))
    if index is None:
        return None
    cells: dict[str, str] = {}
    _flatten(item, cells, 0)
    return SeenDevice(
        device=f"index {index}",
        cells=cells,
        index=index,
        uuid=cells.get("uuid"),
        model=next(
            (cells[name] for name in ("market_name", "product_name") if name in cells), None
        ),
        time=cells.get("timestamp"),
    )


def _flatten(item: Mapping[str, object], cells: dict[str, str], depth: int) -> None:
    """Put every figure under the last part of its name, the first of a name first."""
    for name, value in item.items():
        key = str(name).lower()
        if isinstance(value, dict) and "value" in value:
            number, unit = text_of(value["value"]), text_of(value.get("unit"))
            text = None if number is None else f"{number} {unit or ''}".strip()
        elif isinstance(value, dict):
            if depth < _DEEPEST:
                _flatten(value, cells, depth + 1)
            continue
        else:
            text = text_of(value)
        if text is not None and key != "gpu":
            cells.setdefault(key, text)


def _of_csv(text: str) -> Iterator[dict[str, object]]:
    header: list[str] = []
    for line in text.splitlines():
        try:
            cells = [cell.strip() for cell in next(csv.reader([line]), [])]
        except csv.Error:
            continue
        if "gpu" in [cell.lower() for cell in cells]:
            header = [cell.lower() for cell in cells]
        elif header and len(cells) == len(header):
            yield dict(zip(header, cells, strict=True))
