"""Reads `dcgmi dmon`: fields by their short names, under a header that comes again and again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pricing.errors import InputError
from telemetry.readers.devices import SeenDevice, recording
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.units import Meaning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "dcgmi-dmon"
_NAMES = {
    "gputl": Meaning(target="util.kernel_time", unit="%"),
    "mcutl": Meaning(target="util.mem_controller", unit="%"),
    "smact": Meaning(target="util.sm_active", unit="ratio"),
    "smocc": Meaning(target="util.sm_occupancy", unit="ratio"),
    "tenso": Meaning(target="util.tensor_active", unit="ratio"),
    "drama": Meaning(target="util.dram_active", unit="ratio"),
    "fp64a": Meaning(target="util.fp64_active", unit="ratio"),
    "fp32a": Meaning(target="util.fp32_active", unit="ratio"),
    "fbusd": Meaning(target="mem.used_gib", unit="MiB"),
    "fbttl": Meaning(target="memory.total", unit="MiB"),
    "power": Meaning(target="power.board_w", unit="W"),
    "tmptr": Meaning(target="temp.core_c", unit="C"),
    "smclk": Meaning(target="clock.sm_mhz", unit="MHz"),
    "totec": Meaning(target="counter.energy_j", unit="mJ"),
    "pcitx": Meaning(target="io.pcie_tx_mib_s", unit="B/s"),
    "pcirx": Meaning(target="io.pcie_rx_mib_s", unit="B/s"),
    "nvltx": Meaning(target="io.nvlink_tx_mib_s", unit="B/s"),
    "nvlrx": Meaning(target="io.nvlink_rx_mib_s", unit="B/s"),
}
_ROW = re.compile(r"(GPU|GPU-I|GPU-CI)\s+(\d{1,4})\s+(\S.*)")


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings; rows carry no time, so they are `hints.interval_s` apart.

    Raises:
        InputError: there is no header, or no row under it.
    """
    builder = RecordingBuilder(payload, FORMAT)
    rows = list(_rows(payload.text, builder))
    if not rows:
        raise InputError(
            f"{payload.name}: dcgmi dmon output without a row under its header, so nothing was "
            "measured. Let `dcgmi dmon -e 203,252,155,1002,1004,1005` run while the job runs."
        )
    return recording(builder, rows, _NAMES, hints, mig=any(row.partition for row in rows))


def _rows(text: str, builder: RecordingBuilder) -> Iterator[SeenDevice]:
    header: list[str] = []
    for line in text.split("\n"):
        words = line.strip()
        if words.startswith("#"):
            names = words.lstrip("# ").split()
            header = [name.lower() for name in names[1:]] if names[:1] == ["Entity"] else header
            continue
        found = _ROW.match(words)
        if found is None:
            continue  # the line of units, and words at the end
        builder.rows_read += 1
        cells = found[3].split()
        if len(cells) != len(header):
            builder.dropped["cut line" if len(cells) < len(header) else "not a row"] += 1
            continue
        whole = found[1] == "GPU"
        yield SeenDevice(
            device=f"{found[1]} {found[2]}",
            cells=dict(zip(header, cells, strict=True)),
            index=int(found[2]) if whole else None,
            partition=None if whole else f"instance {found[2]}",
        )
