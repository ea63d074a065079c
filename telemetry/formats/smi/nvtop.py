"""Reads `nvtop -s`, once or in a loop: GPUs of NVIDIA, AMD and Intel as strings with units."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pricing.errors import InputError
from telemetry.readers.devices import SeenDevice, recording
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import text_of, values
from telemetry.readers.units import Meaning

if TYPE_CHECKING:
    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "nvtop"
# `mem_util` is the share of memory in use; the bytes stand there since 3.2 only.
_NAMES = {
    "gpu_util": Meaning(target="util.kernel_time", unit="%"),
    "encode": Meaning(target="util.encoder", unit="%"),
    "decode": Meaning(target="util.decoder", unit="%"),
    "mem_used": Meaning(target="mem.used_gib", unit="B"),
    "mem_total": Meaning(target="memory.total", unit="B"),
    "mem_util": Meaning(target="fraction.memory", unit="%"),
    "power_draw": Meaning(target="power.board_w", unit="W"),
    "temp": Meaning(target="temp.core_c", unit="C"),
    "gpu_clock": Meaning(target="clock.sm_mhz", unit="MHz"),
}


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of every snapshot; they carry no time.

    Raises:
        InputError: no GPU is in any of them.
    """
    builder = RecordingBuilder(payload, FORMAT)
    snapshots, damaged = values(payload.text)
    rows = [
        SeenDevice(
            device=f"index {place}",
            cells={name: text for name in _NAMES if (text := text_of(gpu.get(name))) is not None},
            index=place,
            model=text_of(gpu.get("device_name")),
        )
        for snapshot in snapshots
        for place, gpu in enumerate(snapshot if isinstance(snapshot, list) else [snapshot])
        if isinstance(gpu, dict)
    ]
    builder.rows_read += len(rows) + damaged
    if damaged:
        builder.dropped["cut snapshot"] += damaged
    if not rows:
        raise InputError(
            f"{payload.name}: no GPU in this nvtop snapshot, so nothing was measured. "
            "Let `nvtop -s` end before the file is copied."
        )
    return recording(builder, rows, _NAMES, hints)
