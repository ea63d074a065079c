"""Reads `rocm-smi --json` and `--csv`, whose names differ from release to release."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

from pricing.errors import InputError
from telemetry.readers import clock
from telemetry.readers.devices import SeenDevice, recording
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import objects, text_of
from telemetry.readers.units import names
from telemetry.recording.recording import MEMORY_FRACTION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "rocm-smi"
# "GPU memory use (%)" was the controller's time in some releases and capacity in others: not used.
_NAMES = {
    **names("util.kernel_time", "%", "gpu_use_(%)"),
    **names("util.mem_controller", "%", "gpu_memory_read/write_activity_(%)"),
    **names("mem.used_gib", "B", "vram_total_used_memory_(b) vram_used_(b)"),
    **names("memory.total", "B", "vram_total_memory_(b) vram_total_(b)"),
    **names(MEMORY_FRACTION, "%", "gpu_memory_allocated_(vram%)"),
    **names(
        "power.board_w",
        "W",
        "current_socket_graphics_package_power_(w) average_graphics_package_power_(w) power_(w)",
    ),
    **names("power.limit_w", "W", "max_graphics_package_power_(w)"),
    **names("temp.core_c", "C", "temperature_(sensor_edge)_(c) temperature_(sensor_junction)_(c)"),
    **names("clock.sm_mhz", "MHz", "sclk_clock_speed:"),
}
_MODELS = ("card_series", "card_model", "device_name")
_CARD = re.compile(r"(?:card|gpu)?(\d{1,4})")
_ID = re.compile(r"0x[0-9a-f]+", re.IGNORECASE)
_TIME = "time"
# People put a date before every line, with a comma or without; then the header has one, too.
_HEADER = re.compile(r"(?P<before>[^,]*(?:,[^,]*)??[\s,])?device(?P<rest>,.*)", re.IGNORECASE)
_ROW = re.compile(
    r"(?P<before>.*?[\s,])??(?P<card>(?:card|gpu)?\d{1,4})(?P<rest>,.*)", re.IGNORECASE
)


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of every card of every answer; they carry no time of their own.

    Raises:
        InputError: no card is in it.
    """
    builder = RecordingBuilder(payload, FORMAT)
    text = payload.text
    json_like = text.lstrip()[:1] in ("{", "[")
    tables, damaged = objects(text) if json_like else (list(_of_csv(text)), 0)
    rows = [row for table in tables for row in _cards(table)]
    builder.rows_read += len(rows) + damaged
    if damaged:
        builder.dropped["cut answer"] += damaged
    if not rows:
        raise InputError(
            f"{payload.name}: no card in this rocm-smi output, so nothing was measured. Run "
            "`rocm-smi -a --json` where the driver is loaded."
        )
    return recording(builder, rows, _NAMES, hints)


def _cards(table: Mapping[str, object]) -> Iterator[SeenDevice]:
    for card, said in table.items():
        found = _CARD.fullmatch(card)
        if found is None or not isinstance(said, dict):
            continue
        cells = {
            "_".join(str(name).lower().split()): text.strip("() ")
            for name, value in said.items()
            if (text := text_of(value)) is not None
        }
        unique = cells.get("unique_id", "")
        model = (cells.get(name) for name in _MODELS)
        yield SeenDevice(
            device=f"card{found[1]}",
            cells=cells,
            index=int(found[1]),
            uuid=unique if _ID.fullmatch(unique) and unique.strip("0x") else None,
            model=next((one for one in model if one and _is_name(one)), None),
            time=cells.get(_TIME),
        )


def _is_name(text: str) -> bool:
    """Return whether a card's series is told by name; older releases give ids for what is new."""
    return text != "N/A" and not _ID.fullmatch(text)


def _of_csv(text: str) -> Iterator[dict[str, object]]:
    """Yield the rows of `--csv`; the header comes again with every call."""
    header: list[str] = []
    date = ""
    for line in text.splitlines():
        if clock.is_date_line(line):
            date = line.strip()
        elif named := _HEADER.fullmatch(line.strip()):
            header = _cells(named["rest"])
        elif header and (row := _ROW.fullmatch(line.strip())) is not None:
            cells = _cells(row["rest"])
            when = (row["before"] or "").strip(" ,\t[]") or date
            if len(cells) == len(header):
                told = dict(zip(header, cells, strict=True)) | ({_TIME: when} if when else {})
                yield {row["card"].lower(): told}


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])[1:]
    except csv.Error:
        return []
