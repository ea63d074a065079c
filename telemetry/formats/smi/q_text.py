"""Reads `nvidia-smi -q`, the text: sections by indentation, one reading a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pricing.errors import InputError
from telemetry.readers.column_names import FLAG
from telemetry.readers.devices import SeenDevice, recording
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.units import SLOWDOWNS, Meaning, names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "nvidia-smi-q"
_NAMES = {
    **names("util.kernel_time", "%", "utilization/gpu"),
    **names("util.mem_controller", "%", "utilization/memory"),
    **names("util.encoder", "%", "utilization/encoder"),
    **names("util.decoder", "%", "utilization/decoder"),
    **names("mem.used_gib", "MiB", "fb_memory_usage/used"),
    **names("memory.total", "MiB", "fb_memory_usage/total"),
    **names(
        "power.board_w",
        "W",
        "gpu_power_readings/power_draw power_readings/power_draw "
        "gpu_power_readings/average_power_draw gpu_power_readings/instantaneous_power_draw",
    ),
    **names(
        "power.limit_w",
        "W",
        "power_readings/enforced_power_limit gpu_power_readings/enforced_power_limit "
        "gpu_power_readings/current_power_limit power_readings/power_limit",
    ),
    **names("temp.core_c", "C", "temperature/gpu_current_temp"),
    **names("clock.sm_mhz", "MHz", "clocks/sm"),
    **{
        f"{section}/{cause}": Meaning(target=FLAG)
        for section in (
            "clocks_event_reasons",
            "clocks_throttle_reasons",
            "clocks_event_reasons/hw_slowdown",
            "clocks_throttle_reasons/hw_slowdown",
        )
        for cause in SLOWDOWNS
    },
    **{
        f"clocks_event_reasons_counters/{cause}": Meaning(target="counter.throttle_s", unit="us")
        for cause in (
            "sw_power_capping",
            "sw_thermal_slowdown",
            "hw_thermal_slowdown",
            "hw_power_braking",
        )
    },
}
_LONGEST = 500  # characters of a line; a real one has 160
_DEEPEST = 8


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of every GPU of every log in the file.

    Raises:
        InputError: no GPU is in it.
    """
    builder = RecordingBuilder(payload, FORMAT)
    rows = [
        SeenDevice(
            device=f"bus {bus}",
            cells=cells,
            index=place,
            uuid=cells.get("gpu_uuid"),
            model=cells.get("product_name"),
            time=time,
        )
        for bus, place, time, cells in _devices(payload.text, builder)
    ]
    builder.rows_read += len(rows)
    if not rows:
        raise InputError(
            f"{payload.name}: no GPU stands in this `nvidia-smi -q` log, so nothing was measured. "
            "Run it where the driver is loaded."
        )
    mig = any(row.cells.get("mig_mode/current") == "Enabled" for row in rows)
    return recording(builder, rows, _NAMES, hints, mig=mig)


def _devices(
    text: str, builder: RecordingBuilder
) -> Iterator[tuple[str, int, str | None, dict[str, str]]]:
    """Yield address, place in its log, the log's time and the cells by path of each GPU."""
    time, place, bus = None, -1, None
    cells: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for indent, name, cell in _lines(text, builder):
        if indent > 0:
            path = [
                *[part for part in path if part[0] < indent][:_DEEPEST],
                (indent, _folded(name)),
            ]
            # The first of a name is meant: those of processes and MIG instances come many times.
            if cell:
                cells.setdefault("/".join(part for _, part in path), cell)
            continue
        if bus is not None and name.startswith(("GPU ", "Timestamp")):
            yield bus, place, time, cells
            bus = None
        if name == "Timestamp":
            time, place = cell or None, -1
        elif name.startswith("GPU ") and not cell:
            bus, place, cells, path = name[4:].strip(), place + 1, {}, []
    if bus is not None:
        yield bus, place, time, cells


def _lines(text: str, builder: RecordingBuilder) -> Iterator[tuple[int, str, str]]:
    """Yield indentation, name and value of each line."""
    for line in text.split("\n"):
        if len(line) > _LONGEST:
            builder.rows_read += 1
            builder.dropped["line too long"] += 1
            continue
        name, _, cell = line.partition(" : ")
        if name.strip():
            yield len(name) - len(name.lstrip()), name.strip(), cell.strip()


def _folded(name: str) -> str:
    return "_".join(name.lower().split())
